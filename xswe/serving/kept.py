"""What is made of corpora before they can be asked, kept between starts of the application."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from xswe.corpus.cards import cache_folder
from xswe.errors import XsweError
from xswe.io.files import file_stamp, fingerprint, read_json, whole_folder, write_json
from xswe.io.ragged import Texts
from xswe.model.ensemble import AnyModel
from xswe.model.static import StaticModel
from xswe.search.index import Index, index
from xswe.serving.passages import Corpus, Passages, read_corpora
from xswe.serving.postings import Postings
from xswe.version import __version__

logger = logging.getLogger(__name__)
_NUMBERS = ("units", "corpora", "lines")


@dataclass(frozen=True, eq=False)
class Opened:
    """Corpora that can be asked, by language.

    Attributes:
        passages: their passages.
        postings: which passages hold a unit.
        indexes: of the passages as sentences.
    """

    passages: dict[str, Passages]
    postings: dict[str, Postings]
    indexes: dict[str, Index]


def open_corpora(model: AnyModel, part: StaticModel, corpora: Sequence[Corpus], threads: int, keep: bool) -> Opened:
    """Read corpora and index them; or open what an earlier start made of the same files with the same model.

    It is kept below the cache folder (``XSWE_CACHE``, else ``~/.cache/xswe``), once for the same names of files, and made
    anew where a file has changed.

    Args:
        model: what encodes sentences.
        part: the model that cuts texts into units.
        corpora: the files.
        threads: how many share the work.
        keep: look for it there, and leave it there.

    Raises:
        InputError: a file is missing or damaged.
        ConfigError: there is nothing in them.
    """
    if not keep:
        return _made(model, part, corpora, threads, None)
    stamps = [file_stamp(corpus.path) for corpus in corpora]
    named = [[stamp[0], str(one.entry), one.name, one.languages] for stamp, one in zip(stamps, corpora, strict=True)]
    folder = cache_folder() / "served" / fingerprint(model.identity, part.identity, model.languages, named)
    state = {"version": __version__, "stamps": stamps}
    try:
        if (folder / "state.json").is_file() and read_json(folder / "state.json") == state:
            return _opened(folder, model)
    except (OSError, ValueError, KeyError, XsweError) as error:
        logger.warning("%s is damaged (%s), and is made anew", folder, error)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with whole_folder(folder) as place:
            _made(model, part, corpora, threads, place)
            write_json(place / "state.json", state)
    except OSError as error:
        logger.warning("nothing is kept for the next start: %s", error)
        return _made(model, part, corpora, threads, None)
    return _opened(folder, model)


def _made(model: AnyModel, part: StaticModel, corpora: Sequence[Corpus], threads: int, folder: Path | None) -> Opened:
    """Read and index, in a folder or in memory."""
    passages = read_corpora(corpora, model.languages)
    postings = {code: Postings.of(part.units.bags(own.texts), len(part.matrix)) for code, own in passages.items()}
    indexes = {}
    for code, own in passages.items():
        place = None if folder is None else folder / f"{code}.index"
        indexes[code] = index(model, own.texts, storage="int8", threads=threads, folder=place)
    if folder is not None:
        for code, own in passages.items():
            own.texts.save(folder, f"{code}.texts")
            arrays: dict[str, Any] = {name: getattr(own, name) for name in _NUMBERS}
            arrays |= postings[code]._asdict()
            for name, array in arrays.items():
                np.save(folder / f"{code}.{name}.npy", array)
        write_json(folder / "languages.json", list(passages))
    return Opened(passages, postings, indexes)


def _opened(folder: Path, model: AnyModel) -> Opened:
    """Map what was kept into memory."""

    def array(code: str, name: str) -> np.ndarray:
        return np.load(folder / f"{code}.{name}.npy", mmap_mode="r").view(np.ndarray)

    codes = read_json(folder / "languages.json")
    passages = {
        code: Passages(Texts.open(folder, f"{code}.texts"), *(array(code, name) for name in _NUMBERS)) for code in codes
    }
    postings = {code: Postings(*(array(code, name) for name in Postings._fields)) for code in codes}
    return Opened(passages, postings, {code: Index(folder / f"{code}.index", model) for code in codes})
