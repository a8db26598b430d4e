"""Settings of training."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from xswe.corpus.bitext import CorpusConfig
from xswe.corpus.cards import SAMPLE_COLUMNS
from xswe.corpus.contexts import BY_TOKENS, ContextConfig
from xswe.errors import ConfigError
from xswe.io.parallel import available_threads
from xswe.io.ragged import Texts, TextView
from xswe.io.resources import resource
from xswe.io.settings import build, check_choice, convert, defaults, for_all
from xswe.model.static import StaticModel
from xswe.teacher.protocol import Teacher, TeacherConfig
from xswe.text.languages import check_languages
from xswe.training.components import components_removed
from xswe.training.extract import SEPARATE, ExtractConfig
from xswe.training.graded import GradedConfig
from xswe.training.objective import Objective
from xswe.training.refine import RefineConfig, SampledFrom
from xswe.training.shape import ShapeConfig
from xswe.training.stages import OMIT_DEFAULT
from xswe.training.triplets import SpanTraining
from xswe.training.units_stage import SHIPPED, UnitsConfig

logger = logging.getLogger(__name__)
Level = Literal["sentence", "word"]
OF_WORDS = for_all(Level, {"sentence": False, "word": True})


@dataclass(frozen=True)
class PCAConfig:
    """Settings of the sentence PCA.

    Attributes:
        level: what the components are fitted on: ``sentence`` (paper) or ``word``, each unit once (its ablation).
        drop: components removed, ``auto`` for floor(d / 100).
        dim: components kept, and the model's dimensions.
        sentences: sentences per language, drawn at random (paper: 100,000).
        sample_from: draw sentences from all of the ``corpus``, or from those chosen as ``contexts`` (paper).
        norm: mean norm that the vectors are scaled to before refinement, 0 for the teacher's own scale (paper). All vectors
            are scaled by the same factor, which changes no similarity, only the relative size of Adam's steps.
        spread: standard deviation of the coordinates of random vectors, for training without a teacher
            (static-embedding-japanese: 1).
    """

    level: Level = "sentence"
    drop: Any = "auto"
    dim: int = 256
    sentences: int = 100_000
    sample_from: SampledFrom = field(default="corpus", metadata=OMIT_DEFAULT)
    norm: float = 0.0
    spread: float = field(default=0.02, metadata=OMIT_DEFAULT)

    def __post_init__(self) -> None:
        check_choice("pca.level", self.level, Level)
        if self.drop != "auto" and (type(self.drop) is not int or self.drop < 0):
            raise ConfigError(f"pca.drop={self.drop!r}: use auto, or a number of components that is not negative")
        check_choice("pca.sample_from", self.sample_from, SampledFrom)
        if self.dim < 1 or self.sentences < 1 or not 0 <= self.norm < math.inf or not 0 < self.spread < math.inf:
            raise ConfigError("pca needs dim >= 1, sentences >= 1, norm >= 0 and spread > 0")


@dataclass(frozen=True)
class TrainConfig:
    """Everything that decides a model.

    Attributes:
        languages: codes; the first is the hub of the language pairs. A single language learns by distillation or, with a
            ranking objective, from pairs of its own texts (anchor, positive, and any negatives).
        corpus: the training corpus.
        units: the units that get vectors.
        contexts: which sentences represent a unit.
        extract: how their states become the unit's vector.
        pca: the sentence PCA.
        refine: the refinement.
        objective: the losses of the refinement.
        graded: pairs graded by people, trained on in addition to those losses.
        shape: the norms and mean of the vectors at the end.
        spans: the span-max training after refinement; none without steps.
        teacher: the encoder whose states are the start; None starts from random vectors.
        distilled: the encoder whose similarities are imitated if ``objective.distillation`` is above 0; None for the
            teacher.
        seed: decides every random choice.
        threads: number of threads.
        recipe: the recipe that the settings come from, for the record.
    """

    languages: tuple[str, ...]
    corpus: CorpusConfig = field(default_factory=CorpusConfig)
    units: UnitsConfig = field(default_factory=UnitsConfig)
    contexts: ContextConfig = field(default_factory=ContextConfig)
    extract: ExtractConfig = field(default_factory=ExtractConfig)
    pca: PCAConfig = field(default_factory=PCAConfig)
    refine: RefineConfig = field(default_factory=RefineConfig)
    objective: Objective = field(default_factory=Objective)
    graded: GradedConfig = field(default_factory=GradedConfig)
    shape: ShapeConfig = field(default_factory=ShapeConfig)
    spans: SpanTraining = field(default_factory=SpanTraining)
    teacher: TeacherConfig | None = None
    distilled: TeacherConfig | None = None
    seed: int = 0
    threads: int = 1
    recipe: str = "own"

    def __post_init__(self) -> None:
        for name, least in (("seed", 0), ("threads", 1)):
            value = getattr(self, name)
            if type(value) is not int or value < least:
                raise ConfigError(f"{name}={value!r}: give a whole number, at least {least}")

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> TrainConfig:
        """Make settings from plain values: ``threads`` may be None for all, an encoder's model None for no encoder.

        Raises:
            ConfigError: a setting is unknown or impossible, or belongs to an encoder that is not used.
        """
        values = {**values, "languages": check_languages(values["languages"])}
        values["threads"] = values.get("threads") or available_threads()
        values["contexts"] = {**values["contexts"], "seed": convert(int, values.get("seed", cls.seed), "seed")}
        for name in ("teacher", "distilled"):
            own = dict(values.get(name) or {})
            model, usual = own.pop("model", None), defaults(TeacherConfig)
            if name == "teacher" and model == "same":
                raise ConfigError("teacher=same is for distilled= only; name a teacher, or set teacher=none for no encoder")
            if model in (None, "same"):
                values[name] = None
                if unused := next((key for key, value in own.items() if value != usual.get(key)), None):
                    raise ConfigError(f"{name}.{unused} does nothing without an encoder: choose one, as in {name}=minilm")
        return build(cls, values, "")


@dataclass
class Trained:
    """The result of the stages of a run."""

    model: StaticModel
    # the model after each step, by name, in order; matrices before the last step may be wider
    stages: dict[str, StaticModel]
    # the same for each language; models differ if languages do not share vectors
    by_language: dict[str, dict[str, StaticModel]]
    # both sides of each language pair's held-out part, or the only side of a single language's
    held_out: dict[str, tuple[Texts, ...]]
    teacher: np.ndarray | None  # for a single language, the distilled teacher's vectors of the held-out sentences
    training: Callable[[str], Texts | TextView]  # all training texts of a language
    counts: np.ndarray  # (languages, units), occurrences of each unit in each language's training text
    forms: tuple[Texts, ...]  # the forms of each unit in each language's training text
    report: dict[str, Any]  # counts of the corpus, forward passes, variance of the components, history of the refinement
    seconds: dict[str, float]  # time of each stage


def check_settings(config: TrainConfig, teacher: Teacher | None, distilled: Teacher | None) -> None:
    """Check the settings of a run against each other and against its encoders.

    ConfigError: some are incompatible, or one would be ignored.
    """
    languages = check_languages(config.languages)
    check_units(config.units)
    if (imitating := config.objective.imitating) and distilled is None:
        raise ConfigError(f"objective.{imitating[0]} needs an encoder to imitate: set distilled=minilm, or a teacher")
    if len(languages) == 1 and not config.objective.needs_pairs and "source" not in config.objective.distillation_on:
        raise ConfigError(f"{languages[0]} alone has no translations to compare: set objective.distillation_on=[source]")
    if config.objective.prefixes and max(config.objective.prefixes) != config.pca.dim:
        raise ConfigError(
            f"objective.prefixes={list(config.objective.prefixes)}: the longest must equal pca.dim={config.pca.dim}"
        )
    alone = len(languages) == 1 and not (config.objective.needs_pairs or config.spans.triples)
    if config.spans.max_steps and (alone or SEPARATE[config.extract.merge]):
        raise ConfigError(
            "spans.max_steps needs a language pair (or spans.triples) and one table: set a pair, and another extract.merge"
        )
    if config.spans.max_steps and not config.spans.triples and config.refine.sample_from == "contexts":
        raise ConfigError("spans.max_steps needs running text: set refine.sample_from=corpus, or spans.max_steps=0")
    _check_refinement(config, teacher)
    if teacher is None and BY_TOKENS[config.contexts.length]:
        raise ConfigError("contexts.length=tokens counts those of a teacher: choose one, or contexts.length=units")
    if teacher is not None and teacher.name == "mini" and (foreign := [code for code in languages if code not in SHIPPED]):
        raise ConfigError(
            f"teacher=mini does not read {', '.join(foreign)}: set teacher=none, or name one that does by teacher.model"
        )
    if teacher is not None:
        components_removed(config.pca.drop, config.pca.dim, teacher.dim)
    if len(languages) > 1 and not config.objective.needs_pairs and "cross" not in config.objective.distillation_on:
        logger.warning(
            "translations are not trained on, only similarities within the %s sentences: set objective=joint to bring %s "
            "together",
            " and the ".join(config.objective.distillation_on),
            ", ".join(languages),
        )


def _check_refinement(config: TrainConfig, teacher: Teacher | None) -> None:
    """Refuse settings of the refinement that are incompatible with others of the run."""
    if config.refine.start and (teacher is not None or SEPARATE[config.extract.merge]):
        raise ConfigError("refine.start is one table in place of a teacher's: set teacher=none, and another extract.merge")
    if config.refine.bigrams and (
        SEPARATE[config.extract.merge] or not config.refine.trains or config.spans.max_steps or config.shape.on
    ):
        raise ConfigError(
            "refine.bigrams needs one table and a refinement as the last step: set another extract.merge, "
            "refine.max_steps > 0, and no spans and shape"
        )
    if config.graded.paths and (SEPARATE[config.extract.merge] or not config.refine.trains):
        raise ConfigError(
            "graded.paths needs one table and a refinement: set another extract.merge, and refine.max_steps > 0"
        )


def check_units(units: UnitsConfig) -> None:
    """Raise ConfigError for a setting of the units that their kind, or an existing vocabulary, would ignore."""
    usual = UnitsConfig()
    taken = units.kind == "subwords" and units.vocabulary not in ("auto", "corpus")
    for name in ("size", "sample"):
        if getattr(units, name) != getattr(usual, name) and (units.kind != "subwords" or taken):
            what = f"units.vocabulary={units.vocabulary} has a fixed size" if taken else f"units={units.kind} has none"
            raise ConfigError(f"units.{name}={getattr(units, name)} applies only to a vocabulary that is trained: {what}")
    if units.kind != "words" and units.most_frequent != usual.most_frequent:
        raise ConfigError(f"units.most_frequent is for units=words, not for units={units.kind}: set units.size")


def sample_paths(languages: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    """Return the embedded sample corpus as the bitexts of some languages; a single one is paired with any other.

    ConfigError: it has no text in one of them.
    """
    if missing := [code for code in languages if code not in SAMPLE_COLUMNS]:
        raise ConfigError(f"the sample corpus has no text in {', '.join(missing)}: name bitext by corpus.paths")
    path, hub = str(resource("corpora") / "sample" / "sentences.tsv"), languages[0]
    others = list(languages[1:]) or [code for code in SAMPLE_COLUMNS if code != hub][:1]
    columns = SAMPLE_COLUMNS.index
    return {f"{hub}-{other}": [{"path": path, "columns": [columns(hub), columns(other)]}] for other in others}
