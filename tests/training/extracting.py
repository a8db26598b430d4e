"""The extraction of a run as one call."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from xswe.teacher.protocol import Teacher
from xswe.text.units import Units
from xswe.training.extract import ExtractConfig, Extraction, LanguageSample, averaged, sums_by_shard
from xswe.work.config import LOCAL, ExecutionConfig


def extract(
    teacher: Teacher,
    units: Units,
    samples: Sequence[LanguageSample],
    config: ExtractConfig,
    folder: Path,
    execution: ExecutionConfig = LOCAL,
) -> Extraction:
    """Average the teacher's states of every unit over its context sentences."""
    what = teacher, units, samples, config
    return averaged(*what, sums_by_shard(*what, folder, execution))
