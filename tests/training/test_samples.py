from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from xswe.corpus.contexts import Contexts
from xswe.errors import ModelError
from xswe.io.ragged import Bags
from xswe.training.pairs import WordCounts, draw_pairs


def chosen(rows):
    """Contexts that represent unit 0 by these rows."""
    return Contexts(np.array(rows, np.int64), np.zeros(len(rows), np.int32), np.arange(len(rows) + 1))


def test_pairs_are_those_with_a_context_on_either_side_of_any_bitext():
    sides = [Bags.of([[i] for i in range(10)]), Bags.of([[100 + i] for i in range(10)])]
    # English rows 0-9 are of en-de, 10-19 of en-ja.
    contexts = {"en": chosen([2, 12, 19]), "de": chosen([3, 9]), "ja": chosen([0, 2])}
    found = draw_pairs([("en", "de"), ("en", "ja")], [sides, sides], contexts, 0, lambda _: 0, 0)
    assert [one.train.tolist() for one in found] == [[2, 3, 9], [0, 2, 9]]
    assert not any(len(one.development) for one in found)


def test_development_pairs_share_no_sentence_with_training_pairs():
    rng = np.random.default_rng(0)
    source, target = (rng.integers(0, 40, 200) for _ in range(2))
    sides = [Bags.of([[i] for i in source]), Bags.of([[i] for i in target])]
    contexts = {"en": chosen(range(0, 200, 2)), "ja": chosen([])}
    told = []
    (found,) = draw_pairs([("en", "ja")], [sides], contexts, 0, lambda size: told.append(size) or 5, 0)
    assert told == [100]
    assert len(found.development) == 5
    assert set(found.development) <= set(range(0, 200, 2))
    sharing = np.isin(source, source[found.development]) | np.isin(target, target[found.development])
    assert found.train.tolist() == [row for row in range(0, 200, 2) if not sharing[row]]
    (again,) = draw_pairs([("en", "ja")], [sides], contexts, 0, lambda _: 5, 0)
    (other,) = draw_pairs([("en", "ja")], [sides], contexts, 0, lambda _: 5, 1)
    assert again.development.tolist() == found.development.tolist() != other.development.tolist()


def test_development_sentences_come_from_all_contexts_and_training_ones_from_a_few_a_unit():
    units = np.repeat(np.arange(20), 10).astype(np.int32)
    contexts = {"en": Contexts(np.arange(200), units, np.arange(201))}
    (found,) = draw_pairs([("en",)], [[Bags.of([[i] for i in range(200)])]], contexts, 2, lambda size: size // 4, 0)
    assert len(found.development) == 50
    assert np.bincount(units[found.train], minlength=20).max() == 2
    assert 20 < len(found.train) < 40  # without those that were set aside


def test_counts_and_own_words_are_kept_by_language(tmp_path):
    counts = {"en": Counter(the=5, die=2, a=1), "de": Counter(die=7, the=1, der=6)}
    words = ["die", "der", "the"]
    WordCounts.of(counts, {"en": 1, "de": 2}, words).save(tmp_path)
    found = WordCounts.open(tmp_path)
    assert found.counts.tolist() == [[2, 0, 5], [7, 6, 1]]
    assert found.own.tolist() == [[False, False, True], [True, True, False]]
    assert found.counts.dtype == np.int64
    with pytest.raises(ModelError, match=f"remove {tmp_path / 'old'} and"):
        WordCounts.open(tmp_path / "old")


def test_what_is_drawn_is_told(caplog):
    caplog.set_level("INFO", "xswe")
    sides = [Bags.of([[i] for i in range(10)]), Bags.of([[100 + i] for i in range(10)])]
    contexts = {"en": chosen([2, 12, 19]), "de": chosen([3, 9]), "ja": chosen([])}
    draw_pairs([("en", "de"), ("en", "ja")], [sides, sides], contexts, 0, lambda size: size - 1, 0)
    assert caplog.messages == [
        "en-de: 3 pairs with a context sentence, 1 of them for training and 2 for development",
        "en-ja: 2 pairs with a context sentence, 1 of them for training and 1 for development",
    ]
