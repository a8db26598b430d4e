"""The extraction by shards: the bytes of one process, whoever summed what, and training that goes on with them."""

from __future__ import annotations

import numpy as np
import pytest

from tests.clusters import slices
from tests.conftest import FakeTeacher
from tests.training.extracting import extract
from xswe.corpus.contexts import ContextConfig, choose_contexts
from xswe.errors import ConfigError, Unfinished
from xswe.io.ragged import Texts
from xswe.teacher.protocol import TeacherConfig
from xswe.teacher.transformer import load_teacher
from xswe.text.subwords import SubwordUnits
from xswe.training import extract as module
from xswe.training import teacher_vectors
from xswe.training.extract import ExtractConfig, LanguageSample
from xswe.training.stages import Stages
from xswe.training.teacher_vectors import vectors_stage
from xswe.work import run as work_run
from xswe.work.config import LOCAL, ExecutionConfig


@pytest.fixture(scope="module")
def given(sample):
    teacher = load_teacher(TeacherConfig(batch_tokens=512))
    units = SubwordUnits(teacher.tokenizer, "teacher", ("en", "de"))

    def of(code, lines):
        bags = units.bags(lines)
        contexts = choose_contexts(bags, len(units.tokens), ContextConfig(per_unit=20))
        chosen = Texts.of(lines[i] for i in contexts.sentences)
        return LanguageSample(code, chosen, contexts, bags.counts(len(units.tokens)))

    return teacher, units, [of("en", sample["en"][:60]), of("de", sample["de"][:40])], ExtractConfig(isolated=False)


def bytes_of(made):
    return made.matrix.tobytes(), made.contexts.tobytes()


def test_an_array_makes_the_same_bytes(given, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_MIN_SHARD_SENTENCES", 16)  # of these few sentences several shards
    teacher, _, samples, _ = given
    assert min(len(module.shards_of(teacher.batches(one.texts))) for one in samples) > 1
    run, told = work_run.run_shards, []

    def watched(*given):
        told.extend(given[4])
        run(*given)

    monkeypatch.setattr(work_run, "run_shards", watched)
    *earlier, last = slices(3)
    for how in earlier:
        with pytest.raises(Unfinished):
            extract(*given, tmp_path / "shards", how)
    made, here = extract(*given, tmp_path / "shards", last), extract(*given, tmp_path / "here")
    assert bytes_of(made) == bytes_of(here)
    assert not (tmp_path / "shards" / work_run.OPENED).exists()  # each task has units and sentences of its own
    en = len(module.shards_of(teacher.batches(samples[0].texts)))
    assert en > 2
    assert told[: en - 1] == sorted(told[: en - 1])  # a language's longest sentences come last, the last shard may be short
    assert told[0] < told[1]


@pytest.mark.slow
def test_actors_make_the_same_bytes(ray_cluster, given, sample, tmp_path, monkeypatch):
    made, here = extract(*given, tmp_path / "shards", ExecutionConfig("ray")), extract(*given, tmp_path / "here")
    assert bytes_of(made) == bytes_of(here)
    monkeypatch.setattr(teacher_vectors, "_SHARD", 8)
    sides = [Texts.of(sample["en"][:20])]
    there = vectors_stage(Stages(tmp_path / "there", execution=ExecutionConfig("ray")), ["x"], given[0], sides)
    here = vectors_stage(Stages(tmp_path / "here"), ["x"], given[0], sides)
    assert there[0].vectors.tobytes() == here[0].vectors.tobytes()


def test_an_array_makes_the_same_vectors_and_goes_on_after_a_loss(given, sample, tmp_path, monkeypatch):
    monkeypatch.setattr(teacher_vectors, "_SHARD", 8)
    teacher, sides = given[0], [Texts.of(sample["en"][:50]), Texts.of(sample["de"][:30] + sample["en"][:3])]

    def stage(place, *how):
        return vectors_stage(Stages(tmp_path / place, bool(how), *how), ["x"], teacher, sides)

    *earlier, last = slices(3)
    for how in earlier:
        with pytest.raises(Unfinished, match="encode with mini: this slice is done"):
            stage("array", how)
    lost, damaged = sorted((tmp_path / "array" / "stages").glob("vectors-*.shards/*.safetensors"))[:2]
    lost.unlink()
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"?")
    with pytest.raises(Unfinished, match="2 of all 10 shards are not, of the indices 1-2;"):
        stage("array", last)
    with pytest.raises(Unfinished):
        stage("array", earlier[0])
    made, alone = stage("array", earlier[1]), stage("alone")
    for one, other in zip(made, alone, strict=True):
        assert one.vectors.tobytes() == other.vectors.tobytes()
        np.testing.assert_array_equal(one.index, other.index)
    assert not list((tmp_path / "array" / "stages").glob("*.shards"))


def test_the_bytes_of_few_sentences_are_those_of_one_sum(given, tmp_path, monkeypatch):
    teacher, units, samples, config = given

    def whole():
        for number, one in enumerate(samples):
            sums = module._Harvest(np.arange(len(units.tokens), dtype=np.int32), units, teacher.dim)
            for states in teacher.states(one.texts, teacher.batches(one.texts)):
                sums.harvest(states, one.texts, one.contexts)
            yield {"language": np.full(1, number), **sums.arrays}

    means = module._Means(len(units.tokens), teacher.dim)
    expected = module.averaged(teacher, units, samples, config, module.Sums(means, whole()))
    assert bytes_of(extract(*given, tmp_path / "one")) == bytes_of(expected)
    monkeypatch.setattr(module, "_MIN_SHARD_SENTENCES", 16)  # of several shards the sums are rounded otherwise
    assert extract(*given, tmp_path / "several").matrix.tobytes() != expected.matrix.tobytes()


def test_every_batch_is_in_one_shard(monkeypatch):
    for sizes in ([], [5], [8192], [8000, 300, 9000, 1], [3] * 9000, [100_000] * 700):
        bounds = module.shards_of([range(size) for size in sizes])
        assert [n for first, last in bounds for n in range(first, last)] == list(range(len(sizes)))
        assert len(bounds) <= 256


def test_an_array_takes_a_teacher_that_only_python_has(given, tmp_path):
    _, units, samples, config = given
    made = extract(FakeTeacher(), units, samples, config, tmp_path / "array", ExecutionConfig("array", 0, 1))
    here = extract(FakeTeacher(), units, samples, config, tmp_path / "here", LOCAL)
    assert bytes_of(made) == bytes_of(here)


@pytest.mark.slow
def test_workers_of_a_cluster_are_given_no_such_teacher(ray_cluster, given, tmp_path):
    with pytest.raises(ConfigError, match="give its name or folder"):
        extract(FakeTeacher(), *given[1:], tmp_path / "shards", ExecutionConfig("ray"))
