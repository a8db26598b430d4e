"""Downloads, resumed and verified."""

from __future__ import annotations

import http.client
import logging
import os
import shutil
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import urlsplit

from xswe.errors import InputError, brief
from xswe.io.files import check_input, file_digest, read_json, write_json
from xswe.io.locks import locked
from xswe.progress import bar
from xswe.work.kept import keep

logger = logging.getLogger(__name__)
_CHUNK = 1 << 18
_TIMEOUT = 60.0  # seconds without a byte
_ATTEMPTS = 4  # per mirror, in a row without progress
_NETWORK_ERRORS = (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError)


def fetch(
    urls: Sequence[str], target: Path, *, sha256: str | None = None, offline: bool = False, pause: float = 2.0
) -> Path:
    """Download a file to ``target`` unless it is there; ``urls`` are mirrors in order of preference (http or https).

    An interrupted download, of this run or an earlier one, is resumed if the server still has the same file. The file's
    address, size and checksum are written to ``<name>.json`` beside it. The second attempt is after ``pause`` seconds,
    which double with each further one. InputError: no mirror delivered the file, ``offline`` is set, the disk is too
    full, or the checksum is not ``sha256``.
    """
    if target.is_file():
        return target
    by_hand = f"fetch {urls[0]} by hand, save it as {target}, and give the same command again"
    if offline:
        raise InputError(target, "not there, and corpus.offline=true", by_hand)
    if wrong := [url for url in urls if urlsplit(url).scheme not in ("http", "https")]:
        raise InputError(target, f"{wrong[0]} is no http or https address", "correct the corpus card")
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f"{target.name}.part")
    problems = []
    with locked(target.parent):  # one process at a time writes partial files; a second one waits
        if target.is_file():  # another process was faster
            return target
        for url in urls:
            try:
                _from_mirror(url, part, pause)
            except (*_NETWORK_ERRORS, OSError) as error:
                problems.append(f"{urlsplit(url).netloc}: {brief(error) or type(error).__name__}")
                logger.warning("%s: %s", url, problems[-1])
                continue
            _finish(url, part, target, sha256, by_hand)
            keep(target, f"with what is fetched of {target.name}")
            return target
    raise InputError(target, f"cannot be fetched ({'; '.join(problems)})", by_hand)


def recorded_digest(path: Path) -> str | None:
    """Return the checksum recorded when a file was fetched, if its size and modification time are unchanged."""
    record = _record(path)
    if not record.is_file():
        return None
    noted, now = read_json(record), path.stat()
    return noted["sha256"] if (noted["size"], noted["mtime_ns"]) == (now.st_size, now.st_mtime_ns) else None


def _record(path: Path) -> Path:
    return path.with_name(f"{path.name}.json")


def _from_mirror(url: str, part: Path, pause: float) -> None:
    """Complete the partial file from one mirror."""
    idle = 0
    while True:
        before = part.stat().st_size if part.is_file() else 0
        try:
            if _request(url, part):
                return
        except (http.client.HTTPException, TimeoutError, ConnectionError, urllib.error.URLError) as error:
            if isinstance(error, urllib.error.HTTPError) and error.code < 500:
                raise
            grown = part.is_file() and part.stat().st_size > before
            idle = 0 if grown else idle + 1
            if idle >= _ATTEMPTS:
                raise
            logger.info("%s broke off (%s); going on", url, error)
            time.sleep(pause * 2 ** max(0, idle - 1))


def _request(url: str, part: Path) -> bool:
    """Make one request; return True once the file is complete."""
    state = part.with_name(f"{part.name}.json")
    known: dict[str, Any] = read_json(state) if state.is_file() and part.is_file() else {}
    have = part.stat().st_size if known.get("url") == url else 0
    headers = {"User-Agent": "xswe", "Accept-Encoding": "identity"}
    if have and known["validator"]:
        headers |= {"Range": f"bytes={have}-", "If-Range": known["validator"]}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=_TIMEOUT) as answer:
            if answer.status != 206:
                have = 0
            length = answer.headers.get("Content-Length")
            total = have + int(length) if length else None
            if total is not None and total - have > shutil.disk_usage(part.parent).free:
                raise OSError(
                    f"{(total - have) >> 20} MiB are needed and {shutil.disk_usage(part.parent).free >> 20} are free"
                )
            validator = answer.headers.get("ETag") or answer.headers.get("Last-Modified")
            weak = validator is not None and validator.startswith("W/")
            with open(part, "ab" if have else "wb") as out:
                write_json(state, {"url": url, "validator": None if weak else validator, "total": total})
                if validator and not weak:
                    keep(part, f"with what is fetched of {part.stem}")
                _copy(answer, out, have, total, part.name)
    except urllib.error.HTTPError as error:
        if error.code == 416 and have and have == known.get("total"):
            return True
        if error.code == 416 and have:  # the partial file is not the beginning of the server's
            part.unlink(missing_ok=True)
        raise
    if total is not None and part.stat().st_size < total:
        raise http.client.IncompleteRead(b"", total - part.stat().st_size)
    return True


def _copy(answer: BinaryIO, out: BinaryIO, have: int, total: int | None, name: str) -> None:
    with bar(f"fetch {name}", total=total, unit="B", initial=have) as progress:
        while chunk := answer.read(_CHUNK):
            out.write(chunk)
            progress.update(len(chunk))
        out.flush()
        os.fsync(out.fileno())


def _finish(url: str, part: Path, target: Path, sha256: str | None, by_hand: str) -> None:
    """Check the complete file and move it into place."""
    found = file_digest(part)
    state = part.with_name(f"{part.name}.json")
    if sha256 is not None and found != sha256.lower():
        part.unlink()
        state.unlink(missing_ok=True)
        raise InputError(target, f"{url} has the checksum {found}, where {sha256} is published", by_hand)
    size, changed = part.stat().st_size, part.stat().st_mtime_ns
    write_json(_record(target), {"url": url, "sha256": found, "size": size, "mtime_ns": changed})
    os.replace(part, target)
    state.unlink(missing_ok=True)


def digest_of(path: Path) -> str:
    """Return a file's SHA-256: as recorded when it was fetched, or computed once as long as the file does not change."""
    now = check_input(path)
    if found := recorded_digest(path):
        return found
    return _digest(path.absolute(), now.st_size, now.st_mtime_ns)


@lru_cache(maxsize=1024)
def _digest(path: Path, size: int, mtime_ns: int) -> str:
    """Hash a file, cached by size and modification time: a stage asks several times, and files may have gigabytes."""
    return file_digest(path)
