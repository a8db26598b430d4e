"""What can be known of a run before any work is done: settings that contradict each other, the teacher, the corpus."""

from __future__ import annotations

import logging

from xswe.errors import ConfigError
from xswe.teacher.protocol import Teacher
from xswe.text.languages import check_languages
from xswe.training.config import TrainConfig
from xswe.training.inputs import SHIPPED, UnitsConfig
from xswe.training.sentence_pca import components_removed

logger = logging.getLogger(__name__)


def check_settings(config: TrainConfig, teacher: Teacher | None, distilled: Teacher | None) -> None:
    """Check the settings of a run against each other and against its encoders.

    Raises:
        ConfigError: they cannot work together, or one of them would be ignored.
    """
    languages = check_languages(config.languages)
    check_units(config.units)
    if config.objective.distillation and distilled is None:
        raise ConfigError("objective.distillation needs an encoder to imitate: set distilled=minilm, or a teacher")
    if len(languages) == 1 and not config.objective.ranking and "source" not in config.objective.distillation_on:
        raise ConfigError(f"{languages[0]} alone has no translations to compare: set objective.distillation_on=[source]")
    if config.objective.prefixes and max(config.objective.prefixes) != config.pca.dim:
        raise ConfigError(
            f"objective.prefixes={list(config.objective.prefixes)}: the longest must be all of pca.dim={config.pca.dim}"
        )
    alone = len(languages) == 1 and not (config.objective.ranking or config.spans.triples)
    if config.spans.max_steps and (alone or config.extract.merge == "separate"):
        raise ConfigError(
            "spans.max_steps needs a language pair (or spans.triples) and one table: set a pair, and another extract.merge"
        )
    if config.spans.max_steps and not config.spans.triples and config.refine.sample_from == "contexts":
        raise ConfigError("spans.max_steps needs running text: set refine.sample_from=corpus, or spans.max_steps=0")
    if config.graded.paths and (config.extract.merge == "separate" or not config.refine.trains):
        raise ConfigError(
            "graded.paths needs one table and a refinement: set another extract.merge, and refine.max_steps > 0"
        )
    if teacher is None and config.contexts.length == "tokens":
        raise ConfigError("contexts.length=tokens counts those of a teacher: choose one, or contexts.length=units")
    if teacher is not None and teacher.name == "mini" and (foreign := [code for code in languages if code not in SHIPPED]):
        raise ConfigError(
            f"teacher=mini does not read {', '.join(foreign)}: set teacher=none, or name one that does by teacher.model"
        )
    if teacher is not None:
        components_removed(config.pca.drop, config.pca.dim, teacher.dim)
    if len(languages) > 1 and not config.objective.ranking and "cross" not in config.objective.distillation_on:
        logger.warning(
            "translations are not trained on, only similarities within the %s sentences: set objective=joint to bring %s "
            "together",
            " and the ".join(config.objective.distillation_on),
            ", ".join(languages),
        )


def check_units(units: UnitsConfig) -> None:
    """Refuse settings of the units that their kind, or a vocabulary that is there already, would ignore.

    Raises:
        ConfigError: there is one.
    """
    usual = UnitsConfig()
    taken = units.kind == "subwords" and units.vocabulary not in ("auto", "corpus")
    for name in ("size", "sample"):
        if getattr(units, name) != getattr(usual, name) and (units.kind != "subwords" or taken):
            what = f"units.vocabulary={units.vocabulary} is as large as it is" if taken else f"units={units.kind} has none"
            raise ConfigError(f"units.{name}={getattr(units, name)} is for a vocabulary that is trained: {what}")
    if units.kind != "words" and units.most_frequent != usual.most_frequent:
        raise ConfigError(f"units.most_frequent is for units=words, not for units={units.kind}: set units.size")
