"""A judge decides on the pairs near the threshold, and on nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from xswe.errors import ConfigError
from xswe.io.ragged import Texts
from xswe.mining.cascade import judge_pairs, window
from xswe.mining.margin import Pairs
from xswe.mining.mined import mine


class Judge:
    """Knows which numbered lines belong together: ``a7`` and ``b7`` get the same vector, but for a little noise."""

    def __init__(self):
        self.seen = []

    def encode(self, texts):
        self.seen += list(texts)
        vectors = np.stack([np.random.default_rng(int(text[1:])).standard_normal(64) for text in texts])
        return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture
def drawn():
    """400 pairs, best first: ever fewer of them are right; and 300 wrong ones that score as wrong pairs do."""
    generator = np.random.default_rng(0)
    right = generator.random(400) < np.linspace(1, 0, 400)
    source = np.arange(400)
    target = np.where(right, source, (source + 7) % 400)
    scores = np.linspace(2, 1, 400)
    decoys = Pairs.of(np.linspace(1.6, 1.0, 300), source[:300], (source[:300] + 31) % 400)
    return Pairs.of(scores, source, target), decoys, right


def texts():
    return tuple(Texts.of([f"{side}{n}" for n in range(400)]) for side in "ab")


@pytest.mark.parametrize(
    ("threshold", "most", "found"), [(1.5, 100, (150, 250)), (9.0, 50, (0, 50)), (0.0, 60, (340, 400))]
)
def test_the_window_lies_round_the_threshold(drawn, threshold, most, found):
    assert window(drawn[0].scores, threshold, most) == slice(*found)


def test_only_pairs_in_the_window_are_judged_and_well(drawn):
    pairs, decoys, right = drawn
    judge = Judge()
    kept = judge_pairs(pairs, decoys, 1.5, texts(), judge, 100)
    assert len(judge.seen) == len(set(judge.seen)) <= 400
    assert kept[:150].all()
    assert not kept[250:].any()
    alone = pairs.scores[150:250] >= 1.5
    assert (kept == right)[150:250].mean() > 0.8 > 0.7 > (alone == right[150:250]).mean()


def test_too_few_pairs_are_not_judged(drawn):
    pairs, decoys, _ = drawn
    few = pairs.take(np.arange(5))
    assert judge_pairs(few, decoys, 1.5, texts(), Judge(), 100).all()


def test_mining_asks_the_judge_for_no_more_than_its_share(model, sample):
    asked = []

    class Counting:
        def encode(self, lines):
            asked.extend(lines)
            return model.encode(list(lines))

    sides = sample["en"][:600], sample["ja"][300:900]
    found = mine(model, *sides, rerank=Counting(), rerank_share=0.2, threads=1)
    assert 0 < len(asked) <= 0.2 * 1200
    assert ((found.source_rows - 300) == found.target_rows).mean() > 0.9
    assert "judged by the encoder" in found.threshold.sentence()


@pytest.mark.parametrize(
    ("settings", "found"),
    [({"threshold": 1.0}, "threshold=auto"), ({"rerank_share": 0.0}, "rerank_share=0.0"), ({"select": "kbest"}, "kbest")],
)
def test_what_a_judge_cannot_work_with_is_refused(model, settings, found):
    with pytest.raises(ConfigError, match=found):
        mine(model, ["a"], ["b"], rerank=Judge(), **settings)
