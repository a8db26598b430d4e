"""Files that appear whole or not at all, and outputs that are refused."""

from __future__ import annotations

import os

import pytest

from xswe.errors import ConfigError
from xswe.files import check_output


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("kept")
    (tmp_path / "folder").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("output", "found"),
    [
        ("a.txt", "is also read"),
        ("folder/../a.txt", "is also read"),
        ("link", "is also read"),
        ("folder", "is a folder"),
        ("", "give the name"),
        (".", "give the name"),
        ("..", "is a folder"),
        ("a.txt/b", "a.txt is no folder"),
        ("a.txt/b/c", "a.txt is no folder"),
    ],
)
def test_an_output_that_would_do_harm_is_refused(here, output, found):
    os.symlink("a.txt", here / "link")
    with pytest.raises(ConfigError, match=found):
        check_output(output, ["-", here / "a.txt", "missing"])


def test_an_output_that_can_be_written_is_not_refused(here):
    for output in ("-", "new", "folder/new", "new/folder/file", "a.txt"):
        check_output(here / output if output != "-" else output, ["-", "other"])


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_an_output_in_a_folder_of_others_is_refused(here):
    (here / "folder").chmod(0o555)
    with pytest.raises(ConfigError, match="nothing may be written"):
        check_output(here / "folder" / "new" / "a.txt")
