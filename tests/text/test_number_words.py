"""Every word for a number means that number."""

from __future__ import annotations

import pytest

from xswe.text.numbers import numbers_in_words, same_numbers

# What a word for a size adds to the digits before it.
ZEROS = {
    2: "hundred hundert 百",
    3: "thousand tausend 千 k",
    4: "万 萬",
    6: "million millions millionen mio m",
    8: "亿 億",
    9: "billion billions milliarde milliarden mrd bn",
    12: "trillion trillions tn 兆",
}
MONTHS = """
January Januar Jänner Jan, February Februar Feb, March März Mar Mrz, April Apr, May Mai, June Juni Jun, July Juli Jul,
August Aug, September Sep Sept, October Oktober Oct Okt, November Nov, December Dezember Dec Dez
"""
ONES = """
one eins, two zwei, three drei, four vier, five fünf, six sechs, seven sieben, eight acht, nine neun, ten zehn,
eleven elf, twelve zwölf, thirteen dreizehn, fourteen vierzehn, fifteen fünfzehn, sixteen sechzehn, seventeen siebzehn,
eighteen achtzehn, nineteen neunzehn
"""
TENS = """
twenty zwanzig, thirty dreißig, forty vierzig, fifty fünfzig, sixty sechzig, seventy siebzig, eighty achtzig,
ninety neunzig
"""
YEARS = {"明治": (10, 1877), "大正": (5, 1916), "昭和": (63, 1988), "平成": (3, 1991), "令和": (2, 2020)}


def test_a_word_for_a_size_is_as_many_zeros():
    for zeros, words in ZEROS.items():
        for word in words.split():
            assert same_numbers(f"about 7 {word} of them", f"etwa 7{'0' * zeros}."), word
            assert not same_numbers(f"about 7 {word} of them", f"etwa 7{'0' * zeros}0."), word
            assert same_numbers(f"7.5 {word}", f"75{'0' * (zeros - 1)}"), word


def test_every_number_up_to_a_hundred_is_known_in_words():
    ones = [words.split() for words in ONES.split(",")]
    for value, words in enumerate(ones, 1):
        assert [numbers_in_words(word) for word in words] == [{value}] * 2
    assert numbers_in_words("zero null hundred hundert century Jahrhunderte") == {0, 100}
    for k, words in enumerate(TENS.split(","), 2):
        english, german = words.split()
        forms = english, german, f"{english[:-1]}ieth", f"{german}ste", f"{german}jährig"
        assert [numbers_in_words(word) for word in forms] == [{10 * k}] * 5
        for value, (one, eins) in enumerate(ones[:9], 1):
            assert 10 * k + value in numbers_in_words(f"{english}-{one}")
            ein = "ein" if value == 1 else eins
            assert numbers_in_words(f"{ein}und{german}") == numbers_in_words(f"{ein}und{german}ster") == {10 * k + value}
    ordinals = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth"
    assert [numbers_in_words(word) for word in ordinals.split()] == [{value} for value in range(1, 14)]
    ordinals = "ersten zweiten dritten vierten fünften sechsten siebten achten neunten zehnten elften zwölften dreizehnten"
    assert [numbers_in_words(word) for word in ordinals.split()] == [{value} for value in range(1, 14)]
    assert numbers_in_words("once einmal single eine einen einem einer eines ein") == {1}
    assert numbers_in_words("two decades") == {2, 10, 20}
    assert numbers_in_words("half past, halb") == {30}


def test_counted_sizes_are_their_product():
    english, german = ([words.split()[side] for words in (ONES + "," + TENS).split(",")] for side in (0, 1))
    values = [*range(1, 20), *range(20, 100, 10)]
    for value, one, eins in zip(values, ["a", *english[1:]], ["ein", *german[1:]], strict=True):
        for size, sizes in ((100, "hundred hundert"), (1000, "thousand tausend"), (10**6, "million millionen")):
            word, other = sizes.split()
            assert value * size in numbers_in_words(f"{one} {word} of them"), (one, word)
            assert value * size in numbers_in_words(f"{eins} {other}"), (eins, other)
            assert numbers_in_words(eins + other) == {value * size}


def test_every_month_is_its_number():
    for number, words in enumerate(MONTHS.split(","), 1):
        assert [numbers_in_words(word) for word in words.split()] == [{number}] * len(words.split())


def test_every_era_begins_in_its_year():
    for era, (year, common) in YEARS.items():
        assert same_numbers(f"in {common}", f"{era}{year}年")
        assert not same_numbers(f"in {common + 1}", f"{era}{year}年")
        assert not same_numbers(f"in {common - 1}", f"{era}{year}年")


def test_numerals_in_han_have_their_value():
    assert [numbers_in_words(digit) for digit in "〇一二三四五六七八九零两兩"] == [{k} for k in (*range(10), 0, 2, 2)]
    values = {"十": 10, "二十": 20, "十五": 15, "一百零三": 103, "三千": 3000, "两万": 20_000, "四萬五千": 45_000}
    values |= {"万": 10_000, "一亿": 10**8, "三億二千万": 320_000_000, "一千五百": 1500, "百": 100}
    for text, value in values.items():
        assert numbers_in_words(text) == {value}
    assert not numbers_in_words("一" * 21)


@pytest.mark.parametrize(
    ("pair", "same"),
    [
        (("at 12 p.m.", "um 0 Uhr"), False),
        (("at 12 p.m.", "um 24 Uhr"), True),
        (("at 1 p.m.", "um 25 Uhr"), False),  # no clock has it
        (("at 7 p.m. and 8 p.m.", "um 19 Uhr"), False),
        (("1.2345 thousand", "12345"), False),  # no whole number
        (("7 a.m., room 100", "7 Uhr, Raum 112"), False),
    ],
)
def test_hours_are_those_of_a_clock(pair, same):
    assert same_numbers(*pair) == same
