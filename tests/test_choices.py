"""Every closed choice of a setting is done, and each is another: one that is added to its type alone is noticed.

Closed types are found by going through the library. Each has a probe here, which does the least that a choice makes a
difference in, and returns what came of it.
"""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
import re
import typing
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, get_args

import numpy as np
import pytest

import xswe
from xswe.bitext.source import Source
from xswe.errors import ConfigError, InputError, XsweError
from xswe.io.settings import check_choice, for_all
from xswe.search.lists import Neighbours
from xswe.text.languages import LANGUAGES

PROBES: dict[str, Callable[[Any, Path], Any]] = {}
# Choices of the layout of a file, which the formats' own tests read and write; here only that another one is none.
LAYOUTS = ("xswe.corpus.cards:CardFormat", "xswe.bitext.formats:PairFormat")
LATER = {"Source": Source}  # imported for type checkers alone, as it loads the compiler
PLANTED = "planted"
ANY = np.random.default_rng(0)


@lru_cache(maxsize=1)
def modules() -> dict[str, ModuleType]:
    """The modules that have closed types, or classes with settings; others would bring scikit-learn and transformers."""
    names = [found.name for found in pkgutil.walk_packages(xswe.__path__, "xswe.") if not found.name.endswith("__main__")]
    wanted = re.compile(r"Literal\[|@dataclass|\bStruct\b|TypedDict")
    return {name: importlib.import_module(name) for name in names if wanted.search(source(name))}


def source(name: str) -> str:
    """The text of a module, which is not imported."""
    place = Path(xswe.__path__[0]).parent.joinpath(*name.split("."))
    found = [file for file in (place.with_suffix(".py"), place / "__init__.py") if file.is_file()]
    return found[0].read_text("utf-8") if found else ""


@lru_cache(maxsize=1)
def closed() -> dict[str, tuple[Any, ...]]:
    """The closed types of the library by module and name, and their choices."""
    names = re.compile(r"^(\w+) = (?:typing\.)?Literal\[", re.MULTILINE)
    found = {
        f"{name}:{own}": getattr(module, own) for name, module in modules().items() for own in names.findall(source(name))
    }
    return {name: get_args(kind) for name, kind in found.items()}


def literals(hint: Any) -> list[tuple[Any, ...]]:
    """The closed types within a type."""
    inside = (
        [found for part in get_args(hint) for found in literals(part)] if typing.get_origin(hint) is not Literal else []
    )
    return [get_args(hint)] if typing.get_origin(hint) is Literal else inside


def probe(*names: str) -> Callable[[Any], Any]:
    def registered(function: Any) -> Any:
        PROBES.update(dict.fromkeys(names, function))
        return function

    return registered


def holding(config: Any, **values: Any) -> Any:
    """A configuration with a value that its own check may refuse."""
    for name, value in values.items():
        object.__setattr__(config, name, value)
    return config


def unit(rows: int, dim: int = 8) -> np.ndarray:
    vectors = np.random.default_rng(rows).normal(size=(rows, dim)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@probe("xswe.mining.margin:Score")
def _(choice, folder):
    from xswe.mining.margin import SCORINGS

    return SCORINGS[choice].formula(np.float32([0.5, 0.7]), np.float32([0.2, 0.3]), np.float32([0.3, 0.5])).tobytes()


@probe("xswe.mining.margin:Selection")
def _(choice, folder):
    from xswe.mining.margin import _SELECTORS, score_candidates

    cosines = unit(6) @ unit(5).T
    forward, backward = np.argsort(-cosines, 1)[:, :3], np.argsort(-cosines.T, 1)[:, :3]
    lists = Neighbours(
        *(np.take_along_axis(cosines, forward, 1), forward.astype(np.int32)),
        *(np.take_along_axis(cosines.T, backward, 1), backward.astype(np.int32)),
    )
    pairs = _SELECTORS[choice](score_candidates(lists, "cosine", 2), 2)
    return tuple(zip(pairs.source.tolist(), pairs.target.tolist(), strict=True))


@probe("xswe.io.suffixes:TableFormat")
def _(choice, folder):
    from xswe.io.results import Rows
    from xswe.io.suffixes import SUFFIXES

    path = folder / f"a{next((suffix for suffix, one in SUFFIXES.items() if one.table == choice), '.planted')}"
    Rows(("a", "b"), [("c", "d")]).write(path)
    return path.read_bytes()


@probe("xswe.bitext.output:Format")
def _(choice, folder):
    from xswe.bitext.output import Row, output_format, write_rows

    if choice == "auto":
        return output_format(choice, "a.tsv"), output_format(choice, "a.csv")
    path = folder / f"pairs{'' if choice != PLANTED else '.tsv'}.{choice}"
    write_rows(str(path), choice, iter([Row(0.5, "cat", "Katze", "a", "b", 1)]), ("en", "de"))
    return path.read_bytes()


@probe("xswe.alignment.formats:BeadFormat")
def _(choice, folder):
    from xswe.alignment.formats import Manner, Written, bead_format, write_beads

    path, manner = folder / f"beads{'' if choice != PLANTED else '.tsv'}.{choice}", Manner(languages=("en", "de"))
    if choice in ("auto", "bucc"):  # by the name; no format of beads
        try:
            return bead_format(choice, "a.ladder", ("en", "de"))
        except ConfigError as error:
            return str(error)
    write_beads(path, choice, [Written(0.5, "cat", "Katze", (0,), (0,))], manner)
    return path.read_bytes()


@probe("xswe.mining.dedup:Digits")
def _(choice, folder):
    from xswe.mining.dedup import DedupConfig, _Dedup

    lines = [f"The train to gate {n} of the station is late." for n in (12, 13)]
    steps = _Dedup(None, lines, holding(DedupConfig(threshold=None, near=0.5), digits=choice))
    steps.prepare(folder)
    return steps.searched(folder, folder).kept.tobytes()


@probe("xswe.search.vectors:Storage")
def _(choice, folder):
    from xswe.search.vectors import STORAGES

    return np.dtype(STORAGES[choice]).str


@probe("xswe.search.lists:Method")
def _(choice, folder):
    from xswe.search.neighbours import SearchConfig, find_neighbours

    few = {"clusters": 4, "probes": 1} if choice == "clusters" else {}
    config = holding(SearchConfig(threads=1), method=choice, **few)
    return find_neighbours(unit(60), unit(50), 5, config).forward_ids.tobytes()


@probe("xswe.search.layout:IndexMethod")
def _(choice, folder):
    from xswe.search import writer

    return writer._HAS_SIGNS[choice]


@probe("xswe.search.columns:ColumnType")
def _(choice, folder):
    from xswe.search.columns import Columns

    return Columns({"n": choice}).arrays([None], 1, 0)["column0"].tobytes()


@probe("xswe.model.precision:Precision")
def _(choice, folder):
    from xswe.model.precision import _CONVERTERS
    from xswe.model.vector_files import _NUMPY, _SAFETENSORS

    return _CONVERTERS[choice](unit(3))[0].tobytes(), _NUMPY[choice], _SAFETENSORS[choice]


@probe("xswe.model.export:Format")
def _(choice, folder):
    from xswe.model.export import ExportConfig, export

    made = export(small(), holding(ExportConfig(), format=choice), folder / "made")
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return made.is_dir(), tuple((path.name, path.stat().st_size) for path in files)


@probe("xswe.model.interchange:Format")
def _(choice, folder):
    from xswe.model.interchange import ImportConfig, import_model

    (folder / "a").write_bytes(b"1 2\ncat \0\0\0\0\0\0\x80?")
    config = holding(ImportConfig(tokenizer=str(folder / "t.json"), segmenters={}), format=choice)
    try:
        return len(import_model([folder / "a"], ["en"], config).matrix)
    except XsweError as error:
        return str(error)


@probe("xswe.model.interchange:Merge")
def _(choice, folder):
    from xswe.model.interchange import merge_tables

    return merge_tables([(["cat"], unit(1)), (["cat"], unit(2)[:1])], choice)[1].tobytes()


@probe("xswe.alignment.words:LinkMethod")
def _(choice, folder):
    from xswe.alignment.words import LinkConfig, _linked

    generator = np.random.default_rng(3)
    sides = [unit(9) + 0.6 * generator.normal(size=(9, 8)).astype(np.float32) for _ in range(2)]
    sides = [np.ascontiguousarray(side / np.linalg.norm(side, axis=1, keepdims=True), np.float32) for side in sides]

    def read(texts):
        rows = sides.pop()
        return rows, np.array([0, len(rows)], np.int64), [np.zeros((len(rows), 2), np.int32)]

    config = holding(LinkConfig(min_score=0.2, share=0.2), method=choice)
    return next(iter(_linked(read, [[""], [""]], config))).links


@probe("xswe.alignment.documents:Pairing")
def _(choice, folder):
    from xswe.alignment import documents

    return documents._BY_NAMES[choice]


@probe("xswe.corpus.cleaning:Normal")
def _(choice, folder):
    from xswe.corpus.cleaning import CleanConfig, _steps

    text = "A\u0308 ﬁ"
    for step in _steps(holding(CleanConfig(), normalise=choice), "en"):
        text = step(text)
    return text


@probe("xswe.corpus.cleaning:Detector")
def _(choice, folder):
    from xswe.corpus import cleaning
    from xswe.corpus.bitext import CorpusConfig, make_cleaner
    from xswe.corpus.cleaning import CleanConfig, Rows
    from xswe.io.ragged import Texts

    config = CorpusConfig(clean=holding(CleanConfig(), language=choice))
    cleaner = make_cleaner(("en", "de"), config, 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cleaning, "in_other_language", lambda texts, *_: np.arange(len(texts)))
        return cleaner(Rows(Texts.of(["A cat"]), Texts.of(["Katze"]))).reason.tobytes()


@probe("xswe.corpus.cards:CardKind")
def _(choice, folder):
    from xswe.corpus import cards

    return cards._IS_BITEXT[choice]


@probe("xswe.corpus.cards:CardFormat")
def _(choice, folder):
    from xswe.corpus import cards

    return cards._IN_TWO_MEMBERS[choice]


@probe("xswe.bitext.formats:PairFormat")
def _(choice, folder):
    from xswe.bitext.formats import FORMATS, HubSet
    from xswe.bitext.source import Source, read_pairs

    suffix = next(iter(FORMATS[choice].suffixes), "")
    (folder / f"a{suffix}").write_text("cat\tKatze\n", "utf-8")
    (folder / "b").write_text("Katze\n", "utf-8")
    names = {"moses": (folder / "b", folder / "b"), "hub": ()}.get(choice, (folder / f"a{suffix}",))
    try:
        source = Source(names, languages=("en", "de"), hub=HubSet(str(folder / "no")) if choice == "hub" else None)
        return source.kind, list(read_pairs(source))
    except XsweError as error:
        return choice, str(error)


@probe("xswe.corpus.contexts:Pick")
def _(choice, folder):
    from xswe.corpus.contexts import ContextConfig, choose_contexts
    from xswe.io.ragged import Bags

    lengths = np.array([9, 4, 7, 2, 5, 8, 3, 6])
    bags = Bags(np.zeros(lengths.sum(), np.int32), np.append(0, np.cumsum(lengths)))
    config = holding(ContextConfig(per_unit=2), pick=choice)
    return tuple(choose_contexts(bags, 1, config).sentences.tolist())


@probe("xswe.corpus.contexts:Length")
def _(choice, folder):
    from xswe.training.config import TrainConfig, check_settings

    config = TrainConfig(("en", "de"))
    try:
        check_settings(replace(config, contexts=holding(replace(config.contexts), length=choice)), None, None)
    except XsweError as error:
        return str(error)
    return ""


@probe("xswe.io.lines:OnError")
def _(choice, folder):
    """Of lines, of records, of pairs and of a side: what each does with a damaged line."""
    from xswe.bitext.source import Source, read_pairs
    from xswe.io.lines import read_lines
    from xswe.mining.samples import Reservoir
    from xswe.mining.side import SideConfig, _lines

    path = folder / "a.tsv"
    path.write_bytes(b"cat\tKatze\nd\xffg\tHund\n")
    ways = {
        "lines": lambda: list(read_lines(path, on_error=choice)),
        "records": lambda: [record.texts for record in Source((str(path),), on_error=choice).read()],
        "pairs": lambda: list(read_pairs(Source((path,)), on_error=choice)),
        "side": lambda: list(_lines(SideConfig(str(path), on_error=choice), None, Reservoir(), [0])),
    }
    out = []
    for name, way in ways.items():
        try:
            out.append((name, str(way())))
        except InputError as error:
            out.append((name, str(error)))
    return tuple(out)


@probe("xswe.work.config:Executor")
def _(choice, folder):
    from xswe.work import run
    from xswe.work.cluster import workers_of
    from xswe.work.config import ExecutionConfig
    from xswe.work.stage import Job, Stage

    stage, called = Stage(folder, "s", 0, ".x", Job(), "i"), []
    stage.begin()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "_here", lambda *_: called.append("here") or (one for one in ()))
        patch.setattr(run, "on_cluster", lambda *given: called.append(workers_of(given[2].kind)) or (one for one in ()))
        patch.setattr(run, "_await_others", lambda *_: called.append("wait"))
        run.run_shards(stage, holding(ExecutionConfig("array", 0, 2), kind=choice))
    return tuple(called)


@probe("xswe.alignment.phrases:Mode")
def _(choice, folder):
    from xswe.alignment import phrases

    return phrases._TERMS[choice]


@probe("xswe.report.write:Kind")
def _(choice, folder):
    from xswe.report.write import _page_of_path

    out = []
    for name in ("a.tsv", "a.json"):  # of which auto makes different pages
        (folder / name).write_text("0.5\tcat\tKatze\n", "utf-8")
        try:
            out.append(_page_of_path(folder / name, choice, dict.fromkeys(("model", "settings")) | {"languages": ()}))
        except (XsweError, OSError, ValueError, AttributeError) as error:
            if PLANTED in str(error):
                raise
            out.append(str(error))
    return tuple(out)


@probe("xswe.serving.messages:Exported")
def _(choice, folder):
    from xswe.serving import messages as m
    from xswe.serving.service import KINDS, export

    saying = m.Segment("en", "cat")
    return export(m.ExportRequest(choice, [[saying, m.Segment("de", "Katze")]])), KINDS[choice]


@probe("xswe.serving.messages:Matching")
def _(choice, folder):
    from xswe.serving.concordance import Words, phrases_in
    from xswe.serving.messages import PhrasesRequest

    passages = ["The station closed.", "The train, and the trains."]
    words = Words(xswe.load("mini"))
    found = phrases_in(words, 1000, PhrasesRequest("train", passages=passages, match=choice))
    return str([(one.text, one.forms) for one in found.variants])


@probe("xswe.serving.messages:Encoding")
def _(choice, folder):
    from xswe.serving.embeddings import _ROWS

    return str(list(_ROWS[choice](unit(2))))


@probe("xswe.teacher.protocol:Pooling")
def _(choice, folder):
    torch = pytest.importorskip("torch")
    from xswe.teacher.protocol import TeacherConfig
    from xswe.teacher.transformer import _POOLINGS, _pooling

    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode_mean_tokens": true}')
    (folder / "none").mkdir()
    config, states = holding(TeacherConfig(), pooling=choice), torch.tensor([[[1.0], [2.0]]])
    ways = (_pooling(config, str(place)) for place in (folder, folder / "none"))
    return tuple(float(_POOLINGS[way](states, torch.ones(1, 2, 1))) for way in ways)


@probe("xswe.teacher.protocol:TeacherType")
def _(choice, folder):
    torch = pytest.importorskip("torch")
    from xswe.teacher.protocol import TeacherConfig
    from xswe.teacher.transformer import type_of

    found = []
    for has in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(torch.cpu, "get_capabilities", lambda has=has: {"avx512_bf16": has}, raising=False)
            found.append(type_of(TeacherConfig(dtype=choice, device="cpu")))
    return tuple(found)


@probe("xswe.teacher.protocol:Device")
def _(choice, folder):
    from types import SimpleNamespace

    from xswe.teacher.transformer import _DEVICES

    machines = (SimpleNamespace(cuda=SimpleNamespace(is_available=lambda there=there: there)) for there in (True, False))
    return tuple(_DEVICES[choice](torch) for torch in machines)


@probe("xswe.text.units:UnitKind")
def _(choice, folder):
    from xswe.training.units_stage import UnitsConfig, _ready_tokenizer

    pieces = small().units.tokenizer
    ready = _ready_tokenizer(holding(UnitsConfig(vocabulary="corpus"), kind=choice), "corpus", pieces, ("en",))
    return "none" if ready is None else "as it is" if ready is pieces else "its pieces"


@probe("xswe.training.config:Level")
def _(choice, folder):
    from xswe.training import config

    return config.OF_WORDS[choice]


@probe("xswe.training.extract:Merge")
def _(choice, folder):
    from xswe.training.extract import SEPARATE, _Means

    state = _Means(2, 3, 2)
    for share in (1.0, 4.0):
        state.add(np.arange(2), np.full((2, 3), share, np.float32), np.ones(2, np.int64))
        state.close_language(np.array([int(share), 1]), choice)
    return state.total.tobytes(), state.weight.tobytes(), SEPARATE[choice]


@probe("xswe.training.extract:Shared")
def _(choice, folder):
    from xswe.training import extract

    return extract.BY_VOCABULARY[choice]


@probe("xswe.training.losses:Similarity")
def _(choice, folder):
    from xswe.training.losses import span_max_loss

    return span_max_loss(unit(3), unit(4)[:3], unit(5)[:3], 30.0, choice)[0]


@probe("xswe.training.objective:Directions")
def _(choice, folder):
    from xswe.training.objective import Objective

    same = np.arange(4), np.arange(4)
    return holding(Objective(), directions=choice)(unit(4), unit(5)[:4], same, None)[0]


@probe("xswe.training.optimisers:Optimiser")
def _(choice, folder):
    from xswe.training.optimisers import Adam

    adam = Adam(np.ones((3, 2), np.float32), choice)
    ids, starts = np.array([0, 1], np.int32), np.array([0, 1])
    for rows in (ids, ids[:1]):  # the second step moves a row that is not in its batch only if it is dense
        adam.step(rows, starts[: len(rows)], starts[: len(rows)] + 1, np.ones((len(rows), 2), np.float32), 0.1)
    return adam.matrix.tobytes()


@probe("xswe.training.refine:Duplicates")
def _(choice, folder):
    from xswe.training import refine

    return refine._MASKS[choice], refine._DROPS[choice]


@probe("xswe.training.refine:SampledFrom")
def _(choice, folder):
    from xswe.training import refine

    return refine.OF_CONTEXTS[choice]


@probe("xswe.training.refine:Falling")
def _(choice, folder):
    from xswe.training.refine import RefineConfig

    return holding(RefineConfig(max_steps=100), schedule=choice).rate_at(90)


@probe("xswe.alignment.link:Made")
def _(choice, folder):
    from xswe.alignment.link import BitextLinkConfig, _made

    return type(_made(iter([]), ("en", "de"), holding(BitextLinkConfig(), what=choice), None, "a.tsv"))


@probe("xswe.mining.verdicts:Method")
def _(choice, folder):
    from xswe.mining.verdicts import BitextFilter

    pairs = (("en", "ja"), ("de", "ja"))
    return tuple(holding(BitextFilter(languages=pair), method=choice).resolved().method for pair in pairs)


@probe("xswe.corpus.prepare:Action")
def _(choice, folder):
    from xswe.corpus import prepare

    return prepare._ACTIONS[choice]


@probe("xswe.serving.config:Log")
def _(choice, folder):
    from xswe.serving.app import formatter_of

    return type(formatter_of(choice))


@lru_cache(maxsize=1)
def small() -> Any:
    """A model of a few pieces."""
    return xswe.load("mini").quantize("float32").prune(4000)


def test_every_closed_type_has_a_probe():
    assert set(PROBES) == set(closed())


def test_every_closed_setting_is_of_a_type_with_a_name():
    """So that none escapes: of dataclasses, requests and typed dictionaries."""
    named, seen = {frozenset(LANGUAGES), *(frozenset(choices) for choices in closed().values())}, 0
    for name, module in modules().items():
        for own in vars(module).values():
            struct = isinstance(own, type) and (dataclasses.is_dataclass(own) or hasattr(own, "__struct_fields__"))
            if isinstance(own, type) and own.__module__ == name and (struct or typing.is_typeddict(own)):
                for field, hint in typing.get_type_hints(own, localns=LATER).items():
                    for choices in literals(hint):
                        assert frozenset(choices) in named, f"{name}.{own.__name__}.{field}"
                        seen += 1
    assert seen > 50


@pytest.mark.parametrize("name", [name for name in PROBES if name not in LAYOUTS])
def test_every_choice_is_done_and_is_another(name, tmp_path):
    found: dict[Any, str] = {}
    for choice in closed()[name]:
        (folder := tmp_path / (choice or "none")).mkdir()
        outcome = PROBES[name](choice, folder)
        assert outcome not in found, f"{choice} does what {found.get(outcome)} does"
        found[outcome] = choice


@pytest.mark.parametrize("name", PROBES)
def test_a_choice_that_nothing_does_is_no_other(name, tmp_path):
    with pytest.raises((KeyError, AssertionError, XsweError, ValueError, AttributeError)):
        PROBES[name](PLANTED, tmp_path)


@pytest.mark.parametrize("name", [name for name in PROBES if "for_all(" in source(name.partition(":")[0])])
def test_a_choice_that_is_added_to_its_type_alone_is_an_error_at_import(name):
    module, _, own = name.partition(":")
    text = source(module)
    if f"for_all(\n    {own}," not in text and f"for_all({own}," not in text:
        pytest.skip("its dispatch is matched, which mypy checks, or a table of another module")
    planted = re.sub(rf"(?m)^{own} = ((?:typing\.)?Literal)\[", rf'{own} = \1["{PLANTED}", ', text)
    assert planted != text
    with pytest.raises(TypeError, match=f"{PLANTED}.* each choice needs an entry"):
        exec(
            compile(planted, modules()[module].__file__, "exec"),
            {"__name__": module, "__file__": modules()[module].__file__},
        )


def test_tables_and_choices_are_checked():
    kinds = Literal["a", "b"]
    assert for_all(kinds, {"a": 1, "b": 2}) == {"a": 1, "b": 2}
    for table in ({"a": 1}, {"a": 1, "b": 2, "c": 3}):
        with pytest.raises(TypeError, match="each choice needs an entry"):
            for_all(kinds, table)
    check_choice("x", "a", kinds)
    with pytest.raises(xswe.errors.ConfigError, match="x='c': choose one of a, b"):
        check_choice("x", "c", kinds)
