"""Hard negatives for training: for every pair of a bitext the wrong targets that are nearest to its source.

Written as sentence-transformers takes them: columns ``anchor``, ``positive``, ``negative_1``, … and no others, which
``MultipleNegativesRankingLoss`` reads in this order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from xswe.corpus.records import RecordFile
from xswe.errors import ConfigError
from xswe.io.files import scratch, work_folder
from xswe.io.lines import OnError
from xswe.io.ragged import Texts
from xswe.io.results import Result, check_suffix
from xswe.io.settings import changed
from xswe.mining.margin import row_cosines
from xswe.mining.side import identity_key
from xswe.model.ensemble import AnyModel
from xswe.search.neighbours import find_neighbours
from xswe.search.types import Neighbours, SearchConfig
from xswe.search.vectors import Storage, Vectors, encoded_to

_BLOCK = 16_384
_SUFFIXES = (".csv", ".jsonl", ".parquet", ".tsv")


@dataclass(frozen=True)
class NegativesConfig:
    """Which wrong targets are taken.

    Attributes:
        negatives: of each pair; pairs with fewer are left out.
        candidates: nearest targets that they are chosen from.
        relative_margin: a negative's cosine with the anchor is at most (1 - relative_margin) times the positive's: what is
            nearer may well be a translation, too.
        min_score: least cosine of a negative; None for any.
        columns: of source and target in separated text, from 0; names of columns, or of fields of JSON.
        languages: of source and target, for ``.tmx`` and ``.jsonl``.
        on_error: what a damaged record does: ``raise``, or ``skip``.
        storage: of the vectors on the disk: ``float32``, ``float16`` or ``int8``.
        neighbours: how neighbours are sought.
    """

    negatives: int = 4
    candidates: int = 16
    relative_margin: float = 0.05
    min_score: float | None = None
    columns: tuple[int | str, ...] = (0, 1)
    languages: tuple[str, ...] = ()
    on_error: OnError = "raise"
    storage: Storage = "float32"
    neighbours: SearchConfig = field(default_factory=SearchConfig)

    def __post_init__(self) -> None:
        if not 1 <= self.negatives <= self.candidates:
            raise ConfigError(f"negatives={self.negatives}: give a number from 1 to candidates={self.candidates}")
        if not 0 <= self.relative_margin < 1:
            raise ConfigError(f"relative_margin={self.relative_margin}: give a share from 0 to below 1, as in 0.05")


@dataclass(frozen=True, eq=False)
class HardNegatives(Result):
    """Pairs with their hard negatives, in the order of the bitext.

    Attributes:
        anchors: the n source texts.
        positives: their targets.
        targets: all distinct targets.
        negatives: int64 (n, negatives), places in ``targets``, nearest first.
        read: pairs read; those that are missing among the n have too few negatives within the margin.
    """

    anchors: Texts
    positives: Texts
    targets: Texts
    negatives: np.ndarray
    read: int

    def __len__(self) -> int:
        return len(self.negatives)

    def __repr__(self) -> str:
        return f"HardNegatives({len(self):,} of {self.read:,} pairs, {self.negatives.shape[1]} negatives each)"

    def __str__(self) -> str:
        few = f", {self.read - len(self):,} have too few within the margin" if len(self) < self.read else ""
        return f"{self.read:,} pairs, {len(self):,} with {self.negatives.shape[1]} negatives{few}"

    def columns(self) -> tuple[str, ...]:
        """Return ``anchor``, ``positive``, ``negative_1``, …."""
        return ("anchor", "positive", *(f"negative_{n}" for n in range(1, self.negatives.shape[1] + 1)))

    def types(self) -> dict[str, str]:
        """Return that all columns are texts, however few there are."""
        return dict.fromkeys(self.columns(), "string")

    def records(self) -> Iterator[tuple[str, ...]]:
        """Return the texts of each pair."""
        for row, wrong in enumerate(self.negatives.tolist()):
            yield (self.anchors[row], self.positives[row], *(self.targets[place] for place in wrong))


def mine_negatives(
    model: AnyModel,
    bitext: Sequence[tuple[str, str]] | str | Path | Sequence[str | Path],
    output: str | Path | None = None,
    *,
    config: NegativesConfig | None = None,
    **settings: Any,
) -> HardNegatives:
    """Find, for every pair of a bitext, the wrong targets that are nearest to its source.

    No negative is, but for case and blanks, the target of any pair with the same source.

    Args:
        model: what encodes.
        bitext: a list of pairs; a file (tab-separated, ``.csv``, ``.jsonl``, ``.tmx``); or two line-aligned files.
        output: a file that the table is written to as well, see :meth:`xswe.io.results.Result.write`. A killed run goes on
            with its search from ``<output>.work``.
        config: which negatives; see :class:`NegativesConfig`.
        settings: single fields of it: ``negatives``, ``relative_margin``, …; ``threads`` and ``method`` are those of the
            search.

    Raises:
        ConfigError: a setting is unknown or impossible.
        InputError: a file is missing or damaged.

    Example:
        >>> import xswe
        >>> pairs = [("The train is late.", "Der Zug hat Verspätung."), ("The train is on time.", "Der Zug ist pünktlich.")]
        >>> pairs.append(("Bread is cheap.", "Brot ist billig."))
        >>> found = xswe.mine_negatives(xswe.load("mini"), pairs, negatives=1)
        >>> next(iter(found.records()))
        ('The train is late.', 'Der Zug hat Verspätung.', 'Der Zug ist pünktlich.')
    """
    config = changed(config or NegativesConfig(), settings, "mode=negatives")
    if output is not None:
        check_suffix(str(output))
    spoken = config.languages or model.pair
    anchors, positives = _pairs(bitext, config, spoken)
    letters = np.array([identity_key(text) for text in positives], np.uint64)
    _, first, place = np.unique(letters, return_index=True, return_inverse=True)
    order = np.argsort(first)  # distinct targets in the order of the bitext
    own = np.argsort(order)[place]
    targets = positives.take(first[order])
    # Of the vectors and, with an output, the search that a killed run goes on with.
    room: AbstractContextManager[str | Path]
    room = scratch("xswe-negatives-") if output is None else work_folder(str(output), None, False)
    with room as folder:
        sides = [
            encoded_to(Path(folder) / name, model, texts, config.storage, config.neighbours.workers)
            for name, texts in (("anchors.npy", anchors), ("targets.npy", targets))
        ]
        state = None if output is None else Path(folder) / "search"
        lists = find_neighbours(sides[0], sides[1], config.candidates, config.neighbours, state)
        chosen = _chosen(lists, *_known(anchors, own, len(targets)), _scores(sides, own), config)
        full = np.flatnonzero((chosen >= 0).all(axis=1))
        found = HardNegatives(anchors.take(full), positives.take(full), targets, chosen[full], len(anchors))
        if output is not None:
            found.write(output)
    return found


def _pairs(bitext: Any, config: NegativesConfig, languages: tuple[str, ...]) -> tuple[Texts, Texts]:
    """Return both sides; pairs with a blank side are left out."""
    if isinstance(bitext, (str, Path)) or (bitext and all(isinstance(path, (str, Path)) for path in bitext)):
        paths = (str(bitext),) if isinstance(bitext, (str, Path)) else tuple(map(str, bitext))
        records = RecordFile(paths, config.columns, languages, config.on_error).read()
        pairs: Iterator[tuple[str, str]] = (record.texts for record in records if record.texts is not None)
    else:
        pairs = ((a.strip(), b.strip()) for a, b in bitext)
    sides: tuple[list[str], list[str]] = ([], [])
    for pair in pairs:
        if all(pair):
            for side, text in zip(sides, pair, strict=True):
                side.append(text)
    return Texts.of(sides[0]), Texts.of(sides[1])


def _scores(sides: Sequence[Vectors], own: np.ndarray) -> np.ndarray:
    """Return the cosine of each pair, float32 (n,)."""
    blocks = [row_cosines(block, sides[1].take(own[start : start + len(block)])) for start, block in sides[0].blocks()]
    return np.concatenate(blocks) if blocks else np.zeros(0, np.float32)


def _known(anchors: Texts, own: np.ndarray, targets: int) -> tuple[np.ndarray, np.ndarray]:
    """Return keys of the anchors, the same for the same letters, to add a target's number to; and those of all pairs."""
    letters = np.array([identity_key(text) for text in anchors], np.uint64)
    keys = np.unique(letters, return_inverse=True)[1].astype(np.int64) * targets
    return keys, np.unique(keys + own)


def _chosen(
    lists: Neighbours, keys: np.ndarray, known: np.ndarray, scores: np.ndarray, config: NegativesConfig
) -> np.ndarray:
    """Return the first candidates of each row that are wrong and within the margin, int64 (n, negatives), -1 for none."""
    out = np.full((len(keys), config.negatives), -1, np.int64)
    most = np.where(scores > 0, np.float32(1 - config.relative_margin) * scores, scores)
    for start in range(0, len(keys), _BLOCK):
        part = slice(start, start + _BLOCK)
        ids, cosines = lists.forward_ids[part], lists.forward[part]
        fine = (ids >= 0) & (cosines <= most[part, None]) & ~np.isin(keys[part, None] + ids, known)
        if config.min_score is not None:
            fine &= cosines >= np.float32(config.min_score)
        rank = np.cumsum(fine, axis=1) - 1
        row, place = np.nonzero(fine & (rank < config.negatives))
        out[row + start, rank[row, place]] = ids[row, place]
    return out
