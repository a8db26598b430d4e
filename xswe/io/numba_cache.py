"""The folder of compiled functions if neither the package's nor the user's cache folder is writable.

numba refuses to define a cached function without a writable folder for it: in a container whose package belongs to the
system, run by a user without a home, even the import would fail.
"""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path


def find_room() -> None:
    """Point numba to a private temporary folder, unless its own choices are writable.

    Call it before numba is imported; it does not import numba itself.
    """
    if not hasattr(os, "getuid") or "NUMBA_CACHE_DIR" in os.environ or _can_write(_users_cache()):
        return
    package = Path(__file__).parent.parent
    if all(_can_write(folder / "__pycache__") for folder in {file.parent for file in package.rglob("*.py")}):
        return
    try:
        room = _private_folder()
    except OSError:  # no temporary files either: numba will report it
        return
    os.environ["NUMBA_CACHE_DIR"] = room
    if "numba" in sys.modules:  # it has read its settings already
        sys.modules["numba"].config.CACHE_DIR = room


def _users_cache() -> Path:
    """Return numba's cache folder of the user."""
    if sys.platform == "darwin":
        return Path(os.path.expanduser("~/Library/Caches/numba"))
    return Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")) / "numba"


def _can_write(folder: Path) -> bool:
    """Return True if files can be written into a folder, or it can be created."""
    while not os.path.lexists(folder) and folder != folder.parent:
        folder = folder.parent
    return folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)


def _private_folder() -> str:
    """Return a folder that nobody else can write to, as the code in it is executed."""
    import tempfile  # slow to import, and hardly ever needed

    shared = os.path.join(tempfile.gettempdir(), f"xswe-{os.getuid()}")
    try:
        os.mkdir(shared, 0o700)
    except FileExistsError:
        found = os.lstat(shared)
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
            return tempfile.mkdtemp(prefix="xswe-")
    return shared
