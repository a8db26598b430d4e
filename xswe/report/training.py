"""The page of a training run: quality after each step, losses, neighbours, errors."""

from __future__ import annotations

import csv
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file
from threadpoolctl import threadpool_limits

from xswe.corpus.bitext import Bitext
from xswe.errors import ConfigError, InputError
from xswe.evaluation.metrics import Row
from xswe.io.files import read_json, strings_in
from xswe.model.static import StaticModel, pool
from xswe.report import figures
from xswe.report.figures import Cloud, plane, proportion
from xswe.report.page import figure, number, percent, render

_WORST_PAIRS, _WORDS_PER_LANGUAGE, _DRAWN_SENTENCES = 15, 6, 250
_METRICS = ("accuracy", "margin_accuracy", "f1", "spearman_with_teacher", "pearson_with_teacher")
_TITLES = {
    "accuracy": "accuracy",
    "margin_accuracy": "by margin",
    "f1": "F1",
    "spearman_with_teacher": "Spearman with the teacher",
    "pearson_with_teacher": "Pearson",
}


@dataclass(frozen=True)
class StageFolder:
    """A stage of a run: its seconds, its bytes on disk, and its ``inputs``."""

    name: str
    identity: str
    seconds: float
    size: int
    folder: Path
    inputs: Any


@dataclass(frozen=True)
class Run:
    """A run folder, as ``train`` writes it."""

    folder: Path

    def __post_init__(self) -> None:
        if not (self.folder / "results.json").is_file():
            raise InputError(self.folder, "no results.json in it", "give the run folder of a finished training")

    @cached_property
    def results(self) -> dict[str, Any]:
        """Settings, report and rows."""
        return dict(read_json(self.folder / "results.json"))

    @cached_property
    def record(self) -> dict[str, Any]:
        """Versions, threads and seconds; empty if the folder has none."""
        path = self.folder / "run.json"
        return dict(read_json(path)) if path.is_file() else {}

    @cached_property
    def rows(self) -> list[Row]:
        """The figures; ``note`` names the step."""
        return [Row(**row) for row in self.results["rows"]]

    @cached_property
    def history(self) -> list[dict[str, float]]:
        """The history of the losses, from ``history.csv``."""
        path = self.folder / "history.csv"
        if not path.is_file():
            return []
        with path.open(encoding="utf-8", newline="") as stream:
            return [{name: float(value) for name, value in row.items() if value} for row in csv.DictReader(stream)]

    @cached_property
    def model(self) -> StaticModel:
        """The trained model."""
        return StaticModel.load(self.folder / "model")

    @cached_property
    def stages(self) -> list[StageFolder]:
        """The stages of which this run's model is made, without those left by runs with other settings."""
        every = {}
        for path in sorted(self.folder.glob("stages/*/stage.json")):
            about = read_json(path)
            size = sum(file.stat().st_size for file in path.parent.rglob("*") if file.is_file())
            one = StageFolder(
                about["stage"], about["identity"], float(about.get("seconds", 0.0)), size, path.parent, about["inputs"]
            )
            every[one.identity] = one
        wanted = [one.identity for one in every.values() if self._is_last(one)]
        kept: dict[str, StageFolder] = {}
        while wanted:
            one = every[wanted.pop()]
            kept[one.identity] = one
            wanted += [name for name in strings_in(one.inputs) if name in every and name not in kept]
        kept |= {one.identity: one for one in every.values() if one.name == "contexts" and _read_by(one, kept.values())}
        order = ("corpus", "units", "bags", "contexts", "extract", "pca", "vectors", "refine", "spans")
        return sorted(
            kept.values(), key=lambda one: (order.index(one.name) if one.name in order else len(order), one.folder.name)
        )

    def _is_last(self, stage: StageFolder) -> bool:
        """Return True if a stage is the last of this run: its report is the one in the run's results."""
        report = self.results["report"]
        keys = {"spans": "spans", "refine": "refinement"}
        last = next((name for name, key in keys.items() if key in report), "pca" if "pca" in report else "bags")
        if stage.name == "pca" and last != "pca":  # PCA without ABTT is no input of a later stage, but is shown too
            return "pca" in report and self.results["settings"]["pca"]["drop"] != 0 and _report(stage).get("drop") == 0
        if stage.name != last:
            return False
        key = keys.get(last, last)
        return last == "bags" or _report(stage) == report[key]

    def held_out(self) -> Iterator[tuple[tuple[str, str], list[str], list[str]]]:
        """Yield the languages and both sides of each held-out bitext."""
        for stage in self.stages:
            if stage.name == "corpus":
                for path in sorted((stage.folder / "held_out").glob("*.source.offsets.npy")):
                    codes = path.name.split(".")[0].split("-")
                    if len(codes) == 2:
                        bitext = Bitext.open(stage.folder / "held_out", (codes[0], codes[1]))
                        yield (codes[0], codes[1]), list(bitext.source), list(bitext.target)

    def matrices(self) -> Iterator[tuple[str, np.ndarray]]:
        """Yield the name of each step and the table after it, if the table has a row per unit (and bigram)."""
        names = {"extract": "extraction", "refine": "refinement", "spans": "span training"}
        for stage in self.stages:
            file = stage.folder / f"{stage.name}.safetensors"
            if stage.name in (*names, "pca") and file.is_file():
                matrix = load_file(file)["embeddings"]
                if len(matrix) in (len(self.model.units), len(self.model.matrix)):
                    drop = _report(stage).get("drop")
                    yield names.get(stage.name) or ("PCA without ABTT" if drop == 0 else "PCA with ABTT"), matrix


def _read_by(contexts: StageFolder, stages: Iterable[StageFolder]) -> bool:
    """Return True if an extraction among the stages used these contexts, i.e. its inputs begin with theirs."""
    return any(one.name == "extract" and one.inputs[:2] == contexts.inputs[:2] for one in stages)


def _report(stage: StageFolder) -> dict[str, Any]:
    path = stage.folder / "report.json"
    return dict(read_json(path)) if path.is_file() else {}


def result_page(result: Any) -> str:
    """Return the page of a :class:`xswe.training.train.TrainResult`; ConfigError: it has no run folder."""
    if result.folder is None:
        raise ConfigError("the report of a training reads its run folder: train with output=")
    return training_page(result.folder)


@threadpool_limits.wrap(1)  # small matrices: threads would wait more than work
def training_page(folder: str | Path) -> str:
    """Return the page of a run folder; InputError: it is not the folder of a finished run."""
    run = Run(Path(folder))
    held_out = list(run.held_out())
    settings = run.results["settings"]
    groups = {name: value for name, value in settings.items() if isinstance(value, dict)}
    plain = {name: value for name, value in settings.items() if not isinstance(value, dict)}
    worst = [(codes, pairs) for codes, a, b in held_out if (pairs := _worst(run.model, codes, a, b))]
    clouds = list(_clouds(run, held_out))
    words = _words(run.model)
    versions = {"model": run.model.identity, **run.record.get("versions", {})}
    return render(
        "training.html",
        title=f"Training {settings['pair']}",
        about=f"Recipe {settings['recipe']}, seed {settings['seed']}: the worth of each step, learning curves, and errors.",
        overview=_overview(run),
        steps=_steps(run),
        starred=any(row.task != "held-out" for row in run.rows),
        bars=_bars(run),
        curves=_curves(run),
        stages=[(_title(s), s.identity, figure(s.seconds, 1), f"{s.size / 1e6:.1f}") for s in run.stages],
        counts=_counts(run),
        clouds=clouds,
        words=words,
        worst=worst,
        settings={"of the run": plain, **groups, "versions": versions},
    )


def _title(stage: StageFolder) -> str:
    drop = _report(stage).get("drop")
    return stage.name if drop is None else f"{stage.name}, {drop} removed"


def _overview(run: Run) -> list[tuple[str, str, str]]:
    report, model = run.results["report"], run.model
    pairs = sum(part.get("train", 0) for part in report["corpus"].values() if isinstance(part, dict))
    out: list[tuple[str, str, str]] = [("units", number(len(model.units)), model.units.kind)]
    out += [("bigrams", number(len(model.bigrams)), "pairs of neighbouring units")] if model.bigrams is not None else []
    out += [("dimensions", number(model.dim), model.dtype)]
    out += [("size", f"{model.matrix.nbytes / 1e6:.1f} MB", "of the table")]
    out += [("training pairs", number(pairs), "or sentences")] if pairs else []
    if steps := report.get("refinement", {}).get("steps"):
        out.append(("steps", number(steps), f"the best: {number(report['refinement']['best_step'])}"))
    if seconds := run.record.get("seconds"):
        out.append(("seconds", number(sum(seconds.values())), f"threads: {run.record['threads']}"))
    without = int((~np.asarray(model.matrix[: len(model.units)]).any(1)).sum())
    return [*out, ("units without a vector", number(without), percent(without / len(model.units), 2))]


def _figures(run: Run) -> list[str]:
    return [name for name in _METRICS if any(row.metric == name for row in run.rows)]


def _interval(row: Row) -> tuple[float | None, float | None]:
    """Return the interval of a figure: its own or, for a share of ``n``, Wilson's."""
    if row.low is not None and row.high is not None:
        return row.low, row.high
    if row.value is None or "accuracy" not in row.metric or not row.n:
        return None, None
    return proportion(row.value, row.n)


def _steps(run: Run) -> tuple[list[str], list[list[str]]]:
    """Return the table of steps: value and interval of each figure, by step and pair."""
    names, rows = _figures(run), []
    for place in dict.fromkeys((row.note, row.task, row.subset) for row in run.rows):
        own = {row.metric: row for row in run.rows if (row.note, row.task, row.subset) == place}
        cells = []
        for name in names:
            row = own.get(name)
            low, high = (None, None) if row is None else _interval(row)
            value = "–" if row is None or row.value is None else f"{100 * row.value:.1f}"
            cells.append(value if low is None or high is None else f"{value} ({100 * low:.1f} to {100 * high:.1f})")
        count = number(next(iter(own.values())).n)
        subset = str(place[2]) + (" *" if place[1] != "held-out" else "")
        rows.append([str(place[0]), subset, *cells, count])
    return ["step", "languages", *(_TITLES[name] for name in names), "held out"], rows


def _bars(run: Run) -> Any:
    names = _figures(run)
    if not names:
        return ""
    groups: dict[str, dict[str, figures.Bar]] = {}
    for row in run.rows:
        if row.metric == names[0] and row.value is not None:
            low, high = _interval(row)
            bounds = (None if low is None else 100 * low, None if high is None else 100 * high)
            groups.setdefault(row.subset, {})[str(row.note)] = (100 * row.value, *bounds)
    return figures.bars(groups, f"{_TITLES[names[0]]}, %", "What each step is worth, by pair of languages", zero=False)


def _curves(run: Run) -> list[tuple[str, Any]]:
    out = []
    kinds = {"loss": "training", "training_loss": "training", "development_loss": "development pairs"}
    losses = {
        title: [(row["step"], row[name]) for row in run.history if name in row]
        for name, title in kinds.items()
        if any(name in row for row in run.history)
    }
    best = run.results["report"].get("refinement", {}).get("best_step")
    if len(run.history) > 1 and losses:
        mark = float(best) if best is not None else None
        out.append(("Loss", figures.lines(losses, "step", "loss", "Losses by step", zero=True, mark=mark)))
    others = [name for row in run.history for name in row if name not in (*kinds, "step")]
    for name in dict.fromkeys(others):
        points = [(row["step"], row[name]) for row in run.history if name in row]
        if len(points) > 1:
            out.append((name.replace("_", " "), figures.lines({name: points}, "step", "", f"{name} by step")))
    if shares := run.results["report"].get("pca", {}).get("explained_variance_ratio"):
        line = {"share of the variance": [(k + 1.0, 100 * share) for k, share in enumerate(shares)]}
        drop = float(run.results["report"]["pca"]["drop"]) + 0.5
        chart = figures.lines(
            line, "component", "%", "Variance of the components", log_x=True, zero=True, mark=max(1.0, drop)
        )
        out.append(("Variance of the sentence components; those to the left of the line are removed", chart))
    return out


def _counts(run: Run) -> list[tuple[str, str]]:
    report = run.results["report"]
    out = []
    for name, part in report["corpus"].items():
        if isinstance(part, dict):
            parts = ("read", "kept", "train", "development", "held_out")
            said = [f"{key.replace('_', '-')} {part[key]:,}" for key in parts if key in part]
            dropped = ", ".join(f"{count:,} {reason}" for reason, count in (part.get("dropped") or {}).items())
            out.append((f"corpus {name}", ", ".join(said) + (f"; dropped: {dropped}" if dropped else "")))
            out += [
                (f"checksum of {Path(file).name}", digest[:16]) for file, digest in (part.get("checksums") or {}).items()
            ]
    for section in ("extraction", "pca"):
        for key, value in report.get(section, {}).items():
            if isinstance(value, int):
                out.append((f"{section}: {key.replace('_', ' ')}", f"{value:,}"))
    return out


def _worst(model: StaticModel, codes: tuple[str, str], source: list[str], target: list[str]) -> list[dict[str, Any]]:
    """Return the held-out pairs whose cosine is furthest below that of the best wrong target."""
    if len(source) < 2:
        return []
    a, b = model.encode(source), model.encode(target)
    cosines = a @ b.T
    own = np.diag(cosines).copy()
    np.fill_diagonal(cosines, -np.inf)
    rivals, best = cosines.argmax(1), cosines.max(1)
    order = np.argsort(own - best, kind="stable")[:_WORST_PAIRS].tolist()
    return [
        {
            "source": source[i],
            "target": target[i],
            "rival": target[int(rivals[i])],
            "own": float(own[i]),
            "best": float(best[i]),
            "lost": bool(own[i] < best[i]),
        }
        for i in order
    ]


def _clouds(run: Run, held_out: list[tuple[tuple[str, str], list[str], list[str]]]) -> Iterator[Cloud]:
    """Yield the held-out sentences in their first two principal components, after each step."""
    texts: dict[str, list[str]] = {}
    for codes, source, target in held_out:
        for code, side in zip(codes, (source, target), strict=True):
            texts.setdefault(code, []).extend(side[:_DRAWN_SENTENCES])
    if not any(texts.values()):
        return
    bags = {code: run.model.units.bags(own) for code, own in texts.items()}
    for step, matrix in run.matrices():
        own = bags if len(matrix) == len(run.model.units) else {code: run.model.widen(bag) for code, bag in bags.items()}
        vectors = {code: pool(np.ascontiguousarray(matrix), bag, normalise=True) for code, bag in own.items()}
        yield plane(step, vectors, texts)


def _words(model: StaticModel) -> list[tuple[str, str, list[tuple[str, list[tuple[str, float]]]]]]:
    """Return some frequent words of each language with their nearest words in the other languages.

    Only words of the training text are shown: a vocabulary learnt elsewhere has words of further languages.
    """
    counts = np.ones((len(model.languages), len(model.units))) if model.counts is None else model.counts
    words = {code: model.words(code) for code in model.languages}
    own = {
        code: {word for word, row in rows.items() if counts[number, row]}
        for number, (code, rows) in enumerate(words.items())
    }
    out = []
    for code in model.languages if len(model.languages) > 1 else ():
        least = 2 if code in ("zh", "ja") else 4
        among = [word for word in islice(words[code], 4000) if len(word) >= least and word in own[code]]
        for word in sorted(random.Random(0).sample(among, min(_WORDS_PER_LANGUAGE, len(among)))):
            near = []
            for other in (language for language in model.languages if language != code):
                found = (one for one in model.neighbours(word, language=other, k=100) if one.word in own[other])
                near.append((other, [(one.word, one.score) for one in islice(found, 4)]))
            out.append((code, word, near))
    return out
