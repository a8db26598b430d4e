"""One list of packed suffixes, for every part that reads or names a packed file."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import sys
import tarfile

import pytest

from xswe.bitext.source import find_pairs, read_pairs
from xswe.corpus.decontamination import EvaluationTexts
from xswe.errors import DependencyError, InputError
from xswe.io.files import open_output
from xswe.io.lines import read_lines
from xswe.io.ragged import Texts
from xswe.io.sources import PACKED, is_tar, member_names, open_member, packing_of, without_packing
from xswe.model.licences import sources_of
from xswe.model.word_vectors import read_vectors

SUFFIXES = [*PACKED, ".GZ", ".Zst"]


def packed(path, text):
    """Write a file packed as its name says."""
    data = text if isinstance(text, bytes) else text.encode()
    kind = path.suffix.lower()
    if kind.startswith(".zst"):
        data = pytest.importorskip("zstandard").compress(data)
    path.write_bytes({".gz": gzip.compress, ".xz": lzma.compress, ".bz2": bz2.compress}.get(kind, bytes)(data))
    return path


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_part_knows_every_packing(tmp_path, suffix):
    assert packing_of(f"a.tsv{suffix}") == suffix.lower()
    assert without_packing(f"a.tsv{suffix}").name == "a.tsv"
    path = packed(tmp_path / f"sts.tsv{suffix}", "A cat sleeps.\t猫\n")
    assert list(read_lines(path)) == [(1, "A cat sleeps.\t猫")]
    assert EvaluationTexts([path]).count == 2
    packed(tmp_path / f"m.en{suffix}", "a\n")
    packed(tmp_path / f"m.ja{suffix.lower()}", "あ\n")
    assert find_pairs([tmp_path / f"m.en{suffix}"], ("en", "ja"))[0].kind == "moses"
    vectors = packed(tmp_path / f"v.vec{suffix}", "1 2\ncat 1 2\n")
    assert read_vectors(vectors)[0] == ["cat"]
    (source,) = sources_of({}, {"en-de": {"checksums": {f"tatoeba.tsv{suffix}": "1"}}})
    assert source.licence == "CC BY 2.0 FR"


@pytest.mark.parametrize("suffix", PACKED)
def test_the_output_of_mining_too(tmp_path, suffix):
    with open_output(str(tmp_path / f"x.tsv{suffix}")) as stream:
        stream.write(b"a\tb\n")
    assert list(read_lines(tmp_path / f"x.tsv{suffix}")) == [(1, "a\tb")]


@pytest.mark.parametrize("suffix", ["", *PACKED])
def test_tar_archives_in_every_packing(tmp_path, suffix):
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as archive:
        for name, data in (("README", b"about"), ("d/x.en", b"hello\n" * 5000)):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    path = packed(tmp_path / f"a.tar{suffix}", raw.getvalue())
    assert is_tar(path)
    assert member_names(path) == ["README", "d/x.en"]
    with open_member(path, "*.en") as stream:
        assert stream.read() == b"hello\n" * 5000
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(InputError, match="truncated or damaged"):
        member_names(path)


@pytest.mark.parametrize("name", ["a.csv.gz", "a.po.gz", "a.jsonl.gz", "a.tmx.gz"])
def test_bitext_cut_short_is_named(tmp_path, name):
    """Numbers, which pack badly, so that it is cut in their middle."""
    numbers = "".join(f"{number * number},{number**3}\n" for number in range(5000))
    (tmp_path / name).write_bytes(gzip.compress(f"en,ja\n{numbers}".encode())[:-2000])
    (file,) = find_pairs([tmp_path / name], ("en", "ja"))
    with pytest.raises(InputError, match=name):
        list(read_pairs(file))


@pytest.mark.parametrize("name", ["x.tsv.zstd", "x.jsonl.zstd", "x.tsv.zst", "X.TSV.GZ"])
def test_packed_evaluation_texts_in_a_folder_are_kept_out(tmp_path, name):
    folder = tmp_path / "eval"
    folder.mkdir()
    (folder / "other.tsv").write_text("A dog runs.\tx\n")
    record = '{"text": "A cat sleeps."}\n' if "jsonl" in name else "1\tA cat sleeps.\n"
    packed(folder / name, record)
    texts = EvaluationTexts([folder])
    assert len(texts.files) == 2
    assert texts.known(Texts.of(["A cat sleeps."]))[0].tolist() == [True]


def test_a_file_of_a_folder_that_is_not_read_is_named(tmp_path, caplog):
    (tmp_path / "a.tsv").write_text("A cat sleeps.\tx\n")
    for name in ("test.csv.zip", "more.data", ".hidden.data"):
        (tmp_path / name).write_text("A dog runs.\n")
    EvaluationTexts([tmp_path])
    said = f"corpus.decontaminate: {tmp_path} has files of unknown suffix, which are not read: more.data, test.csv.zip{{}}"
    assert caplog.messages == [f"{said.format('')}; name one to have it read"]
    for count, more in ((8, ""), (9, " and 1 more")):
        for k in range(2, count):
            (tmp_path / f"z{k}.data").touch()
        caplog.clear()
        EvaluationTexts([tmp_path])
        further = "".join(f", z{k}.data" for k in range(2, 8))
        assert caplog.messages == [f"{said.format(further)}{more}; name one to have it read"]
    caplog.clear()
    EvaluationTexts([tmp_path / "a.tsv"])
    assert not caplog.text


def test_evaluation_texts_in_parquet_need_its_library(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(InputError, match=r"bad\.parquet: not a Parquet file"):
        EvaluationTexts([tmp_path / "bad.parquet"])
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(DependencyError, match=r"xswe\[corpora\]"):
        EvaluationTexts([tmp_path / "bad.parquet"])
