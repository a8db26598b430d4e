"""Bitexts read and cut the plain way."""

from collections.abc import Sequence
from itertools import count
from types import SimpleNamespace

import numpy as np

from xswe.bitext.rows import Negatives, Rows
from xswe.bitext.source import Source
from xswe.corpus import convert
from xswe.corpus.bitext import (
    Bitext,
    CorpusConfig,
    CorpusReport,
    clean_file,
    kept_rows,
    make_admission,
    make_cleaner,
    reasons_of,
)
from xswe.corpus.fetch import digest_of
from xswe.corpus.splits import part_of, split_rows
from xswe.io.ragged import concatenate


def load_bitext(
    files: Sequence[Source], languages: tuple[str, str], config: CorpusConfig, threads: int = 1
) -> tuple[Bitext, CorpusReport]:
    """Read pairs into memory, block by block: what a conversion must equal."""
    report, admission, cleaner = CorpusReport(), make_admission(config), make_cleaner(languages, config, threads)
    blocks: list[Rows] = []
    for file in files:
        for block in clean_file(file, config, cleaner, threads):
            reasons = reasons_of(block, admission)
            report.add(len(block.rows), reasons, block.rows.skipped)
            blocks.append(kept_rows(block.rows, reasons))
        report.checksums |= {str(path): digest_of(path) for path in file.files}
    negatives = _joined([rows.negatives for rows in blocks], [len(rows) for rows in blocks])
    sides = [concatenate([getattr(rows, side) for rows in blocks]) for side in ("source", "target")]
    return Bitext(languages, sides[0], sides[1], negatives), report


def _joined(parts: Sequence[Negatives | None], sizes: Sequence[int]) -> Negatives | None:
    """Put the negatives of blocks of ``sizes`` pairs one after the other; None if none has any."""
    if all(part is None or not part.bounds[-1] for part in parts):
        return None
    counts = [np.zeros(size, np.int64) if one is None else one.counts for one, size in zip(parts, sizes, strict=True)]
    bounds = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.concatenate(counts))])
    return Negatives(concatenate([part.texts[:] for part in parts if part is not None]), bounds)


def broken_after(monkeypatch, calls: int) -> None:
    """Break a conversion at one of its calls that keep rows, as Ctrl-C does."""
    counted = count(1)

    def broken(*arguments):
        if next(counted) == calls:
            raise KeyboardInterrupt
        return kept_rows(*arguments)

    monkeypatch.setattr(convert, "kept_rows", broken)


def split(bitext: Bitext, config: CorpusConfig, seed: int) -> SimpleNamespace:
    """Cut a bitext in three."""
    rows = split_rows(bitext, config, seed)
    parts = {"development": bitext.take(rows.development), "held_out": bitext.take(rows.held_out)}
    return SimpleNamespace(train=part_of(bitext, rows.train), **parts)
