"""A reranker decides on the pairs near the threshold, and on nothing else."""

from __future__ import annotations

import numpy as np
import pytest

import xswe
from xswe.errors import ConfigError
from xswe.io.ragged import Texts
from xswe.mining import filter as filtering
from xswe.mining import verdicts
from xswe.mining.margin import Pairs
from xswe.mining.mined import mine
from xswe.mining.rerank import rerank_pairs, window


class Reranker:
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


def texts_of():
    return tuple(Texts.of([f"{side}{n}" for n in range(400)]).take for side in "ab")


@pytest.mark.parametrize(
    ("threshold", "most", "found"), [(1.5, 100, (150, 250)), (9.0, 50, (0, 50)), (0.0, 60, (340, 400))]
)
def test_the_window_lies_round_the_threshold(drawn, threshold, most, found):
    assert window(drawn[0].scores, threshold, most) == slice(*found)


def test_only_pairs_in_the_window_are_reranked_and_well(drawn):
    pairs, decoys, right = drawn
    reranker = Reranker()
    kept = rerank_pairs(pairs, decoys, 1.5, texts_of(), reranker, 100)
    assert len(reranker.seen) == len(set(reranker.seen)) <= 400
    assert kept[:150].all()
    assert not kept[250:].any()
    alone = pairs.scores[150:250] >= 1.5
    assert (kept == right)[150:250].mean() > 0.8 > 0.7 > (alone == right[150:250]).mean()


def test_decoys_that_score_above_the_window_are_neither_reranked_nor_counted(drawn):
    """Pairs that score as they do are kept as they are; of those in the window they say nothing."""
    pairs, decoys, _ = drawn
    higher = Pairs.of(np.linspace(1.9, 1.7, 90), np.arange(300, 390), (np.arange(300, 390) + 5) % 400)
    both = Pairs(*(np.concatenate([getattr(one, name) for one in (higher, decoys)]) for name in vars(decoys)))
    rerankers = Reranker(), Reranker()
    kept = [
        rerank_pairs(pairs, some, 1.5, texts_of(), reranker, 100, 0.8)
        for some, reranker in zip((decoys, both), rerankers, strict=True)
    ]
    assert np.array_equal(*kept)
    assert rerankers[0].seen == rerankers[1].seen


@pytest.mark.parametrize("weight", [None, 0.5, 3.0])
@pytest.mark.parametrize(("threshold", "most"), [(1.5, 100), (9.0, 60), (1.2, 80)])
def test_the_window_is_cut_where_the_expected_f1_is_highest(drawn, threshold, most, weight):
    pairs, decoys, _ = drawn
    encoder, near = Reranker(), window(pairs.scores, threshold, most)
    asked = pairs.take(np.arange(near.start, near.stop))
    wrong = decoys.take(np.arange(most))
    each = 1.0
    if weight is not None:
        inside = np.flatnonzero((decoys.scores >= asked.scores[-1]) & (decoys.scores <= asked.scores[0]))
        wrong = decoys.take(inside[np.linspace(0, len(inside) - 1, min(most, len(inside))).astype(int)])
        each = weight * len(inside) / max(1, len(wrong))

    def cosine(a, b):
        return float(encoder.encode([f"a{a}"])[0] @ encoder.encode([f"b{b}"])[0])

    own = np.concatenate([asked.scores, wrong.scores]).astype(np.float64)
    other = [cosine(a, b) for side in (asked, wrong) for a, b in zip(side.source, side.target, strict=True)]
    both = np.zeros(len(own))
    for scores in (own, np.array(other)):
        both += (scores - scores[: len(asked)].mean()) / scores[: len(asked)].std()
    ranks, false = both[: len(asked)], both[len(asked) :]
    rights = []
    for count, least in enumerate(np.sort(ranks)[::-1], 1):
        right = max(0.0, count - each * (int((false >= least).sum()) + 1))
        rights.append(min(max([right, *rights[-1:]]), count))
    f1 = [(near.start + right) / (2 * near.start + count + rights[-1]) for count, right in enumerate(rights, 1)]
    wanted = np.arange(len(pairs)) < near.start
    if near.start or rights[-1]:
        wanted[near] = ranks >= np.sort(ranks)[::-1][int(np.argmax(f1))]
    assert rerank_pairs(pairs, decoys, threshold, texts_of(), encoder, most, weight).tolist() == wanted.tolist()


def test_where_nothing_in_the_window_is_right_nothing_is_kept(drawn):
    pairs, _, _ = drawn
    decoys = Pairs.of(np.linspace(1.99, 1.87, 60), np.arange(60), (np.arange(60) + 31) % 400)
    assert not rerank_pairs(pairs, decoys, 9.0, texts_of(), Reranker(), 60, 1000.0).any()


def test_too_few_pairs_are_not_reranked(drawn):
    pairs, decoys, _ = drawn
    for count, asked in ((9, False), (10, True)):
        reranker = Reranker()
        kept = rerank_pairs(pairs.take(np.arange(195, 195 + count)), decoys, 1.5, texts_of(), reranker, 100)
        assert bool(reranker.seen) == asked
        assert asked or kept.tolist() == (pairs.scores[195 : 195 + count] >= 1.5).tolist()


def test_mining_asks_the_reranker_for_no_more_than_its_share(model, sample):
    asked = []

    class Counting:
        def encode(self, lines):
            asked.extend(lines)
            return model.encode(list(lines))

    sides = sample["en"][:600], sample["ja"][300:900]
    found = mine(model, *sides, rerank=Counting(), rerank_share=0.2, threads=1)
    assert 0 < len(asked) <= 0.2 * 1200
    assert ((found.source_rows - 300) == found.target_rows).mean() > 0.9
    assert "pairs reranked" in found.threshold.sentence()


@pytest.mark.parametrize(
    ("settings", "found"),
    [({"threshold": 1.0}, "threshold=auto"), ({"rerank_share": 0.0}, "rerank_share=0.0"), ({"select": "kbest"}, "kbest")],
)
def test_what_a_reranker_cannot_work_with_is_refused(model, settings, found):
    with pytest.raises(ConfigError, match=found):
        mine(model, ["a"], ["b"], rerank=Reranker(), **settings)


class Counting:
    """A model as a reranker: counts the texts that it is asked for."""

    def __init__(self, model):
        self.model, self.asked = model, 0

    def encode(self, texts):
        self.asked += len(texts)
        return self.model.encode(texts)


def test_a_filter_asks_a_reranker_near_its_threshold(sample, tmp_path):
    """Of 16 dimensions little is known; the whole model, which looks at a fifth of the texts, mends some of it."""
    whole = xswe.load("mini")
    weak = xswe.load("mini").truncate(16)
    right = np.random.default_rng(2).random(900) < 0.5
    german = [sample["de"][row] if right[row] else sample["de"][(row * 7 + 31) % 900] for row in range(900)]
    pairs = list(zip(sample["en"][:900], german, strict=True))
    reranker = Counting(whole)

    def f1(found):
        return 2 * (found.kept & right).sum() / (found.kept.sum() + right.sum())

    alone = xswe.filter(weak, pairs, threads=1)
    both = xswe.filter(weak, pairs, threads=1, rerank=reranker, rerank_share=0.2)
    assert 0 < reranker.asked <= 0.2 * 1800 + 4
    assert f1(both) > f1(alone) + 0.01
    (tmp_path / "a.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in pairs), "utf-8")
    written = xswe.filter(weak, tmp_path / "a.tsv", tmp_path / "b.tsv", threads=1, rerank=reranker, rerank_share=0.2)
    assert np.array_equal(written.kept, both.kept)
    assert len((tmp_path / "b.tsv").read_text("utf-8").splitlines()) == both.kept.sum()
    assert "pairs reranked" in str(both)
    for wrong, message in (({"threshold": 0.5}, "set threshold=auto"), ({"rerank_share": 0.0}, "rerank_share=0.0")):
        with pytest.raises(ConfigError, match=message):
            xswe.filter(weak, pairs, rerank=reranker, **wrong)


@pytest.mark.parametrize("code", ["de", pytest.param("ja", marks=pytest.mark.slow)])
def test_a_reranker_does_no_harm_where_nearly_all_is_right(sample, code):
    """Mismatches far above the threshold would count as wrong pairs near it: all that was reranked went."""
    whole, weak = xswe.load("mini"), xswe.load("mini").truncate(16)
    right = np.random.default_rng(2).random(900) < 0.95
    others = [sample[code][row] if right[row] else sample[code][(row * 7 + 31) % 900] for row in range(900)]
    pairs = list(zip(sample["en"][:900], others, strict=True))
    alone = xswe.filter(weak, pairs, threads=1)
    both = xswe.filter(weak, pairs, threads=1, rerank=whole, rerank_share=0.2)
    f1 = [2 * (found.kept & right).sum() / (found.kept.sum() + right.sum()) for found in (alone, both)]
    assert f1[1] > f1[0]


def test_every_mismatch_is_reranked_with_its_own_score(sample, monkeypatch):
    """Blocks of four pairs, of which some, one or none have two sides: a pair that is alone has no mismatch."""
    mini, draw = xswe.load("mini"), np.random.default_rng(0)
    pairs = [(a, b if draw.random() < 0.5 else "") for a, b in zip(sample["en"][:400], sample["de"][:400], strict=True)]
    taken, taken_as = [], filtering.rerank_bitext
    monkeypatch.setattr(verdicts, "BLOCK", 4)
    monkeypatch.setattr(filtering, "rerank_bitext", lambda *given: taken_as(*taken.append(given) or given))
    xswe.filter(mini, pairs, threads=1, rerank=Reranker(), rerank_share=1e-9)
    _, compared, decoys, *_ = taken[0]
    blocks = [[row for row in range(start, start + 4) if pairs[row][1]] for start in range(0, 400, 4)]
    assert {len(block) for block in blocks} >= {0, 1, 2, 3}
    assert compared.tolist() == [row for block in blocks for row in block]
    assert len(decoys) == len(compared)
    scored = dict(zip(compared.tolist(), decoys.tolist(), strict=True))
    for block in blocks:
        for source, other in zip(block, [*block[1:], *block[:1]], strict=True):
            cosine = float(mini.encode([pairs[source][0]])[0] @ mini.encode([pairs[other][1]])[0])
            assert np.isnan(scored[source]) if len(block) == 1 else scored[source] == pytest.approx(cosine, abs=1e-5)


def test_a_search_is_reranked_among_its_candidates(sample):
    whole, weak = xswe.load("mini"), xswe.load("mini").truncate(16)
    index = xswe.index(weak, sample["de"][:800])
    reranker = Counting(whole)
    queries = sample["en"][:60]

    def right(found):
        return sum(hits[0].row == row for row, hits in enumerate(found))

    alone, both = index.search(queries, 3, threads=1), index.search(queries, 3, threads=1, rerank=reranker)
    assert right(both) > right(alone) + 5
    assert reranker.asked <= 60 * 51
    assert all(len(hits) == 3 and hits[0].score >= hits[1].score >= hits[2].score for hits in both)
    assert index.search(queries[0], 1, rerank=reranker)[0].row == both[0][0].row
    assert not index.search("", 3, rerank=reranker).hits
    with pytest.raises(ConfigError, match="texts of the queries"):
        index.search(weak.encode(queries), rerank=reranker)
