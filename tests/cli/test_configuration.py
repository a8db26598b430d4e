"""What the configuration files say, against the code that reads them and the papers they quote."""

from __future__ import annotations

import dataclasses
import json
import re
import typing
from functools import partial
from itertools import zip_longest
from pathlib import Path

import pytest
import yaml

import xswe
from tests.cli.verbs import command, composed, run_verb, train_config
from xswe.bitext.source import Source, read_pairs
from xswe.cli.settings import arguments, as_keys, check_shape, composed_defaults, own_settings
from xswe.cli.verbs import VERBS
from xswe.corpus.bitext import CorpusConfig
from xswe.corpus.contexts import ContextConfig
from xswe.errors import ConfigError, InputError
from xswe.io.choices import choice_names, chosen, update
from xswe.io.resources import resource
from xswe.io.settings import build, defaults
from xswe.mining.dedup import DedupConfig
from xswe.mining.hard_rules import FilterConfig
from xswe.mining.pipeline import MineConfig
from xswe.search.neighbours import SearchConfig
from xswe.teacher.protocol import TeacherConfig
from xswe.training.config import PCAConfig, TrainConfig
from xswe.training.extract import ExtractConfig
from xswe.training.objective import Objective
from xswe.training.refine import RefineConfig
from xswe.training.train import configure
from xswe.training.triplets import SpanTraining
from xswe.training.units_stage import UnitsConfig
from xswe.work.config import Executor

CONF = resource("conf")
SECTIONS = {
    "contexts": ContextConfig,
    "extract": ExtractConfig,
    "pca": PCAConfig,
    "refine": RefineConfig,
    "objective": Objective,
    "units": UnitsConfig,
    "teacher": TeacherConfig,
}
SET_BY_THE_COMMAND = {"seed", "threads"}
TRAIN = ("train", "contexts.per_unit=100")  # which the default recipe lowers
MINE = ("mine", "model=m", "output=o")
LANGUAGES = ["ja", *(pytest.param(code, marks=pytest.mark.slow) for code in ("en", "de", "zh"))]


@pytest.fixture(autouse=True)
def data(monkeypatch):
    monkeypatch.setenv("XSWE_DATA", "data")


def test_nothing_that_ships_knows_a_folder_beside_the_checkout():
    package = Path(xswe.__file__).parent
    shipped = [path for top in (package, CONF) for path in Path(top).rglob("*") if path.suffix in (".py", ".yaml", ".md")]
    shipped += package.glob("pretrained/*/config.json")
    assert len(shipped) > 80
    assert not [path for path in shipped if "../shared" in path.read_text(encoding="utf-8")]


def test_a_folder_named_by_the_environment_must_be_named(monkeypatch):
    assert composed("train", "corpus=xswe_data")["corpus"]["paths"]["en-ja"] == ["data/train/en-ja"]
    monkeypatch.delenv("XSWE_DATA")
    with pytest.raises(ConfigError, match=r"^corpus\.paths\.en-.*XSWE_DATA.* not set: export XSWE_DATA=DIR$"):
        composed("train", "corpus=xswe_data")
    for verb in ("evaluate", "compare"):
        given = {"evaluate": ["model=m"], "compare": ["models=[m]"]}.get(verb, [])
        assert composed(verb, *given)["data"] is None


@pytest.mark.parametrize("section", SECTIONS)
def test_every_setting_of_the_code_is_in_the_configuration_and_no_other(section):
    names = {f.name for f in dataclasses.fields(SECTIONS[section]) if f.init} - SET_BY_THE_COMMAND
    assert set(composed("train")[section]) == names


# What only the verb knows, what other modes are told, and the score (auto: another one to mine than to score a bitext).
OF_THE_VERB = {"mode", "model", "input", "source", "target", "output", "work", "columns", "corpus", "threads", "rerank"}
OF_THE_VERB |= {"report", "hydra", "score", "negatives", "candidates", "relative_margin"}
# Where the defaults of a section stand: the verb and what it is given, the section, and what differs on purpose.
DEFAULTS = [
    *((TRAIN, section, cls, set()) for section, cls in SECTIONS.items() if section not in ("teacher", "refine")),
    (TRAIN, "refine", RefineConfig, {"patience_epochs"}),  # the quickstart's, for small corpora
    (TRAIN, "spans", SpanTraining, set()),
    (("train", "corpus=local"), "corpus", CorpusConfig, set()),
    (MINE, "neighbours", SearchConfig, set()),
    (MINE, "filters", FilterConfig, set()),
    (MINE, "", MineConfig, OF_THE_VERB),
    (("dedup", "input=a", "output=b"), "", DedupConfig, OF_THE_VERB | {"rejects"}),
]


@pytest.mark.parametrize(("given", "section", "cls", "apart"), DEFAULTS, ids=[cls.__name__ for _, _, cls, _ in DEFAULTS])
def test_the_defaults_of_code_and_configuration_are_the_same(given, section, cls, apart):
    values = composed(*given)
    values = {name: value for name, value in (values[section] if section else values).items() if name not in apart}
    unsaid = {f.name for f in dataclasses.fields(cls)} - set(values)
    assert unsaid <= SET_BY_THE_COMMAND | apart | ({"score", "on_error", "evidence"} if cls is MineConfig else set())
    assert build(cls, values, section) == cls()


def test_the_paper_recipe_holds_the_papers_values():
    c = train_config(composed("train", "recipe=paper", "corpus.paths=[a.tsv]", "threads=1"))
    assert isinstance(c, TrainConfig)
    assert (c.contexts.per_unit, c.contexts.candidates, c.contexts.pick) == (100, 2000, "shortest")
    assert (c.contexts.length, c.pca.sample_from, c.refine.sample_from) == ("tokens", "contexts", "contexts")
    assert (c.extract.merge, c.extract.shared, c.refine.duplicates) == ("average", "vocabulary", "keep")
    assert (c.corpus.max_development, c.corpus.development, c.corpus.on_error) == (10_000, 0.1, "skip")
    assert (c.units.kind, c.units.most_frequent) == ("words", {"en": 150_000, "de": 150_000, "zh": 30_000, "ja": 30_000})
    assert c.units.segmenters == {"zh": "teacher-text", "ja": "teacher-text"}
    assert (c.units.folding, c.units.lowercase) == (False, False)
    assert (c.pca.drop, c.pca.dim, c.pca.sentences, c.pca.norm) == ("auto", 256, 100_000, 0.0)
    assert (c.refine.max_steps, c.refine.batch_size, c.refine.learning_rate, c.refine.decay_start) == (
        30_000,
        128,
        1e-3,
        1.0,
    )
    assert (c.refine.optimiser, c.refine.max_grad_norm, c.refine.eval_steps, c.refine.patience) == ("dense", 5.0, 40, 5)
    assert (c.objective.temperature, c.objective.margin, c.objective.distillation) == (0.05, 0.0, 0.0)
    assert composed("train", "recipe=paper")["teacher"]["model"] == "alibaba-nlp-community/gte-multilingual-base"


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_paper_recipe_distils_where_there_is_one_language(language):
    values = composed("train", "recipe=paper", f"pair={language}", "corpus.paths=[a.txt]", "threads=1")
    c, pair = train_config(values), train_config(composed("train", "recipe=paper", "threads=1"))
    assert (c.objective.ranking, c.objective.distillation, c.objective.distillation_on) == (0.0, 1.0, ("source",))
    assert (c.objective.distillation_temperature, c.refine.per_unit) == (0.05, 2)
    assert dataclasses.replace(c.refine, per_unit=0) == pair.refine
    assert (c.contexts, c.extract, c.pca) == (pair.contexts, pair.extract, pair.pca)
    assert (values["distilled"]["model"], c.distilled) == ("same", None)
    assert c.units.lowercase is True
    assert composed("train", f"pair={language}")["objective"]["ranking"] == 1.0
    own = composed("train", "recipe=paper", f"pair={language}", "refine.per_unit=5")
    assert own["refine"]["per_unit"] == 5


GROUPS = ("teacher", "units", "objective", "recipe", "corpus", "corpus/clean")


def test_every_choice_of_every_group_composes():
    """One of each group at a time, as to compose them takes a while."""
    usual = composed("train").keys()
    choices = {group: choice_names({"distilled": "teacher"}.get(group, group)) for group in ("distilled", *GROUPS)}
    choices["execution"] = list(typing.get_args(Executor))
    for row in zip_longest(*choices.values()):
        given = {group: choice for group, choice in zip(choices, row, strict=True) if choice is not None}
        models = ["teacher.model=m"] if "custom" in given.values() else []
        assert composed("train", *(f"{group}={choice}" for group, choice in given.items()), *models).keys() == usual, given


@pytest.mark.parametrize(
    ("recipe", "pair"), [*((recipe, "en-ja") for recipe in choice_names("recipe")), ("static", "ja-zh-de"), ("paper", "en")]
)
def test_a_recipe_is_the_same_on_the_command_line_and_in_python(recipe, pair):
    words = [f"recipe={recipe}", f"pair={pair}", "corpus=local", "corpus.paths=[a.tsv]", "refine.max_steps=7", "threads=1"]
    changes = {"refine": {"max_steps": 7}, "threads": 1}
    assert configure("a.tsv", pair.split("-"), "auto", recipe, changes) == train_config(composed("train", *words))


def test_the_imitated_encoder_is_a_choice_of_its_own():
    values = composed("train", "objective=joint", "distilled=minilm", "distilled.max_tokens=64")
    assert values["distilled"] == composed("train", "teacher=minilm")["teacher"] | {"max_tokens": 64}
    assert values["teacher"]["model"] == "mini"
    assert train_config(values).objective.distillation > 0
    assert composed("train")["distilled"]["model"] == "same"


def test_span_training_is_switched_on_by_its_objective():
    assert train_config(composed("train")).spans.max_steps == 0
    c = train_config(composed("train", "objective=spans", "spans.learning_rate=0.5", "objective.margin=0.1"))
    assert (c.spans.max_steps, c.spans.learning_rate) == (1000, 0.5)
    assert (c.spans.scale, c.spans.similarity, c.spans.max_size) == (30.0, "normalised", 10)  # SLICE's
    assert composed("phrases", "queries=a", "input=b", "model=m", "output=o")["max_size"] == 20
    assert c.objective == train_config(composed("train", "objective.margin=0.1")).objective


def test_the_static_recipe_needs_no_teacher():
    c = train_config(composed("train", "recipe=static", "threads=1"))
    assert composed("train", "recipe=static")["teacher"]["model"] is None
    assert (c.refine.batch_size, c.refine.duplicates) == (2048, "drop")
    assert c.objective.prefixes == (256, 128, 64, 32)


@pytest.mark.parametrize("code", LANGUAGES)
def test_the_static_recipe_of_one_language_is_that_of_static_embedding_japanese(code):
    c = train_config(composed("train", "recipe=static", f"pair={code}", "corpus=local", "corpus.paths=[a.jsonl]"))
    assert (c.pca.dim, c.pca.spread, c.units.size) == (1024, 1.0, 32_768)
    r = c.refine
    assert (r.epochs, r.batch_size, r.learning_rate, r.duplicates, r.optimiser) == (2.0, 6072, 0.2, "drop", "dense")
    assert (r.schedule, r.warmup, r.decay_start, r.weight_decay, r.patience) == ("cosine", 0.1, 0.0, 0.0, 0)
    o = c.objective
    assert (o.directions, o.temperature, o.margin, o.distillation) == ("source", 0.05, 0.0, 0.0)
    assert o.prefixes == (1024, 512, 256, 128, 64, 32)
    assert train_config(composed("train", "recipe=static", f"pair={code}", "refine.batch_size=64")).refine.batch_size == 64


@pytest.mark.parametrize("given", ["paths=[a.tsv]", "paths=[]", "paths=[{card:ccmatrix}]"])
def test_a_corpus_of_ones_own_takes_the_place_of_the_sample(given):
    assert composed("train")["corpus"]["paths"] == "sample"
    own = composed("train", f"corpus.{given}", "threads=1")
    key = given.partition("=")[0]
    assert getattr(train_config(own).corpus, key) == own["corpus"][key]


YAML = sorted(path.relative_to(CONF).as_posix() for path in CONF.glob("*/**/*.yaml"))


@pytest.mark.parametrize("file", YAML)
def test_a_choice_says_nothing_that_is_a_default(file):
    """A second copy of a default would stay when the dataclass changes."""
    usual = dict(composed_defaults("train"))
    section, said = file.split("/")[0], yaml.safe_load((CONF / file).read_text("utf-8")) or {}
    picked = chosen(said.pop("defaults", []))
    if section in ("recipe", "objective"):
        base = yaml.safe_load((CONF / "objective" / f"{picked.get('objective', 'ranking')}.yaml").read_text("utf-8")) or {}
        update(usual, base if section == "recipe" else {})
        if "alone" in file:
            update(usual, yaml.safe_load((CONF / file.replace("alone/", "")).read_text("utf-8")))
    else:
        usual = usual["corpus"]["clean"] if "clean" in file else usual[section]
    assert not [name for name, value in leaves(said) if value == dict(leaves(usual))[name]]


def leaves(values, before=""):
    """The values of nested mappings, by their names with dots."""
    for name, value in values.items():
        inside = isinstance(value, dict) and name not in ("segmenters", "paths", "most_frequent")
        yield from leaves(value, f"{before}{name}.") if inside else [(before + name, value)]


@pytest.mark.parametrize("verb", ["train", "corpus", "import"])
def test_what_a_verb_chooses_is_no_default_of_a_dataclass(verb):
    told = yaml.safe_load((CONF / f"{verb}.yaml").read_text("utf-8"))
    assert set(told) - {"recipe"} == {"defaults"}
    assert set(chosen(told["defaults"])) <= {*GROUPS, "execution", "pair", "teacher@distilled", "recipe@_global_", LAST}


LAST = "optional recipe/alone@_global_"
NAN = float("nan")


@pytest.mark.parametrize(
    ("cls", "values"),
    [
        *((Objective, {"temperature": value}) for value in (0.0, NAN, -0.05)),
        *((Objective, {"distillation_temperature": value}) for value in (0.0, NAN)),
        *((Objective, {"margin": value}) for value in (NAN, -0.1)),
        *((Objective, {name: NAN}) for name in ("ranking", "distillation")),
        *((Objective, {"prefixes": (8, 4, 2), "prefix_weights": value}) for value in ((0.0, 0.0, 0.0), (1.0, NAN, 1.0))),
        *((RefineConfig, {"learning_rate": value}) for value in (0.0, NAN, -1.0)),
        (RefineConfig, {"max_grad_norm": NAN}),
        (RefineConfig, {"patience": -1}),
        *((PCAConfig, {"dim": value}) for value in (0, -3)),
        *((PCAConfig, {"drop": value}) for value in (-1, 1.5, "some")),
        (PCAConfig, {"norm": NAN}),
        *((SpanTraining, {"scale": value}) for value in (0.0, NAN)),
        *((SpanTraining, {"learning_rate": value}) for value in (0.0, NAN)),
        (SpanTraining, {"hard": -1}),
        *((partial(TrainConfig, ("en", "ja"), CorpusConfig()), {"seed": value}) for value in (-1, 0.5, None)),
        (partial(TrainConfig, ("en", "ja"), CorpusConfig()), {"threads": -1}),
    ],
)
def test_numbers_that_cannot_train_are_refused_by_name(cls, values):
    with pytest.raises(ConfigError, match=next(reversed(values))):
        cls(**values)


def test_wrong_types_name_the_key_and_what_is_expected():
    with pytest.raises(ConfigError, match=r"refine\.batch_size='many': expected int"):
        build(RefineConfig, {"batch_size": "many"}, "refine")
    with pytest.raises(ConfigError, match=r"spans\.optimiser='adam': choose one of lazy, dense"):
        build(SpanTraining, {"optimiser": "adam"}, "spans")
    with pytest.raises(ConfigError, match=r"refine\.bach: there is no such setting; refine has max_steps, batch_size"):
        build(RefineConfig, {"bach": 3}, "refine")
    with pytest.raises(ConfigError, match=r"pair=en-ja|expected a list"):
        build(TrainConfig, {"languages": "en"}, "pair")


def test_an_argument_of_the_library_is_told_as_the_key_of_the_verb():
    values = {"pca": {"drop": "auto", "dim": 256}, "refine": {"seed": 0}, "spans": {"seed": 0}, "threads": None}
    assert as_keys("drop=9 and dim=300 need more", values) == "pca.drop=9 and pca.dim=300 need more"
    for message in ("seed=1: which?", "threads=0", "pca.drop=3", "a/drop=3.txt:1: damaged", "no such file: drop"):
        assert as_keys(message, values) == message


def test_a_cure_that_the_verb_does_not_have_is_not_offered(tmp_path):
    (tmp_path / "a.tsv").write_bytes(b"one\n")
    (tmp_path / "b.tsv").write_bytes(b"f\xfcr\tfor\n")
    said = []
    for name in ("a.tsv", "b.tsv"):
        with pytest.raises(InputError) as caught:
            list(read_pairs(Source((tmp_path / name,))))
        said.append(str(caught.value))
    for message, cure in zip(
        said, ("write the two texts, and a tab between, on each line", "file with iconv"), strict=True
    ):
        assert message.endswith(("such lines out", "leave it out and count it"))
        assert as_keys(message, {"tasks": []}).endswith(cure)
        assert as_keys(message, {"columns": [0, 1], "on_error": "raise"}) == message
        assert "corpus.on_error=skip" in as_keys(message, {"corpus": {"columns": [0, 1], "on_error": "raise"}})


@pytest.mark.parametrize(
    ("verb", "overrides", "said"),
    [
        (
            "corpus",
            "action=list execution=array execution.index=0 execution.count=1",
            "execution.kind does nothing with list, which converts nothing",
        ),
        ("encode", "model=m input=a.txt output=o.npy language=de", "language does nothing without split=true"),
        ("search", "model=m input=a.txt queries=q candidates=4", "candidates does nothing without rerank="),
        ("search", "model=m input=a.txt queries=q language=de", "language does nothing without split=true"),
        ("search", "model=m input=a.txt queries=q rescored=4", "rescored does nothing without method=binary"),
        ("search", "index=kept queries=q storage=int8", "storage does nothing to kept, which is there"),
        ("phrases", "model=m queries=q input=a.txt output=o.tsv examples=4", "examples does nothing without mode=terms"),
        (
            "mine",
            "model=m source=a.txt target=b.txt output=o.tsv rerank_share=.5",
            "rerank_share does nothing without rerank=",
        ),
        ("mine", "model=m source=a.txt target=b.txt output=o.tsv best=3", "best does nothing without select=kbest"),
        ("mine", "model=m source=a.txt target=b.txt output=o.tsv columns=[1,0]", "columns does nothing with mode=mine"),
        ("mine", "model=m source=a.txt output=o.tsv score=cosine k=9", "k does nothing without a margin as score"),
        (
            "mine",
            "model=m source=a.txt output=o.tsv threshold=1.1 precision=.9",
            "precision does nothing without threshold=auto",
        ),
        ("mine", "model=m mode=score input=a.tsv output=o.tsv execution=ray", "execution does nothing with mode=score"),
        ("mine", "model=m source=a.txt output=o.tsv neighbours.probes=3", "neighbours.probes does nothing without"),
        ("filter", "model=m input=a.tsv output=o.tsv threshold=.5 precision=.9", "precision does nothing without"),
        ("filter", "model=m input=a.tsv output=o.tsv rerank_share=.5", "rerank_share does nothing without rerank="),
        ("filter", "model=m source=a.txt target=b.txt output=o.tsv columns=[1,0]", "columns does nothing without input="),
        ("dedup", "input=a.txt output=o.txt threshold=null storage=int8", "storage does nothing with threshold=null"),
        ("dedup", "input=a.txt output=o.txt neighbours.seed=3", "neighbours.seed does nothing without"),
        (
            "lexicon",
            "model=m source=a.txt target=b.txt languages=[en,ja] output=o.tsv",
            "languages does nothing with source=",
        ),
        ("link", "model=m input=a.tsv output=o.txt most=3", "most does nothing with what=links"),
        ("link", "model=m input=a.tsv output=o.txt turns=3", "turns does nothing without method=itermax"),
        ("link", "model=m source=a.txt target=b.txt output=o.txt columns=[1,0]", "columns does nothing without input="),
        ("align", "model=m source=a.txt target=b.txt output=o.tsv pairing=content", "pairing is only for folders"),
        ("search", "model=m input=a.txt queries=q output=o.tsv mark=false", "mark does nothing with output="),
        ("mine", "model=m mode=score input=a.tsv output=o.tsv keep=true", "keep does nothing without a margin as score"),
        (
            "mine",
            "model=m mode=score input=a.tsv output=o.tsv neighbours.memory=1",
            "neighbours does nothing without a margin",
        ),
        (
            "evaluate",
            "model=m tasks=[a.txt] bootstrap.rounds=0 bootstrap.seed=1",
            "bootstrap.seed does nothing with bootstrap",
        ),
        ("evaluate", "model=m tasks=[a.txt] data=x", "data does nothing if all tasks are files"),
        ("compare", "models=[m] tasks=[a.txt,./b.tsv] data=x", "data does nothing if all tasks are files"),
        ("ensemble", "models=[mini,mini] languages=[en] output=o", "every model knows its own; leave languages out"),
        ("filter", "model=mini input=a.txt output=o.tsv rejects=./o.tsv", "rejects=./o.tsv: is the output, too"),
        ("dedup", "input=a.txt output=o.txt rejects=o.txt threshold=null", "rejects=o.txt: is the output, too"),
        ("link", "model=m input=a.tsv output=o.npy", "o.npy: links are not written as .npy"),
        ("link", "model=m input=a.tsv what=lexicon output=o.html", "o.html: the suffix says the format"),
        ("lexicon", "model=m source=a.txt target=a.txt output=o.npy", "o.npy: the suffix says the format"),
    ],
)
def test_what_a_verb_does_not_look_at_is_refused(verb, overrides, said, tmp_path, monkeypatch):
    """Before the model is looked for, which is not there."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("a\n", "utf-8")
    (tmp_path / "kept").mkdir()
    with pytest.raises(ConfigError, match=re.escape(said)):
        command(verb, composed(verb, *overrides.split()))


@pytest.mark.parametrize(
    ("verb", "overrides", "said"),
    [
        ("evaluate", "model=mini bootstrap=x", "bootstrap=x: bootstrap has settings of its own"),
        ("mine", "model=m source=a.txt output=o.tsv neighbours=exact", "neighbours=exact: neighbours has settings"),
        ("export", "model=[mini] output=o", "model=['mini']: give one name, without brackets"),
        ("filter", "model=mini input=[a,b] output=o", "without brackets; two aligned files are source= and target="),
        ("encode", "model=m input=a.txt output={a:b}", "output={'a': 'b'}: give one name"),
    ],
)
def test_a_setting_of_another_shape_is_refused(verb, overrides, said):
    with pytest.raises(ConfigError, match=re.escape(said)):
        check_shape(verb, composed(verb, *overrides.split()))


def test_one_name_is_a_list_of_one_where_a_list_is_asked_for():
    assert check_shape("serve", composed("serve", "corpora=a.en-de.tsv"))["corpora"] == ["a.en-de.tsv"]
    assert check_shape("evaluate", composed("evaluate", "model={path:a.vec}", "tasks=a.tsv"))["tasks"] == ["a.tsv"]


@pytest.mark.parametrize(
    ("verb", "overrides"),
    [
        ("ensemble", "models=[mini,mini]"),
        ("export", "model=mini"),
        ("import", "input=a.txt pair=en"),
        ("train", "pair=en-ja"),
    ],
)
def test_a_folder_is_not_called_as_a_file(verb, overrides, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("a\tb\n", "utf-8")
    with pytest.raises(ConfigError, match=r"output=\S*o\.tsv: a folder is written there; leave \.tsv out"):
        command(verb, composed(verb, *overrides.split(), "output=o.tsv"))
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


@pytest.mark.parametrize(
    ("verb", "overrides"),
    [
        ("encode", "model=mini input=a.tmx output=o.npy"),
        ("encode", "model=mini input=[a.txt,a.tmx] output=o.npy"),
        ("mine", "model=mini source=a.txt target=a.tmx output=o.tsv threads=1"),
        ("search", "model=mini input=a.tmx queries=q"),
        ("phrases", "model=mini queries=a.tmx input=a.txt output=o.tsv"),
        ("align", "model=mini source=a.txt target=a.tmx output=o.tsv"),
        ("split", "input=a.tmx language=de output=o.txt"),
    ],
)
def test_markup_is_not_taken_for_text_line_by_line(verb, overrides, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("a\n", "utf-8")
    (tmp_path / "a.tmx").write_text("<tmx><body>\n<tu></tu>\n</body></tmx>\n", "utf-8")
    with pytest.raises(InputError, match=r"a\.tmx: a \.tmx file has no text line by line"):
        command(verb, composed(verb, *overrides.split()))


HEADER = "# @package _global_\n"
RECIPE = "refine: {max_steps: 100}\n"
CHOICES_OF_A_FILE = "defaults: [override /teacher: none, override /objective: matryoshka, _self_]\n"


@pytest.mark.parametrize(
    ("file", "further", "wanted"),
    [
        (RECIPE, [], {}),
        (HEADER + RECIPE, [], {}),
        (RECIPE, ["refine.max_steps=7", "pair=ja"], {"max_steps": 7}),
        (HEADER + "defaults: [static, _self_]\n" + RECIPE, [], {"batch_size": 2048, "teacher": None}),
        (CHOICES_OF_A_FILE + RECIPE, [], {"teacher": None, "prefixes": [256, 128, 64]}),
    ],
    ids=["plain", "with Hydra's header", "changed on the command line", "on top of another recipe", "with choices"],
)
def test_a_partial_recipe_of_ones_own_composes_onto_the_defaults(file, further, wanted, tmp_path):
    (tmp_path / "recipe").mkdir()
    (tmp_path / "recipe" / "mine.yaml").write_text(file, encoding="utf-8")
    done = run_verb("train", "--config-dir", tmp_path, "recipe=mine", *further, "--cfg", "job", "--resolve", cwd=tmp_path)
    own = yaml.safe_load(done.stdout)
    assert own["recipe"] == "mine"
    found = {**own["refine"], "prefixes": own["objective"]["prefixes"], "teacher": own["teacher"]["model"]}
    usual = {**defaults(RefineConfig), "max_steps": 100, "prefixes": [], "teacher": "mini"}
    assert wanted.items() <= found.items()
    if "defaults" not in file:
        assert found == usual | wanted
        assert own["contexts"] == defaults(ContextConfig)


@pytest.mark.slow
def test_a_recipe_of_ones_own_trains(tmp_path):
    (tmp_path / "recipe").mkdir()
    file = tmp_path / "recipe" / "mine.yaml"
    file.write_text(CHOICES_OF_A_FILE + "refine: {max_steps: 2}\n", encoding="utf-8")
    given = ["train", "--config-dir", tmp_path, "recipe=mine", "pca.dim=256", "refine.batch_size=64", "threads=1"]
    done = run_verb(*given, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (folder,) = (tmp_path / "runs" / "en-ja").glob("mine-*")
    assert json.loads((folder / "results.json").read_text("utf-8"))["settings"]["refine"]["max_steps"] == 2
    file.write_text("teacher: none\nrefine: {max_steps: 2}\n", encoding="utf-8")
    done = run_verb(*given, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.endswith("a file chooses it by defaults: [override /teacher: none, _self_]\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("train ~teacher", "~teacher: a setting always has a value: teacher=…;"),
        ("train ~refine.max_steps=3", "~refine.max_steps=3: a setting always has a value: refine.max_steps=…;"),
        ("encode model=mini input=a.txt output=a.npy ++dtyp=int8", "there is no setting 'dtyp'; did you mean dtype?"),
        ("mine model=mini source=a.txt output=a.tsv +foo=1", "there is no setting 'foo'"),
    ],
)
def test_settings_are_neither_taken_away_nor_added(words, said, tmp_path):
    (tmp_path / "a.txt").write_text("A cat.\n", encoding="utf-8")
    done = run_verb(*words.split(), cwd=tmp_path)
    assert (done.returncode, done.stderr[: len(said) + 6]) == (2, f"xswe: {said}")
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def numbers(values: dict[str, typing.Any]) -> typing.Iterator[tuple[dict[str, typing.Any], str]]:
    """Yield the settings of a verb that may be a fraction: the mapping that holds it, and its name there."""
    for name, value in values.items():
        if isinstance(value, dict):
            yield from numbers(value)
        elif isinstance(value, float):
            yield values, name


@pytest.mark.parametrize("verb", VERBS)
def test_no_number_of_a_verb_is_infinite(verb):
    for mode in VERBS[verb].calls:
        values = own_settings(verb, mode) | {"languages": ["en", "de"], "input": "a.tsv"}
        for inside, name in [*numbers(values)]:
            before, inside[name] = inside[name], float("inf")
            with pytest.raises(ConfigError, match=rf"\b{name}=inf: give a finite number"):
                arguments(verb, mode, values)
            inside[name] = before
