"""What is asked of the command itself, before any verb."""

from __future__ import annotations

import pytest

from xswe.cli.main import main
from xswe.version import __version__


@pytest.mark.parametrize("asked", ["-V", "--version", "version"])
def test_the_version_is_told_by_any_of_its_names(asked, capsys):
    assert main([asked]) == 0
    assert capsys.readouterr().out == f"{__version__}\n"


def test_help_of_a_verb_is_what_the_verb_says_itself(capsys):
    assert main(["help", "mine"]) == 0
    shown = capsys.readouterr().out
    assert main(["mine", "--help"]) == 0
    assert shown == capsys.readouterr().out
    assert "threshold=" in shown
    assert main(["help", "mien"]) == 2
    assert "did you mean mine?" in capsys.readouterr().err
