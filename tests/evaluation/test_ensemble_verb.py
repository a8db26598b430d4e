from __future__ import annotations

import numpy as np
import pytest

import xswe
from tests.cli.verbs import command, run_verb
from xswe.cli.run import run
from xswe.errors import ConfigError, InputError
from xswe.evaluation.ensembles import make_ensemble, score_of
from xswe.evaluation.metrics import weighted_f1
from xswe.model.static import StaticModel
from xswe.text.subwords import SubwordUnits


@pytest.fixture
def folders(tokenizer, sample, tmp_path):
    """A model whose English and German sentences agree (they share their vectors by row), and one of noise."""
    units = SubwordUnits(tokenizer, "subwords", ("en", "de"))
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(len(units.tokens), 8)).astype(np.float32)
    good = np.zeros((len(units.tokens), 60), np.float32)
    for k in range(60):
        for code in ("en", "de"):
            good[units.bags([sample[code][k]]).ids, k] += 1.0
    for name, matrix in (("good", good), ("noise", noise)):
        StaticModel(units, matrix).save(tmp_path / name)
    pairs = "".join(f"{sample['en'][k]}\t{sample['de'][k]}\n" for k in range(60))
    (tmp_path / "dev.tsv").write_text(pairs, encoding="utf-8")
    return tmp_path


def settings(folder, **changes):
    values = {"models": [str(folder / "noise"), str(folder / "good")], "weights": [], "fit": [], "languages": None}
    return values | {"output": str(folder / "both"), "threads": 1} | changes


def test_given_weights(folders):
    command("ensemble", settings(folders, weights=[1, 3]))
    model = xswe.load(folders / "both")
    assert model.weights == (0.25, 0.75)
    assert model.description["models"] == [str(folders / "noise"), str(folders / "good")]


def test_the_table_has_a_row_for_each_part_and_one_for_the_ensemble(folders):
    names = [str(folders / "noise"), str(folders / "good")]
    found = make_ensemble(names, weights=[1, 3], threads=1)
    rows = [(names[0], 8, 0.25), (names[1], 60, 0.75), ("ensemble", found.ensemble.dim, 1.0)]
    assert found.records() == rows
    assert found.columns() == ("model", "dims", "weight")
    assert [line.split() for line in str(found).splitlines()[2:]] == [[name, str(dim), f"{w:.3f}"] for name, dim, w in rows]
    assert make_ensemble(names, threads=1).ensemble.weights == (0.5, 0.5)
    assert not (folders / "both").exists()
    scored = make_ensemble(names, fit=[folders / "dev.tsv"], threads=1)
    each = score_of(scored.ensemble.parts, folders / "dev.tsv", ("en", "de"), 1)
    weights = ((1.0, 0.0), (0.0, 1.0), scored.ensemble.weights)
    assert scored.scores == tuple((each(np.array(one)),) for one in weights)
    assert scored.columns()[3:] == ("dev.tsv",)


def test_languages_are_asked_only_of_models_of_other_libraries(folders):
    names = [str(folders / "noise"), str(folders / "good")]
    with pytest.raises(ConfigError, match=r"languages=\['en'\]: every model knows its own; leave languages out$"):
        make_ensemble(names, languages=["en"], threads=1)
    with pytest.raises(ConfigError, match=r"a folder is written there; leave \.tsv out$"):
        make_ensemble(names, folders / "dev.tsv", threads=1)


def test_fitted_weights_prefer_the_better_part(folders):
    command("ensemble", settings(folders, fit=[str(folders / "dev.tsv")]))
    model = xswe.load(folders / "both")
    assert model.weights[1] > 0.5
    assert model.description["fitted_on"] == [str(folders / "dev.tsv")]


def test_a_bitext_is_scored_in_both_directions(tmp_path):
    """Vectors of numbers: each line is a place, and the second part says of three lines the wrong one."""

    class Numbers:
        def __init__(self, order):
            self.turned = np.eye(10, dtype=np.float32)[np.array(order)]

        def encode(self, texts, threads=1):
            place = [int(text[1:]) for text in texts]
            return np.eye(10, dtype=np.float32)[place] if texts[0][0] == "a" else self.turned[place]

    file = tmp_path / "dev.tsv"
    file.write_text("".join(f"a{k}\tb{k}\n" for k in range(10)) + "\tb3\na3\t\n", encoding="utf-8")
    score = score_of([Numbers(range(10)), Numbers([1, 2, 0, *range(3, 10)])], file, ("en", "de"), 1)
    assert score(np.array([1.0, 0.0])) == 1.0
    assert score(np.array([0.0, 1.0])) == pytest.approx(0.7)
    assert score(np.array([0.6, 0.4])) == 1.0
    leaning = Numbers(range(10))  # the second line of one side is nearest to the first of the other, which has a nearer one
    leaning.turned = np.eye(10, dtype=np.float32)
    leaning.turned[1, :2] = 0.8, 0.6
    backward = weighted_f1(np.array([0, 0, *range(2, 10)]))
    assert score_of([leaning], file, ("en",), 1)(np.array([1.0])) == pytest.approx((1 + backward) / 2)


def test_fitting_on_scores(folders, sample):
    good = xswe.load(folders / "good")
    cosines = (good.encode(sample["en"][:40]) * good.encode(sample["de"][1:41])).sum(1)
    rows = zip(cosines, sample["en"][:40], sample["de"][1:41], strict=True)
    (folders / "sts.tsv").write_text("".join(f"{c}\t{a}\t{b}\n" for c, a, b in rows), encoding="utf-8")
    assert "100.0" in command("ensemble", settings(folders, fit=[str(folders / "sts.tsv")]))
    assert xswe.load(folders / "both").weights[1] > 0.7


def test_mistakes(folders):
    with pytest.raises(ConfigError, match="fewer than two"):
        command("ensemble", settings(folders, models=["a"]))
    with pytest.raises(ConfigError, match="not both"):
        command("ensemble", settings(folders, weights=[1, 1], fit=[str(folders / "dev.tsv")]))
    with pytest.raises(ConfigError, match="weights"):
        command("ensemble", settings(folders, weights=[1, 2, 3]))
    assert not (folders / "both").exists()


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ("1.0\ta\tb\nx\ty\n", r"bad\.tsv:2: not score"),
        ("1\ta\tb\nnan\tb\tc\n2\ta\tc\n", r"bad\.tsv:2: the score is nan"),
        ("1\ta\tb\n1\tb\tc\n1\ta\tc\n", r"bad\.tsv: all scores are equal"),
        ("1\ta\tb\n", r"bad\.tsv: fitting weights .* it has 1"),
        ("a\tb\n", r"bad\.tsv: fitting weights .* it has 1"),
        ("", r"bad\.tsv: fitting weights .* it has 0"),
        ("1\t\t\n2\t\t\n3\t\t\n", r"bad\.tsv: all cosines are equal"),
    ],
)
def test_a_file_that_weights_cannot_be_fitted_on(folders, lines, found):
    (folders / "bad.tsv").write_text(lines, encoding="utf-8")
    with pytest.raises(InputError, match=found):
        command("ensemble", settings(folders, fit=[str(folders / "bad.tsv")]))
    assert not (folders / "both").exists()


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"models": "runs/q/model"}, r"models=runs/q/model: give a list, as in models=\["),
        ({"fit": "sc.tsv"}, r"fit=sc\.tsv: give a list, as in fit=\["),
        ({"weights": 1}, r"weights=1: give a list, as in weights=\["),
        ({"weights": ["a", "b"]}, "give numbers"),
    ],
)
def test_what_is_no_list_is_shown_one(folders, changes, found):
    with pytest.raises(ConfigError, match=found):
        run("ensemble", settings(folders, **changes))


def test_as_a_command(folders):
    models = f"models=[{folders}/noise,{folders}/good]"
    done = run_verb("ensemble", models, "weights=[1,3]", "output=both", "threads=1", cwd=folders)
    assert done.returncode == 0, done.stderr
    assert "0.750" in done.stdout
    assert xswe.load(folders / "both").weights == (0.25, 0.75)
