"""``xswe.evaluate`` and ``xswe.compare``: models on benchmarks and on the user's files, with the figures as rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, fields, replace
from glob import glob
from pathlib import Path
from typing import Any, TypeVar

from xswe.bitext.source import find_pairs
from xswe.errors import ConfigError, InputError
from xswe.evaluation.encoders import SentenceEncoder, StaticEncoder
from xswe.evaluation.metrics import LEVEL, Bootstrap, Row, compare_rows, corrected, enough, primary_metrics, with_intervals
from xswe.evaluation.models import ModelSpec, check_exists, open_encoder
from xswe.evaluation.mteb_bridge import run_task
from xswe.evaluation.run_names import names_of_runs
from xswe.evaluation.speed import sample_texts, sentences_per_second
from xswe.evaluation.tasks import check, evaluate_bitext, evaluate_scored, is_path, is_scored
from xswe.io.arguments import check_model, file_names, several
from xswe.io.files import check_output, read_json, scratch
from xswe.io.parallel import available_threads
from xswe.io.results import Result, cell, check_suffix, table
from xswe.io.settings import sound
from xswe.model.ensemble import Ensemble
from xswe.model.static import StaticModel
from xswe.progress import track
from xswe.text.languages import languages_in_name

T = TypeVar("T", "Scores", "Comparison")
Model = str | Path | Mapping[str, Any] | StaticModel | Ensemble | SentenceEncoder
FIELDS = tuple(field.name for field in fields(Row) if field.name != "items")
# The metrics in printed tables; tasks without any of them show their main score. The rows contain all metrics.
_SHOWN_METRICS = (
    *("f1", "accuracy", "margin_accuracy", "mrr", "accuracy_both_ways", "margin_accuracy_both_ways"),
    *("spearman", "cosine_spearman", "average", "average_s2s", "skipped"),
)


@dataclass(frozen=True)
class Scores(Result[Row], entries="rows", row=FIELDS):
    """The figures of a model; a sequence of :class:`xswe.evaluation.metrics.Row`.

    Prints as a table of the usual metrics; the rows contain all of them.

    Attributes:
        name: name of the model in tables.
        model: the model as it was given.
        rows: its figures, or the reason for a missing one.
        level: level of the confidence intervals.
    """

    name: str
    model: str
    rows: tuple[Row, ...]
    level: float = 0.95

    def __repr__(self) -> str:
        return f"Scores({self.name!r}, {len(self)} figures)"

    def __str__(self) -> str:
        return "\n".join([table(*self.layout()), "", *skipped(self.rows)]).rstrip()

    def records(self) -> list[tuple[Any, ...]]:
        """Return all rows."""
        return [tuple(row.as_dict().values()) for row in self.rows]

    def layout(self) -> tuple[list[str], list[list[Any]]]:
        """Return the table of the usual metrics, in percent."""
        rows = [row for row in shown(self.rows) if row.value is not None]
        lines = [[row.task, row.subset, row.metric, row.value, _interval(row), row.n, row.source] for row in rows]
        return ["task", "subset", "metric", "value", f"{self.level:.0%}", "n", "source"], lines

    def as_json(self) -> dict[str, Any]:
        """Return the model, its name, and one object per row."""
        return {"model": self.model, "name": self.name, "rows": [row.as_dict() for row in self.rows]}

    def check(self, where: str = "") -> None:
        """Check that there is at least one figure.

        Raises:
            ConfigError: no row has a value; the message has the reasons, row by row.
        """
        check_measured(self.rows, where)


def evaluate(
    model: Model,
    tasks: str | Sequence[str],
    data: str | Path | None = None,
    *,
    bootstrap: Bootstrap | None = None,
    threads: int | None = None,
    results: str | Path | None = None,
    output: str | Path | None = None,
) -> Scores:
    r"""Evaluate a model.

    Args:
        model: a loaded model; a folder or name such as ``mini``, ``user/repository``, ``wordllama`` or ``teacher:mini``,
            see :class:`xswe.evaluation.models.ModelSpec`; or your own encoder.
        tasks: presets (``xling``, ``sts-en``, ``mteb-en``, ``jmteb``), names of mteb's tasks, and paths of files: aligned,
            or ``score<TAB>a<TAB>b``.
        data: folder of data sets under their hub names; None for the hub and its cache.
        bootstrap: draws for confidence intervals; ``Bootstrap(rounds=0)`` for none.
        threads: null for all processors.
        results: folder for mteb's own result tree; null for ``mteb`` beside the output, or none without an output.
        output: file for all rows, by its suffix any table; tables for reading, such as ``.md``, are the printed one.

    Raises:
        ConfigError: a task is unknown; or every task was skipped and there is an output (the rows, with the reasons, are
            written first).
        ModelError, InputError: a model or file is missing or damaged.

    Example:
        >>> import pathlib, tempfile, xswe
        >>> file = pathlib.Path(tempfile.mkdtemp()) / "own.tsv"
        >>> pairs = "A cat sleeps.\t猫が寝ている。\nThe train is late.\t電車が遅れている。\n"
        >>> _ = file.write_text(pairs, encoding="utf-8")
        >>> scores = xswe.evaluate(xswe.load("mini"), [str(file)])
        >>> [row.value for row in scores if row.metric == "accuracy"]
        [1.0]
    """
    tasks = _names(tasks)
    results = _checked(tasks, data, output, results)
    bootstrap = bootstrap or Bootstrap()
    if not isinstance(model, (str, Path, Mapping)):
        check_model(model, "evaluate(model, tasks)")
    encoder = as_encoder(model, threads)
    rows = with_intervals(run_tasks(encoder, tasks, data, results), bootstrap)
    named = str(model) if isinstance(model, (str, Path)) else encoder.name
    return _written(Scores(encoder.name, named, tuple(rows), bootstrap.level), output)


def _names(tasks: Any) -> list[str]:
    found = file_names(tasks, "tasks", "pairs are read from files, as .tsv or .parquet", "names of tasks or files")
    return list(dict.fromkeys(found))


def _checked(
    tasks: Sequence[str], data: str | Path | None, output: str | Path | None, results: str | Path | None
) -> str | Path | None:
    """Check tasks and output before any work, and return the folder for mteb's results."""
    check(tasks)
    if data is not None and all(map(is_path, tasks)):
        raise ConfigError("data does nothing if all tasks are files: leave it out")
    if output is None:
        return results
    check_output(output, tasks)
    check_suffix(output)
    return results or Path(output).parent / "mteb"


def _written(found: T, output: str | Path | None) -> T:
    """Write the rows to the output, if there is one; ConfigError: no row has a value."""
    if output is not None:
        found.write(output)
        found.check(str(output))
    return found


def as_encoder(model: Model, threads: int | None = None) -> SentenceEncoder:
    """Return the encoder of a loaded model or a name; an encoder is returned as it is."""
    threads = available_threads(threads)
    if isinstance(model, StaticModel):
        return StaticEncoder(model, "-".join(model.languages), threads)
    if isinstance(model, Ensemble):
        return StaticEncoder(model, "ensemble", threads)
    if isinstance(model, (str, Path, Mapping)):
        return open_encoder(str(model) if isinstance(model, Path) else model, threads)
    return model


def run_tasks(
    encoder: SentenceEncoder, tasks: Sequence[str], data: str | Path | None, results: str | Path | None = None
) -> list[Row]:
    """Run tasks in order; see :func:`evaluate`. The rows keep their items for resampling."""
    check(tasks)
    rows: list[Row] = []
    with ExitStack() as stack:
        place = Path(results or stack.enter_context(scratch("xswe-mteb-")))
        for task in track(tasks, "evaluate", unit="task"):
            root = None if data is None else Path(data)
            rows += _file(encoder, task) if is_path(task) else run_task(encoder, task, root, place)
    return rows


def _file(encoder: SentenceEncoder, path: str) -> list[Row]:
    """Evaluate on a file: ``score<TAB>a<TAB>b``, or an aligned bitext."""
    if Path(path).is_file() and is_scored(Path(path)):
        return evaluate_scored(encoder.encode, Path(path))
    named, known = languages_in_name(Path(path).name), (*encoder.languages, *encoder.languages)[:2]
    languages = named if len(named) == 2 else known if len(encoder.languages) <= 2 else ()
    files = (file.with_detected_languages() for file in find_pairs([path], languages))
    return [row for file in files for row in evaluate_bitext(encoder.encode, file)]


def skipped(rows: Iterable[Row]) -> list[str]:
    """Return a line for each reason why figures are missing, with the tasks concerned."""
    why: dict[str, dict[str, None]] = {}
    for row in rows:
        if row.value is None and row.note:
            why.setdefault(row.note, {})[f"{row.task} {row.subset}"] = None
    return [f"skipped {', '.join(places)}: {reason}" for reason, places in why.items()]


def check_measured(rows: Sequence[Row], where: str = "") -> None:
    """Raise a ConfigError if no row has a value; the message gives the reason of each row."""
    if not any(row.value is not None for row in rows):
        end = f" (all rows: {where})" if where else ""
        raise ConfigError(f"nothing was measured: {'; '.join(skipped(rows)) or 'no task has any row'}{end}")


def _interval(row: Row) -> str | None:
    return None if row.low is None or row.high is None else f"{100 * row.low:.1f}-{100 * row.high:.1f}"


def shown(rows: Sequence[Row]) -> list[Row]:
    """Return the rows that tables show."""
    rows = [row for row in rows if row.metric != "spearman" or row.source == "xswe"]  # mteb reports it twice
    covered = {(row.task, row.subset) for row in rows if row.metric in _SHOWN_METRICS}
    return [
        row
        for row in rows
        if row.metric in _SHOWN_METRICS or (row.metric == "main_score" and (row.task, row.subset) not in covered)
    ]


_SHOWN_TOO = ("average_s2s",)  # in addition to the primary metrics
Key = tuple[str, str, str, str | None]  # task, subset, metric and split of a figure


@dataclass(frozen=True)
class Measured:
    """A model and its figures.

    Attributes:
        name: name in tables.
        dim: dimensions of a vector.
        size: bytes of the weights in memory.
        parameters: number of weights.
        languages: codes of the languages it was evaluated on.
        rate: sentences per second; None if not timed.
        rows: its figures.
        training: seconds of training, from its run folder; None if unknown.
    """

    name: str
    dim: int
    size: int
    parameters: int
    languages: tuple[str, ...]
    rate: float | None
    rows: tuple[Row, ...]
    training: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return a JSON object, without the rows."""
        return {
            "name": self.name,
            "dim": self.dim,
            "bytes": self.size,
            "parameters": self.parameters,
            "languages": list(self.languages),
            "sentences_per_second": None if self.rate is None else round(self.rate),
            "training_seconds": None if self.training is None else round(self.training, 1),
        }

    def only(self, rows: Sequence[Row]) -> Measured:
        """Return a copy with these rows only."""
        return replace(self, rows=tuple(rows))

    def row(self, key: Key) -> Row | None:
        """Return the row of a figure, or None if it is missing or has no value."""
        return next((row for row in self.rows if row.key == key and row.value is not None), None)


@dataclass(frozen=True)
class PairedTest:
    """A test of the best model on a figure against another; see :class:`xswe.evaluation.metrics.Comparison`.

    ``corrected`` is p corrected for all tests of the comparison (Holm).
    """

    task: str
    subset: str
    metric: str
    split: str | None
    best: str
    other: str
    difference: float
    low: float
    high: float
    p: float
    corrected: float = 1.0

    @property
    def key(self) -> Key:
        """The key of the figure."""
        return self.task, self.subset, self.metric, self.split


def seconds_of_training(folder: str | Path) -> float | None:
    """Return the training time of a run folder in seconds; None if the folder does not record it."""
    path = Path(folder) / "run.json"
    return float(sum(read_json(path)["seconds"].values())) if path.is_file() else None


def figures_of(rows: Iterable[Row]) -> list[Key]:
    """Return the keys of the figures in a table of models, in the order of the rows."""
    keys = list(dict.fromkeys(row.key for row in rows))
    chosen = primary_metrics(((task, subset, split), metric) for task, subset, metric, split in keys)
    return [key for key in keys if chosen.get((key[0], key[1], key[3])) == key[2] or key[2] in _SHOWN_TOO]


def _best(models: Sequence[Measured], key: Key) -> Measured | None:
    """Return the model with the highest figure (the first on a tie); None if no model has the figure."""
    known = [(row.value or 0.0, model) for model in models if (row := model.row(key))]
    return max(known, key=lambda pair: pair[0])[1] if known else None


def significance(models: Sequence[Measured], settings: Bootstrap) -> list[PairedTest]:
    """Test the best model of each figure in the table against every other, on the same draws of the same items.

    All tests form one family, and p is corrected for their number.
    """
    pairs: list[tuple[Key, Measured, Measured]] = []
    for key in figures_of(row for model in models for row in model.rows):
        best = _best(models, key)
        if best is None:
            continue
        for other in models:
            if other is not best and other.row(key) is not None:
                pairs.append((key, best, other))
    tests, settings = [], enough(settings, len(pairs))
    for key, best, other in pairs:
        first, second = best.row(key), other.row(key)
        if first and second and (found := compare_rows(first, second, settings)) is not None:
            result = (found.difference, found.low, found.high, found.p)
            tests.append(PairedTest(*key, best.name, other.name, *result))
    return correct(tests)


def correct(tests: Sequence[PairedTest]) -> list[PairedTest]:
    """Return all tests of a comparison, with p corrected for their number."""
    values = corrected([test.p for test in tests])
    return [replace(test, corrected=value) for test, value in zip(tests, values, strict=True)]


def of_marks(tests: int) -> str:
    """Explain the marks of a table."""
    many = f" corrected for {tests} tests (Holm)" if tests > 1 else ""
    return f"* best; = not shown to be worse (paired bootstrap, p >= {LEVEL}{many})"


def _outcome(models: Sequence[Measured], tests: Sequence[PairedTest]) -> tuple[list[str], list[list[Any]], list[str]]:
    """Return the header, one line per model, and notes: the meaning of the marks, and why tasks were skipped."""
    keys = figures_of(row for model in models for row in model.rows)
    alike = {(*test.key, test.other) for test in tests if test.corrected >= LEVEL}
    best = {key: _best(models, key) for key in keys}
    header = ["model", "dims", "MB", "sentences/s", *(title(key, keys) for key in keys)]
    lines = []
    for model in models:
        figures = []
        for key in keys:
            row = model.row(key)
            mark = "*" if row and best[key] is model else "=" if row and (*key, model.name) in alike else " "
            figures.append(cell(row and row.value) + mark)
        rate = None if model.rate is None else f"{model.rate:,.0f}"
        lines.append([model.name, model.dim, f"{model.size / 1e6:.1f}", rate, *figures])
    notes = [of_marks(len(tests))] if keys else []
    why: dict[str, list[str]] = {}
    for model in models:
        for row in model.rows:
            if row.value is None and row.note:
                why.setdefault(f"{row.task} {row.subset}: {row.note}".replace(" -:", ":"), []).append(model.name)
    return header, lines, [*notes, *(f"skipped {reason} ({', '.join(names)})" for reason, names in why.items())]


@dataclass(frozen=True)
class Comparison(Result[Measured], entries="models", row=("model", *FIELDS)):
    """Several models on the same tasks; prints as a table with the best of each column marked.

    Iterating yields the models.

    Attributes:
        models: the models and their figures.
        tests: the best model of each figure against every other.
        threads: number of threads during timing.
    """

    models: tuple[Measured, ...]
    tests: tuple[PairedTest, ...]
    threads: int

    def __repr__(self) -> str:
        return f"Comparison({', '.join(model.name for model in self)})"

    def __str__(self) -> str:
        header, lines, notes = self._outcome()
        return "\n".join([table(header, lines), "", *notes]).rstrip()

    def _outcome(self) -> tuple[list[str], list[list[Any]], list[str]]:
        return _outcome([model.only(shown(model.rows)) for model in self.models], self.tests)

    def records(self) -> list[tuple[Any, ...]]:
        """Return all rows of all models."""
        return [(model.name, *row.as_dict().values()) for model in self.models for row in model.rows]

    def layout(self) -> tuple[list[str], list[list[Any]]]:
        """Return the table with one line per model, in percent, the best marked."""
        return self._outcome()[:2]

    def as_json(self) -> dict[str, Any]:
        """Return the models, all their rows, and the tests."""
        return {
            "threads": self.threads,
            "models": [model.as_dict() for model in self.models],
            "rows": [{"model": model.name, **row.as_dict()} for model in self.models for row in model.rows],
            "tests": [asdict(test) for test in self.tests],
        }

    def check(self, where: str = "") -> None:
        """Check that there is at least one figure.

        Raises:
            ConfigError: no model has one; the message has the reasons.
        """
        check_measured([row for model in self.models for row in model.rows], where)


def compare(
    models: Sequence[Model],
    tasks: str | Sequence[str],
    data: str | Path | None = None,
    *,
    seconds: float = 1.0,
    bootstrap: Bootstrap | None = None,
    threads: int | None = None,
    results: str | Path | None = None,
    output: str | Path | None = None,
) -> Comparison:
    r"""Evaluate models one after the other, time them, and test the best of each figure against the others.

    Args:
        models: loaded models, names, or encoders, as in :func:`xswe.evaluation.evaluate.evaluate`. A pattern
            (``runs/sweep/*/model``) stands for all folders it matches; the runs of a sweep are named by the settings in
            which they differ.
        tasks: presets, names of mteb's tasks, and paths of files.
        data: folder of data sets; None for the hub.
        seconds: how long to time each model on the sentences of the package; 0 for no timing.
        bootstrap: draws for confidence intervals and paired tests.
        threads: null for all processors.
        results: folder for mteb's own result tree; null for ``mteb`` beside the output, or none without an output.
        output: file for all rows, or the table, as in ``evaluate``.

    Raises:
        ConfigError: no model is named, two have the same name, or a task is unknown.
        InputError: a pattern matches nothing.

    Example:
        >>> import pathlib, tempfile, xswe
        >>> file = pathlib.Path(tempfile.mkdtemp()) / "own.tsv"
        >>> pairs = "A cat sleeps.\t猫が寝ている。\nThe train is late.\t電車が遅れている。\n"
        >>> _ = file.write_text(pairs, encoding="utf-8")
        >>> models = ["mini", {"path": "mini", "name": "again"}]
        >>> [model.name for model in xswe.compare(models, str(file), seconds=0)]
        ['mini', 'again']
    """
    tasks = _names(tasks)
    results = _checked(tasks, data, output, results)
    one = isinstance(models, (str, Path, Mapping))
    named_ones: Sequence[Any] = [models] if one else several(models, "models", "several, as in [model, 'mini']")
    given = [one for which in sound(named_ones, "models") for one in _matching(which)]
    if not given:
        raise ConfigError("models is empty: name some, as in models=[runs/en-ja/model,wordllama,teacher:mini]")
    for which in given:
        if isinstance(which, (str, Mapping)):
            check_exists(ModelSpec.of(which))
    threads, bootstrap = available_threads(threads), bootstrap or Bootstrap()
    done: list[Measured] = []
    for which in track(given, "compare", unit="model"):
        encoder = as_encoder(which, threads)
        if encoder.name in (other.name for other in done):
            raise ConfigError(f"two models are called {encoder.name!r}: name them, as in {{path: …, name: other}}")
        rows = with_intervals(run_tasks(encoder, tasks, data, results), bootstrap)
        rate = sentences_per_second(encoder, sample_texts(encoder.languages), seconds) if seconds else None
        named = isinstance(which, (str, Mapping)) and ModelSpec.of(which).path
        training = seconds_of_training(Path(named).parent) if isinstance(named, str) else None
        about = (encoder.name, encoder.dim, encoder.size, encoder.parameters, tuple(encoder.languages))
        done.append(Measured(*about, rate, tuple(rows), training))
    return _written(Comparison(tuple(done), tuple(significance(done, bootstrap)), threads), output)


def _matching(which: Model) -> list[Model]:
    """Return the models that a name stands for: for a pattern, all folders it matches."""
    if not isinstance(which, str) or "*" not in which:
        return [which]
    if not (found := sorted(glob(which))):
        raise InputError(which, "matches no folder", "check the pattern, as in models=[runs/sweep/*/model]")
    names = names_of_runs(found)
    return [{"path": path, "name": name} for path, name in zip(found, names, strict=True)] if names else list(found)


def title(key: Key, keys: Sequence[Key]) -> str:
    """Name a column by its task and subset, and by its split or metric if these are ambiguous."""
    task, subset, metric, split = key
    parts = [task if task != "file" else "", subset]
    if sum(other[:2] == key[:2] and other[3] != split for other in keys):
        parts.append(str(split))
    if sum(other[:2] == key[:2] and other[2] != metric for other in keys):
        parts.append(metric)
    return " ".join(filter(None, parts))
