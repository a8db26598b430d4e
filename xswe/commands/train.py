"""``python -m xswe train``: from bitext to a static model, and a table of what each step is worth."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Container, Mapping
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from xswe.corpus.bitext import CorpusConfig
from xswe.corpus.cards import cards
from xswe.corpus.contexts import ContextConfig
from xswe.evaluation.metrics import Row, similarity_correlation
from xswe.evaluation.tasks import score_bitext
from xswe.io.files import fingerprint, resource, write_json
from xswe.io.parallel import available_threads
from xswe.io.results import table
from xswe.io.settings import build
from xswe.model.card import card, sources_of, write_card
from xswe.text.languages import check_languages
from xswe.training.config import PCAConfig, TrainConfig, TrainResult
from xswe.training.extract import ExtractConfig
from xswe.training.inputs import UnitsConfig
from xswe.training.objective import Objective
from xswe.training.pipeline import train
from xswe.training.refine import RefineConfig
from xswe.training.stages import versions
from xswe.training.triplets import SpanTraining

if TYPE_CHECKING:
    from xswe.teacher.protocol import Teacher

logger = logging.getLogger(__name__)
SAMPLE_COLUMNS = ("en", "de", "zh", "ja")  # of the embedded sample corpus


def run(values: dict[str, Any]) -> str:
    """Train, save ``model`` and ``results.json`` into the run folder, and return the table."""
    values = {**values, "corpus": {**values["corpus"], "sample": takes_sample(values["corpus"])}}
    config = train_config(values)
    teacher = load_teacher_of(values.get("teacher"), config.threads)
    settings = {k: v for k, v in values.items() if k not in ("output", "threads", "name", "keep_steps")}
    folder = Path(values["output"] or default_output(values, settings))
    result = train(config, teacher, folder, distilled=load_distilled(values, config, teacher))
    rows = [replace(row, note=step) for step in result.stages for row in score_held_out(result, step, config.threads)]
    rows += score_pivots(result, config)
    last = next(reversed(result.stages))
    description = {"teacher": values["teacher"]["model"] if values.get("teacher") else None, "settings": settings}
    sources = sources_of(settings["corpus"], result.report["corpus"])
    if notes := [cards()[source.name].licence_note() for source in sources if source.name in cards()]:
        description["corpora"] = notes
    model = replace(result.model, description=description)
    model.save(folder / "model")
    text = card(
        model,
        name=f"xswe-{values['pair']['name']}",
        settings=settings,
        rows=[row.as_dict() for row in rows if row.note == last],
        sources=sources,
        versions=versions(),
    )
    write_card(folder / "model", text)
    further = {}
    if config.extract.merge == "separate":
        for code, own in result.by_language[last].items():
            further[folder / "languages" / code] = replace(own, description=description | {"language": code})
    if values["keep_steps"]:
        for step, stage in result.stages.items():
            further[folder / "steps" / step.lower().replace(" ", "-")] = stage
    for place, one in further.items():
        one.save(place)
    remove_leftovers(folder, further, config)
    write_json(
        folder / "results.json", {"settings": settings, "report": result.report, "rows": [r.as_dict() for r in rows]}
    )
    write_json(folder / "run.json", {"versions": versions(), "threads": config.threads, "seconds": result.seconds})
    return f"{summary(rows, result)}\n\nmodel: {folder / 'model'}\nfigures: {folder / 'results.json'}"


def remove_leftovers(folder: Path, models: Container[Path], config: TrainConfig) -> None:
    """Remove the models and histories that an earlier run with other settings left beside those of this one.

    Args:
        folder: the run folder; what no run writes there is left alone.
        models: the places of this run's models below ``languages`` and ``steps``.
        config: the settings, which tell the histories that this run wrote.
    """
    for old in [*folder.glob("languages/*"), *folder.glob("steps/*")]:
        if old not in models and (old / "model.safetensors").is_file():
            shutil.rmtree(old)
    for place, trained in ((folder, config.refine.trains), (folder / "spans", config.spans.max_steps > 0)):
        if not trained:
            for file in [*place.glob("history.csv"), *place.glob("tensorboard/events.out.tfevents.*")]:
                file.unlink()
    for name in ("languages", "steps", "tensorboard", "spans/tensorboard", "spans"):
        if (folder / name).is_dir() and not any((folder / name).iterdir()):
            (folder / name).rmdir()


def train_config(values: dict[str, Any]) -> TrainConfig:
    """Turn the composed configuration into the pipeline's."""
    languages = check_languages(values["pair"]["languages"])
    return TrainConfig(
        languages=languages,
        corpus=corpus_config(values, languages),
        units=build(UnitsConfig, values["units"], "units"),
        contexts=build(ContextConfig, {**values["contexts"], "seed": values["seed"]}, "contexts"),
        extract=build(ExtractConfig, values["extract"], "extract"),
        pca=build(PCAConfig, values["pca"], "pca"),
        refine=build(RefineConfig, values["refine"], "refine"),
        objective=build(Objective, values["objective"], "objective"),
        spans=build(SpanTraining, values["spans"], "spans"),
        seed=values["seed"],
        threads=values["threads"] or available_threads(),
    )


def corpus_config(values: dict[str, Any], languages: tuple[str, ...]) -> CorpusConfig:
    """Return the corpus section as the pipeline's settings; the sample's paths are filled in."""
    corpus = {name: value for name, value in values["corpus"].items() if name != "sample"}
    if takes_sample(values["corpus"]):
        corpus["paths"] = sample_paths(languages)
    return build(CorpusConfig, corpus, "corpus")


def takes_sample(corpus: Mapping[str, Any]) -> bool:
    """Tell whether a run reads the embedded sample: it is the default, which paths of one's own switch off."""
    return bool(corpus.get("sample")) and corpus.get("paths") is None


def sample_paths(languages: tuple[str, ...]) -> dict[str, list[dict[str, Any]]]:
    """Return the embedded sample corpus as the bitexts of a set of languages; of a single one, with any other."""
    path, hub = str(resource("corpora") / "sample" / "sentences.tsv"), languages[0]
    others = languages[1:] or tuple(code for code in SAMPLE_COLUMNS if code != hub)[:1]
    columns = SAMPLE_COLUMNS.index
    return {f"{hub}-{other}": [{"path": path, "columns": [columns(hub), columns(other)]}] for other in others}


def default_output(values: dict[str, Any], settings: dict[str, Any]) -> Path:
    """Return ``runs/<pair>/<recipe>-<fingerprint>``: the same command goes on in the same folder."""
    return Path("runs") / values["pair"]["name"] / f"{values['recipe']['name']}-{fingerprint(settings, length=8)}"


def load_teacher_of(values: dict[str, Any] | None, threads: int) -> Teacher | None:
    """Load the teacher that a section of the configuration names, if it names one."""
    if not values or not values.get("model"):
        return None
    from xswe.teacher.transformer import TeacherConfig, load_teacher

    return load_teacher(build(TeacherConfig, {**values, "threads": threads}, "teacher"))


def load_distilled(values: dict[str, Any], config: TrainConfig, teacher: Teacher | None) -> Teacher | None:
    """Load the encoder whose sentence vectors are imitated, where they are; ``same`` is the teacher of the units."""
    if not config.objective.distillation:
        return None
    if values["distilled"]["model"] == "same":
        return teacher
    return load_teacher_of(values["distilled"], config.threads)


def score_held_out(result: TrainResult, step: str, threads: int) -> list[Row]:
    """Score a step on the held-out pairs, or (a single language) against the teacher's cosines."""
    rows, models = [], result.by_language[step]
    for name, texts in result.held_out.items():
        codes = name.split("-")
        unit = [models[c].encode(t, threads=threads) for c, t in zip(codes, texts, strict=True)]
        if len(codes) == 1:
            rows += score_imitation(unit[0], result.teacher, "held-out", name)
        else:
            rows += _retrieval(unit[0], unit[1], "held-out", name)
    return rows


def _retrieval(source: np.ndarray, target: np.ndarray, task: str, subset: str) -> list[Row]:
    """Score retrieval between vectors that are there already."""
    if not len(source):
        return []
    sides = iter((source, target))
    return score_bitext(lambda _: next(sides), [], [], task, subset)


def score_imitation(vectors: np.ndarray, teacher: np.ndarray | None, task: str, subset: str) -> list[Row]:
    """Correlate the cosines of all pairs of some sentences with those of a teacher's vectors of them.

    Args:
        vectors: float32 (n, d), unit vectors.
        teacher: float32 (n, e), the teacher's.
        task: what the rows call it.
        subset: the language.
    """
    if teacher is None or len(vectors) < 3:
        return []
    above = np.triu_indices(len(vectors), 1)
    ours, theirs = (vectors @ vectors.T)[above], (teacher @ teacher.T)[above]
    cosines = similarity_correlation(ours[:, None], np.ones_like(ours)[:, None], theirs)
    return [Row(task, subset, f"{name}_with_teacher", value, len(vectors)) for name, value in cosines.items()]


def score_pivots(result: TrainResult, config: TrainConfig) -> list[Row]:
    """Score retrieval between languages that no bitext joins, on the embedded sample corpus, which has all four.

    A sentence that stands in the training texts of its language is left out.
    """
    direct = {frozenset(name.split("-")) for name in result.held_out}
    pairs = [pair for pair in combinations(config.languages, 2) if frozenset(pair) not in direct]
    if not pairs:
        return []
    lines = (resource("corpora") / "sample" / "sentences.tsv").read_text(encoding="utf-8").splitlines()
    table = [line.split("\t") for line in lines]
    codes = sorted({code for pair in pairs for code in pair})
    texts = {code: [row[SAMPLE_COLUMNS.index(code)] for row in table] for code in codes}
    known = {code: set(texts[code]).intersection(result.training(code)) for code in codes}
    rows = [i for i in range(len(table)) if not any(texts[code][i] in known[code] for code in codes)]
    found = []
    for step, models in result.by_language.items():
        unit = {code: models[code].encode([texts[code][i] for i in rows], threads=config.threads) for code in codes}
        for a, b in pairs:
            found += [replace(row, note=step) for row in _retrieval(unit[a], unit[b], "without-bitext", f"{a}-{b}")]
    return found


def summary(rows: list[Row], result: TrainResult) -> str:
    """Lay out the table at the end: one line a step and pair."""
    subsets = list(dict.fromkeys((row.task, row.subset) for row in rows))
    alone = any(row.metric == "spearman_with_teacher" for row in rows)
    wanted = ("spearman_with_teacher", "pearson_with_teacher") if alone else ("accuracy", "margin_accuracy", "f1")
    lines = []
    for step, model in result.stages.items():
        for task, subset in subsets:
            own = [row for row in rows if (row.note, row.task, row.subset) == (step, task, subset)]
            values = {row.metric: row.value for row in own}
            name = subset if task == "held-out" else f"{subset} *"
            lines.append([step, name, model.dim, *(values.get(metric) for metric in wanted), own[0].n if own else 0])
    names = ["Spearman with the teacher", "Pearson"] if alone else ["accuracy", "by margin", "F1"]
    out = table(["step", "language" if alone else "pair", "dims", *names, "held out"], lines)
    if any(task != "held-out" for task, _ in subsets):
        out += "\n* no bitext joins the two: sentences of the sample corpus that were not trained on"
    return out
