"""The names of finished stages: a setting that is added is to leave them as they are where it is not used."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
from xswe.corpus.contexts import ContextConfig
from xswe.training.config import PCAConfig
from xswe.training.extract import ExtractConfig
from xswe.training.objective import Objective
from xswe.training.refine import RefineConfig
from xswe.training.stages import fingerprint_fields
from xswe.training.units_stage import UnitsConfig

# Of the first versions. What is added later is marked with OMIT_DEFAULT.
FIRST = {
    ContextConfig: "per_unit candidates pick seed",
    ExtractConfig: "merge isolated",
    Objective: "temperature margin distillation distillation_temperature distillation_on",
    PCAConfig: "level drop dim sentences norm",
    RefineConfig: "max_steps batch_size learning_rate decay_start optimiser max_grad_norm eval_steps patience seed threads",
    UnitsConfig: "kind vocabulary size sample most_frequent segmenters",
}


@pytest.mark.parametrize("settings", FIRST)
def test_a_setting_that_is_not_used_leaves_the_names_of_finished_stages(settings):
    assert set(fingerprint_fields(settings())) == set(FIRST[settings].split())


def test_a_setting_that_is_used_changes_them():
    assert fingerprint_fields(RefineConfig(neighbours=16))["neighbours"] == 16
