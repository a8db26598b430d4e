"""Exports: what is written reads back in the field's own readers, with the vectors that the model gives."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from safetensors.numpy import load_file
from tokenizers import Tokenizer

import xswe
from tests.conftest import OTHER_LIBRARIES, encoded_by
from xswe.errors import ConfigError
from xswe.model.export import (
    ExportConfig,
    export,
    reshape,
    vectors_by_token,
)
from xswe.model.static import StaticModel
from xswe.model.word_vectors import read_vectors, write_binary, write_text
from xswe.text.subwords import SubwordUnits
from xswe.text.words import WordSplitter, WordUnits

ALL = ("en", "de", "zh", "ja")


@pytest.fixture
def model(tokenizer_json):
    units = SubwordUnits(Tokenizer.from_str(tokenizer_json), "subwords", ALL)
    matrix = np.random.default_rng(0).normal(size=(len(units.tokens), 16)).astype(np.float32)
    matrix[[not token for token in units.tokens]] = 0.0
    return StaticModel(units, matrix, {"teacher": "none"})


@pytest.fixture
def texts(sample):
    return [text for code in ALL for text in sample[code][:60]]


def test_word2vec_text_is_the_fields_format(tmp_path):
    vectors = np.array([[1, -0.5, 1e-20], [0.1, 3.4e38, 0]], np.float32)
    write_text(tmp_path / "v.txt", ["猫", "cat"], vectors)
    assert (tmp_path / "v.txt").read_text(encoding="utf-8") == "2 3\n猫 1.0 -0.5 1e-20\ncat 0.1 3.4e+38 0.0\n"


def test_word2vec_binary_is_the_fields_format(tmp_path):
    write_binary(tmp_path / "v.bin", ["a", "猫"], np.array([[1, 2], [3, -4]], np.float32))
    row = np.array([3, -4], "<f4").tobytes()
    assert (tmp_path / "v.bin").read_bytes() == b"2 2\na " + np.array(
        [1, 2], "<f4"
    ).tobytes() + b"\n\xe7\x8c\xab " + row + b"\n"


@pytest.mark.parametrize("kind", ["word2vec", "word2vec-binary"])
def test_word2vec_files_read_back_exactly(kind, model, tmp_path):
    export(model, ExportConfig(format=kind), tmp_path / "v")
    tokens, vectors = read_vectors(tmp_path / "v", binary=kind != "word2vec")
    expected = vectors_by_token(model)
    assert tokens == expected[0]
    assert vectors.tobytes() == expected[1].tobytes()
    assert "" not in tokens
    assert "<unk>" not in tokens


def test_a_unit_with_a_blank_cannot_be_in_a_word2vec_file(tokenizer, tmp_path):
    units = WordUnits(["New York", "猫"], WordSplitter(("en",), {}, None), None)
    model = StaticModel(units, np.eye(2, dtype=np.float32))
    with pytest.raises(ConfigError, match="New York"):
        export(model, ExportConfig(format="word2vec"), tmp_path / "v")
    assert not (tmp_path / "v").exists()


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
def test_onnx_gives_the_models_vectors(dtype, model, texts, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    export(model, ExportConfig(format="onnx", dtype=dtype), tmp_path / "m.onnx")
    session = onnxruntime.InferenceSession(str(tmp_path / "m.onnx"), providers=["CPUExecutionProvider"])
    texts = ["", *texts, "", "\u3164", ""]
    bags = model.units.bags(texts)
    (line,) = (line for line in sys.modules[export.__module__].__doc__.splitlines() if line.startswith("    session.run"))
    (vectors,) = eval(line.strip())  # the module's own example
    np.testing.assert_allclose(vectors, model.quantize(dtype).encode(texts), atol=1e-6)
    assert not vectors[[0, -1, -2, -3]].any()
    (none,) = session.run(["vectors"], {"ids": np.zeros(0, np.int64), "offsets": np.zeros(1, np.int64)})
    assert none.shape == (0, 16)
    lookup = Tokenizer.from_file(str(tmp_path / "m.tokenizer.json"))
    unknown_left_out = [i for i in lookup.encode(texts[1]).ids if model.units.tokens[i]]
    assert unknown_left_out == bags.ids[: bags.offsets[2]].tolist()


def test_onnx_needs_ids_that_a_tokenizer_gives(tmp_path):
    pytest.importorskip("onnx")
    model = StaticModel(WordUnits(["a"], WordSplitter(("en",), {}, None), None), np.ones((1, 4), np.float32))
    with pytest.raises(ConfigError, match="word units"):
        export(model, ExportConfig(format="onnx"), tmp_path / "m.onnx")
    assert not list(tmp_path.iterdir())


def test_bits(model, tmp_path):
    export(model, ExportConfig(format="bits"), tmp_path / "m.bits")
    tensors = load_file(tmp_path / "m.bits")
    again = (np.unpackbits(tensors["bits"], axis=1).astype(np.float32) * 2 - 1) * tensors["scales"][:, None]
    assert ((again > 0) == (model.matrix > 0)).all()
    np.testing.assert_allclose(np.abs(again), np.repeat(np.abs(model.matrix).mean(1)[:, None], 16, 1), rtol=1e-6)
    # No other scale comes closer.
    error = ((again - model.matrix) ** 2).sum()
    assert all(((factor * again - model.matrix) ** 2).sum() > error for factor in (0.95, 1.05))


def test_turning_keeps_cosines_and_orders_dimensions(model, texts):
    turned = model.rotate()
    vectors, expected = turned.encode(texts), model.encode(texts)
    np.testing.assert_allclose(vectors @ vectors.T, expected @ expected.T, atol=1e-5)
    power = (turned.matrix.astype(np.float64) ** 2).sum(0)
    assert (np.diff(power) <= 1e-6 * power[0]).all()
    cut, plain = turned.truncate(8).encode(texts), model.truncate(8).encode(texts)
    far = np.abs(cut @ cut.T - expected @ expected.T).mean()
    assert far < np.abs(plain @ plain.T - expected @ expected.T).mean()


def test_a_pruned_unigram_is_still_a_tokenizer(model, texts, tmp_path):
    small = model.prune(2900)
    assert len(small.matrix) == len(small.units.tokens) == 2900
    characters = {token for token in model.units.tokens if len(token) == 1}
    assert characters <= set(small.units.tokens)
    kept = {token: row for token, row in zip(small.units.tokens, small.matrix, strict=True) if token}
    for token, row in zip(model.units.tokens, model.matrix, strict=True):
        if token in kept:
            np.testing.assert_array_equal(kept[token], row)

    def spell(some):
        rows = (some.units.bags([text]).ids for text in texts)
        return ["".join(some.units.tokens[i] for i in ids).replace("▁", "") for ids in rows]

    assert spell(small) == spell(model)  # nothing that was known is lost
    small.save(tmp_path / "m")
    assert xswe.load(tmp_path / "m").encode(texts).tobytes() == small.encode(texts).tobytes()


def test_units_are_kept_by_their_counts(model, sample):
    counts = model.count_units(sample["de"])
    assert counts.sum() == len(model.units.bags(sample["de"]).ids)
    german = model.prune(2900, counts)
    chosen = set(german.units.tokens)
    dropped = [c for token, c in zip(model.units.tokens, counts, strict=True) if token not in chosen]
    kept = [c for t, c in zip(model.units.tokens, counts, strict=True) if t in chosen and len(t) > 1]
    assert max(dropped) <= min(kept)


def test_the_first_words_of_a_list_stay(tokenizer):
    units = WordUnits(["the", "cat", "sleeps"], WordSplitter(("en",), {}, tokenizer), tokenizer)
    small = StaticModel(units, np.eye(3, dtype=np.float32)).quantize("int8").prune(2)
    assert small.units.tokens == ["the", "cat"]
    np.testing.assert_allclose(small.encode("cat sleeps"), [0, 1, 0])
    assert StaticModel(units, np.eye(3, dtype=np.float32)).prune(2, np.array([1, 5, 9])).units.tokens == [
        "cat",
        "sleeps",
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m.truncate(17), "16 dimensions"),
        (lambda m: m.truncate(0), "16 dimensions"),
        (lambda m: m.prune(10**6), "units"),
        (lambda m: m.prune(5), "single characters"),
        (lambda m: ExportConfig(format="gguf"), "word2vec"),
        (lambda m: ExportConfig(format="bits", dtype="int8"), "leave dtype out"),
        (lambda m: reshape(m, ExportConfig(dtype="float8")), "float16"),
        (lambda m: reshape(m, ExportConfig(shared=9)), "1 to 8 dimensions"),
        (lambda m: ExportConfig(format="onnx", shared=4), "int8 folder"),
        (lambda m: ExportConfig(dtype="float16", shared=4), "int8 folder"),
    ],
)
def test_what_cannot_be_is_said(model, change, message):
    with pytest.raises(ConfigError, match=message):
        change(model)


@pytest.mark.parametrize("library", OTHER_LIBRARIES)
def test_a_smaller_folder_opens_in_all_libraries(model, texts, tmp_path, library):
    config = ExportConfig(dtype="int8", dim=8, rotate=True, keep=2900)
    export(model, config, tmp_path / "m")
    ours = xswe.load(tmp_path / "m")
    assert (ours.dtype, ours.matrix.shape) == ("int8", (2900, 8))
    np.testing.assert_allclose(encoded_by(library, tmp_path / "m", texts), ours.encode(texts), atol=1e-5)


def test_an_int8_word_model_means_the_same_everywhere(tokenizer, tmp_path):
    model2vec = pytest.importorskip("model2vec")
    units = WordUnits(["the", "cat", "sleeps"], WordSplitter(("en",), {}, tokenizer), tokenizer)
    matrix = np.random.default_rng(1).normal(size=(3, 8)).astype(np.float32) * np.array([[1], [10], [0.1]], np.float32)
    StaticModel(units, matrix).save(tmp_path / "m", dtype="int8")
    ours, theirs = xswe.load(tmp_path / "m"), model2vec.StaticModel.from_pretrained(str(tmp_path / "m"))
    texts = ["the cat", "The sleeps.", "CAT the"]
    assert ours.dtype == "int8"
    np.testing.assert_allclose(theirs.encode(texts), ours.encode(texts), atol=1e-6)
