"""What becomes of damaged files of texts: of every format and packing, read in every way.

    python -m eval.experiments.damaged_texts files=10000 [seed=0] [output=eval/results/damaged_texts.json]

The record is written every 200 files, and a run that was stopped goes on from it; with other code of the readers it begins
anew. So ``files=2000``, and then ``files=4000``, do the second 2,000 alone.

Whole files of each format are damaged in one of ten ways: cut off, bytes changed, inserted, removed or repeated, marks
exchanged, another encoding, a line of other bytes, a very long line, or nothing but noise. Each is read as the pairs of a
corpus and as records that stay as they stand (strictly, and skipping what is damaged), or as the paragraphs of a document.

Sound is a reading that ends, in time, either with one line that names the file, or with texts: each valid, without NUL,
and where nothing was skipped no more of them than a whole file has records.
"""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import tarfile
import tempfile
import time
import traceback
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from eval.settings import ROOT, run_script
from xswe.bitext.source import Source, find_pairs, read_pairs
from xswe.errors import XsweError
from xswe.io.files import file_digest, fingerprint, read_json
from xswe.io.lines import Skipped
from xswe.io.results import table
from xswe.text.readers import paragraphs_of

SETTINGS: dict[str, Any] = {"files": 10_000, "seed": 0, "output": ""}
PAIR = ("en", "ja")
ROWS = [(f"This is sentence number {i}.", f"これは{i}番目の文です。") for i in range(400)]
_PATIENCE = 20.0  # seconds that a reading may take
_LINE = 1 << 20  # characters of a very long line
_NOTED = 200  # files after which the record is written


def tsv() -> bytes:
    """The pairs, a line each."""
    return "".join(f"{a}\t{b}\n" for a, b in ROWS).encode()


def zipped(texts: dict[str, str | bytes], pack: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Return a zip archive of texts by their names."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", pack) as archive:
        for name, text in texts.items():
            archive.writestr(name, text)
    return out.getvalue()


def tarred(name: str, data: bytes) -> bytes:
    """Return a packed tar archive of one text."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        info = tarfile.TarInfo(name)
        info.size = len(data)
        archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def bases() -> dict[str, bytes]:
    """Return a whole file of every format of bitext, and of most in some packing, by its name."""
    import polib
    import pyarrow as pa
    import pyarrow.parquet as pq
    import zstandard

    sides = {f"X.en-ja.{code}": "".join(f"{row[k]}\n" for row in ROWS) for k, code in enumerate(PAIR)}
    tmx = "<tu><tuv xml:lang='en'><seg>{}</seg></tuv><tuv xml:lang='ja'><seg>{}</seg></tuv></tu>\n"
    xlf = "<trans-unit id='1'><source>{}</source><target>{}</target></trans-unit>\n"
    xlf2 = "<unit id='u'><segment><source>{}</source><target>{}</target></segment></unit>\n"
    units = {kind: "".join(unit.format(*row) for row in ROWS) for kind, unit in (("tmx", tmx), ("1", xlf), ("2", xlf2))}
    first = f"<xliff version='1.2'><file source-language='en' target-language='ja'><body>{units['1']}</body></file></xliff>"
    second = f"<xliff version='2.0' srcLang='en' trgLang='ja'><file id='f'>{units['2']}</file></xliff>"
    memory = f"<?xml version='1.0'?><tmx version='1.4'><body>{units['tmx']}</body></tmx>".encode()
    catalogue = "".join(f'msgid "{a}"\nmsgstr "{b}"\n\n' for a, b in ROWS).encode()
    objects = "".join(json.dumps({"en": a, "ja": b}) + "\n" for a, b in ROWS).encode()
    parquet = io.BytesIO()
    pq.write_table(pa.table({"en": [a for a, _ in ROWS], "ja": [b for _, b in ROWS]}), parquet)
    with tempfile.TemporaryDirectory() as folder:
        polib.pofile(catalogue.decode()).save_as_mofile(f"{folder}/a.mo")
        compiled = Path(folder, "a.mo").read_bytes()
    return {
        "a.tsv": tsv(),
        "a.tsv.gz": gzip.compress(tsv()),
        "a.txt.bz2": bz2.compress(tsv()),
        "a.tsv.xz": lzma.compress(tsv()),
        "a.zip": zipped(sides),
        "b.zip": zipped(sides, zipfile.ZIP_STORED),
        "c.zip": zipped({"en-ja.tmx": memory}),
        "a.tar.gz": tarred("en-ja/en-ja.txt", tsv()),
        "b.tar.gz": tarred("en-ja.jsonl", objects),
        "a.tmx": memory,
        "a.tmx.gz": gzip.compress(memory),
        "a.xlf": first.encode(),
        "b.xliff": second.encode(),
        "a.po": catalogue,
        "a.mo": compiled,
        "a.csv": b"en,ja\n" + tsv().replace(b"\t", b","),
        "a.csv.zst": zstandard.ZstdCompressor().compress(b"en;ja\n" + tsv().replace(b"\t", b";")),
        "a.jsonl": objects,
        "a.parquet": parquet.getvalue(),
        "a.xlsx": _workbook(),
    }


def _workbook() -> bytes:
    import xlsxwriter

    out = io.BytesIO()
    with xlsxwriter.Workbook(out) as book:
        sheet = book.add_worksheet()
        for place, row in enumerate([PAIR, *ROWS]):
            sheet.write_row(place, 0, row)
    return out.getvalue()


def documents() -> dict[str, bytes]:
    """Return a whole document of every format, by its name."""
    body = "".join(f"<p>{a} <b>{b}</b></p>\n" for a, b in ROWS)
    word = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    runs = "".join(f"<w:p><w:r><w:t>{a}</w:t></w:r></w:p>" for a, _ in ROWS)
    package = '<package><manifest><item id="a" href="a.xhtml"/></manifest><spine><itemref idref="a"/></spine></package>'
    return {
        "a.txt": "\n\n".join(a for a, _ in ROWS).encode(),
        "a.md": "".join(f"# {a}\n\n* {b} **{a}**\n\n" for a, b in ROWS).encode(),
        "a.html": f"<html><body>{body}</body></html>".encode(),
        "a.html.gz": gzip.compress(f"<html><body>{body}</body></html>".encode()),
        "a.epub": zipped({"content.opf": package, "a.xhtml": f"<html><body>{body}</body></html>"}),
        "a.srt": "".join(
            f"{n}\n00:00:{n % 60:02},000 --> 00:00:{n % 60:02},900\n{a}\n\n" for n, (a, _) in enumerate(ROWS, 1)
        ).encode(),
        "a.docx": zipped({"word/document.xml": f'<w:document xmlns:w="{word}"><w:body>{runs}</w:body></w:document>'}),
    }


def mutate(data: bytes, generator: np.random.Generator) -> bytes:
    """Damage a file in one of ten ways."""
    place, size = int(generator.integers(0, len(data))), int(generator.integers(1, 200))
    kind = int(generator.integers(0, 10))
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
    if kind == 8:
        return data[:place] + b"x" * (_LINE + size) + data[place:]
    return generator.bytes(len(data) // 10)


def ways(path: Path, document: bool) -> dict[str, Callable[[], tuple[list[Any], bool]]]:
    """Return the ways to read a file: each gives its texts, and whether anything was left out."""

    def pairs(on_error: Any) -> tuple[list[Any], bool]:
        skipped = Skipped()
        found = [pair for one in find_pairs([path], PAIR) for pair in read_pairs(one, on_error=on_error, skipped=skipped)]
        return found, bool(skipped.counts)

    def records(on_error: Any) -> tuple[list[Any], bool]:
        skipped = Skipped()
        found = [record.texts for record in Source((str(path),), languages=PAIR, on_error=on_error).read(skipped)]
        return [texts for texts in found if texts], bool(skipped.counts) or None in found

    if document:
        return {"paragraphs": lambda: (paragraphs_of(path), False)}
    return {
        f"{name}, {how}": lambda read=read, how=how: read(how)  # type: ignore[misc]
        for name, read in (("pairs", pairs), ("records", records))
        for how in ("raise", "skip")
    }


def trial(folder: Path, name: str, data: bytes, document: bool) -> dict[str, str]:
    """Read a damaged file in every way; return what came of each: ``error``, ``skipped``, ``fine``, or what is wrong."""
    path, out = folder / name, {}
    path.write_bytes(data)
    for way, read in ways(path, document).items():
        begin = time.perf_counter()
        try:
            found, left = read()
        except XsweError as error:
            said = str(error)
            out[way] = "error" if "\n" not in said and said.startswith(str(path)) else f"unclear: {said[:200]}"
        except Exception:
            out[way] = f"traceback: {traceback.format_exc()[-300:]}"
        else:
            texts = [text for one in found for text in ([one] if document else one)]
            bad = any("\0" in text for text in texts) or (len(found) > 3 * len(ROWS) and not (document or left))
            out[way] = "unsound" if bad else "skipped" if left else "fine"
        if time.perf_counter() - begin > _PATIENCE:
            out[way] = f"slow: {time.perf_counter() - begin:.0f} s"
    path.unlink()
    return out


def begun(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the record of an earlier run with the same seed and code of the readers, or one of no file."""
    code = [file_digest(path) for room in ("bitext", "io", "text") for path in sorted((ROOT / "xswe" / room).rglob("*.py"))]
    told = {"files": 0, "seed": settings["seed"], "readers": fingerprint(code), "readings": {}, "bad": []}
    if settings["output"] and Path(settings["output"]).is_file():
        earlier = read_json(Path(settings["output"]))
        if all(earlier.get(name) == told[name] for name in ("seed", "readers")):
            return earlier
    return told


def main(settings: dict[str, Any]) -> None:
    """Damage and read; print what came of it, and write the counts."""
    made = [(name, data, False) for name, data in bases().items()] + [(n, d, True) for n, d in documents().items()]
    told = begun(settings)
    counts = {name: Counter(one) for name, one in told["readings"].items()}
    bad: list[dict[str, Any]] = told["bad"]
    with tempfile.TemporaryDirectory() as folder:
        for number in range(told["files"], settings["files"]):
            name, data, document = made[number % len(made)]
            damaged = mutate(data, np.random.default_rng([settings["seed"], number]))
            for way, what in trial(Path(folder), name, damaged, document).items():
                counts.setdefault(name, Counter())[what.partition(":")[0]] += 1
                if what not in ("error", "skipped", "fine"):
                    bad.append({"number": number, "file": name, "way": way, "what": what})
            if settings["output"] and ((number + 1) % _NOTED == 0 or number + 1 == settings["files"]):
                told |= {"files": number + 1, "readings": counts}
                Path(settings["output"]).write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    kinds = sorted({kind for one in counts.values() for kind in one})
    print(table(["file", *kinds], [[name, *(f"{one[kind]:,}" for kind in kinds)] for name, one in counts.items()]))
    print(f"\n{settings['files']:,} damaged files: {len(bad):,} readings neither a clear error nor sound")
    for one in bad[:20]:
        print(one)


if __name__ == "__main__":
    run_script(main, SETTINGS, __doc__)
