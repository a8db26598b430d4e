"""Settings of a run that do not go together, or with its encoder: what is refused, in which words, and what is not."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from xswe.corpus.contexts import ContextConfig
from xswe.errors import ConfigError
from xswe.teacher.protocol import TeacherConfig
from xswe.training.config import PCAConfig, TrainConfig, check_settings, check_units, sample_paths
from xswe.training.extract import ExtractConfig
from xswe.training.graded import GradedConfig
from xswe.training.objective import Objective
from xswe.training.refine import RefineConfig
from xswe.training.shape import ShapeConfig
from xswe.training.triplets import SpanTraining
from xswe.training.units_stage import UnitsConfig

WIDE, NARROW = (SimpleNamespace(name="any", dim=dim) for dim in (258, 257))
MINI = SimpleNamespace(name="mini", dim=384)
ALONE = Objective(ranking=0.0, distillation=1.0, distillation_on=("source",))
WITHIN = Objective(ranking=0.0, distillation=1.0, distillation_on=("target", "source"))
SEPARATE, SPANS = ExtractConfig("separate"), SpanTraining(max_steps=1)
NO_STEPS = RefineConfig(max_steps=0)


def checked(languages, teacher=None, distilled=None, **settings):
    """What is said of the settings; "" if they go together."""
    try:
        check_settings(TrainConfig(languages, **settings), teacher, distilled)
    except ConfigError as error:
        return str(error)
    return ""


EN, PAIR = ("en",), ("en", "de")
TOGETHER = [
    (PAIR, {}),
    (EN, {}),
    (PAIR, {"objective": Objective(distillation=1.0), "distilled": WIDE}),
    (EN, {"objective": ALONE, "distilled": WIDE}),
    (PAIR, {"objective": WITHIN, "distilled": WIDE}),
    (EN, {"objective": Objective(distillation=1.0, distillation_on=("cross",)), "distilled": WIDE}),
    (PAIR, {"objective": Objective(prefixes=(64, 256))}),
    (PAIR, {"spans": SPANS}),
    (EN, {"spans": SPANS}),
    (EN, {"spans": SpanTraining(max_steps=1, triples=("a",)), "objective": ALONE, "distilled": WIDE}),
    (PAIR, {"extract": SEPARATE}),
    (PAIR, {"refine": RefineConfig(sample_from="contexts")}),
    (PAIR, {"spans": SpanTraining(max_steps=1, triples=("a",)), "refine": RefineConfig(sample_from="contexts")}),
    (PAIR, {"refine": RefineConfig(start="mini")}),
    (PAIR, {"refine": RefineConfig(bigrams=9)}),
    (PAIR, {"refine": RefineConfig(bigrams=9, max_steps=0, epochs=1.0)}),
    (PAIR, {"refine": NO_STEPS, "shape": ShapeConfig(centre=1.0)}),
    (PAIR, {"graded": GradedConfig(("a",))}),
    (PAIR, {"teacher": WIDE}),
    (PAIR, {"teacher": WIDE, "contexts": ContextConfig(length="tokens")}),
    (PAIR, {"teacher": MINI}),
]


@pytest.mark.parametrize(("languages", "settings"), TOGETHER)
def test_settings_that_go_together(languages, settings):
    assert checked(languages, **settings) == ""


TO_IMITATE = "objective.distillation needs an encoder to imitate: set distilled=minilm, or a teacher"
ONE_TABLE = "spans.max_steps needs a language pair (or spans.triples) and one table: set a pair, and another extract.merge"
START = "refine.start is one table in place of a teacher's: set teacher=none, and another extract.merge"
BIGRAMS = (
    "refine.bigrams needs one table and a refinement as the last step: set another extract.merge, "
    "refine.max_steps > 0, and no spans and shape"
)
GRADED = "graded.paths needs one table and a refinement: set another extract.merge, and refine.max_steps > 0"
APART = [
    (PAIR, {"objective": Objective(distillation=1.0)}, TO_IMITATE),
    (EN, {"objective": ALONE}, TO_IMITATE),
    (
        EN,
        {"objective": Objective(ranking=0.0, distillation=1.0, distillation_on=("target",)), "distilled": WIDE},
        "en alone has no translations to compare: set objective.distillation_on=[source]",
    ),
    (
        PAIR,
        {"objective": Objective(prefixes=(128, 64))},
        "objective.prefixes=[128, 64]: the longest must equal pca.dim=256",
    ),
    (
        PAIR,
        {"objective": Objective(prefixes=(512, 256))},
        "objective.prefixes=[512, 256]: the longest must equal pca.dim=256",
    ),
    (PAIR, {"spans": SPANS, "extract": SEPARATE}, ONE_TABLE),
    (EN, {"spans": SPANS, "objective": ALONE, "distilled": WIDE}, ONE_TABLE),
    (
        PAIR,
        {"spans": SPANS, "refine": RefineConfig(sample_from="contexts")},
        "spans.max_steps needs running text: set refine.sample_from=corpus, or spans.max_steps=0",
    ),
    (PAIR, {"refine": RefineConfig(start="mini"), "teacher": WIDE}, START),
    (PAIR, {"refine": RefineConfig(start="mini"), "extract": SEPARATE}, START),
    (PAIR, {"refine": RefineConfig(bigrams=9), "extract": SEPARATE}, BIGRAMS),
    (PAIR, {"refine": RefineConfig(bigrams=9, max_steps=0)}, BIGRAMS),
    (PAIR, {"refine": RefineConfig(bigrams=9), "spans": SPANS}, BIGRAMS),
    (PAIR, {"refine": RefineConfig(bigrams=9), "shape": ShapeConfig(norms=0.5)}, BIGRAMS),
    (PAIR, {"graded": GradedConfig(("a",)), "extract": SEPARATE}, GRADED),
    (PAIR, {"graded": GradedConfig(("a",)), "refine": NO_STEPS}, GRADED),
    (
        PAIR,
        {"contexts": ContextConfig(length="tokens")},
        "contexts.length=tokens counts those of a teacher: choose one, or contexts.length=units",
    ),
    (
        PAIR,
        {"teacher": NARROW},
        "drop=2 and dim=256 need vectors of 258 dimensions, the teacher's have 257: set dim=255 or less, or a smaller drop",
    ),
    (
        PAIR,
        {"teacher": WIDE, "pca": PCAConfig(drop=300, dim=1)},
        "drop=300 and dim=1 need vectors of 301 dimensions, the teacher's have 258: set dim=1 or less, or a smaller drop",
    ),
]


@pytest.mark.parametrize(("languages", "settings", "said"), APART)
def test_settings_that_do_not(languages, settings, said):
    assert checked(languages, **settings) == said


def test_the_teacher_of_this_package_reads_only_its_own_languages(monkeypatch):
    monkeypatch.setattr("xswe.training.config.SHIPPED", ("de", "zh"))
    said = "teacher=mini does not read en, ja: set teacher=none, or name one that does by teacher.model"
    assert checked(("en", "de", "ja"), teacher=MINI) == said
    assert checked(("zh", "de"), teacher=MINI) == checked(("en", "ja"), teacher=WIDE) == ""


def test_who_trains_on_no_translation_is_warned(caplog):
    checked(("en", "de", "ja"), distilled=WIDE, objective=WITHIN)
    assert caplog.messages == [
        "translations are not trained on, only similarities within the target and the source sentences: set "
        "objective=joint to bring en, de, ja together"
    ]
    caplog.clear()
    checked(PAIR, distilled=WIDE, objective=Objective(ranking=0.0, distillation=1.0))  # on both sides, and across
    checked(EN, distilled=WIDE, objective=ALONE)
    checked(PAIR)
    assert not caplog.messages


def test_units_ignore_no_setting():
    fixed, none = "has a fixed size", "has none"
    trained = "applies only to a vocabulary that is trained"
    for config, message in (
        (UnitsConfig(vocabulary="mini", size=9), f"units.size=9 {trained}: units.vocabulary=mini {fixed}"),
        (UnitsConfig(vocabulary="x.json", sample=9), f"units.sample=9 {trained}: units.vocabulary=x.json {fixed}"),
        (UnitsConfig("words", sample=9), f"units.sample=9 {trained}: units=words {none}"),
        (UnitsConfig("teacher", size=9), f"units.size=9 {trained}: units=teacher {none}"),
    ):
        with pytest.raises(ConfigError) as found:
            check_units(config)
        assert str(found.value) == message
    for kind in ("subwords", "teacher"):
        with pytest.raises(ConfigError) as found:
            check_units(UnitsConfig(kind, most_frequent={"en": 9}))
        assert str(found.value) == f"units.most_frequent is for units=words, not for units={kind}: set units.size"
    for vocabulary in ("auto", "corpus"):
        check_units(UnitsConfig(vocabulary=vocabulary, size=9, sample=9))
    check_units(UnitsConfig("words", most_frequent={"en": 9}))
    for vocabulary in ("mini", "x.json"):
        check_units(UnitsConfig(vocabulary=vocabulary))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"seed": -1}, "seed=-1: give a whole number, at least 0"),
        ({"seed": 1.0}, "seed=1.0: give a whole number, at least 0"),
        ({"threads": 0}, "threads=0: give a whole number, at least 1"),
        ({"threads": True}, "threads=True: give a whole number, at least 1"),
    ],
)
def test_seed_and_threads_are_whole_numbers(given, said):
    with pytest.raises(ConfigError) as found:
        TrainConfig(PAIR, **given)
    assert str(found.value) == said
    assert (TrainConfig(PAIR, seed=0, threads=1).seed, TrainConfig(PAIR, seed=7, threads=3).threads) == (0, 3)


def test_plain_values_become_settings(monkeypatch):
    monkeypatch.setattr("xswe.training.config.available_threads", lambda: 5)
    made = TrainConfig.of({"languages": ["en", "de"], "contexts": {"per_unit": 3}, "seed": 4, "threads": None})
    assert (made.languages, made.threads, made.contexts) == (PAIR, 5, ContextConfig(per_unit=3, seed=4))
    assert TrainConfig.of({"languages": ["en"], "contexts": {}, "threads": 2}).contexts.seed == 0
    assert made.teacher is made.distilled is None
    named = TrainConfig.of({"languages": ["en"], "contexts": {}, "teacher": {"model": "a", "max_tokens": 9}})
    assert named.teacher == TeacherConfig("a", max_tokens=9)
    usual = TeacherConfig("a").max_tokens
    for name, none in (("teacher", None), ("distilled", None), ("distilled", "same")):
        given = {"languages": ["en"], "contexts": {}, name: {"model": none, "max_tokens": usual}}
        assert getattr(TrainConfig.of(given), name) is None
        given[name]["max_tokens"] += 1
        with pytest.raises(ConfigError) as found:
            TrainConfig.of(given)
        assert str(found.value) == f"{name}.max_tokens does nothing without an encoder: choose one, as in {name}=minilm"
    with pytest.raises(ConfigError, match=r"^teacher=same is for distilled= only; name a teacher, or set teacher=none"):
        TrainConfig.of({"languages": ["en"], "contexts": {}, "teacher": {"model": "same"}})


def test_the_sample_corpus_is_a_bitext_of_the_first_language_with_each_other():
    def columns(*languages):
        made = sample_paths(languages)
        assert {entry["path"].replace("\\", "/").split("/")[-2] for (entry,) in made.values()} == {"sample"}
        return {name: entry["columns"] for name, (entry,) in made.items()}

    order = ["en", "de", "zh", "ja"]  # of the file
    assert columns("ja", "en", "zh") == {"ja-en": [3, 0], "ja-zh": [3, 2]}
    assert columns("en") == {"en-de": [0, 1]}
    assert columns("de") == {"de-en": [1, 0]}
    assert columns(*order) == {"en-de": [0, 1], "en-zh": [0, 2], "en-ja": [0, 3]}
    with pytest.raises(ConfigError, match=r"^the sample corpus has no text in fr: name bitext by corpus\.paths$"):
        columns("en", "fr")


@pytest.mark.parametrize("drop", [-1, 1.0, "none", True])
def test_what_is_no_number_of_components_is_refused(drop):
    with pytest.raises(ConfigError) as found:
        PCAConfig(drop=drop)
    assert str(found.value) == f"pca.drop={drop!r}: use auto, or a number of components that is not negative"
    assert [PCAConfig(drop=good).drop for good in ("auto", 0, 7)] == ["auto", 0, 7]
