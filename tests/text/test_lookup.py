"""The compiled look-up gives what the tokenizers library gives, on any text."""

from __future__ import annotations

import json
import unicodedata

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from xswe.io.ragged import Texts
from xswe.text.compiled import alphabet as alphabet_module
from xswe.text.compiled import lookup as lookup_module
from xswe.text.compiled import scan as scan_module
from xswe.text.compiled import viterbi
from xswe.text.compiled.alphabet import Alphabet
from xswe.text.compiled.locate import PiecePlaces, Tracer
from xswe.text.compiled.lookup import FastLookup
from xswe.text.compiled.viterbi import build_trie
from xswe.text.subwords import SubwordUnits
from xswe.text.tokenizers import chunker, is_trained_here, train_subwords

ALL = ("en", "de", "zh", "ja")


@pytest.fixture(scope="module")
def units(tokenizer_json):
    return SubwordUnits(Tokenizer.from_str(tokenizer_json), "subwords", ALL)


def fast_of(units):
    return FastLookup(units.state(), units._is_unit, units._by_tokenizer)


def check_equal(units, texts, fast=None):
    fast = fast or fast_of(units)
    slow = units._by_tokenizer([t.encode("utf-8", "replace").decode("utf-8") for t in texts])
    for _ in range(2):  # first with new words, then from the table
        found = fast(Texts.of(texts))
        assert found.ids.tolist() == slow.ids.tolist()
        assert found.offsets.tolist() == slow.offsets.tolist()


def tracer_of(units):
    return Tracer(PiecePlaces(units.state()), False, units._is_unit, units._locate_by_tokenizer)


def check_places(units, texts, tracer=None):
    tracer = tracer or tracer_of(units)
    slow = units._locate_by_tokenizer(texts)
    for _ in range(2):  # first with new words, then from the table
        found = tracer(Texts.of(texts))
        assert found.bags.ids.tolist() == slow.bags.ids.tolist()
        assert found.bags.offsets.tolist() == slow.bags.offsets.tolist()
        assert found.starts.tolist() == slow.starts.tolist()
        assert found.ends.tolist() == slow.ends.tolist()


def test_places_in_the_sample_in_four_languages(units, sample, monkeypatch):
    monkeypatch.setattr("xswe.text.compiled.locate._SCAN_BYTES", 5000)
    tracer = tracer_of(units)
    for code in ALL:
        check_places(units, sample[code][:400], tracer)


def test_places_are_found_in_compiled_code_once_there_is_enough_to_do(tokenizer_json, sample, monkeypatch):
    units = SubwordUnits(Tokenizer.from_str(tokenizer_json), "subwords", ALL, lone_mark=True)
    texts = [*sample["en"][:50], "x\u0301y" * 20, "", *sample["ja"][:50], *sample["zh"][:50]]
    plain = units._locate_by_tokenizer(texts)
    monkeypatch.setattr(units, "_worth", lambda _: True)
    calls = []
    slowly = units._locate_by_tokenizer
    monkeypatch.setattr(units, "_locate_by_tokenizer", lambda some: calls.append(len(some)) or slowly(some))
    found = units.locate(texts)
    assert found.bags.ids.tolist() == plain.bags.ids.tolist()
    assert (found.starts.tolist(), found.ends.tolist()) == (plain.starts.tolist(), plain.ends.tolist())
    assert 0 < sum(calls) < 20  # texts with combining marks alone
    assert len(units.locate([]).bags) == 0


def test_the_sample_in_four_languages(units, sample):
    fast = fast_of(units)
    for code in ALL:
        check_equal(units, sample[code][:600], fast)


# Characters near the borders of what is treated one by one, mixed with ordinary text.
tricky = st.sampled_from(
    [
        *"aB9 ß.,!«、。「一語猫カーぁ々〇ｱﾊﾟﾞ゛゜①㈱㍻½²ŉǆΣςİıſﬁﷺ…—’“”¿¡€©®°$+<=>^`|~▁_",
        *"\t\n\r\x00\x7f\u00a0\u00ad\u200b\u200d\u2028\u3000\ufeff𠮷🙂ÅΩ각",
        *["e\u0301", "か\u3099", "\u1100\u1161", "👨‍👩‍👧", "🇩🇪", "👍🏽", "✌️", "हिन्दी", "ไทย", "עברית", "العربية"],
    ]
)


@settings(max_examples=25)
@given(texts=st.lists(st.one_of(st.text(max_size=30), st.lists(tricky, max_size=12).map("".join)), max_size=6))
def test_any_unicode(units, texts):
    check_equal(units, texts)
    check_places(units, [t.encode("utf-8", "replace").decode("utf-8") for t in texts])


@pytest.fixture(scope="module")
def marking(tokenizer_json):
    return SubwordUnits(Tokenizer.from_str(tokenizer_json), "subwords", ALL, lone_mark=True)


@settings(max_examples=12)
@given(texts=st.lists(st.one_of(st.text(max_size=30), st.lists(tricky, max_size=12).map("".join)), max_size=6))
def test_places_of_lone_marks(marking, texts):
    check_places(marking, [t.encode("utf-8", "replace").decode("utf-8") for t in texts])


def test_places_of_the_longest_words(marking):
    check_places(marking, ["A cat", "x" * 4094, "x" * 4096, "x" * 4097, "語" * 3000, "猫"])


# Characters of blocks in which they differ by their numbers alone, and what is no character: some of them will do, and of
# Han characters and those beyond the first plane where there is little time.
UNIFORM = [range(0x3400, 0x4DC0), range(0xAC00, 0xD7A4), range(0xE000, 0xF900), range(0x17000, 0x18D00)]
UNIFORM += [range(0x20000, 0x2F800)]


def uniform(code):
    return unicodedata.category(chr(code)) == "Cn" or any(code in block[1:-1] for block in UNIFORM)


@pytest.mark.parametrize(("few", "most", "all_but"), [(1009, 211, 13), pytest.param(7, 1, 1, marks=pytest.mark.slow)])
def test_characters_alone_doubled_and_between_letters(units, few, most, all_but):
    steps = ((c, few if uniform(c) else most if 0x4E00 <= c < 0xA000 or c > 0xFFFF else all_but) for c in range(0x30000))
    codes = [c for c, step in steps if not 0xD800 <= c < 0xE000 and c % step == 0]
    texts = [f"{chr(c)} a{chr(c)}{chr(c)}a 語{chr(c)}語" for c in codes]
    fast, tracer = fast_of(units), tracer_of(units)
    for start in range(0, len(texts), 50_000):
        block = texts[start : start + 50_000]
        check_places(units, block, tracer)
        found, slow = fast(Texts.of(block)), units._by_tokenizer(block)
        assert found.offsets.tolist() == slow.offsets.tolist()
        assert found.ids.tolist() == slow.ids.tolist()


def test_very_long_words_and_runs(units):
    check_equal(units, ["x" * 3000, "x" * 5000, "語" * 900 + "x", "語" * 3000, "ab " * 5000, "㌀" * 50])


def test_chunks_that_differ_only_beyond_what_a_slot_holds(units):
    stem = "abcdefghijklmnopqrstu"  # with the word's mark just what a slot holds
    check_equal(units, [stem, f"{stem}v", f"{stem}w", f"{stem}vw", f"{stem}{stem}v", f"{stem}{stem}w", stem[:-1]])


def test_the_table_of_words_is_bounded_and_survives_growth(units, monkeypatch):
    monkeypatch.setattr(lookup_module, "_MAX_SLOTS", 1 << 13)
    rng = np.random.default_rng(0)
    texts = ["".join(chr(97 + c) for c in rng.integers(0, 26, 5)) + f" word{i}" for i in range(12_000)]
    fast = fast_of(units)
    check_equal(units, texts, fast)
    table = fast._own.words
    assert len(table.slots) == 8 << 13
    assert 1 << 12 < table.used[0] <= 5 << 10


def test_a_chunk_is_added_to_the_table_once_and_has_a_slot(units):
    fast = fast_of(units)
    stem = "abcdefghijklmnopqrstu"
    texts = Texts.of([f"one two{n % 300} {stem} {stem}{stem}{n % 7} zwei{n % 50}, two{n % 300}" for n in range(600)])
    fast(texts)
    table = fast._own.words
    used, slots = table.used.copy(), table.slots.copy()
    assert used[0] > 350
    assert np.count_nonzero(slots.reshape(-1, 8)[:, 3]) == used[0]
    fast(texts)
    assert (fast._own.words.used == used).all()
    assert (fast._own.words.slots == slots).all()


def test_threads_share_the_alphabet(units, sample):
    from concurrent.futures import ThreadPoolExecutor

    fast = fast_of(units)
    texts = [sample[code][:400] for code in ALL] * 3
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda block: fast(Texts.of(block)).ids.tolist(), texts))
    assert found == [units._by_tokenizer(block).ids.tolist() for block in texts]


def test_the_scan_is_compiled_once_wherever_texts_come_from(units, tmp_path):
    fast, texts = fast_of(units), Texts.of(["a text", "und 語"])
    fast(texts)
    compiled = len(scan_module.scan_all.signatures)
    np.save(tmp_path / "data.npy", texts.data)
    np.save(tmp_path / "offsets.npy", texts.offsets)
    mapped = Texts(*(np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in ("data", "offsets")))
    for same in (texts.take(np.arange(2)), texts[:2], mapped):
        assert fast(same).ids.tolist() == fast(texts).ids.tolist()
    assert len(scan_module.scan_all.signatures) == compiled


def test_chinese_is_not_folded_where_the_model_has_none():
    units = SubwordUnits(train_subwords(["圖書館 語る", "a b c d e"] * 4, ("en", "ja"), 30), "subwords", ("en", "ja"))
    check_equal(units, ["圖書館", "図書", "語", "図"])


def test_an_alphabet_learns_each_character_once(tokenizer):
    asked = []

    def normalise(text):
        asked.append(text)
        return tokenizer.normalizer.normalize_str(text)

    alphabet = Alphabet(normalise, tokenizer.pre_tokenizer.pre_tokenize_str, "▁")
    entries = alphabet.table[0]
    assert entries[ord("語")] == -1
    for _ in range(2):
        alphabet.learn(np.array([ord("語"), ord("語"), 0x301]))
    assert "".join(asked).count("語") == 1
    assert entries[ord("語")] & ((1 << 21) - 1) == ord("语")  # also for those who read the table already
    assert entries[0x301] == -2


def test_an_alphabet_without_room_leaves_characters_to_the_tokenizer(units, monkeypatch):
    monkeypatch.setattr(alphabet_module, "_MAX_EXPANSIONS", 8)
    texts = ["㈱ ㍻ ﬁ ﬂ ①②③ ㌀ … ½"]
    fast = fast_of(units)
    check_equal(units, texts, fast)
    assert (fast._alphabet.table[0][[ord("㈱"), ord("㌀")]] == -2).any()


@settings(max_examples=25)
@given(st.lists(st.text(st.characters(codec="utf-8"), min_size=1, max_size=6), max_size=40, unique=True))
def test_the_trie_finds_exactly_its_pieces(pieces):
    trie = build_trie(pieces)

    def find(text):
        node = 0
        for character in text:
            child = trie.base[node] + trie.symbols[ord(character)]
            if trie.check[child] != node or child == 0:
                return -1
            node = child
        return trie.value[node]

    assert [find(piece) for piece in pieces] == list(range(len(pieces)))
    assert all(find(piece + "x") == (pieces.index(piece + "x") if piece + "x" in pieces else -1) for piece in pieces)


def test_a_trie_of_pieces_that_share_nothing_fits_in_its_room(monkeypatch):
    monkeypatch.setattr(viterbi, "_build", viterbi._build.py_func)  # interpreted, it writes nothing beyond its arrays
    assert len(build_trie(["ab", "cde", "f"]).value) >= 7


def test_only_tokenizers_trained_here_are_stood_in_for(tokenizer):
    from tokenizers import pre_tokenizers

    assert is_trained_here(json.loads(tokenizer.to_str()))
    tokenizer.pre_tokenizer = chunker("一-鿿ぁ-ゖ")  # of a version that knew fewer characters
    assert is_trained_here(json.loads(tokenizer.to_str()))
    check_equal(SubwordUnits(tokenizer, "subwords", ALL), ["猫がカ𚿰いる𠮷 a々b", "カタカナ一語"])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    assert not is_trained_here(json.loads(tokenizer.to_str()))


@pytest.mark.slow
def test_every_line_of_the_development_data(xswe_data, sample):
    import gzip

    texts = []
    for path in sorted((xswe_data / "train").glob("*/*.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as stream:
            texts += [side for line in stream for side in line.rstrip("\n").split("\t")[:2]]
    units = SubwordUnits(train_subwords(texts[::40], ALL, 32_000), "subwords", ALL)
    fast = fast_of(units)
    for start in range(0, len(texts), 100_000):
        block = texts[start : start + 100_000]
        found, slow = fast(Texts.of(block)), units._by_tokenizer(block)
        assert np.array_equal(found.ids, slow.ids)
        assert np.array_equal(found.offsets, slow.offsets)
