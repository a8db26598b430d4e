"""The BUCC shared task (Zweigenbaum, Sharoff and Rapp, 2017) by its own protocol.

    python -m eval.experiments.bucc model=MODEL training=bucc2018/de-en/de-en.training test=bucc2018/de-en/de-en.test
        [languages=de,en] [score=ratio] [k=4] [select=max] [threads=1] [output=PAIRS.tsv]

``training`` and ``test`` are what the names of the corpora begin with (``….training.de``, ``.en`` and ``.gold``),
``languages`` the two endings: gold pairs name an id of the first before one of the second. Without ``test.gold`` pairs are
only written.

Two monolingual corpora of ``id<TAB>sentence`` hide translations; a system hands in pairs of ids and is measured by
precision, recall and F1 of that *set* against the gold pairs. The threshold is tuned on the training corpora and applied
to the test corpora as it is. This is not the nearest-neighbour F1 that mteb calls BUCC, which is given the gold sources.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from eval.settings import REQUIRED, run_script
from xswe.errors import ConfigError, InputError
from xswe.io.files import check_output, scratch
from xswe.io.lines import read_lines
from xswe.io.results import table, write_text
from xswe.io.sources import PACKED
from xswe.mining.hard_rules import FilterConfig
from xswe.mining.pipeline import MineConfig, choose_pairs
from xswe.mining.side import SideConfig, prepare_side
from xswe.mining.threshold import PrecisionEstimate
from xswe.model.ensemble import AnyModel, load_any, locate
from xswe.search.lists import SearchConfig
from xswe.search.neighbours import find_neighbours

DEFAULTS: dict[str, Any] = {"model": REQUIRED, "training": REQUIRED, "test": REQUIRED, "languages": "de,en"}
DEFAULTS |= {"score": "ratio", "k": 4, "select": "max", "threads": 1, "output": ""}
IdPair = tuple[str, str]
_ENDS = ("", *PACKED)


@dataclass(frozen=True)
class BuccFiles:
    """The files of one of the task's data sets.

    Attributes:
        source: corpus of the first language.
        target: corpus of the second language.
        gold: pairs of ids; None where they are not given.
    """

    source: Path
    target: Path
    gold: Path | None

    @classmethod
    def find(cls, prefix: str, languages: tuple[str, str]) -> BuccFiles:
        """Find ``<prefix>.de``, ``<prefix>.en`` and ``<prefix>.gold`` (for ``languages=(de, en)``).

        Raises:
            InputError: a corpus is missing.
        """
        found = [
            next((p for end in _ENDS if (p := Path(f"{prefix}.{name}{end}")).is_file()), None)
            for name in (*languages, "gold")
        ]
        for path, language in zip(found, languages, strict=False):
            if path is None:
                raise InputError(f"{prefix}.{language}", "no such file", "give the common beginning of the files")
        return cls(found[0], found[1], found[2])  # type: ignore[arg-type]

    @property
    def paths(self) -> list[Path]:
        """The files read."""
        return [path for path in (self.source, self.target, self.gold) if path is not None]


@dataclass(frozen=True, eq=False)
class Extracted:
    """Candidate pairs of ids, best first.

    Attributes:
        pairs: ids of source and target.
        scores: float32 (n,).
    """

    pairs: list[IdPair]
    scores: np.ndarray

    def above(self, threshold: float) -> list[IdPair]:
        """Return the pairs that score at least this."""
        return [pair for pair, score in zip(self.pairs, self.scores.tolist(), strict=True) if score >= threshold]


@dataclass(frozen=True)
class BuccScore:
    """Precision, recall and F1 of a set of pairs.

    Attributes:
        precision: fraction of the pairs that are gold.
        recall: fraction of the gold pairs that were found.
        f1: their harmonic mean.
        found: pairs handed in.
        gold: gold pairs.
        threshold: what was handed in scored at least this.
    """

    precision: float
    recall: float
    f1: float
    found: int
    gold: int
    threshold: float


def read_gold_ids(path: str | Path) -> set[IdPair]:
    """Read gold pairs, ``id<TAB>id``.

    Raises:
        InputError: a line is not of that form, or there is none.
    """
    out: set[IdPair] = set()
    for number, line in read_lines(path):
        fields = (line or "").split("\t")
        if len(fields) != 2 or not all(fields):
            raise InputError(path, "not id<TAB>id", "mend or remove the line", number)
        out.add((fields[0], fields[1]))
    if not out:
        raise InputError(path, "no pair in it", "give the gold file of the same corpora")
    return out


def extract(model: AnyModel, files: BuccFiles, config: MineConfig) -> Extracted:
    """Mine a data set's corpora, every line as it is, without a threshold."""
    return extract_by(model, files, config, [config.score])[0]


def extract_by(model: AnyModel, files: BuccFiles, config: MineConfig, scores: Sequence[str]) -> list[Extracted]:
    """Do the same by several scores, with the neighbours sought once."""
    threads = config.neighbours.workers
    filters = FilterConfig(duplicates=False, identical=False)
    with scratch("xswe-bucc-") as folder:
        sides = [
            prepare_side(
                Path(folder) / name,
                SideConfig(str(path), ids=True, filters=filters, storage=config.storage),
                lambda texts: model.encode(texts, threads=threads),
                model.dim,
                "",
                path.name,
            )
            for name, path in (("source", files.source), ("target", files.target))
        ]
        lists = find_neighbours(sides[0].vectors, sides[1].vectors, config.depth, config.neighbours)
        vectors = sides[0].vectors, sides[1].vectors
        by_score = [replace(config, score=score) for score in scores]  # type: ignore[arg-type]
        found = [choose_pairs(lists, how, vectors=vectors).pairs for how in by_score]
        return [
            Extracted(list(zip(sides[0].names(pairs.source), sides[1].names(pairs.target), strict=True)), pairs.scores)
            for pairs in found
        ]


def best_threshold(scores: np.ndarray, correct: np.ndarray, total: int) -> float:
    """Return the threshold of the best F1 on pairs each of which is known to be right or wrong, of ``total`` right ones."""
    order = np.argsort(-scores.astype(np.float64), kind="stable")
    right = np.cumsum(correct[order]).astype(np.float64)
    return PrecisionEstimate(scores[order].astype(np.float64), right, total).choose(right / max(total, 1))


def precision_recall_f1(found: int, correct: int, total: int) -> tuple[float, float, float]:
    """Return precision, recall and F1 of a set of pairs against a set of gold pairs; 0 where undefined."""
    precision, recall = correct / found if found else 0.0, correct / total if total else 0.0
    return precision, recall, 2 * precision * recall / (precision + recall) if correct else 0.0


def tune(extracted: Extracted, gold: set[IdPair]) -> float:
    """Return the threshold of the best F1 on gold pairs."""
    correct = np.array([pair in gold for pair in extracted.pairs], bool)
    return best_threshold(extracted.scores, correct, len(gold))


def score(extracted: Extracted, gold: set[IdPair], threshold: float) -> BuccScore:
    """Measure the set of pairs above a threshold."""
    found = set(extracted.above(threshold))
    figures = precision_recall_f1(len(found), len(found & gold), len(gold))
    return BuccScore(*figures, len(found), len(gold), threshold)


def main(settings: dict[str, Any]) -> None:
    """Tune on the training corpora, measure on the test corpora, write their pairs of ids."""
    first, _, second = settings["languages"].partition(",")
    if not (first and second) or "," in second:
        raise ConfigError(f"languages={settings['languages']}: name the files' two endings in order, as in de,en")
    training, test = (BuccFiles.find(settings[name], (first, second)) for name in ("training", "test"))
    if training.gold is None:
        raise ConfigError(f"{settings['training']}.gold: no such file; it is what the threshold is tuned on")
    if settings["output"]:
        check_output(settings["output"], [path for files in (training, test) for path in files.paths])
    search = SearchConfig(threads=settings["threads"])
    config = MineConfig(**{name: settings[name] for name in ("score", "k", "select")}, threshold=None, neighbours=search)
    model, gold = load_any(locate(settings["model"])), read_gold_ids(training.gold)
    tuned = extract(model, training, config)
    threshold = tune(tuned, gold)
    rows = [["training (tuned on)", *astuple(score(tuned, gold, threshold))]]
    found = extract(model, test, config)
    if test.gold is not None:
        rows.append(["test", *astuple(score(found, read_gold_ids(test.gold), threshold))])
    print(table(["corpora", "precision", "recall", "f1", "pairs", "gold", "threshold"], rows))
    if settings["output"]:
        pairs = found.above(threshold)
        write_text(settings["output"], (f"{a}\t{b}\n" for a, b in pairs))
        print(f"{len(pairs):,} pairs of the test corpora: {settings['output']}")


if __name__ == "__main__":
    run_script(main, DEFAULTS, __doc__)
