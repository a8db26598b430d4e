"""Whole texts as a teacher's pieces: the authors' units of Chinese and Japanese."""

from __future__ import annotations

import pickle

import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from tests.conftest import count_words
from tests.text.test_counting import frequent_words
from tests.text.test_words import forms
from xswe.errors import ConfigError
from xswe.io.files import write_json
from xswe.io.ragged import Texts
from xswe.model.folder import load_units
from xswe.text.segmenters import TextPieces
from xswe.text.words import WordSplitter, WordUnits

WHOLE = {"zh": "teacher-text", "ja": "teacher-text"}
PIECES = ["▁", "▁Windows", "▁10", "を選択", "です。", "。", "「", "▁我", "们", "們", "可以", "▁the", "▁cat", "s", "A", "a"]


@pytest.fixture
def pieces():
    """As XLM-R's: special tokens among the pieces, NFKC, and blanks alone are cut at."""
    scores = {"<s>": 0.0, "<unk>": -20.0, **dict.fromkeys(PIECES, -3.0)}
    tokenizer = Tokenizer(models.Unigram(list(scores.items()), unk_id=1))
    tokenizer.normalizer = normalizers.NFKC()
    metaspace = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), metaspace])
    tokenizer.add_special_tokens([AddedToken("<s>", special=True), AddedToken("<unk>", special=True)])
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    return tokenizer


def test_a_text_with_han_or_kana_is_the_teachers_pieces_throughout(pieces):
    splitter = WordSplitter(("en", "zh", "ja"), WHOLE, pieces)
    text = "Windows　１０を選択です。「を選択"
    words = splitter(text)
    assert [word.form for word in words] == ["Windows", "10", "を選択", "です。", "を選択"]
    assert [text[word.start : word.end] for word in words] == ["Windows", "１０", "を選択", "です。", "を選択"]
    assert all(word.piece for word in words)
    assert forms(splitter, "Windows 10, the cat's.") == ["Windows", "10", "the", "cat", "s"]  # none: cut as ever
    by_runs = WordSplitter(("en", "zh", "ja"), {"zh": "teacher", "ja": "teacher"}, pieces)
    assert forms(by_runs, text) == ["Windows", "10", "を選択", "です", "を選択"]
    assert count_words([text], splitter) == {"Windows": 1, "10": 1, "を選択": 2, "です。": 1}
    for texts in ([text], ["the cat"], [text, "the cat", text, "10 を選択"]):
        assert frequent_words(texts, splitter, 100) == count_words(texts, splitter)


def test_special_and_unknown_pieces_are_no_words(pieces):
    splitter = WordSplitter(("en", "ja"), WHOLE, pieces)
    assert forms(splitter, "<s> を選択 猫") == ["を選択"]


def test_a_piece_is_known_as_it_is_or_in_lower_case_and_never_by_a_part_of_it(pieces):
    splitter = WordSplitter(("en", "ja"), WHOLE, pieces)
    units = WordUnits(["windows", "a", "ca", "を選"], splitter, pieces)
    texts = ["Windowsを選択", "Aを選択", "the catsを選択", "Windows"]
    compiled = units._make_fast()
    for look_up in (units._plainly, lambda given: compiled(Texts.of(given)), lambda given: units.locate(given).bags):
        assert [look_up([text]).ids.tolist() for text in texts] == [[0], [1], [], [0]]
    assert units.locate(["x Aを選択"]).starts.tolist() == [2]


def test_chinese_is_folded_as_told_and_japanese_never(pieces):
    text = "我們可以"
    assert forms(WordSplitter(("en", "zh", "ja"), WHOLE, pieces), text) == ["我", "们", "可以"]
    assert forms(WordSplitter(("en", "zh", "ja"), WHOLE, pieces, folding=False), text) == ["我", "們", "可以"]
    assert forms(WordSplitter(("en", "zh", "ja"), WHOLE, pieces), text + "を選択") == ["我", "們", "可以", "を選択"]
    assert pieces.normalizer.normalize_str("們Ａ") == "們A"  # the teacher's own tokenizer stays as it was


def test_texts_can_be_put_in_lower_case_first(pieces):
    assert forms(WordSplitter(("en", "ja"), WHOLE, pieces, lowercase=True), "Aを選択") == ["a", "を選択"]
    assert forms(WordSplitter(("en", "ja"), WHOLE, pieces, lowercase=True), "The CAT") == ["the", "cat"]


@pytest.mark.parametrize("options", [{}, {"folding": False}, {"lowercase": True}])
def test_round_trip_through_a_folder_and_a_copy(pieces, tmp_path, options):
    splitter = WordSplitter(("en", "zh", "ja"), WHOLE, pieces, **options)
    units = WordUnits(["Windows", "windows", "们", "們", "です。", "を選択", "可以", "a"], splitter, pieces)
    texts = ["Windows 10を選択", "我們可以", "WINDOWS", "A们"]
    units.save(tmp_path)
    write_json(tmp_path / "config.json", {"units": units.settings})
    for again in (load_units(tmp_path), pickle.loads(pickle.dumps(units))):
        assert again.settings == units.settings
        assert again.settings["segmenters"] == WHOLE
        for text in texts:
            assert again.bags([text]).ids.tolist() == units.bags([text]).ids.tolist(), text
            assert forms(again.splitter, text) == forms(splitter, text)


def test_pieces_of_other_models_are_words_without_what_marks_them():
    wordpiece = Tokenizer(models.WordPiece({"[UNK]": 0, "猫": 1, "##好": 2, "cat": 3, "##s": 4}, unk_token="[UNK]"))
    wordpiece.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    assert [form for form, *_ in TextPieces(wordpiece, ("en", "zh"), [])("cats 猫好")] == ["cat", "s", "猫", "好"]
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    encoded = {text: pre_tokenizers.ByteLevel(add_prefix_space=False).pre_tokenize_str(text)[0][0] for text in ("猫", " a")}
    merges, vocabulary = [], {letter: i for i, letter in enumerate(letters)}
    for whole in encoded.values():
        for k in range(1, len(whole)):
            merges.append((whole[:k], whole[k]))
            vocabulary.setdefault(whole[: k + 1], len(vocabulary))
    by_bytes = Tokenizer(models.BPE(vocabulary, merges))
    by_bytes.pre_tokenizer, by_bytes.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    assert [form for form, *_ in TextPieces(by_bytes, ("en", "zh"), [])("猫 a語")] == ["猫", "a"]


@pytest.mark.parametrize("by_bytes", [False, True])
def test_pieces_for_bytes_are_no_words(by_bytes):
    scores = {"<unk>": -20.0, "猫": -1.0, "ab": -1.0, **{f"<0x{byte:02X}>": -9.0 for byte in range(256)}}
    tokenizer = Tokenizer(models.Unigram(list(scores.items()), unk_id=0, byte_fallback=by_bytes))
    pieces = TextPieces(tokenizer, ("en", "zh"), [])
    found = dict(zip(pieces.units.tokens, pieces.forms, strict=True))
    assert (found["猫"], found["ab"], found["<0x41>"]) == ("猫", "ab", "" if by_bytes else "<0x41>")


def test_whole_texts_need_a_teacher_and_are_named_among_the_choices():
    with pytest.raises(ConfigError, match="'teacher-text' needs a teacher"):
        WordSplitter(("en", "ja"), WHOLE, None)
    with pytest.raises(ConfigError, match="teacher, teacher-text, fugashi"):
        WordSplitter(("en", "ja"), {"ja": "mecab"}, None)
