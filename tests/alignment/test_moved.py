"""Chapters and paragraphs out of order are found, marked, and kept when they are given back."""

from __future__ import annotations

import numpy as np
import pytest

import xswe
from xswe.alignment import moved as moving
from xswe.alignment import windows
from xswe.alignment.corrections import read_corrections
from xswe.alignment.sentences import _merged


@pytest.fixture(scope="module")
def mini():
    return xswe.load("mini")


def swapped(texts):
    return [*texts[:40], *texts[120:200], *texts[40:120], *texts[200:]]


def test_chapters_that_were_swapped_are_found_and_marked(mini, sample):
    for code in ("de", "ja"):
        english, other = sample["en"][:260], swapped(sample[code][:260])
        place = {text: line for line, text in enumerate(other)}
        found = xswe.align(mini, english, other)
        right = sum(
            bead.target_lines == (place[sample[code][bead.source_lines[0]]],) and len(bead.source_lines) == 1
            for bead in found.pairs
        )
        assert right > 0.95 * 260
        assert 75 <= found.moved.sum() <= 82  # one of the two is taken for what moved
        assert {bead.status for bead in found.pairs} == {"", "moved"}
        assert "of them out of order" in found.summary()
        for k, side in enumerate((english, other)):
            lines = [line for bead in found for line in bead[3 + k]]
            assert sorted(lines) == list(range(len(side)))
        assert [bead.source_lines for bead in found if bead.source_lines] == sorted(
            bead.source_lines for bead in found if bead.source_lines
        )
        without = xswe.align(mini, english, other, moved=False)
        assert not without.moved.any()
        assert len(without.pairs) < 190


def test_paragraphs_that_moved_are_found(mini, sample):
    german = sample["de"][:200]
    moved = [
        *german[:20],
        *german[26:90],
        *german[20:26],
        *german[90:150],
        *german[154:190],
        *german[150:154],
        *german[190:],
    ]
    place = {text: line for line, text in enumerate(moved)}
    found = xswe.align(mini, sample["en"][:200], moved)
    wrong = [bead for bead in found.pairs if bead.target_lines != tuple(place[german[line]] for line in bead.source_lines)]
    assert len(wrong) <= 4
    assert len(found.pairs) >= 194
    assert {line for bead in found.pairs if bead.status == "moved" for line in bead.source_lines} >= {21, 22, 23, 24}


def test_nothing_moves_where_nothing_did(mini, sample):
    draw = np.random.default_rng(4)
    german = [text for text in sample["de"][:600] if draw.random() > 0.1]
    english = [text for line, text in enumerate(sample["en"][:600]) if draw.random() > 0.1 and not 200 <= line < 300]
    assert not xswe.align(mini, english, german).moved.any()


def test_what_is_out_of_order_goes_through_every_format(mini, sample, tmp_path):
    texts = sample["en"][:260], swapped(sample["de"][:260])
    how = {"languages": ("en", "de")}
    free = xswe.align(mini, *texts, **how)
    for suffix in ("xlsx", "csv", "tsv", "tmx", "ladder", "jsonl"):
        if suffix == "xlsx":
            pytest.importorskip("openpyxl")
        free.write(tmp_path / f"a.{suffix}")
        found = xswe.align(mini, *texts, fixed=tmp_path / f"a.{suffix}", **how)
        lines = [{bead[3:5] for bead in one.pairs} for one in (free, found)]
        assert lines[0] == lines[1]
        assert (found.moved == free.moved).all()
        assert found.scores == pytest.approx(free.scores, abs=0.15)


def test_pairs_that_cross_are_out_of_order(mini):
    english = ["The train is late.", "It rains.", "A cat sleeps on the roof.", "We buy bread."]
    german = ["Es regnet.", "Auf dem Dach schläft eine Katze.", "Wir kaufen Brot.", "Der Zug hat Verspätung."]
    crossed = [((0,), (3,)), ((1,), (0,)), ((2,), (1,))]
    known = read_corrections(crossed, None, english, german, ())
    assert known.constraints.anchors == (((1, 0), (2, 1)), ((2, 1), (3, 2)))
    assert known.apart.tolist() == [[0, 1, 3, 4]]
    found = xswe.align(mini, english, german, fixed=crossed)
    assert [bead[3:] for bead in found] == [
        ((0,), (3,), "moved", ""),
        ((1,), (0,), "right", ""),
        ((2,), (1,), "right", ""),
        ((3,), (2,), "", ""),
    ]
    assert found.fixed.tolist() == [True, True, True, False]
    assert found[0].score > 0.5


def test_a_rejected_pair_does_not_come_back_as_moved(mini, sample):
    texts = sample["en"][:260], swapped(sample["de"][:260])
    free = xswe.align(mini, *texts)
    some = [bead[3:5] for bead in free.pairs if bead.status == "moved"][10:12]
    found = xswe.align(mini, *texts, fixed=[(*pair, "rejected") for pair in some])
    assert not set(some) & {bead[3:5] for bead in found.pairs}
    assert found.moved.sum() >= 70


def test_what_moved_is_found_in_long_texts_too(mini, sample, tmp_path, monkeypatch):
    """Window by window, and whatever lines are compared at a time."""
    for name, value in {"_WHOLE": 100, "_WINDOW": 200, "_COARSE": 400, "_LEARN": 1000, "_BORDER": 30, "_STEPS": 4}.items():
        monkeypatch.setattr(windows, name, value)
    texts = (
        sample["en"][:600],
        [*sample["de"][:100], *sample["de"][400:500], *sample["de"][200:400], *sample["de"][100:200]],
    )
    found = xswe.align(mini, *texts, output=tmp_path / "a.ladder")
    assert found.moved.sum() >= 150
    assert found.coverage[1] > 0.97
    monkeypatch.setattr(moving, "_CHUNK_CELLS", 1000)
    again = xswe.align(mini, *texts)
    assert (again.spans == found.spans).all()


@pytest.mark.parametrize(
    ("steps", "apart", "merged"),
    [  # spans of the source and of the target; a bead that is not on the path takes the place of its first gap
        ([[0, 1, 0, 1], [1, 2, 1, 1], [2, 3, 1, 2], [3, 3, 2, 3], [3, 4, 3, 3]], [[1, 2, 2, 3]], [0, 5, 2, 4]),
        ([[0, 0, 0, 1], [0, 1, 1, 2], [1, 2, 2, 3], [2, 3, 3, 3]], [[2, 3, 0, 1]], [1, 2, 4]),
        ([[0, 1, 0, 1], [1, 1, 1, 2], [1, 2, 2, 3]], [[1, 1, 1, 2]], [0, 3, 2]),  # a line that is said to be alone
        ([[0, 1, 0, 1]], [], [0]),
    ],
)
def test_beads_apart_stand_at_their_first_line_of_the_source(steps, apart, merged):
    assert _merged(steps, apart) == merged
