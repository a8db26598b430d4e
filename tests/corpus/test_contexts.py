from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import eval_script
from xswe.corpus import contexts as contexts_module
from xswe.corpus.contexts import ContextConfig, Contexts, choose_contexts
from xswe.errors import ConfigError
from xswe.io.ragged import Bags

parity = eval_script("parity.contexts")
by_unit, naive = parity.by_unit, parity.written_out
LISTS = [[0, 1, 2, 3], [0, 0], [0, 1, 4], [0, 2], [3], [0, 1, 2]]


@pytest.mark.parametrize("pick", ["shortest", "first"])
@pytest.mark.parametrize("n", [1, 2, 3, 100])
def test_the_shortest_or_first_sentences_are_chosen(pick, n):
    chosen = choose_contexts(Bags.of(LISTS), 6, ContextConfig(per_unit=n, pick=pick))
    assert by_unit(chosen, 6) == naive(LISTS, 6, n, pick)


@settings(max_examples=20)
@given(st.lists(st.lists(st.integers(0, 9), max_size=6), max_size=30), st.integers(1, 4))
def test_shortest_equals_the_naive_choice(lists, n):
    chosen = choose_contexts(Bags.of(lists), 10, ContextConfig(per_unit=n))
    assert by_unit(chosen, 10) == naive(lists, 10, n, "shortest")


@settings(max_examples=20)
@given(st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=3), min_size=1, max_size=40), st.integers(0, 5))
def test_candidates_bound_what_is_looked_at(lists, seed):
    config = ContextConfig(per_unit=2, candidates=4, pick="random", seed=seed)
    chosen = by_unit(choose_contexts(Bags.of(lists), 4, config), 4)
    for unit, rows in chosen.items():
        holding = [r for r, one in enumerate(lists) if unit in one]
        assert set(rows) <= set(holding)
        assert len(rows) == min(2, len(holding))


def test_candidates_are_drawn_at_random_not_from_the_start():
    lists = [[0] * (1 + i % 7) for i in range(1000)]
    chosen = by_unit(choose_contexts(Bags.of(lists), 1, ContextConfig(per_unit=5, candidates=50)), 1)[0]
    assert max(chosen) > 200
    again = by_unit(choose_contexts(Bags.of(lists), 1, ContextConfig(per_unit=5, candidates=50)), 1)[0]
    other = by_unit(choose_contexts(Bags.of(lists), 1, ContextConfig(per_unit=5, candidates=50, seed=1)), 1)[0]
    assert chosen == again != other


def test_each_sentence_is_listed_once_and_the_reference_passes_are_counted():
    chosen = choose_contexts(Bags.of(LISTS), 6, ContextConfig(per_unit=100))
    assert len(set(chosen.sentences.tolist())) == len(chosen.sentences) == 6
    assert chosen.reference_passes == sum(len(set(one)) for one in LISTS)
    assert np.all(np.diff(chosen.sentences) > 0)


@settings(max_examples=20)
@given(st.lists(st.lists(st.integers(0, 9), max_size=6), max_size=30), st.integers(1, 4), st.data())
def test_lengths_that_are_told_decide_what_is_short(lists, n, data):
    sizes = data.draw(st.lists(st.integers(0, 50), min_size=len(lists), max_size=len(lists)))
    asked = []

    def lengths(rows):
        asked.append(rows.tolist())
        return np.array([sizes[row] for row in rows], np.int64)

    config = ContextConfig(per_unit=n, length="tokens")
    chosen = by_unit(choose_contexts(Bags.of(lists), 10, config, lengths=lengths), 10)
    holding = {u: [r for r, one in enumerate(lists) if u in one] for u in range(10)}
    assert chosen == {u: sorted(sorted(rows, key=lambda r: (sizes[r], r))[:n]) for u, rows in holding.items()}
    assert asked == [[r for r, one in enumerate(lists) if one]]


def test_only_candidates_are_measured():
    lists, asked = [[0] if i % 2 else [] for i in range(1000)], []

    def lengths(rows):
        asked.extend(rows.tolist())
        return -rows % 997

    config = ContextConfig(per_unit=5, candidates=50, length="tokens")
    chosen = choose_contexts(Bags.of(lists), 1, config, lengths=lengths).sentences
    assert len(asked) == 50
    assert chosen.tolist() == sorted(sorted(asked, key=lambda r: (-r % 997, r))[:5])
    looked_at = choose_contexts(Bags.of(lists), 1, ContextConfig(per_unit=50, candidates=50)).sentences
    assert sorted(asked) == looked_at.tolist()  # the same candidates as by units


@settings(max_examples=20)
@given(st.lists(st.lists(st.integers(0, 9), max_size=6), max_size=30), st.sets(st.integers(0, 9)))
def test_units_that_are_not_wanted_get_no_contexts(lists, units):
    wanted = np.isin(np.arange(10), list(units))
    chosen = by_unit(choose_contexts(Bags.of(lists), 10, ContextConfig(per_unit=3), wanted=wanted), 10)
    expected = naive(lists, 10, 3, "shortest")
    assert chosen == {u: expected[u] if u in units else [] for u in range(10)}


sentences = st.lists(st.lists(st.tuples(st.integers(0, 9), st.booleans()), max_size=6), max_size=30)


@settings(max_examples=20)
@given(sentences, st.integers(1, 4), st.booleans())
def test_exact_units_tell_what_a_sentence_contains_and_all_of_them_how_long_it_is(lists, n, compiled):
    """A word is in a sentence exactly or by a back-off, which only makes the sentence longer."""
    bags = Bags.of([[unit for unit, _ in one] for one in lists])
    exact = [[unit for unit, stands in one if stands] for one in lists]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(contexts_module, "_UNITS_WORTH_COMPILING", 0 if compiled else contexts_module._UNITS_WORTH_COMPILING)
        chosen = by_unit(choose_contexts(bags, 10, ContextConfig(per_unit=n), exact=Bags.of(exact)), 10)
    holding = {unit: [row for row, one in enumerate(exact) if unit in one] for unit in range(10)}
    assert chosen == {u: sorted(sorted(rows, key=lambda r: (len(lists[r]), r))[:n]) for u, rows in holding.items()}


@settings(max_examples=20)
@given(st.lists(st.lists(st.integers(0, 4), max_size=4), max_size=30), st.integers(1, 3), st.integers(0, 3))
def test_sentences_are_drawn_by_unit(lists, n, seed):
    contexts = choose_contexts(Bags.of(lists), 5, ContextConfig(per_unit=100))
    drawn = contexts.sampled(n, [seed])
    assert drawn.tolist() == sorted(set(drawn.tolist())) == contexts.sampled(n, [seed]).tolist()
    assert len(drawn) <= sum(min(n, len(rows)) for rows in by_unit(contexts, 5).values())
    for rows in by_unit(contexts, 5).values():
        assert len(set(rows) & set(drawn.tolist())) >= min(n, len(rows))
    assert contexts.sampled(0, [seed]).tolist() == contexts.sentences.tolist()


def test_contexts_come_back_from_the_disk(tmp_path):
    made = choose_contexts(Bags.of(LISTS), 6, ContextConfig(per_unit=2))
    made.save(tmp_path, "en")
    assert by_unit(Contexts.open(tmp_path, "en"), 6) == by_unit(made, 6)


@pytest.mark.parametrize("wrong", [{"pick": "longest"}, {"length": "bytes"}, {"per_unit": 0}, {"candidates": 0}])
def test_settings_that_cannot_work(wrong):
    with pytest.raises(ConfigError):
        ContextConfig(**wrong)


@settings(max_examples=20)
@given(st.lists(st.lists(st.integers(0, 9), max_size=6), max_size=30), st.integers(1, 4), st.data())
def test_rows_left_out_are_as_if_not_there(lists, n, data):
    rows = sorted(data.draw(st.sets(st.integers(0, len(lists) - 1)) if lists else st.just(set())))
    chosen = choose_contexts(Bags.of(lists), 10, ContextConfig(per_unit=n), among=np.array(rows, np.int64))
    expected = naive([lists[r] for r in rows], 10, n, "shortest")
    assert by_unit(chosen, 10) == {u: [rows[k] for k in found] for u, found in expected.items()}


def test_of_the_candidates_drawn_the_shortest_are_taken():
    lists = [[0] * (1 + i % 50) for i in range(2000)]
    chosen = by_unit(choose_contexts(Bags.of(lists), 1, ContextConfig(per_unit=10, candidates=100)), 1)[0]
    lengths = sorted(len(lists[r]) for r in chosen)
    # Of all 2,000 the shortest ten have one unit each; of 100 drawn at random about two have.
    assert 1 <= lengths.count(1) < 8
    assert lengths[-1] <= 12


def test_candidates_are_drawn_evenly():
    hits = np.zeros(200)
    for seed in range(300):
        config = ContextConfig(per_unit=20, candidates=20, pick="random", seed=seed)
        chosen = choose_contexts(Bags.of([[0]] * 200), 1, config)
        hits[chosen.sentences] += 1
    assert hits.sum() == 300 * 20
    assert 10 <= hits.min() <= hits.max() <= 55  # binomial around 30, standard deviation 5


def test_more_sentences_than_can_be_numbered_are_refused(monkeypatch):
    monkeypatch.setattr(contexts_module, "_MAX_ROWS", len(LISTS) - 1)
    with pytest.raises(ConfigError, match=r"6 sentences .* at most 5: set corpus\.limit"):
        choose_contexts(Bags.of(LISTS), 6, ContextConfig())


@settings(max_examples=20)
@given(
    st.lists(st.lists(st.integers(0, 9), max_size=6), max_size=30),
    st.sampled_from(["shortest", "random", "first"]),
    st.tuples(st.integers(1, 4), st.integers(1, 6), st.integers(0, 9)),
    st.booleans(),
)
def test_compiled_and_in_numpy_the_same_is_chosen(lists, pick, numbers, asked):
    per_unit, candidates, hidden = numbers
    config = ContextConfig(per_unit=per_unit, candidates=candidates, pick=pick, seed=hidden)
    bags, wanted = Bags.of(lists), np.arange(10) != hidden
    rows = np.flatnonzero(np.arange(len(lists)) % 7 != 3)
    further = {"wanted": wanted, "lengths": (lambda rows: rows % 3 + 1) if asked else None}
    made = []
    for few in (0, contexts_module._UNITS_WORTH_COMPILING):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(contexts_module, "_UNITS_WORTH_COMPILING", few)
            made.append(choose_contexts(bags, 10, config, rows, **further))
    for part in ("sentences", "units", "offsets"):
        np.testing.assert_array_equal(getattr(made[0], part), getattr(made[1], part))
        assert getattr(made[0], part).dtype == getattr(made[1], part).dtype
