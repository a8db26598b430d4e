"""``python -m xswe ensemble``: several static models as one, with given or fitted weights."""

from __future__ import annotations

from typing import Any

from xswe.errors import ConfigError
from xswe.evaluation.tasks import make_ensemble
from xswe.io.files import check_folder

_LISTS = {"models": "[runs/a/model,runs/b/model]", "fit": "[dev.tsv]", "weights": "[0.7,0.3]"}


def run(values: dict[str, Any]) -> str:
    """Make an ensemble, save it, and say what its parts weigh and what they are worth on the development files."""
    for name, form in _LISTS.items():
        if not isinstance(values[name] or [], (list, tuple)):
            raise ConfigError(f"{name}={values[name]}: give a list, as in {name}={form}")
    check_folder(values["output"])
    lists = {name: values[name] or [] for name in _LISTS}
    found = make_ensemble(**lists, languages=values["languages"], threads=values["threads"])
    found.ensemble.save(values["output"])
    return f"{found}\n\nensemble ({', '.join(found.ensemble.languages)}): {values['output']}"
