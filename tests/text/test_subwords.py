from __future__ import annotations

import json
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, models

from xswe.errors import ConfigError, ModelError
from xswe.io.files import write_json
from xswe.model.folder import load_units
from xswe.text.folding import simplified_characters
from xswe.text.languages import check_languages
from xswe.text.subwords import SubwordUnits
from xswe.text.tokenizers import is_trained_here, load_tokenizer, pieces_only, text_normaliser, train_subwords, with_folding

ALL = ("en", "de", "zh", "ja")


@pytest.fixture
def units(tokenizer):
    return SubwordUnits(tokenizer, "subwords", ALL)


def test_traditional_full_width_and_case_are_folded(units):
    pairs = [("我們試試看", "我们试试看"), ("ＡＢＣ　１２", "abc 12"), ("ﾊﾟｿｺﾝ", "パソコン"), ("STRASSE", "strasse")]
    for a, b in pairs:
        assert units.bags([a]).ids.tolist() == units.bags([b]).ids.tolist(), (a, b)


def test_a_model_without_chinese_does_not_fold():
    assert text_normaliser(("en", "ja")).normalize_str("語る") == "語る"
    assert text_normaliser(("en", "zh")).normalize_str("語る") == "语る"


def test_folding_can_be_switched_off_and_the_folder_says_so(tmp_path, sample):
    texts = sample["zh"][:200] + ["我們試試看", "漢語"] * 20
    assert text_normaliser(("en", "zh"), folding=False).normalize_str("語Ａ") == "語a"
    units = SubwordUnits(train_subwords(texts, ("en", "zh"), 1500, folding=False), "subwords", ("en", "zh"), folding=False)
    assert units.trained_here  # the compiled look-up knows it, too
    assert {"們", "们", "語", "语"} <= set("".join(units.tokens))
    folded = SubwordUnits(train_subwords(texts, ("en", "zh"), 1500), "subwords", ("en", "zh"))
    assert not {"們", "語"} & set("".join(folded.tokens))
    assert "folding" not in folded.settings
    units.save(tmp_path)
    write_json(tmp_path / "config.json", {"units": units.settings})
    again = load_units(tmp_path)
    assert again.settings == units.settings == {"kind": "subwords", "languages": ["en", "zh"], "folding": False}
    assert again.bags(["我們"]).ids.tolist() == units.bags(["我們"]).ids.tolist() != units.bags(["我们"]).ids.tolist()


def test_the_folding_table_is_opencc_by_character():
    table = simplified_characters()
    assert table["圖"] == "图"
    assert table["語"] == "语"
    assert "図" not in table  # a Japanese form is no traditional character
    assert len(table) > 2500


def test_unknown_pieces_and_empty_texts_leave_nothing(units):
    bags = units.bags(["", "   ", "\u3164\U000e0041"])
    assert len(bags) == 3
    assert bags.lengths.tolist() == [0, 0, 0]  # neither the unknown piece nor a lone mark is a unit


@settings(max_examples=12)
@given(texts=st.lists(st.text(max_size=30), max_size=6))
def test_any_unicode_in_never_raises_and_located_equals_looked_up(tokenizer_json, texts):
    units = SubwordUnits(Tokenizer.from_str(tokenizer_json), "subwords", ALL)
    bags, located = units.bags(texts), units.locate(texts)
    sentence = np.repeat(np.arange(len(texts)), located.bags.lengths)
    for row, a, b in zip(sentence, located.starts, located.ends, strict=True):
        assert 0 <= a < b <= len(texts[row])
        assert not texts[row][a].isspace()
    assert located.bags.ids.tolist() == bags.ids.tolist()
    assert located.bags.offsets.tolist() == bags.offsets.tolist()


def test_places_are_exact_in_the_original_text(units):
    text = "我們 ＡＢＣ Straße"
    located = units.locate([text])
    covered = sorted({k for a, b in zip(located.starts, located.ends, strict=True) for k in range(a, b)})
    assert "".join(text[k] for k in covered) == "我們ＡＢＣStraße"


def test_order_and_batching_do_not_matter(units, sample):
    texts = sample["en"][:50] + sample["ja"][:50]
    together = units.bags(texts)
    alone = [units.bags([t]).ids.tolist() for t in texts]
    assert [together.ids[a:b].tolist() for a, b in zip(together.offsets[:-1], together.offsets[1:], strict=True)] == alone


def test_round_trip_through_a_folder(units, tmp_path, sample):
    units.save(tmp_path)
    write_json(tmp_path / "config.json", {"units": units.settings})
    again = load_units(tmp_path)
    assert again.bags(sample["zh"][:40]).ids.tolist() == units.bags(sample["zh"][:40]).ids.tolist()
    assert (again.kind, again.languages, again.tokens) == (units.kind, units.languages, units.tokens)


def test_training_twice_gives_the_same_pieces(sample):
    texts = sample["de"][:300] + sample["en"][:300]
    assert train_subwords(texts, ("en", "de"), 800).to_str() == train_subwords(texts, ("en", "de"), 800).to_str()


def test_too_little_text_is_a_clear_error():
    with pytest.raises(ConfigError, match=r"units\.size|more text"):
        train_subwords([], ("en", "de"), 100)


def test_damaged_or_missing_tokenizer(tmp_path):
    with pytest.raises(ModelError, match="no such file"):
        load_tokenizer(tmp_path / "tokenizer.json")
    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(ModelError, match="not a tokenizer"):
        load_tokenizer(tmp_path / "tokenizer.json")


def test_unknown_language_lists_the_known_ones():
    with pytest.raises(ConfigError, match=r"'fr'.*en \(English\), de \(German\), zh \(Chinese\), ja \(Japanese\)"):
        check_languages(["en", "fr"])


def test_folding_is_put_before_a_foreign_tokenizer_once():
    foreign = train_subwords(["a b c d e f g"] * 3, ("en",), 20)
    folded = with_folding(Tokenizer.from_str(foreign.to_str()), ("en", "zh"))
    assert folded.normalizer.normalize_str("語") == "语"
    assert with_folding(folded, ("en", "zh")).to_str() == folded.to_str()
    assert with_folding(foreign, ("en", "ja")).normalizer.normalize_str("語") == "語"


def test_the_pieces_of_an_encoder_are_without_its_padding(tokenizer_json):
    encoder = Tokenizer.from_str(tokenizer_json)
    encoder.add_special_tokens([AddedToken("<unk>", special=True), AddedToken("<pad>", special=True)])
    encoder.enable_padding(pad_token="<pad>")
    pieces = pieces_only(encoder)
    assert pieces.to_str() == Tokenizer.from_str(tokenizer_json).to_str()
    assert is_trained_here(json.loads(pieces.to_str()))
    assert not is_trained_here(json.loads(encoder.to_str()))
    assert SubwordUnits(pieces, "teacher", ALL).bags(["a <pad> b"]).lengths[0] > 2  # text, not a command


def saved(units, folder, change=lambda text: text):
    """Save units as a model folder would, with the tokenizer's text changed."""
    units.save(folder)
    write_json(folder / "config.json", {"units": units.settings})
    path = folder / "tokenizer.json"
    path.write_text(change(path.read_text(encoding="utf-8")), encoding="utf-8")
    return folder


def test_the_compiled_look_up_does_without_the_tokenizer(units, tmp_path, sample):
    texts = sample["en"] + sample["zh"]
    again = load_units(saved(units, tmp_path))
    again._worth = lambda _: True
    found = again.bags(texts)
    assert isinstance(again._source, bytes)
    assert found.ids.tolist() == units.bags(texts).ids.tolist()
    assert again.bags(["\U00016fe4 \u1b04\u1b35"]).ids.tolist() == units.bags(["\U00016fe4 \u1b04\u1b35"]).ids.tolist()
    assert again.tokenizer.to_str() == units.tokenizer.to_str()
    assert not isinstance(again._source, bytes)


def test_a_number_that_readers_may_round_differently_is_left_to_the_library(units, tmp_path):
    again = load_units(saved(units, tmp_path, lambda text: re.sub(r"(-\d+\.\d+)", r"\g<1>000000000000001", text, count=9)))
    assert isinstance(again._source, Tokenizer)


def test_a_tokenizer_at_which_the_library_panics_is_an_error_too(units, tmp_path):
    with pytest.raises(ModelError, match="not a tokenizer"):
        load_units(saved(units, tmp_path, lambda text: re.sub(r'("precompiled_charsmap": ?")....', r"\1", text)))


@pytest.mark.parametrize(
    "change",
    [
        lambda model: model["vocab"].append(["x", "low"]),
        lambda model: model["vocab"].append(["x"]),
        lambda model: model["vocab"].append(["\ud800", -1.5]),
        lambda model: model.update(unk_id=10**6),
        lambda model: model.update(vocab={}),
    ],
    ids=["no number", "no score", "no character", "no such id", "no list"],
)
def test_a_damaged_tokenizer_is_told_when_it_is_loaded(units, tmp_path, change):
    def damage(text):
        state = json.loads(text)
        change(state["model"])
        return json.dumps(state)

    with pytest.raises(ModelError, match="not a tokenizer"):
        load_units(saved(units, tmp_path, damage))


def small_units():
    """Units of six pieces beside the unknown one, two of them characters, and a special token."""
    scores = {"<unk>": -9.0, "ab": -3.0, "a": -8.0, "<s>": 0.0, "abc": -2.0, "b": -8.5, "▁ab": -2.0, "bc": -2.5}
    tokenizer = Tokenizer(models.Unigram(list(scores.items()), 0))
    tokenizer.add_special_tokens(["<s>"])
    return SubwordUnits(tokenizer, "subwords", ("en",))


@pytest.mark.parametrize(
    ("keep", "counts", "kept"),
    [
        (8, None, [0, 1, 2, 3, 4, 5, 6, 7]),
        (6, None, [0, 2, 3, 4, 5, 6]),  # of equal scores the first
        (5, None, [0, 2, 3, 4, 5]),
        (4, None, [0, 2, 3, 5]),  # the characters, the special token and the unknown one
        (6, [0, 9, 0, 0, 1, 0, 2, 9], [0, 1, 2, 3, 5, 7]),
        (5, [0, 9, 0, 0, 1, 0, 2, 9], [0, 1, 2, 3, 5]),
    ],
)
def test_pruned_units_are_the_best_and_all_characters(keep, counts, kept):
    units = small_units()
    fewer, places = units.prune(keep, None if counts is None else np.array(counts))
    assert places.tolist() == kept
    state, before = (json.loads(one.tokenizer.to_str()) for one in (fewer, units))
    assert state["model"]["vocab"] == [before["model"]["vocab"][place] for place in kept]
    assert state["model"]["vocab"][state["model"]["unk_id"]][0] == "<unk>"
    assert [(token["content"], kept[token["id"]]) for token in state["added_tokens"]] == [("<s>", 3)]
    assert fewer.tokens == [units.tokens[place] for place in kept]


def test_units_without_room_for_their_characters_are_refused():
    with pytest.raises(ConfigError, match=r"keep=3: the vocabulary has 4 single characters"):
        small_units().prune(3)


def test_pieces_of_another_tokenizer_are_looked_up_by_it_however_much_there_is(monkeypatch):
    units = small_units()
    texts = ["abcab", "<s>ab", "", "▁abxb"]
    plain, located = units.bags(texts), units.locate(texts)
    monkeypatch.setattr(units, "_worth", lambda _: True)
    assert units.bags(texts).ids.tolist() == plain.ids.tolist() == located.bags.ids.tolist()
    again = units.locate(texts)
    assert again.bags.offsets.tolist() == located.bags.offsets.tolist() == plain.offsets.tolist()
    assert (again.starts.tolist(), again.ends.tolist()) == (located.starts.tolist(), located.ends.tolist())
    assert (units._fast, units._traced) == (None, None)


def test_pieces_of_blanks_have_no_place():
    tokenizer = Tokenizer(models.Unigram([("<unk>", -9.0), ("a", -1.0), (" ", -1.0), (" b", -1.0)], 0))
    units = SubwordUnits(tokenizer, "subwords", ("en",))
    located = units.locate(["a a b  ", " "])
    assert [units.tokens[i] for i in located.bags.ids] == ["a", "a", " b"]
    assert located.bags.offsets.tolist() == [0, 3, 3]
    assert list(zip(located.starts.tolist(), located.ends.tolist(), strict=True)) == [(0, 1), (2, 3), (4, 5)]
    assert [units.tokens[i] for i in units.bags(["a a b  "]).ids] == ["a", " ", "a", " b", " ", " "]
