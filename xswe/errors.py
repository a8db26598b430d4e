"""Typed errors, each one line: place, problem, hint."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class XsweError(Exception):
    """Base of all user errors; the command line prints the message and exits with status 2."""


class ConfigError(XsweError):
    """A setting, or a combination of settings, that cannot work."""


class Unfinished(XsweError):
    """Work that others share: this process has done its part, and theirs is still to come; no failure."""


class ModelError(XsweError):
    """A model or teacher folder that is missing, damaged, too new, or of an unknown kind."""


class DamagedError(XsweError, ValueError):
    """A file that is not what xswe once wrote there."""


class DependencyError(XsweError):
    """An optional library that the requested function needs is not installed."""

    def __init__(self, library: str, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs the library '{library}': install it with  pip install 'xswe[{extra}]'")


@contextmanager
def needs(library: str, extra: str, purpose: str) -> Iterator[None]:
    """Raise a :class:`DependencyError` where an import inside the block fails."""
    try:
        yield
    except ImportError:
        raise DependencyError(library, extra, purpose) from None


def brief(error: BaseException, most: int | None = None) -> str:
    """Return the message of an error on one line, of at most ``most`` characters."""
    return " ".join(str(error).split())[:most]


def no_room(error: OSError) -> bool:
    """Return True if a file could not be written because its disk is full, or it is larger than it may be.

    numpy's own errors have no number: "Not enough free space to write 8 bytes", "8 requested and 4 written".
    """
    full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    return full or (error.errno is None and ("free space" in str(error) or str(error).endswith(" written")))


class InputError(XsweError):
    """Bad input text: a missing or damaged file, or a line that is not what its format says.

    Args:
        path: the file (or ``-`` for standard input).
        problem: what was found.
        hint: what the user can do about it.
        line: 1-based line number, where one line is to blame.
    """

    def __init__(self, path: str | Path, problem: str, hint: str, line: int | None = None) -> None:
        self.path, self.problem, self.hint, self.line = str(path), problem, hint, line
        where = str(path) if line is None else f"{path}:{line}"
        super().__init__(f"{where}: {problem}; {hint}")
