"""Composition of a verb's settings by Hydra, from its groups and the user's files, to plain values."""

from __future__ import annotations

import re
import typing
from collections.abc import Collection
from itertools import chain, permutations, product
from typing import Any

from hydra import compose, initialize_config_dir
from hydra.core.config_store import ConfigStore
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf, open_dict
from omegaconf.errors import OmegaConfBaseException

from xswe.cli.settings import composed_defaults
from xswe.cli.verbs import PACKAGES, VERBS
from xswe.errors import ConfigError
from xswe.io.choices import choice_names
from xswe.io.resources import resource
from xswe.text.languages import LANGUAGES
from xswe.work.config import HOSTS


def register(verb: str, words: Collection[str] = ("-m",)) -> None:
    """Register the defaults of a verb, which Hydra composes with the files of ``conf/`` and of a ``--config-dir``.

    Without options among the words, register only the pairs named by them or by the defaults: all of them take a while.
    """
    store, usual = ConfigStore.instance().store, composed_defaults(verb)
    every, named = any(word.startswith("-") or "hydra" in word for word in words), " ".join(["en-ja", *words])
    for kind in HOSTS:
        store(group="execution", name=kind, node={"kind": kind})
    if "pair" in VERBS[verb].groups:
        for codes in chain.from_iterable(permutations(LANGUAGES, count) for count in range(1, 5)):
            if every or "-".join(codes) in named:  # more than four are given as pair.languages=[…]
                store(group="pair", name="-".join(codes), node={"languages": list(codes)})
        for recipe, code in product(choice_names("recipe/alone"), LANGUAGES):
            store(group="recipe/alone", name=f"{recipe}-{code}", node={"defaults": [recipe]})
        store(name=f"settings_of_{verb}", node=usual)
    else:
        sharded = [{"execution": "local"}] if "execution" in usual else []
        store(name=verb, node={"defaults": ["common", "_self_", *sharded], **usual})


def overrides(arguments: list[str]) -> list[str]:
    """Return a command's words for Hydra: ``-m`` first, groups with their packages, and Hydra's record in its folders."""
    words = sorted(arguments, key=lambda word: word not in ("-m", "--multirun"))  # argparse takes no option in between
    words = [re.sub(rf"^({'|'.join(PACKAGES)})(?==)", lambda found: PACKAGES[found[1]], word) for word in words]
    given = {word.partition("=")[0] for word in words}
    if "hydra.sweep.dir" in given:
        words += [] if "hydra.sweep.subdir" in given else ["hydra.sweep.subdir=${hydra.job.num}"]
    has_folder = given & {"hydra.run.dir", "hydra.sweep.dir", "hydra.sweep.subdir"}
    return [*words, "hydra.output_subdir=.hydra"] if has_folder and "hydra.output_subdir" not in given else words


def composed(verb: str, words: list[str]) -> DictConfig:
    """Compose the settings of a verb for a single run."""
    with initialize_config_dir(version_base="1.3", config_dir=str(resource("conf").resolve())):
        config = compose(verb, overrides=words, return_hydra_config=True)
    HydraConfig.instance().set_config(config)
    OmegaConf.set_readonly(config, False)
    with open_dict(config):
        del config["hydra"]
    return config


def plain(config: DictConfig) -> dict[str, Any]:
    """Resolve a configuration to plain Python values; runs of ``-m`` get ``side_by_side``.

    ConfigError: a setting refers to an environment variable that is not set, or a required setting is missing.
    """
    try:
        if missing := sorted(OmegaConf.missing_keys(config)):
            verb = "is" if len(missing) == 1 else "are"
            raise ConfigError(f"{', '.join(missing)} {verb} not set: give {' '.join(f'{name}=…' for name in missing)}")
        values = typing.cast("dict[str, Any]", OmegaConf.to_container(config, resolve=True))
    except OmegaConfBaseException as error:
        if (found := re.search(r"Environment variable '(\w+)' not found", str(error))) is None:
            raise ConfigError(" ".join(str(error).split())) from None
        key, name = error.full_key, found[1]
        raise ConfigError(f"{key} is in the folder of the variable {name}, which is not set: export {name}=DIR") from None
    several = HydraConfig.initialized() and HydraConfig.get().mode is RunMode.MULTIRUN
    if several and "side_by_side" in values and not OmegaConf.is_interpolation(config, "output"):
        values["side_by_side"] = True
    return values


def has_log() -> bool:
    """Return True if the user made Hydra keep a log with ``hydra/job_logging=``."""
    return HydraConfig.get().job_logging["root"] is not None
