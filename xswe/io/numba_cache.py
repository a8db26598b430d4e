"""The folder of compiled functions where neither this package's folder nor the user's own is writable.

numba refuses to define a cached function without a writable place for it: in a container whose package belongs to the
system, run by a user without a home, not even the import would work.
"""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path


def find_room() -> None:
    """Point numba to a private folder among the temporary files, unless its own choices are writable.

    To be called before numba is imported, and without importing it.
    """
    if not hasattr(os, "getuid") or "NUMBA_CACHE_DIR" in os.environ or _can_write(_users_cache()):
        return
    package = Path(__file__).parent.parent
    if all(_can_write(folder / "__pycache__") for folder in {file.parent for file in package.rglob("*.py")}):
        return
    try:
        room = _private_folder()
    except OSError:  # no temporary files either: numba will say that it has no place
        return
    os.environ["NUMBA_CACHE_DIR"] = room
    if "numba" in sys.modules:  # it has read its settings already
        sys.modules["numba"].config.CACHE_DIR = room


def _users_cache() -> Path:
    """Return the folder that numba uses for a user."""
    if sys.platform == "darwin":
        return Path(os.path.expanduser("~/Library/Caches/numba"))
    return Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")) / "numba"


def _can_write(folder: Path) -> bool:
    """Return True if files can be written into a folder, which may have to be made first."""
    while not os.path.lexists(folder) and folder != folder.parent:
        folder = folder.parent
    return folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)


def _private_folder() -> str:
    """Return a folder that nobody else can write to, as code in it is run."""
    import tempfile  # with much in tow, and hardly ever needed

    shared = os.path.join(tempfile.gettempdir(), f"xswe-{os.getuid()}")
    try:
        os.mkdir(shared, 0o700)
    except FileExistsError:
        found = os.lstat(shared)
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
            return tempfile.mkdtemp(prefix="xswe-")
    return shared
