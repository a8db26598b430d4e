"""Values as pages write them, and what a comparison is drawn from."""

from __future__ import annotations

import json
import math
import re
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("jinja2", reason="pages need Jinja2: pip install 'xswe[report]'")

from tests.report.conftest import comparison, swept
from xswe.evaluation.metrics import Row
from xswe.report import comparison as module
from xswe.report import figures
from xswe.report.comparison import _against, _bars, _plots, _quality, _seconds, _size, _spread
from xswe.report.page import as_json, figure, language_of, number, percent, policy, setting, shortened


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ([number(value) for value in (None, 0, 1234.5, 1_234_567)], "– 0 1,234 1,234,567"),
        ([figure(value) for value in (None, math.nan, 0.12345, -0.00001, 1)], "– – 0.1235 0.0000 1.0000"),
        ([figure(value, 1) for value in (0.25, 0.35, -0.04)], "0.2 0.3 0.0"),
        ([percent(value).replace(" ", "") for value in (None, math.nan, 0.5, 0.0449, 1)], "– – 50.0% 4.5% 100.0%"),
        (
            [percent(value, 0).replace(" ", "") for value in (0.004, 0.005, 0.006, 0.995, 0.996, 0.5)],
            "0.4% 0% 1% 100% 99.6% 50%",
        ),
        (
            [setting(value) for value in (None, True, 1, 0.5, "en-de", (), ["en", None])],
            "null true 1 0.5 en-de [] [en,null]",
        ),
        ([shortened("abcd", most) for most in (1, 3, 4, 9)], "a… abc… abcd abcd"),
    ],
)
def test_values_are_written_short(written, expected):
    assert " ".join(written) == expected


def test_data_of_a_page_cannot_end_its_block():
    assert as_json({"a": "ü<", "b": 1}) == '{"a":"ü\\u003c","b":1}'
    text = as_json({"a": "</script><!-- & \u2028", "n": [1, None, True]})
    assert not set(text) & set("<>&")
    assert json.loads(text) == {"a": "</script><!-- & \u2028", "n": [1, None, True]}
    with pytest.raises(ValueError, match="not JSON compliant"):
        as_json(math.nan)


def test_the_language_that_a_text_is_set_in():
    for text, languages, code in (
        ("猫が", (), "ja"),
        ("猫", (), "zh"),
        ("猫", ("en", "ja"), "ja"),
        ("猫", ("zh", "ja"), "zh"),
        ("猫が", ("en", "zh"), "ja"),
        ("cat", ("de", "en"), "de"),
        ("cat", ("ja", "zh"), "en"),
        ("cat", (), "en"),
        ("cat", ("ja",), "ja"),
        ("猫が", ("de",), "ja"),
        ("", ("ja",), "en"),
    ):
        assert language_of(text, languages) == code


def test_a_policy_allows_what_is_named_and_nothing_else():
    found = policy(["a"], [])
    assert "style-src 'sha256-ypeBEsobvcr6wjGzmiPcTaeG7/gUfE5yuYB3ha/uSLs='" in found  # of "a"
    assert "script-src 'none'" in found
    assert found.startswith("default-src 'none'")


def key(task="a", subset="en"):
    return task, subset, "f1", None


def test_a_mean_over_seeds_has_its_deviation_for_an_interval():
    found = _spread(key(), 0.5, 0.1)
    assert (found.key, found.value, found.low, found.high, found.n) == (key(), 0.5, 0.4, 0.6, 0)
    assert (_spread(key(), 0.5, None).low, _spread(key(), None, 0.1)) == (None, None)


def test_costs_are_means_of_the_folders_that_tell(tmp_path):
    for name, seconds in (("a", 2.0), ("b", 4.0), ("c", None)):
        (tmp_path / name / "model").mkdir(parents=True)
        if seconds:
            (tmp_path / name / "run.json").write_text(json.dumps({"seconds": {"x": seconds}}))
            (tmp_path / name / "model" / "model.safetensors").write_bytes(bytes(int(seconds * 1e5)))
    folders = [tmp_path / name for name in "abc"]
    assert (_seconds(folders), _seconds(folders[2:])) == (3.0, None)
    assert (_size(folders), _size(folders[2:])) == (pytest.approx(0.3), None)


def test_the_quality_of_models_is_over_what_all_have():
    def model(name, **values):
        return SimpleNamespace(name=name, row=lambda one: Row(*one[:3], values[one[0]], 1) if one[0] in values else None)

    keys = [key("a"), key("b"), key("c")]
    models = [model("x", a=0.2, b=0.4, c=1.0), model("y", a=0.6, b=0.0)]
    assert _quality(models, keys) == {"x": pytest.approx(0.3), "y": pytest.approx(0.3)}
    assert _quality([*models, model("z")], keys) == {}


def test_what_no_other_beats_on_both_is_joined():
    quality, costs = {"a": 0.1, "b": 0.5, "c": 0.4, "d": 0.9}, {"a": 1.0, "b": 2.0, "c": 3.0, "d": 4.0}
    for low_is_good, members in ((True, 3), (False, 1)):
        drawn = _against(quality, costs, "MB", low_is_good)
        front = re.search(r'class="front" points="([^"]*)"', drawn)
        assert (len(front[1].split()) if front else 1) == members
    assert "a dot each: a, b, c, d" in drawn
    plots = _plots(quality, size=(costs, "MB"), speed=({"a": 1.0}, "per second"))
    assert [name for name, _ in plots] == ["Quality against size"]
    assert _plots({"a": 0.1}, size=(costs, "MB")) == []


def test_bars_are_in_per_cent_and_of_what_has_a_value():
    rows = {
        "x": {key(): Row("a", "en", "f1", 0.25, 9, low=0.2, high=0.3), key("b"): Row("b", "en", "f1", None, 0)},
        "y": {key(): Row("a", "en", "f1", 0.5, 9), key("b"): None},
    }
    ((task, drawn),) = _bars(rows, [key(), key("b")])
    assert task == "a"
    assert re.findall(r"<title>([^<]*)<", drawn) == ["x, a en: 25", "y, a en: 50"]
    assert drawn.count("whisker") == 1


def titles(plots):
    """The names of drawings, and what is seen on hovering over each."""
    return [(name, re.findall(r"<title>([^<]*)<", str(drawn))) for name, drawn in plots]


def test_what_the_page_of_a_comparison_says(monkeypatch):
    monkeypatch.setattr(module, "render", lambda template, **context: context)
    rows = [np.array([1.0, 1.0, 0.0, 1.0] * 20), np.array([1.0, 0.0, 0.0, 1.0] * 20)]
    models = [SimpleNamespace(matrix=np.zeros((250_000, dim), np.float32), dim=dim) for dim in (8, 4)]
    told = module.comparison_page(comparison(models, rows), {"a": 1})
    plots, bars = told.pop("plots"), told.pop("bars")
    sets = [f"{task} {pair}" for task in ("tatoeba", "news") for pair in ("en-de", "en-ja")]
    assert told == {
        "title": "Comparison",
        "about": "2 models on the same 4 figures, times 100.",
        "overview": [("models", "2", ""), ("figures", "4", ""), ("threads", "1", "")],
        "header": ["model", "dims", "MB", "sentences/s", *sets],
        "lines": [["model 0", "8", "8.0", "1,000", *["75.0*"] * 4], ["model 1", "4", "4.0", "1,001", *["50.0 "] * 4]],
        "notes": ["* best; = not shown to be worse (paired bootstrap, p >= 0.05 corrected for 4 tests (Holm))"],
        "mean": "the mean of all figures that every model has",
        "tests": [(one, "model 0", "model 1", "+25.0 (+15.0 to +35.0)", "0.010", "0.040") for one in sets],
        "settings": {"a": 1},
    }
    names = ["model 1", "model 0"]  # by what they cost
    assert titles(plots) == [
        (f"Quality against {what}", own)
        for what, own in zip(("size", "speed", "training"), (names, names[::-1], names), strict=True)
    ]
    assert titles(bars) == [
        (task, [f"model {k}, {task} {pair}: {(75, 50)[k]}" for pair in ("en-de", "en-ja") for k in (0, 1)])
        for task in ("tatoeba", "news")
    ]
    told = module.comparison_page(comparison(models[:1], rows[:1]))
    assert (told["plots"], told["settings"]) == ([], None)


def test_what_the_page_of_a_sweep_says(monkeypatch, tmp_path):
    monkeypatch.setattr(module, "render", lambda template, **context: context)
    told = module.sweep_page(swept(None, tmp_path), {"a": 1})
    plots, bars = told.pop("plots"), told.pop("bars")
    dims = ["dim=64", "dim=128", "dim=256"]
    assert told == {
        "title": "Sweep",
        "about": "3 choices of pca.dim, 2 seeds each, times 100.",
        "overview": [("choices", "3", ""), ("seeds", "2", "")],
        "header": ["pca.dim", "held-out en-ja"],
        "lines": [["64", "60.5 ± 0.7 "], ["128", "70.5 ± 0.7 "], ["256", "80.5 ± 0.7*"]],
        "notes": [
            "mean ± deviation over seeds; * best; = not shown to be worse "
            "(paired bootstrap, p >= 0.05 corrected for 2 tests (Holm))"
        ],
        "mean": "the mean of all figures",
        "tests": [
            ("held-out en-ja", "dim=256", other, lost, "0.010", "0.020")
            for other, lost in zip(dims, ("20.0 %", "10.0 %"), strict=False)
        ],
        "settings": {"a": 1},
    }
    assert titles(plots) == [("Quality against size", dims), ("Quality against training", dims)]
    labels = re.findall(r'aria-label="([^"]*)"', "".join(str(drawn) for _, drawn in plots))
    assert [label.partition(",")[0] for label in labels] == [
        "Quality against MB of the model",
        "Quality against seconds of training",
    ]
    values = zip(dims, (60.5, 70.5, 80.5), strict=True)
    assert titles(bars) == [("held-out", [f"{name}, held-out en-ja: {value}" for name, value in values])]


def test_of_equals_the_cheapest_is_joined_and_five_groups_stand_side_by_side():
    points = {"": [(1e-6, 0.0, "b"), (2.0, 50.0, "a")]}
    label, front = "Quality against MB, a dot each: b, a", [(1e-6, 0.0), (2.0, 50.0)]
    expected = figures.dots(points, "MB", "mean, %", label, log=(True, False), front=front, named=True)
    assert _against({"a": 0.5, "b": 0.0, "c": 1.0}, {"a": 2.0, "b": 0.0}, "MB", True) == expected
    drawn = str(_against({"a": 0.5, "b": 0.5}, {"a": 1.0, "b": 2.0}, "MB", True))
    assert 'class="front"' not in drawn
    keys = [key("a", f"{k}") for k in range(6)]
    rows = {"x": {one: Row(*one[:3], 0.5, 9, low=0.25, high=0.75) for one in keys}}
    drawn = _bars(rows, keys)
    assert titles(drawn) == [("a", [f"x, a {k}: 50" for k in range(5)]), ("a", ["x, a 5: 50"])]
    assert str(drawn[1][1]) == str(figures.bars({"a 5": {"x": (50.0, 25.0, 75.0)}}, "%", "a: a 5"))
