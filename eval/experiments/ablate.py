"""One setting of training varied, all else equal; what variants share is done once.

    python -m eval.experiments.ablate study=stages|contexts|dim|drop|pca_level|pick|pieces|segmenters|vocabulary
                                      [pair=en-ja] [bitext=sample] [recipe=quickstart] [teacher=auto] [values=1,2]
                                      [tasks=tatoeba,…] [data=FOLDER] [output=runs/ablate/en-ja] [results=FOLDER]
                                      [refine.max_steps=…]
    python -m eval.experiments.ablate setting=refine.batch_size values=128,512

``bitext`` and ``values`` are read as YAML, the values in a list; names with dots are settings of ``xswe.train``. Beside
the held-out pairs ``tasks`` are measured, as in ``evaluate``, from the folder of data sets ``data`` or from the hub. Writes
a table and a figure to ``ablation`` of the run folder, or to ``results``. As long as a training run, and a refinement a
value.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from eval.report.figures import Study, Variant, as_json, as_markdown, as_table, draw
from eval.settings import bitext_of, parsed, run_script, split_words
from xswe.errors import ConfigError
from xswe.evaluation.encoders import StaticEncoder
from xswe.evaluation.evaluate import run_tasks, skipped
from xswe.evaluation.tasks import check
from xswe.io.files import whole_file, write_json
from xswe.io.results import table
from xswe.progress import track
from xswe.training.config import Trained
from xswe.training.pipeline import run_stages
from xswe.training.train import configure, load_encoder, recorded, score_held_out

logger = logging.getLogger(__name__)
DEFAULTS: dict[str, Any] = {
    **{"study": "", "setting": "", "values": "", "pair": "en-ja", "bitext": "sample", "recipe": "quickstart"},
    **{"teacher": "auto", "tasks": "", "data": "", "output": "", "results": "", "threads": 0, "seed": 0},
}
_BOTH = ("PCA with ABTT", "refinement")
_SIZES = (30_000, 50_000, 75_000, 100_000, 150_000)
STUDIES = {
    study.name: study
    for study in (
        # What each step of the method is worth (the paper's Table 6).
        Study("stages", "step", steps=("extraction", "PCA without ABTT", *_BOTH), teacher=True),
        # N of the extraction.
        Study(
            "contexts", "sentences a unit", "contexts.per_unit", (1, 3, 10, 30, 100), steps=_BOTH, teacher=True, axis="log"
        ),
        # The paper's Table 9.
        Study("dim", "dimensions", "pca.dim", (64, 128, 256, 512), steps=_BOTH, axis="log"),
        # k of ABTT; the paper's rule is floor(d / 100).
        Study(
            *("drop", "components removed", "pca.drop", (0, 1, 2, 3, 4, 5, 7, 10, 15)),
            steps=_BOTH,
            teacher=True,
            axis="linear",
        ),
        Study(
            *("pca_level", "PCA fitted on", "pca.level", ("sentence", "word")),
            steps=("PCA without ABTT", *_BOTH),
            teacher=True,
        ),
        Study("pick", "sentences", "contexts.pick", ("shortest", "random", "first"), steps=_BOTH, teacher=True),
        Study(
            *("pieces", "pieces", "units.size", (8000, 16000, 32000, 64000)),
            fixed={"units.kind": "subwords", "units.vocabulary": "corpus"},
            steps=_BOTH,
            axis="log",
        ),
        # Chinese and Japanese words: the teacher's tokens (paper) against a segmenter.
        Study(
            *("segmenters", "segmenters", "units.segmenters"),
            ({"zh": "teacher", "ja": "teacher"}, {"zh": "jieba", "ja": "fugashi"}),
            ("teacher", "jieba and fugashi"),
            {"units.kind": "words"},
            _BOTH,
        ),
        # Words with a vector (the paper's Table 9; the corpus must hold that many).
        Study(
            *("vocabulary", "words a language", "units.most_frequent"),
            tuple(dict.fromkeys(("en", "de", "zh", "ja"), size) for size in _SIZES),
            _SIZES,
            {"units.kind": "words"},
            _BOTH,
            axis="log",
        ),
    )
}


def study_of(values: Mapping[str, Any]) -> Study:
    """Return the study that was asked for: one of those above, with other values where given, or that of any setting."""
    given = tuple(parsed("values", f"[{values['values']}]")) if values["values"] else ()
    if values["setting"]:
        return Study(values["setting"], values["setting"], values["setting"], given, steps=_BOTH)
    name = values["study"] or "stages"
    if name not in STUDIES:
        raise ConfigError(f"study={name}: choose one of {', '.join(STUDIES)}, or set setting= and values=")
    return replace(STUDIES[name], values=given, labels=()) if given else STUDIES[name]


def run(values: Mapping[str, Any], further: Mapping[str, Any]) -> str:
    """Train and measure the variants, write table and figure, and return the table.

    Args:
        values: the script's settings.
        further: of training, by dotted name.
    """
    study, tasks = study_of(values), [task for task in values["tasks"].split(",") if task]
    if tasks:
        check(tasks)
    languages = values["pair"].split("-")
    common = {**further, "seed": values["seed"], "threads": values["threads"] or None}
    base = configure(bitext_of(values["bitext"]), languages, values["teacher"], values["recipe"], common)
    if study.teacher and base.teacher is None:
        raise ConfigError(f"study={study.name} varies what a teacher does: choose one, as in teacher=mini")
    folder = Path(values["output"] or Path("runs") / "ablate" / values["pair"])
    variants = list(_variants(values, common, study, tasks, folder))
    target = Path(values["results"] or folder / "ablation") / study.name
    write_json(Path(f"{target}.json"), as_json(study, variants, named_encoders(named_data(recorded(base)))))
    with whole_file(Path(f"{target}.md")) as temporary:
        temporary.write_text(as_markdown(study, variants) + "\n", encoding="utf-8")
    draw(study, variants, Path(f"{target}.svg"))
    without = [f"skipped {variant.name}: {variant.reason}" for variant in variants if variant.reason]
    without += skipped(row for variant in variants for row in variant.rows)
    where = f"table and figure: {target}.json, .md, .svg"
    return "\n".join([table(*as_table(study, variants)), "", *without, where])


def _variants(
    values: Mapping[str, Any], common: Mapping[str, Any], study: Study, tasks: list[str], folder: Path
) -> Iterator[Variant]:
    """Train each variant in the one run folder, and measure its steps; one that cannot work says why."""
    choices = list(zip(study.names, study.values, strict=True)) if study.setting else [("", None)]
    named: Any = None
    teacher = None
    errors: list[ConfigError] = []
    for name, value in track(choices, f"study {study.name}", unit="variant"):
        changed = {**common, **study.fixed, **({study.setting: value} if study.setting else {})}
        given = values["pair"].split("-"), values["teacher"], values["recipe"]
        try:
            config = configure(bitext_of(values["bitext"]), *given, changed)
            if named != config.teacher:
                named, teacher = config.teacher, load_encoder(config.teacher, config.threads)
            imitated = teacher if config.distilled is None else load_encoder(config.distilled, config.threads)
            result = run_stages(config, teacher, folder, distilled=imitated)
        except ConfigError as error:
            logger.warning("%s=%s is skipped: %s", study.setting, name, error)
            errors.append(error)
            if len(errors) == len(choices):
                raise
            yield Variant(name, "-", reason=str(error))
            continue
        yield from _measured(name, result, study, tasks, values, folder, config.threads)


def _measured(
    name: Any, result: Trained, study: Study, tasks: list[str], values: Mapping[str, Any], folder: Path, threads: int
) -> Iterator[Variant]:
    """Measure one variant after each step of the study that it took: on its held-out pairs, and on the tasks."""
    for step, model in result.stages.items():
        if step not in study.steps:
            continue
        rows = score_held_out(result, step, threads)
        if tasks:
            called = "-".join(filter(None, [study.name, str(name).replace(" ", "-"), step.replace(" ", "-")]))
            encoder = StaticEncoder(model, called, threads)
            rows += run_tasks(
                encoder, tasks, Path(values["data"]) if values["data"] else None, folder / "ablation" / "mteb"
            )
        yield Variant(name, step, model.dim, sum(map(bool, model.units.tokens)), tuple(rows))


def named_data(value: Any) -> Any:
    """Return settings with the folder that ``XSWE_DATA`` names called so: results are read on other machines, too."""
    root = os.environ.get("XSWE_DATA")
    if isinstance(value, str):
        return value.replace(root, "$XSWE_DATA") if root else value
    if isinstance(value, Mapping):
        return {key: named_data(item) for key, item in value.items()}
    return [named_data(item) for item in value] if isinstance(value, (list, tuple)) else value


def named_encoders(settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings with folders of encoders called by their names: where they lie is nobody else's business."""
    out = dict(settings)
    for group in ("teacher", "distilled"):
        model = (out.get(group) or {}).get("model")
        if model and Path(model).is_dir():
            out[group] = {**out[group], "model": Path(model).name}
    return out


if __name__ == "__main__":
    words, changes = split_words(sys.argv[1:], DEFAULTS)
    run_script(lambda settings: print(run(settings, changes)), DEFAULTS, __doc__, words)
