"""The figures of a space of vectors, against the same worked out plainly."""

from __future__ import annotations

import math

import numpy as np
import pytest

pytest.importorskip("jinja2", reason="pages need Jinja2: pip install 'xswe[report]'")

from xswe.errors import ConfigError, InputError
from xswe.report import space as module
from xswe.report.space import (
    Space,
    _components,
    _lines,
    _norms,
    _reciprocity,
    _speech,
    _without,
    export_space,
    open_space,
)


def unit(rows):
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture
def space():
    """Ten sentences in two languages in a space of four dimensions; of four their translation is the nearest."""
    draw = np.random.default_rng(4)
    left, right = draw.standard_normal((2, 10, 4))
    right[:4] = left[:4] + 0.01
    texts = {"en": ["x" * (3 + n) for n in range(10)], "de": ["ü" * (3 + n % 4) for n in range(10)]}
    return Space(None, texts, {"en": unit(left), "de": unit(right)})


def share(text):
    return float(text.removesuffix("%").strip()) / 100


def test_neighbours_are_counted_in_both_directions(space):
    ((name, *cells),) = _reciprocity(space)
    left, right = space.vectors.values()
    nearest = [max(range(10), key=lambda b: float(left[a] @ right[b])) for a in range(10)]
    back = [max(range(10), key=lambda a: float(left[a] @ right[b])) for b in range(10)]
    assert name == "en-de"
    assert [share(cell) for cell in cells[:3]] == pytest.approx(
        [
            sum(b == a for a, b in enumerate(nearest)) / 10,
            sum(a == b for b, a in enumerate(back)) / 10,
            sum(back[b] == a for a, b in enumerate(nearest)) / 10,
        ],
        abs=1e-3,
    )
    low, high = map(share, cells[3].split(" to "))
    assert low < share(cells[2]) < high
    assert share(cells[4]) == pytest.approx(sum(nearest.count(b) == 0 for b in range(10)) / 10, abs=1e-3)
    assert int(cells[5]) == max(map(nearest.count, range(10)))
    three = Space(None, space.texts | {"ja": space.texts["en"]}, space.vectors | {"ja": left})
    assert [row[0] for row in _reciprocity(three)] == ["en-de", "en-ja", "de-ja"]
    assert share(_reciprocity(three)[1][3]) == 1.0


def test_directions_that_are_taken_out_are_gone():
    rows, mean = np.random.default_rng(0).standard_normal((6, 4)), np.array([0.5, 0, 0, -1])
    axes = np.linalg.qr(np.random.default_rng(1).standard_normal((4, 2)))[0].T
    found = _without(rows, mean, axes)
    for row, own in zip(rows, found, strict=True):
        left = row - mean
        for axis in axes:
            left = left - (left @ axis) * axis
        assert own == pytest.approx(left / math.sqrt(left @ left), abs=1e-6)
    assert not _without(mean[None], mean, axes).any()


def test_what_language_and_length_explain_of_a_component(space, monkeypatch):
    monkeypatch.setattr(module, "_COMPONENTS", 3)
    every = np.concatenate(list(space.vectors.values())).astype(np.float64)
    _, values, axes = np.linalg.svd(every - every.mean(0), full_matrices=False)
    rows, drawn = _components(space, every, values, axes)
    assert [row[0] for row in rows] == ["PC 1", "PC 2", "PC 3"]
    texts = [text for own in space.texts.values() for text in own]
    for k, (_, *cells) in enumerate(rows):
        places = [(row - every.mean(0)) @ axes[k] for row in every]
        whole = sum((place - np.mean(places)) ** 2 for place in places)
        within = sum((place - np.mean(own)) ** 2 for own in (places[:10], places[10:]) for place in own)
        length = np.corrcoef(places, [math.log(len(text.encode())) for text in texts])[0, 1] ** 2
        wanted = [values[k] ** 2 / sum(values**2), 1 - within / whole, length]
        assert [share(cell) for cell in cells] == pytest.approx(wanted, abs=1e-3)
    assert drawn.count("<rect") == 6


def test_norms_of_words_by_their_frequency():
    words = [(f"w{n}", 2**n, 1.0 - n / 20) for n in range(11)]
    ((title, drawn, tied),) = _norms({"en": words, "de": words[:10]})  # too few words
    assert (title, tied) == ("English: norm of a word's vector by its frequency", pytest.approx(-1.0))
    assert drawn.count("<circle") == 11


def test_norms_by_part_of_speech(monkeypatch):
    tags = [
        ("Cat", "N"),
        ("Dog", "N"),
        ("house", "N"),
        ("house", "N"),
        ("runs", "V"),
        ("none", "N"),
        ("a", "D"),
        ("b", "D"),
        ("c", "D"),
    ]
    monkeypatch.setattr(module, "_tagged", lambda code, texts: iter(tags))
    monkeypatch.setattr(module, "find_spec", lambda name: None if name == "jieba" else object())
    counted = [
        ("Cat", 9, 1.0),
        ("dog", 9, 2.0),
        ("house", 9, 6.0),
        ("runs", 9, 1.0),
        ("a", 9, 0.5),
        ("b", 9, 0.5),
        ("c", 9, 0.5),
    ]
    found = _speech(Space(None, {"en": [], "zh": []}, {}), {"en": counted, "zh": counted})
    kinds = {"N": [1.0, 2.0, 6.0], "D": [0.5] * 3}
    assert [row[:3] for row in found] == [("en", kind, "3") for kind in kinds]
    for (*_, mean, deviation), own in zip(found, kinds.values(), strict=True):
        assert (float(mean), float(deviation)) == (
            pytest.approx(np.mean(own), abs=1e-3),
            pytest.approx(np.std(own), abs=1e-3),
        )


def test_lines_that_all_languages_have(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("a\tA\tあ\nb\tB\t\nc\t\tう\na\tA2\tあ2\nd\tD\tえ\n", "utf-8")
    assert _lines(path, ("en", "de")) == [("a", "A"), ("b", "B"), ("a", "A2"), ("d", "D")]
    assert _lines(path, ("en", "de", "ja")) == [("a", "A", "あ"), ("d", "D", "え")]


def test_what_no_space_is_made_of(tmp_path, random_model):
    import xswe

    model, path = xswe.load(random_model), tmp_path / "a.tsv"
    path.write_text("a\tb\n" * (2 * module._COMPONENTS - 1), "utf-8")
    with pytest.raises(InputError, match="pairs are too few"):
        open_space(model, path, ("en", "ja"))
    for codes in (("en",), ("en", "en")):
        with pytest.raises(ConfigError, match="name those of the bitext"):
            open_space(model, path, codes)
    with pytest.raises(ConfigError, match="single static model"):
        open_space(None, path, ("en", "ja"))
    path.write_text("".join(f"the cat {n}\tb {n}\n" for n in range(2 * module._COMPONENTS)), "utf-8")
    assert len(open_space(model, path, ("en", "ja")).texts["ja"]) == 2 * module._COMPONENTS


def test_a_space_is_exported_line_by_line(tmp_path):
    vectors = {"en": np.array([[1, 0], [0.6, 0.8]], np.float32), "de": np.array([[0, -1]], np.float32)}
    folder = export_space(Space(None, {"en": ["a\tb", "c \n d"], "de": ["e"]}, vectors), tmp_path / "map")
    files = {path.name: path.read_text("utf-8") for path in folder.iterdir() if path.suffix != ".parquet"}
    assert files == {
        "vectors.tsv": "1.000000\t0.000000\n0.600000\t0.800000\n0.000000\t-1.000000\n",
        "metadata.tsv": "language\ttext\nen\ta b\nen\tc d\nde\te\n",
        "projector_config.pbtxt": 'embeddings {\n  tensor_path: "vectors.tsv"\n  metadata_path: "metadata.tsv"\n}\n',
    }


def test_an_atlas_holds_places_and_nearest_sentences(space, tmp_path, monkeypatch):
    parquet = pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr(module, "_NEIGHBOURS", 3)
    table = parquet.read_table(export_space(space, tmp_path / "map") / "atlas.parquet")
    assert table.column_names == ["language", "text", "x", "y", "neighbors"]
    rows = table.to_pylist()
    assert [row["language"] for row in rows] == ["en"] * 10 + ["de"] * 10
    assert [row["text"] for row in rows] == [*space.texts["en"], *space.texts["de"]]
    every = np.concatenate(list(space.vectors.values()))
    _, axes = np.linalg.eigh(np.cov(every.T))
    for name, axis in (("x", axes[:, -1]), ("y", axes[:, -2])):
        places = (every - every.mean(0)) @ axis
        drawn = np.array([row[name] for row in rows])
        assert drawn * np.sign(drawn @ places) == pytest.approx(places, abs=1e-4)
    for row, vector in zip(rows, every, strict=True):
        cosines = every @ vector
        order = sorted(range(20), key=lambda one: -cosines[one])[:4]
        assert row["neighbors"]["ids"] == order
        assert row["neighbors"]["distances"] == pytest.approx([1 - cosines[one] for one in order], abs=1e-5)
        assert min(row["neighbors"]["distances"]) >= 0
