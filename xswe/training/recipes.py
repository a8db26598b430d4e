"""Recipes, and the choices of encoder, units, objective and corpus that they are made of.

Each table says what a choice sets; all else is as the dataclasses have it. The command line takes the same tables.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any, cast

from xswe.corpus.cards import SAMPLE
from xswe.errors import ConfigError
from xswe.io.files import resource
from xswe.io.settings import OF_THE_RUN, defaults, meant
from xswe.teacher.protocol import TeacherConfig
from xswe.training.config import TrainConfig

Values = dict[str, Any]
SAMPLE_COLUMNS = ("en", "de", "zh", "ja")

UNITS: dict[str, Values] = {
    "subwords": {},  # one Unigram vocabulary over all languages of the model
    "words": {"kind": "words"},  # the paper's: en and de between blanks and punctuation, zh and ja by the teacher's tokens
    "teacher": {"kind": "teacher"},  # the teacher's own pieces, in every language
}

# What each sets, by section.
OBJECTIVES: dict[str, dict[str, Values]] = {
    # Translation ranking: symmetric in-batch InfoNCE.
    "ranking": {"objective": {}},
    # The same, summed over prefixes of the dimensions: the vectors can be cut short (model.truncate).
    "matryoshka": {"objective": {"prefixes": (256, 128, 64)}},
    # Translation ranking, and similarities as the distilled encoder sees them, within the source sentences.
    "joint": {"objective": {"distillation": 1.0, "distillation_temperature": 0.1, "distillation_on": ("source",)}},
    # Distillation alone (EN paper 3.3, one language; JA paper 2.3): similarities as the distilled encoder sees them. Stops
    # early on held-out sentences: corpus.max_development=10000 for as many as the paper's.
    "distillation": {
        "objective": {"ranking": 0.0, "margin": 0.0, "distillation": 1.0, "distillation_on": ("source",)},
    },
    # Translation ranking, then span-max training (SLICE 3.1): for finding phrases in running text.
    "spans": {"objective": {}, "spans": {"max_steps": 1000}},
}


@dataclass(frozen=True)
class Recipe:
    """A way to train: choices of the groups, and settings on top of them."""

    teacher: str = "mini"  # one of ``TEACHERS``, or ``none``
    units: str = "subwords"  # one of ``UNITS``
    objective: str = "ranking"  # one of ``OBJECTIVES``
    corpus: str = SAMPLE  # ``sample``, or ``local`` where the recipe is of no use on so little
    settings: dict[str, Values] = field(default_factory=dict)  # by section
    alone: dict[str, Values] = field(default_factory=dict)  # further settings for a model of one language


# What gives good vectors in minutes on two cores: a tenth of the paper's contexts, which hardly changes the vectors, and no
# hundreds of passes over a small corpus that has long been learnt by heart.
QUICKSTART = Recipe(settings={"contexts": {"per_unit": 10}, "refine": {"patience_epochs": 200}})

# No teacher: from random vectors, in large batches without repeated sentences, so that the first dimensions serve alone.
# Of one language it is static-embedding-japanese: multiple negatives ranking from anchors to positives, over prefixes of
# 1,024 dimensions, from pairs with the fields anchor, positive and any negative.
STATIC = Recipe(
    teacher="none",
    objective="matryoshka",
    settings={
        "refine": {"max_steps": 1500, "batch_size": 2048, "learning_rate": 0.004, "duplicates": "drop"},
        "objective": {"prefixes": (256, 128, 64, 32)},
    },
    alone={
        "units": {"size": 32768},
        "pca": {"dim": 1024, "spread": 1.0},
        "refine": {
            "epochs": 2.0,
            "batch_size": 6072,
            "learning_rate": 0.2,
            "optimiser": "dense",
            "schedule": "cosine",
            "warmup": 0.1,
            "decay_start": 0.0,
            "patience": 0,
        },
        "objective": {"directions": "source", "margin": 0.0, "prefixes": (1024, 512, 256, 128, 64, 32)},
    },
)

# Wada et al. (EMNLP 2025): mGTE, words, 100 short contexts, ABTT, dense Adam; translation ranking for a pair; for one
# language distillation of the teacher's similarities, on two sentences a word of those of 3.1. What differs from the papers
# is in docs/papers.md. Give the corpus: CCMatrix, and for en-ja JParaCrawl v3 beside it, as
# corpus.paths=[{card:ccmatrix},{card:jparacrawl}], or files of theirs; for one language CC-100, cut into sentences:
# pair=en corpus.paths=[en.txt] corpus.split=true.
PAPER = Recipe(
    teacher="mgte",
    units="words",
    corpus="local",
    settings={
        "units": {"segmenters": {"zh": "teacher-text", "ja": "teacher-text"}, "folding": False},
        "contexts": {"length": "tokens"},
        "extract": {"merge": "average", "shared": "vocabulary", "isolated": False},
        "pca": {"sample_from": "contexts"},
        "refine": {
            "max_steps": 30000,
            "batch_size": 128,
            "learning_rate": 0.001,
            "decay_start": 1.0,
            "optimiser": "dense",
            "max_grad_norm": 5.0,
            "eval_steps": 40,
            "patience": 5,
            "duplicates": "keep",
            "sample_from": "contexts",
        },
        "objective": {"margin": 0.0},
        "corpus": {
            "on_error": "skip",  # of tens of millions of lines some are damaged
            "max_characters": 500,  # long text hurts (paper, footnote 6)
            "development": 0.1,  # 10,000 pairs from 100,000 on
            "max_development": 10000,
        },
    },
    alone={
        "units": {"lowercase": True},  # vocabulary and contexts
        "refine": {"per_unit": 2},
        "objective": {"ranking": 0.0, "distillation": 1.0, "distillation_on": ("source",)},
    },
)
RECIPES = {"quickstart": QUICKSTART, "static": STATIC, "paper": PAPER}


def sections() -> dict[str, Values]:
    """Return the defaults of every section of :class:`TrainConfig`, by its name."""
    classes = {f.name: f.default_factory for f in fields(TrainConfig) if is_dataclass(f.default_factory)}
    return {name: defaults(cast("type[Any]", cls)) for name, cls in classes.items()}


def update(values: Values, changes: Mapping[str, Any]) -> None:
    """Change nested values in place; a name with dots stands for the nested one, a dataclass for its fields."""
    for name, value in changes.items():
        first, _, rest = name.partition(".")
        new = {rest: value} if rest else asdict(value) if is_dataclass(value) and not isinstance(value, type) else value
        if isinstance(new, Mapping) and isinstance(values.get(first), dict):
            update(values[first], new)
        else:
            values[first] = copy.deepcopy(new)


def choose(table: Mapping[str, Any], name: Any, group: str) -> Any:
    """Return an entry of one of the tables.

    Raises:
        ConfigError: there is none of that name.
    """
    if name not in table:
        raise ConfigError(f"unknown {group} {name!r}: choose one of {', '.join(table)}{meant(str(name), table)}")
    return copy.deepcopy(table[name])


def teacher_settings(teacher: str | Path | TeacherConfig) -> Values | None:
    """Return the settings of an encoder: one of ``TEACHERS``, ``none``, or a folder or name that transformers loads."""
    if teacher == "none":
        return None
    config = teacher if isinstance(teacher, TeacherConfig) else TeacherConfig.named(str(teacher))
    return {name: value for name, value in asdict(config).items() if name not in OF_THE_RUN}


def recipe_settings(name: str, languages: Sequence[str], *, units: str = "", objective: str = "") -> Values:
    """Return what a recipe sets for a model of some languages, all sections in full.

    Args:
        name: one of ``RECIPES``.
        languages: codes.
        units: one of ``UNITS``, in place of the recipe's.
        objective: one of ``OBJECTIVES``, in place of the recipe's.

    Raises:
        ConfigError: there is no such recipe or choice.
    """
    recipe: Recipe = choose(RECIPES, name, "recipe")
    values: Values = {"recipe": name, "teacher": teacher_settings(recipe.teacher), **sections()}
    update(values, {"units": choose(UNITS, units or recipe.units, "units")})
    update(values, choose(OBJECTIVES, objective or recipe.objective, "objective"))
    replaced = OBJECTIVES[recipe.objective]["objective"] if objective and objective != recipe.objective else {}
    for own in (recipe.settings, recipe.alone if len(languages) == 1 else {}):
        update(values, {**own, "objective": {k: v for k, v in own.get("objective", {}).items() if k not in replaced}})
    return values


def sample_paths(languages: Sequence[str]) -> dict[str, list[Values]]:
    """Return the embedded sample corpus as the bitexts of a set of languages; of a single one, with any other."""
    path, hub = str(resource("corpora") / "sample" / "sentences.tsv"), languages[0]
    others = list(languages[1:]) or [code for code in SAMPLE_COLUMNS if code != hub][:1]
    columns = SAMPLE_COLUMNS.index
    return {f"{hub}-{other}": [{"path": path, "columns": [columns(hub), columns(other)]}] for other in others}
