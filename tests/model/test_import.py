"""Imports: other projects' vectors give, as models of ours, the vectors that they give there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

import xswe
from xswe.errors import ConfigError, ModelError, XsweError
from xswe.model.interchange import ImportConfig, import_model, import_vectors, merge_tables


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def test_words_of_several_tables(tmp_path):
    tables = [
        (["a", "die"], np.array([[1, 1], [2, 0]], np.float32)),
        (["die", "b"], np.array([[0, 4], [5, 5]], np.float32)),
    ]
    words, matrix = merge_tables(tables, "average")
    assert words == ["a", "die", "b"]
    np.testing.assert_allclose(matrix, [[1, 1], [1, 2], [5, 5]])
    np.testing.assert_allclose(merge_tables(tables, "first")[1], [[1, 1], [2, 0], [5, 5]])
    with pytest.raises(ConfigError, match="one space"):
        merge_tables([tables[0], (["x"], np.ones((1, 3), np.float32))], "average")


@pytest.mark.parametrize("name", ["v.bin", "v.vec"])
def test_the_binary_form_is_read_whatever_the_file_is_called(tmp_path, name):
    rows = np.array([[1, 2], [3, 4], [0, -1]], "<f4")
    words = ("cat", "dog", "Katze")
    (tmp_path / name).write_bytes(
        b"3 2\n" + b"".join(f"{w} ".encode() + r.tobytes() for w, r in zip(words, rows, strict=True))
    )
    model = import_model([tmp_path / name], ["en", "de"], ImportConfig("word2vec-binary"))
    np.testing.assert_allclose(
        model.encode(["cat", "dog"]), rows[:2] / np.linalg.norm(rows[:2], axis=1)[:, None], rtol=1e-6
    )
    few = import_model([tmp_path / name], ["en", "de"], ImportConfig("word2vec-binary", limit=2))
    assert (model.encode(["Katze"]).any(), few.encode(["Katze"]).any(), few.encode(["dog"]).any()) == (True, False, True)


def reference_encode(text, table, pieces):
    """The reference implementation's rule for en and de, as the paper's appendix and its helper describe it."""
    found = []
    for word, _ in pre_tokenizers.BertPreTokenizer().pre_tokenize_str(text):
        if word in ".,!?;:'\"()-":
            continue
        candidates = [word, word.lower()]
        tokens = pieces.encode(word, add_special_tokens=False).tokens
        for kept in range(len(tokens) - 1, 0, -1):
            prefix = "".join(tokens[:kept]).replace("▁", "")
            candidates += [prefix, prefix.lower()]
        found += next(([table[c]] for c in candidates if c in table), [])
    mean = np.mean(found, axis=0) if found else np.zeros(2)
    return mean / (np.linalg.norm(mean) + 1e-8)


def test_the_authors_table_with_their_rules(tmp_path):
    pieces = [("<unk>", -30.0), ("▁token", -3.0), ("iser", -3.0), ("▁Haus", -3.0), ("boot", -4.0), ("tür", -4.0)]
    letters = [(c, -9.0) for c in "▁abcdefghijklmnopqrstuvwxyzäöüßABCDEFGHIJKLMNOPQRSTUVWXYZ"]
    tokenizer = Tokenizer(models.Unigram([*pieces, *letters], unk_id=0))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    vec = "the 1.0 0.2\ntoken 0.1 1.0\nHaus -1.0 0.3\nist 0.3 0.3\ndie 0.9 -0.4\n"
    table = {line.split()[0]: np.array(line.split()[1:], float) for line in vec.splitlines()}
    config = ImportConfig(tokenizer=str(tmp_path / "tokenizer.json"))
    model = import_model([write(tmp_path / "vec.txt", vec)], ("en", "de"), config)
    texts = ["The tokeniser", "the TOKEN.", "Das Hausboot ist die Haustür!", "zzz", "DIE (Haus)", "tokenis, ist"]
    expected = np.stack([reference_encode(text, table, tokenizer) for text in texts])
    np.testing.assert_allclose(model.encode(texts), expected, atol=1e-6)
    model.save(tmp_path / "m")
    np.testing.assert_array_equal(xswe.load(tmp_path / "m").encode(texts), model.encode(texts))
    assert xswe.load(tmp_path / "m").description == {"imported": {"format": "text", "files": ["vec.txt"]}}


def test_japanese_keys_are_the_teachers_tokens_without_marks(tmp_path, tokenizer):
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    segments = [token for token, _ in tokenizer.pre_tokenizer.pre_tokenize_str("猫が寝ている")]
    assert segments == ["猫が寝ている"]
    tokens = [t for t in tokenizer.encode("猫が寝ている", add_special_tokens=False).tokens if t in tokenizer.get_vocab()]
    rows = "".join(f"▁{token} {k}.5 1\n" for k, token in enumerate(tokens))
    config = ImportConfig(tokenizer=str(tmp_path / "tokenizer.json"))
    model = import_model([write(tmp_path / "vec.txt", rows + "cat 1 1\n")], ("en", "ja"), config)
    assert [model.units.tokens[i] for i in model.units.bags(["猫が寝ている"]).ids] == tokens


def test_a_model2vec_folder(tokenizer, tmp_path, sample):
    model2vec = pytest.importorskip("model2vec")
    rng = np.random.default_rng(0)
    size = tokenizer.get_vocab_size()
    matrix = rng.normal(size=(500, 8)).astype(np.float32)
    mapping, weights = rng.integers(0, 500, size), rng.random(size).astype(np.float32)
    theirs = model2vec.StaticModel(matrix, tokenizer, weights=weights, token_mapping=mapping, normalize=True)
    theirs.save_pretrained(tmp_path / "m2v")
    ours = import_model([tmp_path / "m2v"], ("en", "de", "zh", "ja"), ImportConfig(format="model2vec"))
    texts = sample["en"][:50] + sample["ja"][:50]
    np.testing.assert_allclose(ours.encode(texts), theirs.encode(texts), atol=1e-5)
    ours.save(tmp_path / "m")
    np.testing.assert_array_equal(xswe.load(tmp_path / "m").encode(texts), ours.encode(texts))


@pytest.mark.slow
def test_wordllama(sample):
    wordllama = pytest.importorskip("wordllama")
    package = Path(wordllama.__file__).parent
    weights, tokenizer = (
        package / "weights" / "l2_supercat_256.safetensors",
        package / "tokenizers" / "l2_supercat_tokenizer_config.json",
    )
    if not weights.is_file() or not tokenizer.is_file():
        pytest.skip("this wordllama carries no weights")
    ours = import_model([weights], ("en",), ImportConfig(format="wordllama", tokenizer=str(tokenizer)))
    theirs = wordllama.WordLlama.load(cache_dir=package, disable_download=True)
    texts = sample["en"][:200] + sample["ja"][:50]
    np.testing.assert_allclose((ours.encode(texts) * theirs.embed(texts, norm=True)).sum(1), 1, atol=1e-5)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"format": "gensim"}, "word2vec-binary"),
        ({"merge": "sum"}, "average, first"),
        ({"limit": -1}, "limit=-1"),
        ({"format": "wordllama"}, "needs its tokenizer"),
        ({}, r"tokenizer=…/tokenizer.json.*segmenters.ja=fugashi"),
        ({"format": "model2vec"}, "no model.safetensors beside"),
        ({"tokenizer": "nowhere.json"}, "nowhere.json"),
    ],
)
def test_mistakes_name_the_cure(settings, message, tmp_path):
    path = tmp_path if settings.get("format") == "model2vec" else write(tmp_path / "v.txt", "a 1 2\n")
    with pytest.raises(XsweError, match=message):
        import_model([path], ("en", "ja"), ImportConfig(**settings))


def test_a_matrix_that_does_not_fit(tokenizer, tmp_path):
    from safetensors.numpy import save_file

    tokenizer.save(str(tmp_path / "tokenizer.json"))
    for tensors, message in (
        ({"embeddings": np.ones((5, 2), np.float32)}, "5 vectors for"),
        ({"other": np.ones((5, 2), np.float32)}, "only other"),
        ({"embeddings": np.full((4000, 2), np.inf, np.float32)}, "not finite"),
        ({"embeddings": np.ones((5, 2), np.float32), "mapping": np.array([7])}, "do not fit"),
    ):
        save_file(tensors, tmp_path / "model.safetensors")
        with pytest.raises(ModelError, match=message):
            import_model([tmp_path], ("en",), ImportConfig(format="model2vec"))


def test_tables_of_the_authors_are_looked_up_as_they_are_keyed(tmp_path):
    """Whole texts as the teacher's tokens, nothing folded: ``segmenters`` and ``folding`` name both."""
    pieces = Tokenizer(
        models.Unigram([("<unk>", -20.0), ("▁", -2.0), ("▁10", -3.0), ("を選択。", -3.0), ("我們", -3.0)], 0)
    )
    pieces.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")
    pieces.save(str(tmp_path / "tokenizer.json"))
    path = write(tmp_path / "vec.txt", "10 1 0\nを選択。 0 1\n我們 1 1\n")
    whole = {"zh": "teacher-text", "ja": "teacher-text"}
    config = ImportConfig(tokenizer=str(tmp_path / "tokenizer.json"), segmenters=whole, folding=False)
    units = import_model([path], ("en", "zh", "ja"), config).units
    assert [units.bags([text]).ids.tolist() for text in ("10を選択。", "我們", "10")] == [[0, 1], [2], [0]]
    with pytest.raises(ConfigError, match="'teacher-text' of ja needs the teacher's tokenizer"):
        import_model([path], ("en", "ja"), ImportConfig(segmenters=whole))


def test_an_import_may_be_written_and_takes_settings_one_by_one(tmp_path):
    table = write(tmp_path / "v.txt", "a 1 2\nb 3 4\nc 5 6\n")
    made = import_vectors(table, ["en"], tmp_path / "m", limit=2)
    assert (made.units.tokens, xswe.load(tmp_path / "m").identity) == (["a", "b"], made.identity)
    assert made.description == {"imported": {"format": "text", "files": ["v.txt"]}}
    config = ImportConfig(limit=1)
    assert import_vectors([table, str(table)], ["en"], config=config).units.tokens == ["a"]
    assert import_vectors(table, ["en"], config=config, limit=0).units.tokens == ["a", "b", "c"]
    write(tmp_path / "file", "")
    with pytest.raises(XsweError, match="file"):
        import_vectors(tmp_path / "absent.txt", ["en"], tmp_path / "file")  # before anything is read
