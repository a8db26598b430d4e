"""The stages chained, with a fake teacher: what is imitated, by whom, and what a killed run leaves."""

from __future__ import annotations

import csv
import re
import shutil
import sys
import types
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from tests.clusters import slices
from tests.conftest import FakeTeacher
from xswe.corpus.bitext import CorpusConfig
from xswe.corpus.contexts import ContextConfig, Contexts
from xswe.errors import ConfigError, ModelError, Unfinished
from xswe.io.files import read_json
from xswe.model.folder import load_units
from xswe.teacher.protocol import TeacherConfig
from xswe.text.words import WordUnits
from xswe.training import pipeline
from xswe.training.components import Components
from xswe.training.config import PCAConfig, TrainConfig, sample_paths
from xswe.training.corpus_stage import Corpus, sides
from xswe.training.extract import ExtractConfig, averaged, sums_by_shard
from xswe.training.loop import RunLog
from xswe.training.objective import Objective
from xswe.training.pairs import WordCounts
from xswe.training.pipeline import run_stages
from xswe.training.refine import RefineConfig
from xswe.training.shape import ShapeConfig, temper
from xswe.training.stages import Stages, only_run
from xswe.training.teacher_vectors import RowVectors, as_imitated, vectors_stage
from xswe.training.train import score_imitation, score_pivots
from xswe.training.triplets import SpanTraining
from xswe.training.units_stage import UnitsConfig
from xswe.work.config import ExecutionConfig


@pytest.fixture(scope="session")
def config(tokenizer_json, tmp_path_factory):
    vocabulary = tmp_path_factory.mktemp("vocabulary") / "tokenizer.json"
    vocabulary.write_text(tokenizer_json, encoding="utf-8")

    def make(languages, **changes):
        made = TrainConfig(
            languages,
            CorpusConfig(paths=sample_paths(languages), limit=500, held_out=0.05, development=0.05),
            units=UnitsConfig(vocabulary=str(vocabulary)),
            pca=PCAConfig(dim=16),
            refine=RefineConfig(max_steps=30, batch_size=64, learning_rate=0.01, eval_steps=10),
        )
        return replace(made, **changes)

    return make


def parts(folder, name, pairs):
    return Corpus(Stages(folder.parents[1]), folder, "", pairs).part(name)


ALONE = Objective(ranking=0.0, distillation=1.0, distillation_on=("source",))


def test_one_language_learns_from_a_teacher(tmp_path, config, fake_teacher):
    c = config(
        ("en",), objective=ALONE, refine=RefineConfig(max_steps=150, batch_size=64, learning_rate=0.02, eval_steps=50)
    )
    made = run_stages(c, None, tmp_path, distilled=fake_teacher)
    history = made.report["refinement"]["history"]
    assert history[-1]["development_loss"] < history[0]["development_loss"]
    assert made.model.languages == ("en",)
    (texts,) = made.held_out["en"]
    np.testing.assert_allclose(made.teacher, fake_teacher.vectors(list(texts)), atol=1e-3)
    rows = {r.metric: r.value for r in score_imitation(made.model.encode(texts), made.teacher, "held-out", "en")}
    assert rows["spearman_with_teacher"] > 0.2
    with open(tmp_path / "history.csv", encoding="utf-8") as stream:
        written = list(csv.DictReader(stream))
    assert [int(row["step"]) for row in written] == [0, 50, 100, 150]
    assert float(written[-1]["development_loss"]) == history[-1]["development_loss"]


def test_perfect_imitation_is_a_correlation_of_one():
    teacher = np.random.default_rng(0).normal(size=(40, 8)).astype(np.float32)
    teacher /= np.linalg.norm(teacher, axis=1, keepdims=True)
    values = {row.metric: row.value for row in score_imitation(teacher, teacher, "t", "en")}
    assert values["spearman_with_teacher"] == pytest.approx(1.0)


@pytest.mark.slow
def test_joint_training_encodes_each_distinct_source_sentence_once(tmp_path, config, fake_teacher):
    calls = []
    vectors = fake_teacher.vectors
    fake_teacher.vectors = lambda texts: calls.extend(texts) or vectors(texts)
    whole = CorpusConfig(paths=sample_paths(("en", "de", "ja")))
    c = config(("en", "de", "ja"), corpus=whole, objective=Objective(distillation=1.0))
    joint = run_stages(c, None, tmp_path, distilled=fake_teacher)
    assert len(calls) == len(set(calls))
    corpus = next((tmp_path / "stages").glob("corpus-*"))
    development = parts(corpus, "development", (("en", "de"), ("en", "ja")))
    assert set(calls) == {*joint.training("en"), *(text for bitext in development for text in bitext.source[:])}
    again = run_stages(c, None, tmp_path, distilled=fake_teacher)
    assert len(calls) == len(set(calls))
    assert again.model.matrix.tobytes() == joint.model.matrix.tobytes()
    plain = run_stages(replace(c, objective=Objective()), None, tmp_path)
    assert plain.model.matrix.tobytes() != joint.model.matrix.tobytes()
    rows = score_pivots(joint, c.languages, 1)
    assert {row.subset for row in rows} == {"de-ja"}
    held = rows[0].n
    assert 0 < held < 300
    trained = set(joint.training("de"))
    assert len(trained) + held <= 1717


@pytest.mark.slow
def test_another_first_language_has_its_own_side_encoded(tmp_path, config, fake_teacher):
    corpus = CorpusConfig(paths={"ja-en": sample_paths(("ja", "en"))["ja-en"]})
    objective = Objective(distillation=1.0)
    both = [config(codes, corpus=corpus, objective=objective) for codes in (("en", "ja"), ("ja", "en"))]
    first, reused = (run_stages(c, None, tmp_path / "one", distilled=fake_teacher) for c in both)
    fresh = run_stages(both[1], None, tmp_path / "two", distilled=fake_teacher)
    assert reused.model.matrix.tobytes() == fresh.model.matrix.tobytes() != first.model.matrix.tobytes()


def test_another_teacher_in_the_same_folder_is_asked_anew(tmp_path, config, fake_teacher, tokenizer):
    class Doubled(FakeTeacher):
        identity = "doubled"

        def states(self, texts, batches):
            for made in super().states(texts, batches):
                yield replace(made, hidden=2 * made.hidden)

    c = config(("en", "de"), pca=PCAConfig(dim=2), refine=RefineConfig(max_steps=0))
    first = run_stages(c, fake_teacher, tmp_path).stages["extraction"].matrix
    other = run_stages(c, Doubled(tokenizer=tokenizer), tmp_path).stages["extraction"].matrix
    np.testing.assert_allclose(other, 2 * first, rtol=1e-6)


WORDS = UnitsConfig(kind="words", most_frequent={"en": 200, "de": 200})


@pytest.mark.slow
def test_a_word_outside_of_a_languages_own_list_is_the_other_languages_alone(tmp_path, config, fake_teacher):
    c = config(("en", "de"), units=WORDS, pca=PCAConfig(dim=2), refine=RefineConfig(max_steps=0))
    c = replace(c, extract=ExtractConfig("average", isolated=False))
    contexts, vocabulary = (replace(c, extract=replace(c.extract, shared=s)) for s in ("contexts", "vocabulary"))
    by_contexts = run_stages(contexts, fake_teacher, tmp_path).stages["extraction"]
    by_vocabulary = run_stages(vocabulary, fake_teacher, tmp_path).stages["extraction"]
    (units,) = (tmp_path / "stages").glob("units-*")
    own, tokens = WordCounts.open(units).own, by_contexts.units.tokens
    assert own.sum(1).tolist() == [200, 200]
    assert (own.any(0)).all()
    changed = (by_contexts.matrix != by_vocabulary.matrix).any(1)
    assert changed.any()
    assert not (changed & own.all(0)).any()  # what is in both lists is the mean of both, either way
    word = int(np.flatnonzero(changed)[0])
    (stage,) = [s for s in (tmp_path / "stages").glob("contexts-*") if "shared" in (s / "stage.json").read_text()]
    for k, code in enumerate(("en", "de")):
        assert not np.isin(Contexts.open(stage, code).units, np.flatnonzero(~own[k])).any()
    texts = {code: list(by_contexts_texts) for code, by_contexts_texts in _training(tmp_path, ("en", "de")).items()}
    code = ("en", "de")[int(np.flatnonzero(own[:, word])[0])]
    chosen = Contexts.open(stage, code)
    rows = np.repeat(chosen.sentences, np.diff(chosen.offsets))[chosen.units == word]
    places = [by_contexts.units.locate([texts[code][row]]) for row in rows]
    ends = [
        next((a + b - 1) / 2 for i, a, b in zip(p.bags.ids, p.starts, p.ends, strict=True) if i == word) for p in places
    ]
    expected = [np.mean(ends), np.mean([len(texts[code][row]) for row in rows]), 1.0]
    np.testing.assert_allclose(by_vocabulary.matrix[word], expected, rtol=1e-5, err_msg=tokens[word])


FEW_WORDS = UnitsConfig(kind="words", most_frequent={"en": 60, "de": 60})


@pytest.mark.slow
def test_contexts_of_words_contain_them_and_those_of_an_earlier_version_are_not_taken(
    tmp_path, config, fake_teacher, monkeypatch
):
    c = config(("en", "de"), units=FEW_WORDS, contexts=ContextConfig(per_unit=2), pca=PCAConfig(dim=2))
    c = replace(c, extract=ExtractConfig(isolated=False), refine=RefineConfig(max_steps=0))
    with monkeypatch.context() as patch:  # as it was: a sentence was a context of what its unknown words back off to
        patch.setattr(WordUnits, "exact", property(lambda units: units))
        before = run_stages(c, fake_teacher, tmp_path)
    (old,) = (tmp_path / "stages").glob("contexts-*")
    made = run_stages(c, fake_teacher, tmp_path)
    (new,) = (stage for stage in (tmp_path / "stages").glob("contexts-*") if stage != old)
    assert (made.stages["extraction"].matrix != before.stages["extraction"].matrix).any(1).sum() > 20
    texts, units = _training(tmp_path, ("en", "de")), made.model.units

    def without(stage, code):
        chosen = Contexts.open(stage, code)
        rows = np.repeat(chosen.sentences, np.diff(chosen.offsets)).tolist()
        pairs = [(units.tokens[i], texts[code][row]) for i, row in zip(chosen.units.tolist(), rows, strict=True)]
        return [pair for pair in pairs if pair[0] not in {word.form for word in units.splitter(pair[1])}], len(pairs)

    for code in ("en", "de"):
        assert len(without(old, code)[0]) > 20
        assert without(new, code)[0] == []
        assert without(new, code)[1] > 60
    fresh = run_stages(c, fake_teacher, tmp_path / "fresh")
    assert fresh.model.matrix.tobytes() == made.model.matrix.tobytes()


def test_words_of_a_language_are_weighed_by_how_often_they_stand_there(tmp_path, config, fake_teacher):
    c = config(("en", "de"), units=FEW_WORDS, pca=PCAConfig(dim=2), refine=RefineConfig(max_steps=0))
    made = run_stages(replace(c, extract=ExtractConfig("frequency", isolated=False)), fake_teacher, tmp_path)
    (stage,), units = (tmp_path / "stages").glob("contexts-*"), made.model.units
    word, places, weights = units.tokens.index("die"), [], []
    for code, texts in _training(tmp_path, ("en", "de")).items():
        chosen, forms = Contexts.open(stage, code), [[word.form for word in units.splitter(text)] for text in texts]
        rows = np.repeat(chosen.sentences, np.diff(chosen.offsets))[chosen.units == word].tolist()
        assert all("die" in forms[row] for row in rows)
        weights.append(sum(one.count("die") for one in forms))
        places.append(np.mean([len(texts[row]) for row in rows]) if rows else 0.0)
    assert weights[1] > 100 > weights[0]
    expected = np.average(places, weights=weights)
    np.testing.assert_allclose(made.stages["extraction"].matrix[word, 1], expected, rtol=1e-5)


def test_sub_words_have_no_look_up_of_their_own_for_contexts(tmp_path, config, fake_teacher):
    c = config(("en", "de"), pca=PCAConfig(dim=2), refine=RefineConfig(max_steps=0))
    run_stages(c, fake_teacher, tmp_path)
    stages = {path.name.rsplit("-", 1)[0]: path for path in (tmp_path / "stages").iterdir()}
    assert "exact" not in stages
    bags, chosen = (read_json(stages[name] / "stage.json") for name in ("bags", "contexts"))
    # The name that runs of earlier versions have: what they left is taken.
    assert chosen["inputs"] == [bags["identity"], {"per_unit": 100, "candidates": 2000, "pick": "shortest", "seed": 0}]


def _training(folder, pair):
    corpus = next((folder / "stages").glob("corpus-*"))
    return {code: texts for bitext in parts(corpus, "train", (pair,)) for _, code, texts in sides(bitext)}


def test_the_shortest_contexts_are_those_of_fewest_tokens(tmp_path, config, fake_teacher):
    c = config(("en", "de"), contexts=ContextConfig(per_unit=1, length="tokens"), pca=PCAConfig(dim=2))
    c = replace(c, refine=RefineConfig(max_steps=0))
    run_stages(c, fake_teacher, tmp_path)
    (stage,) = (tmp_path / "stages").glob("contexts-*")
    texts, chosen = list(_training(tmp_path, ("en", "de"))["en"]), Contexts.open(stage, "en")
    units = load_units(next((tmp_path / "stages").glob("units-*")))
    rows = np.repeat(chosen.sentences, np.diff(chosen.offsets))
    bags = units.bags(texts)
    for unit, row in list(zip(chosen.units.tolist(), rows.tolist(), strict=True))[::97]:
        holding = [i for i in range(len(texts)) if unit in bags.ids[bags.offsets[i] : bags.offsets[i + 1]]]
        assert len(texts[row]) == min(len(texts[i]) for i in holding)


@pytest.mark.parametrize("norm", [0.3, 4.0])
def test_projected_vectors_have_the_norm_that_is_asked_for_on_average(tmp_path, config, fake_teacher, norm):
    c = config(("en", "de"), pca=PCAConfig(dim=2, norm=norm), refine=RefineConfig(max_steps=0))
    norms = np.linalg.norm(run_stages(c, fake_teacher, tmp_path).model.matrix, axis=1)
    assert (norms == 0).any()  # of units without a vector, which do not count
    assert norms[norms > 0].mean() == pytest.approx(norm, rel=1e-5)
    assert norms[norms > 0].std() > 0.05 * norm


@pytest.mark.slow
def test_pca_and_refinement_see_only_the_sentences_of_the_extraction(tmp_path, config, fake_teacher, caplog):
    caplog.set_level("INFO", "xswe")
    c = config(("en", "de", "ja"), contexts=ContextConfig(per_unit=1), pca=PCAConfig(dim=2, sample_from="contexts"))
    c = replace(c, refine=replace(c.refine, sample_from="contexts"), objective=Objective(distillation=1.0))
    made = run_stages(c, fake_teacher, tmp_path, distilled=fake_teacher)
    (stage,) = (tmp_path / "stages").glob("contexts-*")
    chosen = {code: set(Contexts.open(stage, code).sentences.tolist()) for code in c.languages}
    sizes = {code: len(rows) for code, rows in chosen.items()}
    assert made.report["pca"]["sentences"] == sum(sizes.values())
    size = len(_training(tmp_path, ("en", "de"))["en"])
    first = {"de": 0, "ja": size}
    some = {name: {row - a for row in chosen["en"] if 0 <= row - a < size} for name, a in first.items()}
    told = [r.getMessage() for r in caplog.records if "pairs with a context sentence" in r.getMessage()]
    assert len(told) == 2
    for line, name in zip(told, ("de", "ja"), strict=True):
        found, learnt, held = (int(number) for number in re.findall(r"(\d+) (?:pairs|of|for)", line.split(":")[1]))
        assert found == len(some[name] | chosen[name])
        assert held == min(1000, int(c.corpus.development * found))
        assert 0 < learnt <= found - held
    whole = run_stages(
        replace(c, refine=replace(c.refine, sample_from="corpus")), fake_teacher, tmp_path, distilled=fake_teacher
    )
    assert whole.model.matrix.tobytes() != made.model.matrix.tobytes()
    assert (
        run_stages(c, fake_teacher, tmp_path, distilled=fake_teacher).model.matrix.tobytes() == made.model.matrix.tobytes()
    )


def test_one_language_encodes_only_the_sentences_it_learns_from(tmp_path, config, fake_teacher):
    calls = []
    vectors = fake_teacher.vectors
    fake_teacher.vectors = lambda texts: calls.extend(texts) or vectors(texts)
    refine = RefineConfig(
        max_steps=20, batch_size=64, learning_rate=0.02, eval_steps=10, sample_from="contexts", per_unit=2
    )
    c = config(("en",), objective=ALONE, refine=refine, contexts=ContextConfig(per_unit=2), pca=PCAConfig(dim=2))
    c = replace(c, corpus=replace(c.corpus, development=0.05))
    made = run_stages(c, fake_teacher, tmp_path, distilled=fake_teacher)
    corpus = next((tmp_path / "stages").glob("corpus-*"))
    (whole,), (stage,) = parts(corpus, "train", (("en",),)), (tmp_path / "stages").glob("contexts-*")
    held = made.held_out["en"]
    chosen = {whole.source[int(row)] for row in Contexts.open(stage, "en").sentences}
    assert set(calls) <= chosen | set(held[0])
    assert len(set(calls) - set(held[0])) < len(whole)
    assert "development_loss" in made.report["refinement"]["history"][0]


@pytest.mark.parametrize(("drop", "dim"), [("auto", 4), (2, 2)])
def test_components_that_the_teacher_has_not_are_refused_before_any_work(tmp_path, config, fake_teacher, drop, dim):
    with pytest.raises(ConfigError, match=r"need vectors of 4 dimensions, the teacher's have 3: set dim="):
        run_stages(config(("en", "de"), pca=PCAConfig(drop=drop, dim=dim)), fake_teacher, tmp_path)
    assert not (tmp_path / "stages").exists()


def test_what_the_papers_rule_removes_is_said(tmp_path, config, fake_teacher, caplog):
    caplog.set_level("INFO", "xswe")
    c = config(("en", "de"), pca=PCAConfig(dim=2), refine=RefineConfig(max_steps=0))
    run_stages(c, fake_teacher, tmp_path)
    assert (
        "the first 0 of 3 components are removed (pca.drop=auto: a hundredth of them), the next 2 are kept" in caplog.text
    )


@pytest.mark.slow
def test_shards_that_a_task_of_an_array_is_at_stay_though_another_has_the_matrix(
    tmp_path, config, fake_teacher, monkeypatch
):
    c, how = config(("en", "de"), pca=PCAConfig(dim=2), refine=RefineConfig(max_steps=0)), ExecutionConfig("array", 0, 1)
    turns = []

    sums_by_shard = pipeline.sums_by_shard

    def sums(*given):
        made = sums_by_shard(*given)
        turns.append(given[-2])
        if len(turns) == 1:
            run_stages(c, fake_teacher, tmp_path, execution=how)
            assert list(turns[0].glob("*.safetensors"))
        return made

    monkeypatch.setattr(pipeline, "sums_by_shard", sums)
    run_stages(c, fake_teacher, tmp_path, execution=how)
    assert len(turns) == 2
    assert not turns[0].exists()


def test_tasks_of_an_array_share_out_words_and_what_is_imitated(tmp_path, config, fake_teacher, monkeypatch):
    monkeypatch.setattr("xswe.training.counting._TEXTS_PER_SHARD", 200)
    monkeypatch.setattr("xswe.training.teacher_vectors._SHARD", 100)
    fake_teacher.config = TeacherConfig()  # a name, by which others could load it
    c = config(("en",), pca=PCAConfig(dim=8), refine=RefineConfig(max_steps=3, batch_size=64), objective=ALONE)
    c = replace(c, units=UnitsConfig("words"))
    first, second = slices(2)
    with pytest.raises(Unfinished, match="count words"):
        run_stages(c, None, tmp_path / "array", distilled=fake_teacher, execution=first)
    with pytest.raises(Unfinished, match="encode with"):
        run_stages(c, None, tmp_path / "array", distilled=fake_teacher, execution=second)
    made = run_stages(c, None, tmp_path / "array", distilled=fake_teacher, execution=first)
    alone = run_stages(c, None, tmp_path / "alone", distilled=fake_teacher)
    assert made.model.matrix.tobytes() == alone.model.matrix.tobytes()
    assert made.model.units.tokens == alone.model.units.tokens


def test_vectors_are_resumed_shard_by_shard_and_the_shards_go(tmp_path, fake_teacher, monkeypatch):
    monkeypatch.setattr("xswe.training.teacher_vectors._SHARD", 10)
    monkeypatch.setattr("xswe.work.kept.BRIEF", 0.0)
    from xswe.io.ragged import Texts

    sides = [Texts.of([f"text {i}" for i in range(25)]), Texts.of(["text 3", "another"])]
    vectors, calls = fake_teacher.vectors, []

    def dies(texts):
        calls.append(len(texts))
        if len(calls) == 2:
            raise KeyboardInterrupt
        return vectors(texts)

    fake_teacher.vectors = dies
    stages = Stages(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        vectors_stage(stages, ["x"], fake_teacher, sides)
    first, second = vectors_stage(stages, ["x"], fake_teacher, sides)
    assert calls == [10, 10, 10, 6]
    expected = vectors(["text 3", "another"])
    np.testing.assert_allclose(second[np.arange(2)], expected, atol=1e-3)
    np.testing.assert_array_equal(first[np.array([3])], second[np.array([0])])
    assert not list(stages.folder.glob("*.shards"))


def test_a_direction_common_to_the_imitated_vectors_is_told_and_can_be_taken_off(caplog):
    vectors = np.random.default_rng(0).standard_normal((50, 8)).astype(np.float32)
    vectors -= vectors.mean(0)
    vectors /= 4 * np.linalg.norm(vectors, axis=1, keepdims=True)
    common = np.eye(8, dtype=np.float32)[0]
    rows = np.array([3, 0, 7])
    given = {"train": [RowVectors(vectors + common, np.arange(50))], "development": [RowVectors(vectors + common, rows)]}
    assert as_imitated({}, centred=True) == {}
    np.testing.assert_array_equal(as_imitated(given, centred=False)["train"][0][rows], (vectors + common)[rows])
    assert "try objective.distillation_centred=true" in caplog.text
    caplog.clear()
    taken = as_imitated(given, centred=True)
    own = vectors[rows] - vectors.mean(0)
    own /= np.linalg.norm(own, axis=1, keepdims=True)
    np.testing.assert_allclose(taken["train"][0][rows], own, atol=1e-4)
    np.testing.assert_array_equal(taken["train"][0][rows], taken["development"][0][np.arange(3)])
    as_imitated({"train": [RowVectors(vectors * 4, np.arange(50))]}, centred=False)
    assert not caplog.text


def test_centring_is_a_setting_of_the_run(tmp_path, config, fake_teacher):
    c = config(("en",), objective=Objective(ranking=0.0, distillation=1.0, distillation_on=("source",)))
    c = replace(c, pca=PCAConfig(dim=2), refine=RefineConfig(max_steps=3, batch_size=64))
    centred = replace(c, objective=replace(c.objective, distillation_centred=True))
    runs = [run_stages(one, fake_teacher, tmp_path, distilled=fake_teacher) for one in (c, centred)]
    plain, other = (run.report["refinement"]["history"][0]["development_loss"] for run in runs)
    assert abs(plain - other) > 1e-3


@pytest.mark.slow
def test_a_damaged_stage_is_named_with_its_cure(tmp_path, config, fake_teacher):
    c, teachers = config(("en", "ja")), {"distilled": fake_teacher}
    c = replace(
        c, objective=Objective(distillation=1.0), pca=PCAConfig(dim=2), refine=RefineConfig(max_steps=2, batch_size=64)
    )
    first = run_stages(c, fake_teacher, tmp_path, **teachers)
    stages = [path for path in (tmp_path / "stages").iterdir() if (path / "stage.json").is_file()]
    assert len(stages) == 9
    for stage in stages:
        for file in sorted(path for path in stage.rglob("*") if path.is_file()):
            whole = file.read_bytes()
            file.write_bytes(whole[: len(whole) // 2])
            with pytest.raises(ModelError, match=f"{file.name}: damaged .*remove {stage} and"):
                run_stages(c, fake_teacher, tmp_path, **teachers)
            file.write_bytes(whole)
        shutil.rmtree(stage)  # the cure
    assert run_stages(c, fake_teacher, tmp_path, **teachers).model.matrix.tobytes() == first.model.matrix.tobytes()


def test_damaged_training_texts_are_named_with_their_cure(tmp_path, config):
    c = config(("en", "ja"), refine=RefineConfig(max_steps=0))
    first = run_stages(c, None, tmp_path)
    (stage,), (text,) = (list((tmp_path / "stages").glob(name)) for name in ("corpus-*", "text.*"))
    for file in text.glob("*.npy"):
        whole = file.read_bytes()
        file.write_bytes(whole[: len(whole) // 2])
        with pytest.raises(ModelError, match=f"{file.name}: damaged .*remove {text} and {stage} and"):
            run_stages(c, None, tmp_path)
        file.write_bytes(whole)
    shutil.rmtree(text)
    shutil.rmtree(stage)
    assert run_stages(c, None, tmp_path).model.matrix.tobytes() == first.model.matrix.tobytes()


def test_a_damaged_checkpoint_is_named_with_its_cure(tmp_path):
    stages = Stages(tmp_path)
    path = stages.checkpoint("refine", "0")
    path.write_bytes(b"cut short")
    with pytest.raises(ModelError, match=f"damaged .*remove {path} and"):
        stages.checkpoint("refine", "0")


@pytest.mark.parametrize("lowercase", [pytest.param(False, marks=pytest.mark.slow), True])
def test_units_in_lower_case_have_their_contexts_in_lower_case(tmp_path, config, fake_teacher, lowercase):
    c = config(("en", "de"), units=UnitsConfig(kind="words", lowercase=lowercase), pca=PCAConfig(drop=0, dim=2))
    made = run_stages(replace(c, refine=RefineConfig(max_steps=0)), fake_teacher, tmp_path)
    cased = [text for text in fake_teacher.encoded if text != text.lower()]
    assert bool(cased) != lowercase
    assert made.report["extraction"]["units_with_contexts"] == len(made.model.units.tokens)


def test_separate_tables_keep_a_vector_for_each_language(tmp_path, config):
    c = config(("en", "de"), extract=ExtractConfig(merge="separate"))
    made = run_stages(c, None, tmp_path)
    english, german = (made.by_language["refinement"][code].matrix for code in ("en", "de"))
    shared = [made.model.units.tokens.index(token) for token in ("s", "er")]
    assert (english[shared] != german[shared]).any()
    merged = made.model.matrix[shared]
    low, high = np.minimum(english[shared], german[shared]), np.maximum(english[shared], german[shared])
    assert ((low - 1e-6 <= merged) & (merged <= high + 1e-6)).all()


def test_separate_extraction_fills_what_a_language_lacks(tmp_path, tokenizer, fake_teacher):
    from xswe.corpus.contexts import choose_contexts
    from xswe.io.ragged import Texts
    from xswe.text.subwords import SubwordUnits
    from xswe.training.extract import LanguageSample

    units = SubwordUnits(tokenizer, "teacher", ("en", "de"))
    samples = []
    for code, sentences in (("en", ["a house", "the house"]), ("de", ["das Haus"])):
        bags, texts = units.bags(sentences), Texts.of(sentences)
        contexts = choose_contexts(bags, len(units.tokens), ContextConfig())
        samples.append(LanguageSample(code, texts, contexts, bags.counts(len(units.tokens))))
    what = fake_teacher, units, samples, ExtractConfig(merge="separate", isolated=False)
    made = averaged(*what, sums_by_shard(*what, tmp_path / "shards"))
    english, german = made.matrix.reshape(2, len(units.tokens), 3)
    only_english = set(units.bags(["house"]).ids.tolist()) - set(units.bags(["das Haus"]).ids.tolist())
    assert only_english
    for unit in only_english:
        np.testing.assert_array_equal(english[unit], german[unit])
        assert english[unit].any()


@pytest.mark.parametrize(
    ("languages", "objective", "found"),
    [
        (("en",), Objective(), "no translations to rank"),
        (("en", "de"), Objective(distillation=1.0), "distilled=minilm"),
    ],
)
def test_what_cannot_be_trained_says_what_is_missing(tmp_path, config, languages, objective, found):
    with pytest.raises(ConfigError, match=found):
        run_stages(config(languages, objective=objective), None, tmp_path)


def test_a_log_holds_the_whole_history_at_the_end(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboard", None)  # not installed
    log, history = RunLog(tmp_path), [{"step": 0, "development_loss": 2.5}]
    log(history)
    history.append({"step": 10, "loss": 1.25, "development_loss": 1.5})
    log(history)  # too soon after the last to be written
    assert len((tmp_path / "history.csv").read_text().splitlines()) == 2
    log.close(history)
    expected = "step,development_loss,loss\n0,2.5,\n10,1.5,1.25\n"
    assert (tmp_path / "history.csv").read_text() == expected


def test_a_folder_named_tensorboard_is_not_tensorboard(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboard", types.ModuleType("tensorboard"))  # what importing one gives
    RunLog(tmp_path).close([{"step": 10, "loss": 1.25}])
    assert (tmp_path / "history.csv").read_text() == "step,loss\n10,1.25\n"


def test_tensorboard_gets_each_figure_once(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    log, history = RunLog(tmp_path), [{"step": 0, "development_loss": 2.5}]
    log(history)
    history.append({"step": 10, "loss": 1.25, "development_loss": 1.5})
    log.close(history)
    events = EventAccumulator(str(tmp_path / "tensorboard"))
    events.Reload()
    found = [(event.step, event.value) for event in events.Scalars("refine/development_loss")]
    assert found == [(0, 2.5), (10, 1.5)]


@pytest.mark.parametrize("size", [1, pytest.param(9, marks=pytest.mark.slow)])
def test_too_few_development_pairs_discard_no_training(tmp_path, config, caplog, size):
    c = config(("en", "ja"), corpus=CorpusConfig(paths=sample_paths(("en", "ja")), max_development=size))
    c = replace(c, spans=SpanTraining(max_steps=2, batch_size=16))
    made = run_stages(c, None, tmp_path)
    assert made.report["refinement"]["best_step"] == 30
    assert "development_loss" not in made.report["refinement"]["history"][0]
    assert "development_loss" not in made.report["spans"]["history"][0]
    assert f"en-ja: {size} development pairs are too few" in caplog.text


def test_span_training_follows_the_refinement(tmp_path, config, caplog):
    caplog.set_level("INFO", "xswe")
    spans = SpanTraining(max_steps=30, batch_size=64, learning_rate=0.01, eval_steps=10)
    c = config(("en", "ja"), corpus=CorpusConfig(paths=sample_paths(("en", "ja"))), spans=spans)
    made = run_stages(c, None, tmp_path)
    assert list(made.stages)[-2:] == ["refinement", "span training"]
    history = made.report["spans"]["history"]
    assert history[-1]["development_loss"] < history[0]["development_loss"]
    assert not np.array_equal(made.model.matrix, made.stages["refinement"].matrix)
    np.testing.assert_array_equal(made.model.matrix, made.stages["span training"].matrix)
    again = run_stages(c, None, tmp_path)
    assert again.model.matrix.tobytes() == made.model.matrix.tobytes()
    best = min(row["development_loss"] for row in history)
    told = f"loss of the development phrases {history[0]['development_loss']:.3f} before, {best:.3f} after"
    assert [told in record.getMessage() for record in caplog.records].count(True) == 2


@pytest.mark.slow
def test_runs_of_a_sweep_do_what_is_equal_once_and_side_by_side(tmp_path, config, fake_teacher):
    def run(name, shared, seed=0, rate=0.01):
        how = RefineConfig(max_steps=5, batch_size=64, eval_steps=5, learning_rate=rate)
        c = config(("en", "ja"), pca=PCAConfig(dim=3, drop=0), refine=how, seed=seed)
        return run_stages(c, fake_teacher, tmp_path / name, shared=tmp_path / shared).model.matrix

    settings = {"first": {}, "rate": {"rate": 0.02}, "seed": {"seed": 1}}
    with ThreadPoolExecutor(3) as pool:
        side_by_side = list(pool.map(lambda name: run(name, "together", **settings[name]), settings))
    for name, matrix in zip(settings, side_by_side, strict=True):
        assert np.array_equal(run(name, "apart", **settings[name]), matrix)
    done = [sorted(path.name for path in (tmp_path / place / "stages").glob("[!.]*")) for place in ("together", "apart")]
    assert done[0] == done[1]
    counts = Counter(name.rsplit("-", 1)[0] for name in done[0])
    assert (counts["extract"], counts["refine"]) == (2, 3)  # another seed draws other contexts
    with only_run(tmp_path / "first"), pytest.raises(ConfigError, match="another run is at work"):
        run("first", "together")


def naive_sentences(folder, languages, matrix, units):
    """The means of the rows of each distinct training sentence that has a unit."""
    out = []
    for texts in (_training(folder, languages)[code] for code in languages):
        bags, seen = units.bags(list(texts)), set()
        for a, b in pairwise(bags.offsets.tolist()):
            ids = tuple(bags.ids[a:b].tolist())
            if ids and ids not in seen:
                seen.add(ids)
                out.append(matrix[list(ids)].astype(float).mean(0))
    return np.array(out)


@pytest.mark.parametrize("level", ["sentence", "word"])
def test_components_are_those_of_distinct_sentences_or_of_units(tmp_path, config, fake_teacher, level):
    c = config(("en", "de"), pca=PCAConfig(level, drop=1, dim=2), refine=RefineConfig(max_steps=0))
    made = run_stages(c, fake_teacher, tmp_path)
    matrix, units = made.stages["extraction"].matrix, made.model.units
    vectors = matrix[matrix.any(1)] if level == "word" else naive_sentences(tmp_path, ("en", "de"), matrix, units)
    assert made.report["pca"]["sentences"] == len(vectors)
    for name, drop in (("PCA without ABTT", 0), ("PCA with ABTT", 1)):
        fitted = Components(drop, 2).fit(vectors)
        wanted = np.where(matrix.any(1)[:, None], fitted.transform(matrix), 0.0)
        np.testing.assert_allclose(made.stages[name].matrix, wanted, atol=1e-3)
    assert (made.report["pca"]["drop"], made.report["pca"]["dim"]) == (1, 2)
    extraction = made.report["extraction"]
    assert extraction["units_with_vector"] == int(matrix.any(1).sum())
    assert 0 < extraction["sentences_encoded"] < extraction["sentences_encoded_by_reference"]


def test_the_shape_is_that_of_the_tempered_table_and_its_sentences(tmp_path, config):
    c = config(("en", "de"), refine=RefineConfig(max_steps=0), shape=ShapeConfig(norms=0.5, centre=2.0))
    made = run_stages(c, None, tmp_path)
    tempered = temper(made.stages["refinement"].matrix, 0.5)
    mean = naive_sentences(tmp_path, ("en", "de"), tempered, made.model.units).mean(0)
    wanted = np.where(tempered.any(1)[:, None], tempered - 2 * mean, 0.0)
    np.testing.assert_allclose(made.model.matrix, wanted, atol=1e-5)
    assert list(made.stages) == ["refinement", "shape"]
    spread = made.stages["refinement"].matrix
    assert spread[spread.any(1)].std() == pytest.approx(0.02, rel=0.02)
