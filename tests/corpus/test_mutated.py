"""Two hundred damaged files of every format: each is a clear error or a counted skip, and leaves nothing behind."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
import zipfile

import numpy as np
import pytest

from xswe.bitext import lines as blocks
from xswe.bitext.source import find_pairs
from xswe.corpus.bitext import CorpusConfig
from xswe.corpus.convert import convert
from xswe.errors import XsweError

EN_JA = ("en", "ja")
ROWS = [(f"This is sentence number {i}.", f"これは{i}番目の文です。") for i in range(400)]


def tsv():
    return "".join(f"{a}\t{b}\n" for a, b in ROWS).encode()


def moses(pack=zipfile.ZIP_DEFLATED):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", pack) as archive:
        archive.writestr("X.en-ja.en", "".join(f"{a}\n" for a, _ in ROWS))
        archive.writestr("X.en-ja.ja", "".join(f"{b}\n" for _, b in ROWS))
    return out.getvalue()


def tar(name="en-ja/en-ja.txt"):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        info = tarfile.TarInfo(name)
        info.size = len(tsv())
        archive.addfile(info, io.BytesIO(tsv()))
    return out.getvalue()


def tmx():
    unit = "<tu><tuv xml:lang='en'><seg>{}</seg></tuv><tuv xml:lang='ja'><seg>{}</seg></tuv></tu>\n"
    return (
        "<?xml version='1.0'?><tmx version='1.4'><body>" + "".join(unit.format(*row) for row in ROWS) + "</body></tmx>"
    ).encode()


def xliff():
    unit = "<trans-unit id='1'><source>{}</source><target>{}</target></trans-unit>\n"
    body = "".join(unit.format(*row) for row in ROWS)
    return (
        f"<xliff version='1.2'><file source-language='en' target-language='ja'><body>{body}</body></file></xliff>".encode()
    )


def po():
    return "".join(f'msgid "{a}"\nmsgstr "{b}"\n\n' for a, b in ROWS).encode()


def mo(folder):
    import polib

    (folder / "base.po").write_bytes(po())
    polib.pofile(str(folder / "base.po")).save_as_mofile(str(folder / "base.mo"))
    return (folder / "base.mo").read_bytes()


def jsonl():
    return "".join(json.dumps({"en": a, "ja": b}) + "\n" for a, b in ROWS).encode()


def parquet():
    import pyarrow as pa
    import pyarrow.parquet as pq

    out = io.BytesIO()
    pq.write_table(pa.table({"en": [a for a, _ in ROWS], "ja": [b for _, b in ROWS]}), out)
    return out.getvalue()


@pytest.fixture(scope="module")
def bases(tmp_path_factory):
    made = {
        "a.tsv": tsv(),
        "a.tsv.gz": gzip.compress(tsv()),
        "a.zip": moses(),
        "b.zip": moses(zipfile.ZIP_STORED),
        "a.tar.gz": tar(),
        "a.tmx": tmx(),
        "a.xlf": xliff(),
        "a.po": po(),
        "a.mo": mo(tmp_path_factory.mktemp("mo")),
        "a.csv": b"en,ja\n" + tsv().replace(b"\t", b","),
        "a.jsonl": jsonl(),
        "a.parquet": parquet(),
    }
    assert len(made) == 12
    return made


def mutate(data, generator):
    """Damage a file in one of nine ways."""
    place = int(generator.integers(0, len(data)))
    size = int(generator.integers(1, 200))
    kind = int(generator.integers(0, 9))
    if kind == 0:
        return data[:place]
    if kind == 1:
        return data[:place] + generator.bytes(size) + data[place + size :]
    if kind == 2:
        return data[:place] + bytes(size) + data[place:]
    if kind == 3:
        return data[:place] + data[place + size :]
    if kind == 4:
        return data[:place] + data[max(0, place - size) :]
    if kind == 5:
        return data.replace(b"\t", b" ").replace(b"</seg>", b"", 3).replace(b"</source>", b"</sauce>", 2)
    if kind == 6:
        return data.decode("utf-8", "replace").encode("utf-16")
    if kind == 7:
        return data[:place] + "häßlich\n".encode("latin-1") + data[place:]
    return generator.bytes(len(data) // 10)


def check(folder, name, data):
    """Convert a damaged file strictly and leniently; return what came of it."""
    path = folder / name
    path.write_bytes(data)
    outcomes = []
    for on_error in ("raise", "skip"):
        out = folder / f"out-{on_error}"
        problem = ""
        try:
            bitext, report = convert(find_pairs([path], EN_JA), EN_JA, CorpusConfig(on_error=on_error), out)
        except XsweError as error:
            problem = str(error)
        if problem:
            assert "\n" not in problem
            assert problem.startswith(str(path))
            assert not out.exists()
            outcomes.append("error")
        else:
            assert report.read >= report.kept == len(bitext)
            assert all("\n" not in text and "\0" not in text for side in (bitext.source, bitext.target) for text in side)
            outcomes.append("skipped" if report.dropped else "fine")
    return outcomes


def trial(folder, bases, number):
    generator = np.random.default_rng(number)
    name = sorted(bases)[number % len(bases)]
    return check(folder, name, mutate(bases[name], generator))


@pytest.mark.parametrize("number", range(33))
def test_damaged_files(tmp_path, bases, number, monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK_LINES", 64)
    assert len(trial(tmp_path, bases, number)) == 2


@pytest.mark.slow
@pytest.mark.parametrize("number", range(33, 200))
def test_many_more_damaged_files(tmp_path, bases, number):
    assert len(trial(tmp_path, bases, number)) == 2


def test_the_whole_files_are_fine_and_damage_is_noticed(tmp_path, bases):
    for name, data in bases.items():
        folder = tmp_path / name.replace(".", "-")
        folder.mkdir()
        assert check(folder, name, data) == ["fine", "fine"], name
        (folder / "cut").mkdir()
        strict, _ = check(folder / "cut", name, data[: len(data) // 2 + 7])
        assert strict == "error" or name in ("a.po", "a.tsv"), name  # a catalogue may end after any entry


@pytest.mark.parametrize("name", ["../X.en-ja.en", "/X.en-ja.en"])
def test_traversal_leaves_nothing(tmp_path, name):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(name, "a\n")
        archive.writestr("X.en-ja.ja", "b\n")
    assert check(tmp_path, "evil.zip", out.getvalue()) == ["error", "error"]
    assert check(tmp_path, "evil.tar.gz", tar("../evil.txt")) == ["error", "error"]


@pytest.mark.slow
def test_a_line_of_a_gibibyte_in_a_small_file(tmp_path):
    path = tmp_path / "line.tsv.gz"
    with gzip.open(path, "wb", compresslevel=1) as stream:
        stream.write(b"a\tA\n")
        for _ in range(1024):
            stream.write(bytes(0x78 for _ in range(1 << 10)) * 1024)
        stream.write(b"\nb\tB\n")
    assert check(tmp_path, path.name, path.read_bytes()) == ["error", "skipped"]


@pytest.mark.slow
def test_a_zip_bomb(tmp_path):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for code in EN_JA:
            archive.writestr(f"X.en-ja.{code}", bytes(300 << 20))
    assert check(tmp_path, "bomb.zip", out.getvalue()) == ["error", "error"]
