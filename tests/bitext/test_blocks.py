"""Blocks of lines: the compiled path against the plain reader, and the archives that corpora come in."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile
from dataclasses import replace
from itertools import zip_longest

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from xswe.bitext.lines import line_blocks
from xswe.bitext.seen import text_hashes
from xswe.bitext.source import Source, find_pairs, read_pairs
from xswe.errors import InputError
from xswe.io import lines as lines_module
from xswe.io.lines import MAX_LINE_BYTES, Lines, Skipped, read_lines, too_few_columns, unequal_sides
from xswe.io.ragged import Texts

EN_JA = ("en", "ja")
BLANKS = " \t\u00a0\u3000\u2003\u2028\u200a\u1680\u205f\u202f\x85\x1c"
line = st.one_of(
    st.text(alphabet=f"ab猫é😀{BLANKS}", max_size=12).map(lambda t: t.replace("\x1c", " ").encode()),
    st.lists(st.text(alphabet=f"x ー{BLANKS[2:]}", max_size=4), max_size=5).map(lambda f: "\t".join(f).encode()),
    st.binary(max_size=10).map(lambda b: b.replace(b"\n", b"")),
).filter(lambda b: not b.startswith(tuple(lines_module._SIGNATURES)))


def fast(file, on_error="raise"):
    skipped = Skipped()
    return list(read_pairs(file, on_error=on_error, skipped=skipped)), skipped.counts


def slow(file, on_error):
    skipped = Skipped()
    read = by_lines if file.kind == "moses" else by_columns
    return list(read(file, on_error, skipped)), skipped.counts


def by_columns(file, on_error, skipped):
    """The pairs of tab-separated text, in plain Python."""
    for number, line in read_lines(file.name, on_error=on_error, skipped=skipped):
        if line is None:
            continue
        if not line.strip():
            yield "", ""
        elif len(fields := line.split("\t")) > max(file.columns):
            yield tuple(fields[column].strip() for column in file.columns)
        elif on_error == "raise":
            raise too_few_columns(file.name, len(fields), file.columns, number)
        else:
            skipped.add("too few columns")


def by_lines(file, on_error, skipped):
    """The pairs of two line-aligned files, in plain Python."""
    for rows in zip_longest(*(read_lines(path, on_error=on_error, skipped=skipped) for path in file.files)):
        if None in rows:
            if on_error == "raise":
                short = rows.index(None)
                raise unequal_sides(file.files[short], file.files[1 - short], rows[1 - short][0])
            skipped.add("unequal length")
            return
        if all(text is not None for _, text in rows):
            yield tuple(text.strip() for _, text in rows)


def outcome(read, whole=True):
    """The pairs, or the error: its message, or only its line (of two files with errors either may be named)."""
    try:
        return read()
    except InputError as error:
        return str(error) if whole else error.line


@settings(max_examples=40)
@example([b"\r\x00"], (0, 1), False, False)  # no line ends but in a carriage return: refused even where errors are skipped
@given(st.lists(line, max_size=8), st.sampled_from([(0, 1), (1, 0), (2, 0), (1, 1)]), st.booleans(), st.booleans())
def test_compiled_columns_are_those_of_the_plain_reader(tmp_path_factory, content, columns, feed, carriage):
    path = tmp_path_factory.getbasetemp() / "columns.txt"
    end = b"\r\n" if carriage else b"\n"
    path.write_bytes(end.join(content) + end * feed)
    file = Source((path,), columns)
    assert outcome(lambda: fast(file, on_error="skip")) == outcome(lambda: slow(file, "skip"))
    assert outcome(lambda: fast(file)[0]) == outcome(lambda: slow(file, "raise")[0])


@settings(max_examples=30)
@example([b"\r\x00"], [b"a"])
@example([b""], [b"\xfe\xff"])  # refused as a whole, which names no line
@given(st.lists(line, max_size=6), st.lists(line, max_size=6))
def test_compiled_moses_sides_are_those_of_the_plain_reader(tmp_path_factory, a, b):
    folder = tmp_path_factory.getbasetemp()
    for name, side in (("m.en", a), ("m.ja", b)):
        (folder / name).write_bytes(b"".join(one + b"\n" for one in side))
    file = Source((folder / "m.en", folder / "m.ja"))
    skipping = (lambda: fast(file, on_error="skip")[0]), (lambda: slow(file, "skip")[0])
    found, expected = (outcome(read, whole=False) for read in skipping)
    assert found == expected
    found, expected = (outcome(read, whole=False) for read in (lambda: fast(file)[0], lambda: slow(file, "raise")[0]))
    if isinstance(expected, list):
        assert found == expected
    else:  # of two damaged sides, and sides of unequal length, any may be named first
        damaged = [outcome(lambda path=path: list(read_lines(path)), whole=False) for path in file.files]
        ends = [min(len(a), len(b)) + 1] if len(a) != len(b) else []
        assert found in [*(one for one in damaged if not isinstance(one, list)), *ends]


def test_lines_come_in_blocks_however_the_stream_is_cut(monkeypatch):
    monkeypatch.setattr(lines_module, "_CHUNK", 7)
    monkeypatch.setattr(lines_module, "_BLOCK_BYTES", 40)
    data = b"".join(b"%d" % i * (i % 9) + b"\n" for i in range(200)) + b"no feed"
    lines, found = Lines(io.BytesIO(data)), []
    while count := lines.ready(13):
        assert count <= 13
        found += [bytes(lines_of.encode()) for lines_of in lines.take(count)]
    assert b"".join(found) == data + b"\n"


@settings(max_examples=30)
@given(st.data())
def test_blocks_hold_the_lines_of_a_span_and_say_where_they_stand(tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "spans.tsv"
    lines = [b"a" * size + b"\n" for size in data.draw(st.lists(st.integers(0, 6), max_size=12))]
    raw = b"".join(lines)
    path.write_bytes(raw)
    starts = [len(b"".join(lines[:row])) for row in range(len(lines))]
    whole = data.draw(st.booleans())
    low, high = (0, len(raw)) if whole else sorted(data.draw(st.tuples(*[st.integers(0, len(raw))] * 2)))
    most, window = data.draw(st.integers(1, 5)), data.draw(st.sampled_from([0, 1, 5, 20, 40]))
    found = list(line_blocks([str(path)], most, window, None if whole else [(low, high)]))
    expected = [row for row, start in enumerate(starts) if low <= start < high]
    assert b"".join(block.lines[0].data.tobytes() for block in found) == b"".join(lines[row] for row in expected)
    assert [size for block in found for size in block.lines[0].sizes] == [len(lines[row]) for row in expected]
    first = expected[:1]  # lines are counted from the beginning of the span
    at = [0, *np.cumsum([len(block.lines[0]) for block in found])]
    assert [block.number for block in found] == [1 + rows for rows in at[:-1]]
    assert [block.place for block in found] == [starts[first[0] + rows] for rows in at[:-1]]
    assert [block.begins for block in found] == [not (low or rows) for rows in at[:-1]]
    for block, following in zip_longest(found, found[1:]):
        places = {(block.place + int(start)) // window for start in block.lines[0].offsets[:-1]} if window else {0}
        assert len(places) == 1
        full = len(block.lines[0]) == most or following is None
        assert full or following.place // (window or len(raw)) != block.place // (window or len(raw))


def test_a_damaged_line_is_named_by_its_number_in_the_file(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_bytes(b"a\tA\n" * 4 + b"b\n" + b"a\tA\n")
    for most in (1, 3, 100):
        with pytest.raises(InputError) as caught:
            list(Source((str(path),)).blocks(most))
        assert str(caught.value).startswith(f"{path}:5: 1 tab-separated columns where columns (0, 1) need 2; ")
    with pytest.raises(InputError, match=r"a\.tsv:5: 1 tab-separated columns where"):
        fast(Source((str(path),)))
    path.write_bytes(b"a\tA\n" * 4 + b"b\tB\xff\n")
    with pytest.raises(InputError, match=r"a\.tsv:5: not UTF-8 \(byte 0xff at column 4\)"):
        fast(Source((str(path),)))


def test_two_files_of_which_one_is_damaged_are_read_up_to_the_damage(tmp_path):
    (tmp_path / "a.en").write_bytes(b"a\nb\nc\n")
    (tmp_path / "a.de.gz").write_bytes(gzip.compress(b"A\nB\n")[:-4])
    names = str(tmp_path / "a.en"), str(tmp_path / "a.de.gz")
    skipped = Skipped()
    (block,) = line_blocks(names, on_error="skip", skipped=skipped)
    assert [list(side) for side in block.lines] == [["a\n", "b\n"], ["A\n", "B\n"]]
    assert skipped.counts == {"damaged archive": 1}  # and is not said to be shorter besides
    for how in ({}, {"on_error": "skip"}, {"exact": True, "on_error": "skip", "skipped": Skipped()}):
        with pytest.raises(InputError, match=r"a\.de\.gz:3: .*damaged"):
            list(line_blocks(names, **how))
    (tmp_path / "b.de").write_bytes(b"A\nB\n")
    names = names[0], str(tmp_path / "b.de")
    list(line_blocks(names, on_error="skip", skipped=skipped))
    assert skipped.counts == {"damaged archive": 1, "unequal length": 1}
    for how in ({}, {"on_error": "skip"}, {"exact": True, "on_error": "skip", "skipped": Skipped()}):
        with pytest.raises(InputError, match=r"b\.de:3: ends before line 3, where .*a\.en"):
            list(line_blocks(names, **how))


def test_two_files_of_numbers_are_refused_by_both_names(tmp_path):
    path = moses_zip(tmp_path / "x.zip", source=b"1\n" * 12, target="x\n" * 12, scores=b"0.5\n" * 12)
    (file,) = find_pairs([{"path": path, "score": "*.scores"}], EN_JA)
    sides = " and ".join(f"{path}!CCMatrix.en-ja.{code}" for code in EN_JA)
    with pytest.raises(InputError) as caught:
        [job() for job in file.jobs(scores=True)]
    said = (
        "its English side is a number in 12 of the first 12 lines; name the files, or the fields, that hold the two texts"
    )
    assert str(caught.value) == f"{sides}:1: {said}"


def test_columns_after_the_first_two_are_negatives(tmp_path):
    (tmp_path / "a.tsv").write_text("a\tA\tx\t0.5\nb\tB\t\tno number\nc\n\nd\tD\ty\n", "utf-8")
    (job,) = Source((str(tmp_path / "a.tsv"),), (0, 1, 2), score=3, on_error="skip").jobs(scores=True)
    rows = job()
    assert (list(rows.source), list(rows.target)) == (["a", "b", "", "d"], ["A", "B", "", "D"])
    assert (list(rows.negatives.texts), rows.negatives.bounds.tolist()) == (["x", "y"], [0, 1, 1, 1, 2])
    np.testing.assert_array_equal(rows.score, np.array([0.5, np.nan, np.nan, np.nan], np.float32))
    assert rows.skipped == {"too few columns": 1}
    (job,) = Source((str(tmp_path / "a.tsv"),), on_error="skip").jobs()
    assert (job().negatives, job().score) == (None, None)


def test_a_line_without_end_neither_fills_the_memory_nor_hides_what_follows(tmp_path):
    path = tmp_path / "long.tsv"
    with gzip.open(f"{path}.gz", "wb", compresslevel=1) as stream:
        stream.write(b"a\tA\n")
        for _ in range(70):
            stream.write(b"x" * MAX_LINE_BYTES)
        stream.write(b"\nb\tB\n")
    file = Source((f"{path}.gz",))
    assert fast(file, on_error="skip") == ([("a", "A"), ("b", "B")], {"line too long": 1})
    with pytest.raises(InputError, match=r"long\.tsv\.gz:2: a line of over 1 MiB"):
        fast(file)


def moses_zip(path, name="CCMatrix", source=b"a\nb\nc\n", target="あ\nい\nう\n", scores=b"1.2\n1.1\n1.0\n"):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("README", "about")
        archive.writestr("LICENSE", "terms")
        archive.writestr(f"{name}.en-ja.en", source)
        archive.writestr(f"{name}.en-ja.ja", target)
        archive.writestr(f"{name}.en-ja.scores", scores)
    return path


def test_a_moses_zip_is_read_without_unpacking(tmp_path):
    (file,) = find_pairs([moses_zip(tmp_path / "en-ja.txt.zip")], EN_JA)
    assert fast(file) == ([("a", "あ"), ("b", "い"), ("c", "う")], {})
    (file,) = find_pairs([tmp_path / "en-ja.txt.zip"], ("ja", "en"))
    assert fast(file)[0][0] == ("あ", "a")
    assert [p.name for p in tmp_path.iterdir()] == ["en-ja.txt.zip"]


def test_scores_of_a_moses_zip(tmp_path):
    path = moses_zip(tmp_path / "en-ja.txt.zip", scores=b"1.25\n\n0.5\n")
    (file,) = find_pairs([{"path": path, "score": "*.scores"}], EN_JA)
    (job,) = file.jobs(scores=True)
    np.testing.assert_array_equal(job().score, np.array([1.25, np.nan, 0.5], np.float32))


def test_a_damaged_score_leaves_no_pair_out(tmp_path):
    path = moses_zip(tmp_path / "en-ja.txt.zip", scores=b"1.25\n\xff\n0.5\n")
    (file,) = find_pairs([{"path": path, "score": "*.scores"}], EN_JA)
    (job,) = replace(file, on_error="skip").jobs(scores=True)
    rows = job()
    assert (len(rows), rows.skipped) == (3, {})
    np.testing.assert_array_equal(rows.score, np.array([1.25, np.nan, 0.5], np.float32))


def test_unequal_members_name_the_shorter_one(tmp_path):
    (file,) = find_pairs([moses_zip(tmp_path / "x.zip", target="あ\n")], EN_JA)
    with pytest.raises(InputError, match=r"x\.zip!CCMatrix\.en-ja\.ja:2: ends before line 2"):
        fast(file)
    assert fast(file, on_error="skip") == ([("a", "あ")], {"unequal length": 1})


@pytest.mark.parametrize(("name", "mode"), [("x.tar", "w"), ("x.tgz", "w:gz"), ("x.tar.xz", "w:xz")])
def test_a_moses_pair_in_a_tar(tmp_path, monkeypatch, name, mode):
    monkeypatch.setattr(lines_module, "_CHUNK", 1 << 16)
    lines = range(15_000)  # several chunks of each member
    texts = {"README": "about", "x.ja": "".join(f"文{n}\n" for n in lines), "x.en": "".join(f"line {n}\n" for n in lines)}
    with tarfile.open(tmp_path / name, mode) as archive:
        for member, text in texts.items():
            info = tarfile.TarInfo(f"d/{member}")
            info.size = len(text.encode())
            archive.addfile(info, io.BytesIO(text.encode()))
    (file,) = find_pairs([tmp_path / name], EN_JA)
    assert fast(file) == ([(f"line {n}", f"文{n}") for n in lines], {})


@pytest.mark.parametrize(
    ("row", "columns"), [("url\turl\t0.8\tHello\tやあ\n", [3, 4]), ("url\t0.8\tHello\tやあ\n", [2, 3])]
)
def test_jparacrawl_tar_of_versions_3_and_2(tmp_path, row, columns):
    path = tmp_path / "en-ja.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name, text in (("en-ja/README", "about"), ("en-ja/en-ja.bicleaner05.txt", row * 3)):
            info = tarfile.TarInfo(name)
            info.size = len(text.encode())
            archive.addfile(info, io.BytesIO(text.encode()))
    (file,) = find_pairs([{"path": path, "columns": columns, "score": columns[0] - 1}], EN_JA)
    assert fast(file)[0] == [("Hello", "やあ")] * 3
    (job,) = file.jobs(scores=True)
    np.testing.assert_array_equal(job().score, np.full(3, 0.8, np.float32))


def test_a_cut_archive_is_an_error_or_a_counted_end(tmp_path):
    generator = np.random.default_rng(0)
    side = b"".join(b"%d\n" % n for n in generator.integers(0, 1 << 60, 60_000))
    whole = moses_zip(tmp_path / "whole.zip", source=side, target=side, scores=b"")
    data = bytearray(whole.read_bytes())
    data[len(data) // 4 : len(data) // 4 + 2000] = bytes(2000)
    (tmp_path / "cut.zip").write_bytes(data)
    (file,) = find_pairs([tmp_path / "cut.zip"], EN_JA)
    with pytest.raises(InputError, match="truncated or damaged"):
        fast(file)
    pairs, skipped = fast(file, on_error="skip")
    assert skipped == {"damaged archive": 1}
    assert 0 < len(pairs) < 60_000
    (tmp_path / "short.zip").write_bytes(data[:-500])
    with pytest.raises(InputError, match="truncated or damaged"):
        find_pairs([tmp_path / "short.zip"], EN_JA)


@settings(max_examples=15)
@given(st.lists(st.text(max_size=20), max_size=30))
def test_equal_texts_and_no_others_share_a_hash(texts):
    texts = [text.encode("utf-8", "replace").decode() for text in texts]
    hashes = text_hashes(Texts.of(texts))
    assert len(set(hashes.tolist())) == len(set(texts))
    of = dict(zip(texts, hashes.tolist(), strict=True))
    assert [of[text] for text in texts] == hashes.tolist()
    assert 0 not in hashes
