"""Span-max training: the loss against torch's automatic differentiation, the triplets, and that it learns."""

from __future__ import annotations

import numpy as np
import pytest

from tests.conftest import Later, eval_script
from xswe.errors import ConfigError
from xswe.training import refine as refine_module
from xswe.training.losses import best_spans, span_max_loss
from xswe.training.refine import SpanTrainer, train_spans
from xswe.training.triplets import ParallelWords, SpanTraining, Triplets, WordTriples, runs_of

torch = Later("torch")
spans = eval_script("parity.spans")
cut_of, random_texts, naive_best = spans.cut_of, spans.random_texts, spans.best


@pytest.mark.parametrize("similarity", ["normalised", "cosine"])
@pytest.mark.parametrize("scale", [30.0, 3.0, 300.0])
def test_loss_and_gradient_of_the_table_are_those_of_automatic_differentiation(scale, similarity):
    loss, gradient, expected, slow = spans.both(12, 8, scale, similarity)
    assert loss == pytest.approx(expected, rel=1e-5)
    np.testing.assert_allclose(gradient, slow, atol=2e-5 * scale)
    assert np.abs(gradient).max() > 1e-4


def test_the_loss_neither_overflows_nor_vanishes():
    one = np.eye(2, dtype=np.float32)
    loss, *gradients = span_max_loss(one, -one, one, 1e4)
    assert loss == pytest.approx(1e4)
    assert all(np.isfinite(g).all() for g in gradients)
    assert span_max_loss(one, -one, one, 1e4, "cosine")[0] == pytest.approx(2e4)
    assert span_max_loss(one, one, -one, 1e4)[0] == 0.0


@pytest.mark.parametrize(("low", "high", "threads"), [(1, 20, 1), (2, 4, 2), (3, 3, 1)])
def test_best_spans_are_the_best_of_all(low, high, threads):
    rng = np.random.default_rng(1)
    matrix = rng.normal(size=(50, 8)).astype(np.float32)
    matrix[3] = 0  # no direction at all: the cosine is 0
    texts = [*random_texts(rng, 20, 12), [], [[3]]]
    phrases = rng.normal(size=(22, 8)).astype(np.float32)
    phrases /= np.linalg.norm(phrases, axis=1, keepdims=True)
    cut = cut_of(texts)
    found, scores = best_spans(matrix, cut.ids, cut.words, cut.texts, phrases, low, high, threads)
    for i, text in enumerate(texts):
        if len(text) < low:
            assert scores[i] == 0
            assert found[i, 0] == found[i, 1] == cut.texts[i]
            continue
        best = naive_best(torch.tensor(matrix), text, torch.tensor(phrases[i]), low, high)
        assert scores[i] == pytest.approx(float(best), abs=1e-5)
        a, b = found[i] - cut.texts[i]
        assert low <= b - a <= high
        span = sum(matrix[word].sum(0) for word in text[a:b])
        assert span @ phrases[i] / max(np.linalg.norm(span), 1e-12) == pytest.approx(float(best), abs=1e-5)


def test_what_says_the_phrase_is_not_taken_for_a_passage_that_does_not():
    matrix = np.eye(6, dtype=np.float32)
    phrases, true, false = [[[0]], [[0], [1]], [[0]], [[2]]], [[[0]], [[0]], [[0], [3]], [[2], [0]]], [[[4]]] * 4
    made = SpanTrainer(matrix, SpanTraining(hard=3)).harden(Triplets(cut_of(phrases).bags, cut_of(true), cut_of(false)))
    held = [made.false.text(i).ids.tolist() for i in range(4)]
    assert held[0] == [2, 0]  # not [0], its own and that of the second, nor [0, 3] of the same phrase
    assert held[1] in ([0, 3], [2, 0])  # not [0], which is its own


def triples(n=40):
    """Triple i asks for row i, which the passage that says it has as row i + 100, and the other has not."""
    return WordTriples(
        cut_of([[[i]] for i in range(n)]),
        cut_of([[[300], [100 + i], [301]] for i in range(n)]),
        cut_of([[[300], [100 + (i + 7) % n], [301]] for i in range(n)]),
    )


def test_triples_are_learnt_from_beside_a_bitext_and_alone():
    start = np.random.default_rng(0).normal(size=(1300, 16)).astype(np.float32)
    given, config = (
        triples(),
        SpanTraining(max_steps=120, batch_size=20, learning_rate=0.2, max_size=4, eval_steps=20, hard=0),
    )
    matrix, history = train_spans(start, [given], [given], config)
    assert history[-1]["development_loss"] < 0.4 * history[0]["development_loss"]
    assert (matrix[:40] != start[:40]).any(1).mean() > 0.4
    assert (matrix[1000:] == start[1000:]).all()
    both, _ = train_spans(start, [parallel(), given], [parallel(), given], config)
    assert (both[:40] != start[:40]).any()
    assert (both[1000:1100] != start[1000:1100]).any()


def test_two_pairs_are_enough_to_tell_one_from_the_other():
    assert [parallel(n).usable(1, 10).tolist() for n in (1, 2)] == [[], [0, 1]]


def parallel(n=60):
    """Sentence i of the source is rows 2 i and 2 i + 1; of the target the same plus 1000."""
    source = [[[2 * i], [2 * i + 1]] for i in range(n)]
    target = [[[1000 + 2 * i], [1001 + 2 * i], [1000 + 2 * i]] for i in range(n)]
    return ParallelWords(cut_of(source), cut_of(target))


def test_the_nearest_of_some_false_passages_is_taken():
    rng = np.random.default_rng(3)
    matrix = rng.normal(size=(50, 8)).astype(np.float32)
    phrases, true, false = (random_texts(rng, 12, longest) for longest in (4, 6, 6))
    triplets = Triplets(cut_of(phrases).bags, cut_of(true), cut_of(false))
    trainer = SpanTrainer(matrix, SpanTraining(hard=4))
    made = trainer.harden(triplets)
    for i in range(12):
        vector = torch.tensor(matrix[triplets.phrases.ids[slice(*triplets.phrases.offsets[i : i + 2])]].sum(0))
        tried = [false[i], *(true[(i + shift) % 12] for shift in range(1, 5))]
        best = max(tried, key=lambda text: float(naive_best(torch.tensor(matrix), text, vector, 1, 20)))
        assert made.false.text(i).ids.tolist() == [row for word in best for row in word]
    np.testing.assert_array_equal(made.true.ids, triplets.true.ids)
    plain = SpanTrainer(matrix, SpanTraining(hard=0)).harden(triplets)
    np.testing.assert_array_equal(plain.false.ids, triplets.false.ids)


def test_training_finds_hidden_translations_better_and_is_repeatable():
    rng = np.random.default_rng(0)
    start = rng.normal(size=(1300, 16)).astype(np.float32)
    bitext = parallel()
    config = SpanTraining(max_steps=120, batch_size=30, learning_rate=0.2, max_size=4, eval_steps=20, neighbours=0.0)
    matrix, history = train_spans(start, [bitext], [bitext], config)
    assert history[-1]["development_loss"] < 0.3 * history[0]["development_loss"]
    again, _ = train_spans(start, [bitext], [bitext], config)
    assert matrix.tobytes() == again.tobytes()
    with pytest.raises(ConfigError, match="max_size"):
        train_spans(start, [bitext], [], SpanTraining(max_size=1))


def test_killed_span_training_goes_on_to_the_same_bytes(tmp_path, monkeypatch):
    monkeypatch.setattr("xswe.progress._CHECKPOINT_SECONDS", 0.0)
    start = np.random.default_rng(0).normal(size=(1300, 16)).astype(np.float32)
    config = SpanTraining(max_steps=40, batch_size=20, learning_rate=0.2, max_size=4, eval_steps=10)
    undisturbed, history = train_spans(start, [parallel()], [parallel()], config)

    class Killed(Exception):
        pass

    def kill(seen):
        if seen[-1]["step"] == 20:
            raise Killed

    where = {"checkpoint": tmp_path / "c"}
    with pytest.raises(Killed):
        train_spans(start, [parallel()], [parallel()], config, **where, log=kill)
    assert (tmp_path / "c").exists()
    resumed, seen = train_spans(start, [parallel()], [parallel()], config, **where)
    assert resumed.tobytes() == undisturbed.tobytes()
    assert seen == history


def test_runs_are_whole_and_come_from_everywhere():
    rows = runs_of(10_000, 1000, seed=0)
    assert len(rows) == len(set(rows.tolist())) <= 1000
    assert (np.diff(rows) > 0).all()
    assert (np.diff(rows) == 1).mean() > 0.95
    assert rows[0] < 3000
    assert rows[-1] > 7000
    assert rows.tolist() != runs_of(10_000, 1000, seed=1).tolist()


STEPS = "spans needs max_steps >= 0, batch_size >= 2, around >= 1 and 0 <= neighbours <= 1"
SIZES = "spans needs 1 <= min_size <= max_size and eval_steps >= 1"
RATE = "spans needs learning_rate > 0, scale > 0 and hard >= 0"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        *[(wrong, STEPS) for wrong in ({"max_steps": -1}, {"batch_size": 1}, {"around": 0}, {"neighbours": 1.1})],
        *[(wrong, SIZES) for wrong in ({"min_size": 0}, {"min_size": 11}, {"eval_steps": 0})],
        *[(wrong, RATE) for wrong in ({"learning_rate": 0.0}, {"scale": 0.0}, {"hard": -1})],
        ({"pairs": 1}, "spans.pairs=1: give at least 2, or 0 with spans.triples=[...]"),
        ({"pairs": -1, "triples": ("a",)}, "spans.pairs=-1: give at least 2, or 0 with spans.triples=[...]"),
    ],
)
def test_settings_that_cannot_work(wrong, said):
    with pytest.raises(ConfigError) as found:
        SpanTraining(**wrong)
    assert str(found.value) == said
    for fine in ({"pairs": 2}, {"pairs": 0, "triples": ("a",)}, {"max_steps": 0, "batch_size": 2, "around": 1, "hard": 0}):
        SpanTraining(**fine)


def test_texts_without_a_direction_have_no_gradient():
    matrix = np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32)
    matrix[:2] = 0.0
    triplets = Triplets(cut_of([[[0]], [[2]]]).bags, cut_of([[[1]], [[3]]]), cut_of([[[4]], [[5]]]))
    trainer = SpanTrainer(matrix, SpanTraining())
    before = matrix.copy()
    assert np.isfinite(trainer.step(triplets, 0.1))
    assert np.isfinite(matrix).all()
    assert (matrix != before).any(1).tolist() == [False, False, True, True, False, True]  # 4 is beside the phrase 0


@pytest.mark.parametrize("scale", [0.01, 1.0, 100.0])
def test_the_loss_does_not_depend_on_the_lengths_of_vectors(scale):
    matrix = np.random.default_rng(0).normal(size=(400, 8)).astype(np.float32)
    given = triples(11).triplets(np.arange(11), SpanTraining(), [])
    loss = SpanTrainer(matrix, SpanTraining()).loss(given)
    assert SpanTrainer(np.float32(scale) * matrix, SpanTraining()).loss(given) == pytest.approx(loss, rel=1e-4)


def test_the_rate_falls_to_zero_over_the_second_half(monkeypatch):
    rates = []
    monkeypatch.setattr(SpanTrainer, "step", lambda self, _, rate: rates.append(rate) or _counted(self))

    def _counted(trainer):
        trainer.optimiser.steps += 1
        return 1.0

    config = SpanTraining(max_steps=8, batch_size=20, learning_rate=0.5, eval_steps=3)
    start = np.random.default_rng(0).normal(size=(1300, 4)).astype(np.float32)
    _, history = train_spans(start, [parallel()], [], config)
    assert rates == [0.5] * 5 + [0.375, 0.25, 0.125]
    assert history == [{"step": step, "loss": 1.0} for step in (3, 6, 8)]


def test_the_loss_on_development_triplets_is_their_mean():
    matrix = np.random.default_rng(0).normal(size=(400, 8)).astype(np.float32)
    trainer, whole = SpanTrainer(matrix, SpanTraining(hard=0)), triples(11)
    made = [whole.triplets(rows, trainer.config, []) for rows in (np.arange(9), np.arange(9, 11), np.arange(11))]
    assert refine_module._mean_loss(trainer, made[:2]) == pytest.approx(trainer.loss(made[2]))
    with pytest.raises(ConfigError) as found:
        train_spans(matrix, [parallel(1)], [], trainer.config)
    assert str(found.value) == "no training pair has sides that a span can cover: raise max_size or give a larger corpus"
