"""Archives that mean harm, and those that are only broken."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from xswe.errors import InputError
from xswe.io import sources
from xswe.io.sources import expand, match_member, member_names, open_member, parted, unpacked


def make_zip(path, *members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return path


def make_tar(path, *members, mode="w:gz"):
    with tarfile.open(path, mode) as archive:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


@pytest.mark.parametrize("name", ["../evil.en", "/etc/evil.en", "a/../../evil.en", "C:/evil.en", "a\\..\\evil.en"])
def test_names_that_leave_the_archive(tmp_path, name):
    for path in (make_zip(tmp_path / "a.zip", (name, "x")), make_tar(tmp_path / "a.tar.gz", (name, b"x"))):
        with pytest.raises(InputError, match="points outside"):
            member_names(path)
        with pytest.raises(InputError, match="points outside"), open_member(path, "*.en"):
            pass


def test_members_are_read_by_name_or_pattern(tmp_path):
    for path in (
        make_zip(tmp_path / "a.zip", ("d/x.en", "hello"), ("README", "about")),
        make_tar(tmp_path / "a.tgz", ("d/x.en", b"hello"), ("README", b"about")),
        make_tar(tmp_path / "a.tar", ("d/x.en", b"hello"), ("README", b"about"), mode="w"),
    ):
        assert member_names(path) == ["d/x.en", "README"]
        for pattern in ("d/x.en", "*.en", "x.en"):
            with open_member(path, pattern) as stream:
                assert stream.read() == b"hello"
        with pytest.raises(InputError, match="no member fits"), open_member(path, "*.de"):
            pass


def test_an_ambiguous_pattern(tmp_path):
    path = make_zip(tmp_path / "a.zip", ("x.en", "a"), ("y.en", "b"))
    with pytest.raises(InputError, match="2 members fit"):
        match_member(path, "*.en", member_names(path))
    path = make_zip(tmp_path / "b.zip", ("x[1].en", "a"), ("d/x[1].en", "b"))  # as a book names its chapters
    with open_member(path, "x[1].en") as stream:
        assert stream.read() == b"a"


def test_a_bomb_is_refused_by_what_it_says_and_by_what_it_does(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "_MAX_BYTES_AT_ANY_RATIO", 1 << 16)
    bomb = bytes(8 << 20)
    with pytest.raises(InputError, match="bomb"), open_member(make_zip(tmp_path / "a.zip", ("x.en", bomb)), "x.en"):
        pass
    path = make_tar(tmp_path / "a.tar.gz", ("x.en", bomb))
    with pytest.raises(InputError, match="bomb"), open_member(path, "x.en") as stream:
        stream.read()


def test_a_member_may_be_as_large_as_it_is_allowed_to_be_and_not_a_byte_larger(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "_MAX_BYTES_AT_ANY_RATIO", 1000)
    monkeypatch.setattr(sources, "MAX_RATIO", 4)
    for size, kind, refused in ((1000, 0, False), (1001, 0, True), (5000, zipfile.ZIP_STORED, False)):
        with zipfile.ZipFile(tmp_path / "a.zip", "w", kind or zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("x.en", bytes(size), kind if size == 5000 else zipfile.ZIP_DEFLATED)
        if refused:
            with pytest.raises(InputError, match=r"a\.zip: its member x\.en unpacks to over 4 times its size"):
                open_member(tmp_path / "a.zip", "x.en").__enter__()
        else:
            with open_member(tmp_path / "a.zip", "x.en") as stream:
                assert stream.read() == bytes(size)
    monkeypatch.setattr(sources, "MAX_RATIO", 0)
    for size in (1000, 1001):
        path = make_tar(tmp_path / "a.tar", ("x.en", bytes(size)), mode="w")
        with open_member(path, "x.en") as stream:
            if size == 1000:
                assert stream.read() == bytes(1000)
            else:
                with pytest.raises(InputError, match="bomb"):
                    stream.read()


def test_a_name_of_an_archive_and_its_member(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for archive in ("a.zip", "a.epub", "d/a.TAR.gz", "a.tgz", "a.tar"):
        assert parted(f"{archive}!b!c.en") == (Path(archive), "b!c.en")
    for plain in ("a.zip", "a.zip!", "a.txt!b.en", "s3://x/a.zip!b.en"):
        assert parted(plain) == (Path(plain), "")
    (tmp_path / "a.zip!b.en").touch()  # an odd name, but one that is there
    assert parted("a.zip!b.en") == (Path("a.zip!b.en"), "")


def test_frames_of_zstandard_follow_each_other_and_the_last_must_be_whole():
    zstandard = pytest.importorskip("zstandard")
    compressor, texts = zstandard.ZstdCompressor(), (b"a" * 9, b"", b"bc\n" * 20_000)
    frames = b"".join(map(compressor.compress, texts))
    for most in (7, 1 << 20):
        stream, found = unpacked(io.BytesIO(frames), ".zst"), b""
        while data := stream.read(most):
            found += data
        assert found == b"".join(texts)
    for cut in (1, len(frames) - len(compressor.compress(texts[2])) + 5):
        with pytest.raises(EOFError, match="not complete"):
            unpacked(io.BytesIO(frames[: cut if cut > 1 else -1]), ".zst").read()
    assert unpacked(io.BytesIO(b""), ".zst").read() == b""


def test_patterns_stand_for_files_in_order(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("b.txt", "a.txt", "d/c.txt", "x[1].txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "e.txt").mkdir()
    assert expand("*.txt") == ["a.txt", "b.txt", "x[1].txt"]
    assert expand(["d/*", "missing.txt", Path("*b.txt"), "x[1].txt"]) == ["d/c.txt", "missing.txt", "b.txt", "x[1].txt"]
    assert sorted(expand("**/*.txt")) == ["a.txt", "b.txt", "d/c.txt", "x[1].txt"]
    assert expand("https://example.org/a?b=[c]") == ["https://example.org/a?b=[c]"]
    with pytest.raises(InputError, match=r"^\*\.tsv: matches no file"):
        expand("*.tsv")


def test_links_are_no_text(tmp_path):
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as archive:
        info = tarfile.TarInfo("x.en")
        info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(info)
    with pytest.raises(InputError, match="link or device"), open_member(tmp_path / "a.tar.gz", "x.en"):
        pass


@pytest.mark.parametrize("name", ["a.zip", "a.tar.gz"])
@pytest.mark.parametrize("data", [b"", b"no archive", b"PK\x03\x04" + bytes(100), b"\x1f\x8b" + bytes(100)])
def test_what_is_no_archive(tmp_path, name, data):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(InputError, match="truncated or damaged"):
        member_names(tmp_path / name)
    with pytest.raises(InputError, match="truncated or damaged"), open_member(tmp_path / name, "x"):
        pass


def test_a_missing_archive(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        member_names(tmp_path / "a.zip")
