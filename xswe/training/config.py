"""What a run is told, and what it answers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from xswe.corpus.bitext import CorpusConfig
from xswe.corpus.contexts import ContextConfig
from xswe.errors import ConfigError
from xswe.io.ragged import Texts, TextView
from xswe.model.static import StaticModel
from xswe.teacher.protocol import TeacherConfig
from xswe.training.extract import ExtractConfig
from xswe.training.graded import GradedConfig
from xswe.training.inputs import UnitsConfig
from xswe.training.objective import Objective
from xswe.training.refine import RefineConfig
from xswe.training.shape import ShapeConfig
from xswe.training.stages import OFF
from xswe.training.triplets import SpanTraining


@dataclass(frozen=True)
class PCAConfig:
    """Settings of the sentence PCA.

    Attributes:
        level: what the components are fitted on: ``sentence`` (paper) or ``word``, each unit once (its ablation).
        drop: components removed, ``auto`` for floor(d / 100).
        dim: components kept, and the model's dimensions.
        sentences: of each language, drawn at random (paper: 100,000).
        sample_from: sentences are drawn from all of the ``corpus``, or from those chosen as ``contexts`` (paper).
        norm: mean norm that the vectors are scaled to before the refinement, 0 for the teacher's own scale (paper). One
            factor for all: it changes no similarity, only how far one step of Adam goes.
        spread: standard deviation of the numbers of random vectors, where there is no teacher to start from
            (static-embedding-japanese: 1).
    """

    level: str = "sentence"
    drop: Any = "auto"
    dim: int = 256
    sentences: int = 100_000
    sample_from: Literal["corpus", "contexts"] = field(default="corpus", metadata=OFF)
    norm: float = 0.0
    spread: float = field(default=0.02, metadata=OFF)

    def __post_init__(self) -> None:
        if self.level not in ("sentence", "word"):
            raise ConfigError(f"pca.level={self.level!r}: use sentence or word")
        if self.drop != "auto" and (type(self.drop) is not int or self.drop < 0):
            raise ConfigError(f"pca.drop={self.drop!r}: use auto, or a number of components that is not negative")
        if self.sample_from not in ("corpus", "contexts"):
            raise ConfigError(f"pca.sample_from={self.sample_from!r}: use corpus or contexts")
        if self.dim < 1 or self.sentences < 1 or not 0 <= self.norm < math.inf or not 0 < self.spread < math.inf:
            raise ConfigError("pca needs dim >= 1, sentences >= 1, norm >= 0 and spread > 0")


@dataclass(frozen=True)
class TrainConfig:
    """Everything that decides a model.

    Attributes:
        languages: codes; the first is the hub of the language pairs. A single one learns by distillation, or where its
            objective ranks, from pairs of its own texts (anchor, positive, and any negatives).
        corpus: what to learn from.
        units: what gets a vector.
        contexts: which sentences represent a unit.
        extract: how their states become its vector.
        pca: the sentence PCA.
        refine: the refinement.
        objective: its losses.
        graded: pairs graded by people, learnt from beside the losses of the refinement.
        shape: what is done to the refined vectors at the end.
        spans: the span-max training after it; no steps, none.
        teacher: the encoder whose states are the start; None starts from random vectors.
        distilled: the encoder whose similarities are imitated, where ``objective.distillation`` is above 0; None for the
            teacher.
        seed: decides every random choice.
        threads: how many threads work.
        recipe: where the settings come from, for the records.
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


@dataclass
class Trained:
    """What the stages of a run made.

    Attributes:
        model: the model.
        stages: the embedding after each step, by name, in order; matrices of the steps before the last may be wider.
        by_language: the same, a model for each language; they differ where languages share no vectors.
        held_out: for each language pair the two sides of its held-out part, for a single language its only side.
        teacher: for a single language, the distilled teacher's vectors of the held-out sentences.
        training: all training texts of a language.
        counts: (languages, units), how often each unit occurs in each language's training text.
        report: counts of the corpus, forward passes, variance of the components, history of the refinement.
        seconds: how long each stage took.
    """

    model: StaticModel
    stages: dict[str, StaticModel]
    by_language: dict[str, dict[str, StaticModel]]
    held_out: dict[str, tuple[Texts, ...]]
    teacher: np.ndarray | None
    training: Callable[[str], Texts | TextView]
    counts: np.ndarray
    report: dict[str, Any]
    seconds: dict[str, float]
