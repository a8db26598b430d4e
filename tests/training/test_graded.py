"""Graded pairs: the loss against automatic differentiation, what it teaches, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import xswe
from xswe.errors import ConfigError, InputError
from xswe.evaluation.metrics import spearman
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
    with pytest.raises(ConfigError, match="graded needs weight > 0"):
        GradedConfig(weight=0.0)
    assert describe_graded(GradedConfig()) == []
    told = [
        describe_graded(GradedConfig(paths=(str(path),), weight=w)) for path, w in ((good, 1.0), (flat, 1.0), (good, 2.0))
    ]
    assert told[0] != told[1]
    assert told[0] != told[2]


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
