"""The compiled look-up of words gives what the plain one gives, on any text."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Regex, Tokenizer, normalizers, pre_tokenizers

from tests.conftest import count_words
from xswe.io.ragged import Bags, Texts
from xswe.text.compiled.chunks import room_for
from xswe.text.scripts import CJK_CHARACTERS, cjk_codes, cjk_runs, has_cjk, has_kana, is_punctuation, kana_codes
from xswe.text.words import WordSplitter, WordUnits, most_frequent

BARE = {"zh": "jieba", "ja": "fugashi"}
PIECES = {"zh": "teacher", "ja": "teacher"}
WHOLE = {"zh": "teacher-text", "ja": "teacher-text"}
SETTINGS = {
    "all by libraries": (("en", "de", "zh", "ja"), BARE),
    "all by the teacher": (("en", "de", "zh", "ja"), PIECES),
    "Chinese alone": (("en", "zh"), PIECES),
    "Japanese alone": (("en", "ja"), BARE),
    "no Han": (("en", "de"), {}),
    "nothing folded": (("en", "zh"), PIECES, {"folding": False}),
    "all by a teacher that marks runs, too": (("en", "de", "zh", "ja"), PIECES),
    "lower case": (("en", "de", "zh", "ja"), PIECES, {"lowercase": True}),
    "whole texts": (("en", "de", "zh", "ja"), WHOLE),
    "whole texts of zh": (("en", "zh", "ja"), WHOLE | {"ja": "fugashi"}, {"folding": False}),
    "whole texts of ja": (("en", "ja"), WHOLE, {"lowercase": True}),
    "whole texts, another's pieces": (("en", "de", "zh", "ja"), WHOLE),
    "whole texts, another's pieces in lower case": (("de", "zh", "ja"), WHOLE, {"lowercase": True, "folding": False}),
}


def pieces_of(name, tokenizer_json):
    """A teacher's tokenizer; with special tokens, as a teacher has them, or of the kind of XLM-R's."""
    pieces = Tokenizer.from_str(tokenizer_json)
    if "marks runs" in name or "another's pieces" in name:  # blanks alone are cut at, case and traditional characters stay
        pieces.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")])
        mark = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")
        pieces.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), mark])
    if "teacher" in name:
        pieces.add_special_tokens(["<s>", "<pad>"])
    return pieces


# One of each segmenter; the others, which are told apart by which of their ways a language goes, take four times as long.
QUICK = ("all by libraries", "all by the teacher", "whole texts")


@pytest.fixture(
    scope="module", params=[pytest.param(name, marks=[pytest.mark.slow] * (name not in QUICK)) for name in SETTINGS]
)
def units(request, tokenizer_json, sample):
    languages, segmenters, *options = SETTINGS[request.param]
    pieces = pieces_of(request.param, tokenizer_json)
    splitter = WordSplitter(languages, segmenters, pieces, **dict(*options))
    counts = {code: count_words(sample[code][:150], splitter) for code in ("en", "de", "zh", "ja")}
    # A third of the words, so that much is unknown; and a mark, which is never looked up.
    words = [*most_frequent(counts, dict.fromkeys(counts, 300)), "我們", "我们", "國"]
    return WordUnits(list(dict.fromkeys([*words, "!", "«", "ǆ", "ab", "A", "ΣΑΣ"])), splitter, pieces)


def check_equal(units, texts, fast=None):
    fast = fast or units._make_fast()
    plain = units._plainly(texts)
    for _ in range(2):  # first with new words, then from the table
        found = fast(Texts.of(texts))
        assert found.ids.tolist() == plain.ids.tolist()
        assert found.offsets.tolist() == plain.offsets.tolist()
    located = units._locate_plainly(texts)
    for _ in range(2):
        traced = fast.locate(Texts.of(texts), units._locate_plainly)
        assert traced.bags.ids.tolist() == located.bags.ids.tolist()
        assert traced.bags.offsets.tolist() == located.bags.offsets.tolist()
        assert traced.starts.tolist() == located.starts.tolist()
        assert traced.ends.tolist() == located.ends.tolist()


def test_the_sample_in_four_languages_alone_and_mixed(units, sample):
    fast = units._make_fast()
    mixed = [text for row in zip(*sample.values(), strict=True) for text in row]
    for texts in [*(texts[100:160] for texts in sample.values()), mixed[:200]]:
        check_equal(units, texts, fast)


tricky = st.sampled_from(
    [
        *"aAbB9 ß.,!«、。「一語語国國猫カーぁ々〇ｱﾊﾟﾞ゛゜①㈱㍻½²ŉǆΣςİıſﬁﷺ…—’“”¿¡€©®°$+<=>^`|~▁_",
        *"\t\n\r\x00\x7f\u00a0\u00ad\u200b\u200d\u2028\u3000\ufeff𠮷🙂ÅΩ각𚿰",
        *[
            "e\u0301",
            "か\u3099",
            "\u1100\u1161",
            "👨‍👩‍👧",
            "🇩🇪",
            "हिन्दी",
            "ไทย",
            "עברית",
            "The",
            "the",
            "gardens",
            "猫が",
            "我們",
        ],
    ]
)


any_texts = st.lists(st.one_of(st.text(max_size=30), st.lists(tricky, max_size=12).map("".join)), max_size=6)


@settings(max_examples=8)  # for each of the kinds of units
@given(texts=any_texts)
def test_any_unicode(units, texts):
    check_equal(units, texts)


def naive_words(units, text):
    """The words of a text that are in the vocabulary as they stand, and their places."""
    text = text.encode("utf-8", "replace").decode("utf-8")
    places = {token: place for place, token in enumerate(units.tokens)}
    words = [word for word in units.splitter(text) if word.form in places]
    return [(places[word.form], word.start, word.end) for word in words]


@settings(max_examples=6)
@given(texts=any_texts)
def test_exact_words_of_any_unicode(units, texts):
    check_equal(units.exact, texts)
    located = units.exact._make_fast().locate(Texts.of(texts), units.exact._locate_plainly)
    found = zip(located.bags.ids.tolist(), located.starts.tolist(), located.ends.tolist(), strict=True)
    assert list(found) == [word for text in texts for word in naive_words(units, text)]


def test_exact_words_of_the_sample(units, sample):
    texts = [text for column in sample.values() for text in column[:60]]
    check_equal(units.exact, texts)
    exact, found = units.exact.bags(texts), units.bags(texts)
    assert [i for text in texts for i, _, _ in naive_words(units, text)] == exact.ids.tolist()
    assert 0 < len(exact.ids) < len(found.ids)


def test_very_long_words_and_runs(units):
    check_equal(units, ["x" * 3000, "x" * 5000, "語" * 900 + "x", "語" * 3000, "ab " * 5000, "㌀" * 50, ""])


def test_texts_with_more_new_words_than_there_is_room_for_are_looked_up_plainly(units, sample, monkeypatch):
    monkeypatch.setattr("xswe.text.compiled.lookup.room_for", lambda _: room_for(5))
    check_equal(units, [*sample["en"][:5], "a", "b", *sample["ja"][:3], *sample["zh"][:3], "a b"])


def test_the_compiled_look_up_takes_over_without_a_trace(units, sample, monkeypatch):
    texts = sample["en"][:50] + sample["ja"][:50] + sample["zh"][:50]
    plain = units._plainly(texts)
    monkeypatch.setattr(units, "_fast", None)
    monkeypatch.setattr(units, "_worth", lambda some: len(some[0]) > 40)
    found = [units.bags([text]).ids.tolist() for text in texts]
    assert units._fast is not None
    assert found == [plain.ids[a:b].tolist() for a, b in zip(plain.offsets[:-1], plain.offsets[1:], strict=True)]


def test_places_are_found_in_compiled_code_once_there_is_enough_to_do(units, sample, monkeypatch):
    texts = [*sample["en"][:50], "x\u0301y" * 20, *sample["ja"][:50], *sample["zh"][:50]]
    plain = units._locate_plainly(texts)
    monkeypatch.setattr(units, "_fast", None)
    monkeypatch.setattr(units, "_worth", lambda _: True)
    monkeypatch.setattr("xswe.text.compiled.locate._SCAN_BYTES", 500)
    calls = []
    slowly = units._locate_plainly
    monkeypatch.setattr(units, "_locate_plainly", lambda some: calls.append(len(some)) or slowly(some))
    for given_texts in (texts, Texts.of(texts)):
        found = units.locate(given_texts)
        assert found.bags.ids.tolist() == plain.bags.ids.tolist()
        assert (found.starts.tolist(), found.ends.tolist()) == (plain.starts.tolist(), plain.ends.tolist())
    assert 0 < sum(calls) < 20  # texts with combining marks alone
    assert len(units.locate([]).bags) == 0


def test_kana_by_code_is_kana_by_character_and_no_run_holds_punctuation():
    kana, cjk = kana_codes(), cjk_codes()
    for code in [*range(0x2E00, 0xD800), *range(0xE000, 0x1C000)]:
        assert kana[code] == has_kana(chr(code))
        assert cjk[code] == has_cjk(chr(code))
        assert not (cjk_runs(chr(code)) and is_punctuation(chr(code)))
    assert not kana[0x1C000:].any()
    assert cjk[0x20000:0x40000].all()
    assert not cjk[0x40000:].any()
    for codes in (kana, cjk):  # the scan for them skips characters whose first byte is lower
        assert chr(int(codes.argmax())).encode()[0] >= 0xE3
    assert CJK_CHARACTERS


def words_of(segmenter, runs):
    return [line.split(" ") for line in segmenter.lines(runs).split("\n")]


def test_segmenters_give_the_same_words_as_spans(units, sample):
    for code, segmenter in units.splitter._segment.items():
        runs = [t[a:b] for t in sample[code][:40] for a, b in cjk_runs(t)]
        spans = segmenter.spans(runs)
        assert words_of(segmenter, runs) == [[r[a:b] for a, b in s] for r, s in zip(runs, spans, strict=True)]


def test_the_teachers_pieces_are_cut_in_compiled_code(units, sample):
    for code, lookup in units._make_fast()._by_language.items():
        segmenter, lookup = units.splitter._segment.get(code), getattr(lookup, "words", lookup)
        if segmenter is None or segmenter.tokenizer is None:
            assert getattr(lookup, "_cutter", None) is None
            continue
        assert lookup._cutter is not None
        runs = [t[a:b] for t in sample[code][:300] for a, b in cjk_runs(t)] + ["語", "𠮷𠮷野家", "𪚥𪚥語𪚥", "々々"]
        packed = Texts.of(runs)
        cut = lookup._cutter(packed)
        assert cut.done.all()
        assert cut.sizes.tolist() == [len(words) for words in words_of(segmenter, runs)]
        raw, starts = packed.data.tobytes(), [0, *cut.ends.tolist()]
        found = [raw[a:b].decode() for a, b in zip(starts, cut.ends.tolist(), strict=False)]
        assert found == [word for words in words_of(segmenter, runs) for word in words]
        # A mark may join what stands before it; its neighbours are cut nevertheless.
        cut = lookup._cutter(Texts.of(["語語", "語ﾞ", "語語"]))
        assert cut.done.tolist() == [True, False, True]
        for runs in (["語語", "語ﾞ", "猫語"], ["語ﾞ"]):
            order, words = lookup.cut(Texts.of(runs))
            found = [words.data[a:b].tobytes().decode() for a, b in zip(words.starts, words.ends, strict=True)]
            assert found == [word for line in words_of(segmenter, [runs[i] for i in order]) for word in line]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["all by the teacher", "all by libraries", "all by a teacher that marks runs, too"])
def test_every_line_of_the_development_data(xswe_data, tokenizer_json, name):
    languages, segmenters = SETTINGS[name]
    pieces = pieces_of(name, tokenizer_json)
    splitter = WordSplitter(languages, segmenters, pieces)
    texts = list(lines_of(xswe_data))
    vocabulary = most_frequent({"en": count_words(texts[::50], splitter)}, {"en": 100_000})
    units = WordUnits(vocabulary, splitter, pieces)
    fast = units._make_fast()
    for start in range(0, len(texts), 20_000):
        block = texts[start : start + 20_000]
        found, plain = fast(Texts.of(block)), units._plainly(block)
        assert np.array_equal(found.ids, plain.ids)
        assert np.array_equal(found.offsets, plain.offsets)
        traced, located = fast.locate(Texts.of(block), units._locate_plainly), units._locate_plainly(block)
        assert np.array_equal(traced.starts, located.starts)
        assert np.array_equal(traced.ends, located.ends)


def lines_of(folder):
    for path in sorted((folder / "train").glob("*/*.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as stream:
            for line in stream:
                yield from line.rstrip("\n").split("\t")[:2]


def test_nothing_at_all(units):
    assert isinstance(units._make_fast()(Texts.of([])), Bags)
    check_equal(units, ["", " ", "!"])
