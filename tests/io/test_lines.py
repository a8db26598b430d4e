"""The lines of a stream and of spans of a file, against those of the whole."""

from __future__ import annotations

import io
import random
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xswe.errors import InputError
from xswe.io import lines as module
from xswe.io.lines import Lines, Span, lines_counted, read_blocks

MOST = 6  # bytes of a line, here
pieces = st.lists(
    st.sampled_from([b"\n", b"\r\n", b"a", b"bc", b"defg", b"x" * 9, "猫".encode(), b"\xef\xbb\xbf"]), max_size=20
)


def expected_lines(data, exact, inside=False):
    """The lines of bytes, each cut to two bytes over the most."""
    if not (exact or inside) and data.startswith(b"\xef\xbb\xbf"):
        data = data[3:] or b"\n"
    lines = [line[: MOST + 2] + b"\n" for line in data.split(b"\n")]
    last = lines.pop()[:-1]
    return [*lines, *([last if exact else last + b"\n"] if last else [])]


@settings(max_examples=80, deadline=None)
@given(
    parts=pieces, chunk=st.integers(1, MOST), exact=st.booleans(), size=st.integers(2 * MOST, 40), seed=st.integers(0, 99)
)
def test_lines_come_whole_and_in_order_however_many_are_asked_for(parts, chunk, exact, size, seed):
    data, draw, found = b"".join(parts), random.Random(seed), []
    data = data if b"\n" in data else data.replace(b"\r", b"")
    wanted = expected_lines(data, exact)
    with pytest.MonkeyPatch.context() as patch:
        for limit in ("MAX_LINE_BYTES", "_MAX_EXACT_BYTES"):
            patch.setattr(module, limit, MOST)
        patch.setattr(module, "_CHUNK", chunk)
        stream = io.BytesIO(data)
        lines = Lines(stream, exact, size=size)
        while ready := lines.ready(most := draw.randint(1, 5)):
            rest = wanted[len(found) :]
            assert ready <= min(most, len(rest))
            room = draw.randint(0, 40)
            bounds = [sum(map(len, rest[:k])) for k in range(ready)]
            assert lines.before(ready, room) == max(1, sum(start < room for start in bounds))
            bodies = [sum(len(line) - 1 for line in rest[: k + 1]) for k in range(ready)]
            if not (exact and ready == len(rest)):  # whose last line may have no end
                assert lines.within(ready, room) == max(1, sum(body <= room for body in bodies))
            taken = draw.choice([None, 0, draw.randint(1, ready)])
            block = lines.take(taken)
            found += [block.data[a:b].tobytes() for a, b in pairwise(block.offsets.tolist())]
            assert taken is None or len(block) == taken
    assert found == wanted
    assert lines.damage is None


def test_no_more_is_read_than_is_asked_for_or_fits():
    stream = io.BytesIO(b"ab\n" * 1000)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_CHUNK", 6)
        lines = Lines(stream, size=60)
        assert (lines.ready(1), stream.tell()) == (1, 6)
        assert (lines.ready(2), stream.tell()) == (2, 6)  # which are there
        assert (lines.ready(3), stream.tell()) == (3, 12)
        assert (lines.ready(900), stream.tell()) == (20, 60)
        assert (lines.ready(900), stream.tell()) == (20, 60)
        lines.take(1)
        assert (lines.ready(900), stream.tell()) == (21, 66)


def test_a_stream_with_carriage_returns_alone_has_no_lines():
    for data, inside, damaged in ((b"a\rb\r", False, True), (b"a\rb\n", False, False), (b"a\rb", True, False)):
        lines = Lines(io.BytesIO(data), inside=inside)
        assert lines.ready(5) == (0 if damaged else 1)
        assert isinstance(lines.damage, module.ReturnsAlone) == damaged


def test_a_mark_is_a_part_of_the_text_inside_a_file():
    mark = b"\xef\xbb\xbf"
    for inside, first in ((False, b"a\n"), (True, mark + b"a\n")):
        lines = Lines(io.BytesIO(mark + b"a\nb"), inside=inside)
        assert lines.ready(9) == 2
        assert lines.take(1).data.tobytes() == first
    lines = Lines(io.BytesIO(mark))
    assert lines.ready(9) == 1
    assert lines.take().data.tobytes() == b"\n"


@settings(max_examples=40, deadline=None)
@given(parts=pieces, cuts=st.lists(st.integers(0, 60), max_size=4), most=st.integers(1, 9), chunk=st.integers(1, 9))
def test_spans_that_partition_a_file_partition_its_lines(tmp_path_factory, parts, cuts, most, chunk):
    data = b"".join(parts)
    places = sorted({0, len(data), *(min(cut, len(data)) for cut in cuts)})
    ends = [place for place in range(1, len(data)) if data[place - 1] == 10]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_CHUNK", chunk)
        for start, stop in pairwise(places):
            begin, end = (next((e for e in [0, *ends] if e >= place), len(data)) for place in (start, stop))
            span, found = Span(io.BytesIO(data), start, stop), b""
            assert span.at == begin
            while piece := span.read(most):
                assert len(piece) <= most
                found += piece
            assert found == data[begin:end]
    path = tmp_path_factory.getbasetemp() / "spans.txt"
    path.write_bytes(b"a\n" + data)
    blocks = [block for start, stop in pairwise(places) for block in read_blocks(path, most, (start, stop))]
    last = [text for block in read_blocks(path, most, (len(data), len(data) + 2)) for text in block]
    assert [*(text for block in blocks for text in block), *last] == [text for block in read_blocks(path) for text in block]


def test_what_is_wrong_in_a_span_is_counted_from_the_beginning_of_the_file(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"a\nb\nc\nd\xff\ne\n")
    for span in ((0, 11), (1, 11), (3, 11), (6, 11), (5, 8)):
        with pytest.raises(InputError, match=r"a\.txt:4: not UTF-8 \(byte 0xff at column 2\)"):
            list(read_blocks(tmp_path / "a.txt", 2, span))
    assert [list(block) for block in read_blocks(tmp_path / "a.txt", 2, (0, 4))] == [["a", "b"]]
    for start, error, said in (
        (2, InputError("a", "odd", "x"), "a: odd; x"),
        (2, InputError("a", "odd", "x", 3), "a:4: odd; x"),
        (0, InputError("a", "odd", "x", 3), "a:3: odd; x"),
    ):
        with pytest.raises(InputError) as raised, lines_counted(tmp_path / "a.txt", start):
            raise error
        assert str(raised.value) == said


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b""])
def test_a_line_may_have_the_most_bytes_and_none_more(tmp_path, monkeypatch, end):
    monkeypatch.setattr(module, "MAX_LINE_BYTES", MOST)
    monkeypatch.setattr(module, "_CHUNK", MOST)
    for size in (MOST - 1, MOST):
        (tmp_path / "a.txt").write_bytes(b"a\n" + b"x" * size + end)
        assert [list(block) for block in read_blocks(tmp_path / "a.txt")] == [["a", "x" * size]]
    for size in (MOST + 1, MOST + 2, MOST + 3, 3 * MOST):
        (tmp_path / "a.txt").write_bytes(b"a\n" + b"x" * size + end)
        with pytest.raises(InputError, match=r"a\.txt:2: a line of over"):
            list(read_blocks(tmp_path / "a.txt"))
