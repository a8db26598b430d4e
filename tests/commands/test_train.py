"""The command called as a function: what it leaves in its folder."""

from __future__ import annotations

import pytest

from tests.commands.test_configuration import composed
from xswe.commands.train import run

pytest.importorskip("torch")


@pytest.fixture
def settings(tmp_path, tokenizer):
    """Overrides of a run small enough for a test; further ones come after them."""
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    small = ["pca.dim=8", "refine.batch=64", "refine.steps=2", "spans.batch=16", "threads=1", f"output={tmp_path / 'run'}"]
    units = f"units.vocabulary={tmp_path / 'tokenizer.json'}"
    return lambda *more: composed("train", "pair=en-de", "teacher=none", units, *small, *more)


def test_outputs_of_earlier_settings_go_and_what_is_not_ours_stays(tmp_path, settings):
    folder = tmp_path / "run"
    run(settings("extract.merge=separate", "keep_steps=true"))
    assert {path.name for path in folder.iterdir()} >= {"languages", "steps", "history.csv", "model"}
    run(settings("spans.steps=2", "keep_steps=true"))
    assert {path.name for path in (folder / "steps").iterdir()} == {"refinement", "span-training"}
    assert (folder / "spans" / "history.csv").is_file()
    assert not (folder / "languages").exists()
    (folder / "steps" / "notes.txt").write_text("mine")
    run(settings("refine.steps=0"))
    left = {path.name for path in folder.iterdir()} - {".lock", "stages"}
    assert left == {"model", "results.json", "run.json", "steps"}
    assert [path.name for path in (folder / "steps").iterdir()] == ["notes.txt"]
