"""The same pairs in every format and packing: every reader gets the same records, every verb decides alike."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import re
import tarfile
import zipfile
from collections.abc import Sequence
from contextlib import suppress
from html import escape
from itertools import compress
from pathlib import Path
from typing import get_args

import numpy as np
import polib
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xlsxwriter
import zstandard

import xswe
from tests.foreign import TEXTS
from xswe.alignment.phrases import PhraseFiles, PhraseSearchConfig
from xswe.bitext.convert import rewrite_bitext
from xswe.bitext.formats import BY_SUFFIX, FORMATS, format_by_name
from xswe.bitext.output import _SUFFIXES, WRITTEN, Format
from xswe.bitext.source import Source, find_pairs, read_pairs
from xswe.errors import ConfigError, InputError
from xswe.io.lines import Skipped, read_lines
from xswe.io.results import SHOWN
from xswe.io.suffixes import SUFFIXES
from xswe.serving.passages import Corpus

PAIRS = [
    ("The train is late.", "Der Zug hat Verspätung."),
    ('A "cat", it <sleeps> & dreams.', "Eine „Katze“ schläft & <träumt>."),
    ("We buy bread.", "Eine Katze schläft auf dem Dach."),
    ("It rains in Tokyo (東京).", "In Tokio (東京) regnet es."),
]
PACKINGS = {
    "": bytes,
    ".gz": gzip.compress,
    ".xz": lzma.compress,
    ".bz2": bz2.compress,
    ".zst": lambda data: zstandard.ZstdCompressor().compress(data),
}
LANGUAGES = ("en", "de")
ARCHIVES = (".zip", ".tar.gz")


def catalogue(pairs: Sequence[tuple[str, str]]) -> polib.POFile:
    found = polib.POFile()
    found.metadata = {"Language": "de", "Content-Type": "text/plain; charset=UTF-8"}
    found += [polib.POEntry(msgid=a, msgstr=b, comment="seen") for a, b in pairs]
    return found


def in_xml(text: str) -> str:
    return escape(text).replace("\r", "&#13;")


def made(suffix: str, pairs: Sequence[tuple[str, str]] = PAIRS) -> bytes:
    """The pairs as a text of a format, written without the library's own writers."""
    if suffix in (".tsv", ".txt"):
        return "".join(f"{a}\t{b}\tnote\n" for a, b in pairs).encode()
    if suffix == ".csv":
        rows = ['{},"{}","{}"'.format(n, *(text.replace('"', '""') for text in pair)) for n, pair in enumerate(pairs)]
        return "\n".join(["n,en,de", *rows, ""]).encode()
    if suffix in (".jsonl", ".ndjson"):
        return "".join(json.dumps({"en": a, "de": b, "n": 1}) + "\n" for a, b in pairs).encode()
    if suffix == ".tmx":
        units = "".join(
            f'<tu tuid="{n}"><tuv xml:lang="en-GB"><seg>{in_xml(a)}</seg></tuv>'
            f'<tuv xml:lang="de"><seg>{in_xml(b)}</seg></tuv></tu>\n'
            for n, (a, b) in enumerate(pairs)
        )
        return f'<tmx version="1.4"><header srclang="en-GB"/><body>\n{units}</body></tmx>'.encode()
    if suffix == ".po":
        return str(catalogue(pairs)).encode()
    sides = ("<source>{}</source><target>{}</target>".format(*map(in_xml, pair)) for pair in pairs)
    assert suffix in FORMATS["xliff"].suffixes, f"made() has no {suffix}"
    if suffix != ".xliff":
        units = "".join(f'<trans-unit id="{n}" xml:space="preserve">{both}</trans-unit>\n' for n, both in enumerate(sides))
        begin = '<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2"><file original="a" datatype="plaintext"'
        return f'{begin} source-language="en-US" target-language="de"><body>\n{units}</body></file></xliff>'.encode()
    units = "".join(f'<unit id="{n}"><segment id="s{n}">{both}</segment></unit>\n' for n, both in enumerate(sides))
    begin = '<xliff version="2.0" xmlns="urn:oasis:names:tc:xliff:document:2.0" srcLang="en" trgLang="de"><file id="f">'
    return f"{begin}\n{units}</file></xliff>".encode()


def put(folder: Path, suffix: str, packing: str = "", pairs: Sequence[tuple[str, str]] = PAIRS) -> Path:
    """Write the pairs into a file."""
    path = folder / f"pairs{suffix}{packing}"
    if suffix == ".parquet":
        a, b = zip(*pairs, strict=True)
        pq.write_table(pa.table({"n": range(len(a)), "en": a, "de": b, "tags": [["x"]] * len(a)}), path)
    elif suffix == ".xlsx":
        with xlsxwriter.Workbook(str(path), {"strings_to_formulas": False}) as book:
            sheet = book.add_worksheet()
            for place, row in enumerate([("n", "en", "de"), *((n, *pair) for n, pair in enumerate(pairs))]):
                sheet.write_row(place, 0, row)
    elif suffix == ".mo":
        catalogue(pairs).save_as_mofile(str(path))
    elif packing == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("README.txt", "what it is")
            archive.writestr(f"en-de/pairs{suffix}", made(suffix, pairs))
    elif packing == ".tar.gz":
        with tarfile.open(path, "w:gz") as packed:
            info = tarfile.TarInfo(f"pairs{suffix}")
            info.size = len(made(suffix, pairs))
            packed.addfile(info, io.BytesIO(made(suffix, pairs)))
    else:
        path.write_bytes(PACKINGS[packing](made(suffix, pairs)))
    return path


CELLS = [
    (suffix, packing)
    for suffix in BY_SUFFIX
    for packing in (*PACKINGS, *ARCHIVES)
    if FORMATS[BY_SUFFIX[suffix]].packed or not packing
]
CELLS = [(suffix, packing) for suffix, packing in CELLS if suffix != ".mo" or not packing]


@pytest.fixture(scope="module")
def mini():
    return xswe.load("mini")


@pytest.mark.parametrize(("suffix", "packing"), CELLS)
def test_training_and_records_read_the_same_pairs(tmp_path, suffix, packing):
    path = put(tmp_path, suffix, packing)
    wanted = sorted(PAIRS) if suffix == ".mo" else PAIRS  # whose messages are sorted
    (file,) = find_pairs([path], LANGUAGES)
    assert list(read_pairs(file)) == wanted
    assert [record.texts for record in Source((str(path),), languages=LANGUAGES).read()] == wanted


# What a format cannot hold, beside half of a surrogate pair.
NOT_HELD = {
    **dict.fromkeys((".tsv", ".txt"), "[\0\t\n\r]"),
    **dict.fromkeys((".csv", ".po", ".mo"), "\0"),
    **dict.fromkeys((".tmx", *FORMATS["xliff"].suffixes), "[^\t\n\r -\ufffd\U00010000-\U0010ffff]"),
    ".xlsx": "x{32768}",
}


@pytest.mark.parametrize("suffix", BY_SUFFIX)
def test_every_escape_is_undone(tmp_path, suffix):
    held = [text for text in TEXTS if not re.search(f"[\ud800-\udfff]|{NOT_HELD.get(suffix, '(?!)')}", text)]
    pairs = sorted((f"a {text} b", f"{n} {text} d") for n, text in enumerate(held))
    path = put(tmp_path, suffix, pairs=pairs)
    assert [record.texts for record in Source((str(path),), languages=LANGUAGES).read()] == pairs
    (file,) = find_pairs([path], LANGUAGES)
    assert list(read_pairs(file)) == [tuple(re.sub("[\t\n\r]", " ", text) for text in pair) for pair in pairs]
    if FORMATS[BY_SUFFIX[suffix]].family != "memory":  # and as a verb writes them again
        output, column = tmp_path / f"out{suffix}", 0 if suffix in (".tsv", ".txt") else "en"
        kept = xswe.dedup(None, path, output, threshold=None, column=column).kept
        assert [record.texts for record in Source((str(output),), languages=LANGUAGES).read()] == list(
            compress(pairs, kept)
        )


A, B = ("It rains in Tokyo (東京).", "In Tokio (東京) regnet es.")
ESCAPED = json.dumps(A), json.dumps(B)
TUVS = f'<tuv xml:lang="en-GB"><seg>{A}</seg></tuv><tuv xml:lang="de"><seg>{B}</seg></tuv>'
PO_HEAD = '#\nmsgid ""\nmsgstr ""\n"Language: de\\n"\n"Content-Type: text/plain; charset=UTF-8\\n"\n\n'
# By suffix: the number of the last record, the record, the same with its score, and what comes before and after records.
LAST = {
    ".tsv": (4, f"{A}\t{B}\tnote", f"{A}\t{B}\tnote\t0.333333", "", ""),
    ".csv": (5, f"3,{A},{B}", f"3,{A},{B},0.333333", "n,en,de\n", ""),
    ".jsonl": (
        4,
        '{{"en": {}, "de": {}, "n": 1}}'.format(*ESCAPED),
        f'{{"en": "{A}", "de": "{B}", "n": 1, "score": 0.333333}}',
        "",
        "",
    ),
    ".parquet": (4, f'{{"n": 3, "en": "{A}", "de": "{B}", "tags": ["x"]}}', None, "", ""),
    ".xlsx": (5, f'{{"n": 3, "en": "{A}", "de": "{B}"}}', None, "", ""),
    ".tmx": (
        4,
        f'<tu tuid="3">{TUVS}</tu>',
        f'<tu tuid="3"><prop type="x-score">0.333333</prop>{TUVS}</tu>',
        '<tmx version="1.4"><header srclang="en-GB"/><body>\n',
        "</body>\n</tmx>\n",
    ),
    ".po": (
        4,
        f'#. seen\nmsgid "{A}"\nmsgstr "{B}"\n',
        f'#. score 0.333333\n#. seen\nmsgid "{A}"\nmsgstr "{B}"\n',
        PO_HEAD,
        "",
    ),
    ".xlf": (4, f"{A}\t{B}", None, "", ""),
    ".xliff": (4, f"{A}\t{B}", None, "", ""),
}


@pytest.mark.parametrize("suffix", LAST)
def test_a_record_is_passed_on_with_all_that_stands_beside_its_texts(tmp_path, suffix):
    source = Source((str(put(tmp_path, suffix)),), languages=LANGUAGES)
    number, raw, scored, before, after = LAST[suffix]
    records = list(source.read())
    assert (records[-1].raw.decode(), records[-1].end, records[-1].texts) == (raw, b"\n", (A, B))
    assert source.frame() == (before.encode(), after.encode())
    if scored is not None:  # other formats have writers of their own
        assert source.scored(records[-1], 1 / 3).decode() == scored
    if suffix == ".jsonl":
        assert source.scored(records[-1], float("nan")).decode() == scored.replace("0.333333", "null")
    if FORMATS[BY_SUFFIX[suffix]].family != "lines":
        numbers = [number for number, *_ in source.units(Skipped())]
        assert numbers == list(range(number - 3, number + 1))
    if suffix in (".xlf", ".xliff"):  # by which its writer knows them
        assert [record.row for record in records] == [0, 1, 2, 3]
    raws = source.raw_blocks()
    assert (raws is None) == (suffix not in (".tsv", ".jsonl"))
    if raws is not None:
        assert b"".join(block.data.tobytes() for block in raws) == made(suffix)


@pytest.mark.parametrize("suffix", BY_SUFFIX)
@pytest.mark.parametrize("packing", ["", *ARCHIVES])
def test_a_corpus_to_serve_an_evaluation_and_phrases_read_the_same_pairs(tmp_path, mini, suffix, packing):
    if (suffix, packing) not in CELLS:
        pytest.skip("not packed")
    path = put(tmp_path, suffix, packing)
    wanted = sorted(PAIRS) if suffix == ".mo" else PAIRS
    corpus = Corpus.of({"path": str(path), "languages": list(LANGUAGES)})
    blocks = list(corpus.blocks(Skipped()))
    assert [pair for texts in blocks for pair in zip(texts["en"], texts["de"], strict=True)] == wanted
    accuracy = xswe.evaluate(mini, tasks=[str(path)], bootstrap=xswe.types.Bootstrap(rounds=0))
    assert any(row.n == len(PAIRS) for row in accuracy)
    if suffix != ".txt":  # which is plain text
        files = PhraseFiles("Katze", str(path), "-", PhraseSearchConfig(languages=LANGUAGES))
        assert list(files.texts().pairs(Skipped())) == wanted
        assert files.is_bitext


@pytest.mark.parametrize("kind", [kind for kind in get_args(Format) if kind != "auto"])
def test_what_is_converted_to_a_format_is_read_again_or_refused(tmp_path, monkeypatch, kind):
    suffix = next((suffix for suffix, one in _SUFFIXES.items() if one == kind), ".xyz")
    monkeypatch.setitem(_SUFFIXES, suffix, kind)  # also what no name says
    written, read = tmp_path / f"o{suffix}", tmp_path / f"again{suffix if suffix in BY_SUFFIX else '.xlf'}"
    with suppress(ConfigError):
        rewrite_bitext([put(tmp_path, ".tmx")], written, LANGUAGES)
    if not written.exists():
        assert suffix not in BY_SUFFIX
        return
    written.rename(read)
    (file,) = find_pairs([read], LANGUAGES)
    assert list(read_pairs(file)) == PAIRS


@pytest.mark.parametrize("suffix", [".tsv", ".tmx"])
def test_a_member_of_an_archive_is_named(tmp_path, mini, suffix):
    path = put(tmp_path, suffix, ".zip")
    name = f"{path}!en-de/pairs{suffix}"
    found = xswe.filter(mini, name, tmp_path / f"out{suffix}", threshold=0.3, languages=LANGUAGES, ratio=0)
    assert found.kept.tolist() == [True, True, False, True]
    assert len(list(read_lines(f"{path}!README.txt"))) == 1
    with pytest.raises(InputError, match=r"no member fits 'other\.tsv'"):
        list(read_lines(f"{path}!other.tsv"))


@pytest.mark.parametrize("suffix", [suffix for suffix in BY_SUFFIX if suffix in (*WRITTEN, ".txt")])
@pytest.mark.parametrize("score", [False, True])
def test_filter_and_score_keep_what_stands_beside_the_texts(tmp_path, mini, suffix, score):
    path, output = put(tmp_path, suffix), tmp_path / f"out{suffix}"
    if score:
        xswe.score_file(mini, path, output, languages=LANGUAGES)
        kept = PAIRS
    else:
        found = xswe.filter(mini, path, output, threshold=0.3, languages=LANGUAGES, ratio=0)
        kept = [pair for pair, stays in zip(PAIRS, found.kept, strict=True) if stays]
        assert kept == [PAIRS[0], PAIRS[1], PAIRS[3]]
    assert [record.texts for record in Source((str(output),), languages=LANGUAGES).read()] == kept
    assert format_by_name(output) == format_by_name(path)
    text = "" if suffix in (".xlsx", ".parquet") else output.read_text("utf-8")
    beside = {".tsv": "\tnote", ".csv": "3,", ".jsonl": '"n": 1', ".tmx": 'tuid="3"', ".xlf": 'id="3"', ".po": "#. seen"}
    assert beside.get(suffix, "") in text
    if suffix == ".parquet":
        table = pq.read_table(output)
        assert table["tags"].to_pylist() == [["x"]] * len(kept)
        assert ("score" in table.schema.names) == score
        assert not score or np.isfinite(table["score"].to_numpy()).all()


@pytest.mark.parametrize("suffix", [".parquet", ".xlsx"])
def test_what_is_not_read_packed_is_refused_by_name(tmp_path, mini, suffix):
    path = put(tmp_path, suffix)
    path = path.rename(f"{path}.gz")
    with pytest.raises(InputError, match=rf"{suffix} files are not read packed; unpack it"):
        xswe.filter(mini, path, threshold=0.3)
    with pytest.raises(InputError, match=rf"{suffix} files are not read packed; unpack it"):
        find_pairs([path], LANGUAGES)


@pytest.mark.parametrize("suffix", sorted({*WRITTEN, *BY_SUFFIX} - {*SHOWN, ".tsv", ".txt"}))
def test_a_format_that_is_not_lines_of_text_is_not_read_as_such(mini, tmp_path, suffix):
    (tmp_path / f"a{suffix}").write_text("{}\n")
    with pytest.raises(InputError, match=f"a {suffix} file has no text line by line"):
        xswe.encode_file(mini, tmp_path / f"a{suffix}", tmp_path / "a.npy")


@pytest.mark.parametrize("suffix", [suffix for suffix in BY_SUFFIX if FORMATS[BY_SUFFIX[suffix]].family != "memory"])
def test_dedup_reads_lines_and_tables(tmp_path, suffix):
    path, output = put(tmp_path, suffix), tmp_path / f"out{suffix}"
    column = 0 if suffix in (".tsv", ".txt") else "en"
    assert xswe.dedup(None, path, output, threshold=None, column=column).kept.all()
    assert [record.texts for record in Source((str(output),), languages=LANGUAGES).read()] == PAIRS


@pytest.mark.parametrize("suffix", [suffix for suffix in BY_SUFFIX if FORMATS[BY_SUFFIX[suffix]].family == "memory"])
def test_dedup_refuses_memories(tmp_path, suffix):
    with pytest.raises(ConfigError, match="dedup reads lines of one language"):
        xswe.dedup(None, put(tmp_path, suffix), threshold=None)


@pytest.mark.parametrize("suffix", [suffix for suffix, one in SUFFIXES.items() if one.has_rows and suffix != ".zip"])
def test_a_file_of_rows_is_read_as_its_format_or_refused(tmp_path, mini, suffix):
    """Skipping damaged records is no leave to take all of a file that has no lines for damaged."""
    if suffix in BY_SUFFIX:
        assert format_by_name(f"a{suffix}") != "tsv"
        return
    path = tmp_path / f"a{suffix}"
    path.write_bytes(b"\x93NUMPY\n" * 50)
    with pytest.raises(InputError, match=rf"pairs are not read from \{suffix} files; use \.tsv, "):
        xswe.filter(mini, path, tmp_path / "o.tsv", languages=("en", "de"), on_error="skip")
    assert not (tmp_path / "o.tsv").exists()


def test_no_span_is_read_of_what_is_read_whole(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"en": "A cat.", "de": "Eine Katze."}\n' * 3, encoding="utf-8")
    with pytest.raises(ConfigError, match="only lines of text that are not packed are read by spans"):
        Source((str(path),), ("en", "de"), span=(0, 10))
