"""``xswe.sweep``: train, evaluate and compare a grid of settings and seeds."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from xswe.errors import ConfigError
from xswe.evaluation.encoders import StaticEncoder
from xswe.evaluation.evaluate import Key, check_measured, figures_of, of_marks, run_tasks, shown, title
from xswe.evaluation.metrics import LEVEL, Bootstrap, Comparison, Row, compare_draws, corrected, enough, resample
from xswe.evaluation.tasks import check
from xswe.io.files import scratch
from xswe.io.results import Result, table
from xswe.progress import track
from xswe.teacher.protocol import Teacher, TeacherConfig
from xswe.training.config import TrainConfig
from xswe.training.train import NAMED, Texts, configure, load_encoder, run_name, train_with

if TYPE_CHECKING:
    from xswe.settings import SweepSettings

_SATURATED = 0.995


@dataclass(frozen=True, eq=False)
class SweepPoint:
    """One combination of settings in a sweep, called a choice.

    Attributes:
        settings: the values of the varied settings.
        seeds: the seeds of its runs.
        rows: the figures of each run.
        folders: the run folders.
    """

    settings: dict[str, Any]
    seeds: tuple[int, ...]
    rows: tuple[tuple[Row, ...], ...]
    folders: tuple[Path, ...]

    def of(self, key: Key) -> list[Row]:
        """Return a figure's row in each run; empty unless all runs have it."""
        found = [row for rows in self.rows for row in rows if row.key == key and row.value is not None]
        return found if len(found) == len(self.rows) else []

    def mean(self, key: Key) -> float | None:
        """Return the mean of a figure over the seeds."""
        values = self._values(key)
        return float(np.mean(values)) if values else None

    def deviation(self, key: Key) -> float | None:
        """Return the sample standard deviation (n - 1) of a figure over the seeds; None for a single seed."""
        values = self._values(key)
        return float(np.std(values, ddof=1)) if len(values) > 1 else None

    def _values(self, key: Key) -> list[float]:
        return [row.value for row in self.of(key) if row.value is not None]


@dataclass(frozen=True, eq=False)
class Sweep(Result[SweepPoint], entries="points"):
    """The choices of a sweep and their figures, printed as a table with the best of each column marked.

    Iterating gives the choices.

    Attributes:
        names: names of the varied settings.
        points: the choices.
        bootstrap: settings of the paired tests.
    """

    names: tuple[str, ...]
    points: tuple[SweepPoint, ...]
    bootstrap: Bootstrap

    def __repr__(self) -> str:
        return f"Sweep({', '.join(self.names)}: {len(self)} choices, {len(self.points[0].seeds)} seeds)"

    def __str__(self) -> str:
        return "\n".join([table(*self.layout()), "", *self.notes()])

    @cached_property
    def keys(self) -> list[Key]:
        """The figures that the table shows."""
        return figures_of(row for point in self.points for rows in point.rows for row in shown(rows))

    def best(self, key: Key) -> SweepPoint | None:
        """Return the choice with the highest mean of a figure, the first on a tie; None if no choice has the figure."""
        found = [point for point in self.points if point.of(key)]
        return max(found, key=lambda point: point.mean(key) or 0.0, default=None)

    @cached_property
    def tests(self) -> dict[tuple[Key, int], Comparison]:
        """Tests of each figure's best choice against every other, by figure and the other's index."""
        places = list(itertools.product(self.keys, range(len(self.points))))
        settings = enough(self.bootstrap, len(places) - len(self.keys))
        found = {(key, k): self._test(key, self.points[k], settings) for key, k in places}
        return {place: test for place, test in found.items() if test is not None}

    @cached_property
    def corrected(self) -> dict[tuple[Key, int], float]:
        """The p-values of all tests, corrected for their number (Holm)."""
        return dict(zip(self.tests, corrected([test.p for test in self.tests.values()]), strict=True))

    def _test(self, key: Key, other: SweepPoint, settings: Bootstrap) -> Comparison | None:
        """Test by paired bootstrap, comparing both choices' means over the seeds in each draw."""
        if (best := self.best(key)) is other:
            return None
        pairs = [] if best is None else list(zip(best.of(key), other.of(key), strict=False))
        if not pairs or not settings.rounds or any(row.items is None for pair in pairs for row in pair):
            return None
        draws = [resample(first, settings) - resample(second, settings) for first, second in pairs]
        difference = float(np.mean([(first.value or 0.0) - (second.value or 0.0) for first, second in pairs]))
        return compare_draws(difference, np.mean(draws, 0), settings.level)

    def columns(self) -> tuple[str, ...]:
        """Return the names of the settings, and the columns of each figure."""
        figures = ("task", "subset", "metric", "split", "n", "seeds", "mean", "deviation", "best", "p", "corrected")
        return (*self.names, *figures)

    def records(self) -> Iterator[tuple[Any, ...]]:
        """Return a row per choice and figure; ``p`` is for its difference from the best, also corrected for all tests."""
        for key, (k, point) in itertools.product(self.keys, enumerate(self.points)):
            if rows := point.of(key):
                p = (self.tests[key, k].p, self.corrected[key, k]) if (key, k) in self.tests else (None, None)
                figures = (rows[0].n, len(rows), point.mean(key), point.deviation(key), self.best(key) is point, *p)
                yield (*point.settings.values(), *key, *figures)

    def layout(self) -> tuple[list[str], list[list[Any]]]:
        """Return the table: a line per choice, with mean and deviation in percent, the best marked."""
        keys = self.keys
        settings = [[str(value) for value in point.settings.values()] for point in self.points]
        lines = [[*own, *(self._cell(key, k) for key in keys)] for k, own in enumerate(settings)]
        return [*self.names, *(title(key, keys) for key in keys)], lines

    def _cell(self, key: Key, k: int) -> str:
        point = self.points[k]
        mean, deviation = point.mean(key), point.deviation(key)
        if mean is None:
            return "- "
        spread = "" if deviation is None else f" ± {100 * deviation:.1f}"
        return f"{100 * mean:.1f}{spread}{'*' if point is self.best(key) else '=' if self._as_good(key, k) else ' '}"

    def _as_good(self, key: Key, k: int) -> bool:
        return self.corrected.get((key, k), 0.0) >= LEVEL

    def notes(self) -> list[str]:
        """Return notes: the meaning of the marks, and figures that do not tell the choices apart."""
        keys = self.keys
        lines = [f"mean ± deviation over seeds; {of_marks(len(self.tests))}"]
        for key in keys:
            best, name = self.best(key), title(key, keys)
            if best is not None and (mean := best.mean(key) or 0.0) >= _SATURATED:
                lines.append(f"{name} is saturated: {100 * mean:.1f} % leaves no room for differences; take a harder set")
            elif len(self) > 1 and all(self._as_good(key, k) for k in range(len(self)) if self.points[k] is not best):
                lines.append(f"{name} shows no significant difference: take a larger set, or more seeds")
        return lines

    def as_json(self) -> dict[str, Any]:
        """Return the table's figures, the notes, and all runs."""
        rows = [dict(zip(self.columns(), row, strict=True)) for row in self.records()]
        runs = [
            {"settings": p.settings, "seed": seed, "folder": str(folder), "rows": [row.as_dict() for row in own]}
            for p in self.points
            for seed, folder, own in zip(p.seeds, p.folders, p.rows, strict=True)
        ]
        return {
            "settings": self.names,
            "bootstrap": asdict(self.bootstrap),
            "rows": rows,
            "notes": self.notes(),
            "runs": runs,
        }


def sweep(
    input: Texts,
    languages: Iterable[str],
    grid: Mapping[str, Sequence[Any]],
    *,
    seeds: Iterable[int] = (0, 1, 2),
    tasks: str | Sequence[str] = (),
    data: str | Path | None = None,
    output: str | Path | None = None,
    **settings: Unpack[SweepSettings],
) -> Sweep:
    """Train a model for every choice of a grid and every seed, and compare them.

    Stages that runs have in common are done only once; each run has its own folder. The same sweep, or a larger one,
    resumes where an earlier one in the same folder stopped.

    Args:
        input: see :func:`xswe.training.train.train`.
        languages: codes, see there.
        grid: values of settings by dotted name, ``{"pca.dim": [64, 256], "objective": ["ranking", "matryoshka"]}``; also of
            ``teacher`` and ``recipe``.
        seeds: seeds of the runs of every choice.
        tasks: tasks as for :func:`xswe.evaluation.evaluate.evaluate`; none for the held-out pairs.
        data: folder of benchmark data sets; None for the hub.
        output: the folder of the sweep; None for a temporary one.
        settings: settings common to all runs, as for ``train``, including ``teacher`` and ``recipe``; and ``bootstrap``.

    Raises:
        ConfigError: a setting is unknown or impossible, or there is nothing to vary; some are found only when their run
            starts.
        InputError: a file is missing or damaged.

    Example:
        >>> import xswe
        >>> few = {"recipe": "static", "refine": {"max_steps": 5, "batch_size": 32}, "threads": 1}
        >>> found = xswe.sweep("sample", ["en", "de"], {"refine.learning_rate": [0.01, 0.02]}, seeds=[0], **few)
        >>> [point.settings for point in found]
        [{'refine.learning_rate': 0.01}, {'refine.learning_rate': 0.02}]
    """
    seeds, tasks = tuple(seeds), [tasks] if isinstance(tasks, str) else list(tasks)
    codes, bootstrap = tuple(languages), settings.pop("bootstrap", None) or Bootstrap()
    if not seeds or not grid or not all(isinstance(values, (list, tuple)) and values for values in grid.values()):
        raise ConfigError("a sweep needs seeds, and a list of values for each setting, as in {'pca.dim': [64, 256]}")
    if tasks:
        check(tasks)
    with ExitStack() as stack:
        folder = Path(output or stack.enter_context(scratch()))
        given = input if isinstance(input, (str, Path, Mapping)) else list(input)
        choices = [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]

        def full(choice: Mapping[str, Any], seed: int) -> TrainConfig:
            """Return the settings of one run: those of all, those of its choice, and its seed."""
            own = {**settings, **choice, "seed": seed}
            named = own.pop("teacher", "auto"), own.pop("recipe", "quickstart")
            if not (named[0] is None or isinstance(named[0], NAMED)):
                raise ConfigError("a sweep takes names of teachers, or None: your own encoder object is for train")
            return configure(given, codes, *named, own, folder)

        configs = [full(choice, seed) for choice in choices for seed in seeds]
        runs = iter(list(_runs(configs, folder, tasks, data)))
        points = [SweepPoint(one, seeds, *zip(*itertools.islice(runs, len(seeds)), strict=True)) for one in choices]
    return Sweep(tuple(grid), tuple(points), bootstrap)


def _runs(
    configs: Sequence[TrainConfig], folder: Path, tasks: Sequence[str], data: str | Path | None
) -> Iterator[tuple[tuple[Row, ...], Path]]:
    """Train and evaluate runs one after the other; an encoder that consecutive runs use is loaded once."""
    named: TeacherConfig | None = None
    teacher: Teacher | None = None
    for config in track(configs, "sweep", unit="run"):
        if config.teacher != named:
            named, teacher = config.teacher, load_encoder(config.teacher, config.threads)
        place = folder / run_name(config)
        made = train_with(config, teacher, place, folder)
        if tasks:
            rows = run_tasks(StaticEncoder(made.model, place.name, config.threads), tasks, data)
            check_measured(rows)
        else:
            last = next(reversed(made.steps))
            rows = [replace(row, note=None) for row in made.metrics if row.note == last]
        yield tuple(rows), place
