"""Other libraries' models behind our interface: the same vectors as the library itself gives."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import xswe
from tests.conftest import OTHER_LIBRARIES
from xswe.errors import ConfigError, ModelError
from xswe.evaluation.encoders import StaticEncoder
from xswe.evaluation.models import ModelSpec, _unit, check_exists, open_encoder
from xswe.evaluation.speed import sentences_per_second
from xswe.model.ensemble import Ensemble
from xswe.model.precision import convert
from xswe.teacher.protocol import TeacherConfig
from xswe.text.languages import LANGUAGES

TEXTS = ["A cat sleeps on the roof.", "", "The train is late.", "猫が寝ている。"]


def test_vectors_of_others_get_norm_one():
    given = np.array([[3, 4], [0, 0], [1e-3, 0], [np.nan, -2], [np.inf, 2], [-np.inf, 0]])
    found = _unit(given)
    np.testing.assert_allclose(found, [[0.6, 0.8], [0, 0], [1, 0], [0, -1], [0, 1], [0, 0]], atol=1e-7)
    assert found.dtype == np.float32


@pytest.mark.parametrize("name", ["tests", "user/repository"])
def test_names_of_a_hub_are_not_looked_for(name):
    check_exists(ModelSpec.of(f"st:{name}"))
    check_exists(ModelSpec.of("mini"))
    with pytest.raises(ModelError, match=r"^nowhere/at/all: no such folder or file; give a model folder, a file of"):
        check_exists(ModelSpec.of("nowhere/at/all"))


def test_our_folder(random_model):
    encoder = open_encoder(str(random_model), 1)
    assert (encoder.name, encoder.languages, encoder.dim) == ("run/model", ("en", "ja"), 8)
    assert encoder.size == 4 * encoder.parameters
    renamed = open_encoder({"path": str(random_model), "name": "ours", "languages": ["ja"]}, 1)
    assert (renamed.name, renamed.languages) == ("ours", ("ja",))
    np.testing.assert_array_equal(renamed.encode(TEXTS), encoder.encode(TEXTS))


def test_models_whose_numbers_have_one_sum_are_told_apart(random_model):
    model = xswe.load(random_model)
    others = [replace(model, matrix=made) for made in (model.matrix[::-1].copy(), -model.matrix)]
    few = convert(model.matrix, "int8")
    others += [replace(model, matrix=few[0], scales=scales) for scales in (few[1], few[1] * 2)]
    identities = [one.identity for one in (model, *others)]
    assert len(set(identities)) == len(identities)
    assert StaticEncoder(replace(model), "again").identity == identities[0] == xswe.load(random_model).identity
    ensembles = [StaticEncoder(Ensemble((part,), (1.0,)), "e").identity for part in (model, others[0], others[1])]
    assert len(set(ensembles)) == 3


@pytest.mark.parametrize("library", OTHER_LIBRARIES)
def test_folders_of_other_libraries(library, tokenizer, tmp_path):
    model2vec = pytest.importorskip("model2vec")
    matrix = np.random.default_rng(0).normal(size=(tokenizer.get_vocab_size(), 8)).astype(np.float32)
    matrix[0] = 0.0  # the unknown piece, which one library averages in and the other leaves out
    theirs = model2vec.StaticModel(matrix, tokenizer, config={"model_type": "model2vec"})
    expected = theirs.encode(TEXTS)
    expected /= np.maximum(np.linalg.norm(expected, axis=1, keepdims=True), 1e-9)
    if library == "model2vec":
        theirs.save_pretrained(tmp_path / "theirs")
    else:
        modules = pytest.importorskip("sentence_transformers.models")
        module = modules.StaticEmbedding(tokenizer, embedding_weights=matrix)
        pytest.importorskip(library).SentenceTransformer(modules=[module]).save(str(tmp_path / "theirs"))
    encoder = open_encoder(str(tmp_path / "theirs"), 1)
    assert encoder.name == "theirs"
    assert (type(encoder).__name__ == "SentenceTransformerEncoder") == (library == "sentence_transformers")
    np.testing.assert_allclose(encoder.encode(TEXTS), expected, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(encoder.encode(TEXTS), axis=1), [1, 0, 1, 1], atol=1e-6)
    assert encoder.encode([]).shape == (0, 8)
    assert (encoder.dim, encoder.parameters, encoder.size) == (8, matrix.size, matrix.nbytes)


@pytest.mark.slow
def test_wordllama_from_the_files_of_its_package():
    package = pytest.importorskip("wordllama")
    encoder = open_encoder("wordllama", 1)
    assert (encoder.name, encoder.dim, encoder.languages) == ("WordLlama", 256, ("en",))
    texts = [*TEXTS, "A cat is sleeping on a roof."]
    theirs = package.WordLlama.load(cache_dir=package.__path__[0], disable_download=True).embed(texts, norm=True)
    np.testing.assert_allclose((encoder.encode(texts) * np.nan_to_num(theirs)).sum(1), [1, 0, 1, 1, 1], atol=1e-5)
    assert open_encoder({"path": "wordllama", "languages": ["en", "de"]}, 1).languages == ("en", "de")


def test_word_vectors_are_means_of_words(tmp_path):
    (tmp_path / "a.vec").write_text("the 1 0\ncat 0 1\nCat 0 -1\n")
    encoder = open_encoder(str(tmp_path / "a.vec"), 1)
    assert (encoder.name, encoder.languages) == ("a.vec", ("en",))
    found = encoder.encode(["the cat", "The Cat.", "dog", "cat"])
    half = np.sqrt(0.5)
    np.testing.assert_allclose(found, [[half, half], [half, -half], [0, 0], [0, 1]], atol=1e-6)


def test_files_of_one_space_share_words_by_their_mean(tmp_path):
    (tmp_path / "wiki.multi.en.vec").write_text("2 2\nwar 1 0\ncat 0 1\n")
    (tmp_path / "wiki.multi.de.vec").write_text("2 2\nwar 0 1\nKatze 0 3\n")
    paths = [str(tmp_path / f"wiki.multi.{code}.vec") for code in ("en", "de")]
    encoder = open_encoder({"path": paths, "name": "MUSE"}, 1)
    assert encoder.languages == ("en", "de")
    np.testing.assert_allclose(
        encoder.encode(["war", "cat", "Katze"]), [[np.sqrt(0.5), np.sqrt(0.5)], [0, 1], [0, 1]], atol=1e-6
    )
    (tmp_path / "wide.vec").write_text("x 1 2 3\n")
    with pytest.raises(ConfigError, match="2, 3 dimensions"):
        open_encoder({"path": [paths[0], str(tmp_path / "wide.vec")]}, 1)


def test_word_vectors_of_a_teachers_tokens(tmp_path, tokenizer_json):
    (tmp_path / "tokenizer.json").write_text(tokenizer_json, encoding="utf-8")
    (tmp_path / "vec.txt").write_text("猫 1 0\ncat 0 1\n", encoding="utf-8")
    spec = {"path": str(tmp_path / "vec.txt"), "languages": ["en", "ja"], "tokenizer": str(tmp_path / "tokenizer.json")}
    found = open_encoder(spec, 1).encode(["猫。", "cat", "a cat"])
    np.testing.assert_allclose(found, [[1, 0], [0, 1], [0, 1]], atol=1e-6)


def test_teachers_by_the_name_of_their_settings(tiny_teacher):
    encoder = open_encoder(f"teacher:{tiny_teacher}", 1)
    assert (encoder.dim, encoder.name) == (32, f"teacher:{tiny_teacher.name}")
    assert (encoder.size, encoder.about.static, encoder.about.max_tokens) == (4 * encoder.parameters, False, 512.0)
    assert encoder.languages == tuple(LANGUAGES)
    np.testing.assert_allclose(np.linalg.norm(encoder.encode(TEXTS), axis=1), 1.0, atol=1e-5)
    assert TeacherConfig.named("minilm").model.startswith("package:")
    assert TeacherConfig.named("mini", 2) == TeacherConfig(prompt="", batch_tokens=4096, threads=2)
    with pytest.raises(ConfigError, match="names no encoder"):
        open_encoder("teacher:custom", 1)


def test_mistakes_are_named(tmp_path):
    with pytest.raises(ModelError, match="no such folder or file"):
        check_exists(ModelSpec.of(str(tmp_path / "nowhere")))
    with pytest.raises(ModelError, match="no such folder or file"):
        check_exists(ModelSpec.of({"path": [str(tmp_path), "b.vec"]}))
    check_exists(ModelSpec.of("wordllama"))
    with pytest.raises(ConfigError, match="no 'pth'"):
        ModelSpec.of({"path": "a", "pth": "b"})
    with pytest.raises(ConfigError, match="no path"):
        ModelSpec.of({"name": "b"})


@pytest.mark.slow
def test_a_folder_that_sentence_transformers_cannot_load_is_named(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "modules.json").write_text("[]")
    with pytest.raises(ModelError, match="sentence-transformers cannot load"):
        open_encoder(str(tmp_path), 1)


def test_speed_counts_every_text():
    class Sleeper:
        encoded = 0

        def encode(self, texts):
            import time

            self.encoded += len(texts)
            time.sleep(len(texts) * 1e-5)

    assert 1000 < sentences_per_second(Sleeper(), ["a", "b"], seconds=0.05) < 100_000  # 100,000 less overhead
