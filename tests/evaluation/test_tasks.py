"""mteb's tasks as ours, against a small mteb of our own: the real one takes seconds to import."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest

from xswe.bitext.source import Source
from xswe.errors import ConfigError, InputError
from xswe.evaluation import mteb_bridge as bridge
from xswe.evaluation import tasks as module
from xswe.evaluation.metrics import Row, pearson, search, weighted_f1
from xswe.evaluation.mteb_bridge import _both_ways, _hub_hint, _is_hub_error, _localise, _note, _rows, _scored
from xswe.evaluation.tasks import (
    Job,
    Preset,
    averages,
    check,
    evaluate_bitext,
    is_path,
    jobs,
    score_vectors,
    subset_names,
)

SUBSETS = {
    "STS17": {
        "en-en": ["eng-Latn"],
        "en-de": ["eng-Latn", "deu-Latn"],
        "ko-ko": ["kor-Hang"],
        "fr-en": ["fra-Latn", "eng-Latn"],
    },
    "Tatoeba": {
        "deu-eng": ["deu-Latn", "eng-Latn"],
        "jpn-eng": ["jpn-Jpan", "eng-Latn"],
        "cmn-eng": ["cmn-Hans", "eng-Latn"],
    },
    "Alone": ["jpn-Jpan"],
    "Reviews": {"movies": ["eng-Latn"], "books": ["eng-Latn"], "zh": ["zho-Hans"]},
}


class Mteb:
    """What the module asks of mteb; a task of it knows its subsets and splits."""

    def get_task(self, name, hf_subsets=None, eval_splits=None):
        metadata = SimpleNamespace(name=name, eval_langs=SUBSETS[name])
        return SimpleNamespace(metadata=metadata, hf_subsets=hf_subsets, eval_splits=eval_splits)

    def get_tasks(self, exclude_superseded):
        return [] if exclude_superseded else [self.get_task(name) for name in SUBSETS]

    def get_benchmark(self, name):
        assert name == "a benchmark"
        return SimpleNamespace(
            tasks=[self.get_task("STS17", ["en-en", "en-de"], ["test"]), self.get_task("Alone", ["default"], ["dev"])]
        )


@pytest.fixture(autouse=True)
def mteb(monkeypatch):
    monkeypatch.setitem(sys.modules, "mteb", Mteb())
    module._registered.cache_clear()
    yield
    module._registered.cache_clear()


def named(found):
    return {job.name: job.subsets for job in found}


def test_a_subset_is_named_by_our_languages_english_first():
    about = {name: SimpleNamespace(eval_langs=langs) for name, langs in SUBSETS.items()}
    assert subset_names(about["STS17"]) == {"en": "en-en", "en-de": "en-de"}
    assert subset_names(about["Tatoeba"]) == {"en-de": "deu-eng", "en-ja": "jpn-eng", "en-zh": "cmn-eng"}
    assert subset_names(about["Alone"]) == {"ja": "default"}
    assert subset_names(about["Reviews"]) == {"en": "movies", "en:books": "books", "zh": "zh"}


def test_the_tasks_of_a_model_are_in_its_languages():
    (job,), skipped = jobs("tatoeba", ("en", "ja"))
    assert (job.name, job.subsets, job.task.hf_subsets, skipped) == ("tatoeba", {"en-ja": "jpn-eng"}, ["jpn-eng"], [])
    assert jobs("Tatoeba", ("en", "de", "zh"))[0][0].subsets == {"en-de": "deu-eng", "en-zh": "cmn-eng"}
    none, (row,) = jobs("alone", ("en", "de"))
    assert (none, row.task, row.metric, row.value, row.note) == (
        [],
        "alone",
        "skipped",
        None,
        "Alone has nothing in en, de",
    )
    with pytest.raises(ConfigError, match="unknown task 'nonesuch'"):
        jobs("nonesuch", ("en",))


def test_a_preset_takes_pairs_or_one_language_or_a_benchmark(monkeypatch):
    every, names = ("en", "de", "zh", "ja"), ("STS17", "Tatoeba", "Alone")
    for only, expected in (
        ("pairs", {"sts17": {"en-de": "en-de"}, "tatoeba": {"en-de": "deu-eng", "en-ja": "jpn-eng", "en-zh": "cmn-eng"}}),
        ("en", {"sts17": {"en": "en-en"}}),
        (None, {name.lower(): subset_names(SimpleNamespace(eval_langs=SUBSETS[name])) for name in names}),
    ):
        monkeypatch.setitem(module.PRESETS, "own", Preset(names, only=only))
        found, skipped = jobs("OWN", every)
        assert named(found) == expected
        assert {row.task for row in skipped} == {name.lower() for name in names} - set(expected)
    monkeypatch.setitem(module.PRESETS, "own", Preset(benchmark="a benchmark"))
    found, _ = jobs("own", every)
    assert [(job.name, job.task.hf_subsets, job.task.eval_splits) for job in found] == [
        ("sts17", ["en-en", "en-de"], ["test"]),
        ("alone", ["default"], ["dev"]),
    ]
    assert named(jobs("own", ("en", "ja"))[0]) == {"sts17": {"en": "en-en"}, "alone": {"ja": "default"}}


def test_what_may_be_a_task(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there").touch()
    names = ("a/b", "there", "own.tsv", "BUCC.v2", "tatoeba", "nothing")
    assert [is_path(name) for name in names] == [True, True, True, False, False, False]
    check(["XLing", "Reviews", "own.tsv", "bucc.V2"])
    for wrong, said in (([], "tasks is empty"), (["tatoeba", "tatooba"], "unknown task 'tatooba'")):
        with pytest.raises(ConfigError, match=said):
            check(wrong)


def test_an_average_is_over_tasks_each_of_which_is_the_mean_of_its_subsets(monkeypatch):
    monkeypatch.setitem(
        module.PRESETS, "jmteb", Preset(averages=(("average", None), ("few", ("A", "B")), ("none", ("C", "D", "E", "F"))))
    )
    rows = [
        Row("a", "en", "main_score", 0.5, 1),
        Row("a", "ja", "main_score", 0.7, 1),
        Row("b", "en", "main_score", 0.1, 1),
    ]
    rows += [Row("b", "en", "accuracy", 0.9, 1), Row("b", "ja", "main_score", None, 1)]
    whole, few, none = averages("JMTEB", rows)
    assert (whole.task, whole.subset, whole.metric, whole.n, few.metric) == ("jmteb", "ja", "average", 2, "few")
    assert [whole.value, few.value] == pytest.approx([(0.6 + 0.1) / 2] * 2)
    assert (none.metric, none.value) == ("skipped", None)
    assert none.note == "no none: 4 of 4 tasks were not measured (c, d, e, …)"
    monkeypatch.setitem(module.PRESETS, "three", Preset(averages=(("a", ("C", "D", "E")),)))
    (three,) = averages("three", rows)
    assert (three.note, three.subset) == ("no a: 3 of 3 tasks were not measured (c, d, e)", "en")
    (lacking, *_) = averages("jmteb", [*rows, Row("c", "en", "skipped", None, 0)])
    assert lacking.note == "no average: 1 of 3 tasks were not measured (c)"
    assert averages("tatoeba", rows) == []


def job_of(kind, **task):
    about = SimpleNamespace(type=kind, descriptive_stats=task.pop("stats", None))
    return Job("x", SimpleNamespace(metadata=about, **task), {"en-de": "theirs"})


def sides(rows=6):
    found = np.random.default_rng(3).normal(size=(2, rows, 4)).astype(np.float32)
    return list(found / np.linalg.norm(found, axis=2, keepdims=True))


def test_scores_of_a_similarity_task_are_kept_where_they_give_its_correlation():
    both, scores = sides(), [0.0, 1.0, 2.0, 3.0, 5.0, 4.0]
    cosines = (both[0] * both[1]).sum(axis=1)
    own = pearson(cosines, np.array(scores))
    for data in ({"test": {"score": scores}}, {"theirs": {"test": {"score": scores}}}):
        job = job_of("STS", data_loaded=True, dataset=data)
        for theirs, kept in ((own, True), (own + 9e-4, True), (own - 1.2e-3, False), (None, False)):
            found = _scored(job, "theirs", "test", {} if theirs is None else {"cosine_pearson": theirs}, both)
            assert set(found) == ({"cosine_spearman", "cosine_pearson"} if kept else set())
            for items in found.values():
                np.testing.assert_allclose(items, [cosines, scores], atol=1e-6)
    same = {"cosine_pearson": own}
    for job, given in (
        (job_of("STS", data_loaded=False, dataset={}), both),
        (job_of("Reranking", data_loaded=True, dataset={}), both),
        (job_of("STS", data_loaded=True, dataset={}), both[:1]),
    ):
        assert _scored(job, "theirs", "test", same, given) == {}


def test_a_bitext_is_scored_in_the_direction_that_mteb_scored():
    left, right = sides()
    expected = {row.metric: row for row in score_vectors(right, left, "x", "en-de")}
    f1 = expected["f1_forward"].value
    assert f1 != {row.metric: row for row in score_vectors(left, right, "x", "en-de")}["f1_forward"].value
    for off, found in ((0.0, expected), (4e-3, expected), (-4e-3, expected), (7e-3, {})):
        got = _both_ways("x", "en-de", {"f1": f1 + off}, [left, right])
        assert {name: row.value for name, row in got.items()} == {name: row.value for name, row in found.items()}
    assert _both_ways("x", "en-de", {"accuracy": f1}, [left, right]) == {}
    assert _both_ways("x", "en-de", {"f1": f1}, [left]) == {}
    assert _both_ways("x", "en-de", {"f1": f1}, [left[1:], right]) == {}


def test_a_data_set_of_another_size_is_said():
    stats = {"test": {"num_samples": 9, "hf_subset_descriptive_stats": {"theirs": {"num_samples": 7}}}}
    assert _note(job_of("STS", stats=stats), "theirs", "test", [5, 5], "local") == "local, 5 of the data set's 7 pairs"
    assert (
        _note(job_of("STS", stats={"test": {"num_samples": 1234}}), "theirs", "test", [5, 5], None)
        == "5 of the data set's 1,234 pairs"
    )
    for kind, sizes in (("STS", [7, 7]), ("STS", [5, 6]), ("STS", [5]), ("Clustering", [5, 5])):
        assert _note(job_of(kind, stats=stats), "theirs", "test", sizes, "local") == "local"
    assert _note(job_of("STS"), "theirs", "test", [5, 5], None) is None


def test_a_row_for_each_score_of_mteb():
    entry = {"hf_subset": "theirs", "main_score": 0.25, "accuracy": 0.5, "worst": float("nan"), "n": 3, "languages": ["en"]}
    result = SimpleNamespace(scores={"test": [entry]}, dataset_revision="r1", mteb_version="2.0")
    for kind, n in (("STS", 5), ("Clustering", 9)):
        wrapped = SimpleNamespace(sizes={("theirs", "test"): [4, 5]}, sides={})
        rows = _rows(job_of(kind, data_loaded=False), result, wrapped, "local")
        assert [(row.metric, row.value, row.n, row.subset, row.source, row.split, row.note) for row in rows] == [
            ("main_score", 0.25, n, "en-de", "mteb 2.0", "test", "local"),
            ("accuracy", 0.5, n, "en-de", "mteb 2.0", "test", "local"),
        ]
    theirs = {"hf_subset": "theirs", "main_score": 0.0, "f1": weighted_f1(search(*sides()).nearest)}
    result.scores["test"] = [theirs]
    wrapped.sides["theirs", "test"] = sides()
    kept = _rows(job_of("BitextMining"), result, wrapped, None)
    own = {row.metric: row for row in score_vectors(*sides(), "x", "en-de")}
    assert [row.metric for row in kept] == ["main_score", "f1"] + [f"{name}_both_ways" for name in own if name[-1] != "d"]
    np.testing.assert_array_equal(kept[1].items, own["f1_forward"].items)
    for row in kept[2:]:
        assert (row.value, row.source) == (own[row.metric.removesuffix("_both_ways")].value, "xswe")
    result.scores["test"] = [entry | {"main_score": float("nan")}]
    skipped, _ = _rows(job_of("STS", data_loaded=False), result, wrapped, None)
    assert (skipped.metric, skipped.value, skipped.note) == ("skipped", None, "mteb's main score is nan")


def test_a_task_is_read_from_the_folder_of_its_data_set(tmp_path):
    class Metadata(SimpleNamespace):
        def model_copy(self, update):
            return Metadata(**vars(self) | update)

    def task():
        return SimpleNamespace(metadata=Metadata(dataset={"path": "own/set", "revision": "r"}))

    with pytest.raises(Exception, match=r"own/set is missing; put the data set own/set there, or set data=null$"):
        _localise(task(), tmp_path)
    (tmp_path / "own" / "set" / "deep").mkdir(parents=True)
    file = tmp_path / "own" / "set" / "deep" / "a.jsonl"
    states = []
    for content in ("a", "ab"):
        file.write_text(content)
        found = task()
        states.append(_localise(found, tmp_path))
        assert found.metadata.dataset == {"path": str((tmp_path / "own" / "set").resolve()), "revision": "r"}
    assert states[0] != states[1] == _localise(task(), tmp_path)


class Encoder:
    languages = ("en", "de")


@pytest.fixture
def job(monkeypatch):
    """A task of a data set own/set, which fails unless a test says otherwise; and where data sets were kept."""
    about = SimpleNamespace(name="X", type="Clustering", dataset={"path": "own/set"}, descriptive_stats=None)
    about.model_copy = lambda update: SimpleNamespace(**vars(about) | update)
    kept = []
    monkeypatch.setattr(bridge, "MtebEncoder", lambda encoder: SimpleNamespace(sizes={("theirs", "test"): [3]}, sides={}))
    monkeypatch.setattr(bridge, "_datasets_cache", lambda folder: kept.append(folder) or nullcontext())
    return Job("x", SimpleNamespace(metadata=about), {"en-de": "theirs"}), kept


@pytest.mark.parametrize("local", [False, True])
def test_a_task_that_fails_is_skipped_with_the_reason(job, monkeypatch, tmp_path, local):
    (tmp_path / "own" / "set").mkdir(parents=True)
    root = tmp_path if local else None
    for error, note in (
        (ValueError("a\n b " * 200), ("ValueError: " + "a b " * 200)[:300]),
        (ConnectionError("x"), "ConnectionError: x" if local else _hub_hint(job[0].task, "ConnectionError: x")),
    ):
        monkeypatch.setattr(bridge, "_evaluate", lambda *_, error=error: (_ for _ in ()).throw(error))
        assert bridge._run(Encoder(), job[0], root, tmp_path) == [Row("x", "en-de", "skipped", None, 0, "mteb", note=note)]
    assert len(job[1]) == 2 * local


def test_a_task_whose_data_set_is_missing_says_where_it_belongs(job, tmp_path):
    (row,) = bridge._run(Encoder(), job[0], tmp_path, tmp_path)
    assert row.note == f"{tmp_path / 'own/set'} is missing; put the data set own/set there, or set data=null"


def test_a_task_says_of_which_files_it_is(job, monkeypatch, tmp_path):
    entry = {"hf_subset": "theirs", "main_score": 0.5}
    result = SimpleNamespace(scores={"test": [entry]}, dataset_revision="r", mteb_version="2")
    monkeypatch.setattr(bridge, "_evaluate", lambda *_: SimpleNamespace(task_results=[result]))
    (row,) = bridge._run(Encoder(), job[0], None, tmp_path)
    assert (row.task, row.value, row.note, row.n, job[1]) == ("x", 0.5, None, 3, [])
    (tmp_path / "own" / "set").mkdir(parents=True)
    (row,) = bridge._run(Encoder(), job[0], tmp_path, tmp_path / "results")
    state = row.note.removeprefix("local copy, files ")
    assert job[1] == [tmp_path / "results" / "data" / state]


@pytest.mark.parametrize("count", [0, 1, 2])
def test_a_preset_is_its_tasks_what_was_skipped_and_its_averages(monkeypatch, tmp_path, count):
    skipped = [Row("s", "-", "skipped", None, 0)]
    monkeypatch.setattr(bridge, "jobs", lambda task, languages: (list(range(count)), list(skipped)))
    monkeypatch.setattr(bridge, "_run", lambda encoder, job, root, results: [Row(f"t{job}", "en", "main_score", 0.5, 1)])
    monkeypatch.setattr(bridge, "averages", lambda task, rows: [Row(task, "en", "average", 0.5, len(rows))])
    found = bridge.run_task(Encoder(), "p", None, tmp_path)
    assert [row.task for row in found] == ["s", *(f"t{n}" for n in range(count)), "p"]
    assert found[-1].n == count + 1


def test_what_the_hub_does_not_give_has_a_hint():
    failed = type("HubError", (Exception,), {"__module__": "huggingface_hub.errors"})
    errors = (OSError("x"), failed("y"), ValueError("z"))
    assert [_is_hub_error(error) for error in errors] == [True, True, False]
    parts = [SimpleNamespace(metadata=SimpleNamespace(dataset={"path": path})) for path in ("o/a", "o/b", "o/a")]
    hint = "neither the hub nor its cache has it (why); check the network, or put it into DIR/o/a{} and set data=DIR"
    assert _hub_hint(SimpleNamespace(tasks=parts), "why") == hint.format(" and DIR/o/b")
    assert _hub_hint(parts[0], "why") == hint.format("")


def test_pairs_with_an_empty_side_are_left_out_of_a_bitext(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("a\ta\nb\tb\n\tc\nd\t\nc\tc\n", encoding="utf-8")
    asked = []

    def encode(texts):
        asked.append(list(texts))
        return np.eye(5, dtype=np.float32)[["abcde".index(text) for text in texts]]

    rows = evaluate_bitext(encode, Source((str(path),)))
    assert asked == [["a", "b", "c"]] * 2
    assert {row.n for row in rows} == {3}
    assert {row.value for row in rows} == {1.0}
    assert {row.subset for row in rows} == {"a.tsv"}
    path.write_text("a\t\n\tb\n", encoding="utf-8")
    with pytest.raises(InputError, match="no pair in it"):
        evaluate_bitext(encode, Source((str(path),)))
