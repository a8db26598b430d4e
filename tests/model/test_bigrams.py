"""Rows for pairs of neighbouring units: counting, look-up, folders, and all that is done with such a model."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from tokenizers import Tokenizer

import xswe
from xswe.errors import ConfigError, ModelError
from xswe.io.ragged import Bags
from xswe.model import bigrams as module
from xswe.model import folder as storage
from xswe.model.bigrams import Bigrams, frequent_bigrams
from xswe.model.card import card
from xswe.model.ensemble import Ensemble
from xswe.model.static import StaticModel
from xswe.text.subwords import SubwordUnits
from xswe.text.words import WordSplitter, WordUnits

ALL = ("en", "de", "zh", "ja")


@pytest.fixture(scope="module")
def model(tokenizer_json, sample):
    units = SubwordUnits(Tokenizer.from_str(tokenizer_json), "subwords", ALL)
    bigrams = frequent_bigrams([units.bags(sample[code]) for code in ALL], len(units), 2000)
    rows = np.random.default_rng(0).normal(size=(len(units) + len(bigrams), 24)).astype(np.float32)
    return StaticModel(units, rows, bigrams=bigrams)


@pytest.fixture(scope="module")
def texts(sample):
    return [text for code in ALL for text in sample[code][:60]] + ["", "a", "the"]


def rows_of(model, ids):
    """The rows of a text's units and of its bigrams, as slowly as can be."""
    place = {tuple(pair): k for k, pair in enumerate(model.bigrams.pairs.tolist())}
    return [*ids, *(len(model.units) + place[pair] for pair in pairwise(ids) if pair in place)]


def expected(model, texts):
    """The vectors of texts in float64."""
    ids = model.units.bags(texts)
    sums = [model.vectors[rows_of(model, ids.ids[a:b].tolist())].sum(axis=0, dtype=float) for a, b in pairwise(ids.offsets)]
    return np.stack([one / (np.linalg.norm(one) or 1.0) for one in sums])


def test_frequent_bigrams_stand_in_one_text_and_of_equally_frequent_ones_the_first_are_taken(monkeypatch):
    bags = Bags.of([[1, 2, 3]] * 5 + [[3, 1], [4]] * 4)
    assert frequent_bigrams([bags], 5, 9).pairs.tolist() == [[1, 2], [2, 3]]
    assert frequent_bigrams([bags], 5, 1).pairs.tolist() == [[1, 2]]
    assert frequent_bigrams([bags, bags], 5, 9).pairs.tolist() == [[1, 2], [2, 3], [3, 1]]
    assert frequent_bigrams([Bags.of([[1], [2], []] * 9)], 5, 9) is None
    draw = np.random.default_rng(3)
    many = [Bags.of([draw.integers(0, 9, draw.integers(0, 7)).tolist() for _ in range(200)]) for _ in range(2)]
    whole = frequent_bigrams(many, 9, 40).pairs.tolist()
    monkeypatch.setattr(module, "_BLOCK", 7)
    assert frequent_bigrams(many, 9, 40).pairs.tolist() == whole


@pytest.mark.parametrize("compiled", [False, True])
def test_a_bag_has_the_rows_of_its_units_and_then_of_its_bigrams(compiled):
    draw = np.random.default_rng(1)
    pairs = np.unique(draw.integers(0, 30, (200, 2)), axis=0).astype(np.uint32)
    few = StaticModel(range(30), np.zeros((30 + len(pairs), 1), np.float32), bigrams=Bigrams(pairs, 30))
    lists = [draw.integers(0, 30, size).tolist() for size in (0, 1, 2, 40, 0, 3, 17, 0)]
    found = few.bigrams.widen(Bags.of(lists), compiled)
    assert [found.ids[a:b].tolist() for a, b in pairwise(found.offsets)] == [rows_of(few, ids) for ids in lists]
    part = Bags(Bags.of(lists).ids, Bags.of(lists).offsets[3:6])  # begins in the midst of the ids
    assert few.bigrams.widen(part, compiled).ids.tolist() == rows_of(few, lists[3])


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
def test_a_text_is_the_sum_of_its_units_and_bigrams(model, texts, dtype):
    own = model.quantize(dtype)
    vectors = own.encode(texts)
    np.testing.assert_allclose(vectors, expected(own, texts), atol=2e-6)
    assert np.abs(vectors - StaticModel(model.units, model.matrix[: len(model.units)]).encode(texts)).max() > 0.1
    assert own.encode(texts, threads=3).tobytes() == vectors.tobytes()
    assert b"".join(own.encode(text).tobytes() for text in texts) == vectors.tobytes()
    assert b"".join(rows.tobytes() for rows in own.encode_stream(iter(texts), block=7)) == vectors.tobytes()


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_a_folder_is_the_same_model_and_refused_by_what_knows_no_bigrams(model, texts, tmp_path, monkeypatch, dtype):
    model.save(tmp_path / "m", dtype=dtype)
    again = xswe.load(tmp_path / "m")
    assert again.identity == model.quantize(dtype).identity != replace(again, bigrams=shifted(again.bigrams)).identity
    assert again.encode(texts).tobytes() == model.quantize(dtype).encode(texts).tobytes()
    assert "2000 bigrams" in repr(again)
    config = json.loads((tmp_path / "m" / "config.json").read_text())
    assert (config["format_version"], config["bigrams"], config["vocabulary_size"]) == (3, 2000, len(model.units))
    assert not (tmp_path / "m" / "model.safetensors").exists()
    monkeypatch.setattr(storage, "FORMAT_VERSION", 2)  # the version before
    with pytest.raises(ModelError, match="format version 3 is newer than 2; upgrade xswe"):
        xswe.load(tmp_path / "m")


def shifted(bigrams):
    """Other bigrams, as many."""
    pairs = bigrams.pairs.copy()
    pairs[-1] = bigrams.units - 1
    return Bigrams(pairs, bigrams.units)


@pytest.mark.slow
def test_other_libraries_find_no_matrix_but_the_module_is_exact(model, texts, tmp_path):
    sentence_transformers = pytest.importorskip("sentence_transformers")
    model2vec = pytest.importorskip("model2vec")
    from xswe.model.st_module import sentence_transformer

    model.save(tmp_path / "m")
    for theirs in (sentence_transformers.SentenceTransformer, model2vec.StaticModel.from_pretrained):
        with pytest.raises(ValueError, match="Could not find"):
            theirs(str(tmp_path / "m"))
    opened = sentence_transformer(tmp_path / "m", device="cpu")
    np.testing.assert_allclose(opened.encode(texts), model.encode(texts), atol=1e-6)
    assert opened[0].trained().identity == model.identity


def test_words_may_have_bigrams_too(tokenizer, tmp_path):
    units = WordUnits(["the", "cat", "sleeps"], WordSplitter(("en",), {}, tokenizer), tokenizer)
    pairs = np.array([[0, 1], [1, 2]], np.uint32)
    model = StaticModel(units, np.eye(5, dtype=np.float32), bigrams=Bigrams(pairs, 3))
    model.save(tmp_path / "m", dtype="int8")
    np.testing.assert_allclose(xswe.load(tmp_path / "m").encode("the cat sleeps"), np.full(5, 0.2**0.5), atol=1e-6)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda t: t.pop("bigrams"), r"bigrams of shape \(0,\), config.json says 2000"),
        (lambda t: t.pop("embeddings"), "no tensor 'embeddings'"),
        (lambda t: t.update(bigrams=t["bigrams"][:-1].copy()), r"shape \(1999, 2\)"),
        (lambda t: t.update(bigrams=t["bigrams"].reshape(-1)), r"shape \(4000,\)"),
        (lambda t: t.update(bigrams=t["bigrams"][::-1].copy()), "not in rising order"),
        (lambda t: t.update(bigrams=t["bigrams"] + np.uint32(2999)), "not of 3000 units"),
        (lambda t: t.update(bigrams=t["bigrams"].astype(np.uint16)), "expected uint32"),
        (lambda t: t.update(embeddings=t["embeddings"][:-1].copy()), "3000 units for 2999 vectors"),
    ],
)
def test_damaged_bigrams(model, tmp_path, change, problem):
    model.save(tmp_path / "m")
    tensors = load_file(tmp_path / "m" / "bigrams.safetensors")
    change(tensors)
    save_file(tensors, tmp_path / "m" / "bigrams.safetensors")
    with pytest.raises(ModelError, match=rf"m.*{problem}.*again"):
        xswe.load(tmp_path / "m")


def test_a_missing_file_of_bigrams_is_named(model, tmp_path):
    model.save(tmp_path / "m")
    (tmp_path / "m" / "bigrams.safetensors").unlink()
    with pytest.raises(ModelError, match=r"bigrams\.safetensors: missing; fetch or train"):
        xswe.load(tmp_path / "m")


def test_fewer_dimensions_and_units(model, texts):
    np.testing.assert_allclose(model.truncate(8).encode(texts), expected(model.truncate(8), texts), atol=2e-6)
    turned = model.rotate()
    np.testing.assert_allclose(turned.similarity(texts, texts[:9]), model.similarity(texts, texts[:9]), atol=1e-5)
    small = model.prune(2850)
    assert 0 < len(small.bigrams) < 2000
    np.testing.assert_allclose(small.encode(texts), expected(small, texts), atol=2e-6)
    names = {
        (small.units.tokens[a], small.units.tokens[b]): len(small.units) + k
        for k, (a, b) in enumerate(small.bigrams.pairs.tolist())
    }
    for k, (a, b) in enumerate(model.bigrams.pairs.tolist()):
        name = model.units.tokens[a], model.units.tokens[b]
        assert (name in names) == (set(name) <= set(small.units.tokens))
        if name in names:
            np.testing.assert_array_equal(small.matrix[names[name]], model.matrix[len(model.units) + k])
    scores = [score for _, score in model.units.state()["model"]["vocab"]]
    rarest = min((k for k in range(3000) if len(model.units.tokens[k]) > 1), key=scores.__getitem__)
    one = replace(model, bigrams=Bigrams(np.array([[rarest, rarest]], np.uint32), 3000), matrix=model.matrix[:3001])
    assert one.prune(2850).bigrams is None


def test_what_bigrams_cannot_be_in_is_refused_with_its_cure(model, tmp_path):
    for form in ("word2vec", "word2vec-binary", "onnx", "bits"):
        with pytest.raises(ConfigError, match=rf"format={form} cannot hold rows of bigrams.* format=folder"):
            xswe.export(model, tmp_path / "m", format=form)
    with pytest.raises(ConfigError, match="dtype=int8"):
        xswe.export(model, tmp_path / "m", shared=4)
    assert not list(tmp_path.iterdir())
    with pytest.raises(ModelError, match="leave shared out"):
        replace(model.quantize("int8"), shared=4)
    with pytest.raises(ModelError, match=r"5000 vectors for 3000 units$"):
        replace(model, bigrams=None)
    with pytest.raises(ModelError, match="2000 bigrams of 2999"):
        replace(model, bigrams=Bigrams(model.bigrams.pairs.clip(max=2998), 2999))
    for pairs, units in ((np.zeros((0, 2), np.uint32), 9), (np.zeros((1, 2), np.uint32), 1 << 20)):
        with pytest.raises(ModelError, match="can be found"):
            Bigrams(pairs, units)
    xswe.export(model, tmp_path / "m", dim=8, dtype="float16")
    assert len(xswe.load(tmp_path / "m").bigrams) == 2000


def test_the_card_names_them(model):
    text = card(model, name="m", settings={})
    assert "3,000 units and 2,000 pairs of neighbouring units" in text
    assert "Other libraries do not open the folder" in text
    assert "have one vector" not in text


def test_a_model_with_bigrams_does_what_any_other_does(model, sample, tmp_path):
    """What is done with the vectors of texts counts bigrams; what is done with single words is that of the units alone."""
    alone = StaticModel(model.units, model.matrix[: len(model.units)])
    english = sample["en"][:40]
    assert model.words("de") == alone.words("de")
    assert model.count_units(english).tolist() == alone.count_units(english).tolist()
    texts = {code: sample[code][:50] for code in ALL}
    np.testing.assert_array_equal(model.counted(texts).counts, alone.counted(texts).counts)
    word = next(iter(model.words("en")))
    assert model.neighbours(word, language="de", k=1)[0].word in model.words("de")
    both = Ensemble.of([model, alone])
    both.save(tmp_path / "both")
    assert xswe.load(tmp_path / "both").encode(english).tobytes() == both.encode(english).tobytes()
    phrases = xswe.find_phrases(model, ["the train"], english, k=3)
    assert phrases[0] == xswe.find_phrases(alone, ["the train"], english, k=3)[0]


def test_words_and_lines_of_a_text_add_up_with_their_bigrams(model, sample):
    service = pytest.importorskip("xswe.serving.service")
    from xswe.alignment.beads import line_sums
    from xswe.alignment.words import _read_words

    for text in ("The train was late.", "猫が寝ている。", "a", ""):
        words, vectors = service.explained(model, text)
        np.testing.assert_allclose(vectors.sum(axis=0), model.encode(text), atol=1e-5)
        assert len(words) == len(vectors)
    lines = sample["de"][:20]
    sums = line_sums(model, lines).sums
    np.testing.assert_allclose(sums / np.linalg.norm(sums, axis=1, keepdims=True), expected(model, lines), atol=1e-5)
    vectors, _, (places,) = _read_words(model, lines[:1])
    np.testing.assert_allclose(vectors, expected(model, [lines[0][a:b] for a, b in places.tolist()]), atol=1e-5)


@pytest.mark.parametrize("seed", range(5))
def test_pairs_are_found_and_pruned_as_in_a_dictionary(seed):
    rng = np.random.default_rng(seed)
    units = int(rng.integers(1, 9))
    pairs = np.unique(rng.integers(0, units, (20, 2)), axis=0).astype(np.uint32)
    bigrams, place = Bigrams(pairs, units), {tuple(pair): k for k, pair in enumerate(pairs.tolist())}
    left, right = (side.ravel() for side in np.meshgrid(np.arange(units), np.arange(units)))
    wanted = [units + place[pair] if pair in place else -1 for pair in zip(left.tolist(), right.tolist(), strict=True)]
    assert bigrams.find(left, right).tolist() == wanted
    assert Bigrams.of_keys(bigrams.keys, units).pairs.tolist() == pairs.tolist()
    kept = np.flatnonzero(rng.random(units) < 0.6)
    made, places = bigrams.prune(kept)
    left_over = [k for k, pair in enumerate(pairs.tolist()) if set(pair) <= set(kept.tolist())]
    assert places.tolist() == left_over
    assert (made is None) == (not left_over)
    if made is not None:
        assert kept[made.pairs].tolist() == pairs[left_over].tolist()
        assert made.units == len(kept)


def test_the_limits_of_bigrams(monkeypatch):
    def said(pairs, units, kind=np.uint32):
        try:
            Bigrams(np.array(pairs, kind), units)
        except ModelError as error:
            return str(error)
        return ""

    assert said([[0, 0]], 1) == said([[0, 1], [1, 0]], 2) == said([[0, 0]], 1 << 19) == ""
    number = "1 to 16777215 of 2^19 units can be found"
    assert said([[0, 0]], (1 << 19) + 1) == f"1 bigrams of 524289 units: {number}"
    assert said(np.zeros((0, 2)), 3) == f"0 bigrams of 3 units: {number}"
    for pairs in ([[0, 1], [0, 1]], [[1, 0], [0, 1]], [[0, 2]]):
        assert said(pairs, 2) == "the bigrams are not in rising order, or not of 2 units"
    assert said([0, 1], 2) == "the bigrams are uint32 (2,), expected uint32 (bigrams, 2)"
    assert said([[0, 1, 1]], 2) == "the bigrams are uint32 (1, 3), expected uint32 (bigrams, 2)"
    assert said([[0, 1]], 2, np.int64) == "the bigrams are int64 (1, 2), expected uint32 (bigrams, 2)"
    monkeypatch.setattr(module, "MOST", 2)
    assert said([[0, 0], [0, 1]], 2) == ""
    assert said([[0, 0], [0, 1], [1, 0]], 2) != ""


def test_bigrams_are_counted_up_to_five_in_blocks_and_parts(monkeypatch):
    """As a naive count, whatever the blocks; what begins in the midst of other bags too."""
    rng = np.random.default_rng(0)
    for block in (1, 3, 1 << 18):
        monkeypatch.setattr(module, "_BLOCK", block)
        sides = [[rng.integers(0, 4, rng.integers(0, 5)).tolist() for _ in range(25)] for _ in range(3)]
        counts = Counter(pair for side in sides for text in side for pair in pairwise(text))
        bags = [Bags.of([[9, 9, 9], *side]) for side in sides]
        for most in (1, 4, 99):
            found = frequent_bigrams([one.block(1, len(one)) for one in bags], 10, most)
            frequent = sorted((pair for pair in counts if counts[pair] >= 5), key=lambda pair: (-counts[pair], pair))
            assert [tuple(pair) for pair in found.pairs.tolist()] == sorted(frequent[:most])
