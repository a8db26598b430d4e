"""Counts by language: which words are whose, kept with the model through all that is done to it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from tokenizers import Tokenizer

import xswe
from xswe.alignment.dictionary import vocabularies
from xswe.errors import ConfigError, ModelError
from xswe.io.ragged import Texts
from xswe.io.resources import resource
from xswe.model.counts import check_counts, languages_of_units, narrow_counts
from xswe.model.static import StaticModel
from xswe.text.subwords import SubwordUnits
from xswe.text.words import WordSplitter, WordUnits

ALL = ("en", "de", "zh", "ja")


@pytest.fixture(scope="module")
def counted(sample, tokenizer_json):
    units = SubwordUnits(Tokenizer.from_str(tokenizer_json), "subwords", ALL)
    matrix = np.random.default_rng(0).normal(size=(len(units.tokens), 8)).astype(np.float32)
    return StaticModel(units, matrix).counted(sample)


def test_a_word_is_of_the_languages_that_use_it_often():
    counts = np.array([[90, 10, 0, 0], [2, 8, 0, 10]])
    assert languages_of_units(counts).tolist() == [[True, True, False, False], [True, True, False, True]]
    counts = np.array([[9000, 1000, 0], [1, 1000, 5]])  # a quotation is none, and a larger text does not own more
    assert languages_of_units(counts).tolist() == [[True, True, False], [False, True, True]]
    assert languages_of_units(np.array([[1, 0], [0, 1]])).tolist() == [[True, False], [False, True]]  # once is enough
    assert languages_of_units(np.zeros((2, 3), np.uint8)).any() == np.False_
    assert [narrow_counts(np.array([[most]])).dtype.name for most in (255, 256, 65536)] == ["uint8", "uint16", "uint32"]
    assert narrow_counts(np.array([[2**40]])).item() == 2**32 - 1


def test_words_of_languages_that_share_a_script(counted):
    english, german = counted.words("en"), counted.words("de")
    assert {"the", "and"} <= set(english) - set(german)
    assert {"die", "alle"} <= set(german) - set(english)
    assert "in" in english
    assert "in" in german
    chinese, japanese = counted.words("zh"), counted.words("ja")
    assert "的" in chinese
    assert "的" not in japanese
    assert "は" in japanese
    plain = replace(counted, counts=None, forms=None)
    assert plain.words("en") == plain.words("de")
    assert replace(counted, forms=None).words() == plain.words()
    source, target = vocabularies(counted, ["en", "de"])
    assert "die" not in source
    assert "die" in target
    with pytest.raises(ConfigError, match="no unit counts"):
        vocabularies(plain, ["en", "de"])


def test_neighbours_are_words_of_the_language():
    mini = xswe.load("mini")
    assert mini.neighbours("car", language="de", k=2)[1].word == "Wagen"
    assert mini.neighbours("Auto", language="en", k=1)[0].word == "car"
    assert "cars" in [near.word for near in mini.neighbours("Auto", language="en")]
    assert "cars" not in [near.word for near in mini.neighbours("Auto", language="de")]
    _, japanese = vocabularies(mini, ["en", "ja"])
    assert not {"这", "们", "根据", "没有", "如何"} & set(japanese)
    assert {"ページ", "最高", "徳川家"} <= set(japanese)


def test_counts_are_kept(counted, tmp_path, sample):
    counted.save(tmp_path / "m", dtype="int8")
    again = xswe.load(tmp_path / "m")
    np.testing.assert_array_equal(again.counts, counted.counts)
    assert again.words("de") == counted.words("de")
    assert replace(counted, counts=None).identity == counted.identity
    for made in (counted.truncate(4), counted.rotate(), counted.quantize("float16")):
        assert made.counts is counted.counts
    small = counted.prune(2800)
    assert small.counts.shape == (4, 2800)
    row, kept = counted.words("de")["und"], small.words("de")["und"]
    np.testing.assert_array_equal(small.counts[:, kept], counted.counts[:, row])
    with pytest.raises(ConfigError, match="texts of each of en, de, zh, ja"):
        counted.counted({"en": sample["en"]})


@pytest.mark.parametrize(
    "tensors",
    [
        {"count": np.ones((4, 3000), np.uint8)},
        {"counts": np.ones((3, 3000), np.uint8)},
        {"counts": np.ones((4, 2999), np.uint16)},
        {"counts": np.ones((4, 3000), np.float32)},
        {"counts": np.ones((4, 3000), np.int64)},
    ],
)
def test_damaged_counts_are_named(counted, tmp_path, tensors):
    counted.save(tmp_path / "m")
    save_file(tensors, tmp_path / "m" / "counts.safetensors")
    with pytest.raises(ModelError, match=r"m/counts\.safetensors: .* again"):
        xswe.load(tmp_path / "m")
    raw = (tmp_path / "m" / "model.safetensors").read_bytes()
    (tmp_path / "m" / "counts.safetensors").write_bytes(raw[:100])
    with pytest.raises(ModelError, match=r"m/counts\.safetensors: damaged"):
        xswe.load(tmp_path / "m")


def test_what_is_shipped_is_small():
    counts = load_file(resource("pretrained") / "mini" / "counts.safetensors")["counts"]
    assert counts.dtype == np.uint16
    assert counts.shape == (4, 32000)
    assert (counts > 0).any(0).sum() > 25_000


def test_counts_take_no_more_room_than_the_highest_needs():
    kinds = {255: np.uint8, 256: np.uint16, 65_535: np.uint16, 65_536: np.uint32, 2**32 - 1: np.uint32, 2**32: np.uint32}
    for most, kind in kinds.items():
        made = narrow_counts(np.array([[0, most]], np.int64))
        assert (made.dtype, made.tolist()) == (kind, [[0, min(most, 2**32 - 1)]])
    assert narrow_counts(np.zeros((2, 0), np.int64)).shape == (2, 0)
    for counts in (np.zeros((2, 3), np.int64), np.zeros((3, 2), np.uint8)):
        with pytest.raises(ModelError) as found:
            check_counts(counts, 2, 3)
        assert str(found.value) == (
            f"the counts are {counts.dtype} {counts.shape}, expected unsigned integers (2, 3), a row for each language"
        )
    check_counts(np.zeros((2, 3), np.uint16), 2, 3)


@pytest.mark.parametrize("seed", range(5))
def test_a_unit_is_of_the_languages_with_a_tenth_of_its_highest_rate(seed):
    counts = np.random.default_rng(seed).choice([0, 1, 2, 9, 11, 13, 19, 21], (3, 7))
    # As much text of each language, so that counts are rates.
    counts = np.concatenate([counts, 200 - counts.sum(axis=1, keepdims=True)], axis=1)
    highest = counts.max(axis=0)
    assert languages_of_units(counts).tolist() == ((counts > 0) & (10 * counts >= highest)).tolist()


def test_a_word_is_shown_as_the_language_that_has_a_form_and_uses_it_most_writes_it():
    units = WordUnits(["cat", "hut", "rot", "i"], WordSplitter(("en", "de"), {}, None), None)
    forms = Texts.of(["Cat", "", "Rot", "I"]), Texts.of(["", "Hut", "rot", ""])
    model = StaticModel(units, np.eye(4, dtype=np.float32), forms=forms)
    for counts, shown in (
        (np.array([[0, 9, 1, 0], [9, 0, 2, 9]], np.uint8), ["Cat", "Hut", "rot", "I"]),  # without a form it is no word
        (np.array([[0, 9, 2, 0], [9, 0, 1, 9]], np.uint8), ["Cat", "Hut", "Rot", "I"]),
        (None, ["Cat", "Hut", "Rot", "I"]),
    ):
        assert replace(model, counts=counts).words() == {form: row for row, form in enumerate(shown)}
    assert model.words("en") == {"Cat": 0, "Rot": 2, "I": 3}
    assert model.words("de") == {"Hut": 1, "rot": 2}
