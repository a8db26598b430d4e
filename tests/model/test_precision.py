"""Float16 and int8 matrices: what they are worth, what they weigh, and who can read them."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as some
from safetensors.numpy import load_file, save_file
from tokenizers import Tokenizer

import xswe
from xswe.errors import ConfigError, ModelError
from xswe.io.ragged import Bags
from xswe.model import folder as precision
from xswe.model.kernels import sum_rows
from xswe.model.static import StaticModel, pool, pool_plainly
from xswe.text.subwords import SubwordUnits

ALL = ("en", "de", "zh", "ja")
PRECISIONS = ("float32", "float16", "int8")


@pytest.fixture(scope="module")
def model(tokenizer_json):
    units = SubwordUnits(Tokenizer.from_str(tokenizer_json), "subwords", ALL)
    matrix = np.random.default_rng(0).normal(0, 0.05, (len(units), 32)).astype(np.float32)
    matrix *= np.random.default_rng(1).uniform(0.1, 10, (len(units), 1)).astype(np.float32)  # norms tell rows' weights
    matrix[[not token for token in units.tokens]] = 0.0
    return StaticModel(units, matrix, {"teacher": "none"})


@pytest.fixture(scope="module")
def texts(sample):
    return [t for code in ALL for t in sample[code][:100]] + ["", "a", "x" * 50]


rows = some.arrays(
    np.float32,
    some.array_shapes(min_dims=2, max_dims=2, max_side=8),
    elements=st.floats(-(2.0**100), 2.0**100, width=32),
)


@given(rows)
def test_int8_is_off_by_half_a_scale_at_most(matrix):
    numbers, scales = precision.quantise(matrix)
    assert np.abs(numbers.astype(int)).max(initial=0) <= 127
    off = np.abs(precision.restore(numbers, scales).astype(np.float64) - matrix)
    assert (off <= 0.501 * scales[:, None] + 1e-37).all()  # below the smallest scale a row is as good as zero


def test_rows_of_zeros_and_of_one_magnitude():
    numbers, scales = precision.quantise(np.array([[0.0, 0.0], [-2.54, 2.54], [1e-45, 0.0]], np.float32))
    assert numbers.tolist()[:2] == [[0, 0], [-127, 127]]
    np.testing.assert_allclose(scales, [0, 0.02, 0], atol=1e-9)


@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize("normalise", [False, True])
@pytest.mark.parametrize("width", [1, 2, 7, 256])
def test_gathering_from_any_precision_equals_numpy_bit_by_bit(dtype, normalise, width):
    rng = np.random.default_rng(width)
    matrix, scales = precision.convert(rng.normal(0, 0.05, (50, width)).astype(np.float32), dtype)
    bags = Bags.of([rng.integers(0, 50, n).tolist() for n in (0, 1, 2, 3, 4, 5, 8, 9, 30)])
    plain = np.empty((len(bags), width), np.float32)
    pool_plainly(matrix, scales, bags, normalise, plain)
    wide = pool(precision.restore(matrix, scales), bags, normalise=normalise)
    for threads in (1, 2):
        assert pool(matrix, bags, normalise=normalise, scales=scales, threads=threads).tobytes() == plain.tobytes()
    assert wide.tobytes() == plain.tobytes()


def test_sums_of_rows_are_numpys():
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(50, 7)).astype(np.float32)
    bags = Bags.of([rng.integers(0, 50, n).tolist() for n in range(10)])
    found = np.full((10, 7), np.nan, np.float32)
    sum_rows(matrix, bags.ids, bags.offsets[:-1], bags.offsets[1:], found)
    wanted = np.zeros((10, 7))
    np.add.at(wanted, np.repeat(np.arange(10), bags.lengths), matrix[bags.ids])
    np.testing.assert_allclose(found, wanted, atol=1e-5)


def test_every_finite_float16_is_read_exactly():
    numbers = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    numbers = numbers[np.isfinite(numbers)]
    bags = Bags(np.arange(len(numbers), dtype=np.int32), np.arange(len(numbers) + 1))
    found = pool(numbers.reshape(-1, 1), bags, normalise=False)
    np.testing.assert_array_equal(found[:, 0], numbers.astype(np.float32))


@pytest.mark.parametrize(("dtype", "tolerance"), [("float16", 1e-3), ("int8", 1e-2)])
def test_vectors_stay_what_they_were(model, texts, dtype, tolerance):
    exact, found = model.encode(texts), model.quantize(dtype).encode(texts)
    np.testing.assert_allclose(found, exact, atol=tolerance)
    some_unit = np.linalg.norm(exact, axis=1) > 0
    assert ((exact * found).sum(1)[some_unit] > 1 - tolerance).all()


@pytest.mark.parametrize("dtype", PRECISIONS)
def test_round_trip(model, texts, tmp_path, dtype):
    model.save(tmp_path / "m", dtype=dtype)
    again = xswe.load(tmp_path / "m")
    assert again.dtype == dtype
    assert json.loads((tmp_path / "m" / "config.json").read_text())["embedding_dtype"] == dtype
    assert again.encode(texts).tobytes() == model.quantize(dtype).encode(texts).tobytes()
    assert again.description == {"teacher": "none"}
    again.save(tmp_path / "n")
    for name in ("model.safetensors", "config.json"):
        assert (tmp_path / "n" / name).read_bytes() == (tmp_path / "m" / name).read_bytes()


@pytest.mark.parametrize(("dtype", "tolerance"), [("float16", 2e-3), ("int8", 1e-5)])
def test_three_libraries_read_one_folder_and_agree(model, texts, tmp_path, dtype, tolerance):
    sentence_transformers = pytest.importorskip("sentence_transformers")
    model2vec = pytest.importorskip("model2vec")
    model.save(tmp_path / "m", dtype=dtype)
    # sentence-transformers normalises in half precision then, where a zero vector becomes NaN: only texts with units.
    texts = [text for text in texts if text]
    ours = model.quantize(dtype).encode(texts)
    theirs = sentence_transformers.SentenceTransformer(str(tmp_path / "m"), device="cpu").encode(texts)
    np.testing.assert_allclose(theirs, ours, atol=tolerance)
    theirs = model2vec.StaticModel.from_pretrained(str(tmp_path / "m")).encode(texts, max_length=None)
    np.testing.assert_allclose(theirs, ours, atol=tolerance)


def test_sizes_on_the_disk(tokenizer, tmp_path):
    units = SubwordUnits(tokenizer, "subwords", ALL)
    model = StaticModel(units, np.random.default_rng(0).normal(size=(len(units), 256)).astype(np.float32))
    for dtype, size in (("float32", 4 * 256), ("float16", 2 * 256), ("int8", 256 + 4)):
        model.save(tmp_path / dtype, dtype=dtype)
        assert 0 <= (tmp_path / dtype / "model.safetensors").stat().st_size - size * len(units) < 300


def test_what_does_not_fit_is_refused(model):
    with pytest.raises(ConfigError, match="float32, float16, int8"):
        model.quantize("int4")
    large = StaticModel(model.units, np.full_like(model.matrix, 1e5))
    with pytest.raises(ModelError, match="65504"):
        large.quantize("float16")
    with pytest.raises(ModelError, match="needs scales"):
        StaticModel(model.units, model.matrix.astype(np.int8))
    with pytest.raises(ModelError, match="scales are float64"):
        StaticModel(model.units, model.matrix.astype(np.int8), scales=np.ones(len(model.matrix)))


def change(folder, **tensors):
    path = folder / "model.safetensors"
    save_file({k: v for k, v in {**load_file(path), **tensors}.items() if v is not None}, path)


@pytest.mark.parametrize(
    ("dtype", "damage", "message"),
    [
        ("int8", {"weights": None}, "one float32 factor a row"),
        ("int8", {"weights": np.ones(3, np.float32)}, "one float32 factor a row"),
        ("float32", {"weights": np.ones(3, np.float32)}, "one float32 factor a row"),
        ("float32", {"embeddings": np.ones((3, 32), np.float16)}, "config.json says float32"),
        ("float32", {"embeddings": np.ones((3, 32), np.float64)}, "embeddings is F64"),
        ("float16", {"embeddings": np.full((3, 32), np.inf, np.float16)}, "not finite"),
        ("int8", {"weights": "nan"}, "not finite"),
    ],
)
def test_damaged_folders_say_so(model, tmp_path, dtype, damage, message):
    model.save(tmp_path / "m", dtype=dtype)
    if isinstance(damage.get("weights"), str):
        damage = {"weights": np.full(len(model.matrix), np.nan, np.float32)}
    change(tmp_path / "m", **damage)
    with pytest.raises(ModelError, match=message):
        xswe.load(tmp_path / "m")


@given(
    some.arrays(np.float32, some.array_shapes(min_dims=2, max_dims=2, max_side=5), elements=st.floats(width=32)),
    st.sampled_from(["float32", "float16"]),
)
def test_finite_is_told_as_numpy_tells_it(matrix, dtype):
    with np.errstate(over="ignore"):
        matrix = matrix.astype(dtype)
    assert precision.is_finite(matrix) == bool(np.isfinite(matrix).all())
