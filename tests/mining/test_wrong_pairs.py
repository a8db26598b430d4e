"""Each kind of wrong pairs is what its name says, as large a part of a text as is said and as often on either side."""

from __future__ import annotations

import re

import numpy as np
import pytest

from xswe.mining.wrong import WrongPairs, words_of

ROWS, WORDS = 400, 20


def english(row: int) -> str:
    return " ".join(f"s{chr(0x4E00 + row)}{place}" for place in range(WORDS))


def german(row: int) -> str:
    return " ".join(f"ü{chr(0x4E00 + row)}{place}" for place in range(WORDS))


def chinese(row: int) -> str:
    return "".join(chr(0x4E00 + WORDS * row + place) for place in range(WORDS))


def made(kind, target=german, source=english, most=None, **options):
    """Wrong pairs of a kind: both sides' words, which side was changed, and the row that they are made of."""
    pairs = [(source(row), target(row)) for row in range(ROWS)]
    wrong = WrongPairs(pairs, np.eye(ROWS, dtype=np.float32), seed=1, **options)
    found, origins = wrong.of_kind(kind, most)
    sides = [int(new[0] == pairs[row][0]) for new, row in zip(found, origins, strict=True)]
    assert all(new[1 - side] == pairs[row][1 - side] for new, side, row in zip(found, sides, origins, strict=True))
    return found, sides, [pairs[row] for row in origins]


def lengths_and_sides(kind, target):
    """What was made, as words beside those of the right text; of a kind that is made on both sides."""
    found, sides, pairs = made(kind, target)
    assert len(found) == ROWS
    assert np.mean(sides) == pytest.approx(2 / 3, abs=0.07)
    return [(words_of(new[side])[0], words_of(pair[side])[0]) for new, side, pair in zip(found, sides, pairs, strict=True)]


def test_words_are_characters_where_there_are_few_blanks():
    assert words_of("a cat") == (["a", "cat"], " ")
    assert words_of("猫 犬") == (["猫", "犬"], " ")
    assert words_of("猫" * 17 + " 犬") == (["猫" * 17, "犬"], " ")
    assert words_of("猫" * 18 + " 犬") == ([*"猫" * 18, " ", "犬"], "")
    assert words_of("猫" * 19) == (["猫"] * 19, "")


@pytest.mark.parametrize("target", [german, chinese])
def test_what_is_cut_off_leaves_a_quarter_to_four_fifths(target):
    found = lengths_and_sides("truncated", target)
    sizes = [len(new) for new, _ in found]
    assert (min(sizes), max(sizes)) == (5, 15)
    heads = [new == right[: len(new)] for new, right in found]
    assert all(head or new == right[-len(new) :] for head, (new, right) in zip(heads, found, strict=True))
    assert np.mean(heads) == pytest.approx(0.75, abs=0.07)


@pytest.mark.parametrize("target", [german, chinese])
def test_what_is_added_is_two_fifths_or_more_of_another_text(target):
    found = lengths_and_sides("added text", target)
    sizes = [len(new) - len(right) for new, right in found]
    assert (min(sizes), max(sizes)) == (8, 19)
    behind = [new[: len(right)] == right for new, right in found]
    assert all(after or new[-len(right) :] == right for after, (new, right) in zip(behind, found, strict=True))
    assert np.mean(behind) == pytest.approx(0.75, abs=0.07)
    for after, (new, right) in zip(behind, found, strict=True):
        more = new[len(right) :] if after else new[: -len(right)]
        assert not set(more) & set(right)


@pytest.mark.parametrize("target", [german, chinese])
def test_what_is_copied_takes_the_place_of_the_end_of_the_target(target):
    found, sides, pairs = made("partly copied", target)
    assert all(sides)
    kept = []
    for (source, new), (_, right) in zip(found, pairs, strict=True):
        words, own = source.split(), words_of(right)[0]
        between = " " if target is german else ""
        sizes = [k for k in range(WORDS) if new == f"{between.join(own[:k])} {' '.join(words[k:])}"]
        assert len(sizes) == 1
        kept += sizes
    assert (min(kept), max(kept)) == (2, 12)


@pytest.mark.parametrize(("target", "step"), [(german, 1), (chinese, 2)])
def test_a_salad_has_as_many_words_each_of_another_text(target, step):
    found, sides, pairs = made("word salad", target)
    assert all(sides)
    places = {word: (row, place) for row in range(ROWS) for place, word in enumerate(words_of(target(row))[0])}
    begins = set()
    for (_, new), (_, right) in zip(found, pairs, strict=True):
        words = words_of(new)[0]
        assert len(words) == WORDS
        assert not set(words) & set(words_of(right)[0])
        for start in range(0, WORDS, step):
            row, place = places[words[start]]
            begins.add(place)
            assert [places[word] for word in words[start : start + step]] == [(row, place + k) for k in range(step)]
    assert begins == set(range(WORDS - step + 1))


def test_another_number_has_one_other_digit_or_lacks_one():
    german, english = (lambda row: f"etwa {1000 + row} Stück"), (lambda row: f"some 17 of {row + 5000}")
    found, sides, pairs = made("other numbers", german, english)
    assert np.mean(sides) == pytest.approx(2 / 3, abs=0.07)
    shorter = 0
    for new, side, pair in zip(found, sides, pairs, strict=True):
        before, after = re.findall(r"\d+|\D+", pair[side]), re.findall(r"\d+|\D+", new[side])
        (old, other), *more = [(a, b) for a, b in zip(before, after, strict=True) if a != b]
        assert not more
        if len(old) == len(other):
            assert sum(a != b for a, b in zip(old, other, strict=True)) == 1
        else:
            assert other in {old[:k] + old[k + 1 :] for k in range(len(old))}
            shorter += 1
    assert shorter / len(found) == pytest.approx(0.3 * 5 / 6, abs=0.07)  # 17 keeps both digits
    assert made("other numbers", lambda row: "keine", lambda row: "none")[0] == []


def test_damage_is_question_marks_or_a_wrong_encoding():
    found, sides, pairs = made("damaged encoding", source=lambda row: f"Number {row}")
    assert all(sides)
    plain = [re.sub(r"[^\x00-\x7f]", "?", right) for _, right in pairs]
    signs = [re.sub(r"[^\x00-\x7f]", "\ufffd", right) for _, right in pairs]
    news = [new for _, new in found]
    assert np.mean([a == b for a, b in zip(news, plain, strict=True)]) == pytest.approx(0.15, abs=0.05)
    assert np.mean([a == b for a, b in zip(news, signs, strict=True)]) == pytest.approx(0.15, abs=0.05)
    read = [{right.encode().decode(name, "replace").strip() for name in ("latin-1", "cp1252")} for _, right in pairs]
    assert 0.45 < np.mean([new in western for new, western in zip(news, read, strict=True)]) < 0.7


def test_another_sentence_is_a_near_one_three_times_in_four():
    rng = np.random.default_rng(3)
    vectors = rng.normal(size=(ROWS, 16)).astype(np.float32)
    vectors[ROWS // 2 :] = vectors[: ROWS // 2]  # each target twice, which is no other sentence
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    pairs = [(f"a{row}", f"b{row}") for row in range(ROWS)]
    found, origins = WrongPairs(pairs, vectors, seed=2).of_kind("other sentence", 300)
    assert len(found) == 300
    cosines = vectors @ vectors.T
    cosines[cosines > 0.95] = -1
    ranks = []
    for (source, target), row in zip(found, origins.tolist(), strict=True):
        assert source == pairs[row][0]
        ranks.append(int((cosines[row] > cosines[row, int(target[1:])] + 1e-5).sum()))
    assert np.mean(np.array(ranks) < 8) == pytest.approx(0.75 + 0.25 * 8 / ROWS, abs=0.06)


def test_as_many_are_made_as_are_asked_for_and_it_is_told_how_often_it_is_possible():
    pairs = [(f"a {row}", f"b {row}" if row % 4 else "b") for row in range(ROWS)]
    wrong = WrongPairs([(a.split()[0], b) for a, b in pairs], np.eye(ROWS, dtype=np.float32))
    found, origins = wrong.of_kind("other numbers", 50)
    assert len(found) == len(set(origins.tolist())) == 50
    assert all(row % 4 for row in origins.tolist())
    assert 0.6 < wrong.possible["other numbers"] < 0.9
    every = wrong.of_kind("other numbers")[1].tolist()
    assert every == sorted(set(every))
    assert all(row % 4 for row in every)
    assert wrong.possible["other numbers"] == len(every) / ROWS
    assert len(every) / (0.75 * ROWS) == pytest.approx(1 - 3**-3, abs=0.02)  # it is tried three times, on either side
    assert WrongPairs([], np.zeros((0, 4), np.float32)).of_kind("truncated")[0] == []


@pytest.mark.parametrize("given", [(0,), (1,), (0, 1)])
def test_texts_of_another_language_stand_on_the_sides_that_they_are_given_for(given):
    foreign = tuple([f"foreign {side}"] if side in given else [] for side in (0, 1))
    found, sides, _ = made("wrong language", foreign=foreign)
    assert set(sides) == set(given)
    assert all(new[side] == f"foreign {side}" for new, side in zip(found, sides, strict=True))
    assert made("wrong language")[0] == []
