"""Conversion by shards: the bytes of one process, repetitions across shards and files, kills, and the line of an error."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

import xswe
from tests.clusters import slices
from xswe.bitext import lines as blocks
from xswe.bitext.source import find_pairs
from xswe.corpus import cleaned as cutting
from xswe.corpus import convert as converting
from xswe.corpus.bitext import CorpusConfig
from xswe.corpus.cleaned import CleanedBlocks
from xswe.corpus.cleaning import CleanConfig
from xswe.corpus.convert import convert
from xswe.errors import Unfinished, XsweError
from xswe.io.files import read_json
from xswe.work import kept
from xswe.work.config import LOCAL, ExecutionConfig

EN_DE = ("en", "de")
SHARD = 8_000
CLEAN = CleanConfig(normalise="NFC", identical=True, near_duplicates=True, hubs=2)


@pytest.fixture(scope="module")
def files(sample, tmp_path_factory):
    """Text with negatives, damage, repetitions far apart and marks of byte order; more that is packed, and as JSON."""
    folder = tmp_path_factory.mktemp("bitext")
    en, de = sample["en"][:500], sample["de"][:500]
    rows = [f"{a}\t{b}\t{de[-k] if k % 3 else ''}" for k, (a, b) in enumerate(zip(en, de, strict=True), 1)]
    rows += [*rows[:60], "alone", *(f"{a}\t{b}!\t" for a, b in zip(en[:30], de, strict=False))]
    rows += [f"{en[0]}\t{b}\t" for b in de[100:110]] + [f"\ufeff{a}\t{b}\t" for a, b in zip(en, de[1:], strict=False)]
    (folder / "a.tsv").write_bytes(b"\xef\xbb\xbf" + "\n".join(rows).encode())
    (folder / "b.tsv.gz").write_bytes(gzip.compress("\n".join(rows[400:520]).encode(), mtime=0))
    (folder / "c.tsv").write_text("", encoding="utf-8")
    (folder / "d.jsonl").write_text('{"en": "A cat.", "de": "Ein Kater."}\n{}\n' * 2, encoding="utf-8")
    for code, side, end in (("en", en, "\n"), ("de", de, "")):
        texts = ["\ufeff" * (code == "en") + side[0] * 900, *side[1:300], "", *side[:20], side[7] * 400]
        (folder / f"e.{code}").write_text("\n".join(texts) + end, encoding="utf-8")
        (folder / f"f.{code}").write_text("\n".join(texts[: 300 if code == "en" else 310]), encoding="utf-8")
    paths = [
        {"path": folder / "a.tsv", "columns": (0, 1, 2)},
        *(folder / name for name in ("b.tsv.gz", "c.tsv", "d.jsonl", "e.en", "f.en")),
    ]
    return find_pairs(paths, EN_DE)


@pytest.fixture(scope="module")
def config(sample, tmp_path_factory):
    path = tmp_path_factory.mktemp("evaluation") / "texts.txt"
    path.write_text("\n".join(sample["en"][20:30]), encoding="utf-8")
    return CorpusConfig(on_error="skip", clean=CLEAN, decontaminate=(str(path),))


def content(folder: Path) -> dict:
    """What is in a folder, but for the command that made it."""
    names = {path.name for path in folder.iterdir()}
    told = read_json(folder / "signature.json")
    del told["command"]
    return {name: (folder / name).read_bytes() for name in names - {"signature.json"}} | {"told": repr(told)}


@pytest.fixture(scope="module")
def local(files, config, tmp_path_factory):
    folder = tmp_path_factory.mktemp("local") / "o"
    _, report = convert(files, EN_DE, config, folder, threads=2)
    assert {"too few columns", "duplicate", "near duplicate", "hub", "evaluation text"} <= set(report.dropped)
    assert (folder / "en-de.negatives.counts.npy").is_file()
    return content(folder)


def test_an_array_in_any_order(files, config, local, tmp_path):
    for how in slices(3, shard=SHARD)[:2]:
        with pytest.raises(Unfinished, match="clean"):
            convert(files, EN_DE, config, tmp_path / "o", execution=how)
    (stage,) = xswe.work_status(tmp_path / "o")
    cut = [path.stat().st_size for path in (file.files[0] for file in files) if path.name in ("a.tsv", "e.en")]
    assert (stage.name, stage.shards) == ("clean", 3 + sum(-(-size // SHARD) for size in cut))  # b, d and f are one each
    assert 0 < stage.done < stage.shards
    convert(files, EN_DE, config, tmp_path / "o", execution=slices(3, shard=SHARD)[2])
    assert content(tmp_path / "o") == local
    convert(files, EN_DE, config, tmp_path / "o", execution=slices(3, shard=SHARD)[0])  # one that comes late
    assert [path.name for path in tmp_path.iterdir()] == ["o"]


def test_a_task_of_an_array_that_was_waiting_when_another_ended(files, config, local, tmp_path, monkeypatch):
    ahead, how = converting.cleaned_ahead, ExecutionConfig("array", 0, 1, shard=SHARD)

    def late(*given):
        monkeypatch.setattr(converting, "cleaned_ahead", ahead)
        convert(files, EN_DE, config, tmp_path / "o", execution=how)
        raise Unfinished("x")

    monkeypatch.setattr(converting, "cleaned_ahead", late)
    convert(files, EN_DE, config, tmp_path / "o", execution=how)
    assert content(tmp_path / "o") == local
    assert [path.name for path in tmp_path.iterdir()] == ["o"]


@pytest.mark.slow
def test_however_many_workers(ray_cluster, files, config, local, tmp_path):
    for workers in (1, 2, 3):
        place = tmp_path / str(workers)
        convert(files, EN_DE, config, place, execution=ExecutionConfig("ray", workers=workers, shard=SHARD))
        assert content(place) == local
        assert not place.with_name(f"{workers}.work").exists()


def test_what_one_process_left_and_a_merge_that_was_killed(files, config, local, tmp_path, monkeypatch):
    """Blocks are others by shards: what a run without them noted must not be gone on with."""
    keep, read, calls, begun, noted = converting.kept_rows, CleanedBlocks.read, [], [], []

    def broken(*arguments):
        calls.append(1)
        if len(calls) in (4, 12):
            raise KeyboardInterrupt
        return keep(*arguments)

    def watched(blocks, begin):
        begun.append(begin)
        for place, block in read(blocks, begin):
            noted.append(place)
            yield place, block

    monkeypatch.setattr(converting, "kept_rows", broken)
    monkeypatch.setattr(CleanedBlocks, "read", watched)
    monkeypatch.setattr(blocks, "BLOCK_LINES", 60)
    monkeypatch.setattr(kept, "BRIEF", 0.0)
    reached = []
    for execution in (LOCAL, ExecutionConfig("array", 0, 1, shard=SHARD)):
        with pytest.raises(KeyboardInterrupt):
            convert(files, EN_DE, config, tmp_path / "o", execution=execution)
        assert (tmp_path / "o.partial" / "state.safetensors").is_file()
        reached.append(noted[-2])  # the last block was never taken up
    convert(files, EN_DE, config, tmp_path / "o", execution=execution)
    assert content(tmp_path / "o") == local
    assert begun == [(0, 0), (0, 0), reached[1]]
    assert (0, 0) < reached[0] != reached[1] > (0, 1)


def test_the_line_of_an_error_is_counted_from_the_beginning(files, tmp_path):
    number = 1 + files[0].files[0].read_text("utf-8").split("\n").index("alone")
    how = ExecutionConfig("array", 0, 1, shard=SHARD)
    with pytest.raises(XsweError, match=rf"a\.tsv:{number}: 1 tab-separated columns.*failed"):
        convert(files, EN_DE, CorpusConfig(), tmp_path / "o", execution=how)
    (tmp_path / "g.en").write_text("A cat sleeps on the mat.\n" * 2000, encoding="utf-8")
    (tmp_path / "g.de").write_bytes(b"Eine Katze.\n" * 1500 + b"\xff\n" + b"Ja.\n" * 499)
    with pytest.raises(XsweError, match=r"g\.de:1501: .*failed"):
        convert(find_pairs([tmp_path / "g.en"], EN_DE), EN_DE, CorpusConfig(), tmp_path / "p", execution=how)
    (tmp_path / "whole.jsonl").write_text('\n{"en": "A cat.", "de": "Ein Kater."}\n{"en": \n', encoding="utf-8")
    with pytest.raises(XsweError, match=r"whole\.jsonl:3: "):  # which is never cut
        convert(find_pairs([tmp_path / "whole.jsonl"], EN_DE), EN_DE, CorpusConfig(), tmp_path / "q", execution=how)


@pytest.mark.parametrize("chunk", [1, 2, 7, 1 << 20])
def test_lines_are_counted_and_found_however_the_file_is_read(tmp_path, monkeypatch, chunk):
    monkeypatch.setattr(cutting, "_CHUNK", chunk)
    path, draws = tmp_path / "a", np.random.default_rng(chunk)
    for _ in range(30):
        data = bytes(draws.choice([*b"ab\n"], draws.integers(0, 12)).tolist())
        path.write_bytes(data)
        begun = [0, *(k + 1 for k, byte in enumerate(data) if byte == 10)]  # a final line feed begins an empty line
        total = sum(start < len(data) for start in begun) or 1
        ends = sorted(draws.integers(1, len(data) + 2, 3).tolist())
        assert cutting._lines_before(path, ends) == ([sum(start < end for start in begun) for end in ends], total)
        lines = sorted({*draws.integers(1, 8, 3).tolist()})
        expected = [begun[line] if line < len(begun) else len(data) for line in lines]
        assert cutting._places_of(path, lines) == (expected, total)
