"""Names that come back in a bitext, and how it translates them."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

import xswe
from xswe.corpus.cards import sample_sentences
from xswe.io.ragged import Texts
from xswe.mining.features import NAMES, NOTHING, PLACES, read_character
from xswe.mining.names import NameUsage, list_parts

PEOPLE = {
    "Nakamura": "中村",
    "Johnson": "约翰逊",
    "Schneider": "施奈德",
    "Fernandez": "费尔南德斯",
    "Petrov": "彼得罗夫",
    "Rossi": "罗西",
    "Dubois": "杜布瓦",
    "Andersen": "安徒生",
    "Kowalski": "科瓦尔斯基",
    "Murphy": "墨菲",
}
SAID = [
    ("Yesterday evening {} gave a talk about the river.", "昨天晚上{}作了关于这条河的报告。"),
    ("We asked {} whether the bridge would be finished.", "我们问{}这座桥是否会完工。"),
    ("The letter that {} wrote arrived this morning.", "{}写的信今天早上到了。"),
    ("Nobody knows where {} bought the old piano.", "没有人知道{}在哪里买的旧钢琴。"),
    ("In spring {} moved into a house by the sea.", "春天{}搬进了海边的一所房子。"),
    ("My sister has known {} for twenty years.", "我姐姐认识{}已经二十年了。"),
]
PAIRS = [(a.format(name), b.format(spelt)) for (a, b), (name, spelt) in itertools.product(SAID, PEOPLE.items())]
USUAL, COUNT = (PLACES[name] for name in ("usual translation of names in the source", "pairs with the names in the source"))


def looked_up(usage, pairs, counted=False, origins=None, threads=1):
    """Return the features of names."""
    out = np.zeros((len(pairs), len(NAMES)), np.uint8)
    sides = [tuple(Texts.of([pair[side] for pair in some]) for side in (0, 1)) for some in (pairs, origins or pairs)]
    usage.write(sides[0], out, np.full(len(pairs), counted), sides[1], threads)
    return out[:, USUAL : USUAL + 4]


def test_latin_words_are_the_same_parts_in_capitals():
    spelt = Texts.of(["東京 PARIS", "東京 paris", "東京 Paris", "ÜBER 東京", "über 東京", "東京 plans"])
    listed, sizes = np.zeros(100, np.uint64), np.zeros(len(spelt), np.int64)
    list_parts(*spelt.frozen, listed, sizes)
    parts = [set(one.tolist()) for one in np.split(listed, np.cumsum(sizes))]
    assert parts[0] == parts[1] == parts[2] != parts[5]
    assert parts[3] == parts[4] != parts[0]


@pytest.mark.parametrize(
    ("character", "code"), [("！", 0x21), ("～", 0x7E), ("｟", 0xFF5F), ("\uff00", 0xFF00), ("é", 0xE9)]
)
def test_characters_of_full_width_are_read_as_ascii(character, code):
    data = np.frombuffer(character.encode(), np.uint8)
    assert read_character.py_func(data, 0) == (code, len(data))


def plain_degree(pairs, name, others, target):
    """The degree to which a target has the usual translation of a name, counted anew."""

    def parts(text):
        found = set()
        for run in "".join(one if "\u4e00" <= one <= "\u9fff" else " " for one in text).split():
            found |= set(run) | {run[place : place + 2] for place in range(len(run) - 1)}
        return found

    having, degrees = [parts(target) for source, target in others if name in source], {}
    for part in set().union(*having):
        together = sum(part in one for one in having)
        share = sum(part in parts(text) for _, text in others) / len(pairs)
        expected = len(having) * share
        degrees[part] = (together - expected - 2 * np.sqrt(expected * (1 - share))) / len(having)
    usual = sorted(degrees.values(), reverse=True)[:12][-1]
    return max([0.0, *(degree for part, degree in degrees.items() if degree >= usual and part in parts(target))]), len(
        having
    )


def test_degrees_are_those_of_counts_made_one_by_one():
    found = looked_up(NameUsage.of(PAIRS), PAIRS, counted=True)
    for row, (source, target) in enumerate(PAIRS):
        name = next(name for name in PEOPLE if name in source)
        degree, others = plain_degree(PAIRS, name, [pair for pair in PAIRS if pair != PAIRS[row]], target)
        assert found[row, 0] == pytest.approx(254 * degree, abs=1)
        assert found[row, 2] == others == len(SAID) - 1
    assert (found[:, [1, 3]] == NOTHING).all()  # no names in Chinese


def test_a_changed_name_is_less_usual_than_a_right_one():
    usage, names = NameUsage.of(PAIRS), list(PEOPLE)
    changed = []
    for place, (source, target) in enumerate(PAIRS):
        name = names[place % len(names)]
        changed.append((source.replace(name, names[(place + 3) % len(names)]), target))
    right, wrong = looked_up(usage, PAIRS, True)[:, 0], looked_up(usage, changed, True, PAIRS)[:, 0]
    assert right.min() > 120
    assert wrong.max() < 80


def test_a_pair_proves_nothing_of_its_own_name():
    once = ("At noon Oliveira closed the window.", "中午奥利维拉关上了窗户。")
    twice = ("At night Oliveira opened it.", "夜里奥利维拉打开了它。")
    more = ("Then Oliveira left.", "然后奥利维拉走了。")
    assert looked_up(NameUsage.of([*PAIRS, once]), [once], True).tolist() == [[NOTHING] * 4]
    assert looked_up(NameUsage.of([*PAIRS, once, twice]), [once], True).tolist() == [[NOTHING] * 4]
    assert looked_up(NameUsage.of([*PAIRS, once, twice, more]), [once], True)[0, 2] == 2
    assert looked_up(NameUsage.of([*PAIRS, once, twice]), [more])[0, 2] == 2  # not counted itself


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_the_least_usual_name_of_a_pair_counts(order):
    names = [["Nakamura", "Rossi"][place] for place in order]
    pair = ("Then {} and {} met in the garden.".format(*names), "然后中村和邻居在花园里见面了。")
    found = looked_up(NameUsage.of(PAIRS), [pair, (pair[0].replace("Rossi", "she"), pair[1])])
    assert found[0, 0] < 40
    assert found[1, 0] > 120


def test_what_a_changed_pair_is_made_from_proves_nothing_either():
    some = PAIRS[:: len(PEOPLE)][:3]  # three pairs with the same name
    assert looked_up(NameUsage.of([*PAIRS[1::2], *some]), [(some[0][0], "没有名字。")], True, [some[0]])[0, 2] == 2


def test_order_threads_and_exchanged_sides_change_nothing():
    mixed = random.Random(1).sample(PAIRS, len(PAIRS))
    found = looked_up(NameUsage.of(PAIRS), PAIRS * 40)
    np.testing.assert_array_equal(looked_up(NameUsage.of(mixed), PAIRS * 40, threads=2), found)
    turned = [pair[::-1] for pair in PAIRS]
    np.testing.assert_array_equal(looked_up(NameUsage.of(turned), turned * 40)[:, [1, 0, 3, 2]], found)


def test_names_that_both_sides_spell_in_latin_letters_are_not_counted():
    pairs = [(source, source.replace("the", "die")) for source, _ in PAIRS]
    assert not NameUsage.of(pairs)
    assert not NameUsage.of([])
    assert NameUsage.of(PAIRS).regular == (frozenset(PEOPLE), frozenset())


def test_a_name_in_kana_is_looked_up_in_chinese():
    kana = ["ナカムラ", "ジョンソン", "シュナイダー", "フェルナンデス", "ペトロフ"]
    kana += ["ロッシ", "デュボワ", "アンデルセン", "コヴァルスキ", "マーフィー"]
    both = list(zip(kana, PEOPLE.values(), strict=True))
    pairs = [
        (f"{one}さんは手紙を{place}通書きました。", f"{spelt}写了{place}封信。")
        for place in range(5)
        for one, spelt in both
    ]
    assert NameUsage.of(pairs).regular[0] == frozenset(kana)
    assert looked_up(NameUsage.of(pairs), pairs, True)[:, 0].min() > 100


def test_long_texts_and_other_characters_are_read_to_their_end():
    odd = [("we see " * 900 + "and 𝒳 Nakamura 👍 there", "長い" * 3000), ("", ""), ("Ask Nakamura", "")]
    found = looked_up(NameUsage.of([*PAIRS, *odd]), odd, True)
    assert found[1].tolist() == [NOTHING] * 4
    assert found[0, 0] == 0  # a name whose usual translation is not there
    assert found[2].tolist() == [NOTHING] * 4  # nothing in Chinese


@pytest.fixture(scope="module")
def mini():
    return xswe.load("mini")


@pytest.fixture(scope="module")
def bitext():
    """A bitext of which a third of the names is changed, and which pairs are."""
    sample = sample_sentences()
    other = list(dict.fromkeys(zip(sample["en"], sample["zh"], strict=True)))[:1500]
    names, pairs, changed = list(PEOPLE), [], []
    for place, (source, target) in enumerate(PAIRS):
        if place % 3 == 0:
            source = source.replace(names[place % len(names)], names[(place + 4) % len(names)])
        pairs.append((source, target))
        changed.append(place % 3 == 0)
    order = random.Random(2).sample(range(len(pairs) + len(other)), len(pairs) + len(other))
    return [(pairs + other)[row] for row in order], np.array([row < len(pairs) and changed[row] for row in order])


def test_the_filter_finds_changed_names_that_come_back(mini, bitext, tmp_path):
    pairs, changed = bitext
    found = xswe.filter(mini, pairs, languages=("en", "zh"), threads=1, explain=True)
    assert found.kept[changed].mean() <= 0.2
    assert found.kept[~changed].mean() >= 0.95
    assert "other names" in found.noise.by_kind
    row = int(np.flatnonzero(changed & ~found.kept)[0])
    assert "usual translation of names in the source" in found.unusual(row)
    (tmp_path / "a.tsv").write_text("".join(f"{source}\t{target}\n" for source, target in pairs), encoding="utf-8")
    again = xswe.filter(mini, tmp_path / "a.tsv", tmp_path / "b.tsv", languages=("en", "zh"), threads=2)
    np.testing.assert_array_equal(again.scores, found.scores)
    np.testing.assert_array_equal(again.reasons, found.reasons)
