"""A model has one identity, that of its folder's content: by it encode, mine and phrases know what to go on with."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
from tokenizers import Tokenizer

import xswe
from xswe.model import static
from xswe.model.ensemble import Ensemble
from xswe.model.static import StaticModel
from xswe.model.vector_files import VectorWriter
from xswe.text.subwords import SubwordUnits
from xswe.text.words import WordSplitter, WordUnits
from xswe.work import kept


@pytest.fixture
def model(tokenizer_json):
    units = SubwordUnits(Tokenizer.from_str(tokenizer_json), "subwords", ("en", "ja"))
    return StaticModel(units, np.random.default_rng(0).normal(size=(len(units), 8)).astype(np.float32))


@pytest.fixture
def words(tokenizer_json):
    pieces = Tokenizer.from_str(tokenizer_json)
    units = WordUnits(["cat", "猫", "house", "roof"], WordSplitter(("en", "ja"), {"ja": "teacher"}, pieces), pieces)
    return StaticModel(units, np.random.default_rng(1).normal(size=(4, 6)).astype(np.float32))


@pytest.fixture(params=["model", "words", "ensemble", "int8"])
def saved(request, model, words, tmp_path):
    """A model of each kind, and its folder."""
    kinds = {
        "model": model,
        "words": words,
        "ensemble": Ensemble.of([model, words], [2, 1]),
        "int8": model.quantize("int8"),
    }
    kinds[request.param].save(tmp_path / "model")
    return kinds[request.param], tmp_path / "model"


def test_it_is_the_same_in_memory_on_the_disk_and_in_any_copy(saved, tmp_path):
    made, folder = saved
    shutil.copytree(folder, tmp_path / "elsewhere" / "b")
    again, copied = xswe.load(folder), xswe.load(tmp_path / "elsewhere" / "b")
    assert made.identity == again.identity == copied.identity
    again.encode(["A cat sleeps on the warm roof. 猫が眠る。"])  # the look-up, made by now, changes nothing
    assert replace(again).identity == made.identity


def test_what_is_said_of_a_model_does_not_matter(saved):
    made, folder = saved
    (folder / "README.md").write_text("# Another card\n", encoding="utf-8")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "teacher": "another"}))
    assert xswe.load(folder).identity == made.identity


def test_whatever_decides_vectors_decides_it(model, words, tokenizer_json):
    state = json.loads(tokenizer_json)
    pieces = [piece for piece, _ in state["model"]["vocab"]]
    state["model"]["vocab"][pieces.index("▁the")][1] -= 5.0  # cuts other pieces, of the same names
    scored = SubwordUnits(Tokenizer.from_str(json.dumps(state)), "subwords", ("en", "ja"))
    marked = SubwordUnits(model.units.tokenizer, "subwords", ("en", "ja"), lone_mark=True)
    splitter = words.units.splitter
    others = [
        *(replace(model, units=units) for units in (scored, marked)),
        *(replace(model, matrix=matrix) for matrix in (model.matrix[::-1].copy(), -model.matrix)),
        words,
        replace(words, units=WordUnits(["猫", "cat", "house", "roof"], splitter, words.units.pieces)),
        replace(words, units=WordUnits(words.units.tokens, splitter, None)),
        replace(words, units=WordUnits(words.units.tokens, splitter, scored.tokenizer)),
        *(Ensemble.of(parts, weights) for parts, weights in (([model, words], [2, 1]), ([model, words], [1, 2]))),
    ]
    identities = [one.identity for one in (model, *others)]
    assert len(set(identities)) == len(identities)


def test_it_is_computed_once(model, monkeypatch):
    calls = []
    digest = static.arrays_digest
    monkeypatch.setattr(static, "arrays_digest", lambda *arrays: calls.append(1) or digest(*arrays))
    assert model.identity == model.identity
    assert calls == [1]


def edit_card(folder):
    (folder / "README.md").write_text("# Another card\n", encoding="utf-8")
    return folder


def move(folder):
    return folder.rename(folder.with_name("moved"))


def edit_matrix(folder):
    made = xswe.load(folder)
    replace(made, matrix=-made.matrix).save(folder)
    return folder


CHANGES = pytest.mark.parametrize(("change", "resumes"), [(edit_card, True), (move, True), (edit_matrix, False)])


@CHANGES
def test_encode_goes_on_with_the_same_model(model, sample, tmp_path, monkeypatch, change, resumes):
    model.save(tmp_path / "model")
    (tmp_path / "a.txt").write_text("".join(f"{line}\n" for line in sample["en"]), encoding="utf-8")
    files = tmp_path / "a.txt", tmp_path / "a.npy"

    def stop(_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(kept, "BRIEF", 0.0)
        patch.setattr(VectorWriter, "finish", stop)
        with pytest.raises(KeyboardInterrupt):
            xswe.encode_file(xswe.load(tmp_path / "model"), *files, threads=1)
    changed = xswe.load(change(tmp_path / "model"))
    assert xswe.encode_file(changed, *files, threads=1).kept == (len(sample["en"]) if resumes else 0)
    assert np.load(files[1]).tobytes() == changed.encode(sample["en"]).tobytes()


@CHANGES
def test_mine_goes_on_with_the_same_model(model, sample, tmp_path, change, resumes):
    model.save(tmp_path / "model")
    for code in ("en", "ja"):
        (tmp_path / f"{code}.txt").write_text("".join(f"{line}\n" for line in sample[code][:60]), encoding="utf-8")
    files = tmp_path / "en.txt", tmp_path / "ja.txt"
    kept = {"output": tmp_path / "o.tsv", "keep": True, "threads": 1}
    xswe.mine(xswe.load(tmp_path / "model"), *files, **kept)
    made = tmp_path / "o.tsv.work" / "source" / "side.json"
    before = made.stat().st_ino, made.stat().st_mtime_ns
    xswe.mine(xswe.load(change(tmp_path / "model")), *files, **kept)
    assert ((made.stat().st_ino, made.stat().st_mtime_ns) == before) is resumes
