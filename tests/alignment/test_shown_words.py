"""Words of a model are shown as texts of their language write them; what is encoded stays as it is."""

from __future__ import annotations

import functools
import gzip
import re
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import xswe
from xswe.alignment.dictionary import make_lexicon, precision, vocabularies
from xswe.errors import ModelError

BASE = Path(xswe.__file__).parents[1] / "models" / "base"


@pytest.fixture(scope="module")
def mini():
    return xswe.load("mini")


MODELS = ["mini", pytest.param(BASE, id="base", marks=pytest.mark.slow)]


@functools.cache
def lexicon(name):
    """Return a model, its words of English and Japanese, and the pairs of a lexicon of these."""
    model = xswe.load(name)
    source, target = vocabularies(model, ["en", "ja"])
    return model, source, target, make_lexicon(model, source, target)


def japanese(word):
    """Whether a word can be written in JIS X 0213."""
    try:
        word.encode("euc_jis_2004")
    except UnicodeEncodeError:
        return False
    return True


def test_words_are_written_as_in_their_language(mini):
    assert {"時間", "列車", "期間", "言語", "情報"} <= set(mini.words("ja"))
    assert {"时间", "期间", "语言", "信息"} <= set(mini.words("zh"))
    assert all(map(japanese, mini.words("ja")))
    assert {"Haus", "schnell", "Berlin"} <= set(mini.words("de"))
    assert {"house", "Japan", "I", "Monday"} <= set(mini.words("en"))
    assert {"Haus", "house", "先生"} <= set(mini.words())
    assert mini.words("ja")["時間"] == mini.words("zh")["时间"] == mini.words()["时间"]  # of whom uses it most


def test_parts_of_words_are_not_shown(mini):
    assert not {"betwe", "whil", "betwe".title()} & set(mini.words("en"))
    assert not {"ライバー", "リンター", "フラ"} & set(mini.words("ja"))
    assert "先生" in mini.words("ja")
    assert not {"先生は", "情報を", "と一緒に"} & set(mini.words("ja"))
    assert {"特に", "最も"} <= set(mini.words("ja"))


def test_neighbours_are_written_as_in_their_language(mini):
    assert mini.neighbours("Zeitraum", language="ja", k=3)[0].word == "期間"
    assert [near.word for near in mini.neighbours("teacher", language="ja", k=3)][:2] == ["先生", "教師"]
    assert mini.neighbours("house", language="de", k=1)[0].word == "Haus"
    assert mini.neighbours("deutsch", language="en", k=1)[0].word == "German"
    for own in ("時間", "时间"):  # the word itself is none of its neighbours, however it is written
        assert not {"時間", "时间"} & {near.word for near in mini.neighbours(own, k=30)}


@pytest.mark.parametrize("name", MODELS)
def test_a_lexicon_holds_japanese(name):
    if name == BASE and not BASE.is_dir():
        pytest.skip("models/base is not there")
    _, source, target, pairs = lexicon(name)
    found = {source[a]: target[b] for a, b in zip(pairs.source, pairs.target, strict=True)}
    assert len(found) > 3500
    assert all(map(japanese, found.values()))
    assert found["teacher"] == "先生"
    assert found["customer"] == "顧客"


@pytest.mark.slow
def test_a_lexicon_holds_words_of_the_training_text(xswe_data):
    """And translates more of a gold lexicon right than folded words, .752."""
    mini, source, target, pairs = lexicon("mini")
    found = {target[b] for b in pairs.target}
    files = sorted((xswe_data / "train" / "en-ja").glob("*.tsv.gz"))
    lines = (line for path in files for line in gzip.decompress(path.read_bytes()).decode("utf-8").splitlines())
    held = "\n".join(line.split("\t")[1] for line in lines)
    runs = set(re.findall("[ァ-ヺー]+", held))
    assert all(word in held for word in sorted(found)[::20])
    assert all(word in runs for word in found if re.fullmatch("[ァ-ヺー]+", word))
    assert precision(mini, source, target, xswe_data / "lexicon" / "muse.en-ja.tsv.gz").at_1 > 0.80


@pytest.mark.parametrize("name", MODELS)
def test_most_words_of_a_lexicon_are_in_the_dictionary(name):
    fugashi, unidic = pytest.importorskip("fugashi"), pytest.importorskip("unidic_lite")
    if name == BASE and not BASE.is_dir():
        pytest.skip("models/base is not there")
    tagger = fugashi.GenericTagger(f'-r "{unidic.DICDIR}/mecabrc" -d "{unidic.DICDIR}"')
    _, _, target, pairs = lexicon(name)
    parsed = [tagger(target[b]) for b in pairs.target]
    known = [len(nodes) == 1 and not nodes[0].is_unk for nodes in parsed]
    assert np.mean(known) > (0.85 if name == "mini" else 0.75)  # .609 and .502 as folded


def test_what_is_shown_is_looked_up_as_before(mini):
    folded = replace(mini, forms=None)
    for code in mini.languages:
        forms = mini.words(code)
        tokens = [mini.units.tokens[row].removeprefix("▁") for row in forms.values()]
        assert any(form != token for form, token in zip(forms, tokens, strict=True)) == (code != "zh")
        np.testing.assert_array_equal(mini.encode(list(forms)), mini.encode(tokens))
    assert folded.identity == mini.identity
    np.testing.assert_array_equal(
        folded.encode(["Das Haus.", "図書館へ行く。"]), mini.encode(["Das Haus.", "図書館へ行く。"])
    )


def test_a_model_without_forms_shows_japanese_characters(mini, tmp_path):
    """Folders of earlier versions hold none."""
    mini.save(tmp_path / "m")
    tensors = load_file(tmp_path / "m" / "counts.safetensors")
    save_file({"counts": tensors["counts"]}, tmp_path / "m" / "counts.safetensors")
    old = xswe.load(tmp_path / "m")
    assert old.forms is None
    words = set(old.words("ja"))
    assert all(map(japanese, words))
    assert {"時間", "列車", "言語", "情報", "先生"} <= words
    assert "先生は" not in words
    assert "haus" in old.words("de")
    assert len(words & set(mini.words("ja"))) > 0.99 * len(mini.words("ja"))  # a character tells nearly always
    (tmp_path / "m" / "counts.safetensors").unlink()
    assert "列車" in xswe.load(tmp_path / "m").words("ja")


def test_forms_are_kept(mini, tmp_path):
    mini.save(tmp_path / "m", dtype="float16")
    again = xswe.load(tmp_path / "m")
    assert [list(own) for own in again.forms] == [list(own) for own in mini.forms]
    for code in (None, "ja"):
        assert again.words(code) == mini.words(code)
    small = mini.prune(16_000, mini.counts[1])  # by German text
    words, before = small.words("de"), mini.words("de")
    both = words.keys() & before.keys()
    assert any(words[word] != before[word] for word in both)
    assert all(small.units.tokens[words[word]] == mini.units.tokens[before[word]] for word in both)
    assert [len(own) for own in small.forms] == [16_000] * 4
    made = replace(mini, forms=mini.forms[:1] * 4)
    assert made.words("en") == mini.words("en")
    with pytest.raises(ModelError, match=r"forms of \[32000, 32000\] units, expected 32000 a language"):
        replace(mini, forms=mini.forms[:2])


def test_damaged_forms_are_named(mini, tmp_path):
    mini.prune(4000).save(tmp_path / "m")
    path = tmp_path / "m" / "counts.safetensors"
    whole = load_file(path)
    forms = whole["forms"]
    lines = zlib.decompress(forms.tobytes())
    for content in (forms[:-1], forms[::-1], packed(lines + b"\n"), packed(lines[:-10]), packed(b"\xff" + lines[1:])):
        save_file({**whole, "forms": np.ascontiguousarray(content)}, path)
        with pytest.raises(ModelError, match=r"m/counts\.safetensors: the forms are .* again, or remove the file"):
            xswe.load(tmp_path / "m")


def packed(lines):
    return np.frombuffer(zlib.compress(lines), np.uint8)


def test_training_counts_units_and_forms(sample):
    pairs = list(zip(sample["en"], sample["de"], strict=True))
    few = {"refine.max_steps": 2, "refine.batch_size": 32, "pca.dim": 8, "units.vocabulary": "mini", "threads": 1}
    model = xswe.train(pairs, ["en", "de"], recipe="static", **few, **{"objective.prefixes": []}).model
    assert model.counts.shape == (2, len(model.matrix))
    assert {"Wasser", "und"} <= set(model.words("de")) - set(model.words("en"))
    assert {"water", "I"} <= set(model.words("en"))
    assert "wasser" not in model.words("de")


def test_words_are_looked_for_once_however_many_neighbours_are_asked_for(monkeypatch):
    model, kind, asked = xswe.load("mini"), xswe.types.StaticModel, []
    find = kind._find_words
    monkeypatch.setattr(kind, "_find_words", lambda self, *given: asked.append(given[0]) or find(self, *given))
    first = model.neighbours("car", language="de", k=3)
    model.words("de").clear()  # the caller's own
    assert model.neighbours("car", language="de", k=3) == first
    model.neighbours("car", language="ja")
    model.prune(4000).neighbours("car", language="de")
    assert asked == ["de", "ja", "de"]
