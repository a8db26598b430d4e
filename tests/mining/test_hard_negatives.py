"""Hard negatives of a bitext, in the form that sentence-transformers trains on."""

from __future__ import annotations

import csv
import importlib.util
import json
import subprocess

import numpy as np
import pytest

from xswe.errors import ConfigError
from xswe.io.ragged import Texts
from xswe.io.settings import build
from xswe.mining import negatives
from xswe.mining.hard_rules import identity_key
from xswe.mining.negatives import HardNegatives, NegativesConfig, mine_negatives
from xswe.search.lists import Neighbours

NAMES = ("anchor", "positive", "negative_1", "negative_2", "negative_3")


@pytest.fixture
def bitext(sample):
    """Pairs, with a source that has two targets, a target in other letters, and a repeated target."""
    pairs = list(zip(sample["en"][:300], sample["ja"][:300], strict=True))
    pairs += [(pairs[5][0], pairs[6][1]), (pairs[7][0], f" {pairs[7][1]} "), (pairs[8][0], pairs[9][1])]
    return [(" ".join(a.split()), " ".join(b.split())) for a, b in pairs]


def test_negatives_are_the_nearest_wrong_targets_within_the_margin(model, bitext):
    found = mine_negatives(model, bitext, negatives=3, candidates=100, relative_margin=0.1, threads=1)
    right = {}
    for a, b in bitext:
        right.setdefault(identity_key(a), set()).add(identity_key(b))
    targets = list({identity_key(b): b for _, b in reversed(bitext)}.values())
    vectors, anchors = model.encode(targets), model.encode([anchor for anchor, *_ in found.records()])
    positives = model.encode([positive for _, positive, *_ in found.records()])
    assert found.columns() == NAMES
    assert len(found) > 250
    for (anchor, positive, *wrong), own, other in zip(found.records(), anchors, positives, strict=True):
        assert (anchor, positive) in bitext
        assert len(set(wrong)) == 3
        most, cosines = 0.9 * float(own @ other), vectors @ own
        fits = [
            float(cosine)
            for text, cosine in zip(targets, cosines, strict=True)
            if identity_key(text) not in right[identity_key(anchor)] and cosine <= most
        ]
        chosen = [float(cosines[targets.index(text)]) for text in wrong]
        np.testing.assert_allclose(chosen, sorted(fits, reverse=True)[:3], atol=1e-4)


def test_the_summary_tells_how_near_the_negatives_are(model, bitext):
    found = mine_negatives(model, bitext, negatives=2, candidates=50, threads=1)
    for row, (anchor, *texts) in enumerate(found.records()):
        np.testing.assert_allclose(found.cosines[row], model.encode(texts) @ model.encode([anchor])[0], atol=1e-4)
    middle = np.median(found.cosines, axis=0)
    assert f"median cosine of the positives {middle[0]:.4f}, of the nearest negatives {middle[1]:.4f}" in str(found)
    assert "; near-duplicates of earlier pairs: under 1 %\n" in str(found)  # of 303 one occurs twice
    again = mine_negatives(model, [*bitext[:50], *((f"{a} 7", f"{b} 8") for a, b in bitext[:50])], negatives=1, threads=1)
    assert 0.45 < again.near <= 0.5


@pytest.mark.parametrize("least", [None, 0.25])
@pytest.mark.parametrize("margin", [0.0, 0.25])
def test_the_nearest_within_the_margin_are_chosen(monkeypatch, least, margin):
    """Cosines are multiples of an eighth, so that some lie at the limits themselves."""
    monkeypatch.setattr(negatives, "_BLOCK", 3)
    draw = np.random.default_rng(0)
    size, targets, count = 11, 9, 2
    ids = np.argsort(draw.random((size, targets)), axis=1)[:, :6].astype(np.int32)
    ids[:, 5] = np.where(draw.random(size) < 0.5, -1, ids[:, 5])
    cosines = np.sort(draw.integers(-2, 9, ids.shape) / np.float32(8), axis=1)[:, ::-1].astype(np.float32)
    anchors, own = [f"{'aA'[row % 2]}{row // 4}" for row in range(size)], draw.integers(0, targets, size)
    scores = draw.integers(-2, 9, size) / np.float32(8)
    config = NegativesConfig(negatives=count, relative_margin=margin, min_score=least)
    known = negatives._known(Texts.of(anchors), own, targets)
    chosen, near = negatives._chosen(Neighbours(cosines, ids, cosines, ids), *known, scores.astype(np.float32), config)
    for row in range(size):
        right = {own[k] for k in range(size) if anchors[k].lower() == anchors[row].lower()}
        most = scores[row] * (1 - margin) if scores[row] > 0 else scores[row]
        fits = [
            (int(one), float(cosine))
            for one, cosine in zip(ids[row], cosines[row], strict=True)
            if one >= 0 and one not in right and cosine <= most and (least is None or cosine >= least)
        ][:count]
        wanted = [*fits, *[(-1, np.nan)] * (count - len(fits))]
        assert chosen[row].tolist() == [one for one, _ in wanted]
        assert near[row].tolist() == pytest.approx([cosine for _, cosine in wanted], nan_ok=True)


def test_what_hard_negatives_say_of_themselves():
    three, cosines = Texts.of(["x", "y", "z"]), np.array([[0.9, 0.5, 0.1], [0.5, 0.25, 0.2]], np.float32)
    sides, chosen = (Texts.of(["a", "b"]), Texts.of(["x", "y"])), np.array([[1, 2], [2, 0]])
    found = HardNegatives(*sides, three, chosen, 1200, cosines, 0.25)
    assert str(found) == (
        "1,200 pairs, 2 with 2 negatives, 1,198 have too few within the margin; near-duplicates of earlier pairs: 25 %\n"
        "median cosine of the positives 0.7000, of the nearest negatives 0.3750; median gap 0.3250"
    )
    assert repr(found) == "HardNegatives(2 of 1,200 pairs, 2 negatives each)"
    assert [tuple(one) for one in found] == [("a", "x", ("y", "z")), ("b", "y", ("z", "x"))]
    assert found.types() == dict.fromkeys(("anchor", "positive", "negative_1", "negative_2"), "string")
    whole = HardNegatives(*sides, three, chosen, 2)
    assert str(whole) == "2 pairs, 2 with 2 negatives; near-duplicates of earlier pairs: none"
    nothing = HardNegatives(three.take(np.arange(0)), three, three, np.zeros((0, 4), np.int64), 0)
    assert str(nothing) == "0 pairs, 0 with 4 negatives"


def test_limits_of_the_settings():
    for fine in ({"negatives": 1}, {"negatives": 16}, {"relative_margin": 0.0}, {"relative_margin": 0.99}):
        NegativesConfig(**fine)
    for wrong, message in (
        ({"negatives": 17}, r"negatives=17: give a number from 1 to candidates=16$"),
        ({"relative_margin": -0.01}, r"relative_margin=-0\.01: give a share from 0 to below 1, as in 0\.05$"),
    ):
        with pytest.raises(ConfigError, match=message):
            NegativesConfig(**wrong)


def test_pairs_with_too_few_negatives_are_left_out_and_told(model, bitext):
    found = mine_negatives(model, bitext[:3], negatives=3)
    assert (len(found), found.read) == (0, 3)
    assert mine_negatives(model, [], negatives=1).read == 0
    least = mine_negatives(model, bitext, negatives=1, min_score=0.3, relative_margin=0.0)
    assert 0 < len(least) < len(bitext)


def test_all_formats_say_the_same(model, bitext, tmp_path):
    pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    for name in ("a.jsonl", "a.tsv", "a.csv", "a.parquet"):
        found = mine_negatives(model, bitext, tmp_path / name, negatives=3, threads=1)
    rows = [dict(zip(NAMES, row, strict=True)) for row in found.records()]
    assert [json.loads(line) for line in (tmp_path / "a.jsonl").read_text(encoding="utf-8").splitlines()] == rows
    assert pq.read_table(tmp_path / "a.parquet").to_pylist() == rows
    for name, delimiter in (("a.csv", ","), ("a.tsv", "\t")):
        with open(tmp_path / name, newline="", encoding="utf-8") as stream:
            assert list(csv.DictReader(stream, delimiter=delimiter)) == rows


COLLATE = """import json, sys
from sentence_transformers.data_collator import SentenceTransformerDataCollator
with open(sys.argv[1], encoding="utf-8") as stream:
    rows = [json.loads(next(stream)) for _ in range(2)]
print(json.dumps(list(SentenceTransformerDataCollator(lambda texts, **_: {"input_ids": texts})(rows))))
"""


@pytest.mark.slow
def test_sentence_transformers_takes_the_columns(model, bitext, tmp_path, warm_python):
    if importlib.util.find_spec("sentence_transformers") is None:
        pytest.skip("sentence-transformers is not installed")
    mine_negatives(model, bitext, tmp_path / "triples.jsonl", negatives=3, threads=1)
    command = [warm_python / "python", "-c", COLLATE, tmp_path / "triples.jsonl"]
    batch = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert [key for key in batch if key.endswith("input_ids")] == [f"{name}_input_ids" for name in NAMES]
    assert "label" not in batch


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        ({"negatives": 0}, "negatives=0"),
        ({"negatives": 99}, "candidates=16"),
        ({"relative_margin": 1.0}, "relative_margin=1.0"),
        ({"output": "a.txt"}, "a.txt"),
        ({"limit": 3}, "limit"),
    ],
)
def test_impossible_settings_are_refused(model, settings, found):
    with pytest.raises(ConfigError, match=found):
        mine_negatives(model, [("a", "b")], **settings)


def test_a_killed_run_goes_on_with_its_search(model, bitext, tmp_path, monkeypatch):
    settings = {"negatives": 2, "relative_margin": 0.1, "threads": 1}
    whole = mine_negatives(model, bitext, tmp_path / "whole.jsonl", **settings)
    assert not (tmp_path / "whole.jsonl.work").exists()
    monkeypatch.setattr("xswe.work.kept.BRIEF", 0.0)
    with monkeypatch.context() as patch:
        patch.setattr("xswe.mining.negatives._chosen", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            mine_negatives(model, bitext, tmp_path / "killed.jsonl", **settings)
    assert list(tmp_path.glob("killed.jsonl.work/search-*/neighbours-*/000000.safetensors"))
    with monkeypatch.context() as patch:
        patch.setattr("xswe.search.exact.sweep", lambda *_: 1 / 0)  # what searches is not called again
        again = mine_negatives(model, bitext, tmp_path / "killed.jsonl", **settings)
        with pytest.raises(ZeroDivisionError):
            mine_negatives(model, bitext, tmp_path / "new.jsonl", **settings)
    assert list(again.records()) == list(whole.records())
    assert (tmp_path / "killed.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
    assert not (tmp_path / "killed.jsonl.work").exists()


def test_columns_of_a_configuration_are_numbers_or_names():
    for columns in (["English", "German"], [2, "German"], [0, 1]):
        assert build(NegativesConfig, {"columns": columns}, "mine").columns == tuple(columns)
    with pytest.raises(ConfigError, match="expected int"):
        build(NegativesConfig, {"columns": [None, 1]}, "mine")
