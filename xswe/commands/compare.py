"""``python -m xswe compare``: several models on the same tasks, in one table with the best marked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from xswe.commands.evaluate import check_measured, data_root, evaluate, shown, task_list
from xswe.errors import ConfigError
from xswe.evaluation.encoders import sample_texts, sentences_per_second
from xswe.evaluation.metrics import Bootstrap, with_intervals
from xswe.evaluation.models import ModelSpec, check_exists, open_encoder
from xswe.evaluation.tables import Measured, measured, outcome, significance
from xswe.io.files import write_json
from xswe.io.parallel import available_threads
from xswe.io.results import table
from xswe.io.settings import build
from xswe.progress import track


def run(values: dict[str, Any]) -> str:
    """Evaluate the models one after the other, write all rows and tests, and return the table."""
    tasks = task_list(values)
    bootstrap = build(Bootstrap, values["bootstrap"], "bootstrap")
    models = _models(values["models"])
    threads = values["threads"] or available_threads()
    output = Path(values["output"])
    done: list[Measured] = []
    for which in track(models, "compare", unit="model"):
        encoder = open_encoder(which, threads)
        if encoder.name in (other.name for other in done):
            raise ConfigError(f"two models are called {encoder.name!r}: name them, as in {{path: …, name: other}}")
        rows = with_intervals(evaluate(encoder, tasks, data_root(values), output.parent / "mteb"), bootstrap)
        seconds = float(values["speed"]["seconds"])
        rate = sentences_per_second(encoder, sample_texts(encoder.languages), seconds) if seconds else None
        done.append(measured(encoder, rows, rate))
    tests = significance(done, bootstrap)
    write_json(
        output,
        {
            "threads": threads,
            "models": [model.as_dict() for model in done],
            "rows": [{"model": model.name, **row.as_dict()} for model in done for row in model.rows],
            "tests": [asdict(test) for test in tests],
        },
    )
    check_measured([row for model in done for row in model.rows], output)
    header, lines, notes = outcome([model.only(shown(model.rows)) for model in done], tests)
    return "\n".join([table(header, lines), "", *notes, f"all rows and tests: {output}"])


def _models(named: Any) -> Sequence[str | Mapping[str, Any]]:
    """Return the models named, all of them there."""
    models = [named] if isinstance(named, (str, Mapping)) else list(named or [])
    if not models:
        raise ConfigError("models is empty: name some, as in models=[runs/en-ja/model,wordllama,teacher:mini]")
    for which in models:
        check_exists(ModelSpec.of(which))
    return models
