"""Word translation."""

from __future__ import annotations

import gzip
from dataclasses import replace

import numpy as np
import pytest

from xswe.alignment.dictionary import LexiconConfig, lexicon, make_lexicon, precision, read_words, vocabularies
from xswe.errors import ConfigError, InputError
from xswe.io.lines import Skipped
from xswe.model.static import StaticModel
from xswe.search.lists import SearchConfig

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
    gold.write_bytes(gzip.compress("cat\t猫\nCat\tネコ\ndog\t猫\nbird\t鳥\nsea\t海\nsky\t\nfish\tサカナ\n".encode()))
    found = precision(words, source, target, gold, CONFIG)
    assert (found.at_1, found.at_5) == (pytest.approx(2 / 3), 1.0)  # cat, sea; the dog is not a cat but is among five
    assert str(found) == "P@1 66.7, P@5 100.0 on 3 of 5 gold words (those in both vocabularies)"
    assert precision(words, source, target, gold, replace(CONFIG, k=60, candidates=70)).at_5 == 1.0
    gold.write_bytes(gzip.compress(b"a\tb\n"))
    with pytest.raises(InputError, match="both vocabularies"):
        precision(words, source, target, gold, CONFIG)


def test_a_lexicon_is_of_the_first_words_of_each_side_if_only_these_are_wanted(words):
    settings = {"languages": ("en", "ja"), "k": 1, "candidates": 2, "neighbours": ONE}
    given = {"source": [*WORDS, "cat"], "target": list(WORDS.values()), "k": 1, "candidates": 2, "neighbours": ONE}
    for how in (settings, given):
        for limit, count in ((0, 5), (2, 2), (9, 5)):
            found = lexicon(words, limit=limit, **how)
            assert [(entry.source, entry.target) for entry in found] == list(WORDS.items())[:count]
            assert found.words == (count, count)


def test_a_dictionary_is_written_with_names_only_as_a_table(words, tmp_path, capfd):
    given = {"source": ["cat", "dog"], "target": list(WORDS.values()), "k": 1, "candidates": 2, "neighbours": ONE}
    found = lexicon(words, **given)
    assert (repr(found), found.summary()) == ("Dictionary(2 pairs)", "2 and 5 words, 2 pairs")
    rows = "".join(f"{one.source}\t{one.target}\t{one.csls:.6f}\t1\n" for one in found)
    for name in ("a.tsv", "a.txt", "a"):
        lexicon(words, tmp_path / name, **given)
        assert (tmp_path / name).read_text("utf-8") == rows
    lexicon(words, "-", **given)
    assert capfd.readouterr().out == rows
    lexicon(words, tmp_path / "a.csv", **given)
    assert (tmp_path / "a.csv").read_text("utf-8").splitlines()[0] == "source,target,csls,rank"
    for side in ("source", "target"):
        with pytest.raises(ConfigError, match="give both source= and target="):
            lexicon(words, **{side: ["cat"]})
    with pytest.raises(ConfigError, match=r"a\.tmx"):
        lexicon(words, tmp_path / "a.tmx", source=tmp_path / "none.txt", target=tmp_path / "none.txt")
    with pytest.raises(ConfigError, match="languages"):
        lexicon(words, **given, languages=("en", "ja"))
    with pytest.raises(ConfigError, match=r"the model has the languages en, ja: name two, as in languages=\[en,ja\]"):
        lexicon(words, languages=("en",))


def test_word_lists(tmp_path):
    (tmp_path / "w").write_text("the\t100\nof\t90\nthe\t1\n\nand\n")
    for given in (tmp_path / "w", ["the\t100", "of ", "the", "", "and"]):
        assert read_words(given, 0, left_out := Skipped()) == ["the", "of", "and"]
        assert left_out.counts == {"repeated": 1, "blank": 1}
        assert read_words(given, 2, Skipped()) == ["the", "of"]
    (tmp_path / "w").write_text("\n")
    with pytest.raises(InputError, match="no word"):
        read_words(tmp_path / "w", 0, Skipped())
    with pytest.raises(ConfigError, match="candidates"):
        LexiconConfig(k=60)
