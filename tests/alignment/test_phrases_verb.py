"""The verb ``phrases`` as a stranger uses it."""

from __future__ import annotations

import csv
import dataclasses
import gzip
import shutil
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer

import xswe
from tests.cli.verbs import composed, run_verb
from tests.clusters import slices
from tests.warm import kill_when
from xswe.alignment.phrases import hit_rows, read_queries, search_phrases
from xswe.errors import ConfigError, InputError, Unfinished
from xswe.model.static import StaticModel
from xswe.phrases.find import PassageFile, find_phrases
from xswe.phrases.search import Search, SpanConfig
from xswe.text.subwords import SubwordUnits
from xswe.work.config import ExecutionConfig


def cli(*arguments, cwd):
    return run_verb("phrases", *arguments, cwd=cwd)


@pytest.fixture(scope="module")
def folder(tmp_path_factory, tokenizer_json, sample):
    """A model of random vectors, phrases and gzipped passages."""
    folder = tmp_path_factory.mktemp("phrases")
    units = SubwordUnits(Tokenizer.from_str(tokenizer_json), "subwords", ("en", "de", "zh", "ja"))
    matrix = np.random.default_rng(0).normal(size=(len(units.tokens), 16)).astype(np.float32)
    StaticModel(units, matrix).save(folder / "model")
    lines = [f"{a}  {b}" for a, b in zip(sample["en"][:600], sample["ja"][:600], strict=True)]
    with gzip.open(folder / "passages.txt.gz", "wt", encoding="utf-8") as stream:
        stream.write("".join(f"{line}\n" for line in [*lines, "", *lines[:50]]))
    phrases = [" ".join(text.split()[1:4]) for text in sample["en"][:20]] + ["", sample["ja"][7][:6]]
    (folder / "damaged.txt").write_bytes(b"a cat\nb\xffd cat\nthe last cat\n")
    (folder / "terms.txt").write_text("\n".join(phrases) + "\n", encoding="utf-8")
    (folder / "few.txt").write_text("\n".join(phrases[:3]) + "\n", encoding="utf-8")
    return folder


def read_table(path):
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.reader(stream, delimiter="\t"))


SETTINGS = ("model=model", "queries=terms.txt", "input=passages.txt.gz")


def test_the_file_holds_what_the_library_finds(folder):
    done = cli(*SETTINGS, "output=hits.tsv", "k=3", "max_size=6", "threads=2", cwd=folder)
    assert done.returncode == 0, done.stderr
    header, *rows = read_table(folder / "hits.tsv")
    with gzip.open(folder / "passages.txt.gz", "rt", encoding="utf-8") as stream:
        passages = [line.rstrip("\n") for line in stream]
    queries = read_queries(str(folder / "terms.txt"))
    assert len(queries) == 21
    found = find_phrases(xswe.load(folder / "model"), queries, passages, SpanConfig(k=3, max_size=6))
    assert rows == [list(map(str, row)) for row in hit_rows(queries, found).records()]
    assert header == ["phrase", "score", "line", "start", "end", "text", "sentence"]
    assert len(rows) == 63
    for _, score, line, start, end, text, sentence in rows:
        assert sentence == passages[int(line) - 1]
        assert sentence[int(start) : int(end)] == text
        assert 0 < float(score) <= 1.0001
    assert sum(float(row[1]) > 0.9999 for row in rows) >= 21
    assert f"{len(passages):,} passages, 21 queries, 63 hits for 21" in done.stdout
    assert not [path for path in folder.iterdir() if path.name.startswith(".")]


def test_hits_are_packed_or_go_to_standard_output(folder):
    said = {}
    for output in ("a.tsv", "a.tsv.gz", "-"):
        done = cli(*SETTINGS, f"output={output}", "k=2", cwd=folder)
        assert done.returncode == 0, done.stderr
        said[output] = done
    plain = (folder / "a.tsv").read_text("utf-8")
    assert gzip.decompress((folder / "a.tsv.gz").read_bytes()).decode("utf-8") == said["-"].stdout == plain
    assert " passages, 21 queries" in said["-"].stderr
    assert not list(folder.glob("*.work"))


def test_a_damaged_line_may_be_skipped(folder):
    (folder / "cat.txt").write_text("cat\n")
    settings = ("model=model", "queries=cat.txt", "input=damaged.txt", "output=-", "k=3", "on_error=skip")
    done = cli(*settings, cwd=folder)
    assert "; left out: 1 not UTF-8" in done.stderr
    assert {line.split("\t")[2] for line in done.stdout.splitlines()[1:3]} == {"1", "3"}


# Names, contents and how many of six records are left out; cats are the third and the last.
DAMAGED: dict[str, tuple[str, bytes, int]] = {
    "tsv": ("a.tsv", b"\tx\nno column\ncat\tKatze\n\ny\tx\ncat\tKatze\n", 1),
    "tsv in Latin-1": ("a.tsv", "schön\tx\n\xff\tx\ncat\tKatze\nö\tx\n\ncat\tKatze\n".encode("latin-1"), 3),
    "long line": ("a.tsv", b"\tx\n" + b"y" * (1 << 20) + b"\tx\ncat\tKatze\n\0\tx\n\ncat\tKatze\n", 2),
    "jsonl": ("a.jsonl", b'{"en": 1\n[]\n{"en": "cat", "de": "Katze"}\n\n{"en": "y"}\n{"en": "cat", "de": "Katze"}\n', 3),
    "csv": ("a.csv", b"en,de\ny\ny,x,z\ncat,Katze\ny,x,x\ny\ncat,Katze\n", 4),
    "tmx": (
        "a.tmx",
        "<tmx><body>{}{}{}</body></tmx>".format(
            "<tu><tuv xml:lang='ja'><seg>x</seg></tuv></tu>" * 2,
            cat := "<tu><tuv xml:lang='en'><seg>cat</seg></tuv><tuv xml:lang='de'><seg>Katze</seg></tuv></tu>",
            "<tu><tuv xml:lang='en'><seg>x</seg></tuv></tu>" * 2 + cat,
        ).encode(),
        4,
    ),
}


@pytest.mark.parametrize("kind", DAMAGED)
@pytest.mark.parametrize("mode", ["phrases", "terms"])
def test_records_of_a_bitext_keep_their_numbers_when_others_are_left_out(folder, tmp_path, kind, mode):
    name, content, left_out = DAMAGED[kind]
    (tmp_path / name).write_bytes(content)
    how = {"languages": ("en", "de"), "on_error": "skip", "k": 9, "mode": mode, "min_score": 0.9}
    found = search_phrases(str(folder / "model"), "Katze", tmp_path / name, tmp_path / "out.tsv", **how)
    table = read_table(tmp_path / "out.tsv")
    rows = [dict(zip(table[0], row, strict=True)) for row in table[1:]]
    assert found.passages == 6
    assert sum(found.left_out.values()) == left_out
    assert {row["line" if mode == "phrases" else "line_1"] for row in rows} == ({"3", "6"} if mode == "phrases" else {"3"})
    assert {row["other_side"] for row in rows} == {"cat"}


def test_terms_have_a_header_and_equal_columns(folder):
    done = cli(*SETTINGS, "output=terms.tsv", "mode=terms", "k=2", "max_size=4", "examples=2", "min_score=0", cwd=folder)
    assert done.returncode == 0, done.stderr
    header, *rows = read_table(folder / "terms.tsv")
    assert header[:6] == ["term", "candidate", "score", "times", "passages", "variants"]
    assert header[6:] == ["line_1", "example_1", "line_2", "example_2"]
    assert {len(row) for row in rows} == {10}
    filled = [row for row in rows if row[1]]
    assert {row[0] for row in filled} >= set(read_queries(str(folder / "terms.txt"))[:5])
    assert all(int(row[3]) >= int(row[4]) >= 1 and row[6] and "[" in row[7] for row in filled)


def test_terms_are_written_as_tbx_that_another_library_reads(folder):
    tbx = pytest.importorskip("translate.storage.tbx")
    settings = ("output=terms.tbx", "mode=terms", "min_score=0", "languages=[en,ja]")
    assert cli(*SETTINGS, *settings, cwd=folder).returncode == 0
    units = tbx.tbxfile.parsefile(str(folder / "terms.tbx")).units
    queries = read_queries(str(folder / "terms.txt"))
    assert [unit.source for unit in units] == [" ".join(query.split()) for query in queries if query][: len(units)]
    assert len(units) >= 15
    assert all(unit.target for unit in units)
    assert 'xml:lang="ja"' in (folder / "terms.tbx").read_text("utf-8")


def test_a_phrase_is_given_itself_and_the_other_side_of_a_bitext_is_shown(folder, sample):
    lines = [f"{a}\t{b}" for a, b in zip(sample["ja"][:600], sample["en"][:600], strict=True)]
    (folder / "both.tsv").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    done = cli("model=model", "queries=the last", "input=both.tsv", "output=o.tsv", "languages=[ja,en]", "k=1", cwd=folder)
    assert done.returncode == 0, done.stderr
    header, cells = read_table(folder / "o.tsv")
    row = dict(zip(header, cells, strict=True))
    assert f"{row['other_side']}\t{row['sentence']}" == lines[int(row["line"]) - 1]
    start, end = int(row["other_start"]), int(row["other_end"])
    assert row["other_text"] == row["other_side"][start:end] != row["other_side"]


_KILLED = """
import xswe
from pathlib import Path
from xswe import progress
from xswe.phrases import find, search
search._BLOCK_SIZE, progress._CHECKPOINT_SECONDS = 20_000, 0.0
find.find_phrases(xswe.load("model"), ["cat"], find.PassageFile("long.txt", Path("work")))
"""


def test_a_search_killed_in_the_middle_ends_with_the_same_hits(folder, sample, monkeypatch, warm_python):
    lines = [" ".join(sample["en"][i : i + 4]) for i in range(len(sample["en"]) - 4)] * 12
    (folder / "long.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    assert kill_when(warm_python, [], folder, lambda: any(folder.glob("work/*/state.safetensors")), _KILLED)
    monkeypatch.setattr("xswe.phrases.search._BLOCK_SIZE", 20_000)
    model, read = xswe.load(folder / "model"), []
    monkeypatch.setattr(
        Search, "add", lambda self, block, base, add=Search.add: read.append(base) or add(self, block, base)
    )
    monkeypatch.chdir(folder)
    resumed = find_phrases(model, ["cat"], PassageFile("long.txt", folder / "work"))
    assert not read or read[0] > 0
    assert resumed == find_phrases(model, ["cat"], lines)
    shutil.rmtree(folder / "work")


@pytest.mark.parametrize("mode", [pytest.param("phrases", marks=pytest.mark.slow), "terms"])
def test_passages_that_many_search(request, folder, tmp_path, mode, monkeypatch):
    text = b"".join(gzip.decompress((folder / "passages.txt.gz").read_bytes()).splitlines(keepends=True)[:400])
    (tmp_path / "a.txt").write_bytes(text + text)
    queries, model = str(folder / "few.txt"), str(folder / "model")

    def write(name, **how):
        return search_phrases(model, queries, tmp_path / "a.txt", tmp_path / name, mode=mode, k=4, max_size=6, **how)

    write("here.tsv")
    first, *others = slices(3, shard=20_000)
    with pytest.raises(Unfinished):
        write("array.tsv", execution=first)
    assert len(xswe.work_status(tmp_path / "array.tsv")) == 1
    with pytest.raises(Unfinished):
        write("array.tsv", execution=others[0])
    found = write("array.tsv", execution=others[1])
    assert found.passages == (text + text).count(b"\n")
    assert (tmp_path / "array.tsv").read_bytes() == (tmp_path / "here.tsv").read_bytes()
    if mode == "phrases":
        request.getfixturevalue("ray_cluster")
        monkeypatch.chdir(folder)  # where the workers are not
        model = "model"
        write("ray.tsv", execution=ExecutionConfig("ray", shard=20_000))
        assert (tmp_path / "ray.tsv").read_bytes() == (tmp_path / "here.tsv").read_bytes()
        model = xswe.load("model")
        write("other.tsv", execution=ExecutionConfig("ray", shard=20_000))
        assert (tmp_path / "other.tsv").read_bytes() == (tmp_path / "here.tsv").read_bytes()
        assert not {path.name for path in tmp_path.iterdir()} & {"ray.tsv.work", "other.tsv.work"}
        with pytest.raises(ConfigError, match="others read and write the same"):
            search_phrases(model, queries, "-", "a.tsv", execution=first)


@pytest.mark.parametrize(
    ("kind", "mode"),
    [
        *(("damaged", "phrases"), ("document", "phrases")),
        *(pytest.param(kind, "terms", marks=pytest.mark.slow) for kind in ("bitext", "damaged", "document")),
    ],
)
def test_whatever_holds_the_passages_many_search_them(folder, sample, tmp_path, kind, mode):
    name, more = {"bitext": ("a.tsv", {}), "damaged": ("a.txt", {"on_error": "skip"}), "document": ("a.md", {})}[kind]
    rows = list(zip(sample["en"][:150], sample["ja"][:150], strict=True))
    content = {
        "bitext": "".join(f"{a}\t{b}\n" for a, b in rows).encode(),
        "damaged": b"".join(b"\xff\n" if row % 7 == 0 else f"{b}\n".encode() for row, (_, b) in enumerate(rows)),
        "document": "\n\n".join("".join(b for _, b in rows[start : start + 5]) for start in range(0, 150, 5)).encode(),
    }[kind]
    (tmp_path / name).write_bytes(content)
    languages = () if kind == "damaged" else ("en", "ja")
    model, files = str(folder / "model"), (folder / "few.txt", tmp_path / name, tmp_path / "o.tsv")
    how = {"mode": mode, "languages": languages, "k": 3, "max_size": 6, **more}
    here = search_phrases(model, *files, **how)
    whole = (tmp_path / "o.tsv").read_bytes()
    first, second = slices(2, shard=4_000)
    with pytest.raises(Unfinished):
        search_phrases(model, *files, **how, execution=second)
    there = search_phrases(xswe.load(model), *files, **how, execution=first)
    assert (tmp_path / "o.tsv").read_bytes() == whole
    assert (there.passages, there.left_out, there.other) == (here.passages, here.left_out, here.other)


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (["model=nowhere", *SETTINGS[1:], "output=x.tsv"], "no such folder"),
        ([*SETTINGS[:2], "input=none.txt", "output=x.tsv"], "none.txt: no such file"),
        (["model=model", "queries=none.txt", SETTINGS[2], "output=x.tsv"], "none.txt: no such file"),
        ([*SETTINGS, "output=x.tsv", "mode=guess"], "phrases, terms"),
        ([*SETTINGS, "output=x.tsv", "max_size=0"], "min_size <= max_size"),
        ([*SETTINGS, "output=x.tsv", "k=many"], "phrases.k='many': expected int"),
        ([*SETTINGS, "output=x.tsv", "max_size=100000"], "up to 1000 words"),
        ([*SETTINGS, "output=x.tsv", "k=2000000000"], "lists of 21 queries would take"),
        ([*SETTINGS, "output=x.tsv", "threads=-1"], "at least 1"),
        ([*SETTINGS, "output=x.html"], "the suffix says the format"),
        ([*SETTINGS, "output=x.tbx"], "mode=terms"),
        ([*SETTINGS, "output=x.tmx"], "languages=[en,ja]"),
        ([*SETTINGS, "output=model"], "is a folder"),
        ([*SETTINGS, "output=passages.txt.gz"], "is also read"),
        ([*SETTINGS, "output="], "output"),
        (["model=model", "queries=-", "input=-", "output=x.tsv"], "queries=- input=-: only one of them"),
        ([*SETTINGS[:2], "input=model", "output=x.tsv"], "model: a folder"),
        ([*SETTINGS[:2], "input=damaged.txt", "output=x.tsv"], "damaged.txt:2: not UTF-8"),
        (["model=teacher:mini", *SETTINGS[1:], "output=x.tsv", "mode=terms"], "mode=phrases"),
    ],
)
def test_mistakes_get_one_line_and_exit_status_2(folder, arguments, found):
    done = cli(*arguments, cwd=folder)
    assert done.returncode == 2
    assert found in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (folder / "x.tsv").exists()


def test_every_setting_of_the_code_is_in_the_configuration_with_the_same_default():
    values = composed("phrases", "model=m", "queries=q", "input=a", "output=o")
    default = SpanConfig()
    names = {f.name for f in dataclasses.fields(SpanConfig)} - {"distinct", "threads"}
    assert {name: values[name] for name in names} == {name: getattr(default, name) for name in names}


def test_files_without_a_phrase_are_refused(tmp_path: Path):
    (tmp_path / "empty.txt").write_text("\n  \n")
    with pytest.raises(InputError, match=r"empty\.txt: no phrase"):
        read_queries(str(tmp_path / "empty.txt"))
