"""eval/experiments/exact_contexts.py: kinds of contexts compared, each sentence encoded once."""

from __future__ import annotations

import numpy as np
import pytest

from tests.conftest import FakeTeacher, Later, eval_script
from xswe.io.ragged import Texts

Later("torch")
script = eval_script("experiments.exact_contexts")
layout = eval_script("report.lever_tables")


def test_a_sentence_is_encoded_once_for_all_that_need_its_states():
    teacher = FakeTeacher(batch=2)
    remembering = script.Remembering(teacher)
    for sentences in (["a cat", "at", "dogs"], ["dogs", "a cat", "a", "at"]):
        texts = Texts.of(sentences)
        plain = FakeTeacher(batch=2)
        expected = list(plain.states(texts, plain.batches(texts)))
        found = list(remembering.states(texts, remembering.batches(texts)))
        for one, other in zip(found, expected, strict=True):
            for part in ("rows", "hidden", "offsets", "starts", "ends"):
                np.testing.assert_array_equal(getattr(one, part), getattr(other, part))
    assert sorted(teacher.encoded) == ["a", "a cat", "at", "dogs"]


def folders_of(place, kind, hits):
    """Folders of figures: of the first seed the share ``hits`` of 400 pairs found, of the second one more pair."""
    made = []
    for seed in (0, 1):
        folder = place / f"{kind}-{seed}"
        folder.mkdir()
        items = (np.arange(400) < 400 * hits + seed).astype(np.float64)
        np.savez(folder / "figures.npz", **{"refinement|wmt23.en-de|accuracy": items})
        made.append(folder)
    return made


def test_kinds_are_compared_by_their_means_over_the_seeds_and_a_star_marks_what_is_no_chance(tmp_path):
    name, rows = "refinement|wmt23.en-de|accuracy", []
    better, worse, alike = (folders_of(tmp_path, kind, hits) for kind, hits in (("a", 0.6), ("b", 0.5), ("c", 0.6)))
    about = {"teacher": "mini", "pair": "en-de", "step": "refinement", "subset": "wmt23.en-de"}
    for kind, folders in (("back-off", worse), ("lower case", alike), ("exact", better)):
        rows.append({**about, "kind": kind, **script.compared(better, folders, name)})
    assert rows[0]["values"] == [0.5, 0.5025]
    assert rows[0]["exact_minus_this"] == pytest.approx(0.1)
    assert rows[0]["low"] < 0.1 < rows[0]["high"]
    assert rows[1]["p"] == 1.0
    assert "p" not in rows[2]
    counts = {"teacher": "mini", "pair": "en-de", "contexts": 50, "contexts_without": 4}
    table = layout.exact({"rows": rows, "contexts": [{**counts, "kind": kind} for kind in ("back-off", "lower case")]})
    assert [line.split(" | ")[3:6] for line in table.splitlines()[2:]] == [
        ["back-off", "8.0", "50.1 → 60.1 *"],
        ["lower case", "8.0", "60.1 → 60.1"],
    ]


def test_details_are_decided_by_a_test_of_two_shares_for_all_of_the_table():
    def record(setting, other, accuracy):
        found = {"recipe": (0.4, 0.5), other: accuracy}
        rows = [
            {"step": "refinement", "variant": variant, "metric": metric, "value": value, "n": 1000}
            for variant, values in found.items()
            for metric, value in zip(("accuracy", "margin_accuracy"), values, strict=True)
        ]
        return {"setting": setting, "rows": [*rows, {**rows[0], "step": "PCA with ABTT", "value": 0.1}]}

    # Of .4 and of .446, of 1,000 pairs each, p is .037; of six such tests, none decides.
    made = layout.details(*(record(name, "b", (0.446, 0.5)) for name in "xyz"), record("far", "b", (0.5, 0.6)))
    lines = made.splitlines()[2:]
    assert lines[0] == "| x | recipe | b | 40.0 → 44.6 | 50.0 → 50.0 | no |"
    assert lines[-1] == "| far | recipe | b | 40.0 → 50.0 | 50.0 → 60.0 | yes |"
    assert sum("yes" in line for line in lines) == 1
