"""Numbers that two languages write differently are the same, and others are not."""

from __future__ import annotations

import random

import numpy as np
import pytest

import xswe
from xswe.io.ragged import Texts
from xswe.mining.hard_rules import FilterConfig
from xswe.text.compiled import numbers as compiled
from xswe.text.numbers import (
    _ERAS,
    _HAN_DIGITS,
    _HAN_UNITS,
    _SIZES,
    _compared,
    _comparison,
    _german_stems,
    _words,
    compared_numbers,
    numbers_in_words,
    same_numbers,
)

SAME = [
    ("We open at 7 a.m.", "Wir öffnen um sieben."),
    ("We open at 7 p.m.", "Wir öffnen um 19 Uhr."),
    ("7:30 p.m.", "19.30 Uhr"),
    ("午後3時", "3 p.m."),
    ("午後3時", "15:00"),
    ("七时", "7 a.m."),
    ("300,000 people", "30万人"),
    ("1.5 million", "150万"),
    ("3 million", "3 Millionen"),
    ("May 2023", "2023年5月"),
    ("the 7th day", "der siebte Tag"),
    ("a 7-year-old boy", "ein siebenjähriger Junge"),
    ("twenty-one", "21"),
    ("einundzwanzig", "21"),
    ("三百二十人", "320 people"),
    ("12 men", "zwölf Männer"),
    ("007", "7"),
    ("3.5 %", "3,5 %"),
    ("Aug. 9, 2014", "2014年8月9日"),
    ("from 5.30pm on", "ab 17.30 Uhr"),
    ("the 1940s", "上世纪40年代"),
    ("the 1970s", "20世纪70年代"),
    ("the 1990s", "die 90er Jahre"),
    ("$200k", "200.000 $"),
    ("£211bn", "2110亿英镑"),
    ("3 trillion yen", "3兆円"),
    ("about 80 %", "约占八成"),
    ("60 percent of them", "その6割"),
    ("three decades", "30年"),
    ("over a century", "100多年"),
    ("in 1911", "明治44年（1911年）に"),
    ("in 1994", "1994年（平成6年）"),
    ("in 1601", "慶長6年（1601年）"),
    ("in 1988", "昭和63年"),
    ("twice a day", "1日2回"),
    ("after a couple of weeks", "2週間後"),
    ("a second time", "2回目"),
    ("four teenagers", "10代の4人"),
    ("in her forties", "40代の女性"),
    ("a quarter of it", "その4分の1"),
    ("17,631 of 634,000", "63万4千のうち１万７千６３１"),
    ("$540 million", "5億4千万ドル"),
    ("$126.5 million", "1億2,650万ドル"),
    ("at 1.30pm", "午後1時半"),
    ("10 million", "1千万"),
    ("Yonedanji KATSURA IV", "4代目桂米団治"),
    ("a thousand yen", "1000円"),
    ("at 2:30", "um halb drei"),
    ("at 12:30", "um halb eins"),
    ("9" * 5000, "9" * 5000 + "."),
    ("the 1990s", "20 世纪 90 年代"),
    ("479 million", "約 4 億 7,900 万"),
    ("20 million dollars", "2 千万美元"),
    ("about 80 %", "约占 8 成"),
    ("at 2:30", "2 時 半"),
    ("the late 1800s", "Ende des 19. Jahrhunderts"),
    ("the early 1900s", "20世纪早期"),
    ("the 1700s", "1700年代"),
    ("two thirds of them", "その3分の2"),
    ("three quarters, four fifths", "drei Viertel, vier Fünftel"),
    ("the tenths of a second", "秒の 1/10"),
    ("half of the members, one half", "会員の2分の1、2分の1"),
    ("die eine Hälfte", "その1/2"),
    ("x squared, y cubed", "x の 2 乗、y の 3 乗"),
]
OTHER = [
    ("page 12", "Seite 14"),
    ("at 7 p.m.", "um 18 Uhr"),
    ("3 million", "30万"),
    ("May 2023", "2023年6月"),
    ("It costs 5 dollars.", "Es kostet Geld."),
    ("7 men, 12 women", "sieben Männer, 13 Frauen"),
    ("none", "1"),
    ("9" * 50_000, "8" * 50_000),  # in a time that grows with the length alone
    ("the 1940s", "20世纪50年代"),
    ("in 1994", "1994年（平成16年）"),
    ("in 1988", "昭和62年"),
    ("about 80 %", "约占七成"),
    ("bus 7", "Linie 19"),  # nobody speaks of a clock
    ("5 times a day", "1日6回"),
    ("17,631", "1万7千632"),
    ("after a week", "2週間後"),
    ("at nine", "10点"),
    ("six thousand yen", "7000円"),
    ("the late 1800s", "Ende des 18. Jahrhunderts"),
    ("the 1800s", "1700年代"),
    ("two thirds of them", "その4分の2"),
    ("the 1990s", "20 世纪 80 年代"),
]


@pytest.mark.parametrize(("pair", "same"), [*((pair, True) for pair in SAME), *((pair, False) for pair in OTHER)])
def test_numbers(pair, same):
    assert same_numbers(*pair) == same
    assert same_numbers(*reversed(pair)) == same


@pytest.mark.parametrize(
    ("pair", "result"),
    [
        (("page 12", "Seite 14"), compiled.OTHER),
        (("at nine", "um 10 Uhr"), compiled.OTHER),
        (("at nine", "10点"), compiled.OTHER),
        (("九点", "at 10"), compiled.OTHER),
        (("a dog", "5匹の犬"), compiled.OTHER),
        (("three dogs and 2 cats", "5匹の犬と2匹の猫"), compiled.OTHER),
        (("5 dollars", "Geld"), compiled.MORE),
        (("It costs two times 5 dollars.", "Es kostet zweimal so viel."), compiled.MORE),
        (("2 times 5 dollars", "zwei Mal so viel"), compiled.MORE),
        (("$3 million for 5 men", "drei Millionen Männer"), compiled.MORE),
        (("9" * 20, "viel"), compiled.MORE),
        (("9" * 20, "zwei"), compiled.OTHER),
        (("at nine", "um 9 Uhr"), compiled.SAME),
    ],
)
def test_numbers_of_one_side_alone_differ_from_others(pair, result):
    """A number in words beside another one in digits is another one, not one less."""
    for source, target in (pair, pair[::-1]):
        assert _comparison(source, target) == result
        assert compared_numbers(Texts.of([source]), Texts.of([target])).tolist() == [result]


def test_numbers_in_words():
    assert numbers_in_words("Am ersten Mai um halb neun") == {1, 5, 30, 9, 8}  # half past eight
    assert numbers_in_words("二〇二四年, 十二万三千") == {2024, 123000}
    twelve = ("noon", "midnight", "Mittag", "Mitternacht", "dozen", "Dutzend", "December", "Dezember", "zwölf", "十二")
    assert [numbers_in_words(word) for word in twelve] == [{12}] * len(twelve)
    two = ("both", "twice", "beide", "zwo", "February", "Februar", "二")
    assert [numbers_in_words(word) for word in two] == [{2}] * len(two)
    assert numbers_in_words("Another day, another teenager") == {1, 10}
    assert not numbers_in_words("Cats sleep.")


def test_the_filter_takes_a_number_in_words_for_no_fault():
    pairs = [
        ("The office opens at 7 a.m.", "Das Büro öffnet um sieben Uhr."),
        ("The train leaves at 8 p.m.", "Der Zug fährt um 20 Uhr ab."),
        ("Read page 12 of the book.", "Lesen Sie Seite 14 des Buches."),
    ]
    found = xswe.filter(xswe.load("mini"), pairs, numbers=True, threshold=None)
    assert found.kept.tolist() == [True, True, False]
    assert found.counts["numbers"] == 1


def test_mining_and_filtering_know_the_same_numbers():
    """A number in words is no fault of a mined pair either, and another number is."""
    source = ["We open at 7 a.m.", "The book has 12 pages and a picture."]
    target = ["Wir öffnen um sieben Uhr morgens.", "Das Buch hat 14 Seiten und ein Bild."]
    found = xswe.mine(xswe.load("mini"), source, target, filters=FilterConfig(numbers=True), threshold=None, threads=1)
    assert [(pair.source, pair.target) for pair in found] == [(source[0], target[0])]


def _generated(seed, pairs):
    """Texts of both sides, of pieces of numbers in four languages and of what stands beside them, which often match."""
    words = sorted({*_words(), *_german_stems(), *_SIZES, *_HAN_DIGITS, *_HAN_UNITS, *_ERAS, *"年月日元世纪紀代成割引人の"})
    numbers, years, rest = map(
        str.split,
        (
            "0 7 12 19 90 007 0,050 100 1,000 1.5 1911 1994 44 6 ２０ ² 999999999",
            "平成6年 明治44年（1911年 1994年（平成6年 元年(1990年 90年代 20世纪70年代 の40er 6割 7成 "
            "3時半 2点半 2 時 半 20 世紀 90 年代 1800s 1800年代 1700er s 4 億 7,900 万 8 成 "
            "1万7千 5億4千万 1,200万5百 63万4千3 1千万",
            "fach maliges stes ten tägige ( ) ） , . - : ’ ' … p.m. Uhr é decades houses Häuser か がつ 日本 😀 ẞ K",
        ),
    )
    rest += [" "] * 20
    odd = ["m²", "㎡", "İ", "ı", "𝟕", "e\u0301", "か\u3099", "٣", "一" * 17, "9" * 19]
    draw = random.Random(seed)

    def text():
        kinds = draw.choices((words, numbers, years, rest, odd), (8, 8, 1, 10, 0.2), k=draw.randint(1, 7))
        return "".join(draw.choice(kind).upper() if draw.random() < 0.1 else draw.choice(kind) for kind in kinds)

    for _ in range(pairs):
        one, other = text(), text()
        yield draw.choice(((one, other), (one + " " + other, other + one), (one, f"{one} {draw.choice(words)}")))


def test_compiled_code_finds_the_same_numbers_as_python():
    given = [*SAME, *OTHER]
    pairs = [*given, *((b, a) for a, b in given), *_generated(1, 3000)]
    source, target = (Texts.of([pair[side] for pair in pairs]) for side in range(2))
    expected = [_comparison(*pair) for pair in pairs]
    assert compared_numbers(source, target).tolist() == expected
    assert np.bincount(_compared(source, target), minlength=5).min() > 50  # compiled code alone decides most, not all
