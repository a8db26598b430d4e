"""``xswe.train``: from bitext to a static model, its figures and its folder in one call."""

from __future__ import annotations

import html
import json
import math
import shutil
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from itertools import chain, combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, cast

import numpy as np

from xswe.corpus.cards import SAMPLE, cards, sample_sentences
from xswe.errors import ConfigError
from xswe.evaluation.evaluate import FIELDS
from xswe.evaluation.metrics import CORRELATIONS, Row
from xswe.evaluation.tasks import score_vectors
from xswe.io.choices import choose, update
from xswe.io.files import check_folder, fingerprint, scratch, whole_file, write_json
from xswe.io.results import Result, table
from xswe.model.card import card, write_card
from xswe.model.folder import matrix_file
from xswe.model.licences import Source, sources_of
from xswe.model.static import StaticModel
from xswe.teacher.protocol import Teacher, TeacherConfig
from xswe.text.languages import check_languages
from xswe.training.config import TrainConfig, Trained
from xswe.training.extract import SEPARATE
from xswe.training.pipeline import run_stages
from xswe.training.recipes import Values, recipe_settings, teacher_settings
from xswe.training.stages import versions
from xswe.work.config import LOCAL, ExecutionConfig

if TYPE_CHECKING:
    from xswe.settings import TrainSettings


def measure(result: Trained, languages: Sequence[str], threads: int) -> list[Row]:
    """Score every step of a run; the ``note`` of a row is the step."""
    rows = [replace(row, note=step) for step in result.stages for row in score_held_out(result, step, threads)]
    return rows + score_pivots(result, languages, threads)


def score_held_out(result: Trained, step: str, threads: int) -> list[Row]:
    """Score a step on the held-out pairs, or for a single language against the teacher's cosines."""
    rows, models = [], result.by_language[step]
    for name, texts in result.held_out.items():
        codes = name.split("-")
        unit = [models[c].encode(t, threads=threads) for c, t in zip(codes, texts, strict=True)]
        if len(codes) == 1:
            rows += score_imitation(unit[0], result.teacher, "held-out", name)
        else:
            rows += score_vectors(unit[0], unit[1], "held-out", name)
    return rows


def score_imitation(vectors: np.ndarray, teacher: np.ndarray | None, task: str, subset: str) -> list[Row]:
    """Correlate the cosines of all pairs of sentences with those of the teacher's unit vectors; None if undefined."""
    if teacher is None or len(vectors) < 3:
        return []
    above = np.triu_indices(len(vectors), 1)
    ours, theirs = (vectors @ vectors.T)[above], (teacher @ teacher.T)[above]
    found = ((name, correlate(ours, theirs)) for name, correlate in CORRELATIONS.items())
    return [
        Row(task, subset, f"{name}_with_teacher", value if math.isfinite(value) else None, len(vectors))
        for name, value in found
    ]


def score_pivots(result: Trained, languages: Sequence[str], threads: int) -> list[Row]:
    """Score retrieval between languages that no bitext joins, on the embedded sample corpus, which has all four.

    Sentences in the training texts of their language are left out.
    """
    direct = {frozenset(name.split("-")) for name in result.held_out}
    pairs = [pair for pair in combinations(languages, 2) if frozenset(pair) not in direct]
    if not pairs:
        return []
    texts = sample_sentences()
    codes = sorted({code for pair in pairs for code in pair})
    known = {code: set(texts[code]).intersection(result.training(code)) for code in codes}
    rows = [i for i in range(len(texts["en"])) if not any(texts[code][i] in known[code] for code in codes)]
    found = []
    for step, models in result.by_language.items():
        unit = {code: models[code].encode([texts[code][i] for i in rows], threads=threads) for code in codes}
        for a, b in pairs:
            found += [replace(row, note=step) for row in score_vectors(unit[a], unit[b], "without-bitext", f"{a}-{b}")]
    return found


def summary(rows: Sequence[Row], dims: Mapping[str, int]) -> str:
    """Lay out the figures, one line per step and pair; ``dims`` are the dimensions after each step."""
    subsets = list(dict.fromkeys((row.task, row.subset) for row in rows))
    alone = any(row.metric == "spearman_with_teacher" for row in rows)
    wanted = ("spearman_with_teacher", "pearson_with_teacher") if alone else ("accuracy", "margin_accuracy", "f1")
    lines = []
    for step, dim in dims.items():
        for task, subset in subsets:
            own = [row for row in rows if (row.note, row.task, row.subset) == (step, task, subset)]
            values = {row.metric: row.value for row in own}
            name = subset if task == "held-out" else f"{subset} *"
            lines.append([step, name, dim, *(values.get(metric) for metric in wanted), own[0].n if own else 0])
    names = ["Spearman with the teacher", "Pearson"] if alone else ["accuracy", "by margin", "F1"]
    out = table(["step", "language" if alone else "pair", "dims", *names, "held out"], lines)
    if any(task != "held-out" for task, _ in subsets):
        out += "\n* no bitext joins the two: sentences of the sample corpus that were not trained on"
    return out


NAMED = (str, Path, TeacherConfig)  # types that name an encoder to load; anything else is an encoder
Texts = str | Path | Mapping[str, Any] | Iterable[Any]


@dataclass(frozen=True)
class TrainResult(Result[Row], entries="metrics", row=FIELDS):
    """A trained model with its metrics, a sequence of rows that prints as a table.

    Attributes:
        model: the model.
        metrics: figures on the held-out pairs after each step, which is their ``note``.
        history: history of the refinement, an entry per evaluation on the development pairs: ``step``, ``loss``,
            ``development_loss``.
        folder: the run folder, with ``model``, ``results.json`` and the stages; None without ``output``.
        steps: the model after each step, in order; matrices before the last step may be wider.
        report: counts of the corpus, forward passes, variance of the components.
        settings: everything that decided the model.
    """

    model: StaticModel
    metrics: tuple[Row, ...]
    history: tuple[dict[str, float], ...]
    folder: Path | None
    steps: dict[str, StaticModel]
    report: dict[str, Any]
    settings: Values

    def __str__(self) -> str:
        return summary(self.metrics, {step: model.dim for step, model in self.steps.items()})

    def __repr__(self) -> str:
        return f"TrainResult({self.model!r}, folder={str(self.folder)!r})"

    def records(self) -> list[tuple[Any, ...]]:
        """Return a row per figure."""
        return [tuple(row.as_dict().values()) for row in self.metrics]

    def _repr_html_(self) -> str:
        """Return the table for a notebook."""
        return f"<pre>{html.escape(str(self))}</pre>"


def train(
    input: Texts,
    languages: Iterable[str],
    *,
    teacher: str | Path | TeacherConfig | Teacher | None = "auto",
    recipe: str | TrainConfig = "quickstart",
    output: str | Path | None = None,
    shared: str | Path | None = None,
    keep_steps: bool = False,
    execution: ExecutionConfig = LOCAL,
    **settings: Unpack[TrainSettings],
) -> TrainResult:
    """Train a model.

    Args:
        input: bitext: names of files, folders or patterns, entries of ``corpus.paths`` such as ``{"card": "ccmatrix"}``, or
            pairs of texts (for ranking in a single language: anchor, positive, and any negatives); for several language
            pairs a mapping from names like ``en-de`` to these. ``"sample"`` for the small corpus in this package.
        languages: codes; the first is the hub of the language pairs.
        teacher: ``mini`` (in this package), ``minilm``, ``mgte``, ``gte-base-en``, ``e5-small``, ``e5-base``, ``e5-large``,
            ``bge-m3``, ``labse``, ``paraphrase``, a folder or name for transformers, or any object with the methods of
            :class:`xswe.teacher.protocol.Teacher`; None starts from random vectors; ``auto`` takes the recipe's.
        recipe: ``quickstart``, ``static`` (without a teacher), ``paper``, or full settings.
        output: the run folder: a killed run resumes from it, and a run with other settings repeats only what they change.
            None for a temporary one.
        shared: a folder whose ``stages`` several runs share, so that equal stages are done once; None for the run folder.
        keep_steps: also save the model after each step, under ``steps`` of the run folder.
        execution: who counts words and runs encoders: this process, the tasks of a batch queue, or the workers of a
            cluster, all with the same bytes as result.
        settings: changes to the recipe, by section (``refine={"max_steps": 500}``) or by name
            (``**{"refine.max_steps": 500}``); see :class:`xswe.training.config.TrainConfig`. ``units``, ``objective`` and
            ``clean`` may name a choice, as in ``objective="matryoshka"``, and ``distilled`` an encoder, like ``teacher``.

    Raises:
        ConfigError: a setting is unknown or impossible.
        InputError: a file is missing or damaged.

    Example:
        >>> import xswe
        >>> few = {"max_steps": 20, "batch_size": 64}
        >>> made = xswe.train("sample", ["en", "de"], recipe="static", refine=few, **{"pca.dim": 256, "threads": 1})
        >>> made.model.encode(["A cat sleeps."]).shape
        (1, 256)
        >>> [row.metric for row in made.metrics][:1]
        ['accuracy_forward']
    """
    with _run_folder(output) as folder:
        config = configure(input, languages, teacher, recipe, settings, folder)
        named = teacher is None or isinstance(teacher, NAMED)
        start = load_encoder(config.teacher, config.threads) if named else cast("Teacher", teacher)
        place = None if shared is None else Path(shared)
        result = train_with(config, start, folder, place, keep_steps, execution)
        return result if output is not None else replace(result, folder=None)


def train_with(
    config: TrainConfig,
    start: Teacher | None,
    folder: Path,
    shared: Path | None = None,
    keep_steps: bool = False,
    execution: ExecutionConfig = LOCAL,
) -> TrainResult:
    """Train a model with full settings and an encoder that is already loaded; see :func:`train`."""
    imitated = start
    if config.objective.imitating and config.distilled is not None:
        imitated = load_encoder(config.distilled, config.threads)
    made = run_stages(config, start, folder, distilled=imitated, shared=shared, execution=execution)
    return _written(made, config, folder, keep_steps)


def run_name(config: TrainConfig) -> str:
    """Return ``<recipe>-<fingerprint>``, the name of the run folder for these settings."""
    return f"{config.recipe}-{fingerprint(recorded(config), length=8)}"


def configure(
    bitext: Texts,
    languages: Iterable[str],
    teacher: Any = "auto",
    recipe: str | TrainConfig = "quickstart",
    settings: Mapping[str, Any] | None = None,
    folder: Path | None = None,
) -> TrainConfig:
    """Return the full settings of a run; see :func:`train`.

    Pairs of texts are written into the folder, from which the corpus is read; without a folder they are refused.
    ConfigError: a setting is unknown or impossible.
    """
    changes, codes = dict(settings or {}), check_languages(languages)
    if isinstance(recipe, TrainConfig):
        values = asdict(recipe)
    else:
        named = {name: changes.pop(name) for name in ("units", "objective") if isinstance(changes.get(name), str)}
        values = recipe_settings(recipe, codes, **named)
    if isinstance(clean := changes.pop("clean", {}), str):
        clean = choose("corpus/clean", clean)
    named_teacher = None if teacher is None or not isinstance(teacher, NAMED) else teacher_settings(teacher)
    if teacher != "auto":
        values["teacher"] = named_teacher
    if isinstance(distilled := changes.get("distilled"), NAMED):
        changes["distilled"] = None if distilled == "same" else teacher_settings(distilled)
    paths = bitext_entries(bitext, codes, folder)
    if paths == SAMPLE and not isinstance(recipe, TrainConfig):
        update(values, {"corpus": choose("corpus", SAMPLE)})
    update(values, {"corpus.clean": clean})
    update(values, changes)
    values["corpus"]["paths"] = paths
    return TrainConfig.of({**values, "languages": codes})


def recorded(config: TrainConfig) -> Values:
    """Return the settings and inputs of a model for its card and folder."""
    values: Values = {"pair": "-".join(config.languages), **asdict(config)}
    for name in ("languages", "threads"):
        del values[name]
    for section in (value for value in values.values() if isinstance(value, dict)):
        section.pop("seed", None)
        section.pop("threads", None)
    return values


def load_encoder(config: TeacherConfig | None, threads: int) -> Teacher | None:
    """Load the encoder that settings name; None without settings."""
    if config is None:
        return None
    from xswe.teacher.transformer import load_teacher

    return load_teacher(replace(config, threads=threads))


def bitext_entries(bitext: Any, languages: tuple[str, ...], folder: Path | None) -> Any:
    """Return entries for ``corpus.paths``, writing pairs of texts into the run folder first."""
    if bitext is None or (isinstance(bitext, str) and bitext == SAMPLE):
        return bitext
    if isinstance(bitext, (str, Path)):
        return [str(bitext)]
    if isinstance(bitext, Mapping):
        if {"path", "card", "hub"} & set(bitext):
            return [dict(bitext)]
        return {name: bitext_entries(own, tuple(name.split("-")), folder) for name, own in bitext.items()}
    entries = iter(bitext)
    first = next(entries, None)
    if first is None or isinstance(first, (str, Path, Mapping)):
        rest = list(entries)
        return [str(entry) if isinstance(entry, Path) else entry for entry in ([] if first is None else [first, *rest])]
    if folder is None or len(languages) > 2:
        raise ConfigError("pairs of texts must be of one language pair: give a mapping {'en-de': [...], 'en-ja': [...]}")
    return [_write_pairs(chain([first], entries), "-".join(languages), folder)]


def _write_pairs(pairs: Iterable[Any], name: str, folder: Path) -> Values:
    """Write pairs of texts, followed by any negatives, as JSON lines, and return the corpus entry for reading them."""
    path, width = folder / "bitext" / f"{name}.jsonl", 2
    with whole_file(path) as temporary, open(temporary, "w", encoding="utf-8") as stream:
        for number, pair in enumerate(pairs):
            texts = list(pair)
            width = len(texts) if not number else width
            if len(texts) != width or width < 2 or not all(isinstance(text, str) for text in texts):
                raise ConfigError(f"bitext: pair {number} is {pair!r}; give two texts each, and any negatives after them")
            record = {str(k): text for k, text in enumerate(texts)}
            stream.write(json.dumps(record, ensure_ascii=False) + "\n")
    return {"path": str(path), "fields": [str(k) for k in range(width)]}


@contextmanager
def _run_folder(output: str | Path | None) -> Iterator[Path]:
    """Yield the run folder; if this run created it and fails, remove it unless a stage in it is done or begun."""
    if output is None:
        with scratch() as temporary:
            yield Path(temporary)
        return
    check_folder(folder := Path(output))
    made = next((place for place in reversed([folder, *folder.parents]) if not place.exists()), None)
    try:
        yield folder
    except BaseException:
        worth = ("*/stage.json", "*.shards/manifest.json", "*.checkpoint.safetensors")
        if made is not None and not any(found for kind in worth for found in (folder / "stages").glob(kind)):
            shutil.rmtree(made, ignore_errors=True)
        raise


def _written(made: Trained, config: TrainConfig, folder: Path, keep_steps: bool) -> TrainResult:
    """Evaluate a model, and write it with its card and figures into the run folder."""
    settings = recorded(config)
    rows = measure(made, config.languages, config.threads)
    last = next(reversed(made.stages))
    description: Values = {"teacher": config.teacher and config.teacher.model, "settings": settings}
    sources = sources_of(settings["corpus"], made.report["corpus"])
    sources += [Source(f"{Path(path).name}, pairs graded by people", None) for path in config.graded.paths]
    sources += [Source(f"the vectors of {config.refine.start}", None)] if config.refine.start else []
    if notes := [cards()[source.name].licence_note() for source in sources if source.name in cards()]:
        description["corpora"] = notes
    model = replace(made.model, description=description, counts=made.counts, forms=made.forms)
    model.save(folder / "model")
    text = card(
        model,
        name=f"xswe-{settings['pair']}",
        settings=settings,
        rows=[row.as_dict() for row in rows if row.note == last],
        sources=sources,
        versions=versions(),
    )
    write_card(folder / "model", text)
    further = {}
    if SEPARATE[config.extract.merge]:
        for code, own in made.by_language[last].items():
            further[folder / "languages" / code] = replace(own, description=description | {"language": code})
    if keep_steps:
        for step, stage in made.stages.items():
            further[folder / "steps" / step.lower().replace(" ", "-")] = stage
    for place, one in further.items():
        one.save(place)
    _remove_leftovers(folder, further, config)
    write_json(folder / "results.json", {"settings": settings, "report": made.report, "rows": [r.as_dict() for r in rows]})
    write_json(folder / "run.json", {"versions": versions(), "threads": config.threads, "seconds": made.seconds})
    history = tuple(made.report.get("refinement", {}).get("history", ()))
    return TrainResult(model, tuple(rows), history, folder, made.stages, made.report, settings)


def _remove_leftovers(folder: Path, models: Container[Path], config: TrainConfig) -> None:
    """Remove models and histories that an earlier run with other settings left beside those of this run.

    ``models`` are this run's paths below ``languages`` and ``steps``; files that runs do not write are left alone.
    """
    for old in [*folder.glob("languages/*"), *folder.glob("steps/*")]:
        if old not in models and matrix_file(old).is_file():
            shutil.rmtree(old)
    for place, trained in ((folder, config.refine.trains), (folder / "spans", config.spans.max_steps > 0)):
        if not trained:
            for file in [*place.glob("history.csv"), *place.glob("tensorboard/events.out.tfevents.*")]:
                file.unlink()
    for name in ("languages", "steps", "tensorboard", "spans/tensorboard", "spans"):
        if (folder / name).is_dir() and not any((folder / name).iterdir()):
            (folder / name).rmdir()
