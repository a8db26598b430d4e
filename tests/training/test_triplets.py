"""Triplets for span training: passages that hide a translation, and triples of files."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.conftest import eval_script
from xswe.corpus.bitext import CorpusConfig, describe_files
from xswe.errors import ConfigError
from xswe.training.triplets import (
    ParallelWords,
    SpanTraining,
    WordTriples,
    describe_triples,
    find_triples,
    make_triplets,
    read_triples,
    runs_of,
    split_triples,
)

cut_of = eval_script("parity.spans").cut_of
SIZE = 12


def parallel(n=SIZE):
    """Sentence i is row i on one side, and row 1000 + i on the other."""
    return ParallelWords(cut_of([[[i]] for i in range(n)]), cut_of([[[1000 + i]] for i in range(n)]))


def hidden(neighbours, around, n=SIZE, times=400):
    """For many triplets: the row, the sentences around it, those of the other passage, and the side of the phrase."""
    rows = np.arange(times) % n
    made = make_triplets(parallel(n), rows, SpanTraining(neighbours=neighbours, around=around), [1, 0])
    found = []
    for k, (phrase,) in enumerate(np.split(made.phrases.ids, len(rows))):
        true, false = (side.text(k).ids for side in (made.true, made.false))
        side = phrase >= 1000
        assert ({*(true >= 1000).tolist()}, {*(false >= 1000).tolist()}) == ({not side}, {not side})
        found.append((int(phrase) % 1000, (true % 1000).tolist(), (false % 1000).tolist(), bool(side)))
    assert sorted(row for row, *_ in found) == sorted(rows.tolist())
    return found


@pytest.mark.parametrize("around", [1, 3])
def test_strangers_around_a_translation_are_any_sentences_but_itself(around):
    found = hidden(0.0, around)
    before = [true.index(row) for row, true, _, _ in found]
    after = [len(true) - 1 - true.index(row) for row, true, _, _ in found]
    assert (set(before), set(after)) == (set(range(around + 1)), set(range(1, around + 1)))
    assert all(len(true) == len(false) for _, true, false, _ in found)
    for passage in (1, 2):
        others = [one[passage] for one in found]
        assert all(one.count(row) == (passage == 1) for (row, *_), one in zip(found, others, strict=True))
        assert {sentence for one in others for sentence in one} == set(range(SIZE))
    for first, last in ((0, 1), (SIZE - 1, SIZE - 2)):  # of the rows beside the gap in the numbers of strangers
        strangers = {sentence for row, _, false, _ in found if row == first for sentence in false}
        assert last in strangers


@pytest.mark.parametrize("around", [1, 3])
def test_neighbours_around_a_translation_are_a_run_of_the_bitext(around):
    found = hidden(1.0, around)
    for row, true, _, _ in found:
        assert true == list(range(true[0], true[-1] + 1))
        assert row - around <= true[0] <= row <= true[-1] <= row + around
        assert len(true) > 1
    for row in range(around, SIZE - around):
        own = [true for other, true, _, _ in found if other == row]
        assert {row - true[0] for true in own} == set(range(around + 1))
        assert {true[-1] - row for true in own} == set(range(1, around + 1))
    assert {tuple(true) for row, true, _, _ in found if row == SIZE - 1} <= {
        tuple(range(SIZE - 1 - k, SIZE)) for k in range(1, around + 1)
    }
    assert {true[0] for row, true, _, _ in found if row == 0} == {0}


def test_about_half_of_the_phrases_are_of_either_side_and_as_many_passages_as_asked_running_text():
    found = hidden(0.25, 2, n=200, times=2000)
    assert sum(side for *_, side in found) / len(found) == pytest.approx(0.5, abs=0.05)
    running = sum(true == list(range(true[0], true[0] + len(true))) for _, true, *_ in found)
    assert running / len(found) == pytest.approx(0.25, abs=0.05)


def test_triplets_are_those_of_seed_and_key():
    def made(seed, key):
        found = make_triplets(parallel(), np.arange(SIZE), SpanTraining(seed=seed), key)
        return [found.phrases.ids.tobytes(), found.true.ids.tobytes(), found.false.ids.tobytes()]

    assert made(0, [1, 0]) == made(0, [1, 0])
    for other in (made(1, [1, 0]), made(0, [2, 0]), made(0, [1, 1])):
        assert all(ours != theirs for ours, theirs in zip(made(0, [1, 0]), other, strict=True))


def test_a_span_covers_both_sides_or_the_pair_is_left_out():
    words = [[[0]] * n for n in (0, 1, 2, 3, 4)]
    bitext = ParallelWords(cut_of([*words, [[0]] * 2]), cut_of([*words, [[0]] * 5]))
    assert bitext.usable(1, 4).tolist() == [1, 2, 3, 4]
    assert bitext.usable(2, 3).tolist() == [2, 3]
    assert len(bitext) == 6
    triples = WordTriples(cut_of([*words, [[]]]), cut_of([*words, [[0]] * 2]), cut_of([*words[:-1], [[0]] * 3, [[0]] * 5]))
    assert triples.usable(2, 3).tolist() == [2, 3, 4]  # without a bound, as no span need be as long as the passage
    assert triples.usable(1, 1).tolist() == [1, 2, 3, 4]  # the last phrase has no known unit


def write(tmp_path, *groups):
    path = tmp_path / "triples.jsonl"
    records = [dict(zip(("query", "positive", "negatives"), one, strict=True)) for one in groups]
    path.write_text("".join(json.dumps(one) + "\n" for one in records), encoding="utf-8")
    return find_triples([str(path)])


def rows_of(columns):
    return list(zip(*map(list, columns), strict=True))


def test_a_triple_of_each_negative_is_read_and_what_is_left_out_is_counted(tmp_path, caplog):
    caplog.set_level("INFO", "xswe")
    files = write(
        tmp_path,
        ("a", "b", ["c", "d"]),
        ("", "b", ["c"]),
        ("a", "b", ["", "c"]),
        ("ä" * 5, "b" * 5, ["ü" * 5]),
        ("a", "b" * 6, ["c"]),
    )
    made = rows_of(read_triples(files, CorpusConfig(max_characters=5), 0, 0))
    assert made == [("a", "b", "c"), ("a", "b", "d"), ("a", "b", "c"), ("ä" * 5, "b" * 5, "ü" * 5)]
    assert caplog.messages[-1] == "triples: 6 read, 2 dropped (blank, too long, or evaluation texts), 4 kept"
    (tmp_path / "known.tsv").write_text("d\tzzz\n", encoding="utf-8")
    clean = CorpusConfig(decontaminate=(str(tmp_path / "known.tsv"),))
    assert ("a", "b", "d") not in rows_of(read_triples(files, clean, 0, 0))
    assert "triples: 6 read, 2 dropped" in caplog.messages[-1]  # a blank one, and the known one
    with pytest.raises(ConfigError) as found:
        read_triples(files, CorpusConfig(max_characters=0), 0, 0)
    assert str(found.value) == "spans.triples: there is no triple of three texts in these files"


@pytest.mark.parametrize("most", [1, 19, 20, 21, 39, 40, 41])
def test_a_sample_of_triples_is_in_order_and_comes_from_everywhere(tmp_path, most):
    path = tmp_path / "triples.tsv"
    path.write_text("".join(f"q{k}\tp{k}\tn{k}\n" for k in range(40)), encoding="utf-8")
    columns = read_triples(find_triples(str(path)), CorpusConfig(), most, 0)
    numbers = [int(text[1:]) for text in columns[0]]
    assert len(numbers) == min(most, 40)
    assert numbers == sorted(set(numbers))
    assert rows_of(columns) == [(f"q{k}", f"p{k}", f"n{k}") for k in numbers]
    if most in (19, 20, 21):
        assert numbers[0] < 10
        assert numbers[-1] > 30


def test_an_entry_without_a_negative_passage_says_what_to_name(tmp_path):
    (tmp_path / "pairs.tsv").write_text("a\tb\n", encoding="utf-8")
    with pytest.raises(ConfigError) as found:
        find_triples([{"path": str(tmp_path / "pairs.tsv"), "columns": [0, 1]}])
    assert str(found.value) == (
        f"spans.triples: {tmp_path / 'pairs.tsv'}: name a phrase, a positive and a negative passage, as in "
        "{path: ..., columns: [0, 1, 2]} or {path: ..., fields: [query, positive, negative]}"
    )


def test_what_determines_the_triples_is_described(tmp_path):
    files = write(tmp_path, ("a", "b", ["c"]))
    config = CorpusConfig(max_characters=7)
    assert describe_triples(files, config) == [describe_files(files), config.on_error, 7, None]
    (tmp_path / "known.tsv").write_text("d\n", encoding="utf-8")
    clean = describe_triples(files, CorpusConfig(max_characters=7, decontaminate=(str(tmp_path / "known.tsv"),)))
    assert clean[-1] is not None


@pytest.mark.parametrize(("share", "most", "apart"), [(0.25, 100, 2), (0.5, 3, 3), (0.124, 9, 0), (1.0, 100, 8)])
def test_phrases_are_set_aside_with_all_their_triples(share, most, apart):
    phrases = [k % 8 for k in range(20)]
    whole = WordTriples(
        *(cut_of([[[base + n]] for n in numbers]) for base, numbers in ((0, phrases), (50, range(20)), (90, phrases)))
    )
    learnt, measured = split_triples(whole, share, most, 0)
    held, kept = (one.phrases.ids.tolist() for one in (measured, learnt))
    assert (len(set(held)), set(held) & set(kept), sorted(held + kept)) == (apart, set(), sorted(phrases))
    for one in (learnt, measured):
        numbers = (one.true.ids - 50).tolist()
        assert numbers == sorted(numbers)
        assert [phrases[n] for n in numbers] == one.phrases.ids.tolist() == (one.false.ids - 90).tolist()
    if apart == 3:
        assert set(held) != set(split_triples(whole, share, most, 1)[1].phrases.ids.tolist()) or set(held) != {0, 1, 2}


@pytest.mark.parametrize(
    ("size", "most"), [(1000, 63), (1000, 64), (1000, 127), (1000, 128), (1000, 999), (65, 64), (64, 64)]
)
def test_runs_are_as_many_as_fit(size, most):
    rows = runs_of(size, most, seed=2)
    if size <= most:
        assert rows.tolist() == list(range(size))
        return
    runs = {int(row) // 64 for row in rows}
    assert len(runs) == max(1, most // 64)
    assert rows.tolist() == [row for run in sorted(runs) for row in range(64 * run, min(64 * run + 64, size))]
