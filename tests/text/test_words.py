from __future__ import annotations

import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers

from tests.conftest import count_words
from xswe.errors import ConfigError
from xswe.io.files import write_json
from xswe.io.ragged import Texts
from xswe.model.folder import load_units
from xswe.text.scripts import cjk_runs, has_kana, is_punctuation
from xswe.text.segmenters import make_segmenter
from xswe.text.words import WordSplitter, WordUnits, most_frequent

FUGASHI = {"zh": "jieba", "ja": "fugashi"}
PIECES = {"zh": "teacher", "ja": "teacher"}
METASPACE = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")


def forms(splitter, text):
    return [word.form for word in splitter(text)]


@pytest.fixture(scope="module")
def segmented():
    return WordSplitter(("en", "de", "zh", "ja"), FUGASHI, None)


def test_spaced_scripts_split_at_blanks_and_punctuation_which_is_dropped(segmented):
    assert forms(segmented, "Don't over-react: $5.00 (Straße)!") == ["Don", "t", "over", "react", "5", "00", "Straße"]


def test_japanese_never_goes_down_the_word_path(segmented):
    assert forms(segmented, "明日図書館で勉強する。") == ["明日", "図書", "館", "で", "勉強", "する"]


def test_kana_anywhere_decides_for_japanese_and_nothing_is_folded_then(segmented):
    assert "語" in "".join(forms(segmented, "日本語を"))
    assert forms(segmented, "我們試試看") == ["我们", "试试看"]


def test_the_language_is_decided_sentence_by_sentence_never_by_batch(segmented):
    # The reference latches the language of the first sentence of a batch (a mis-detected one spoils them all).
    alone = forms(segmented, "明日図書館で勉強する。")
    units = WordUnits(sorted({*alone, "tomorrow"}), segmented, None)
    mixed = units.bags(["tomorrow", "明日図書館で勉強する。", "tomorrow"])
    assert mixed.lengths.tolist() == [1, len(alone), 1]


def test_places_are_those_of_the_original_text(segmented):
    for text, words in (("ＡＢＣ ﾊﾟｿｺﾝ cafe\u0301!", ["ＡＢＣ", "ﾊﾟｿｺﾝ", "cafe\u0301"]), ("x 試試看。", ["x", "試試看"])):
        assert [text[w.start : w.end] for w in segmented(text)] == words


@settings(max_examples=30)
@given(text=st.text(max_size=40))
def test_any_unicode_in_never_raises(segmented, text):
    text = text.encode("utf-8", "replace").decode("utf-8")
    words = segmented(text)
    assert all(0 <= w.start < w.end <= len(text) for w in words)
    assert not any(all(map(is_punctuation, w.form)) for w in words)


def test_lookup_is_case_sensitive_then_lower_case(segmented):
    units = WordUnits(["Reich", "reich", "haus"], segmented, None)
    assert [units.identify(w) for w in ("Reich", "reich", "Haus", "HAUS", "Baum")] == [0, 1, 2, 2, -1]


def test_unknown_words_back_off_along_the_subwords(tokenizer, segmented):
    pieces = [tokenizer.encode(w, add_special_tokens=False).offsets for w in ("gardenings",)]
    first = pieces[0][0][1]
    known = "gardenings"[:first]
    units = WordUnits([known], segmented, tokenizer)
    assert len(pieces[0]) > 1
    assert units.identify("gardenings") == 0
    assert units.identify("Gardenings") == 0  # the prefix is sought in lower case too
    assert units.identify("zq") == -1


@pytest.fixture(scope="module")
def backing_off():
    """Words whose back-off finds "at" in "attic" and "Gesamt" in "Gesamtbetrag"."""
    marked = ("at", "tic", "Gesamt", "Über", "über", "gang")
    scores = {"<unk>": -20.0, "▁": -2.0, **dict.fromkeys([*marked, *(f"▁{word}" for word in marked), "betrag"], -1.0)}
    pieces = Tokenizer(models.Unigram(list(scores.items()), unk_id=0))
    pieces.pre_tokenizer = METASPACE
    words = ["at", "Gesamt", "über", "猫", "haus"]
    return WordUnits(words, WordSplitter(("en", "de", "ja"), {"ja": "teacher"}, pieces), pieces)


def test_exact_units_are_words_as_they_stand(backing_off):
    text = "attic at Gesamtbetrag Gesamt Über Übergang über, HAUS haus (at)"
    found, exact = backing_off.bags([text]), backing_off.exact.bags([text])
    assert found.ids.tolist() == [0, 0, 1, 1, 2, 2, 2, 4, 4, 0]
    assert exact.ids.tolist() == [0, 1, 2, 4, 0]
    located = backing_off.exact.locate([text])
    assert located.bags.ids.tolist() == exact.ids.tolist()
    places = zip(located.starts.tolist(), located.ends.tolist(), strict=True)
    assert [text[a:b] for a, b in places] == ["at", "Gesamt", "über", "haus", "at"]


def test_exact_units_are_normalised_as_all_words_are():
    splitter = WordSplitter(("en", "zh"), {"zh": "jieba"}, None, lowercase=True)
    units = WordUnits(["haus", "abc", "我们"], splitter, None).exact
    assert units.bags(["HAUS ＡＢＣ 我們"]).ids.tolist() == [0, 1, 2]


def test_exact_units_are_made_once_and_are_their_own(backing_off, tmp_path):
    exact = backing_off.exact
    assert backing_off.exact is exact is exact.exact
    assert exact.tokens == backing_off.tokens
    assert exact.identity != backing_off.identity
    assert exact.identity != WordUnits(exact.tokens, exact.splitter, None).identity
    fewer, kept = exact.prune(2)
    assert (fewer.tokens, kept.tolist()) == (["at", "Gesamt"], [0, 1])
    exact.save(tmp_path)
    write_json(tmp_path / "config.json", {"units": exact.settings})
    for copy in (pickle.loads(pickle.dumps(exact)), pickle.loads(pickle.dumps(backing_off)).exact, load_units(tmp_path)):
        assert copy.bags(["Haus attic at"]).ids.tolist() == [0]
        assert copy.identity == exact.identity
    assert fewer.bags(["attic at At"]).ids.tolist() == [0]


def test_teacher_segments_tile_the_run(tokenizer):
    run = "我们今天去图书馆学习"
    spans = make_segmenter("teacher", "zh", tokenizer)(run)
    assert "".join(run[a:b] for a, b in spans) == run


def test_a_character_of_several_pieces_is_cut_out_once():
    pieces = {"<unk>": -20.0, "我": -1.0, **{f"<0x{byte:02X}>": -9.0 for byte in range(256)}}
    tokenizer = Tokenizer(models.Unigram(list(pieces.items()), unk_id=0, byte_fallback=True))
    assert len(tokenizer.encode("龘我").tokens) == 4
    assert make_segmenter("teacher", "zh", tokenizer)("龘我龍") == [(0, 1), (1, 2), (2, 3)]


@pytest.mark.parametrize("cutter", [METASPACE, pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), METASPACE])])
def test_the_lone_mark_of_a_teachers_pieces_takes_no_character_from_the_first_word(cutter):
    scores = {"<unk>": -20.0, "▁": -2.0, "彼女は": -3.0, "彼": -9.0, "女は": -9.0, "学校": -4.0, "▁京都": -5.0}
    pieces = Tokenizer(models.Unigram(list(scores.items()), unk_id=0))
    pieces.pre_tokenizer = cutter
    assert pieces.encode("彼女は").tokens == ["▁", "彼女は"]
    splitter = WordSplitter(("en", "zh", "ja"), PIECES, pieces)
    assert forms(splitter, "彼女は学校。京都の") == ["彼女は", "学校", "京都", "の"]
    units = WordUnits(["彼", "女は", "彼女は", "学校", "京都"], splitter, pieces)
    for look_up in (units._plainly, lambda texts: units._make_fast()(Texts.of(texts))):
        assert look_up(["彼女は学校。京都の"]).ids.tolist() == [2, 3, 4]
    assert units.locate(["彼女は学校"]).starts.tolist() == [0, 3]


@pytest.mark.parametrize(("name", "language"), [("jieba", "ja"), ("fugashi", "zh"), ("mecab", "ja")])
def test_a_segmenter_of_another_language_is_refused(name, language):
    with pytest.raises(ConfigError, match="teacher"):
        make_segmenter(name, language, None)


def test_teacher_segments_need_a_teacher():
    with pytest.raises(ConfigError, match="needs a teacher"):
        WordSplitter(("en", "ja"), PIECES, None)


def test_vocabulary_is_cut_by_frequency_with_alphabetical_ties(segmented):
    counts = {"en": count_words(["b b a c", "c d"], segmented), "de": count_words(["b die die die"], segmented)}
    assert most_frequent(counts, {"en": 3, "de": 1}) == ["die", "b", "c", "a"]
    assert most_frequent(counts, {"en": 1, "de": 1}) == ["die", "b"]


@pytest.mark.parametrize("segmenters", [FUGASHI, PIECES])
def test_round_trip_through_a_folder(tmp_path, tokenizer, sample, segmenters):
    splitter = WordSplitter(("en", "zh", "ja"), segmenters, tokenizer)
    texts = sample["en"][:60] + sample["zh"][:60] + sample["ja"][:60]
    vocabulary = most_frequent({"en": count_words(texts, splitter)}, {"en": 300})
    units = WordUnits(vocabulary, splitter, tokenizer)
    units.save(tmp_path)
    write_json(tmp_path / "config.json", {"units": units.settings})
    again = load_units(tmp_path)
    assert again.tokens == units.tokens
    assert again.bags(texts).ids.tolist() == units.bags(texts).ids.tolist()
    assert again.locate(texts).starts.tolist() == units.locate(texts).starts.tolist()


def test_traditional_characters_stay_where_folding_is_off(tmp_path, segmented):
    splitter = WordSplitter(("en", "zh"), {"zh": "jieba"}, None, folding=False)
    assert "".join(forms(splitter, "我們試試看ＡＢ")) == "我們試試看AB"
    units = WordUnits(["我們", "我们"], splitter, None)
    assert units.bags(["我們"]).ids.tolist() == [0]
    assert pickle.loads(pickle.dumps(units)).bags(["我們"]).ids.tolist() == [0]
    units.save(tmp_path)
    write_json(tmp_path / "config.json", {"units": units.settings})
    again = load_units(tmp_path)
    assert again.settings == units.settings
    assert again.settings["folding"] is False
    assert again.bags(["我們", "我们"]).ids.tolist() == [0, 1]
    # A folder that says nothing of it folds, as folders written before the setting existed do.
    folded = WordUnits(["我们"], WordSplitter(("en", "zh"), {"zh": "jieba"}, None), None)
    folded.save(tmp_path)
    write_json(tmp_path / "config.json", {"units": folded.settings})
    assert "folding" not in folded.settings
    for again in (
        load_units(tmp_path),
        pickle.loads(pickle.dumps(folded)),
        pickle.loads(pickle.dumps(load_units(tmp_path))),
    ):
        assert again.bags(["我們"]).ids.tolist() == [0]


def test_runs_and_kana():
    assert cjk_runs("SAP システム、図書館 x") == [(4, 8), (9, 12)]
    assert cjk_runs("한국어 ꓾ \uf900") == [(6, 7)]  # neither Hangul nor Lisu; compatibility ideographs are
    assert has_kana("ｱ")
    assert not has_kana("図書館 ABC")


def test_backoff_and_lookup_do_not_depend_on_earlier_calls(tokenizer_json, segmented):
    texts = ["gardenings zq", "Gardening"]
    one = WordUnits(["garden", "g"], segmented, Tokenizer.from_str(tokenizer_json))
    two = WordUnits(["garden", "g"], segmented, Tokenizer.from_str(tokenizer_json))
    assert [one.bags([t]).ids.tolist() for t in texts] == [two.bags([t]).ids.tolist() for t in reversed(texts)][::-1]
