"""Archives that mean harm, and those that are only broken."""

from __future__ import annotations

import io
import tarfile
import zipfile

import pytest

from xswe.errors import InputError
from xswe.io import sources
from xswe.io.sources import match_member, member_names, open_member


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
