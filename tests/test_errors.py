"""What errors say."""

from __future__ import annotations

import errno

import pytest

from xswe.errors import DependencyError, InputError, brief, needs, no_room


def test_an_error_of_an_input_says_the_place_the_problem_and_the_cure():
    whole, one = InputError("a.txt", "no text", "write some"), InputError("-", "no text", "write some", 3)
    assert (str(whole), whole.line) == ("a.txt: no text; write some", None)
    assert (str(one), one.path, one.problem, one.hint, one.line) == (
        "-:3: no text; write some",
        "-",
        "no text",
        "write some",
        3,
    )
    assert str(InputError("a", "b", "c", 0)) == "a:0: b; c"


def test_a_missing_library_is_named_with_what_installs_it():
    with (
        pytest.raises(
            DependencyError, match=r"^reading x needs the library 'y': install it with  pip install 'xswe\[z\]'$"
        ),
        needs("y", "z", "reading x"),
    ):
        raise ImportError
    with pytest.raises(ValueError, match="other"), needs("y", "z", "reading x"):
        raise ValueError("other")


def test_a_message_of_another_library_is_put_on_one_line():
    error = ValueError("a\n  long\tmessage ")
    assert (brief(error), brief(error, 6), brief(error, 14)) == ("a long message", "a long", "a long message")


@pytest.mark.parametrize(
    ("error", "full"),
    [
        (OSError(errno.ENOSPC, "x"), True),
        (OSError(errno.EDQUOT, "x"), True),
        (OSError(errno.EFBIG, "x"), True),
        (OSError(errno.EACCES, "free space"), False),
        (OSError("Not enough free space to write 8 bytes"), True),
        (OSError("8 requested and 4 written"), True),
        (OSError("was written and lost"), False),
    ],
)
def test_a_full_disk_is_told_from_other_errors(error, full):
    assert no_room(error) == full
