"""One folder, three libraries: the same vectors from xswe, sentence-transformers and model2vec."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

import xswe
from tests.conftest import OTHER_LIBRARIES, Later, count_words, encoded_by
from xswe.model.portable import write_portable
from xswe.model.static import StaticModel
from xswe.text.subwords import SubwordUnits
from xswe.text.words import WordSplitter, WordUnits, most_frequent

model2vec = Later("model2vec")
ALL = ("en", "de", "zh", "ja")


def cosines(ours, theirs):
    both_zero = ~ours.any(1) & ~np.asarray(theirs).any(1)
    return np.where(both_zero, 1.0, (ours * theirs).sum(1))


def random_model(units, width=32):
    matrix = np.random.default_rng(0).normal(size=(len(units.tokens), width)).astype(np.float32)
    matrix[[not token for token in units.tokens]] = 0.0
    return StaticModel(units, matrix)


def word_units(sample, pieces, languages, segmenters, backoff=True, **options):
    """Words of every other sentence: what stands in the rest has to be backed off."""
    splitter = WordSplitter(languages, segmenters, pieces, **options)
    counts = {code: count_words(sample[code][::2], splitter) for code in languages}
    return WordUnits(most_frequent(counts, dict.fromkeys(languages, 3000)), splitter, pieces if backoff else None)


def wordpiece_tokenizer():
    pieces = ["[UNK]", *"abcdefghijklmnopqrstuvwxyz", *(f"##{c}" for c in "abcdefghijklmnopqrstuvwxyz"), "the", "##ing"]
    tokenizer = Tokenizer(models.WordPiece({piece: i for i, piece in enumerate(pieces)}, unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    return tokenizer


@pytest.mark.parametrize("library", OTHER_LIBRARIES)
@pytest.mark.parametrize("kind", ["subwords", "teacher"])
def test_sub_word_models_agree_exactly(kind, library, tokenizer, sample, tmp_path):
    units = SubwordUnits(tokenizer if kind == "subwords" else wordpiece_tokenizer(), kind, ALL)
    model = random_model(units)
    model.save(tmp_path / "m")
    texts = [text for code in ALL for text in sample[code][:150]] + ["", "x" * 3000, "a b " * 2000]
    assert cosines(model.encode(texts), encoded_by(library, tmp_path / "m", texts)).min() > 0.999999


@pytest.mark.parametrize("library", OTHER_LIBRARIES)
@pytest.mark.parametrize(
    ("languages", "segmenters", "backoff", "least"),
    [
        (("en", "de"), {}, True, 0.99),
        pytest.param(("en", "de"), {}, False, 1.0, marks=pytest.mark.slow),
        pytest.param(("en", "ja"), {"ja": "teacher"}, True, 0.99, marks=pytest.mark.slow),
        pytest.param(("en", "zh"), {"zh": "teacher"}, True, 0.99, marks=pytest.mark.slow),
        pytest.param(ALL, {"zh": "teacher", "ja": "teacher"}, True, 0.96, marks=pytest.mark.slow),
        pytest.param(("en", "ja"), {"ja": "fugashi"}, True, 0.5, marks=pytest.mark.slow),
    ],
)
def test_word_models_agree_as_far_as_the_format_goes(
    languages, segmenters, backoff, least, library, tokenizer, sample, tmp_path
):
    model = random_model(word_units(sample, tokenizer, languages, segmenters, backoff))
    model.save(tmp_path / "m")
    assert xswe.load(tmp_path / "m").encode(sample["en"]).tobytes() == model.encode(sample["en"]).tobytes()
    texts = [text for code in languages for text in sample[code][1::4]] + [""]
    theirs = encoded_by(library, tmp_path / "m", texts)
    assert (cosines(model.encode(texts), theirs) > 0.999999).mean() >= least


@pytest.mark.parametrize("library", OTHER_LIBRARIES)
@pytest.mark.parametrize(
    ("languages", "segmenter", "options", "least"),
    [
        pytest.param(("en", "zh"), "teacher", {"folding": False}, 0.99, marks=pytest.mark.slow),
        pytest.param(("en", "de"), "teacher", {"lowercase": True}, 0.99, marks=pytest.mark.slow),
        pytest.param(ALL, "teacher", {"lowercase": True, "folding": False}, 0.96, marks=pytest.mark.slow),
        (("en", "ja"), "teacher-text", {}, 0.96),
    ],
)
def test_the_switches_of_words_are_in_the_portable_tokenizer(
    languages, segmenter, options, least, library, tokenizer, sample, tmp_path, caplog
):
    segmenters = {"zh": segmenter, "ja": segmenter}
    model = random_model(word_units(sample, tokenizer, languages, segmenters, **options))
    model.save(tmp_path / "m")
    told = [record.getMessage() for record in caplog.records if "can only come near" in record.getMessage()]
    assert len(told) == (segmenter == "teacher-text")
    texts = [text for code in languages for text in sample[code][1::4]] + ["STRASSE Iphone", "我們試試看"]
    again = xswe.load(tmp_path / "m")
    assert again.encode(texts).tobytes() == model.encode(texts).tobytes()
    theirs = encoded_by(library, tmp_path / "m", texts)
    assert (cosines(model.encode(texts), theirs) > 0.999999).mean() >= least


@pytest.mark.slow
def test_the_module_of_our_own_is_exact(tokenizer, sample, tmp_path):
    from xswe.model.st_module import sentence_transformer

    model = random_model(word_units(sample, tokenizer, ALL, {"zh": "jieba", "ja": "fugashi"}))
    model.save(tmp_path / "m")
    texts = [text for code in ALL for text in sample[code][:150]] + ["", "iPhone 漢字 ＡＢＣ"]
    opened = sentence_transformer(tmp_path / "m", device="cpu")
    assert cosines(model.encode(texts), opened.encode(texts)).min() > 0.999999
    narrow = model.quantize("int8")
    np.testing.assert_allclose(sentence_transformer(narrow, device="cpu").encode(texts), narrow.encode(texts), atol=1e-6)
    opened[0].embedding.weight.data *= 2
    opened[0].trained().save(tmp_path / "again")
    np.testing.assert_array_equal(xswe.load(tmp_path / "again").matrix, 2 * model.matrix)
    opened.save(str(tmp_path / "theirs"))
    np.testing.assert_array_equal(xswe.load(tmp_path / "theirs").matrix, 2 * model.matrix)


def rows_of(units, tmp_path, text):
    tensors = write_portable(units, tmp_path)
    ids = Tokenizer.from_file(str(tmp_path / "tokenizer.json")).encode(text, add_special_tokens=False).ids
    return [units.tokens[tensors["mapping"][i]] for i in ids if tensors["weights"][i]]


def unigram(pieces):
    tokenizer = Tokenizer(models.Unigram([("<unk>", -20.0), *pieces], unk_id=0))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    return tokenizer


def test_the_back_off_follows_the_teachers_boundaries(tmp_path):
    letters = [(c, -9.0) for c in "▁tokenisraphl"]
    pieces = unigram([("▁token", -3.0), ("iser", -3.0), ("▁graph", -4.0), *letters])
    units = WordUnits(["tokenis", "token", "the"], WordSplitter(("en",), {}, pieces), pieces)
    # "tokenis" is a longer prefix, but the teacher has no boundary there.
    assert rows_of(units, tmp_path, "tokeniser") == ["token"] == [units.tokens[i] for i in units.bags(["tokeniser"]).ids]
    for text in ("Token", "TOKEN", "the token.", "(token)", "graph", "THE"):
        assert rows_of(units, tmp_path, text) == [units.tokens[i] for i in units.bags([text]).ids], text


def test_traditional_characters_fold_in_chinese_text_only(tmp_path, tokenizer):
    units = WordUnits(["语", "語", "猫", "の"], WordSplitter(ALL, {"zh": "teacher", "ja": "teacher"}, tokenizer), tokenizer)
    assert rows_of(units, tmp_path, "語の") == ["語", "の"]
    assert rows_of(units, tmp_path, "貓") == ["猫"]


def test_spellings_have_an_order_of_their_own(tmp_path):
    """That of a set of strings differs from process to process, and so would the bytes."""
    words = ["the", "token", "graph", "ranks", "near", "paths", "share", "state", "that", "taller", "trees", "stone"]
    pieces = unigram([(c, -9.0) for c in "▁tokenisraphlgcdmv"])
    write_portable(WordUnits(words, WordSplitter(("en",), {}, pieces), pieces), tmp_path)
    vocabulary = [piece for piece, _ in json.loads((tmp_path / "tokenizer.json").read_text())["model"]["vocab"]]
    for word in words:
        of_word = [piece for piece in vocabulary if piece.lower() == f"▁{word}"]
        assert of_word == [f"▁{word}", f"▁{word.capitalize()}", f"▁{word.upper()}"]


def test_a_lone_mark_is_no_boundary_of_the_back_off():
    pieces = unigram([("▁", -1.0), ("owing", -2.0)])
    units = WordUnits(["x", "o"], WordSplitter(("en",), {}, pieces), pieces)
    assert units.identify("owing") == -1


def test_no_text_is_cut(tokenizer, tmp_path):
    random_model(SubwordUnits(tokenizer, "subwords", ALL)).save(tmp_path / "m")
    assert json.loads((tmp_path / "m" / "config.json").read_text())["max_length"] is None
    assert model2vec.StaticModel.from_pretrained(str(tmp_path / "m")).max_length is None
