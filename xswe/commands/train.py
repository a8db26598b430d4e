"""``python -m xswe train``: from bitext to a static model, and a table of what each step is worth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode

from xswe.commands.config import check_report, reported
from xswe.io.settings import build
from xswe.text.languages import check_languages
from xswe.training.config import TrainConfig
from xswe.training.rehearsal import rehearse
from xswe.training.train import config_of, run_name, train
from xswe.work.config import ExecutionConfig

_OWN = ("pair", "output", "keep_steps", "report", "name", "execution", "dry")


def run(values: dict[str, Any]) -> str:
    """Train into the run folder, and return the table; with ``dry``, only what the run would take."""
    check_report(values)
    config = train_config(values)
    folder, shared = run_folder(values["output"], config)
    if values["dry"]:
        return str(rehearse(config, folder))
    how = {"keep_steps": values["keep_steps"], "execution": build(ExecutionConfig, values["execution"], "execution")}
    made = train(config.corpus.paths, config.languages, recipe=config, output=folder, shared=shared, **how)
    return f"{made}\n\nmodel: {folder / 'model'}\nfigures: {folder / 'results.json'}{reported(values, made)}"


def train_config(values: dict[str, Any]) -> TrainConfig:
    """Turn the composed configuration into the settings of a run."""
    further = {"languages": check_languages(values["pair"]["languages"]), "recipe": values["recipe"]["name"]}
    return config_of({name: value for name, value in values.items() if name not in _OWN} | further)


def run_folder(output: str | None, config: TrainConfig) -> tuple[Path, Path | None]:
    """Return the run folder, and where the runs of a sweep (``-m``) share their stages.

    Without ``output`` it is ``runs/<pair>/<recipe>-<fingerprint>``: the same command goes on in the same folder. The runs
    of a sweep lie side by side under such names in the one folder that they are given, so that none overwrites another's
    model; an ``output`` that is made of the settings (``${seed}``) is taken as it is.
    """
    sweep = HydraConfig.initialized() and HydraConfig.get().mode is RunMode.MULTIRUN
    if sweep and output:
        sweep = not any(word.startswith("output=") and "${" in word for word in HydraConfig.get().overrides.task)
    folder = Path(output or Path("runs") / "-".join(config.languages))
    if sweep:
        return folder / run_name(config), folder
    return (folder if output else folder / run_name(config)), None
