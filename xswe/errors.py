"""Typed errors with one-line messages: place, problem, hint."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class XsweError(Exception):
    """Base class of all user errors; the command line prints the message and exits with status 2."""


class ConfigError(XsweError):
    """An invalid setting or combination of settings."""


class Unfinished(XsweError):
    """Work shared with other processes: this one has done its part, others have not yet; not a failure."""


class ModelError(XsweError):
    """A model or teacher folder that is missing, damaged, too new, or of an unknown kind."""


class DamagedError(XsweError, ValueError):
    """A file that is not as xswe wrote it."""


class DependencyError(XsweError):
    """An optional library that the requested function needs is not installed."""

    def __init__(self, library: str, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs the library '{library}': install it with  pip install 'xswe[{extra}]'")


@contextmanager
def needs(library: str, extra: str, purpose: str) -> Iterator[None]:
    """Raise a :class:`DependencyError` if an import inside the block fails."""
    try:
        yield
    except ImportError:
        raise DependencyError(library, extra, purpose) from None


def brief(error: BaseException, most: int | None = None) -> str:
    """Return the message of an error on one line, of at most ``most`` characters."""
    return " ".join(str(error).split())[:most]


def no_room(error: OSError) -> bool:
    """Return True if a file could not be written because the disk or quota is full, or the file too large.

    numpy's own errors have no number: "Not enough free space to write 8 bytes", "8 requested and 4 written".
    """
    full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    return full or (error.errno is None and ("free space" in str(error) or str(error).endswith(" written")))


class InputError(XsweError):
    """Bad input: a missing or damaged file, or a line that its format does not allow.

    Args:
        path: the file (or ``-`` for standard input).
        problem: what was found.
        hint: what the user can do about it.
        line: 1-based line number, if one line is to blame.
    """

    def __init__(self, path: str | Path, problem: str, hint: str, line: int | None = None) -> None:
        self.path, self.problem, self.hint, self.line = str(path), problem, hint, line
        where = str(path) if line is None else f"{path}:{line}"
        super().__init__(f"{where}: {problem}; {hint}")
