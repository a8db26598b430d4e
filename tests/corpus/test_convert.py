"""Conversion: the pairs of the reader in memory, whatever the threads, the cuts and the kills; splits without a copy."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import time
from operator import call

import numpy as np
import pytest

from tests.bitext.test_blocks import moses_zip
from tests.corpus.loading import broken_after, load_bitext
from xswe.bitext import lines as blocks
from xswe.bitext.seen import Admission
from xswe.bitext.source import find_pairs
from xswe.corpus.bitext import Bitext, CorpusConfig
from xswe.corpus.cleaning import CleanConfig
from xswe.corpus.convert import convert, open_training, prepare
from xswe.corpus.splits import part_of, split_rows
from xswe.errors import ConfigError, InputError, XsweError
from xswe.io.files import read_json
from xswe.io.parallel import in_order
from xswe.io.ragged import Bags, FlatWriter
from xswe.work import kept

EN_JA = ("en", "ja")
ALL = CleanConfig(normalise="NFC", identical=True, near_duplicates=True, hubs=5)


def corpus(folder, lines=3000, seed=0):
    """A Moses zip and a TSV with repeats, blanks and boilerplate."""
    generator = np.random.default_rng(seed)
    sides = [[], []]
    for n in generator.integers(0, lines, lines):
        sides[0].append(f"sentence {n} of {n * n % 97} words" if n % 11 else ("" if n % 2 else "Home"))
        sides[1].append(f"文{n}は{n * 7 % 89}語")
    moses_zip(
        folder / "x.zip",
        source="\n".join(sides[0]).encode() + b"\n",
        target="\n".join(sides[1]).encode() + b"\n",
        scores=b"",
    )
    rows = "".join(f"{a}x\t{b}\n" for a, b in zip(*sides, strict=True))
    (folder / "y.tsv").write_text(rows, encoding="utf-8")
    return find_pairs([folder / "x.zip", folder / "y.tsv"], EN_JA)


@pytest.mark.parametrize("clean", [CleanConfig(), CleanConfig(near_duplicates=True, hubs=5)])
def test_hashes_on_the_disk_drop_the_same_pairs(tmp_path, monkeypatch, clean):
    files = corpus(tmp_path)
    whole, report = load_bitext(files, EN_JA, CorpusConfig(clean=clean))
    monkeypatch.setattr("xswe.bitext.seen._MAX_KEYS", 300)
    monkeypatch.setattr("xswe.bitext.rows.BLOCK_PAIRS", 100)
    bitext, spilt = convert(files, EN_JA, CorpusConfig(clean=clean), tmp_path / "out")
    assert pairs(bitext) == pairs(whole)
    assert spilt.dropped == report.dropped
    assert sorted(path.suffix for path in (tmp_path / "out").iterdir()) == [".json", *[".npy"] * 4]


def test_an_admission_whose_hashes_are_on_the_disk_decides_as_one_in_memory(monkeypatch):
    generator = np.random.default_rng(0)

    def decisions(most):
        monkeypatch.setattr("xswe.bitext.seen._MAX_KEYS", most)
        admission, draws = Admission(3, (1, 2, 3)), np.random.default_rng(1)
        out = []
        for _ in range(40):
            # Every value is a hash, none is 0; a few of each come again.
            keys = mixed(draws.integers(1, 4000, 100))
            bands = mixed(draws.integers(1, 20_000, (100, 2)))
            sides = mixed(draws.integers(1, 900, (100, 2)))
            out += admission(keys, bands, sides, draws.integers(0, 2, 100).astype(np.uint8) * 9).tolist()
        return out, admission

    factor = np.uint64(generator.integers(1 << 62) * 2 + 1)

    def mixed(numbers):
        return numbers.astype(np.uint64) * factor

    whole, _ = decisions(10**9)
    for most in (1, 50, 500):
        spilt, admission = decisions(most)
        assert spilt == whole
        assert len(admission._old_pairs)
    assert {0, 1, 2, 3, 9} == set(whole)


def digests(folder):
    return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in sorted(folder.glob("*.npy"))}


def pairs(bitext):
    return list(zip(bitext.source, bitext.target, strict=True))


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK_LINES", 100)


@pytest.mark.parametrize("clean", [CleanConfig(), ALL])
def test_converted_is_what_is_read_whatever_the_threads(tmp_path, clean):
    files, config = corpus(tmp_path), CorpusConfig(clean=clean)
    expected, report = load_bitext(files, EN_JA, config)
    made = []
    for threads in (1, 3):
        folder = tmp_path / f"out{threads}"
        bitext, counts = convert(files, EN_JA, config, folder, threads=threads)
        assert pairs(bitext) == pairs(expected)
        assert (counts.read, counts.kept, counts.dropped, counts.checksums) == (
            report.read,
            report.kept,
            report.dropped,
            report.checksums,
        )
        made.append(digests(folder))
        assert sorted(p.name for p in folder.iterdir()) == [*sorted(made[0]), "signature.json"]
    assert made[0] == made[1]
    signature = read_json(tmp_path / "out1" / "signature.json")
    assert {name: entry["sha256"] for name, entry in signature["arrays"].items()} == made[0]
    assert not (tmp_path / "out1.partial").exists()


def test_a_second_call_only_opens_and_other_settings_are_refused(tmp_path):
    files = corpus(tmp_path)
    convert(files, EN_JA, CorpusConfig(), tmp_path / "out")
    before = {p.name: p.stat().st_mtime_ns for p in (tmp_path / "out").iterdir()}
    convert(files, EN_JA, CorpusConfig(), tmp_path / "out")
    assert {p.name: p.stat().st_mtime_ns for p in (tmp_path / "out").iterdir()} == before
    with pytest.raises(ConfigError, match="other files or settings"):
        convert(files, EN_JA, CorpusConfig(max_characters=9), tmp_path / "out")


def test_arrays_are_read_again_only_where_they_are_newer_than_their_signature(tmp_path):
    files = corpus(tmp_path, 100)
    convert(files, EN_JA, CorpusConfig(), tmp_path / "out")
    array = tmp_path / "out" / "en-ja.source.bytes.npy"
    written, signed = array.read_bytes(), (tmp_path / "out" / "signature.json").stat().st_mtime_ns
    message = f"{array}: damaged since it was written; remove {tmp_path / 'out'}, and give the same command again"
    other = written[:-1] + bytes([written[-1] ^ 1])
    for content, later, is_sound in (
        (written, 1, True),
        (other, 1, False),
        (other, 0, True),
        (written + b"x", 0, False),
        (written, 0, True),
    ):
        array.write_bytes(content)
        os.utime(array, ns=(signed, signed + later))
        if is_sound:
            assert len(convert(files, EN_JA, CorpusConfig(), tmp_path / "out")[0])
        else:
            with pytest.raises(InputError) as caught:
                convert(files, EN_JA, CorpusConfig(), tmp_path / "out")
            assert str(caught.value) == message


@pytest.mark.parametrize("name", ["precious", "signature.json"])
def test_a_folder_of_something_else_is_left_alone(tmp_path, name):
    files = corpus(tmp_path, 100)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / name).write_text("{}")
    with pytest.raises(ConfigError, match="no converted corpus"):
        convert(files, EN_JA, CorpusConfig(), tmp_path / "out")
    assert (tmp_path / "out" / name).read_text() == "{}"
    (tmp_path / "out" / name).unlink()
    assert len(convert(files, EN_JA, CorpusConfig(), tmp_path / "out")[0])


@pytest.mark.parametrize(("after", "clean"), [(25, CleanConfig()), *((after, ALL) for after in (1, 7, 33, 59))])
def test_a_conversion_that_broke_anywhere_ends_with_the_same_bytes(tmp_path, monkeypatch, after, clean):
    files, config = corpus(tmp_path), CorpusConfig(clean=clean)
    convert(files, EN_JA, config, tmp_path / "whole")
    monkeypatch.setattr(kept, "BRIEF", 0.0)
    with monkeypatch.context() as interrupted:
        broken_after(interrupted, after)
        with pytest.raises(KeyboardInterrupt):
            convert(files, EN_JA, config, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    _, report = convert(files, EN_JA, config, tmp_path / "out")
    assert digests(tmp_path / "out") == digests(tmp_path / "whole")
    assert report.dropped == read_json(tmp_path / "whole" / "signature.json")["report"]["dropped"]


def test_what_is_damaged_while_it_is_written_is_noticed(tmp_path, monkeypatch):
    from xswe.corpus import convert as module

    files, take = corpus(tmp_path), module.reasons_of
    monkeypatch.setattr(module, "reasons_of", lambda *given: damaged() or take(*given))

    def damaged():
        path = tmp_path / "out.partial" / "en-ja.source.bytes.npy"
        if path.stat().st_size > 20_000:
            with path.open("r+b") as stream:
                stream.seek(1000)
                stream.write(b"\xff")

    with pytest.raises(XsweError, match="damaged while it was written; give the same command again"):
        convert(files, EN_JA, CorpusConfig(), tmp_path / "out")
    assert not list(tmp_path.glob("out*"))
    monkeypatch.setattr(module, "reasons_of", take)
    assert pairs(convert(files, EN_JA, CorpusConfig(), tmp_path / "out")[0])


def test_two_that_convert_the_same_where_locks_do_nothing(tmp_path, monkeypatch):
    from xswe.corpus import convert as module

    files, put = corpus(tmp_path, 300), module._put_in_place
    convert(files, EN_JA, CorpusConfig(), tmp_path / "whole")

    def late(partial, folder):
        shutil.copytree(tmp_path / "whole", folder)  # by the other process
        put(partial, folder)

    monkeypatch.setattr(module, "_put_in_place", late)
    bitext, _ = convert(files, EN_JA, CorpusConfig(), tmp_path / "out")
    assert len(bitext)
    assert digests(tmp_path / "out") == digests(tmp_path / "whole")
    assert not (tmp_path / "out.partial").exists()


@pytest.mark.slow
def test_a_conversion_killed_again_and_again_ends_with_the_same_bytes(tmp_path):
    files = corpus(tmp_path, 120_000)
    convert(files, EN_JA, CorpusConfig(), tmp_path / "whole")
    program = (
        "import sys; from pathlib import Path; from xswe.corpus.convert import convert\n"
        "import xswe.work.kept; xswe.work.kept.BRIEF = 0.05\n"
        "from xswe.bitext.source import find_pairs; from xswe.corpus.bitext import CorpusConfig\n"
        "here = Path(sys.argv[1]); files = find_pairs([here / 'x.zip', here / 'y.tsv'], ('en', 'ja'))\n"
        "convert(files, ('en', 'ja'), CorpusConfig(), here / 'out', threads=2)"
    )

    def written():
        return sum(path.stat().st_size for path in (tmp_path / "out.partial").glob("*.npy"))

    kills, reached = 0, 0
    for _ in range(4):  # each a little after what the one before had written
        process = subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], env={**os.environ})
        while process.poll() is None and written() <= reached + 100_000:
            time.sleep(0.001)
        process.send_signal(signal.SIGKILL)
        kills += process.wait() == -signal.SIGKILL
        reached = written()
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True)
    assert kills
    assert digests(tmp_path / "out") == digests(tmp_path / "whole")


def test_damage_leaves_no_corpus(tmp_path):
    (tmp_path / "a.tsv").write_bytes(b"a\tb\n" * 500 + b"\xff\tc\n")
    files = find_pairs([tmp_path / "a.tsv"], EN_JA)
    with pytest.raises(InputError, match=r"a\.tsv:501"):
        convert(files, EN_JA, CorpusConfig(), tmp_path / "out", threads=2)
    assert not (tmp_path / "out").exists()
    (tmp_path / "a.tsv").write_bytes(b"a\tb\n" * 500 + b"d\tc\n")  # mended: what was left is of another file
    bitext, _ = convert(find_pairs([tmp_path / "a.tsv"], EN_JA), EN_JA, CorpusConfig(), tmp_path / "out")
    assert pairs(bitext) == [("a", "b"), ("d", "c")]


def test_a_split_is_the_plain_one_without_a_copy(tmp_path):
    files, config = corpus(tmp_path), CorpusConfig(held_out=0.05, development=0.05)
    bitext, _ = load_bitext(files, EN_JA, config)
    rows = split_rows(bitext, config, 3)
    apart = bitext.take(np.concatenate([rows.development, rows.held_out]))
    known = set(apart.source) | set(apart.target)
    everything = set(range(len(bitext))) - set(rows.development.tolist()) - set(rows.held_out.tolist())
    naive = [i for i in sorted(everything) if bitext.source[i] not in known and bitext.target[i] not in known]
    assert rows.train.tolist() == naive
    train = part_of(bitext, rows.train)
    assert pairs(train) == pairs(bitext.take(rows.train))
    some = split_rows(bitext, CorpusConfig(limit=200), 3)
    assert len(some.train) + len(some.development) + len(some.held_out) <= 200


def test_what_a_run_prepares_it_opens_again(tmp_path):
    files, config = corpus(tmp_path), CorpusConfig(held_out=0.1, development=0.1)
    for name in ("stage", "other"):
        (tmp_path / "run" / name).mkdir(parents=True)
    _, sizes = prepare(files, EN_JA, config, 1, tmp_path / "run" / "stage", tmp_path / "run")
    os.rename(tmp_path / "run", tmp_path / "moved")
    train = open_training(tmp_path / "moved" / "stage", EN_JA)
    assert len(train) == sizes["train"] > 0
    held_out = Bitext.open(tmp_path / "moved" / "stage" / "held_out", EN_JA)
    assert not set(held_out.source) & set(train.source)


def test_a_converted_corpus_that_was_removed(tmp_path):
    files, config = corpus(tmp_path), CorpusConfig(paths=[{"card": "ccmatrix"}], cache=str(tmp_path / "cache"))
    (tmp_path / "run" / "stage").mkdir(parents=True)
    prepare(files, EN_JA, config, 1, tmp_path / "run" / "stage", tmp_path / "run")
    (folder,) = (tmp_path / "cache" / "converted").iterdir()
    assert folder.name.startswith("ccmatrix.en-ja-")
    os.rename(folder, tmp_path / "gone")
    with pytest.raises(InputError, match="not there any more; remove"):
        open_training(tmp_path / "run" / "stage", EN_JA)


def test_bags_written_by_blocks(tmp_path):
    whole = Bags.of([[1, 2], [], [3], [4, 5, 6]])
    with FlatWriter(tmp_path, "x", "ids", np.int32) as out:
        for start, stop in ((0, 2), (2, 2), (2, 4)):
            block = whole.block(start, stop)
            out.append(block.ids, block.offsets)
    opened = Bags.open(tmp_path, "x")
    np.testing.assert_array_equal(opened.ids, whole.ids)
    np.testing.assert_array_equal(opened.offsets, whole.offsets)


def test_jobs_in_order_and_errors_in_their_place():
    def jobs():
        for n in range(20):
            if n == 15:
                raise ValueError("from the reader")
            yield lambda n=n: time.sleep(0.01 * (n % 3)) or n

    seen = []
    results = in_order(call, jobs(), 3)
    for _ in range(15):
        seen.append(next(results))
    assert seen == list(range(15))
    with pytest.raises(ValueError, match="from the reader"):
        next(results)
    assert list(in_order(call, (lambda n=n: n for n in range(9)), 4)) == list(range(9))
