from __future__ import annotations

import copy
import json
import multiprocessing
import pickle
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers

import xswe
import xswe.errors
from tests.conftest import OTHER_LIBRARIES, encoded_by
from xswe.errors import ModelError
from xswe.io.ragged import Bags, Texts
from xswe.model.ensemble import Ensemble
from xswe.model.static import StaticModel, pool
from xswe.text.subwords import SubwordUnits
from xswe.text.words import WordSplitter, WordUnits

ALL = ("en", "de", "zh", "ja")


def make(tokenizer_json, width=12):
    units = SubwordUnits(Tokenizer.from_str(tokenizer_json), "subwords", ALL)
    matrix = np.random.default_rng(0).normal(size=(len(units.tokens), width)).astype(np.float32)
    matrix[[not token for token in units.tokens]] = 0.0
    return StaticModel(units, matrix, {"teacher": "none"})


@pytest.fixture
def model(tokenizer_json):
    return make(tokenizer_json)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_pooling_is_the_mean(threads):
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(20, 7)).astype(np.float32)
    lists = [rng.integers(0, 20, rng.integers(0, 6)).tolist() for _ in range(30)]
    bags = Bags.of(lists)
    naive = np.array([matrix[one].mean(0) if one else np.zeros(7) for one in lists])
    np.testing.assert_allclose(pool(matrix, bags, normalise=False, threads=threads), naive, atol=1e-6)
    norms = np.linalg.norm(naive, axis=1, keepdims=True)
    unit = pool(matrix, bags, normalise=True, threads=threads)
    np.testing.assert_allclose(unit, naive / np.where(norms > 0, norms, 1), atol=1e-6)


def test_rows_have_norm_one_or_zero_and_empty_texts_are_zero(model):
    vectors = model.encode(["A cat sleeps.", "", "   ", "猫が寝ている。", "\u3164"])
    assert vectors.dtype == np.float32
    assert vectors.shape == (5, 12)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), [1, 0, 0, 1, 0], atol=1e-6)
    assert model.encode([]).shape == (0, 12)
    np.testing.assert_array_equal(model.encode("A cat sleeps."), vectors[0])


@settings(max_examples=25)
@given(texts=st.lists(st.text(max_size=30), min_size=1, max_size=5), data=st.data())
def test_any_unicode_no_nan_and_order_does_not_matter(tokenizer_json, texts, data):
    model = make(tokenizer_json)
    vectors = model.encode(texts)
    assert np.isfinite(vectors).all()
    order = data.draw(st.permutations(range(len(texts))))
    np.testing.assert_array_equal(model.encode([texts[i] for i in order]), vectors[order])


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_and_streams_give_the_same_rows(model, sample, threads, monkeypatch):
    monkeypatch.setattr("xswe.model.static.BLOCK", 100)
    texts = [t for code in ALL for t in sample[code][:300]] + ["", "x" * 6000]
    alone = np.stack([model.encode(text) for text in texts])
    assert model.encode(texts, threads=threads).tobytes() == alone.tobytes()
    assert model.encode((t for t in texts), threads=threads).tobytes() == alone.tobytes()
    assert model.encode(Texts.of(texts), threads=threads).tobytes() == alone.tobytes()
    blocks = list(model.encode_stream(iter(texts), threads=threads, block=64))
    assert [len(b) for b in blocks] == [64] * (len(texts) // 64) + ([len(texts) % 64] if len(texts) % 64 else [])
    assert np.concatenate(blocks).tobytes() == alone.tobytes()
    assert list(model.encode_stream([], threads=threads)) == []


def test_a_stream_takes_no_more_texts_than_it_needs(model):
    taken = []
    stream = model.encode_stream((taken.append(k) or f"text {k}" for k in range(10_000)), threads=2, block=10)
    next(stream)
    assert len(taken) <= 10 * 8
    stream.close()


def test_an_error_in_a_thread_reaches_the_caller(model):
    with pytest.raises(TypeError, match=r"texts\[10000\] is NoneType"):
        model.encode(["a"] * 10_000 + [None] * 10, threads=2)


@pytest.mark.parametrize("worth", [False, True])  # without and with the compiled look-up
def test_what_is_no_text_is_named(any_model, worth):
    parts = getattr(any_model, "parts", [any_model])
    for part in parts:
        part.units._worth = lambda _: worth
    for bad in (None, 5, float("nan"), b"cat", b"\xff", ["cat"], ("a", "b"), np.array(["cat", "dog"])):
        message = rf"texts\[2\] is {type(bad).__name__}, not a str"
        with pytest.raises(TypeError, match=message):
            any_model.encode(["a", "b", bad])
        with pytest.raises(TypeError, match=message):
            list(parts[0].encode_stream(iter(["a", "b", bad, "c"]), threads=2, block=2))


def test_a_stream_of_one_bare_text_is_refused(model):
    with pytest.raises(TypeError, match="one str"):
        model.encode_stream("abc")
    with pytest.raises((TypeError, AttributeError)):
        list(model.encode_stream(["a"] * 10_000 + [None] * 10, threads=2))


def test_models_introduce_themselves_in_a_line(model, tokenizer):
    words = words_model(tokenizer)
    assert repr(model) == f"StaticModel(subwords, en-de-zh-ja, {len(model.matrix)} x 12 float32)"
    assert repr(Ensemble.of([model.quantize("int8"), words], [3, 1])) == (
        f"Ensemble(en-de-zh-ja, 16 dimensions, {{0.75: {model.quantize('int8')}, 0.25: {words}}})"
    )


def test_round_trip(model, tmp_path, sample):
    model.save(tmp_path / "m")
    again = xswe.load(tmp_path / "m")
    texts = sample["en"][:20] + sample["zh"][:20] + sample["ja"][:20]
    assert again.encode(texts).tobytes() == model.encode(texts).tobytes()
    assert again.description == {"teacher": "none"}
    assert again.languages == ALL
    assert sorted(p.name for p in (tmp_path / "m").iterdir()) == [
        "1_Normalize",
        "config.json",
        "model.safetensors",
        "modules.json",
        "tokenizer.json",
    ]


def test_word_models_round_trip(tmp_path, tokenizer, sample):
    splitter = WordSplitter(("en", "ja"), {"ja": "teacher"}, tokenizer)
    units = WordUnits(["cat", "The", "the", "猫", "で"], splitter, tokenizer)
    matrix = np.random.default_rng(1).normal(size=(5, 4)).astype(np.float32)
    model = StaticModel(units, matrix, {"corpora": ["田中コーパス"]})
    model.save(tmp_path / "m")
    texts = sample["en"][:50] + sample["ja"][:50] + ["THE cat猫"]
    assert xswe.load(tmp_path / "m").encode(texts).tobytes() == model.encode(texts).tobytes()
    assert '"田中コーパス"' in (tmp_path / "m" / "config.json").read_text(encoding="utf-8")  # people read it


def words_model(tokenizer, chinese="teacher"):
    """Return a model of words; jieba, which every copy reads anew, takes a second."""
    splitter = WordSplitter(ALL, {"zh": chinese, "ja": "teacher"}, tokenizer)
    units = WordUnits(["cat", "The", "the", "猫", "で", "的", "und"], splitter, tokenizer)
    return StaticModel(units, np.random.default_rng(1).normal(size=(7, 4)).astype(np.float32))


def teachers_model():
    """Of pieces that only their own tokenizer looks up."""
    tokenizer = Tokenizer(models.WordPiece({"[UNK]": 0, "the": 1, "a": 2, "##t": 3, "猫": 4}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return StaticModel(SubwordUnits(tokenizer, "teacher", ALL), np.eye(5, 3, dtype=np.float32))


@pytest.fixture(params=["subwords", "loaded", "words", "teacher", "ensemble"])
def any_model(request, model, tokenizer, tmp_path):
    if request.param == "loaded":
        model.save(tmp_path / "m")
        return xswe.load(tmp_path / "m").quantize("int8")
    makers = {"subwords": lambda: model, "words": lambda: words_model(tokenizer, "jieba"), "teacher": teachers_model}
    makers["ensemble"] = lambda: Ensemble.of([model, words_model(tokenizer)])
    return makers[request.param]()


class Always:
    """Takes any texts to be worth a compiled look-up."""

    def __call__(self, texts):
        return True


def test_copies_encode_alike(any_model, sample):
    texts = [text for code in ALL for text in sample[code][:40]]
    for part in getattr(any_model, "parts", [any_model]):
        part.units._worth = Always()  # with the compiled look-up
    expected = any_model.encode(texts, threads=2)
    for copied in (copy.deepcopy(any_model), pickle.loads(pickle.dumps(any_model))):
        assert copied.encode(texts).tobytes() == expected.tobytes()
        assert copied.encode(texts, threads=2).tobytes() == expected.tobytes()


def test_a_spawned_process_gets_a_model_and_encodes(model, tokenizer, sample):
    both = Ensemble.of([model, words_model(tokenizer)])
    texts = sample["ja"][:20]
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as workers:
        found = workers.submit(both.encode, texts).result(timeout=120)
    assert found.tobytes() == both.encode(texts).tobytes()


@pytest.mark.parametrize("library", OTHER_LIBRARIES)
def test_other_libraries_read_the_folder_and_agree(model, tmp_path, sample, library):
    model.save(tmp_path / "m")
    texts = [t for code in ALL for t in sample[code][:100]] + ["", "a", "x" * 50]
    np.testing.assert_allclose(encoded_by(library, tmp_path / "m", texts), model.encode(texts), atol=1e-6)


def test_an_existing_model_is_replaced_and_anything_else_is_left_alone(model, tmp_path):
    model.save(tmp_path / "m")
    model.save(tmp_path / "m")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    with pytest.raises(ModelError, match="no model folder"):
        model.save(tmp_path / "mine")
    assert (tmp_path / "mine" / "thesis.txt").exists()
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".")] == []


def damage_config(folder, **changes):
    config = json.loads((folder / "config.json").read_text())
    config.update(changes)
    (folder / "config.json").write_text(json.dumps(config))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: (f / "config.json").unlink(), r"config\.json: missing"),
        (lambda f: (f / "config.json").write_text("{"), r"config\.json: damaged"),
        (lambda f: (f / "config.json").write_text("[]"), r"config\.json: damaged"),
        (lambda f: damage_config(f, format_version=99), "newer than"),
        (lambda f: damage_config(f, model_type="bert"), "another library"),
        (lambda f: damage_config(f, hidden_dim=13), r"model\.safetensors"),
        (lambda f: damage_config(f, units={"kind": "bytes", "languages": ["en"]}), "units.kind"),
        (lambda f: damage_config(f, units={"kind": "subwords", "languages": ["xx"]}), "unknown language"),
        (lambda f: (f / "model.safetensors").unlink(), r"model\.safetensors: missing"),
        (lambda f: (f / "model.safetensors").write_bytes(b"\x80\x04pickle"), r"model\.safetensors: damaged"),
        (lambda f: (f / "model.safetensors").write_bytes((f / "model.safetensors").read_bytes()[:-9]), "damaged"),
        (lambda f: (f / "tokenizer.json").unlink(), r"tokenizer\.json"),
        (lambda f: (f / "tokenizer.json").write_text("no"), r"tokenizer\.json: not a tokenizer"),
    ],
)
def test_damaged_folders_say_which_file_and_why(model, tmp_path, damage, message):
    model.save(tmp_path / "m")
    damage(tmp_path / "m")
    with pytest.raises(xswe.errors.XsweError, match=message):
        xswe.load(tmp_path / "m")


def test_a_matrix_that_is_not_finite_is_refused(model, tmp_path):
    model.matrix[3, 3] = np.nan
    model.save(tmp_path / "m")
    with pytest.raises(ModelError, match="not finite"):
        xswe.load(tmp_path / "m")


def test_a_missing_folder():
    with pytest.raises(ModelError, match="no such folder"):
        xswe.load("/nowhere/at/all")


def test_a_run_folder_says_where_its_model_is(model, tmp_path):
    model.save(tmp_path / "run" / "model")
    with pytest.raises(ModelError, match=r"the run's model is .*run.model$"):
        xswe.load(tmp_path / "run")


def test_a_matrix_of_another_size_is_refused(model):
    with pytest.raises(ModelError, match="vectors for"):
        StaticModel(model.units, model.matrix[:-1])
    with pytest.raises(ModelError, match="float32"):
        StaticModel(model.units, model.matrix.astype(np.float64))


def test_loading_and_encoding_import_neither_torch_nor_transformers(model, tmp_path):
    model.save(tmp_path / "m")
    code = (
        "import sys, xswe\n"
        "assert not {'torch', 'transformers', 'numpy'} & set(sys.modules), 'import xswe'\n"
        f"xswe.load({str(tmp_path / 'm')!r}).encode(['a', '猫'])\n"
        "others = {'torch', 'transformers', 'sklearn', 'hydra', 'datasets', 'mteb'}\n"
        "assert not (others | {'numba', 'scipy'}) & set(sys.modules), 'a few texts need no compiler'\n"
        f"few = xswe.load({str(tmp_path / 'm')!r}).encode(['猫 a', 'b'])\n"
        f"many = xswe.load({str(tmp_path / 'm')!r}).encode(['猫 a', 'b'] * 100_000)\n"
        "assert 'numba' in sys.modules and not (others | {'scipy.linalg'}) & set(sys.modules)\n"
        "assert sys.modules['numba.np.linalg'].ensure_blas.__name__ == 'ensure_blas', 'others may need BLAS'\n"
        "assert (few == many[-2:]).all() and few.any(1).all(), 'the compiled code gives the same bits'\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
