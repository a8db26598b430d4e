"""Files that are written while they are read."""

from __future__ import annotations

import os
from contextlib import ExitStack

import pytest

from xswe.errors import InputError
from xswe.io.inputs import watched
from xswe.io.lines import open_binary, read_blocks


def write_again(path):
    """Other bytes of the same size, later."""
    state = path.stat()
    path.write_bytes(path.read_bytes()[::-1])
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns + 1))


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"abc\n")
    opened = ExitStack()
    assert opened.enter_context(open_binary(path)).read() == b"abc\n"
    write_again(path)
    with pytest.raises(InputError, match=r"a.txt: changed while it was read; start again"):
        opened.close()


def test_a_file_that_changes_between_two_readings_of_a_run_is_refused(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"abc\n")
    with watched():
        assert len(list(read_blocks(path))) == 1
        assert len(list(read_blocks(path))) == 1
        write_again(path)
        with pytest.raises(InputError, match="changed while it was read"):
            list(read_blocks(path))
    assert len(list(read_blocks(path))) == 1


def test_what_is_removed_while_it_is_read_is_read_whole(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"abc\n")
    with open_binary(path) as stream:
        path.unlink()
        assert stream.read() == b"abc\n"
