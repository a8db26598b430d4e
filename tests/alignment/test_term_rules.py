"""What may be a term, which part of speech it is, and which terms say no more than others."""

from __future__ import annotations

import pytest

from xswe.alignment.terms import (
    BilingualTerm,
    _class_at,
    _is_cut,
    _is_numbered,
    _is_verb_stem,
    _well_formed,
    _without_parts,
)

TERMS = {
    "en": [
        "oil",
        "heat pump",
        "Bank of England",
        "New York",
        "USB",
        "X-ray",
        "rate of interest for loans",
    ],
    "de": ["Tee", "Uhr", "Wärmepumpe", "Bank von England", "kalter Krieg", "warten", "USB", "Tag der Arbeit"],
    "zh": ["水泵", "银行", "A股"],
    "ja": ["銀行", "ポンプ", "水", "熱", "取り消し", "暗号化"],
}
NO_TERMS = {
    "en": [
        "of",
        "ox",
        "the bank",
        "bank of",
        "12",
        "a, b",
        "heat (pump)",
        "heat - pump",
        "pump-",
        "new bank",
        "my pump",
        "two pumps",
    ],
    "de": ["die Bank", "Bank der", "enthält Details", "zeigt das Ergebnis", "kalter krieg", "wir warten", "war"],
    "zh": ["水", "银行，", "12"],
    "ja": ["ある", "の銀行", "銀行の", "銀行を見る", "銀行または", "食べている", "12月", "3月号", "ア"],
}
NO_TERMS["en"] += ["bank and pump", "next bank", "several", "something", "heat is pump"]


@pytest.mark.parametrize(
    ("language", "text", "holds"),
    [
        *((code, text, True) for code, texts in TERMS.items() for text in texts),
        *((code, text, False) for code, texts in NO_TERMS.items() for text in texts),
    ],
)
def test_what_may_be_a_term(language, text, holds):
    assert _well_formed(text, language) == holds


CLASSES = [
    ("en", "We can *print* it", "verb"),
    ("en", "to *print*", "verb"),
    ("en", "to *Print*", ""),
    ("en", "not *really*", ""),
    ("en", "to *apply* it", "verb"),
    ("en", "a *pump* is", "noun"),
    ("en", "the *pump*", "noun"),
    ("en", "the *heat* pump", ""),
    ("en", "a very *cold* day", "adjective"),
    ("en", "red *pump*", ""),
    ("de", "Die *Pumpe* läuft", "noun"),
    ("de", "*Pumpe* läuft", ""),
    ("de", "Wir wollen *warten*", "verb"),
    ("de", "einen *alten* Baum", ""),
    ("de", "es ist *gestern* so", ""),
    ("de", "zu *wechseln*, sagt", "verb"),
    ("de", "sehr *kalt* heute", ""),
    ("ja", "とても*高い*", "adjective"),
    ("ja", "*食べる*と", "verb"),
    ("ja", "*ポンプ*を", "noun"),
    ("ja", "*銀行*を", ""),
    ("zh", "我的*银行*", ""),
]


@pytest.mark.parametrize(("language", "marked", "found"), CLASSES)
def test_neighbours_and_endings_show_the_part_of_speech(language, marked, found):
    before, term, _ = marked.split("*")
    assert _class_at(marked.replace("*", ""), len(before), len(before) + len(term), language) == found


@pytest.mark.parametrize(
    ("marked", "holds"),
    [
        ("暗*号*を", True),
        ("*許*す", True),
        ("この*水*を", False),
        ("*水*", False),
        ("この*水*中", True),
        ("暗*号化*", False),
    ],
)
def test_a_character_of_a_longer_word_is_no_word(marked, holds):
    before, term, _ = marked.split("*")
    assert _is_cut(marked.replace("*", ""), len(before), len(before) + len(term)) == holds


def test_a_span_that_ends_within_an_inflection_is_no_word():
    assert _is_verb_stem("欠けている", 2, "ja")
    assert not _is_verb_stem("欠けている", 1, "ja")
    assert not _is_verb_stem("欠けている", 5, "ja")
    assert not _is_verb_stem("欠けている", 2, "zh")


def test_numbers_beside_small_letters_count_places():
    assert _is_numbered("step 4")
    assert not _is_numbered("Windows 10")
    assert not _is_numbered("heat pump")


def term(source, target, times):
    return BilingualTerm(source, target, *[times if name == "times" else 0.0 for name in BilingualTerm._fields[2:]])


def left(*given):
    return [(one.source, one.target, one.times) for one in _without_parts([term(*one) for one in given])]


def test_terms_that_say_no_more_than_others_are_left_out():
    whole, part = ("heat pump", "Wärmepumpe", 9), ("pump", "pumpe", 10)
    assert left(whole, part) == [whole]
    assert left(whole, ("pump", "pumpe", 90)) == [whole, ("pump", "pumpe", 90)]  # found elsewhere as well
    assert left(whole, ("pump", "Rad", 9)) == [whole, ("pump", "Rad", 9)]
    usual, compound = ("insurance", "Versicherung", 10), ("insurance", "Krankenversicherung", 3)
    assert left(usual, compound) == [usual]
    assert left(("Insurance", "Versicherung", 2), compound)[-1] == compound  # not usual
    assert left(("insurance", "Kranken", 10), ("insurance", "Krankenversicherung", 3)) == [("insurance", "Kranken", 10)]
    assert len(left(("policy", "Versicherung", 10), compound)) == 2
