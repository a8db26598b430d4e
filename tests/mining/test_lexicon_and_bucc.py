"""Word translation, and the shared task's protocol on files in its exact format."""

from __future__ import annotations

import gzip
import random
from dataclasses import replace

import numpy as np
import pytest

from xswe.errors import ConfigError, InputError
from xswe.mining.bucc import BuccFiles, extract, read_gold_ids, score, tune
from xswe.mining.lexicon import LexiconConfig, make_lexicon, precision, read_words, vocabularies
from xswe.mining.pipeline import MineConfig
from xswe.model.static import StaticModel
from xswe.search.types import SearchConfig

ONE = SearchConfig(threads=1)
WORDS = {"cat": "猫", "dog": "犬", "fish": "魚", "red": "赤", "sea": "海"}


class Words:
    """Units that are whole words, as little as a model needs."""

    kind, languages = "words", ("en", "ja")

    def __init__(self):
        self.tokens = [*WORDS, *WORDS.values(), "", "x1"]

    def __len__(self):
        return len(self.tokens)

    def bags(self, texts):
        from xswe.io.ragged import Bags

        return Bags.of([[self.tokens.index(w) for w in text.split() if w in self.tokens] for text in texts])


@pytest.fixture
def words():
    vectors = np.random.default_rng(0).standard_normal((5, 16)).astype(np.float32)
    noise = np.random.default_rng(1).standard_normal((5, 16)).astype(np.float32)
    return StaticModel(Words(), np.concatenate([vectors, vectors + 0.2 * noise, np.zeros((2, 16), np.float32)]))


CONFIG = LexiconConfig(k=2, candidates=5, neighbours=ONE)


def test_the_words_of_a_language_by_its_script(words, model):
    assert vocabularies(words, ["en", "ja"]) == (list(WORDS), list(WORDS.values()))
    english, japanese = vocabularies(model, ["en", "ja"])
    assert "the" in english
    assert all(word.isascii() or word.isalpha() for word in english)
    assert not any("▁" in word for word in english + japanese)
    with pytest.raises(ConfigError, match="share a script"):
        vocabularies(model, ["en", "de"])


def test_a_lexicon_and_its_precision(words, tmp_path):
    source, target = [*WORDS, "unknown"], list(WORDS.values())
    pairs = make_lexicon(words, source, target, CONFIG)
    assert [(source[a], target[b]) for a, b in zip(pairs.source, pairs.target, strict=True)] == list(WORDS.items())
    lists = make_lexicon(words, source, target, LexiconConfig(best=3, mutual=False, k=2, candidates=5, neighbours=ONE))
    assert lists.rank.tolist() == [1, 2, 3] * 5
    gold = tmp_path / "gold.tsv.gz"
    gold.write_bytes(gzip.compress("cat\t猫\nCat\tネコ\ndog\t猫\nbird\t鳥\nsea\t海\nsky\t\n".encode()))
    found = precision(words, source, target, gold, CONFIG)
    assert (found.at_1, found.at_5) == (pytest.approx(2 / 3), 1.0)  # cat, sea; the dog is not a cat but is among five
    assert (found.words, found.gold) == (3, 4)
    assert precision(words, source, target, gold, replace(CONFIG, k=60, candidates=70)).at_5 == 1.0
    gold.write_bytes(gzip.compress(b"a\tb\n"))
    with pytest.raises(InputError, match="both vocabularies"):
        precision(words, source, target, gold, CONFIG)


def test_word_lists(tmp_path):
    (tmp_path / "w").write_text("the\t100\nof\t90\nthe\t1\n\nand\n")
    assert read_words(tmp_path / "w") == ["the", "of", "and"]
    assert read_words(tmp_path / "w", 2) == ["the", "of"]
    (tmp_path / "w").write_text("\n")
    with pytest.raises(InputError, match="no word"):
        read_words(tmp_path / "w")
    with pytest.raises(ConfigError, match="candidates"):
        LexiconConfig(k=60)


def write_bucc(folder, name, pairs, source_noise, target_noise, seed):
    """Write a data set in the shared task's format: shuffled corpora of id<TAB>sentence, gold of id<TAB>id."""
    draw = random.Random(seed)
    sides = []
    for k, (language, noise) in enumerate((("ja", source_noise), ("en", target_noise))):
        lines = [(pair[k], n) for n, pair in enumerate(pairs)] + [(text, None) for text in noise]
        draw.shuffle(lines)
        ids = [f"{language}-{i:09d}" for i in range(1, len(lines) + 1)]
        text = "".join(f"{i}\t{line}\n" for i, (line, _) in zip(ids, lines, strict=True))
        (folder / f"{name}.{language}").write_text(text, encoding="utf-8")
        sides.append({n: i for i, (_, n) in zip(ids, lines, strict=True) if n is not None})
    gold = "".join(f"{sides[0][n]}\t{sides[1][n]}\n" for n in range(len(pairs)))
    (folder / f"{name}.gold").write_text(gold, encoding="utf-8")
    return str(folder / name)


def test_the_protocol_of_the_shared_task(model, sample, tmp_path):
    ja, en = sample["ja"], sample["en"]
    config = MineConfig(threshold=None, neighbours=ONE)
    prefixes = [
        write_bucc(
            tmp_path, name, list(zip(ja[a : a + 60], en[a : a + 60], strict=True)), ja[b : b + 200], en[c : c + 200], 1
        )
        for name, a, b, c in (("training", 0, 100, 300), ("test", 500, 600, 800))
    ]
    training, test = (BuccFiles.find(prefix, ("ja", "en")) for prefix in prefixes)
    gold = read_gold_ids(training.gold)
    assert len(gold) == 60
    found = extract(model, training, config)
    assert all(a.startswith("ja-") and b.startswith("en-") for a, b in found.pairs)
    threshold = tune(found, gold)
    tuned = score(found, gold, threshold)
    for other in np.linspace(0.5, 2, 40):
        assert score(found, gold, float(other)).f1 <= tuned.f1
    measured = score(extract(model, test, config), read_gold_ids(test.gold), threshold)
    assert measured.f1 > 0.7
    kept = set(found.above(threshold))
    assert tuned.precision == pytest.approx(len(kept & gold) / len(kept))
    assert tuned.recall == pytest.approx(len(kept & gold) / 60)


def test_bucc_files_that_are_wrong(tmp_path):
    with pytest.raises(InputError, match=r"x\.de"):
        BuccFiles.find(str(tmp_path / "x"), ("de", "en"))
    (tmp_path / "gold").write_text("de-1\ten-1\nde-2 en-2\n")
    with pytest.raises(InputError, match="gold:2"):
        read_gold_ids(tmp_path / "gold")


def test_a_bucc_shaped_set_of_real_sentences(model, xswe_data, tmp_path):
    """WMT23 pairs hidden among unaligned sentences; the tests' tiny model finds few, which the protocol must say."""

    def rows(path, limit):
        opener = gzip.open if path.suffix == ".gz" else open
        with opener(path, "rt", encoding="utf-8") as stream:
            return [line.rstrip("\n").split("\t")[:2] for line, _ in zip(stream, range(limit), strict=False)]

    hidden = [(b, a) for a, b in rows(xswe_data / "dev" / "wmt23.en-ja.tsv", 150)]
    noise = rows(xswe_data / "train" / "en-ja" / "kyoto-wiki.tsv.gz", 900)
    prefix = write_bucc(tmp_path, "wmt", hidden, [b for _, b in noise[:450]], [a for a, _ in noise[450:]], 2)
    files = BuccFiles.find(prefix, ("ja", "en"))
    found = extract(model, files, MineConfig(threshold=None, neighbours=ONE))
    gold = read_gold_ids(files.gold)
    measured = score(found, gold, tune(found, gold))
    assert measured.gold == 150
    assert 0 < measured.f1 < 1
    assert measured.recall <= len(set(found.pairs) & gold) / 150
