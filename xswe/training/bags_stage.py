"""The third stage of a run: the texts of the corpus as unit ids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from operator import call
from pathlib import Path

import numpy as np

from xswe.corpus.bitext import Bitext
from xswe.io.parallel import in_order
from xswe.io.ragged import Bags, Texts, TextView, bag_writer, concatenate_bags
from xswe.model.bigrams import Bigrams
from xswe.model.static import StaticModel
from xswe.progress import track
from xswe.text.units import Units
from xswe.training.corpus_stage import PARTS, Corpus, Pair, negatives_of, sides


def make_bags(corpus: Corpus, units: Units, units_identity: str) -> tuple[Path, str]:
    """Stage ``bags``: look up every training and development text once."""

    def make(folder: Path, _: str) -> None:
        """Look up each side, and save its bags."""
        for part in PARTS[:2]:
            for bitext in corpus.part(part):
                for name, _, side in [*sides(bitext), *negatives_of(bitext)]:
                    _look_up(units, side, folder, f"{part}.{bitext.name}.{name}", corpus.threads)
                if isinstance(bitext, Bitext) and bitext.negatives is not None:
                    np.save(folder / f"{part}.{bitext.name}.bounds.npy", bitext.negatives.bounds)

    return corpus.stages.run("bags", [corpus.identity, units_identity], make)


def make_exact_bags(corpus: Corpus, units: Units, bags: Path, bags_identity: str) -> tuple[Path, str]:
    """Stage ``exact``: the units that each training text contains, found without back-off.

    If the units have no back-off, that is the stage ``bags``.
    """
    exact = units.exact
    if exact is units:
        return bags, bags_identity

    def make(folder: Path, _: str) -> None:
        """Look up each side, and save its bags."""
        for bitext in corpus.part("train"):
            for name, _, side in sides(bitext):
                _look_up(exact, side, folder, f"train.{bitext.name}.{name}", corpus.threads)

    return corpus.stages.run("exact", [bags_identity], make)


def _look_up(units: Units, texts: Texts | TextView, folder: Path, name: str, threads: int) -> None:
    """Write the bags of texts."""
    blocks = track(range(0, len(texts), 8192), f"look up {name}", unit="block")
    jobs = (partial(units.bags, texts[start : start + 8192]) for start in blocks)
    with bag_writer(folder, name, len(units.tokens)) as out:
        for bags in in_order(call, jobs, threads):
            out.append(bags.ids, bags.offsets)
            texts.release()


def open_bags(folder: Path, part: str, pair: Pair) -> tuple[Bags, Bags | None]:
    """Memory-map the bags of both sides of a bitext; the second is None for a single language."""
    name = f"{part}.{'-'.join(pair)}"
    return Bags.open(folder, f"{name}.source"), Bags.open(folder, f"{name}.target") if len(pair) == 2 else None


def open_negatives(folder: Path, part: str, pair: Pair) -> tuple[Bags, np.ndarray] | None:
    """Memory-map the bags of a bitext's negatives, and the bounds of each pair's (n + 1,); None if it has none."""
    name = f"{part}.{'-'.join(pair)}"
    if not (folder / f"{name}.bounds.npy").is_file():
        return None
    return Bags.open(folder, f"{name}.negatives"), np.load(folder / f"{name}.bounds.npy", mmap_mode="r")


def bags_of(folder: Path, pairs: Sequence[Pair], language: str) -> Bags:
    """Return the training bags of one language, in the order of :func:`xswe.training.corpus_stage.texts_of`."""
    return concatenate_bags(
        [
            bags
            for pair in pairs
            for code, bags in zip(pair, open_bags(folder, "train", pair), strict=False)
            if code == language and bags is not None
        ]
    )


@dataclass(frozen=True, eq=False)
class Tables:
    """The rows of each language in the table."""

    languages: tuple[str, ...]  # codes
    units: Units  # the units with vectors
    # whether each language has its own table (stacked in one matrix, in one space), so a string shared by two languages
    # has two vectors; otherwise all languages share one table
    separate: bool
    bigrams: Bigrams | None = None  # the bigrams, whose rows follow those of the units once they are trained

    def place(self, bags: Bags, language: str) -> Bags:
        """Turn a language's unit ids into rows."""
        first = self.languages.index(language) * len(self.units.tokens) if self.separate else 0
        return Bags(np.asarray(bags.ids) + np.int32(first), bags.offsets) if first else bags

    def model(self, matrix: np.ndarray, counts: Sequence[np.ndarray]) -> StaticModel:
        """Return one model for all languages, whose tables are averaged, weighted by how often each language has a unit."""
        bigrams = self.bigrams if len(matrix) > len(self.units) and not self.separate else None
        return StaticModel(self.units, self._merged(matrix, counts) if self.separate else matrix, bigrams=bigrams)

    def models(self, matrix: np.ndarray, counts: Sequence[np.ndarray]) -> dict[str, StaticModel]:
        """Return each language's model; a unit that does not occur in the language has its vector of :meth:`model`."""
        if not self.separate:
            return dict.fromkeys(self.languages, self.model(matrix, counts))
        merged, tables = self._merged(matrix, counts), matrix.reshape(len(self.languages), -1, matrix.shape[1])
        return {
            language: StaticModel(self.units, np.where((count > 0)[:, None], table, merged))
            for language, table, count in zip(self.languages, tables, counts, strict=True)
        }

    def _merged(self, matrix: np.ndarray, counts: Sequence[np.ndarray]) -> np.ndarray:
        weights = np.stack(counts).astype(np.float32)
        weights[:, weights.sum(0) == 0] = 1.0
        weights /= weights.sum(0)
        tables = matrix.reshape(len(self.languages), -1, matrix.shape[1])
        return np.einsum("lu,lud->ud", weights, tables).astype(np.float32)
