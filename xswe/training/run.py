"""The run folder written by the verb ``train``."""

from __future__ import annotations

from pathlib import Path

from xswe.io.files import check_folder
from xswe.training.config import TrainConfig
from xswe.training.train import TrainResult, run_name, train
from xswe.work.config import LOCAL, ExecutionConfig


def train_run(
    config: TrainConfig,
    output: str | Path | None = None,
    *,
    keep_steps: bool = False,
    side_by_side: bool = False,
    dry: bool = False,
    execution: ExecutionConfig = LOCAL,
) -> TrainResult | str:
    """Train a model with full settings into a run folder.

    Args:
        config: the settings.
        output: run folder; None for runs/<pair>/<recipe>-<fingerprint of the settings>, where the same command resumes.
        keep_steps: also save the model after each step, under ``steps`` of the run folder.
        side_by_side: put the run into a folder ``<recipe>-<fingerprint>`` of the output, beside other runs with which it
            shares equal stages; ``-m`` sets it.
        dry: only check teacher, corpus and settings, and estimate time, memory and disk.
        execution: who counts words and runs encoders.

    Raises:
        ConfigError: a setting is impossible.
        InputError: a file is missing or damaged.
    """
    within = Path(output or Path("runs") / "-".join(config.languages))
    check_folder(within)
    folder = within if output and not side_by_side else within / run_name(config)
    if dry:
        from xswe.training.rehearsal import rehearse

        return str(rehearse(config, folder))
    return train(
        config.corpus.paths,
        config.languages,
        recipe=config,
        output=folder,
        shared=within if side_by_side else None,
        keep_steps=keep_steps,
        execution=execution,
    )
