"""Extraction with a teacher whose states are known: the state of a token is [its place, tokens in the sentence, 1]."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers

from tests.conftest import FakeTeacher
from tests.training.extracting import extract
from xswe.corpus.contexts import ContextConfig, choose_contexts
from xswe.errors import ConfigError
from xswe.io.ragged import Bags, Texts
from xswe.text.subwords import SubwordUnits
from xswe.text.units import trim_span
from xswe.text.words import WordSplitter, WordUnits
from xswe.training import extract as module
from xswe.training.extract import ExtractConfig, LanguageSample
from xswe.work import run as work_run

VOCABULARY = ["cat", "at", "dog", "a", "rare"]


@pytest.fixture
def units():
    return WordUnits(VOCABULARY, WordSplitter(("en", "de"), {}, None), None)


def sample_of(units, texts, code="en", n=100):
    exact = units.exact.bags(texts)
    contexts = choose_contexts(units.bags(texts), len(units.tokens), ContextConfig(per_unit=n), exact=exact)
    chosen = Texts.of(texts[i] for i in contexts.sentences)
    return LanguageSample(code, chosen, contexts, exact.counts(len(units.tokens)))


def extracted(teacher, units, samples, config):
    with TemporaryDirectory() as folder:
        return extract(teacher, units, samples, config, Path(folder))


def run(units, texts, teacher=None, n=100, **options):
    config = ExtractConfig(**{"isolated": False, **options})
    return extracted(teacher or FakeTeacher(), units, [sample_of(units, texts, n=n)], config)


def test_known_answers(units):
    made = run(units, ["a cat", "dog cat at"])
    # cat: characters 2-4 of "a cat" (mean place 3, 5 tokens) and 4-6 of "dog cat at" (mean 5, 10 tokens)
    np.testing.assert_allclose(made.matrix[0], [4.0, 7.5, 1.0], rtol=1e-6)
    assert made.matrix[1].tolist() == [8.5, 10.0, 1.0]
    assert made.contexts.tolist() == [2, 1, 1, 1, 0]
    assert not made.matrix[4].any()


def test_a_word_inside_a_longer_word_does_not_count(units):
    # The reference matches token ids without a right boundary: "at" is found in "attic" and "cats".
    made = run(units, ["attic cats", "at"])
    assert made.matrix[1].tolist() == [0.5, 2.0, 1.0]
    assert made.contexts.tolist() == [0, 1, 0, 0, 0]


def words_that_back_off(words, languages=("en", "de"), segmenters=None):
    """Units of words that back off along the letters: what is unknown is the longest known beginning of it."""
    letters = sorted(set("abcdefghijklmnopqrstuvwxyzüABCGHÜ猫語国かな"))
    pieces = Tokenizer(models.Unigram([("<unk>", -20.0), *((letter, -1.0) for letter in letters)], unk_id=0))
    pieces.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return WordUnits(words, WordSplitter(languages, segmenters or {}, pieces), pieces)


def test_a_word_that_backs_off_to_another_is_none_of_its_contexts():
    units = words_that_back_off(["at", "Gesamt", "über", "rare"])
    texts = ["attic at", "attic", "Gesamtbetrag x Gesamt", "Gesamtbetrag", "Über über", "rarely Rare"]
    assert units.bags(texts).ids.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 3, 3]
    made = run(units, texts)
    assert made.matrix[:3, 0].tolist() == [6.5, 17.5, 6.5]  # the middle of the word itself, in its own case
    assert made.contexts.tolist() == [1, 1, 1, 0]
    assert not made.matrix[3].any()


def test_a_unit_found_by_the_back_off_alone_is_as_one_without_contexts():
    units = words_that_back_off(["at", "dog"])
    samples = [sample_of(units, ["attic dog"]), sample_of(units, ["dog at"], "de")]
    assert [one.counts.tolist() for one in samples] == [[0, 1], [1, 1]]
    for merge in ("average", "frequency"):
        made = extracted(FakeTeacher(), units, samples, ExtractConfig(merge, isolated=False))
        assert made.matrix[0].tolist() == [4.5, 6.0, 1.0]  # German alone
    separate = extracted(FakeTeacher(), units, samples, ExtractConfig("separate", isolated=False)).matrix.reshape(2, 2, 3)
    assert separate[:, 0].tolist() == [[4.5, 6.0, 1.0]] * 2
    alone = extracted(FakeTeacher(), units, samples[:1], ExtractConfig(isolated=True)).matrix
    assert alone[0].tolist() == [0.5, 2.0, 1.0]


def naive_places(units, text):
    """Every unit of one text and its place, found one by one."""
    if isinstance(units, WordUnits):
        return [(units.tokens.index(w.form), w.start, w.end) for w in units.splitter(text) if w.form in units.tokens]
    encoding = units.tokenizer.encode(text, add_special_tokens=False)
    found = [(i, *trim_span(text, *span)) for i, span in zip(encoding.ids, encoding.offsets, strict=True)]
    return [(i, start, end) for i, start, end in found if units.tokens[i] and start < end]


def naive_extraction(units, texts, n):
    """The mean over the n shortest texts that contain a unit of the mean place of its first occurrence."""
    places, matrix = [naive_places(units, text) for text in texts], np.zeros((len(units.tokens), 3))
    lengths = units.bags(texts).lengths
    for unit in range(len(units.tokens)):
        holding = [row for row, found in enumerate(places) if any(i == unit for i, _, _ in found)]
        chosen = sorted(holding, key=lambda row: (lengths[row], row))[:n]
        firsts = [next((a + b - 1) / 2 for i, a, b in places[row] if i == unit) for row in chosen]
        if chosen:
            matrix[unit] = np.mean(firsts), np.mean([len(texts[row]) for row in chosen]), 1.0
    return matrix


@pytest.fixture(scope="module")
def kinds(tokenizer_json):
    """Units of every kind, with a little of all that a text below can hold."""
    words = ["at", "a", "b", "ab", "ba", "Ab", "ü", "Üb", "猫", "猫語", "か"]
    every = ("en", "de", "zh", "ja")
    made = {name: words_that_back_off(words, every, {"zh": name, "ja": name}) for name in ("teacher", "teacher-text")} | {
        "no Han": words_that_back_off(words)
    }
    tokenizer = Tokenizer.from_str(tokenizer_json)
    return [*made.values(), *(SubwordUnits(tokenizer, kind, every) for kind in ("teacher", "subwords"))]


texts_of_parts = st.lists(
    st.lists(st.sampled_from([*"abABtÜü猫語国か ,(", "ab", "attic", "at ", " Üb", "が\u3099"]), max_size=8).map("".join),
    min_size=1,
    max_size=8,
    unique=True,
)


@settings(max_examples=15)
@given(texts=texts_of_parts, n=st.integers(1, 3), compiled=st.booleans())
def test_the_extraction_is_a_naive_one_for_units_of_every_kind(kinds, texts, n, compiled):
    for units in kinds:
        with pytest.MonkeyPatch.context() as patch:
            for one in (units, units.exact):
                patch.setattr(one, "_worth", lambda _: compiled)
            made = run(units, texts, n=n).matrix
        np.testing.assert_allclose(made, naive_extraction(units, texts, n), rtol=1e-5, err_msg=str(units.settings))


def test_a_word_after_a_bracket_or_quote_counts(units):
    made = run(units, ["(cat)"])
    assert made.matrix[0].tolist() == [2.0, 5.0, 1.0]


def test_the_first_occurrence_in_a_sentence_counts_once(units):
    made = run(units, ["cat dog cat"])
    assert made.matrix[0].tolist() == [1.0, 11.0, 1.0]
    assert made.contexts[0] == 1


def test_one_long_sentence_does_not_discard_the_others(units):
    # The reference drops every sentence of a word one of whose sentences is longer than the encoder's input.
    class Short(FakeTeacher):
        def states(self, texts, batches):
            yield from super().states([t[:40] for t in texts], batches)

    made = run(units, ["x " * 500 + "cat", "a cat"], Short())
    assert made.matrix[0].tolist() == [3.0, 5.0, 1.0]
    assert made.contexts[0] == 1


@pytest.mark.parametrize("batch", [1, 2, 100])
def test_batches_do_not_matter(units, batch):
    texts = ["a cat", "dog cat at", "cat", "a dog at a cat", "at a"]
    np.testing.assert_allclose(run(units, texts, FakeTeacher(batch)).matrix, run(units, texts).matrix, rtol=1e-6)


def test_each_sentence_is_encoded_once_where_the_reference_encodes_each_pair(units):
    teacher = FakeTeacher()
    made = run(units, ["a cat", "dog cat at", "a dog at a cat"], teacher)
    assert sorted(teacher.encoded) == sorted(["a cat", "dog cat at", "a dog at a cat"])
    assert (made.passes, made.reference_passes) == (3, 2 + 3 + 4)


def test_only_the_chosen_contexts_are_harvested(units):
    texts = ["dog dog dog dog cat", "a cat"]
    assert run(units, texts, n=1).matrix[0].tolist() == [3.0, 5.0, 1.0]
    # "dog" brings the long sentence in, "cat" has its one context elsewhere.
    assert run(units, texts, n=1).contexts.tolist() == [1, 0, 1, 1, 0]


def test_shared_units_are_merged_by_the_stated_rule(units):
    english = sample_of(units, ["cat dog", "cat dog a", "cat at"])
    german = sample_of(units, ["aa cat"], "de")
    teacher = FakeTeacher()
    average = extracted(teacher, units, [english, german], ExtractConfig("average", isolated=False)).matrix[0]
    frequency = extracted(teacher, units, [english, german], ExtractConfig("frequency", isolated=False)).matrix[0]
    assert average[0] == pytest.approx((1.0 + 4.0) / 2)
    assert frequency[0] == pytest.approx((3 * 1.0 + 1 * 4.0) / 4)


def test_units_without_context_get_their_state_alone(units):
    made = run(units, ["a cat"], isolated=True)
    assert made.matrix[4].tolist() == [1.5, 4.0, 1.0]
    assert made.contexts[4] == 0


class Killed(Exception):
    pass


@pytest.fixture
def in_shards(monkeypatch):
    """Two batches are a shard, and all are kept."""
    monkeypatch.setattr(module, "_MIN_SHARD_SENTENCES", 6)
    monkeypatch.setattr("xswe.work.kept.BRIEF", 0.0)


@pytest.mark.parametrize("killed_after", [0, 1, 2, 5, 6])
def test_a_killed_extraction_goes_on_to_the_same_bytes(units, tmp_path, killed_after, in_shards):
    english = [f"{'a ' * (i % 5)}cat {'dog ' * (i % 3)}at" for i in range(12)]
    samples = [sample_of(units, english), sample_of(units, [t[::-1] + " cat" for t in english], "de")]
    given = units, samples, ExtractConfig(isolated=False)
    undisturbed = extracted(FakeTeacher(), *given)

    class Dies(FakeTeacher):
        left = killed_after

        def states(self, texts, batches):
            for made in super().states(texts, batches):
                if self.left == 0:
                    raise Killed
                self.left -= 1
                yield made

    with pytest.raises(Killed):
        extract(Dies(), *given, tmp_path / "shards")
    teacher = FakeTeacher()
    resumed = extract(teacher, *given, tmp_path / "shards")
    assert resumed.matrix.tobytes() == undisturbed.matrix.tobytes()
    assert resumed.contexts.tolist() == undisturbed.contexts.tolist()
    assert len(teacher.encoded) == 24 - 6 * (killed_after // 2)  # the shard that it was at is done again


def test_the_bar_moves_within_a_shard_by_sentences_and_past_what_is_kept(units, tmp_path, in_shards, monkeypatch):
    moved, opened = [], work_run.bar

    @contextmanager
    def bar(name, total, unit):
        assert (name, total, unit) == ("extract", 12, "sentence")
        with opened(name, total, unit) as shown:
            shown.update = moved.append
            yield shown

    monkeypatch.setattr(work_run, "bar", bar)
    samples = [sample_of(units, [f"{'a ' * i}cat" for i in range(12)])]
    for expected in ([3, 3, 0] * 2, [6, 6]):
        extract(FakeTeacher(), units, samples, ExtractConfig(isolated=False), tmp_path / "shards")
        assert moved == expected
        moved.clear()


class Slow(FakeTeacher):
    """Takes its time over each batch, as a device does: without the interpreter."""

    spent = 0.0

    def states(self, texts, batches):
        for made in super().states(texts, batches):
            begun = time.monotonic()
            time.sleep(0.03)
            self.spent += time.monotonic() - begun
            yield made


class SlowUnits(WordUnits):
    fails_at, spent = None, 0.0
    exact = property(lambda self: self)

    def locate(self, texts):
        begun = time.monotonic()
        time.sleep(0.03)
        self.spent += time.monotonic() - begun
        if self.fails_at is not None:
            self.fails_at -= 1
            if self.fails_at < 0:
                raise Killed
        return super().locate(texts)


def helpers():
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("xswe-alongside")]


def test_the_teacher_works_while_the_batch_before_is_harvested():
    units = SlowUnits(VOCABULARY, WordSplitter(("en", "de"), {}, None), None)
    sample = sample_of(units, [f"a cat {'at ' * (i % 7)}{'dog ' * (i % 5)}" for i in range(90)])
    undisturbed = extracted(FakeTeacher(), units, [sample], ExtractConfig(isolated=False))
    teacher, units.spent, begun = Slow(), 0.0, time.monotonic()
    made = extracted(teacher, units, [sample], ExtractConfig(isolated=False))
    seconds = time.monotonic() - begun
    assert made.matrix.tobytes() == undisturbed.matrix.tobytes()
    assert min(teacher.spent, units.spent) >= 30 * 0.03
    assert seconds < 0.8 * (teacher.spent + units.spent)  # one after the other they take the sum
    assert not helpers()


def test_an_error_of_the_harvest_ends_the_extraction_and_its_thread(tmp_path, in_shards):
    units = SlowUnits(VOCABULARY, WordSplitter(("en", "de"), {}, None), None)
    samples = [sample_of(units, [f"a cat {'at ' * (i % 7)}{'dog ' * (i % 5)}" for i in range(30)])]
    given = units, samples, ExtractConfig(isolated=False)
    undisturbed = extracted(FakeTeacher(), *given)
    units.fails_at = 5
    with pytest.raises(Killed):
        extract(FakeTeacher(), *given, tmp_path / "shards")
    assert not helpers()
    units.fails_at, teacher = None, FakeTeacher()
    resumed = extract(teacher, *given, tmp_path / "shards")
    assert len(teacher.encoded) == 30 - 4 * 3  # of the two shards before the one that failed
    assert resumed.matrix.tobytes() == undisturbed.matrix.tobytes()


def test_an_interrupt_of_the_teacher_leaves_no_thread_behind(units, tmp_path, in_shards):
    class Interrupted(FakeTeacher):
        def states(self, texts, batches):
            yield from super().states(texts, batches[:1])
            raise KeyboardInterrupt

    samples = [sample_of(units, ["a cat", "dog cat at", "cat", "a dog at a cat", "at a", "a", "dog"])]
    with pytest.raises(KeyboardInterrupt):
        extract(Interrupted(), units, samples, ExtractConfig(isolated=False), tmp_path / "shards")
    assert not helpers()


def test_shards_of_other_inputs_are_refused(units, tmp_path, in_shards):
    given = [sample_of(units, ["a cat", "cat dog"])], ExtractConfig(isolated=False), tmp_path / "shards"
    extract(FakeTeacher(1), units, *given)
    other = FakeTeacher(1)
    other.identity = "another"
    with pytest.raises(ConfigError, match="holds the shards of other settings, inputs or another version"):
        extract(other, units, *given)
    assert not other.encoded


def test_units_and_tokens_of_different_cuts_meet_by_characters():
    # A unit smaller than the token takes the token's state; one larger takes the mean of its tokens.
    class Pairs(FakeTeacher):
        def states(self, texts, batches):
            for rows in batches:
                sizes = [(len(texts[r]) + 1) // 2 for r in rows]
                hidden = np.concatenate([np.stack([np.arange(n), np.full(n, n), np.ones(n)], 1) for n in sizes])
                starts = np.concatenate([2 * np.arange(n) for n in sizes]).astype(np.int32)
                from xswe.teacher.protocol import States

                yield States(rows, hidden.astype(np.float32), np.concatenate([[0], np.cumsum(sizes)]), starts, starts + 2)

    units = WordUnits(["a", "cat"], WordSplitter(("en", "de"), {}, None), None)
    texts = Texts.of(["a cat"])
    bags = units.bags(texts)
    assert bags.ids.tolist() == Bags.of([[0, 1]]).ids.tolist()
    sample = LanguageSample("en", texts, choose_contexts(bags, 2, ContextConfig()), bags.counts(2))
    made = extracted(Pairs(), units, [sample], ExtractConfig(isolated=False))
    assert made.matrix[:, 0].tolist() == [0.0, 1.5]
