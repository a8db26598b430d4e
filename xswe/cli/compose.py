"""What Hydra composes of a verb's settings, its groups and files of a user's, as plain values."""

from __future__ import annotations

import re
import typing
from collections.abc import Mapping
from dataclasses import asdict
from itertools import permutations
from typing import TYPE_CHECKING, Any

from hydra._internal.core_plugins.file_config_source import FileConfigSource
from hydra._internal.sources_registry import SourcesRegistry
from hydra.core.config_store import ConfigNode, ConfigStore
from hydra.core.plugins import Plugins
from hydra.plugins.config_source import ConfigResult
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import InterpolationResolutionError

from xswe.cli.settings import composed_defaults, is_sharded, train_sections
from xswe.cli.verbs import VERBS
from xswe.errors import ConfigError
from xswe.io.settings import defaults
from xswe.text.languages import LANGUAGES
from xswe.work.config import LOCAL

if TYPE_CHECKING:
    from xswe.training.config import Recipe

_DATA = "${oc.env:XSWE_DATA}/train"


class _Choice(ConfigNode):
    """A choice of a group, whose settings become Hydra's when it is chosen: of a hundred, a run chooses three."""

    def __init__(self, group: str, name: str, settings: dict[str, Any]) -> None:
        self.group, self.name, self.package, self.provider = group, f"{name}.yaml", None, None
        self._settings = settings

    def __getattr__(self, name: str) -> Any:
        if name != "node":
            raise AttributeError(name)
        self.node = OmegaConf.structured(self._settings)
        return self.node


class _Files(FileConfigSource):
    """Files of settings, in ``conf/`` and in a user's ``--config-dir``.

    A recipe in a file is what one of the table is: settings of the whole run, on top of the defaults, under its own name.
    To Hydra it would be the section ``recipe``, unless the file begins with ``# @package _global_``.
    """

    def load_config(self, config_path: str) -> ConfigResult:
        found = super().load_config(config_path)
        group, _, name = config_path.rpartition("/")
        if group.startswith("recipe"):
            found.header["package"] = found.header["package"] or "_global_"
        if group == "recipe":
            OmegaConf.update(found.config, "recipe.name", name.removesuffix(".yaml"), force_add=True)
        return found


# Hydra's registry, which a launcher puts together anew in each worker, tells sources of a scheme by their class's name.
_Files.__name__ = FileConfigSource.__name__


def _store(group: str, name: str, settings: dict[str, Any]) -> None:
    """Register a choice."""
    held = ConfigStore.instance().repo
    for part in filter(None, group.split("/")):
        held = held.setdefault(part, {})
    held[f"{name}.yaml"] = _Choice(group, name, settings)


# What is chosen of each group unless something else is.
_CHOSEN = {
    "train": {
        **{"pair": "en-ja", "teacher": "mini", "distilled": "same", "corpus": "sample", "units": "subwords"},
        **{"objective": "ranking", "recipe": "quickstart"},
        "optional recipe/alone": "${recipe}-${pair}",  # what a recipe does otherwise for that language alone, if anything
    },
    "corpus": {"pair": "en-ja", "corpus": "local"},
    "import": {"pair": "en-ja"},
}


def register(verb: str) -> None:
    """Register a verb's settings, and the groups that it has choices of; ``train`` has them all."""
    groups, sharded = VERBS[verb].groups, is_sharded(verb)
    if "pair" in groups:
        for count in range(1, 5):  # of more, pair.languages=[…] takes any
            for codes in permutations(LANGUAGES, count):
                _store("pair", "-".join(codes), {"name": "-".join(codes), "languages": list(codes)})
    if "corpus" in groups:
        _register_corpora()
    if sharded:
        for kind in ("local", "array", "ray"):
            _store("execution", kind, {**asdict(LOCAL), "kind": kind})
    if verb == "train":
        _register_training()
    chosen = [{group: name} for group, name in _CHOSEN.get(verb, {}).items()]
    first = ["common", *(["training"] if verb == "train" else []), *([{"execution": "local"}] if sharded else [])]
    order = [*first, "_self_", *chosen] if verb == "train" else [*first, *chosen, "_self_"]
    _store("", verb, {"defaults": order, **composed_defaults(verb)})


def _register_corpora() -> None:
    from xswe.corpus.bitext import CorpusConfig
    from xswe.corpus.cards import SAMPLE_CORPUS, cards
    from xswe.corpus.cleaning import CLEANING, CleanConfig

    # What a choice sets beside the corpus cards; local is bitext of one's own, named by corpus.paths.
    corpora: dict[str, dict[str, Any]] = {
        "local": {},
        "sample": SAMPLE_CORPUS,
        "xswe_data": {"paths": {pair: [f"{_DATA}/{pair}"] for pair in ("en-de", "en-zh", "en-ja")}},
        "wikimatrix": {"min_score": 1.04},  # the authors' advice
        # of millions of lines some are damaged
        **{name: {"on_error": "skip"} for name in ("ccmatrix", "jparacrawl", "nllb")},
    }
    usual = defaults(CorpusConfig)
    for name, values in CLEANING.items():
        _store("corpus/clean", name, defaults(CleanConfig) | values)
    for name in ("local", "sample", "xswe_data", *(name for name, card in cards().items() if card.versions)):
        values = {"paths": [{"card": name}]} if name in cards() and name != "local" else {}
        node = {**usual, **values, **corpora.get(name, {})}
        del node["clean"]
        _store("corpus", name, {"defaults": [{"clean": "none"}, "_self_"], **node})


def _register_training() -> None:
    from xswe.teacher.protocol import TEACHERS, TeacherConfig
    from xswe.training.config import OBJECTIVES, RECIPES, UNITS
    from xswe.training.inputs import UnitsConfig
    from xswe.training.objective import Objective

    Plugins.instance()  # which puts Hydra's own sources there, once
    SourcesRegistry.instance().types["file"] = _Files
    store = ConfigStore.instance().store
    for group, none in (("teacher", "none"), ("distilled", "same")):
        store(group=group, name=none, node={"model": None if none == "none" else none})
        for name, values in {**TEACHERS, "custom": {"model": "???", "batch_tokens": 4096}}.items():
            store(group=group, name=name, node=defaults(TeacherConfig) | values)
    for name, values in UNITS.items():
        store(group="units", name=name, node=defaults(UnitsConfig) | values)
    for name, sets in OBJECTIVES.items():
        node = {**sets, "objective": defaults(Objective) | sets["objective"]}
        store(group="objective", name=name, package="_global_", node=node)
    store(name="training", node=train_sections())
    for name, recipe in RECIPES.items():
        store(group="recipe", name=name, package="_global_", node=_node(name, recipe))
        for code in LANGUAGES:
            store(group="recipe/alone", name=f"{name}-{code}", package="_global_", node=dict(recipe.alone))


def _node(name: str, recipe: Recipe) -> dict[str, Any]:
    """Return a recipe as Hydra takes it; what it chooses as everyone else does stays as the command has it."""
    usual = type(recipe)()
    chosen = [
        {f"override /{group}": getattr(recipe, group)}
        for group in ("teacher", "units", "objective", "corpus")
        if getattr(recipe, group) != getattr(usual, group)
    ]
    return {"defaults": [*chosen, "_self_"], "recipe": {"name": name}, **recipe.settings}


def plain(config: DictConfig) -> dict[str, Any]:
    """Resolve a configuration to plain Python values.

    Raises:
        ConfigError: a setting is taken from an environment variable that is not set, or must be given and is not.
    """
    try:
        if missing := sorted(OmegaConf.missing_keys(config)):
            verb = "is" if len(missing) == 1 else "are"
            raise ConfigError(f"{', '.join(missing)} {verb} not set: give {' '.join(f'{name}=…' for name in missing)}")
        return typing.cast("dict[str, Any]", OmegaConf.to_container(config, resolve=True))
    except InterpolationResolutionError as error:
        if (found := re.search(r"Environment variable '(\w+)' not found", str(error))) is None:
            raise
        key, name = error.full_key, found[1]
        raise ConfigError(f"{key} is under the folder that {name} names, which is not set: export {name}=DIR") from None


# Cures by settings that not every verb has which reads such files, and what is said without them.
_OFFERED = (
    ("on_error", r",? or (set )?on_error=skip[^;]*$", ""),
    ("columns", r"set columns=\[…\] \(counted from 0\)", "write the two texts, and a tab between, on each line"),
)


def as_keys(message: str, values: Mapping[str, Any]) -> str:
    """Return an error's message with the library's arguments as the verb's keys: ``drop=3`` as ``pca.drop=3``.

    A name at the top of the verb's settings, or in several sections, stays. A cure by a setting of readers that the verb
    does not have is left out.
    """
    sections: dict[str, list[str]] = {}
    for section, inside in values.items():
        for name in inside if isinstance(inside, Mapping) else ():
            sections.setdefault(name, []).append(section)

    def key(found: re.Match[str]) -> str:
        within = sections.get(found[0], [])
        return f"{within[0]}.{found[0]}" if len(within) == 1 and found[0] not in values else found[0]

    for name, offered, instead in _OFFERED:
        if name not in values and name not in sections:
            message = re.sub(offered, instead, message)
    return re.sub(r"(?<![\w./='\"-])[a-z_]+(?==)", key, message)
