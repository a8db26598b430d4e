"""Hashes, sketches and tables of keys against their plain definitions."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xswe.bitext.kernels import add_keys, add_to_filter, find_keys, hash_pairs, hash_texts, may_hold, move_keys, sketch
from xswe.io.ragged import Texts

BANDS, ROWS = 12, 3
FACTORS = np.random.default_rng(5).integers(1 << 63, size=BANDS * ROWS, dtype=np.uint64) * np.uint64(2) + np.uint64(1)


def sketches(texts):
    flat = Texts.of(texts)
    out = np.empty((len(texts), BANDS), np.uint64)
    sketch(flat.data, flat.offsets, FACTORS, ROWS, np.empty(len(FACTORS), np.uint64), out)
    assert (out != 0).all()
    return out


def shingles(text):
    """The runs of four bytes, or all bytes of a shorter text."""
    data = re.sub(rb"\d", b"0", text.encode().lower())
    return {data[place : place + 4].rjust(4, b"\0") for place in range(max(1, len(data) - 3))} if data else set()


@given(st.lists(st.text("abAB0171é猫", max_size=7), min_size=2, max_size=8))
def test_sketches_are_equal_where_the_shingles_are(texts):
    found = sketches(texts).tolist()
    for a, one in zip(texts, found, strict=True):
        for b, other in zip(texts, found, strict=True):
            assert (one == other) == (shingles(a) == shingles(b)), (a, b)


def test_bands_agree_as_often_as_the_similarity_to_the_power_of_their_rows():
    rng = np.random.default_rng(0)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    pairs = []
    for _ in range(400):
        text = "".join(rng.choice(letters, 60))
        pairs.append((text, text[: rng.integers(20, 60)]))
    similar = np.array([len(shingles(a) & shingles(b)) / len(shingles(a) | shingles(b)) for a, b in pairs])
    agree = (sketches([a for a, _ in pairs]) == sketches([b for _, b in pairs])).mean(0)
    assert agree == pytest.approx(np.full(BANDS, (similar**ROWS).mean()), abs=0.08)


@given(st.lists(st.text("ab猫", max_size=18), max_size=12), st.lists(st.text("ab猫", max_size=18), max_size=12))
def test_hashes_tell_texts_and_pairs_apart(first, second):
    flat = Texts.of(first + second)
    hashes = np.empty(len(flat), np.uint64)
    hash_texts(flat.data, flat.offsets, hashes)
    assert len(set(hashes.tolist())) == len({*first, *second})
    assert (hashes != 0).all()
    a, b = np.repeat(hashes, len(hashes)), np.tile(hashes, len(hashes))
    pairs = np.empty(len(a), np.uint64)
    hash_pairs(a, b, pairs)
    assert len(set(pairs.tolist())) == len({*first, *second}) ** 2
    assert (pairs != 0).all()


KEYS = st.lists(st.one_of(st.integers(1, 40), st.integers(1, 2**64 - 1)), max_size=30).map(
    lambda keys: np.array(keys, np.uint64)
)


@given(KEYS, KEYS)
def test_a_table_holds_what_was_added(first, second):
    table, fresh = np.zeros(64, np.uint64), np.empty(len(first), bool)
    assert add_keys(table, first, fresh) == len(set(first.tolist()))
    assert fresh.tolist() == [key not in first[:place] for place, key in enumerate(first)]
    larger = np.zeros(128, np.uint64)
    move_keys(table, larger)
    for each in (table, larger):
        found = np.empty(len(second), bool)
        find_keys(each, second, found)
        assert found.tolist() == [key in first for key in second]
        assert sorted(each[each > 0].tolist()) == sorted(set(first.tolist()))


def test_a_filter_holds_what_was_added_and_little_else():
    keys = np.random.default_rng(1).integers(1, 1 << 63, 4000, dtype=np.uint64)
    bits, found = np.zeros(1 << 9, np.uint64), np.empty(2000, bool)  # 16 bits a key
    add_to_filter(bits, keys[:2000])
    may_hold(bits, keys[:2000], found)
    assert found.all()
    may_hold(bits, keys[2000:], found)
    assert found.mean() < 0.01
