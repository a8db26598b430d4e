"""``python -m xswe ablate``: one setting varied, all else equal; what variants share is done once."""

from __future__ import annotations

import copy
import logging
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xswe.commands.evaluate import data_root, evaluate, skipped
from xswe.commands.train import load_distilled, load_teacher_of, score_held_out, train_config
from xswe.errors import ConfigError
from xswe.evaluation.encoders import StaticEncoder
from xswe.evaluation.figures import Study, Variant, as_json, as_markdown, as_table, draw
from xswe.evaluation.tasks import check
from xswe.io.files import whole_file, write_json
from xswe.io.results import table
from xswe.io.settings import build
from xswe.progress import track
from xswe.training.pipeline import TrainResult, train

if TYPE_CHECKING:
    from xswe.teacher.protocol import Teacher

logger = logging.getLogger(__name__)
_OWN = ("study", "tasks", "data", "output", "results", "threads", "name")


def run(values: dict[str, Any]) -> str:
    """Train and measure the variants, write table and figure, and return the table."""
    study = build(Study, values["study"], "study")
    tasks = [values["tasks"]] if isinstance(values["tasks"], str) else [str(task) for task in values["tasks"]]
    if tasks:
        check(tasks)
    if study.teacher and not (values.get("teacher") or {}).get("model"):
        raise ConfigError(f"study={study.name} varies what a teacher does: choose one, as in teacher=mini")
    folder = Path(values["output"] or Path("runs") / "ablate" / values["pair"]["name"])
    variants = list(_variants(values, study, tasks, folder))
    target = Path(values["results"] or folder / "ablation") / study.name
    settings = named_encoders(named_data({k: v for k, v in values.items() if k not in _OWN}))
    write_json(target.with_suffix(".json"), as_json(study, variants, settings))
    with whole_file(target.with_suffix(".md")) as temporary:
        temporary.write_text(as_markdown(study, variants) + "\n", encoding="utf-8")
    draw(study, variants, target.with_suffix(".svg"))
    without = [f"skipped {variant.name}: {variant.reason}" for variant in variants if variant.reason]
    without += skipped(row for variant in variants for row in variant.rows)
    where = f"table and figure: {target}.json, .md, .svg"
    return "\n".join([table(*as_table(study, variants)), "", *without, where])


def _variants(values: dict[str, Any], study: Study, tasks: list[str], folder: Path) -> Iterator[Variant]:
    """Train each variant in the one run folder, and measure its steps; one that cannot work says why."""
    choices = list(zip(study.names, study.values, strict=True)) if study.setting else [("", None)]
    teacher: Teacher | None = None
    loaded: Any = None
    errors: list[ConfigError] = []
    for name, value in track(choices, f"study {study.name}", unit="variant"):
        changed = {**study.fixed, **({study.setting: value} if study.setting else {})}
        settings = with_settings({k: v for k, v in values.items() if k != "study"}, changed)
        try:
            config = train_config(settings)
            if loaded != settings.get("teacher"):
                loaded = copy.deepcopy(settings.get("teacher"))
                teacher = load_teacher_of(loaded, config.threads)
            result = train(config, teacher, folder, distilled=load_distilled(settings, config, teacher))
        except ConfigError as error:
            logger.warning("%s=%s is skipped: %s", study.setting, name, error)
            errors.append(error)
            if len(errors) == len(choices):
                raise
            yield Variant(name, "-", reason=str(error))
            continue
        yield from _measured(name, result, study, tasks, values, folder, config.threads)


def _measured(
    name: Any, result: TrainResult, study: Study, tasks: list[str], values: dict[str, Any], folder: Path, threads: int
) -> Iterator[Variant]:
    """Measure one variant after each step of the study that it took: on its held-out pairs, and on the tasks."""
    for step, model in result.stages.items():
        if step not in study.steps:
            continue
        rows = score_held_out(result, step, threads)
        if tasks:
            called = "-".join(filter(None, [study.name, str(name).replace(" ", "-"), step.replace(" ", "-")]))
            encoder = StaticEncoder(model, called, threads)
            rows += evaluate(encoder, tasks, data_root(values), folder / "ablation" / "mteb")
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


def with_settings(values: Mapping[str, Any], changed: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of a configuration with other values, each under its dotted name.

    Raises:
        ConfigError: there is no such setting.
    """
    out: dict[str, Any] = copy.deepcopy(dict(values))
    for dotted, value in changed.items():
        *path, last = dotted.split(".")
        place: Any = out
        for part in path:
            place = place.get(part) if isinstance(place, dict) else None
        if not isinstance(place, dict) or last not in place:
            raise ConfigError(f"study.setting={dotted}: there is no such setting; python -m xswe train --help lists them")
        place[last] = value
    return out
