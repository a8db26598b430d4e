"""``python -m xswe train``: from bitext to a static model, and a table of what each step is worth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from xswe.io.files import fingerprint
from xswe.text.languages import check_languages
from xswe.training.config import TrainConfig
from xswe.training.train import config_of, recorded, train

_OWN = ("pair", "output", "keep_steps", "name")


def run(values: dict[str, Any]) -> str:
    """Train into the run folder, and return the table."""
    config = train_config(values)
    folder = Path(values["output"] or default_output(config))
    made = train(config.corpus.paths, config.languages, recipe=config, output=folder, keep_steps=values["keep_steps"])
    return f"{made}\n\nmodel: {folder / 'model'}\nfigures: {folder / 'results.json'}"


def train_config(values: dict[str, Any]) -> TrainConfig:
    """Turn the composed configuration into the settings of a run."""
    further = {"languages": check_languages(values["pair"]["languages"]), "recipe": values["recipe"]["name"]}
    return config_of({name: value for name, value in values.items() if name not in _OWN} | further)


def default_output(config: TrainConfig) -> Path:
    """Return ``runs/<pair>/<recipe>-<fingerprint>``: the same command goes on in the same folder."""
    name = f"{config.recipe}-{fingerprint(recorded(config), length=8)}"
    return Path("runs") / "-".join(config.languages) / name
