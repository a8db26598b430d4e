"""Hard negatives of a bitext: for every pair, the wrong targets nearest to its source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Unpack

import numpy as np

from xswe.bitext.source import Source
from xswe.corpus.near_duplicates import NearDuplicates
from xswe.errors import ConfigError
from xswe.io.arguments import pairs_or_names
from xswe.io.files import check_output, fingerprint, scratch
from xswe.io.lines import OnError, Skipped, left_out_of
from xswe.io.products import row_products
from xswe.io.ragged import Texts
from xswe.io.results import Result, check_suffix
from xswe.io.settings import changed
from xswe.mining.hard_rules import identity_key
from xswe.mining.threshold import near_duplicate_note
from xswe.model.ensemble import AnyModel, open_model
from xswe.search.lists import Neighbours, SearchConfig
from xswe.search.neighbours import find_neighbours
from xswe.search.vectors import Storage, Vectors, encoded_to
from xswe.work.folder import work_folder

if TYPE_CHECKING:
    from xswe.settings import NegativesSettings

_BLOCK = 16_384  # rows per block of candidates


@dataclass(frozen=True)
class NegativesConfig:
    """How hard negatives are chosen.

    Attributes:
        negatives: number for each pair; pairs with fewer are left out.
        candidates: number of nearest targets from which they are chosen.
        relative_margin: a negative's cosine with the anchor is at most (1 - relative_margin) times the positive's, because
            a nearer target may well be a translation, too.
        min_score: minimum cosine of a negative; None for any.
        columns: of source and target in separated text: numbers from 0, or names; for JSON the names of fields.
        languages: of source and target, for ``.tmx`` and ``.jsonl``.
        on_error: what to do with a damaged record: ``raise`` or ``skip``.
        storage: type of the vectors on disk: ``float32``, ``float16`` or ``int8``.
        neighbours: settings of the search for neighbours.
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


class Negatives(NamedTuple):
    """A pair and its hard negatives, nearest first."""

    anchor: str
    positive: str
    negatives: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class HardNegatives(Result[Negatives]):
    """Pairs with their hard negatives, in the order of the bitext; a sequence of :class:`Negatives`.

    Attributes:
        anchors: the n source texts.
        positives: their targets.
        targets: all distinct targets.
        negatives: int64 (n, negatives), indices into ``targets``, nearest first.
        read: pairs with texts on both sides; those not among the n have too few negatives within the margin.
        cosines: float32 (n, 1 + negatives), of each anchor with its positive and its negatives.
        near: the share of near-duplicates of earlier pairs among the first hundred thousand read.
        left_out: damaged records and pairs with a blank side, counted by reason.
    """

    anchors: Texts
    positives: Texts
    targets: Texts
    negatives: np.ndarray
    read: int
    cosines: np.ndarray = field(default_factory=lambda: np.zeros((0, 0), np.float32))
    near: float = 0.0
    left_out: Mapping[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.negatives)

    def __iter__(self) -> Iterator[Negatives]:
        return map(self._at, range(len(self)))

    def _at(self, place: int) -> Negatives:
        wrong = tuple(self.targets[negative] for negative in self.negatives[place].tolist())
        return Negatives(self.anchors[place], self.positives[place], wrong)

    def __repr__(self) -> str:
        return f"HardNegatives({len(self):,} of {self.read:,} pairs, {self.negatives.shape[1]} negatives each)"

    def __str__(self) -> str:
        few = f", {self.read - len(self):,} have too few within the margin" if len(self) < self.read else ""
        first = f"{self.read:,} pairs, {len(self):,} with {self.negatives.shape[1]} negatives{few}"
        first += left_out_of(self.left_out) + (near_duplicate_note(self.near, "pairs") if self.read else "")
        if not self.cosines.size:
            return first
        positive, hardest = self.cosines[:, 0], self.cosines[:, 1]
        middle = [float(np.median(each)) for each in (positive, hardest, positive - hardest)]
        medians = "median cosine of the positives {:.4f}, of the nearest negatives {:.4f}; median gap {:.4f}".format(
            *middle
        )
        return f"{first}\n{medians}"

    def columns(self) -> tuple[str, ...]:
        """Return ``anchor``, ``positive``, ``negative_1``, …."""
        return ("anchor", "positive", *(f"negative_{n}" for n in range(1, self.negatives.shape[1] + 1)))

    def types(self) -> dict[str, str]:
        """Return ``string`` for every column, whether or not there are rows."""
        return dict.fromkeys(self.columns(), "string")

    def records(self) -> Iterator[tuple[str, ...]]:
        """Return the texts of each pair."""
        return ((anchor, positive, *wrong) for anchor, positive, wrong in self)


def mine_negatives(
    model: AnyModel | str | Path,
    input: Sequence[tuple[str, str]] | str | Path | Sequence[str | Path],
    output: str | Path | None = None,
    *,
    config: NegativesConfig | None = None,
    **settings: Unpack[NegativesSettings],
) -> HardNegatives:
    """Find, for every pair of a bitext, the wrong targets nearest to its source.

    Case and blanks aside, no negative is the target of a pair with the same source.

    Args:
        model: the model, or its name.
        input: a list of pairs; a file of any bitext; or two line-aligned files.
        output: a file to write the table to as well, see :meth:`xswe.io.results.Result.write`. A killed run resumes its
            search from ``<output>.work``.
        config: how negatives are chosen; see :class:`NegativesConfig`.
        settings: single fields of ``config``: ``negatives``, ``relative_margin``, …; ``threads`` and ``method`` are those
            of the search.

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
    pairs, names = pairs_or_names(input)
    if output is not None:
        check_output(output, [name for name in names if name != "-"])
        check_suffix(str(output))
    model = open_model(model, "mine_negatives(model, input)")
    left_out, repeated = Skipped(), NearDuplicates()
    anchors, positives = _sides(pairs, names, config, config.languages or model.pair, left_out)
    repeated.add(anchors, positives)
    letters = np.array([identity_key(text) for text in positives], np.uint64)
    _, first, place = np.unique(letters, return_index=True, return_inverse=True)
    order = np.argsort(first)  # distinct targets in the order of the bitext
    own_targets = np.argsort(order)[place]
    targets = positives.take(first[order])
    # Holds the vectors and, with an output, the search that a killed run resumes.
    room: AbstractContextManager[str | Path]
    room = scratch("xswe-negatives-") if output is None else work_folder(str(output))
    with room as folder:
        paths = [Path(folder) / name for name in ("anchors.npy", "targets.npy")]
        sides = [
            encoded_to(path, model, texts, config.storage, config.neighbours.workers)
            for path, texts in zip(paths, (anchors, targets), strict=True)
        ]
        search = Path(folder) / f"search-{fingerprint([side.digest() for side in sides])}"
        lists = find_neighbours(paths[0], paths[1], config.candidates, config.neighbours, work=search)
        scores = _scores(sides, own_targets)
        chosen, near = _chosen(lists, *_known(anchors, own_targets, len(targets)), scores, config)
        full = np.flatnonzero((chosen >= 0).all(axis=1))
        cosines = np.concatenate([scores[full, None], near[full]], axis=1)
        kept = anchors.take(full), positives.take(full)
        found = HardNegatives(*kept, targets, chosen[full], len(anchors), cosines, repeated.share, left_out.counts)
        if output is not None:
            found.write(output)
    return found


def _sides(
    pairs: Sequence[tuple[str, str]],
    names: Sequence[str],
    config: NegativesConfig,
    languages: tuple[str, ...],
    left_out: Skipped,
) -> tuple[Texts, Texts]:
    """Return both sides of the pairs, given or in files, and count damaged records and pairs with a blank side."""
    records = Source(tuple(names), config.columns, languages, config.on_error).read(left_out) if names else ()
    read = (record.texts for record in records if record.texts is not None)
    sides: tuple[list[str], list[str]] = ([], [])
    for pair in read if names else pairs:
        if not all(pair):
            left_out.add("blank")
            continue
        for side, text in zip(sides, pair, strict=True):
            side.append(text)
    return Texts.of(sides[0]), Texts.of(sides[1])


def _scores(sides: Sequence[Vectors], own_targets: np.ndarray) -> np.ndarray:
    """Return the cosine of each pair, float32 (n,)."""
    blocks = [
        row_products(block, sides[1].take(own_targets[start : start + len(block)])) for start, block in sides[0].blocks()
    ]
    return np.concatenate(blocks) if blocks else np.zeros(0, np.float32)


def _known(anchors: Texts, own_targets: np.ndarray, targets: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a key for each anchor, to which a target's number is added for a pair's key, and the keys of all pairs."""
    letters = np.array([identity_key(text) for text in anchors], np.uint64)
    keys = np.unique(letters, return_inverse=True)[1].astype(np.int64) * targets
    return keys, np.unique(keys + own_targets)


def _chosen(
    lists: Neighbours, keys: np.ndarray, known: np.ndarray, scores: np.ndarray, config: NegativesConfig
) -> tuple[np.ndarray, np.ndarray]:
    """Return each row's nearest wrong candidates within the margin, and their cosines.

    Both are (n, negatives), int64 and float32, padded with -1 and NaN.
    """
    out = np.full((len(keys), config.negatives), -1, np.int64)
    near = np.full(out.shape, np.nan, np.float32)
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
        near[row + start, rank[row, place]] = cosines[row, place]
    return out, near
