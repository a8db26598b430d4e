"""Compiled loops over bytes: every character, and every malformed one, as Python has it."""

from __future__ import annotations

from itertools import product

import numpy as np

from xswe.bitext.kernels import FINE, LONG, NOT_UTF8, NUL, characters, cut_lines
from xswe.bitext.rows import one_line, stripped
from xswe.io.ragged import Texts

EVERY = [chr(code) for code in (*range(1, 0x3100), 0xFEFF, 0xFFFD, 0x10000, 0x10FFFF) if not 0xD800 <= code < 0xE000]

FORMS = ("{0}", "{0}a", "a{0}", "{0}{0}a b{0} {0}", "a{0}b")


def cut(lines, first=-1, second=0, longest=1000):
    """Return the state of lines of bytes, and their two columns."""
    data, offsets = np.frombuffer(b"".join(lines), np.uint8), np.cumsum([0, *map(len, lines)], dtype=np.int64)
    spans, status = np.zeros((len(lines), 4), np.int64), np.zeros(len(lines), np.uint8)
    cut_lines(*Texts(data, offsets).frozen, first, second, longest, spans, status)
    columns = [[bytes(data[a:b]) for a, b in zip(spans[:, k], spans[:, k + 1], strict=True)] for k in (0, 2)]
    return status.tolist(), *columns


def test_blanks_are_those_of_python():
    texts = [f"{c}a{c}" for c in EVERY] + [form.format(c) for c in EVERY if not c.strip() for form in FORMS]
    assert list(stripped(Texts.of(texts))) == [text.strip() for text in texts]


def test_line_ends_and_tabs_within_a_text_become_blanks():
    texts = ["", "a", "a\nb", "\ra\tb\n", "猫\r\n犬", "a\x0bb\x0cc\x0e", "\n"]
    assert list(one_line(Texts.of(texts))) == ["", "a", "a b", "a b", "猫  犬", "a\x0bb\x0cc\x0e", ""]
    for one in "\t\n\r":  # whichever of them it has
        assert list(one_line(Texts.of([f"a{one}b"]))) == ["a b"]


def test_characters_are_counted_as_python_counts_them():
    given = Texts.of(["", "".join(EVERY), *EVERY[::50]])
    counts = np.empty(len(given), np.int64)
    characters(np.asarray(given.data), np.asarray(given.offsets), counts)
    assert counts.tolist() == [0, len(EVERY), *(1 for _ in EVERY[::50])]


def test_lines_that_python_cannot_read_are_malformed():
    further = (0x00, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0)
    lines = [bytes([lead]) for lead in range(1, 256) if lead not in (0x0A, 0x0D)]
    lines += [bytes(one) for one in product(range(0x80, 0x100), further)]
    lines += [bytes((a, *rest)) for a in (0xC1, *range(0xDF, 0x100)) for rest in product(further, (0x7F, 0x80, 0xBF, 0xC0))]
    lines += [bytes((a, *rest)) for a in range(0xEF, 0xF7) for rest in product(further, *[(0x7F, 0x80, 0xBF, 0xC0)] * 2)]

    def state(line):
        try:
            return NUL if "\0" in line.decode() else FINE
        except UnicodeDecodeError:
            return NOT_UTF8

    assert cut(lines)[0] == [state(line) for line in lines]


def test_line_ends_belong_to_no_column():
    lines = [b"a\tb\n", b"a\tb\r\n", b"a\tb", b" a \t b \t c\r\n", b"a\tb\r\r\n", b"\ta\t\tb\n"]
    assert cut(lines, 0, 1) == ([FINE] * 6, [b"a", b"a", b"a", b"a", b"a", b""], [b"b", b"b", b"b", b"b", b"b", b"a"])
    assert cut(lines, 1, 0)[1:] == cut(lines, 0, 1)[:0:-1]
    assert cut([b"12345\n", b"123456\n", b"12345"], longest=5)[0] == [FINE, LONG, FINE]
