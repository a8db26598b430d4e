"""Forms of units: words as texts write them, counted as a plain loop over places would."""

from __future__ import annotations

import re
from collections import Counter, defaultdict

import pytest

import xswe
from xswe.text import forms as counting
from xswe.text.borders import opens_sentence, splits_word, whole_words
from xswe.text.folding import japanese_characters
from xswe.text.forms import FormCounter, count_forms
from xswe.text.scripts import in_script
from xswe.text.stopwords import has_particle
from xswe.text.units import AS_LOOKED_UP
from xswe.text.words import WordSplitter, WordUnits

LANGUAGES = ("en", "de", "zh", "ja")


@pytest.fixture(scope="module")
def units():
    return xswe.load("mini").units


def written(units, texts, language="en"):
    """Forms by what is looked up, without its mark."""
    tokens = [token.removeprefix("▁") for token in units.tokens]
    found = zip(tokens, count_forms(units, texts, language), strict=True)
    return {token: token if form == AS_LOOKED_UP else form for token, form in found if form}


def test_forms_within_sentences_rank_first_then_the_commoner_then_the_later_in_the_alphabet():
    counted = counting.Forms()
    for form, within, times in (
        ("A", False, 9),
        ("a", True, 2),
        ("A", True, 1),
        ("b", True, 2),
        ("b", False, 1),
        ("c", True, 2),
    ):
        counted.add("x", form, within, times)
    counted.add("x", "c", True)
    counted.add("y", "d", False)
    counted.add("z", "e", True)
    assert counted.ranked({"x", "y"}) == {"x": ["c", "b", "a", "A"], "y": ["d"]}


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        ("between us", "between"),
        ("mp3", "mp3"),
        ("プリンターの", "プリンター"),
        ("ﾌﾟﾘﾝﾀｰの", "ﾌﾟﾘﾝﾀｰ"),
        ("人々が", "人々"),
        ("じゃない", "じゃ"),
        ("Webサイト", "Web"),
        ("Webサイト", "サイト"),
        ("車を", "車"),
        ("ジョン・スミス", "スミス"),
    ],
)
def test_borders_of_words(text, inside):
    start = text.index(inside)
    end = start + len(inside)
    assert not splits_word(text, start)
    assert not splits_word(text, end)
    assert all(splits_word(text, place) for place in range(start + 1, end) if inside not in ("人々", "じゃ"))
    assert whole_words(text, start, end) == (start, end)
    if len(inside) > 2:
        assert whole_words(text, start + 1, end - 1) == (start, end)


def test_words_that_open_a_sentence():
    text = 'The cat. "Then a Dog (Rex) came\nHome'
    found = [word.group() for word in re.finditer(r"\w+", text) if opens_sentence(text, word.start())]
    assert found == ["The", "Then", "Rex", "Home"]


def test_case_is_that_within_sentences(units):
    english = written(units, ["Now I know that.", "He is late now.", "Yet I saw Tom.", "Yet Tom left."])
    assert english["now"] == "now"
    assert (english["i"], english["tom"], english["he"]) == ("I", "Tom", "He")  # no other place tells of he
    german = written(units, ["Das Haus ist alt.", "In dem Haus wohnt das Kind."], "de")
    assert (german["haus"], german["das"], german["kind"]) == ("Haus", "das", "Kind")


def test_parts_of_words_are_no_words(units):
    assert units.tokens[units.bags(["betwe"]).ids[0]] == "▁betwe"
    assert "betwe" not in written(units, ["between you and me"] * 5)
    assert "ライバー" not in written(units, ["ドライバーを使う", "プリンターのドライバー"], "ja")
    often, once = ["between us"] * 200, ["betwe us"]
    assert "betwe" not in written(units, often + once)  # spelt like a word now and then
    assert written(units, ["betwe us"] * 20 + ["between us"])["betwe"] == "betwe"


def test_each_language_has_its_own_characters(units):
    texts = ["時間がない", "複雑な制度", "皇后と午後"]
    assert written(units, texts, "ja").items() >= {("时间", "時間"), ("午后", "午後"), ("皇后", "皇后")}
    assert written(units, ["時間", "时间", "時間很長"], "zh")["时间"] == "时间"
    assert written(units, ["時間很長"], "zh")["时间"] == "時間"  # where nobody writes it otherwise
    assert not written(units, ["先生は"] * 3, "ja")


def naive(units, texts, language):
    """The same as a loop over all places of all texts."""
    whole, met = defaultdict(Counter), Counter()
    within = defaultdict(Counter)
    located = units.locate(texts)
    bounds = located.bags.offsets
    for row, text in enumerate(texts):
        for k in range(bounds[row], bounds[row + 1]):
            unit, a, b = int(located.bags.ids[k]), int(located.starts[k]), int(located.ends[k])
            met[unit] += 1
            if not splits_word(text, a) and not splits_word(text, b):
                whole[unit][text[a:b]] += 1
                within[unit][text[a:b]] += not opens_sentence(text, a)
    out = []
    for unit, token in enumerate(units.tokens):
        token = token.removeprefix("▁")
        ranked = sorted(whole[unit], key=lambda form: (within[unit][form], whole[unit][form], form), reverse=True)
        ranked = [token] if language == "zh" and token in ranked else ranked
        ranked = [form for form in ranked if form.isalpha() and in_script(form, language)]
        form = ranked[0] if ranked and whole[unit].total() > 0.02 * met[unit] else ""
        out.append("" if language == "ja" and has_particle(form) else AS_LOOKED_UP if form and form == token else form)
    return out


@pytest.mark.parametrize("language", LANGUAGES)
def test_counting_is_a_loop_over_places(units, sample, language, monkeypatch):
    texts = [*sample[language][:200], "", "ａ Ｂ", "e\u0301a", "x\ny", "𠮷野家", "x now y (Now) y (Now)"]
    expected = naive(units, texts, language)
    assert list(count_forms(units, texts, language)) == expected
    monkeypatch.setattr(counting, "BLOCK", 100)
    assert list(count_forms(units, texts, language, threads=3)) == expected
    counter = FormCounter(units, language)
    for text in texts:
        counter.add([text])
        counter._add_up()
    assert list(counting.commonest_forms([counter])) == expected


def test_of_many_texts_every_other_block_is_read(units, monkeypatch):
    monkeypatch.setattr(counting, "BLOCK", 2)
    texts = ["Now", "x", "NOW", "NOW", "x"]
    for most, form in ((5, "NOW"), (4, "Now")):  # then the second block is left out
        monkeypatch.setattr(counting, "_SAMPLE_SIZE", most)
        assert written(units, texts)["now"] == form


@pytest.mark.parametrize(("size", "found"), [(100, True), (101, False)])
def test_a_form_has_a_hundred_characters_at_most(size, found):
    word = "x" * size
    units = WordUnits([word], WordSplitter(("en",), {}, None), None)
    assert list(count_forms(units, [word], "en")) == ["=" if found else ""]


@pytest.mark.parametrize(("parts", "found"), [(48, True), (49, False)])
def test_a_unit_is_a_word_in_more_than_a_fiftieth_of_its_places(units, parts, found):
    assert ("betwe" in written(units, ["between us"] * parts + ["betwe us"])) == found


def test_any_text_is_counted(units):
    assert not any(count_forms(units, [], "ja"))
    assert not any(count_forms(units, ["", " ", "。", "\ud800"], "ja"))
    assert len(count_forms(units, ["x" * 100_000], "en")) == len(units)


def test_forms_of_a_vocabulary_of_words(units):
    splitter = WordSplitter(("en", "de"), {}, None, lowercase=True)
    words = WordUnits(["haus", "gesamt", "der", "a"], splitter, units.tokenizer)
    texts = ["Der Gesamtbetrag", "in dem Haus der Gesamtschule"]
    assert list(words.locate(texts).bags.ids).count(1) in (0, 2)  # what stands for an unknown word
    assert list(count_forms(words, texts, "de")) == ["Haus", "", "=", ""]


def test_japanese_characters_of_what_is_folded(units):
    fold = units.tokenizer.normalizer.normalize_str
    table = japanese_characters(fold)
    for folded, character in table.items():
        assert fold(character) == folded
        character.encode("euc_jis_2004")
    words = ["図書館", "列車", "期間", "と一緒に", "情報", "顧客", "銀行", "雲", "葉", "機械", "個人", "復活", "時間", "髪"]
    assert any(fold(word) != word for word in words)
    assert [fold(word).translate(str.maketrans(table)) for word in words] == words
    unfolded = japanese_characters(str)  # where nothing is folded all stay
    assert all(folded == character for folded, character in unfolded.items())
