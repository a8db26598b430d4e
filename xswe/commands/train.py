"""``python -m xswe train``: from bitext to a static model, and a table of what each step is worth."""

from __future__ import annotations

import logging
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from xswe.commands.config import build
from xswe.corpus.bitext import CorpusConfig
from xswe.corpus.cards import find_card
from xswe.corpus.contexts import ContextConfig
from xswe.embedding.card import write_card
from xswe.embedding.licences import sources_of
from xswe.errors import ConfigError
from xswe.evaluation.files import score_bitext
from xswe.evaluation.rows import Row
from xswe.evaluation.tables import table
from xswe.files import fingerprint, write_json
from xswe.language.codes import check_languages
from xswe.parallel import available_threads
from xswe.resources import resource
from xswe.training.extract import ExtractConfig
from xswe.training.inputs import UnitsConfig
from xswe.training.objective import Objective
from xswe.training.pipeline import PCAConfig, TrainConfig, TrainResult, train
from xswe.training.refine import RefineConfig
from xswe.training.stages import versions

logger = logging.getLogger(__name__)


def run(values: dict[str, Any]) -> str:
    """Train, save ``model`` and ``results.json`` into the run folder, and return the table."""
    config = train_config(values)
    teacher, teacher_id, pieces = load_teacher_of(values.get("teacher"), config.threads)
    settings = {k: v for k, v in values.items() if k not in ("output", "threads", "name", "keep_steps")}
    folder = Path(values["output"] or default_output(values, settings))
    result = train(config, teacher, folder, teacher_identity=teacher_id, pieces=pieces)
    rows = _score(result, config.threads)
    description = {"teacher": values["teacher"]["model"] if values.get("teacher") else None, "settings": settings}
    if config.corpus.name:
        description["corpora"] = [find_card(config.corpus.name).licence_note()]
    model = replace(result.model, description=description)
    model.save(folder / "model")
    write_card(
        folder / "model",
        model,
        name=f"xswe-{values['pair']['name']}",
        settings=settings,
        rows=[row.as_dict() for row in rows if row.note == "refinement"],
        sources=sources_of(settings["corpus"], result.report["corpus"]),
        versions=versions(),
    )
    if values["keep_steps"]:
        for step, stage in result.stages.items():
            stage.save(folder / "steps" / step.lower().replace(" ", "-"))
    write_json(
        folder / "results.json", {"settings": settings, "report": result.report, "rows": [r.as_dict() for r in rows]}
    )
    write_json(folder / "run.json", {"versions": versions(), "threads": config.threads, "seconds": result.seconds})
    return f"{summary(rows, result)}\n\nmodel: {folder / 'model'}\nfigures: {folder / 'results.json'}"


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
        seed=values["seed"],
        threads=values["threads"] or available_threads(),
    )


def corpus_config(values: dict[str, Any], languages: tuple[str, ...]) -> CorpusConfig:
    """Return the corpus section as the pipeline's settings; the sample's paths are filled in."""
    corpus = dict(values["corpus"])
    if corpus.pop("sample", False):
        corpus["paths"] = sample_paths(languages)
    return build(CorpusConfig, corpus, "corpus")


def sample_paths(languages: tuple[str, ...]) -> dict[str, list[dict[str, Any]]]:
    """Return the embedded sample corpus as the bitexts of a set of languages."""
    columns = ("en", "de", "zh", "ja")
    path = str(resource("corpora") / "sample" / "sentences.tsv")
    hub = languages[0]
    if len(languages) == 1:
        raise ConfigError("training needs translations: name at least two languages, as in pair=en-ja")
    return {
        f"{hub}-{other}": [{"path": path, "columns": [columns.index(hub), columns.index(other)]}] for other in languages[1:]
    }


def default_output(values: dict[str, Any], settings: dict[str, Any]) -> Path:
    """Return ``runs/<pair>/<recipe>-<fingerprint>``: the same command goes on in the same folder."""
    return Path("runs") / values["pair"]["name"] / f"{values['recipe']['name']}-{fingerprint(settings, length=8)}"


def load_teacher_of(values: dict[str, Any] | None, threads: int) -> tuple[Any, str, Any]:
    """Load the teacher, fingerprint it, and take its tokenizer."""
    if not values or not values.get("model"):
        return None, "", None
    from xswe.teacher.transformer import TeacherConfig, load_teacher

    config = build(TeacherConfig, {**values, "threads": threads}, "teacher")
    teacher = load_teacher(config)
    identity = fingerprint({**asdict(config), "threads": None, "batch_tokens": None}, teacher.checksum())
    return teacher, identity, teacher.pieces()


def _score(result: TrainResult, threads: int) -> list[Row]:
    """Score every step on the held-out pairs."""
    rows = []
    for step, model in result.stages.items():
        encode = partial(model.encode, threads=threads)
        for pair, (source, target) in result.held_out.items():
            if len(source):
                rows += [replace(row, note=step) for row in score_bitext(encode, source, target, "held-out", pair)]
    return rows


def summary(rows: list[Row], result: TrainResult) -> str:
    """Lay out the table at the end: one line a step and pair."""
    wanted = ("accuracy", "margin_accuracy", "f1")
    lines = []
    for step, model in result.stages.items():
        for pair, (source, _) in result.held_out.items():
            values = {row.metric: row.value for row in rows if row.note == step and row.subset == pair}
            lines.append([step, pair, model.dim, *(values.get(metric) for metric in wanted), len(source)])
    header = ["step", "pair", "dims", "accuracy", "by margin", "F1", "held out"]
    return table(header, lines)
