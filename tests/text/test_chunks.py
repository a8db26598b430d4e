"""The table of chunks of text, against a dictionary."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

from xswe.io.ragged import Texts
from xswe.text.compiled.chunks import (
    FEW,
    NewChunks,
    contents,
    copy_chunk,
    copy_ids,
    distinct,
    find,
    first_ids,
    hash_chunk,
    new_table,
    number,
    remember,
)

LARGEST = 20  # ids of a chunk


@njit
def look_up(table, data, start, end, words, chunk, ids):
    """Write the ids of a chunk, and return how many there are; -1 if it is not in the table."""
    copy_chunk(data, start, end - start, words, chunk)
    slot = find(table, words, 0, end - start, hash_chunk(words, 0, end - start))
    return copy_ids(table, slot, ids, 1) if slot >= 0 else -1


def ids_of(table, texts):
    """The ids of each chunk, None where it is not in the table."""
    flat, words, ids = Texts.of(texts), np.zeros(64, np.uint64), np.full(1 + LARGEST + FEW, -9, np.int32)
    found = []
    for start, end in zip(flat.offsets[:-1], flat.offsets[1:], strict=True):
        count = look_up(table, flat.data, start, end, words, words.view(np.uint8), ids)
        found.append(ids[1 : 1 + count].tolist() if count >= 0 else None)
    return found


def chunks_of(known):
    """A dictionary's chunks, as buffers."""
    flat, sizes = Texts.of(list(known)), [len(ids) for ids in known.values()]
    firsts = np.cumsum([0, *sizes])[:-1]
    where = np.stack([flat.offsets[:-1], np.diff(flat.offsets), firsts, sizes], axis=1).astype(np.int32)
    return NewChunks(where, flat.data, np.array([one for ids in known.values() for one in ids], np.int32))


def drawn(count, seed):
    """Chunks of up to eight words of eight bytes and up to twenty ids, many with the same beginning."""
    rng = np.random.default_rng(seed)
    texts = {"ab" * 12 * int(rng.integers(2)) + "".join(rng.choice([*"abé猫"], rng.integers(1, 40))) for _ in range(count)}
    return {text: rng.integers(0, 1000, rng.integers(0, LARGEST + 1)).tolist() for text in sorted(texts)}


def least_slots(table, slots):
    """How many slots what is in a table needs, doubled from ``slots`` on: five eighths can be used, with two words each."""
    used, words = table.used.tolist()
    while slots * 5 // 8 < used or 2 * slots < words:
        slots *= 2
    return slots


@pytest.mark.parametrize("slots", [1, 8, 1024])
def test_chunks_are_found_with_all_their_ids_however_the_table_grew(slots):
    known, further = drawn(300, 1), drawn(300, 2)
    table = remember(new_table(slots), chunks_of(known), 1 << 20)
    # what is there keeps its ids
    table = remember(table, chunks_of({text: [7] for text in list(known)[:50]} | further), 1 << 20)
    everything = further | known
    assert ids_of(table, list(everything)) == list(everything.values())
    assert set(ids_of(table, [text for text in drawn(300, 3) if text not in everything])) <= {None}
    assert table.used[0] == len(everything)
    assert len(table.slots) == 8 * least_slots(table, slots)


def test_a_table_grows_no_larger_than_is_allowed_and_holds_what_came_first():
    known = drawn(300, 1)
    table = remember(new_table(8), chunks_of(known), 64)
    assert len(table.slots) == 64 * 8
    found = ids_of(table, list(known))
    held = [ids for ids in found if ids is not None]
    assert held == list(known.values())[: len(held)]
    assert len(held) == table.used[0] <= 40
    assert remember(table, chunks_of({}), 64) is table


@pytest.mark.parametrize("slots", [1, 8, 1024])
def test_equal_chunks_have_one_number_in_the_order_in_which_they_came(slots):
    rng = np.random.default_rng(4)
    texts = rng.choice(list(drawn(200, 5)), 700).tolist()
    numbers = {text: place for place, text in enumerate(dict.fromkeys(texts))}
    flat = Texts.of(texts)
    table, found = number(new_table(slots), flat.data, flat.offsets[:-1], flat.offsets[1:])
    assert found.tolist() == [numbers[text] for text in texts]
    assert len(table.slots) == 8 * least_slots(table, slots)
    own, keys = contents(table)
    assert list(own) == list(numbers)
    assert len(set(keys.tolist())) == len(numbers)
    where = np.stack([flat.offsets[:-1], np.diff(flat.offsets)], axis=1).astype(np.int32)
    again, which = distinct(flat.data, where)
    assert (list(again), which.tolist()) == (list(numbers), found.tolist())
    others = [*numbers, *(text for text in drawn(200, 6) if text not in numbers)]
    asked, words, ids = Texts.of(others), np.zeros(64, np.uint64), np.empty(len(others), np.int32)
    keys = np.empty(len(others), np.uint64)
    first_ids(asked.data, asked.offsets[:-1], asked.offsets[1:], table, words, words.view(np.uint8), keys, ids)
    assert ids.tolist() == [numbers.get(text, -2) for text in others]
