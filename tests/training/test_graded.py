"""Graded pairs: the loss against automatic differentiation, what it teaches, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import xswe
from xswe.errors import ConfigError, InputError
from xswe.evaluation.metrics import spearman
from xswe.io.files import file_digest
from xswe.io.ragged import Bags
from xswe.training.graded import Graded, GradedConfig, GradedLoss, cosent, describe_graded, read_graded
from xswe.training.objective import Objective
from xswe.training.pairs import ParallelBags
from xswe.training.refine import RefineConfig, Trainer, refine
from xswe.training.shape import ShapeConfig, centred, temper


def unit(size, seed, width=8):
    rows = np.random.default_rng(seed).normal(size=(size, width)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.mark.parametrize("temperature", [0.05, 0.5])
def test_the_loss_and_its_gradient_equal_automatic_differentiation(temperature):
    torch = pytest.importorskip("torch")
    scores = np.array([0.0, 1.0, 1.0, 3.0, 5.0, 2.5])  # two are equal: neither need be the nearer
    left, right = (torch.tensor(unit(6, seed), dtype=torch.float64, requires_grad=True) for seed in (0, 1))
    cosines = (left * right).sum(1)
    wrong = [(cosines[j] - cosines[i]) / temperature for i in range(6) for j in range(6) if scores[i] > scores[j]]
    naive = torch.logsumexp(torch.stack([torch.zeros((), dtype=torch.float64), *wrong]), 0)
    naive.backward()
    loss, d_left, d_right = cosent(unit(6, 0), unit(6, 1), scores, temperature)
    assert loss == pytest.approx(naive.item(), rel=1e-6)
    np.testing.assert_allclose(d_left, left.grad, atol=1e-5)
    np.testing.assert_allclose(d_right, right.grad, atol=1e-5)


def pairs(seed=0, size=200, vocabulary=40):
    """Pairs of bags graded by how many of the first ten words they share; i and i + 20 are one word in two languages."""
    generator = np.random.default_rng(seed)
    left = [generator.permutation(20)[:4].tolist() for _ in range(size)]
    kept = generator.integers(0, 5, size)
    right = [one[:k] + generator.permutation(20)[: 4 - k].tolist() for one, k in zip(left, kept, strict=True)]
    shared = [len({i for i in set(a) & set(b) if i < 10}) for a, b in zip(left, right, strict=True)]
    return Graded(Bags.of(left), Bags.of([[i + 20 for i in one] for one in right]), np.array(shared, float))


def bitext(size=100):
    source = np.random.default_rng(5).integers(0, 20, (size, 3)).tolist()
    return ParallelBags(Bags.of(source), Bags.of([[i + 20 for i in one] for one in source]))


START = np.random.default_rng(0).normal(0, 0.1, (40, 16)).astype(np.float32)
CONFIG = RefineConfig(max_steps=60, batch_size=32, learning_rate=0.01, eval_steps=20, patience=0)


def test_a_step_moves_the_rows_of_both_losses_at_once():
    torch = pytest.importorskip("torch")
    graded = GradedLoss([pairs()], GradedConfig(weight=0.5, batch_size=16))
    trainer, rows = Trainer(START.copy(), CONFIG, Objective(margin=0.0), graded), np.arange(32)
    drawn, scores = graded.draw(0)
    table = torch.tensor(START, requires_grad=True)

    def vectors(bags):
        summed = torch.nn.functional.embedding_bag(
            torch.tensor(bags.ids), table, torch.tensor(bags.offsets[:-1]), mode="sum"
        )
        return torch.nn.functional.normalize(summed)

    same = [torch.tensor(numbers) for numbers in bitext().same(rows)]
    masked = ((same[0][:, None] == same[0]) | (same[1][:, None] == same[1])) & ~torch.eye(32, dtype=torch.bool)
    logits = (vectors(bitext().source.take(rows)) @ vectors(bitext().target.take(rows)).T / 0.05).masked_fill(masked, -1e9)
    truth = torch.arange(32)
    naive = torch.nn.functional.cross_entropy(logits, truth) + torch.nn.functional.cross_entropy(logits.T, truth)
    both = vectors(drawn)
    cosines = (both[:16] * both[16:]).sum(1)
    higher = torch.tensor(scores[:, None] > scores[None, :])
    wrong = ((cosines[None, :] - cosines[:, None]) / 0.05)[higher]
    naive = naive + 0.5 * torch.logsumexp(torch.cat([torch.zeros(1), wrong]), 0)
    naive.backward()
    optimiser = torch.optim.Adam([table], lr=0.01)
    assert trainer.step(bitext(), rows, 0.01) == pytest.approx(naive.item(), rel=1e-4)
    optimiser.step()
    moved = table.grad.abs().sum(1) > 1e-3
    np.testing.assert_allclose(trainer.matrix[moved], table.detach()[moved], atol=1e-3)


def correlation(matrix, graded):
    trainer = Trainer(matrix.copy(), CONFIG, Objective())
    (left, _), (right, _) = trainer.vectors(graded.left), trainer.vectors(graded.right)
    return spearman((left * right).sum(1), graded.scores)


def test_graded_pairs_teach_similarity_and_a_killed_run_goes_on_to_the_same_bytes(tmp_path, monkeypatch):
    graded = GradedLoss([pairs(), pairs(seed=3)], GradedConfig(weight=1.0, batch_size=64))
    arguments = (START, [bitext()], [], CONFIG, Objective(), graded)
    plain, made = refine(*arguments[:5]), refine(*arguments)
    unseen = pairs(seed=9)
    assert correlation(made.matrix, unseen) > correlation(plain.matrix, unseen) + 0.05
    step = Trainer.step

    def dies(self, *rest):
        if self.optimiser.steps == 23:
            raise KeyboardInterrupt
        return step(self, *rest)

    monkeypatch.setattr(Trainer, "step", dies)
    monkeypatch.setattr("xswe.progress._CHECKPOINT_SECONDS", 0.0)
    with pytest.raises(KeyboardInterrupt):
        refine(*arguments, checkpoint=tmp_path / "c")
    monkeypatch.undo()
    assert refine(*arguments, checkpoint=tmp_path / "c").matrix.tobytes() == made.matrix.tobytes()


class Words:
    def bags(self, texts):
        return Bags.of([[len(word) for word in text.split()] for text in texts])


def test_files_are_read_and_what_teaches_nothing_is_refused(tmp_path):
    good, flat, bad = (tmp_path / name for name in ("good.tsv", "flat.tsv", "bad.tsv"))
    good.write_text("5\ta cat\tein Hund\n0.5\ta\tb c\n", encoding="utf-8")
    flat.write_text("1\ta\tb\n1\tc\td\n", encoding="utf-8")
    bad.write_text("1\ta\tb\nhigh\tc\td\n", encoding="utf-8")
    (read,) = read_graded([str(good)], Words())
    assert (list(read.scores), list(read.right.lengths)) == ([5.0, 0.5], [2, 2])
    with pytest.raises(
        ConfigError, match=r"graded\.paths: .*flat\.tsv: all 2 pairs have the score 1: give different grades"
    ):
        read_graded([str(flat)], Words())
    with pytest.raises(InputError, match=r"bad\.tsv:2"):
        read_graded([str(bad)], Words())


def test_norms_are_tempered_and_the_mean_is_taken_off_every_known_unit():
    matrix = np.array([[3.0, 4.0], [0.0, 1.0], [0.0, 0.0]], np.float32)
    np.testing.assert_allclose(temper(matrix, 1.0), matrix, rtol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(temper(matrix, 0.0), axis=1), [3.0, 3.0, 0.0], rtol=1e-6)
    sentences = [np.array([[1.0, 1.0]], np.float32), np.array([[0.0, 2.0], [2.0, 0.0]], np.float32)]
    np.testing.assert_allclose(centred(matrix, sentences, 2.0), [[1.0, 2.0], [-2.0, -1.0], [0.0, 0.0]])
    assert not temper(np.zeros((2, 3), np.float32), 0.5).any()
    for wrong in ({"norms": -1.0}, {"centre": float("nan")}):
        with pytest.raises(ConfigError, match="shape"):
            ShapeConfig(**wrong)
    assert not ShapeConfig().on
    assert ShapeConfig(centre=1.0).on


@pytest.mark.slow
def test_a_run_records_the_graded_pairs_and_shapes_what_it_made(tmp_path):
    scores = tmp_path / "scores.tsv"
    scores.write_text("5\tThe cat sleeps.\tDie Katze schläft.\n1\tThe cat sleeps.\tDer Zug hat Verspätung.\n", "utf-8")
    few = {"refine.max_steps": 4, "refine.batch_size": 32, "pca.dim": 16, "threads": 1, "objective.prefixes": ()}
    few["corpus.limit"] = 400
    run = tmp_path / "run"
    plain = xswe.train("sample", ["en", "de"], recipe="static", output=run, **few)
    more = {"graded.paths": (str(scores),), "graded.batch_size": 2, "shape": {"norms": 0.5, "centre": 2.0}}
    made = xswe.train("sample", ["en", "de"], recipe="static", output=run, **few, **more)
    assert list(made.steps) == ["refinement", "shape"]
    assert not np.array_equal(made.steps["refinement"].matrix, plain.model.matrix)
    assert made.model.matrix.any(axis=1).tolist() == plain.model.matrix.any(axis=1).tolist()
    card = (run / "model" / "README.md").read_text(encoding="utf-8")
    assert "scores.tsv, pairs graded by people" in card
    assert "license: other" in card  # nobody has said what the file allows
    with pytest.raises(ConfigError, match=r"graded\.paths needs one table and a refinement"):
        xswe.train("sample", ["en", "de"], recipe="static", **few, **more, **{"extract.merge": "separate"})


def test_a_step_draws_files_by_their_sizes_and_pairs_of_one_file():
    sizes = (30, 10)
    files = [pairs(seed, size) for seed, size in enumerate(sizes)]
    for file, first in zip(files, (0.0, 100.0), strict=True):
        file.scores[:] = first + np.arange(len(file))
    loss = GradedLoss(files, GradedConfig(batch_size=20), seed=1)
    drawn = [loss.draw(step) for step in range(400)]
    of_first = [scores[0] < 100 for _, scores in drawn]
    assert np.mean(of_first) == pytest.approx(0.75, abs=0.06)
    for (bags, scores), first in zip(drawn, of_first, strict=True):
        file, rows = files[not first], (scores % 100).astype(int)
        assert len(rows) == (20 if first else 10)
        assert (np.diff(rows) > 0).all()
        both = [file.left.take(rows), file.right.take(rows)]
        assert bags.ids.tolist() == [unit for side in both for unit in side.ids]
        assert bags.lengths.tolist() == [size for side in both for size in side.lengths]
    assert {row for (_, scores), first in zip(drawn, of_first, strict=True) if first for row in scores} == set(range(30))
    other = GradedLoss(files, GradedConfig(batch_size=20), seed=2)
    assert [s.tolist() for _, s in drawn[:5]] == [loss.draw(k)[1].tolist() for k in range(5)]
    assert [s.tolist() for _, s in drawn[:5]] != [other.draw(k)[1].tolist() for k in range(5)]


def test_the_loss_of_a_step_is_weighted_and_so_are_its_gradients():
    both, scores = np.concatenate([unit(5, 3), unit(5, 4)]), np.array([1.0, 3.0, 2.0, 2.0, 0.0])
    loss, left, right = cosent(both[:5], both[5:], scores, 0.1)
    value, gradient = GradedLoss([], GradedConfig(weight=0.25, temperature=0.1))(both, scores)
    assert value == pytest.approx(0.25 * loss)
    np.testing.assert_allclose(gradient, 0.25 * np.concatenate([left, right]), rtol=1e-6)
    assert cosent(both[:5], both[5:], np.ones(5), 0.1)[0] == 0.0  # equal grades say nothing


def test_the_loss_of_very_wrong_cosines_is_finite():
    one = np.eye(2, dtype=np.float32)
    loss, left, right = cosent(one, np.stack([-one[0], one[1]]), np.array([1.0, 0.0]), 1e-3)
    assert loss == pytest.approx(2000.0)
    np.testing.assert_allclose(left, [[1000.0, 0.0], [0.0, 1000.0]])
    np.testing.assert_allclose(right, [[-1000.0, 0.0], [0.0, 1000.0]])


def test_graded_files_and_settings_are_in_the_name_of_a_stage(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("1\ta\tb\n2\tc\td\n", encoding="utf-8")
    made = describe_graded(GradedConfig((str(path),), weight=0.5, temperature=0.25, batch_size=3))
    assert made == [{"graded": [file_digest(path)], "how": [0.5, 0.25, 3]}]


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0, 2.0])
def test_tempered_norms_are_powers_with_the_same_mean(power):
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(40, 6)).astype(np.float32) * rng.uniform(0.1, 5.0, (40, 1)).astype(np.float32)
    matrix[::7] = 0.0
    before, made = np.linalg.norm(matrix, axis=1), temper(matrix, power)
    known, after = before > 0, np.linalg.norm(made, axis=1)
    assert made.dtype == np.float32
    assert not made[~known].any()
    assert after[known].mean() == pytest.approx(before[known].mean(), rel=1e-5)
    np.testing.assert_allclose(
        after[known] / after[known].sum(), before[known] ** power / (before[known] ** power).sum(), rtol=1e-5
    )
    np.testing.assert_allclose(made[known] * before[known, None], matrix[known] * after[known, None], rtol=1e-5, atol=1e-6)


def test_the_mean_is_that_of_all_blocks_and_none_is_taken_off_without_sentences():
    matrix, rng = unit(9, 0), np.random.default_rng(1)
    sentences = rng.normal(3.0, size=(25, 8)).astype(np.float32)
    made = centred(matrix, [sentences[:7], sentences[7:7], sentences[7:]], 1.5)
    np.testing.assert_allclose(made, matrix - 1.5 * sentences.mean(0), rtol=1e-5, atol=1e-6)
    assert centred(matrix, [], 1.5).tobytes() == matrix.tobytes()
