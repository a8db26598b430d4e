"""Letters are recognised among other bytes, eight at a time, as they are one by one."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

from xswe.text.compiled.alphabet import (
    AS_THEY_ARE,
    LETTERS,
    LOWER_CASE,
    NEITHER,
    Alphabet,
    append_character,
    copy_letters,
    decode_character,
)


@njit
def copied(data, place, last, case, chunk, end):
    return copy_letters(data, place, last, case, chunk, end)


@njit
def written_and_read(codes, chunk, read):
    end, start = 1, 1
    for k in range(len(codes)):
        end = append_character(chunk, end, codes[k])
    for k in range(len(codes)):
        read[k], width = decode_character(chunk, start)
        start += width
    return start, end


def test_characters_are_written_and_read_as_utf_8():
    edges = [edge + k for edge in (0x80, 0x800, 0x10000, 0x40000, 0x100000, 0x10FFFF) for k in (-1, 0)]
    drawn = np.random.default_rng(0).integers(0, 0x110000, 500).tolist()
    codes = np.array([code for code in [0, *edges, *drawn] if not 0xD800 <= code < 0xE000], np.int64)
    chunk, read = np.zeros(4 * len(codes) + 1, np.uint8), np.zeros(len(codes), np.int64)
    expected = "".join(map(chr, codes.tolist())).encode()
    assert written_and_read(codes, chunk, read) == (len(expected) + 1, len(expected) + 1)
    assert chunk[1:].tobytes().rstrip(b"\0") == expected.rstrip(b"\0")
    assert chunk[0] == 0
    assert read.tolist() == codes.tolist()


@pytest.mark.parametrize("case", [AS_THEY_ARE, LOWER_CASE])
def test_every_byte_at_every_place(case):
    for byte in range(256):
        for where in range(8):
            data = np.frombuffer(
                b"..aZ09zA" + b"aZ09zAxY"[:where] + bytes([byte]) + b"aZ09zAxY"[where + 1 :] + b"..", np.uint8
            )
            chunk = np.full(24, 7, np.uint8)
            place, end = copied(data, 8, 16, case, chunk, 3)
            expected = data[8 : 16 if chr(byte) in LETTERS else 8 + where].tobytes()
            assert (place - 8, end - 3) == (len(expected), len(expected))
            expected = expected.lower() if case == LOWER_CASE else expected
            assert chunk.tobytes() == b"\x07" * 3 + expected.ljust(8, b"\0") + b"\x07" * 13


def test_nothing_is_read_behind_the_last_byte():
    data = np.frombuffer(b"abcdefghijklmnopqrst", np.uint8)
    chunk = np.zeros(32, np.uint8)
    assert copied(data, 0, 19, AS_THEY_ARE, chunk, 0) == (16, 16)
    assert copied(data, 16, 20, AS_THEY_ARE, chunk, 16) == (16, 16)


@pytest.mark.parametrize(
    ("normalise", "case"), [(str, AS_THEY_ARE), (str.lower, LOWER_CASE), (str.upper, NEITHER), (str.swapcase, NEITHER)]
)
def test_what_an_alphabet_does_to_letters(normalise, case):
    def chunks(text):
        return [(word, None) for word in "".join(c if c in LETTERS else " " for c in text).split()]

    assert Alphabet(normalise, chunks, "").table[3] == case


def test_an_alphabet_with_other_letters_is_read_byte_by_byte():
    assert Alphabet(str, lambda text: [(word, None) for word in text.split()], "").table[3] == NEITHER
