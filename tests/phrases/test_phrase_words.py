"""Words and their places, for every kind of units."""

from __future__ import annotations

import unicodedata

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers

from xswe.model.static import StaticModel
from xswe.phrases.find import find_phrases
from xswe.phrases.search import SpanConfig, StaticWords, TeacherWords
from xswe.text.compiled.locate import DROPPED, PART, SILENT, UNKNOWN, WHOLE
from xswe.text.scripts import is_punctuation
from xswe.text.spans import join_cuts, make_cutter, words_at
from xswe.text.subwords import SubwordUnits
from xswe.text.units import trim_span
from xswe.text.words import WordSplitter, WordUnits

ALL = ("en", "de", "zh", "ja")


@pytest.fixture(scope="module")
def subwords(tokenizer_json):
    return SubwordUnits(Tokenizer.from_str(tokenizer_json), "subwords", ALL)


@pytest.fixture(scope="module")
def cutter(subwords):
    return make_cutter(subwords)


def shown(cutter, text):
    return [text[a:b] for a, b in cutter.places([text])[0]]


def test_words_of_spaced_scripts_are_whole_and_punctuation_is_none(cutter):
    text = "  “Unbelievable” Zweitausendfüßler, said(he): ﬁfty-Two Ｃａｔｓ!"
    assert shown(cutter, text) == ["Unbelievable", "Zweitausendfüßler", "said", "he", "ﬁfty", "Two", "Ｃａｔｓ"]


def test_han_and_kana_are_cut_at_the_units(cutter, subwords):
    text = "「東京へ行った。」Wi-Fi は便利です"
    words = shown(cutter, text)
    assert "".join(words) == "東京へ行ったWiFiは便利です"
    assert {"Wi", "Fi"} <= set(words)
    located = subwords.locate([text])
    units = [text[a:b] for a, b in zip(located.starts, located.ends, strict=True)]
    assert set(words) - {"Wi", "Fi"} <= set(units)


def test_an_unknown_character_within_a_word_stays_in_it(cutter):
    assert shown(cutter, "a cat\u0e01s b\U0001f9ff") == ["a", "cat\u0e01s", "b\U0001f9ff"]


@settings(max_examples=25)
@given(texts=st.lists(st.text(max_size=40), min_size=1, max_size=4))
def test_any_text_has_as_many_places_as_words_and_its_rows_are_its_units(cutter, subwords, texts):
    cut = cutter.cut(texts)
    assert cut.words[-1] == len(cut.ids)
    for i, text in enumerate(texts):
        places = cutter.places([text])[0]
        assert len(places) == cut.texts[i + 1] - cut.texts[i]
        assert (places[:, 0] <= places[:, 1]).all()
        assert (np.diff(places[:, 0]) >= 0).all()
        tokens = np.array(subwords.tokens, object)
        kept = [t for t in tokens[subwords.bags([text]).ids] if any(c.isalnum() for c in t)]
        assert [t for t in tokens[cut.text(i).ids] if any(c.isalnum() for c in t)] == kept


def plain_places(units, kinds, text):
    """Place the words of one well-formed text, piece by piece."""
    encoding = units.tokenizer.encode(text, add_special_tokens=False)
    out, inside = [], False
    for piece, place in zip(encoding.ids, encoding.offsets, strict=True):
        start, end = trim_span(text, *place)
        if (kind := kinds[piece] % SILENT) == DROPPED:
            inside = False
        elif kind == UNKNOWN:
            if inside and start <= out[-1][1] < end and not is_punctuation(text[start]):
                out[-1][1] = end
        elif kind == PART and inside:
            out[-1] = [min(out[-1][0], start), max(out[-1][1], end)]
        else:
            inside = kind != WHOLE
            out.append([start, end])
    return out


@settings(max_examples=40)
@given(
    texts=st.lists(st.text("ab. \u0301\u3000東は\U0001f9ff\u0e01ﬁ\u200b", max_size=30) | st.text(max_size=30), max_size=5)
)
def test_the_compiled_places_are_those_of_the_plain_rule(cutter, subwords, texts):
    well_formed = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
    plain = [plain_places(subwords, cutter._kinds, text) for text in well_formed]
    assert [places.tolist() for places in cutter.places(texts)] == plain


def test_cuts_join_and_are_taken_apart(cutter, sample):
    texts = [*sample["en"][:5], "", *sample["ja"][:5]]
    whole = cutter.cut(texts)
    parts = join_cuts([cutter.cut(texts[:4]), cutter.cut(texts[4:])])
    for name in ("ids", "words", "texts"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(parts, name))
    taken = whole.take(np.array([7, 5, 7, 0]))
    for k, row in enumerate((7, 5, 7, 0)):
        np.testing.assert_array_equal(taken.text(k).ids, whole.text(row).ids)
        np.testing.assert_array_equal(taken.text(k).words, whole.text(row).words)
    np.testing.assert_array_equal(whole.bags.offsets, whole.words[whole.texts])


def test_word_units_are_their_own_words(tokenizer):
    units = WordUnits(["cat", "the", "猫", "で"], WordSplitter(("en", "ja"), {"ja": "teacher"}, tokenizer), None)
    cutter = make_cutter(units)
    text = "The (unseen) cat、猫"
    assert shown(cutter, text) == ["The", "cat", "猫"]
    cut = cutter.cut([text, "", "cat"])
    assert (cut.ids.tolist(), cut.texts.tolist()) == ([1, 0, 2, 0], [0, 3, 3, 4])
    assert cut.words.tolist() == [0, 1, 2, 3, 4]


def test_pieces_of_other_tokenizers_are_grouped_by_the_text():
    pieces = ["un", "##able", "cat", ",", "x", "猫", "犬", "[UNK]", "the"]
    model = models.WordPiece({piece: i for i, piece in enumerate(pieces)}, unk_token="[UNK]")
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    cutter = make_cutter(SubwordUnits(tokenizer, "teacher", ("en",)))
    text = "unable cat,cat the"
    assert shown(cutter, text) == ["unable", "cat", "cat", "the"]
    assert [len(cutter.cut([text]).ids), *np.diff(cutter.cut([text]).words)] == [5, 2, 1, 1, 1]


def test_tokens_that_hold_marks_or_both_scripts():
    assert words_at("(cat) 猫dog", np.array([0, 4, 6, 7]), np.array([4, 5, 7, 10])) == [
        (0, 1, 1, 4),
        (2, 3, 6, 7),
        (3, 4, 7, 10),
    ]


def test_marks_stay_with_their_letters():
    text = unicodedata.normalize("NFD", "résumé が。")
    assert text == "re\u0301sume\u0301 か\u3099。"
    tokens = np.array([0, 2, 3, 7, 9, 10, 11]), np.array([2, 3, 7, 8, 10, 11, 12])
    assert words_at(text, *tokens) == [(0, 4, 0, 8), (4, 6, 9, 11)]
    bare = np.array([0, 9]), np.array([7, 10])  # a tokenizer that drops marks
    assert words_at(text, *bare) == [(0, 1, 0, 8), (1, 2, 9, 11)]


def test_a_translation_is_found_inside_running_text(tokenizer_json, sample):
    """Where all words of a sentence and of its translation have one vector, a span of the translation is the hit."""
    units = SubwordUnits(Tokenizer.from_str(tokenizer_json), "subwords", ALL)
    matrix = np.random.default_rng(0).normal(size=(len(units.tokens), 32)).astype(np.float32)
    source = StaticWords(StaticModel(units, matrix))
    phrase = sample["en"][3]
    german = sample["de"][3]
    _, cut = source.cut([phrase, german])
    matrix[cut.ids] = matrix[0]
    context = f"{sample['ja'][90]}„{german}“{sample['ja'][91]}"
    source = StaticWords(StaticModel(units, matrix))
    (hits,) = find_phrases(source, [phrase], [sample["ja"][80], context], SpanConfig(k=1))
    place = hits[0].places[0]
    assert place.passage == 1
    assert place.text in german
    assert hits[0].score == pytest.approx(1.0, abs=1e-5)


def test_a_teachers_states_go_through_the_same_search(fake_teacher):
    source = TeacherWords(fake_teacher)
    matrix, cut = source.cut(["ab, cd", "", "e"])
    assert cut.texts.tolist() == [0, 2, 2, 3]
    np.testing.assert_array_equal(matrix[cut.ids[cut.words[1] : cut.words[2]]], [[4, 6, 1], [5, 6, 1]])
    encoded = len(fake_teacher.encoded)
    assert [places.tolist() for places in source.places(["", "ab, cd"])] == [[], [[0, 2], [4, 6]]]
    assert len(fake_teacher.encoded) == encoded  # of the last texts the places are known
    assert [places.tolist() for places in source.places(["fg", "e", "h i"])] == [[[0, 2]], [[0, 1]], [[0, 1], [2, 3]]]
    assert fake_teacher.encoded[encoded:] == ["fg", "h i"]
    np.testing.assert_allclose(source.queries(["e", ""]), [[0, 2**-0.5, 2**-0.5], [0, 0, 0]], atol=1e-6)
    (hits,) = find_phrases(source, ["cd"], ["ab, cd", "abcde fgh"], SpanConfig(k=1))
    assert hits[0].score <= 1.0 + 1e-6
