"""Planted sets: what is planted says the same, what is noise does not, and what was told of them held."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest

from tests.conftest import EVAL, eval_script

planted = eval_script("experiments.mining_quality")


@pytest.fixture
def data(tmp_path):
    """Sentences 0 to 59 are there in German and Japanese, 60 to 89 in German alone, 90 to 119 in Japanese alone."""
    for code, numbers, unseen in (
        ("de", range(90), range(200, 210)),
        ("ja", [*range(60), *range(90, 120)], range(195, 205)),
    ):
        (tmp_path / "train" / f"en-{code}").mkdir(parents=True)
        (tmp_path / "dev").mkdir(exist_ok=True)
        rows = "".join(f"english {n}\t{code} {n}\n" for n in numbers)
        (tmp_path / "train" / f"en-{code}" / "docs.tsv.gz").write_bytes(gzip.compress(rows.encode()))
        (tmp_path / "train" / f"en-{code}" / "tatoeba.tsv.gz").write_bytes(gzip.compress(b"english 7\tsaid elsewhere\n"))
        (tmp_path / "dev" / f"wmt23.en-{code}.tsv").write_text(
            "".join(f"english {n}\t{code} {n}\n" for n in unseen), "utf-8"
        )
    return tmp_path


def test_pairs_without_english_say_the_same_english_and_noise_does_not(data):
    pairs, source, target = planted.planted_lines(data, "de-ja", 40, 0.5, "alike")
    assert len(pairs) == 20
    assert all(a.split() == ["de", b.split()[1]] and b.startswith("ja") for a, b in pairs)
    assert sum(200 <= int(a.split()[1]) < 205 for a, _ in pairs) == 5  # unseen in training: all that both sides have
    assert {int(text.split()[1]) for text in source} <= set(range(60, 90))
    assert {int(text.split()[1]) for text in target} <= set(range(90, 120))
    assert len(source) == len(target) == 20


def test_of_few_pairs_fewer_lines_are_made(data):
    pairs, source, target = planted.planted_lines(data, "de-ja", 1000, 1.0, "alike")
    assert (len(pairs), source, target) == (65, [], [])


def test_what_is_told_of_planted_sets_is_at_most_five_points_off():
    rows = json.loads((EVAL / "results" / "mining_quality.json").read_text("utf-8"))
    told = [row for row in rows if row.get("expected_precision") is not None]
    assert {row["pair"] for row in told} == set(planted.PAIRS)
    assert {row["score"] for row in told} == set(planted.SCORES)
    assert {row["set"] for row in rows if row["set"].startswith("planted")} == {f"planted {s:.0%}" for s in planted.SHARES}
    assert all(abs(row["expected_precision"] - row["precision"]) < 0.05 for row in told)


def test_what_is_told_where_few_lines_have_a_translation_lies_between_its_bounds():
    rows = json.loads((EVAL / "results" / "sparse_mining.json").read_text("utf-8"))
    assert {row["pair"] for row in rows} == set(eval_script("experiments.sparse_mining").PAIRS)
    assert {row["size"] for row in rows} >= {"2000", "2000:20000"}
    # 95 of 100, as is said of such bounds
    assert np.mean([row["told share"][1] <= row["share"] <= row["told share"][2] for row in rows]) >= 0.95
    for name in ("precision", "recall"):
        told = [row for row in rows if row[f"told {name}"] is not None]
        assert len(told) >= 18
        assert np.mean([row[f"{name} between"][0] <= row[name] <= row[f"{name} between"][1] for row in told]) >= 0.95
