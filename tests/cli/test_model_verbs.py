"""The verbs that turn models into others, and what tells scoring that a model is another."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import xswe
from tests.cli.verbs import command, composed
from xswe.errors import ConfigError


def test_import(tmp_path):
    (tmp_path / "v.txt").write_text("cat 1 2\nKatze 2 1\n", encoding="utf-8")
    values = composed("import", "pair=en-de", f"input={tmp_path}/v.txt", f"output={tmp_path}/m")
    assert command("import", values) == f"2 units, 2 dimensions: {tmp_path / 'm'}"
    np.testing.assert_allclose(xswe.load(tmp_path / "m").encode("CAT"), np.array([1, 2]) / 5**0.5, atol=1e-6)


def test_export(model_folder, tmp_path):
    (tmp_path / "de.txt").write_text("Die Katze schläft.\n" * 3, encoding="utf-8")
    given = [f"model={model_folder}", f"output={tmp_path}/s", "dtype=float16", "dim=4", "keep=2900"]
    values = composed("export", *given, f"counts={tmp_path}/de.txt")
    assert command("export", values).endswith(f"bytes: {tmp_path / 's'}")
    config = json.loads((tmp_path / "s" / "config.json").read_text())
    assert (config["hidden_dim"], config["vocabulary_size"], config["embedding_dtype"]) == (4, 2900, "float16")
    shared = composed("export", f"model={tmp_path / 's'}", f"output={tmp_path}/t", "shared=2")
    command("export", shared)
    assert xswe.load(tmp_path / "t").shared == 2
    command("export", shared | {"model": f"{tmp_path}/t", "output": f"{tmp_path}/u", "shared": 0})  # stays as it is
    assert (tmp_path / "u" / "codes.safetensors").read_bytes() == (tmp_path / "t" / "codes.safetensors").read_bytes()
    with pytest.raises(ConfigError, match="keep=8000"):
        command("export", values | {"keep": 0})


@pytest.mark.parametrize("changed", [False, True])
def test_scoring_goes_on_with_the_same_model(model, sample, tmp_path, changed):
    for code in ("en", "ja"):
        (tmp_path / f"{code}.txt").write_text("".join(f"{line}\n" for line in sample[code][:60]), encoding="utf-8")
    given = [f"source={tmp_path / 'en.txt'}", f"target={tmp_path / 'ja.txt'}", f"output={tmp_path / 'o.tsv'}"]
    given += ["mode=score", "score=ratio", "keep=true", "threads=1"]
    model.save(tmp_path / "a")
    (replace(model, matrix=-model.matrix) if changed else model).save(tmp_path / "b")
    command("mine", composed("mine", f"model={tmp_path / 'a'}", *given))
    made = tmp_path / "o.tsv.work" / "bitext" / "made.json"
    before = made.stat().st_ino, made.stat().st_mtime_ns
    command("mine", composed("mine", f"model={tmp_path / 'b'}", *given))
    assert ((made.stat().st_ino, made.stat().st_mtime_ns) != before) is changed
