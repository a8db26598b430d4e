"""Float16 and int8 matrices: what they are worth, what they weigh, and who can read them."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as some
from safetensors.numpy import load_file, save_file
from tokenizers import Tokenizer

import xswe
from tests.conftest import OTHER_LIBRARIES, encoded_by
from xswe.errors import ConfigError, ModelError
from xswe.io.ragged import Bags
from xswe.model import precision
from xswe.model.kernels import sum_rows
from xswe.model.static import StaticModel, pool, pool_plainly
from xswe.text.subwords import SubwordUnits
from xswe.text.words import WordSplitter, WordUnits

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


@pytest.mark.parametrize("library", OTHER_LIBRARIES)
@pytest.mark.parametrize(("dtype", "tolerance"), [("float16", 2e-3), ("int8", 1e-5)])
def test_other_libraries_read_the_folder_and_agree(model, texts, tmp_path, dtype, tolerance, library):
    model.save(tmp_path / "m", dtype=dtype)
    # sentence-transformers normalises in half precision then, where a zero vector becomes NaN: only texts with units.
    texts = [text for text in texts if text]
    ours = model.quantize(dtype).encode(texts)
    np.testing.assert_allclose(encoded_by(library, tmp_path / "m", texts), ours, atol=tolerance)


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


def test_parts_that_are_few_rows_already_stay_what_they_are():
    """Two hundred rows a part, the last part narrower: each unit finds its own."""
    rng = np.random.default_rng(3)
    matrix = np.concatenate([rng.normal(size=(200, 3)).astype(np.float32)[rng.integers(0, 200, 1500)] for _ in range(4)], 1)
    matrix[7] = 0.0
    found, scales = precision.share_rows(matrix[:, :11], 3, np.ones(1500))
    assert np.abs(precision.restore(found, scales) - matrix[:, :11]).max() <= 0.501 * scales[0]
    assert not found[7].any()
    again = precision.unpack(precision.pack(found, float(scales[0]), 3), 11)
    assert (again[0].tobytes(), again[1].tobytes()) == (found.tobytes(), scales.tobytes())


def test_shared_rows_are_few_and_near(model):
    model = model.truncate(8)
    shared = model.share_rows(4)
    parts = [shared.matrix[:, start : start + 4] for start in range(0, model.dim, 4)]
    assert max(len(np.unique(part, axis=0)) for part in parts) <= 256
    assert not shared.matrix[~model.matrix.any(axis=1)].any()

    def off(some, units):
        return np.linalg.norm((some.vectors - model.vectors)[units]) / np.linalg.norm(model.vectors[units])

    # 256 rows drawn at random are off by 0.39 of the norm.
    everything, frequent = slice(None), np.arange(len(model.matrix)) % 5 == 0
    assert off(shared, everything) < 0.33
    assert off(model.share_rows(2), everything) < 0.5 * off(shared, everything)
    counted = replace(model, counts=np.where(frequent, 60_000, 0).astype(np.uint16)[None].repeat(len(ALL), 0))
    assert off(counted.share_rows(4), frequent) < 0.9 * off(shared, frequent)
    assert model.share_rows(4).identity == shared.identity != model.quantize("int8").identity


def test_a_folder_of_shared_rows_is_the_same_model(model, texts, tmp_path):
    shared = replace(model.truncate(11), counts=np.ones((len(ALL), len(model.matrix)), np.uint8)).share_rows(4)
    shared.save(tmp_path / "m")
    config = json.loads((tmp_path / "m" / "config.json").read_text())
    assert (config["format_version"], config["embedding_dtype"], config["shared"]) == (2, "int8", 4)
    assert (tmp_path / "m" / "codes.safetensors").stat().st_size < (len(model.matrix) + 256 * 4) * 3 + 400
    again = xswe.load(tmp_path / "m")
    assert (again.dtype, again.shared, again.identity) == ("int8", 4, shared.identity)
    assert again.description == {"teacher": "none"}
    assert again.encode(texts).tobytes() == shared.encode(texts).tobytes()
    again.prune(2900).save(tmp_path / "n")
    small = xswe.load(tmp_path / "n")
    assert (small.shared, small.encode(texts).tobytes()) == (4, again.prune(2900).encode(texts).tobytes())
    # What other libraries are to open has rows of its own.
    again.save(tmp_path / "m", dtype="int8")
    ordinary = xswe.load(tmp_path / "m")
    assert not (tmp_path / "m" / "codes.safetensors").exists()
    assert (ordinary.shared, ordinary.identity) == (0, shared.identity)
    assert [m.shared for m in (again.truncate(8), again.rotate(), again.quantize("float16"))] == [0, 0, 0]


@pytest.mark.parametrize("library", OTHER_LIBRARIES)
def test_other_libraries_find_no_matrix_where_rows_are_shared(model, tmp_path, library):
    model.truncate(8).share_rows(4).save(tmp_path / "m")
    with pytest.raises(ValueError, match="Could not find"):
        encoded_by(library, tmp_path / "m", ["a"])


@pytest.mark.slow
def test_the_module_of_our_own_has_shared_rows(model, texts, tmp_path):
    pytest.importorskip("sentence_transformers")
    from xswe.model.st_module import sentence_transformer

    shared = model.truncate(8).share_rows(4)
    shared.save(tmp_path / "m")
    theirs = sentence_transformer(tmp_path / "m", device="cpu").encode(texts)
    np.testing.assert_allclose(theirs, shared.encode(texts), atol=1e-6)


def test_words_share_rows_too(tokenizer, tmp_path):
    units = WordUnits(["the", "cat", "sleeps"], WordSplitter(("en",), {}, tokenizer), tokenizer)
    shared = StaticModel(units, np.eye(3, 6, dtype=np.float32)).share_rows(4)
    shared.save(tmp_path / "m")
    np.testing.assert_array_equal(xswe.load(tmp_path / "m").vectors, np.eye(3, 6, dtype=np.float32))


def test_what_cannot_be_shared_is_said(model, tmp_path):
    for width in (0, 9):
        with pytest.raises(ConfigError, match="1 to 8 dimensions"):
            model.share_rows(width)
    with pytest.raises(ModelError, match="int8 matrix only"):
        replace(model, shared=4)
    with pytest.raises(ModelError, match="call share_rows first"):
        replace(model.quantize("int8"), shared=8).save(tmp_path / "m")
    assert not (tmp_path / "m").exists()


def test_numbers_that_are_not_finite_are_found_wherever_they_stand():
    for dtype in (np.float32, np.float16):
        assert precision.is_finite(np.zeros((0, 3), dtype))
        for bad in (np.inf, -np.inf, np.nan):
            for row, column in ((0, 0), (4999, 1), (2500, 0)):
                matrix = np.ones((5000, 2), dtype)
                matrix[::2] = -1
                assert precision.is_finite(matrix)
                matrix[row, column] = bad
                assert not precision.is_finite(matrix)
    assert precision.is_finite(np.full((1, 2), np.finfo(np.float16).max, np.float16))
    assert precision.is_finite(np.zeros((2, 2), np.int8))


def test_packed_parts_cover_the_dimensions_and_no_more():
    rng = np.random.default_rng(0)
    for width in (1, 3, 8):
        for dim in (1, width, width + 1, 2 * width, 2 * width + 1):
            matrix = rng.integers(-5, 6, (9, dim)).astype(np.int8)
            tensors = precision.pack(matrix, 0.25, width)
            assert tensors["codes"].shape == (9, -(-dim // width))
            made, scales = precision.unpack(tensors, dim)
            assert (made.tolist(), scales.tolist()) == (matrix.tolist(), [0.25] * 9)
            parts = tensors["codes"].shape[1]
            for wrong in ((parts - 1) * width, parts * width + 1):
                with pytest.raises(ValueError, match=f"{parts} parts of {width} dimensions are not {wrong}"):
                    precision.unpack(tensors, wrong)
    with pytest.raises(ValueError, match=r"codes are uint16 \(9, \d\), rows int8"):
        precision.unpack(tensors | {"codes": tensors["codes"].astype(np.uint16)}, dim)
    distinct = np.arange(257).astype(np.int16).view(np.int8).reshape(257, 2)
    assert len(np.unique(precision.unpack(precision.pack(distinct[:256], 1.0, 2), 2)[0], axis=0)) == 256
    with pytest.raises(ModelError) as found:
        precision.pack(distinct, 1.0, 2)
    assert str(found.value) == "a part of the matrix has 257 rows, 256 can be shared: call share_rows first"


def test_the_largest_number_of_half_precision_is_kept():
    most = float(np.finfo(np.float16).max)
    for sign in (1, -1):
        assert precision.convert(np.array([[sign * most, 0.0]], np.float32), "float16")[0][0, 0] == sign * most
        with pytest.raises(ModelError) as found:
            precision.convert(np.array([[sign * (most + 1), 0.0]], np.float32), "float16")
        assert str(found.value) == (
            "the vectors hold numbers above 65504, which float16 cannot: scale them, or use float32 or int8"
        )
    assert precision.convert(np.zeros((0, 2), np.float32), "float16")[0].shape == (0, 2)
