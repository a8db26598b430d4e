"""What Hydra composes: the dataclasses' defaults and the tables of recipes, registered as its groups."""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING, Any

from hydra._internal.core_plugins.file_config_source import FileConfigSource
from hydra._internal.sources_registry import SourcesRegistry
from hydra.core.config_store import ConfigNode, ConfigStore
from hydra.core.plugins import Plugins
from hydra.plugins.config_source import ConfigResult
from omegaconf import OmegaConf

from xswe.commands.config import register_execution
from xswe.corpus.bitext import CorpusConfig
from xswe.corpus.cards import SAMPLE_CORPUS, cards
from xswe.corpus.cleaning import CLEANING, CleanConfig
from xswe.io.settings import defaults
from xswe.text.languages import LANGUAGES

if TYPE_CHECKING:
    from xswe.training.config import Recipe

_DATA = "${oc.env:XSWE_DATA}/train"
# What a choice of the group "corpus" sets, beside the corpus cards; local is bitext of one's own, named by corpus.paths.
CORPORA: dict[str, dict[str, Any]] = {
    "local": {},
    "sample": SAMPLE_CORPUS,
    "xswe_data": {"paths": {pair: [f"{_DATA}/{pair}"] for pair in ("en-de", "en-zh", "en-ja")}},
    "wikimatrix": {"min_score": 1.04},  # the authors' advice
    **{name: {"on_error": "skip"} for name in ("ccmatrix", "jparacrawl", "nllb")},  # of millions of lines some are damaged
}


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
    for part in group.split("/"):
        held = held.setdefault(part, {})
    held[f"{name}.yaml"] = _Choice(group, name, settings)


def register(verb: str = "train") -> None:
    """Register the groups that a verb's file in ``conf/`` names in its defaults; ``train`` has them all."""
    for count in range(1, 5):  # of more, pair.languages=[…] takes any
        for codes in permutations(LANGUAGES, count):
            _store("pair", "-".join(codes), {"name": "-".join(codes), "languages": list(codes)})
    if verb == "import":
        return
    _register_corpora()
    register_execution()
    if verb == "train":
        _register_training()


def _register_corpora() -> None:
    usual = defaults(CorpusConfig)
    for name, values in CLEANING.items():
        _store("corpus/clean", name, defaults(CleanConfig) | values)
    for name in ("local", "sample", "xswe_data", *(name for name, card in cards().items() if card.versions)):
        values = {"paths": [{"card": name}]} if name in cards() and name != "local" else {}
        node = {**usual, **values, **CORPORA.get(name, {})}
        del node["clean"]
        _store("corpus", name, {"defaults": [{"clean": "none"}, "_self_"], **node})


def _register_training() -> None:
    from xswe.teacher.protocol import TEACHERS, TeacherConfig
    from xswe.training.config import OBJECTIVES, RECIPES, UNITS, sections
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
    apart = {"corpus", "units", "objective"}
    store(name="training", node={name: values for name, values in sections().items() if name not in apart})
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
