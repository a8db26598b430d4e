"""What a model, an export or an import refuses, in which words; and what is just allowed."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
import pytest
from safetensors.numpy import load_file
from tokenizers import Tokenizer, models

import xswe
from xswe.errors import ConfigError, ModelError
from xswe.io.ragged import Texts
from xswe.model.bigrams import Bigrams
from xswe.model.export import ExportConfig, export_model, write_bits
from xswe.model.interchange import ImportConfig, merge_tables, word_units
from xswe.model.static import StaticModel
from xswe.text.subwords import SubwordUnits
from xswe.text.words import WordSplitter, WordUnits


@pytest.fixture
def model():
    pieces = [("<unk>", -9.0), ("a", -1.0), ("b", -2.0), ("ab", -1.5), ("▁a", -3.0)]
    units = SubwordUnits(Tokenizer(models.Unigram(pieces, unk_id=0)), "subwords", ("en", "de"))
    matrix = np.random.default_rng(0).normal(size=(5, 16)).astype(np.float32)
    return StaticModel(units, matrix)


@pytest.fixture
def words():
    units = WordUnits(["cat", "New York"], WordSplitter(("en",), {}, None), None)
    return StaticModel(units, np.eye(2, 16, dtype=np.float32))


def said(call, *arguments, kind=ConfigError, **settings):
    with pytest.raises(kind) as found:
        call(*arguments, **settings)
    return str(found.value)


def test_settings_of_an_export_that_do_not_go_together():
    for name in ("word2vec", "word2vec-binary", "bits"):
        own = f"format={name} has a precision of its own; leave dtype out"
        assert said(ExportConfig, name, "float16") == f"dtype=float16: {own}"
        assert said(ExportConfig, name, "int8") == f"dtype=int8: {own}"
        ExportConfig(name, "float32")
        ExportConfig(name)
    for name, dtype in (("onnx", "int8"), ("onnx", "float16"), ("folder", "float16")):
        ExportConfig(name, dtype)
    for wrong in ({"format": "onnx"}, {"dtype": "float16"}, {"dtype": "float32"}):
        told = "shared=4: rows are shared in an int8 folder; leave format and dtype out"
        assert said(ExportConfig, shared=4, **wrong) == told
    for fine in ({}, {"dtype": "int8"}, {"format": "folder"}):
        ExportConfig(shared=4, **fine)


def test_what_a_format_cannot_hold_is_said(model, words, tmp_path):
    told = "an ONNX graph takes the ids of a tokenizer.json, which word units do not share: use format=folder"
    assert said(export_model, words, tmp_path / "o", format="onnx") == told
    told = "the unit 'New York' has a blank, impossible in a word2vec file: use format=folder or onnx"
    assert said(export_model, words, tmp_path / "o", format="word2vec") == told
    wide = replace(model, matrix=np.ones((6, 16), np.float32), bigrams=Bigrams(np.array([[1, 2]], np.uint32), 5))
    for name in ("onnx", "bits", "word2vec"):
        assert said(export_model, wide, tmp_path / "o", format=name) == (
            f"format={name} cannot hold rows of bigrams, which this model has: use format=folder, or train a model with "
            "refine.bigrams=0"
        )
    assert said(export_model, model, tmp_path / "o", counts=np.ones(5, int)) == (
        "counts is the text by which units are kept: say how many, keep=8000"
    )
    for dim in (9, 15):
        told = f"format=bits packs eight dimensions a byte; the model has {dim}: choose a dim"
        assert said(export_model, model, tmp_path / "o", format="bits", dim=dim) == told
    assert not list(tmp_path.iterdir())


def test_an_export_says_its_size(model, tmp_path):
    made = export_model(model, tmp_path / "m")
    size = sum(os.path.getsize(file) for file in (tmp_path / "m").rglob("*") if file.is_file())
    assert (made.size, str(made)) == (size, f"{size:,} bytes: {tmp_path / 'm'}")
    one = export_model(model, tmp_path / "v", format="word2vec-binary")
    assert one.size == os.path.getsize(tmp_path / "v")


def test_an_export_has_the_units_dimensions_and_precision_that_are_asked_for(model, tmp_path):
    made = xswe.load(
        export_model(model, tmp_path / "a", keep=4, dim=8, dtype="int8", counts=np.array([0, 9, 9, 1, 5])).path
    )
    assert (made.matrix.shape, made.dtype, "ab" in made.units.tokens) == ((4, 8), "int8", False)
    whole = xswe.load(export_model(model, tmp_path / "b").path)
    assert whole.matrix.tobytes() == model.matrix.tobytes()
    half = model.quantize("float16")
    kept = xswe.load(export_model(half, tmp_path / "c", dim=8).path)  # in its own precision
    assert (kept.dtype, kept.dim) == ("float16", 8)
    assert kept.matrix.tobytes() == np.ascontiguousarray(half.matrix[:, :8]).tobytes()
    turned = xswe.load(export_model(model, tmp_path / "d", rotate=True, dtype="float32").path)
    np.testing.assert_allclose(turned.matrix @ turned.matrix.T, model.matrix @ model.matrix.T, atol=1e-5)
    assert xswe.load(export_model(model, tmp_path / "e", shared=4).path).shared == 4


def test_bits_are_the_signs_eight_a_byte(model, tmp_path):
    model.matrix[0, :5] = 0.0
    write_bits(tmp_path / "b", model)
    found = load_file(tmp_path / "b")
    for row, own, scale in zip(model.matrix, found["bits"], found["scales"], strict=True):
        bits = "".join(f"{byte:08b}" for byte in own)
        assert bits == "".join("1" if value > 0 else "0" for value in row)
        assert scale == pytest.approx(np.abs(row).mean())
    assert found["bits"].shape == (5, 2)


def test_axes_of_a_rotation_have_one_sign(model):
    turned, power = model.rotate().matrix.astype(float), np.linalg.eigvalsh(model.matrix.T.astype(float) @ model.matrix)
    np.testing.assert_allclose((turned**2).sum(axis=0), power[::-1], atol=1e-4)
    axes = np.linalg.lstsq(model.matrix.astype(float), turned, rcond=None)[0][:, :5]
    assert (axes[np.abs(axes).argmax(axis=0), np.arange(5)] > 0).all()
    mirrored = replace(model, matrix=model.matrix[::-1].copy()).rotate().matrix[::-1]
    np.testing.assert_allclose(mirrored[:, :5], turned[:, :5], atol=1e-4)


def test_parts_of_a_model_that_do_not_fit_are_said(model):
    small, numbers = model.quantize("int8"), np.ones((5, 16), np.float32)
    bigrams = Bigrams(np.array([[1, 2]], np.uint32), 5)
    six = np.ones((6, 16), np.float32)
    cases = [
        ({"matrix": numbers[0]}, "the matrix is float32 (16,), expected float32, float16 or int8 (units, d)"),
        ({"matrix": numbers.astype(float)}, "the matrix is float64 (5, 16), expected float32, float16 or int8 (units, d)"),
        ({"matrix": small.matrix}, "an int8 matrix needs scales, and no other has any"),
        ({"scales": np.ones(5, np.float32)}, "an int8 matrix needs scales, and no other has any"),
        ({"matrix": small.matrix, "scales": np.ones(4, np.float32)}, "the scales are float32 (4,), expected float32 (5,)"),
        ({"matrix": small.matrix, "scales": np.ones(5)}, "the scales are float64 (5,), expected float32 (5,)"),
        ({"matrix": six}, "6 vectors for 5 units"),
        ({"bigrams": bigrams}, "5 vectors for 5 units and 1 bigrams of 5"),
        ({"matrix": six, "bigrams": Bigrams(bigrams.pairs, 4)}, "6 vectors for 5 units and 1 bigrams of 4"),
        ({"matrix": six, "bigrams": bigrams, "shared": 4}, "a model with rows for bigrams shares none: leave shared out"),
        ({"shared": 4}, "rows are shared in an int8 matrix only, this one is float32: leave shared out"),
        ({"forms": (Texts.of("abcde"), Texts.of("abcd"))}, "forms of [5, 4] units, expected 5 a language"),
        ({"forms": (Texts.of("abcde"),)}, "forms of [5] units, expected 5 a language"),
    ]
    for changes, told in cases:
        assert said(replace, model, kind=ModelError, **changes) == told
    assert replace(model, matrix=six, bigrams=bigrams).bigrams is bigrams
    assert replace(model, forms=(Texts.of("abcde"),) * 2).forms is not None
    assert repr(replace(model, matrix=six, bigrams=bigrams)) == "StaticModel(subwords, en-de, 5 + 1 bigrams x 16 float32)"


def test_the_numbers_that_a_model_takes_are_told(model):
    for dim in (0, 17):
        assert said(model.truncate, dim) == f"dim={dim}: the model has 16 dimensions; keep between 1 and as many"
    assert [model.truncate(dim).dim for dim in (1, 16)] == [1, 16]
    for width in (0, 9):
        assert said(model.share_rows, width) == f"shared={width}: a part has 1 to 8 dimensions"
    assert [model.share_rows(width).shared for width in (1, 8)] == [1, 8]
    for keep in (0, 6):
        assert said(model.prune, keep) == f"keep={keep}: the model has 5 units; keep between 1 and as many"
    assert len(model.prune(5).units) == 5
    assert said(model.neighbours, "a", k=0) == "k=0: give at least 1"
    assert said(model.neighbours, 7, kind=TypeError) == "text is of type int: give one word or text, a str"
    assert said(model.counted, {"en": []}) == "texts of en: give texts of each of en, de"


def test_neighbours_are_words_by_their_cosine_without_the_text_itself():
    units = WordUnits(["cat", "Cat", "dog", "roof", "of"], WordSplitter(("en",), {}, None), None)
    matrix = np.random.default_rng(3).normal(size=(5, 4)).astype(np.float32)
    matrix[3] = 0.0
    model = StaticModel(units, matrix)
    for text, left_out in (("cat", {"cat", "Cat"}), ("dog of", set())):
        vector = model.encode(text)
        rows = {word: row for word, row in zip(units.tokens, matrix, strict=True) if word not in left_out}
        cosines = {word: float(row @ vector) / (np.linalg.norm(row) or 1.0) for word, row in rows.items()}
        assert model.word_cosines(text) == pytest.approx(cosines, abs=1e-6)
        assert cosines["roof"] == 0.0
        best = sorted(cosines, key=cosines.__getitem__, reverse=True)
        assert [[near.word for near in model.neighbours(text, k=k)] for k in (1, 2, 9)] == [best[:1], best[:2], best]


@pytest.mark.parametrize("merge", ["average", "first"])
@pytest.mark.parametrize("seed", range(4))
def test_tables_are_merged_as_a_dictionary_would(merge, seed):
    rng = np.random.default_rng(seed)
    tables, every = [], {}
    for _ in range(3):
        words = [chr(97 + k) for k in rng.permutation(6)[: rng.integers(1, 6)]]
        matrix = rng.normal(size=(len(words), 2)).astype(np.float32)
        tables.append((words, matrix))
        for word, row in zip(words, matrix, strict=True):
            every.setdefault(word, []).append(row)
    words, matrix = merge_tables(tables, merge)
    assert words == list(every)
    wanted = [rows[0] if merge == "first" else np.mean(rows, axis=0) for rows in every.values()]
    np.testing.assert_allclose(matrix, wanted, rtol=1e-5, atol=1e-6)


def test_what_an_import_lacks_is_said():
    assert said(ImportConfig, limit=-1) == "limit=-1: give how many words to read of each table, 0 for all"
    told = "format=wordllama needs its tokenizer: tokenizer=l2_supercat_tokenizer_config.json"
    assert said(ImportConfig, "wordllama") == told
    tables = [(["a"], np.ones((1, 2), np.float32)), (["b"], np.ones((1, 3), np.float32))]
    assert said(merge_tables, tables, "first") == "the tables have 2, 3 dimensions: give tables of one space"
    for code, segmenter, other in (("zh", "teacher", "jieba"), ("ja", "teacher-text", "fugashi")):
        config = ImportConfig(segmenters={code: segmenter})
        assert said(word_units, ["a"], ("en", code), config) == (
            f"the segmenter {segmenter!r} of {code} needs the teacher's tokenizer: give tokenizer=…/tokenizer.json, or "
            f"another one: segmenters.{code}={other}"
        )
    assert word_units(["▁a", "b", "▁"], ("en",), ImportConfig()).tokens == ["a", "b", "▁"]
    assert word_units(["▁a", "a"], ("en",), ImportConfig()).tokens == ["▁a", "a"]  # else two would be one
