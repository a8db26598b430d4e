"""Exact, near and semantic duplicates of a file; what stays, what goes, and why."""

from __future__ import annotations

import gzip
import itertools
import json
import re
from pathlib import Path

import numpy as np
import pytest

from xswe.errors import ConfigError, InputError
from xswe.io.ragged import Texts
from xswe.mining import dedup as module
from xswe.mining.dedup import REASONS, DedupConfig, _batches, _first, _groups_by_key, _shared, dedup, differ_in_names

ANY = np.random.default_rng(0).integers(0, 9, 200).astype(np.uint64)


def reasons(found):
    return [REASONS[code] for code in found.reasons]


@pytest.fixture
def lines(sample):
    """A hundred lines; then a copy, a copy in other letters, one with a word more, and one that says the same."""
    own = sample["en"][:100]
    return [*own, own[7], f"  {own[8].upper()} ", f"{own[9]} Yes.", " ".join(reversed(own[10].split()))]


def test_the_first_row_of_each_key_is_found():
    first = _first(ANY)
    assert all(first[i] == list(ANY).index(key) for i, key in enumerate(ANY))


@pytest.mark.parametrize("digits", ["compare", "ignore"])
@pytest.mark.parametrize("near", [0.4, 0.8, None])
def test_duplicates_by_letters_are_those_of_a_plain_reading(digits, near, monkeypatch):
    """Compared are lines that have the same letters, or a band of their sketches; the first of equally near ones counts."""
    monkeypatch.setattr(module, "_BLOCK", 7)
    draw = np.random.default_rng(0)
    words = ["gate", "Gate", "12", "14", "Bremen", "Hamburg", "opens", "closes", "at", "the", "old", "harbour"]
    texts = [" ".join(words[word] for word in draw.integers(0, len(words), draw.integers(2, 9))) for _ in range(40)]
    texts += [
        texts[3],
        texts[4].upper(),
        f"{texts[5]} !",
        f"a {texts[6]}",
        *(f"{text} again and again" for text in texts[:40]),
    ]
    compared, bands = digits == "compare", module.sketches(Texts.of(texts), bands=8, rows=5)

    def numbers(text):
        return [number for number, _ in itertools.groupby(re.findall(r"\d+", text))] if compared else []

    def letters(text):
        return "".join(text.casefold().split()), numbers(text)

    def shingles(text):
        own = "".join(text.casefold().split())
        own = own if compared else re.sub(r"\d", "0", own)
        return {own[k : k + 4] for k in range(max(1, len(own) - 3))}

    shared, held = [shingles(text) for text in texts], [numbers(text) for text in texts]
    found = dedup(None, texts, threshold=None, near=near, digits=digits)
    for row, text in enumerate(texts):
        like = [k for k in range(row) if held[k] == held[row]]
        first = {next((k for k in like if bands[k, band] == bands[row, band]), row) for band in range(8)} - {row}
        alike = [k for k in like if letters(texts[k]) == letters(text)]
        near_ones = {}
        for k in first:
            share = len(shared[row] & shared[k]) / len(shared[row] | shared[k])
            if near is not None and share >= near and not (compared and differ_in_names(text, texts[k])):
                near_ones[k] = share
        best = max(near_ones.values(), default=np.nan)
        got = int(found.kinds[row]), int(found.nearest[row]), float(found.scores[row])
        if text in texts[:row]:
            assert got == (1, texts.index(text), 1.0)
        elif alike and near is not None:
            assert got == (2, alike[0], 1.0)
        elif near_ones:
            assert got[0] == 2
            assert got[2] == pytest.approx(best)
            assert near_ones[got[1]] == best
        else:
            assert got[:2] == (0, -1)
            assert np.isnan(got[2])
    assert {0, 1} <= set(found.kinds.tolist())
    assert (2 in found.kinds.tolist()) == (near is not None)


@pytest.mark.parametrize(
    ("a", "b", "digits", "share"),
    [
        ("abcdef", "ABC DEF", True, 1.0),
        ("abcd", "abce", True, 0.0),
        ("abcde", "abcdf", True, 1 / 3),
        ("abc", "abc", True, 1.0),
        ("abc", "abcd", True, 0.0),
        ("ab12", "ab34", True, 0.0),
        ("ab12", "ab34", False, 1.0),
        ("ａｂｃｄ", "abcd", True, 1.0),
        ("", "", True, 1.0),
    ],
)
def test_the_share_of_shingles_in_common(a, b, digits, share):
    assert _shared(a, b, digits) == pytest.approx(share)


@pytest.mark.parametrize(
    ("a", "b", "names"),
    [
        ("We saw Anna here", "We saw Berta here", True),
        ("We saw Anna here", "We saw anna here", False),
        ("Anna saw us", "Berta saw us", False),  # the first word has a capital anyway
        ("We saw Anna", "We saw Anna too", False),
        ("We saw Anna", "We saw berta", False),
        ("We saw Anna", "We met Berta", False),
        ("トム は 来た", "ジョン は 来た", True),
        ("トムは来た", "ジョンは来た", True),
        ("トムは来た", "ジョンは行った", False),
    ],
)
def test_texts_that_differ_in_names(a, b, names):
    assert differ_in_names(a, b) == differ_in_names(b, a) == names


def test_groups_of_rows_with_the_same_key_come_in_batches(monkeypatch):
    keys = np.random.default_rng(0).integers(0, 9, 30).astype(np.uint64)
    rows = np.arange(100, 130)
    groups = [own.tolist() for own in _groups_by_key(rows, keys)]
    assert groups == [own for key in range(9) if len(own := rows[keys == key].tolist()) > 1]
    monkeypatch.setattr(module, "_BLOCK", 6)
    sizes = [[len(group) for group in batch] for batch in _batches([range(n) for n in (2, 3, 1, 5, 1, 6, 2)])]
    assert sizes == [[2, 3, 1], [5, 1], [6], [2]]
    assert list(_batches([range(6)])) == [[range(6)]]


def test_dropped_lines_are_written_with_the_line_that_they_repeat(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"One cat\ntwo\n  one  CAT \ntwo\nthree\n")
    found = dedup(None, tmp_path / "a.txt", tmp_path / "b.txt", rejects=tmp_path / "no.tsv", threshold=None)
    assert (tmp_path / "b.txt").read_bytes() == b"One cat\ntwo\nthree\n"
    assert (tmp_path / "no.tsv").read_bytes() == (
        b"near\t1.000000\t3\t1\tOne cat\t  one  CAT \nexact\t1.000000\t4\t2\ttwo\ttwo\n"
    )
    assert str(found) == "5 lines read, 3 kept; dropped: 1 exact, 1 near; largest cluster: 2 lines"
    assert [tuple(line) for line in found][2:4] == [(2, "near", 1.0, 0, 0), (3, "exact", 1.0, 1, 1)]


@pytest.mark.parametrize("name", ["threshold", "near"])
def test_limits_of_what_counts_as_a_duplicate(name):
    for fine in (1.0, 0.01, None):
        DedupConfig(**{name: fine})
    for wrong in (0.0, 1.01, float("nan")):
        with pytest.raises(ConfigError, match=rf"^{name}={wrong}: give a number above 0 and up to 1, or null for none$"):
            DedupConfig(**{name: wrong})


def test_each_kind_of_duplicate_names_the_line_that_it_repeats(model, lines):
    found = dedup(model, lines, threshold=0.99, threads=1)
    assert reasons(found)[100:] == ["exact", "near", "near", "semantic"]
    assert found.duplicate_of[100:].tolist() == [7, 8, 9, 10]
    assert found.clusters[100:].tolist() == [7, 8, 9, 10]
    assert found.scores[100:102].tolist() == [1, 1]
    assert 0.8 <= found.scores[102] < 1
    assert found.scores[103] == pytest.approx(1, abs=1e-5)
    assert (found.duplicate_of == -1).sum() == found.kept.sum() == sum(found.counts.values()) - 4


@pytest.mark.parametrize("digits", ["compare", "ignore"])
@pytest.mark.parametrize("few", [1024, 1])
def test_a_line_goes_if_any_earlier_line_is_as_near(model, sample, digits, few, monkeypatch):
    monkeypatch.setattr("xswe.mining.dedup._MAX_PRODUCT_LINES", few)
    monkeypatch.setattr("xswe.mining.dedup._BLOCK", 50)
    texts = [*sample["en"][:300], *(f"{text} {n % 3}." for n, text in enumerate(sample["en"][200:300]))]
    vectors = model.encode(texts).astype(np.float64)
    numbers = [list(map(int, re.findall(r"\d+", text))) for text in texts]
    same = np.array([[digits == "ignore" or a == b for a in numbers] for b in numbers])
    cosines = np.tril(np.where(same, vectors @ vectors.T, 0.0), -1)
    found = dedup(model, texts, threshold=0.5, near=None, threads=1, digits=digits)
    for threshold in (0.5, 0.3, 0.8, 0.95):
        again = found.rethreshold(threshold)
        sure = np.abs(cosines.max(1) - threshold) > 1e-4
        gone = (cosines.max(1) >= threshold) | (again.reasons == 1)
        np.testing.assert_array_equal(again.kept[sure], ~gone[sure])
        assert again.kept[again.clusters].all()
    assert found.rethreshold(None).counts == dedup(None, texts, threshold=None, near=None).counts


def test_lines_that_differ_in_their_numbers_stay(model, sample):
    draw = np.random.default_rng(0)
    texts = [text for text in sample["en"] if re.search(r"\d", text)] * 4
    numbered = [re.sub(r"[1-9]", lambda _: str(draw.integers(1, 10)), text) for text in texts]
    numbered += [f"Flight {n // 60} leaves at {n % 60:02d} minutes past." for n in draw.permutation(600).tolist()]
    numbered += ["Page 1 2", "Page 12", "From 3 to 5.", "From 5 to 3."]
    distinct = list(dict.fromkeys(numbered))
    found = dedup(model, distinct, threads=1)
    assert found.kept.all()
    assert dedup(model, distinct, threads=1, digits="ignore").kept.mean() < 0.5
    again = [*distinct, f"{distinct[-1]} ", distinct[0].upper(), "In ２０２４ a cat slept.", "In 2024, a cat slept!"]
    assert dedup(model, again, threads=1).duplicate_of[-4:].tolist() == [len(distinct) - 1, 0, -1, len(again) - 2]


@pytest.mark.parametrize(
    ("line", "stays"),
    [
        ("Yesterday the old harbour of Bremen was reopened by the mayor after long repairs.", True),
        ("Yesterday the old harbour of Hamburg was reopened by the mayor after long repairs!", False),
        ("Yesterday the new harbour of Hamburg was reopened by the mayor after long repairs.", False),
        ("Yesterday the old HARBOUR of Hamburg was reopened by the mayor after long repairs.", False),
        ("昨日は古い港の改修が終わりトムが市長と一緒に長い祝辞を述べて港を開いた。", True),
        ("昨日は古い港の改修が終わりジョンが市長と一緒に長い祝辞を述べて港を開いた", False),
    ],
)
@pytest.mark.parametrize("near", [0.6, None])
def test_lines_that_differ_in_names_alone_stay(model, line, stays, near):
    texts = [
        "Yesterday the old harbour of Hamburg was reopened by the mayor after long repairs.",
        "昨日は古い港の改修が終わりジョンが市長と一緒に長い祝辞を述べて港を開いた。",
        line,
    ]
    semantic = {"threshold": 0.5} if near is None else {"threshold": None}
    found = dedup(model, texts, near=near, threads=1, **semantic)
    assert found.kept.tolist() == [True, True, stays]
    assert not dedup(model, texts, near=near, threads=1, digits="ignore", **semantic).kept[2]


def test_what_is_the_same_in_characters_or_letters_is_not_compared_again(model):
    lines = ["We saw 12 cats there.", "We saw Anna in 1999.", "A cat.", "We saw 12 cats there.", "we  saw 12 CATS there."]
    lines += ["We saw Berta in 1999.", "A cat."]
    found = dedup(model, lines, threshold=0.1, threads=1)
    assert reasons(found)[3:] == ["exact", "near", "kept", "exact"]
    assert found.nearest.tolist()[3:] == [0, 0, -1, 2]  # names tell the lines of 1999 apart
    assert np.isnan(found.scores[5])


def test_lines_of_a_template_go_where_digits_are_ignored():
    numbered = [f"次の例では CS{n:04d} が生成されます。" for n in (122, 657, 131)]
    assert dedup(None, numbered, threshold=None, digits="ignore").kept.tolist() == [True, False, False]
    assert dedup(None, numbered, threshold=None, near=0.5).kept.all()


def test_lines_that_share_most_shingles_are_found(sample):
    lines = [text for text in sample["ja"] if 30 <= len(text) <= 40 and not re.search(r"\d|[ァ-ヴー]", text)][:200]
    changed = [f"{text[:12]}々{text[13:]}" for text in lines]
    near = [_shared(*both, True) >= 0.8 for both in zip(lines, changed, strict=True)]
    found = dedup(None, [*lines, *changed], threshold=None)
    assert sum(near) > 100
    assert (~found.kept[len(lines) :])[near].mean() > 0.95


def test_texts_that_share_a_sketch_but_few_shingles_stay():
    all_shared = ["abcd" * 5, "abcd" * 6]
    assert dedup(None, all_shared, threshold=None, near=1.0).kept.tolist() == [True, False]


@pytest.mark.parametrize("name", ["a.txt", "a.tsv.gz", "a.csv", "a.jsonl"])
def test_lines_that_stay_stand_as_they_stood(model, lines, tmp_path, name):
    texts = [line.replace("\t", " ").replace('"', "'") for line in lines]
    if name == "a.csv":
        records = ["n,text\n", *(f'{n},"{text}"\n' for n, text in enumerate(texts))]
    elif name == "a.jsonl":
        records = [json.dumps({"n": n, "text": text}) + "\n" for n, text in enumerate(texts)]
    else:
        records = [f"{n}\t{text}\r\n" if name == "a.tsv.gz" else f"{text}\n" for n, text in enumerate(texts)]
    raw = "".join(records).encode()
    (tmp_path / name).write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
    column = {"a.csv": "text", "a.tsv.gz": 1}.get(name, 0)
    rejects = tmp_path / "rejects.tsv"
    found = dedup(model, tmp_path / name, tmp_path / f"out-{name}", rejects=rejects, column=column, threads=1)
    written = (tmp_path / f"out-{name}").read_bytes()
    written = gzip.decompress(written) if name.endswith(".gz") else written
    head = 1 if name == "a.csv" else 0
    kept = [record for record, stays in zip(records[head:], found.kept, strict=True) if stays]
    if name == "a.csv":
        assert written.decode().replace('"', "") == "".join([*records[:1], *kept]).replace('"', "")
    else:
        assert written.decode() == "".join(kept)
    rows = [line.split("\t", 5) for line in rejects.read_text(encoding="utf-8").splitlines()]
    assert len(rows) == (~found.kept).sum() >= 4
    assert [row[:4:3] for row in rows if row[2] == "101"] == [["exact", "8"]]
    assert all(row[4] == " ".join(texts[int(row[3]) - 1].split("\t")).strip() for row in rows)
    assert not list(Path(tmp_path).glob("*.work"))


def test_another_threshold_takes_the_search_that_is_there(model, lines, tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    monkeypatch.setattr("xswe.work.kept.BRIEF", 0.0)  # else a search that takes no time is made again
    settings = {"work": tmp_path / "work", "keep": True, "threads": 1}
    dedup(model, tmp_path / "a.txt", tmp_path / "b.txt", threshold=0.9, **settings)
    monkeypatch.setattr("xswe.search.exact.sweep", None)  # a second search would call it
    again = dedup(model, tmp_path / "a.txt", tmp_path / "b.txt", threshold=0.4, **settings)
    assert again.counts == dedup(None, lines, threshold=None).counts | again.counts


@pytest.mark.parametrize(
    ("call", "error", "found"),
    [
        (lambda path: dedup(None, ["a"]), ConfigError, "model=None"),
        (lambda path: dedup(None, ["a"], threshold=1.5), ConfigError, "threshold=1.5"),
        (lambda path: dedup(None, ["a"], threshold=None, limit=1), ConfigError, "limit"),
        (lambda path: dedup(None, ["a"], threshold=None, digits="fold"), ConfigError, "digits='fold': choose one"),
        (lambda path: dedup(None, ["a"], threshold=None, rejects="b"), ConfigError, "output="),
        (lambda path: dedup(None, path / "a.tmx", threshold=None), ConfigError, "filter"),
        (lambda path: dedup(None, path / "a.txt", path / "b.parquet", threshold=None), ConfigError, "same suffix"),
        (lambda path: dedup(None, path / "none.txt", threshold=None), InputError, "none.txt"),
    ],
)
def test_mistakes_say_what_is_wrong(tmp_path, call, error, found):
    (tmp_path / "a.txt").write_text("a\n")
    with pytest.raises(error, match=found):
        call(tmp_path)


def test_a_file_that_cannot_be_read_leaves_no_work(model, tmp_path):
    (tmp_path / "a.txt").write_bytes(b"A cat sleeps.\n\xff\n")
    with pytest.raises(InputError, match=r"a\.txt:2: not UTF-8"):
        dedup(model, tmp_path / "a.txt", tmp_path / "b.txt")
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_nothing_and_blank_lines(model):
    nothing = dedup(model, [])
    assert nothing.counts == {}
    assert str(nothing) == "0 lines read, 0 kept; dropped: none; largest cluster: 0 lines"
    assert dedup(model, ["", "a", " ", ""]).kept.tolist() == [True, True, False, False]


def test_lines_of_markdown_keep_their_suffix(tmp_path):
    (tmp_path / "a.md").write_text("* a cat\n* a cat\n* a dog\n", "utf-8")
    dedup(None, tmp_path / "a.md", tmp_path / "b.md", threshold=None)
    assert (tmp_path / "b.md").read_text("utf-8") == "* a cat\n* a dog\n"
