"""``python -m xswe make-teacher``: a small multilingual sentence encoder from parallel text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from xswe.commands.train import corpus_config, load_teacher_of
from xswe.io.files import write_json
from xswe.io.parallel import available_threads
from xswe.io.settings import build
from xswe.text.languages import check_languages
from xswe.training.encoder import EncoderConfig, EncoderShape
from xswe.training.inputs import UnitsConfig
from xswe.training.make_teacher import MakeTeacherConfig, make_teacher
from xswe.training.objective import Objective
from xswe.training.refine import RefineConfig
from xswe.training.stages import versions


def run(values: dict[str, Any]) -> str:
    """Make a teacher and say where it is."""
    threads = values["threads"] or available_threads()
    languages = check_languages(values["pair"]["languages"])
    config = MakeTeacherConfig(
        languages=languages,
        corpus=corpus_config(values, languages),
        units=build(UnitsConfig, values["units"], "units"),
        dim=values["dim"],
        refine=build(RefineConfig, values["refine"], "refine"),
        static_objective=build(Objective, values["static_objective"], "static_objective"),
        shape=build(EncoderShape, values["shape"], "shape"),
        encoder=build(EncoderConfig, values["encoder"], "encoder"),
        objective=build(Objective, values["objective"], "objective"),
        seed=values["seed"],
        threads=threads,
    )
    distilled = load_teacher_of(values["teacher"], threads)
    folder = Path(values["output"])
    teacher, static, report = make_teacher(config, distilled, folder)
    static.save(folder / "static")
    write_json(folder / "results.json", {"settings": values, "report": report, "versions": versions()})
    return (
        f"teacher: {teacher}\nthe static vectors it started from: {folder / 'static'}\nhistory: {folder / 'results.json'}"
    )
