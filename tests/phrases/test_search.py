"""The search of spans against scoring every span, and what must not change its result."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xswe.errors import ConfigError
from xswe.phrases import search as searching
from xswe.phrases.find import FoundPhrases, Hit, PassageFile, Place, find_phrases, mark_best
from xswe.phrases.kernels.top import Top
from xswe.phrases.search import Search, SpanConfig, _even_parts
from xswe.text.spans import Cut
from xswe.work.config import LOCAL, ExecutionConfig


class Digits:
    """Words are separated by blanks; the letters of a word are rows of the table. A word of ``-`` has no vector."""

    identity = ("digits",)

    def __init__(self, matrix: np.ndarray) -> None:
        self.matrix = matrix

    def rows(self, text: str) -> list[list[int]]:
        return [[ord(c) - 0x100 for c in word if c != "-"] for word in text.split()]

    def cut(self, texts, threads=1):
        lists = [self.rows(text) for text in texts]
        flat = [word for one in lists for word in one]
        ids = np.array([row for word in flat for row in word], np.int32)
        words = np.cumsum([0, *map(len, flat)], dtype=np.int64)
        return self.matrix, Cut(ids, words, np.cumsum([0, *map(len, lists)], dtype=np.int64))

    def places(self, texts):
        found = ([match.span() for match in re.finditer(r"\S+", text)] for text in texts)
        return [np.array(spans, np.int32).reshape(-1, 2) for spans in found]

    def vectors(self, text):
        return np.array([self.matrix[rows].sum(0, dtype=np.float64) for rows in self.rows(text)]).reshape(
            -1, self.matrix.shape[1]
        )

    def queries(self, texts):
        sums = np.array([self.vectors(text).sum(0) for text in texts]).reshape(-1, self.matrix.shape[1])
        norms = np.linalg.norm(sums, axis=1, keepdims=True)
        return np.divide(sums, norms, out=np.zeros_like(sums), where=norms > 0).astype(np.float32)


def make(seed=0, rows=300, width=16):
    rng = np.random.default_rng(seed)
    return Digits((rng.normal(size=(rows, width)) * rng.uniform(0.2, 2, (rows, 1))).astype(np.float32))


def texts(n, longest, seed=1, rows=300):
    rng = np.random.default_rng(seed)
    chances = 1 / np.arange(1, rows + 1)
    letters = rng.choice(rows, (n, longest, 2), p=chances / chances.sum()) + 0x100
    lengths = rng.integers(0, longest, n)
    words = [[chr(a) + (chr(b) if b % 3 == 0 else "") if a % 29 else "-" for a, b in row] for row in letters]
    return [" ".join(row[:length]) for row, length in zip(words, lengths, strict=True)]


def all_spans(source, passages, queries, low, high):
    """Cosines of every span with every query, and where the spans are."""
    scores, where = [], []
    for p, passage in enumerate(passages):
        words = source.vectors(passage)
        sums = np.zeros((len(words) + 1, words.shape[1]))
        for size in range(1, min(high, len(words)) + 1):
            sums = sums[:-1] + words[size - 1 :]
            norms = np.linalg.norm(sums, axis=1)
            if size >= low:
                known = words.any(1)
                there = np.flatnonzero((norms > 1e-9) & known[: len(sums)] & known[size - 1 :])
                scores.append(sums[there] @ queries.T / norms[there, None])
                where += [(p, i, i + size) for i in there.tolist()]
    return np.concatenate(scores), where


def naive(source, passages, queries, config):
    """The best spans by definition: all sorted, those that overlap a better one left out."""
    scores, where = all_spans(source, passages, queries, config.min_size, config.max_size)
    out = []
    for column in scores.T:
        kept = []
        for row in np.argsort(-column, kind="stable")[:2000]:
            p, a, b = where[row]
            if column[row] >= config.min_score and not any(q == p and a < d and c < b for _, q, c, d in kept):
                kept.append((column[row], p, a, b))
            if len(kept) == config.k:
                break
        out.append(kept)
    return out


def search(source, passages, queries, config, block=None):
    found = Search(source, queries, config)
    block = block or len(passages)
    for start in range(0, len(passages), block):
        found.add(passages[start : start + block], start)
    return found


def of_places(top: Top, field: str):
    return top.places[field].reshape(-1, top.k, top.examples)


def hits(top: Top, q: int):
    fields = [top.of_hits("score"), *(of_places(top, name)[:, :, 0] for name in ("passage", "first", "last"))]
    return [tuple(field[q, r] for field in fields) for r in range(top.used[q])]


@pytest.mark.parametrize(
    ("n", "longest", "config"),
    [
        (200, 30, SpanConfig(k=5, min_score=-1.0, threads=2)),
        (60, 200, SpanConfig(k=7, min_size=2, max_size=9, min_score=0.3)),
        (60, 150, SpanConfig(k=3, max_size=1, min_score=0.0)),
        (40, 90, SpanConfig(k=4, min_size=15, max_size=33, min_score=-1.0)),
    ],
)
def test_the_search_finds_what_scoring_every_span_finds(n, longest, config):
    source, passages = make(), texts(n, longest)
    phrases = [" ".join(passage.split()[2:5]) for passage in texts(70, 12, seed=5)]
    queries = source.queries(phrases)
    done = search(source, passages, queries, config)
    top, counts = done.top, [len(passage.split()) for passage in passages]
    sizes = range(config.min_size, config.max_size + 1)
    assert done.spans == len(queries) * sum(max(0, count + 1 - size) for count in counts for size in sizes)
    assert done.pairs == queries.any(1).sum() * sum(-(-count // 64) for count in counts if count >= config.min_size)
    expected = naive(source, passages, queries.astype(np.float64), config)
    for q in range(len(queries)):
        found = hits(top, q)
        if not queries[q].any():
            assert not found
            continue
        np.testing.assert_allclose([h[0] for h in found], [h[0] for h in expected[q]], atol=2e-6)
        assert len({(p, a) for _, p, a, _ in found}) == len(found)
        for score, p, a, b in found:
            span = source.vectors(passages[p])[a:b].sum(0)
            norm = np.linalg.norm(span)
            assert abs(score - span @ queries[q] / norm) < 2e-6
            assert not any(p == o and a < d and c < b for s, o, c, d in found if (o, c, d) != (p, a, b))


def test_a_hit_neither_begins_nor_ends_with_a_word_without_a_vector():
    source = make()
    a, b = (chr(0x100 + i) for i in (7, 8))
    passages = [f"- - {a} - {b} - -", "- -", f"- {a}"]
    for distinct in (False, True):
        config = SpanConfig(min_score=-1.0, distinct=distinct)
        top = search(source, passages, source.queries([f"{a} {b}", b]), config).top
        assert hits(top, 0)[0][1:] == (0, 2, 5)
        assert {(p, i, j) for _, p, i, j in hits(top, 1)} <= {(0, 4, 5), (0, 2, 3), (2, 1, 2)}


def test_one_text_in_the_place_of_many_and_phrases_without_a_known_word(caplog):
    source = make()
    for queries, passages in (("a", ["b"]), (["a"], "b")):
        with pytest.raises(TypeError, match="is one str, not several texts"):
            find_phrases(source, queries, passages)
    assert find_phrases(source, ["-"], [chr(0x107)]).found == ((),)
    assert "1 of 1 phrases have no unit that the model knows: ['-']" in caplog.text


def test_phrases_that_stand_in_many_passages_are_all_ones_and_the_first_stay():
    source, passages = make(), texts(200, 40) * 3
    phrases = [" ".join(passage.split()[3:7]) for passage in passages[:200]]
    queries = source.queries(phrases) * np.float32(1.0000006)  # as far from 1 as rounding leaves a norm
    alone = search(source, passages, queries, SpanConfig(k=2)).top
    assert (alone.of_hits("score") <= 1).all()
    full = (alone.of_hits("score") == 1).all(1)
    assert full.sum() > 100
    assert (of_places(alone, "passage")[full, 1, 0] < 400).all()
    for _ in range(3):
        shared = search(source, passages, queries, SpanConfig(k=2, threads=4)).top
        np.testing.assert_array_equal(shared.places["passage"], alone.places["passage"])


def test_threads_and_blocks_change_nothing_and_the_bound_spares_most_of_the_work():
    source, passages = make(), texts(300, 120)
    queries = source.queries(texts(70, 6, seed=7))
    first = search(source, passages, queries, SpanConfig())
    for config, block in ((SpanConfig(threads=2), None), (SpanConfig(threads=3), 37), (SpanConfig(), 1)):
        other = search(source, passages, queries, config, block)
        for name, a, b in zip(Top._fields, first.top, other.top, strict=True):
            np.testing.assert_array_equal(a, b, err_msg=name)
        assert other.spans == first.spans
    assert 0 < first.scored < 0.8 * first.pairs


def test_of_equal_scores_the_earlier_passage_wins():
    source = make()
    word, other = chr(0x100 + 7), chr(0x100 + 8)
    passages = [other, f"{word} {word}", other, *[word] * 9]
    for threads in (1, 2):
        config = SpanConfig(k=4, max_size=1, min_score=0.9, threads=threads)
        top = search(source, passages, source.queries([word]), config).top
        assert [(p, a) for _, p, a, _ in hits(top, 0)] == [(1, 0), (1, 1), (3, 0), (4, 0)]


@pytest.mark.parametrize(("others", "block"), [(0, None), (40, None), (90, 37)])
def test_lists_full_of_the_query_itself_end_the_search(others, block):
    source, passages = make(), texts(400, 90)
    own = " ".join(chr(0x100 + k) for k in (3, 150, 40))
    passages = [f"{passage} {own}" if n % 5 == 0 else passage for n, passage in enumerate(passages)]
    queries = source.queries([own, *texts(others, 6, seed=7)])
    found = search(source, passages, queries, SpanConfig(k=5), block)
    assert [p for _, p, _, _ in hits(found.top, 0)] == [0, 5, 10, 15, 20]
    assert {score for score, *_ in hits(found.top, 0)} == {1.0}
    for q in range(1, len(queries), 10):  # what is searched beside it finds what it finds alone
        assert hits(found.top, q) == hits(search(source, passages, queries[q : q + 1], SpanConfig(k=5)).top, 0)
    assert 0 < found.scored < found.pairs


def test_distinct_phrases_are_counted_and_keep_the_first_examples():
    source = make()
    a, b, c = (chr(0x100 + k) for k in (7, 8, 9))
    passages = [f"{c} {a}", b, f"{a} {c} {a}", a, "", f"{b} {b}", a]
    for threads, block in ((1, None), (2, None), (2, 3)):
        config = SpanConfig(k=2, max_size=1, min_score=-1.0, distinct=True, examples=2, threads=threads)
        top = search(source, passages, source.queries([a, b]), config, block).top
        times, where, first = top.of_hits("times"), of_places(top, "passage"), of_places(top, "first")
        assert times[0, 0] == 5
        assert where[0, 0].tolist() == [0, 2]
        assert first[0, 0].tolist() == [1, 0]
        assert top.of_hits("score")[0, 0] == pytest.approx(1.0, abs=1e-6)
        assert (times[1, 0], where[1, 0].tolist(), first[1, 0].tolist()) == (3, [1, 5], [0, 0])


def test_hits_have_exact_places_and_texts():
    source = make()
    a, b, c = (chr(0x100 + k) for k in (7, 8, 9))
    passages = ["", f"  {c}  {a}\t{b} {c}", f"{a}{b}"]
    found = find_phrases(source, [f"{a} {b}", "-"], passages, SpanConfig(k=2, min_score=0.9))
    assert found[1] == ()
    assert [(h.places[0].passage, h.places[0].text) for h in found[0]] == [(1, f"{a}\t{b}"), (2, f"{a}{b}")]
    place = found[0][0].places[0]
    assert passages[1][place.start : place.end] == place.text
    assert found[0][0].score == pytest.approx(1.0, abs=1e-6)


def test_a_killed_search_goes_on_to_the_same_result(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr("xswe.phrases.search._BLOCK_SIZE", 2000)
    monkeypatch.setattr("xswe.progress._CHECKPOINT_SECONDS", 0.0)
    source, passages = make(), texts(200, 30)
    phrases = texts(5, 5, seed=9)
    whole = find_phrases(source, phrases, passages)
    lines, added, add = tmp_path / "passages.txt", [], Search.add
    lines.write_text("".join(f"{passage}\n" for passage in passages), "utf-8")

    def broken(self, block, base):
        added.append(base)
        if len(added) == 4:
            raise KeyboardInterrupt
        add(self, block, base)

    def found():
        return find_phrases(source, phrases, PassageFile(str(lines), tmp_path))

    monkeypatch.setattr(Search, "add", broken)
    with pytest.raises(KeyboardInterrupt):
        found()
    reached = added[-1]
    assert reached > 0
    assert found() == whole
    assert added[4] == reached
    (state,) = tmp_path.glob("search-*/state.safetensors")
    state.write_bytes(state.read_bytes()[:-1])
    assert found() == whole
    assert "state.safetensors: damaged since it was written; its work is done again" in caplog.text
    added.clear()
    lines.write_text("".join(f"{passage}\n" for passage in passages[::-1]), "utf-8")  # another text
    with pytest.raises(KeyboardInterrupt):
        found()
    assert added[0] == 0


@pytest.mark.parametrize("execution", [LOCAL, ExecutionConfig("array", 0, 1, shard=150)])
def test_equal_phrases_of_a_file_are_counted_however_it_is_cut(tmp_path, execution):
    source = directions(*np.linspace(0, 3, 50))
    passages = [" ".join(chr(0x100 + n) for n in row) for row in np.random.default_rng(0).integers(0, 50, (60, 4))]
    (tmp_path / "a.txt").write_text("".join(f"{passage}\n" for passage in passages), "utf-8")
    queries, config = [chr(0x100), chr(0x120)], SpanConfig(1, 1, 3, -1.0, True)
    source.identity = ["digits"]
    file = PassageFile(str(tmp_path / "a.txt"), tmp_path, execution, model="x")
    found = find_phrases(source, queries, file, config)
    assert found == find_phrases(source, queries, passages, config)
    assert file.lines == 60
    assert [hit.times for hit in found[0]] == [sum(p.count(chr(0x100 + n)) for p in passages) for n in range(3)]


def test_settings_that_cannot_work_are_refused():
    for wrong in (
        {"min_size": 0},
        {"min_size": 5, "max_size": 4},
        {"k": 0},
        {"min_score": 2.0},
    ):
        with pytest.raises(ConfigError):
            SpanConfig(**wrong)


def directions(*angles):
    """One-letter words whose vectors lie in a plane."""
    return Digits(np.array([[np.cos(angle), np.sin(angle)] for angle in angles], np.float32))


@pytest.mark.parametrize("cosine", [-1.0, -0.5, 0.0, 0.2, 0.3, 0.5, 0.7, 1.0])
@pytest.mark.parametrize("distinct", [False, True])
def test_a_hit_has_at_least_the_least_score(cosine, distinct):
    source = directions(0.0, np.arccos(cosine))
    query, word = chr(0x100), chr(0x101)
    for least, found in ((cosine, 1), (cosine + 1e-5, 0), (cosine - 1e-5, 1)):
        if -1 <= least <= 1:
            hits = find_phrases(source, [query], [word], min_score=least, distinct=distinct)[0]
            assert [hit.score for hit in hits] == [pytest.approx(cosine, abs=1e-6)] * found
    assert len(find_phrases(source, [query], [word])[0]) == (cosine >= 0)  # 0 if none is given


@settings(max_examples=25)
@given(
    passages=st.lists(st.lists(st.integers(0, 5), max_size=8), max_size=12),
    k=st.integers(1, 7),
    examples=st.integers(1, 4),
    threads=st.integers(1, 3),
    block=st.integers(1, 12),
    parts=st.booleans(),
)
def test_equal_words_are_counted_as_by_hand(passages, k, examples, threads, block, parts):
    angles = [0.3, 1.0, -0.7, 2.0, -2.5, 3.0]
    source, config = directions(*angles), SpanConfig(1, 1, k, -1.0, True, examples, threads)
    texts = [" ".join(chr(0x100 + n) for n in passage) for passage in passages]
    queries = np.array([[1, 0], [0, 1]], np.float32)
    found = Search(source, queries, config)
    for start in range(0, len(texts), block):
        some = texts[start : start + block]
        if parts:  # as shards are, with numbers of their own
            part = Search(source, queries, SpanConfig(1, 1, 6, -1.0, True, examples, threads))
            part.add(some, 0)
            part.texts, part.done = dict(enumerate(some)), len(some)
            found.merge(part)
        else:
            found.add(some, start)
    places = [(p, i, n) for p, passage in enumerate(passages) for i, n in enumerate(passage)]
    for q, turn in enumerate((np.cos, np.sin)):
        best = sorted({n for _, _, n in places}, key=lambda n: -turn(angles[n]))[:k]
        hits = found.top.hits[q * k : q * k + found.top.used[q]]
        assert hits["score"].tolist() == pytest.approx([turn(angles[n]) for n in best], abs=2e-6)
        where = [[(p, i) for p, i, m in places if m == n] for n in best]
        assert hits["times"].tolist() == list(map(len, where))
        assert hits["spread"].tolist() == [len({p for p, _ in one}) for one in where]
        for r, one in enumerate(where, q * k):
            kept = found.top.places[r * examples : (r + 1) * examples].tolist()
            assert kept[: len(one)] == [(p, i, i + 1) for p, i in one[:examples]]
            assert [p for p, _, _ in kept[len(one) :]] == [-1] * max(0, examples - len(one))
    if parts:
        shown = {p for p, _, _ in found.top.places.tolist() if p >= 0}
        assert found.texts == {p: texts[p] for p in sorted(shown)}
        assert found.done == len(texts)


def test_blocks_have_as_many_characters_as_the_longest_spans_leave_room_for(monkeypatch):
    monkeypatch.setattr(searching, "_BLOCK_SIZE", 12)
    source, query = directions(0.0), np.array([[1, 0]], np.float32)
    passages = [chr(0x100) * size for size in (3, 6, 3, 30, 0, 1, 0, 2, 1, 2)]
    for longest, blocks in (
        (1, [3, 1, 6]),
        (20, [3, 1, 6]),
        (21, [2, 2, 6]),
        (30, [2, 2, 5, 1]),
        (40, [2, 2, 4, 2]),
        (240, [1] * 10),
    ):
        assert list(Search(source, query, SpanConfig(1, longest)).read(passages)) == blocks, longest
    source.block_characters = 4
    assert list(Search(source, query, SpanConfig(1, 2)).read(passages)) == [1, 1, 1, 1, 3, 2, 1]
    assert list(Search(source, query, SpanConfig()).read(passages[:0])) == []


def test_lists_that_take_too_much_memory_are_refused(monkeypatch):
    source, queries = directions(0.0), np.ones((3, 2), np.float32)
    monkeypatch.setattr(searching, "_MAX_BYTES", 3 * 7 * (40 + 16 * 2))
    assert len(Search(source, queries, SpanConfig(k=7, examples=2)).top.hits) == 21
    with pytest.raises(ConfigError) as caught:
        Search(source, queries, SpanConfig(k=8, examples=2))
    assert str(caught.value) == "k=8: the lists of 3 queries would take 0 GiB"


def test_hits_as_rows_and_with_what_is_around_them():
    context = "before the word after"
    place = Place(4, 11, 15, context)
    assert place.text == "word"
    assert place.around(0) == ("…", "…")
    assert place.around(5) == ("… the ", " afte…")
    assert place.around(6) == ("…e the ", " after")
    assert place.around(10) == ("…efore the ", " after")
    assert place.around(11) == ("before the ", " after")
    hits = (Hit(0.9, 3, 2, (place, Place(5, 0, 6, context))), Hit(0.5, 1, 1, (Place(5, 0, 6, context),)))
    found = FoundPhrases(("a", "b", "c"), (hits, (), hits[1:]))
    assert repr(found) == "FoundPhrases(3 phrases, 3 hits)"
    assert list(found.records()) == [
        ("a", 0.9, "word", 3, 2, 4, context),
        ("a", 0.5, "before", 1, 1, 5, context),
        ("c", 0.5, "before", 1, 1, 5, context),
    ]


def test_the_best_span_of_a_text_is_marked_unless_it_is_the_whole():
    source = directions(0.0, 1.0, 2.0)
    a, b, c = (chr(0x100 + n) for n in range(3))
    texts = [f"{b}  {a} {b}", f" {a} ", "", f"{c}{b}"]
    assert list(mark_best(source, a, texts)) == [f"{b}  [{a}] {b}", f" {a} ", "", f"{c}{b}"]
    assert list(mark_best(source, a, texts[:1], "<", ">")) == [f"{b}  <{a}> {b}"]


@given(st.lists(st.integers(0, 20), min_size=1, max_size=30), st.integers(1, 5))
def test_passages_are_shared_out_by_their_words(sizes, parts):
    texts = np.cumsum([0, *sizes])
    found = _even_parts(texts, parts)
    assert [row for a, b in found for row in range(a, b)] == list(range(len(sizes)))
    assert 1 <= len(found) <= parts
    assert all(a < b for a, b in found)
    assert max(texts[b] - texts[a] for a, b in found) < texts[-1] / parts + 2 * max(sizes) + 1
