"""What runs of mining, scoring and filtering say of themselves, word by word."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from xswe.errors import ConfigError
from xswe.io.ragged import Texts
from xswe.mining.filter import Filtered, Found, _decide, filter_bitext
from xswe.mining.gold import GoldCheck
from xswe.mining.margin import Pairs, score_candidates, select
from xswe.mining.mined import mine
from xswe.mining.pipeline import MineConfig, Mined, MineReport, SideReport, _calibrated, _Selector, report_of
from xswe.mining.score import Distribution, ScoredBitext, ScoreFileConfig, _rows_of, _score_rows, score_pairs
from xswe.mining.threshold import PrecisionEstimate, Threshold, estimate_from_decoys
from xswe.mining.verdicts import LOW, BitextFilter
from xswe.search.lists import Neighbours, SearchConfig
from xswe.search.neighbours import find_neighbours


def test_the_summary_of_mining():
    source = SideReport(1200, 1000, {"blank": 150, "duplicate": 50}, 0.5, {"images": 3})
    seconds = {"read and encode": 1.5, "neighbours": 0.25}
    found = MineReport(
        source, SideReport(1300, 0, {}), {"numbers": 1234}, 900, 800, [0.1 * k for k in range(7)], "why", seconds
    )
    assert str(found) == (
        "source: 1,200 lines read, 1,000 kept; dropped: 150 blank, 50 duplicate; left out: 3 images; "
        "near-duplicates of earlier lines: 50 %\n"
        "target: 1,300 lines read, 0 kept; dropped: none\n"
        "candidate pairs ruled out: 1,234 numbers\n"
        "why\n"
        "pairs: 900 selected, 800 kept\n"
        "scores: lowest 0.0000, 5 % 0.1000, 25 % 0.2000, median 0.3000, 75 % 0.4000, 95 % 0.5000, highest 0.6000\n"
        "1.8 s, 1,429 lines/s (read and encode 1.5 s, neighbours 0.2 s)"
    )
    alone = replace(found, target=None, ruled_out={}, quantiles=[])
    assert str(alone) == (
        "no target=: paraphrases and near-duplicates among the lines of source=, no translations\n"
        "lines: 1,200 lines read, 1,000 kept; dropped: 150 blank, 50 duplicate; left out: 3 images; "
        "near-duplicates of earlier lines: 50 %\n"
        "why\n"
        "pairs: 900 selected, 800 kept\n"
        "1.8 s, 686 lines/s (read and encode 1.5 s, neighbours 0.2 s)"
    )


class Lines:
    """A side of which only the numbers are known."""

    dropped, near, left_out, read = {}, 0.0, {}, 3

    def __init__(self, kept):
        self.kept = kept

    def __len__(self):
        return self.kept


def test_why_a_run_has_no_pairs():
    nothing = Pairs.of(np.zeros(0), np.zeros(0), np.zeros(0))
    mined = Mined(nothing, Threshold(-math.inf, "mismatched neighbours"), nothing)
    none, some = Lines(0), Lines(2)
    for sides, told in (
        ((none, some), "threshold: none, no lines of the source are left"),
        ((some, none), "threshold: none, no lines of the target are left"),
        ((none, Lines(0)), "threshold: none, no lines of the source and the target are left"),
        ((none, none), "threshold: none, no lines are left"),
        ((some, Lines(1)), "threshold: none, no pairs are left"),
    ):
        found = report_of(sides, mined, {"select": 1.0})
        assert found.threshold == told
        assert (found.target is None) == (sides[0] is sides[1])
        assert (found.source.kept, found.selected, found.kept) == (len(sides[0]), 0, 0)
    one = Pairs.of(np.ones(1), np.zeros(1), np.zeros(1))
    chosen = Mined(one.take(np.arange(0)), Threshold(2.0, "given"), one)
    assert report_of((some, Lines(1)), chosen, {}).threshold == "threshold: 2.0000 (given)"


def test_gold_tells_the_recall_within_the_limits_of_scores():
    expected = PrecisionEstimate(np.linspace(1, 0, 101), np.arange(1, 102) * 0.9, 101)
    gold = np.array([1.0, 0.5, 0.25, -math.inf])
    found = _calibrated(expected, MineConfig(gold="g", min_score=0.5, max_score=1.0), gold)
    assert (found.origin, found.recall, found.recall_within) == ("gold pairs", 0.5, None)
    assert _calibrated(expected, MineConfig(gold="g", max_score=0.5), gold).recall == 0.5
    assert _calibrated(expected, MineConfig(), None).origin == "mismatched neighbours"
    assert _calibrated(replace(expected, least_share=np.inf), MineConfig(), None).origin == "likelihood of each pair"


def test_decoys_are_chosen_among_as_many_neighbours_as_pairs():
    """Without each line's best neighbour, or its two best, one more is looked at."""
    draw = np.random.default_rng(0)
    sides = [draw.normal(size=(40, 6)).astype(np.float32) for _ in range(2)]
    lists = find_neighbours(
        *(side / np.linalg.norm(side, axis=1, keepdims=True) for side in sides), 6, SearchConfig(threads=1)
    )
    selector = _Selector(lists, lists, MineConfig(k=2, neighbours=SearchConfig(threads=1)), None, False)
    for skip in (0, 1, 2):
        part = Neighbours(*(getattr(lists, name)[:, : 2 + skip] for name in vars(lists)))
        wanted = select(score_candidates(part, "ratio", 2, skip, lists), "max")
        found = selector.pairs("max", skip)
        assert found.source.tolist() == wanted.source.tolist()
        assert found.scores.tolist() == wanted.scores.tolist()
        assert selector.select("max", skip)[1] == {}


def test_quantiles_of_mined_pairs():
    scores = np.arange(101) / np.float32(100)
    mined = Mined(Pairs.of(scores, np.arange(101), np.arange(101)), Threshold(0.0, "given"), None)
    assert mined.quantiles == pytest.approx([0, 0.05, 0.25, 0.5, 0.75, 0.95, 1])
    assert replace(mined, pairs=mined.pairs.take(np.arange(0))).quantiles == []


def test_mined_pairs_of_vectors_have_no_texts(tmp_path):
    own = np.eye(3, dtype=np.float32)
    found = mine(None, own, own[::-1].copy(), threshold=None, threads=1)
    assert next(iter(found)) == found[0] == (float(found.scores[0]), None, None, 0, 2)
    for sides in ((None, Texts.of(["a"] * 3)), (Texts.of(["a"] * 3), None)):
        with pytest.raises(ConfigError, match=r"^vectors were mined, which have no texts to write: mine lists or files,"):
            replace(found, source=sides[0], target=sides[1]).write(tmp_path / "a.tsv")
    replace(found, source=Texts.of(list("abc")), target=Texts.of(list("xyz"))).write(tmp_path / "a.bucc", format="bucc")
    assert (tmp_path / "a.bucc").read_text() == "1\t3\n2\t2\n3\t1\n"
    for given in ({"output": tmp_path / "b.tsv"}, {"rerank": Encoder()}):
        with pytest.raises(ConfigError, match=r"^vectors have no texts, for output= and rerank=: mine lists or files$"):
            mine(None, own, own, **given)
    with pytest.raises(ConfigError, match=r"^vectors are mined with vectors: give both sides alike, as arrays$"):
        mine(None, own, ["a"])
    with pytest.raises(TypeError, match=r"^model is an array: vectors are mined without one"):
        mine(own, own)
    with pytest.raises(ConfigError, match=r"^model=None encodes nothing: give a model, or vectors$"):
        mine(None, ["a"])


def test_the_summary_of_scoring():
    spread = Distribution(tuple(0.1 * k for k in range(7)), 0.25, 0.125)
    scored = (
        "scores: lowest 0.0000, 5 % 0.1000, 25 % 0.2000, median 0.3000, 75 % 0.4000, 95 % 0.5000, highest 0.6000\n"
        "12.5 % score below 0.2500, as pairs of different lines do; python -m xswe filter finds them, and other noise"
    )
    assert str(spread) == scored
    unsure = Distribution(spread.quantiles, unsure="why")
    assert str(unsure).splitlines()[1] == "no threshold can be suggested: why"
    assert str(Distribution()) == ""
    found = ScoredBitext(1500, 1000, 0.25, "ratio", 2.0, "out.tsv", spread, {"damaged": 2}, 0.02)
    assert str(found) == (
        "1,500 lines, 1,000 of them not scored (nan), mean ratio 0.2500, 2.0 s, 750 lines/s: out.tsv; "
        f"left out: 2 damaged; near-duplicates of earlier pairs: 2 %\n{scored}"
    )
    nothing = ScoredBitext(3, 3, math.nan, "cosine", 0.25, "out.tsv")
    assert str(nothing) == "3 lines, 3 of them not scored (nan), 0.2 s: out.tsv"
    assert str(ScoredBitext(3, 0, 0.5, "cosine", 0.25, "out.tsv")) == (
        "3 lines, mean cosine 0.5000, 0.2 s: out.tsv; near-duplicates of earlier pairs: none"
    )


def test_how_scores_are_distributed():
    draw = np.random.default_rng(0)
    scores = np.concatenate([draw.normal(0.7, 0.05, 400), draw.normal(0.2, 0.05, 100)]).astype(np.float32)
    decoys = draw.normal(0.2, 0.05, 499).astype(np.float32)
    found = Distribution.of(scores, decoys)
    assert found.quantiles == pytest.approx(np.quantile(scores, (0, 0.05, 0.25, 0.5, 0.75, 0.95, 1)).tolist())
    assert found.threshold == estimate_from_decoys(scores, decoys, 500).choose()
    assert found.below == (scores < found.threshold).mean() == pytest.approx(0.2, abs=0.01)
    few = Distribution.of(scores[:49], decoys)
    assert (few.threshold, few.below, few.unsure) == (None, 0.0, "49 pairs are too few")
    assert Distribution.of(scores[:0], decoys) == Distribution()


@pytest.mark.parametrize("block", [3, 1000])
def test_pairs_of_rows_are_scored_as_each_alone(monkeypatch, block):
    monkeypatch.setattr("xswe.mining.score._BLOCK", block)
    draw = np.random.default_rng(0)
    sides = [draw.normal(size=(size, 4)).astype(np.float32) for size in (8, 11)]
    sides = [side / np.linalg.norm(side, axis=1, keepdims=True) for side in sides]
    rows = [draw.integers(0, len(side), 20) for side in sides]
    cosines = sides[0] @ sides[1].T
    here, there = np.sort(cosines, 1)[:, -2:].mean(1), np.sort(cosines, 0)[-2:].mean(0)
    for score, wanted in (("cosine", cosines), ("distance", cosines - (here[:, None] + there[None]) / 2)):
        found, decoys = _score_rows(sides, rows, score, 2, SearchConfig(threads=1))
        np.testing.assert_allclose(found, wanted[rows[0], rows[1]], atol=1e-6)
        np.testing.assert_allclose(decoys, wanted[rows[0][:-1], rows[1][1:]], atol=1e-6)
    empty = [np.zeros(0, np.int64)] * 2
    assert [len(one) for one in _score_rows(sides, empty, "cosine", 2, SearchConfig(threads=1))] == [0, 0]
    hashes = np.array([7, 3, 7, 9, 3], np.uint64)
    assert _rows_of(hashes).tolist() == [0, 1, 0, 2, 1]
    with pytest.raises(ConfigError, match=r"^1 source texts for 2 target texts: give as many of both$"):
        score_pairs(Encoder(), ["a"], ["b", "c"])


class Encoder:
    """A model that is never asked."""

    languages, pair, dim = ("en", "de"), ("en", "de"), 4

    def encode(self, texts, threads=None):
        raise AssertionError


def test_the_summary_of_a_filter():
    reasons = np.array([0] * 1200 + [LOW, LOW, 1], np.uint8)
    scores = np.full(len(reasons), 0.5, np.float32)
    found = Filtered(scores, reasons, Threshold(0.25, "given"), near=0.25)
    first = f"1,203 pairs read, 1,200 kept; dropped: 1 {found.names[1]}, 2 low similarity"
    assert str(found) == f"{first}; near-duplicates of earlier pairs: 25 %\nthreshold: 0.2500 (given)"
    assert repr(found) == "Filtered(1,200 of 1,203 pairs kept, threshold: 0.2500 (given))"
    assert list(found.counts) == ["kept", found.names[1], "low similarity"]
    assert [tuple(row) for row in found][1199:1201] == [(1200, "kept", 0.5), (1201, "low similarity", 0.5)]
    told = replace(found, threshold=Threshold(0.25, "given", 0.5), gold=GoldCheck(0, math.nan, 0, math.nan))
    assert str(told).splitlines()[2:] == [
        "not judged: translations that are truncated, extended or changed, and the order of words",
        "on gold: none of its texts is in the bitext",
    ]
    assert str(replace(found, note="why")).splitlines()[2:] == ["judged by the cosine alone: why"]
    nothing = Filtered(scores[:1], np.array([LOW], np.uint8), Threshold(-math.inf, "given"))
    assert str(nothing) == "1 pairs read, 0 kept; dropped: 1 low similarity\nthreshold: none, all pairs are kept"
    with pytest.raises(ConfigError, match=r"^unusual\(\) needs the features: filter with explain=True$"):
        found.unusual(0)


def test_a_threshold_decides_on_what_has_no_other_reason():
    scores = np.array([0.5, 0.25, 0.125, np.nan, np.nan], np.float32)
    given = Found(np.array([0, 0, 0, 3, 0], np.uint8), scores, np.zeros(0, np.float32), None, None)
    for threshold, reasons in ((0.25, [0, 0, LOW, 3, LOW]), (0.26, [0, LOW, LOW, 3, LOW]), (None, [0, 0, 0, 3, LOW])):
        found = _decide(given, BitextFilter(threshold=threshold))
        assert found.reasons.tolist() == reasons
        assert found.evidence is None
    assert given.reasons.tolist() == [0, 0, 0, 3, 0]
    assert _decide(given, BitextFilter(threshold=0.25, evidence=True)).evidence.scores.tolist() == [0.5, 0.25, 0.125]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"min_score": math.nan}, "min_score=nan: give a number, or null for none"),
        ({"max_score": math.nan}, "max_score=nan: give a number, or null for none"),
        ({"k": 0}, "k and best must be at least 1"),
        ({"best": 0, "select": "kbest"}, "k and best must be at least 1"),
        ({"gold": "a", "select": "kbest"}, "gold= needs threshold=auto, and a selection other than kbest"),
        ({"gold": "a", "threshold": 1.0}, "gold= needs threshold=auto, and a selection other than kbest"),
        ({"languages": ("en",)}, "languages=['en']: name the source's and the target's, as in [en,ja]"),
    ],
)
def test_settings_of_mining_that_cannot_be(settings, message):
    with pytest.raises(ConfigError) as raised:
        MineConfig(**settings)
    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("settings", "ranks", "depth"),
    [
        ({}, 1, 4),
        ({"score": "cosine"}, 2, 4),
        ({"score": "csls", "k": 7}, 2, 7),
        ({"threshold": None}, 0, 4),
        ({"threshold": None, "evidence": True}, 1, 4),
        ({"select": "kbest"}, 0, 5),
        ({"select": "kbest", "evidence": True, "best": 1}, 0, 4),
        ({"select": "kbest", "best": 9, "k": 2}, 0, 9),
    ],
)
def test_as_many_neighbours_are_sought_as_are_needed(settings, ranks, depth):
    config = MineConfig(**settings)
    assert (config.decoy_ranks, config.depth) == (ranks, depth)


def test_which_settings_need_a_margin():
    ScoreFileConfig(score="ratio", k=3, keep=True, neighbours=SearchConfig(memory=1.0))
    ScoreFileConfig(neighbours=SearchConfig(threads=3))
    for name, value in (("k", 3), ("keep", True), ("storage", "int8"), ("neighbours", SearchConfig(memory=1.0))):
        with pytest.raises(ConfigError, match=f"{name}.* without a margin as score"):
            ScoreFileConfig(**{name: value})


@pytest.mark.parametrize(
    ("settings", "reranked", "method"),
    [
        ({}, False, "cosine"),
        ({"languages": ("de", "en")}, False, "learned"),
        ({"languages": ("de", "en")}, True, "cosine"),
        ({"languages": ("de", "en"), "threshold": 0.5}, False, "cosine"),
        ({"languages": ("de", "ja")}, False, "cosine"),
        ({"languages": ("de", "ja"), "method": "learned"}, False, "learned"),
        ({"languages": ("de", "en"), "method": "cosine"}, False, "cosine"),
    ],
)
def test_which_method_auto_is(settings, reranked, method):
    assert BitextFilter(**settings).resolved(reranked).method == method


def test_a_method_that_cannot_be_says_what_would_help():
    named = "name two languages of en, de, zh, ja, as in languages=[en,de]"
    for languages, reranked, hint in (
        (("en", "fr"), False, named),
        (("en", "en"), False, named),
        ((), False, named),
        (("en", "de"), True, "leave rerank= out"),
    ):
        with pytest.raises(ConfigError) as raised:
            BitextFilter(method="learned", languages=languages).resolved(reranked)
        assert str(raised.value) == f"method=learned: {hint}; or use method=cosine"


def test_dropped_records_are_written_with_their_reason_and_score(tmp_path, model):
    source, output, rejects = (tmp_path / name for name in ("a.tsv", "b.tsv", "no.tsv"))
    source.write_bytes(b"one cat\tone cat\r\nA dog here.\t\nThe train.\tzzz qqq\nlast\tlast one")
    found = filter_bitext(model, source, output, rejects=rejects, threshold=2.0, script=0.0, threads=1)
    lines = rejects.read_bytes().split(b"\n")
    assert lines[0] == b"copy\t\tone cat\tone cat"
    assert lines[1] == b"blank\t\tA dog here.\t"
    for line, row, raw in ((lines[2], 2, b"The train.\tzzz qqq"), (lines[3], 3, b"last\tlast one")):
        assert line == f"low similarity\t{found.scores[row]:.6f}\t".encode() + raw
    assert lines[4:] == [b""]
    assert output.read_bytes() == b""
    filter_bitext(model, source, output, threshold=None, copies=False, script=0.0, threads=1)
    assert output.read_bytes() == b"one cat\tone cat\r\nThe train.\tzzz qqq\nlast\tlast one\n"
