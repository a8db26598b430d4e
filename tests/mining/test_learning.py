"""A filter that learns from the bitext itself: its features, the wrong pairs it makes, and what it tells of the result."""

from __future__ import annotations

import random
import re
import unicodedata
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

import xswe
from xswe.errors import ConfigError, InputError
from xswe.io.products import row_products
from xswe.io.ragged import Texts
from xswe.mining import learning
from xswe.mining.examples import examples_for, features_of
from xswe.mining.features import (
    CENTRED,
    MORE_NUMBERS,
    NAMES,
    NO_NUMBERS,
    OTHER_NUMBERS,
    PLACES,
    SAME_NUMBERS,
    Features,
    FoundNames,
    Side,
    UnitTable,
    cover_names,
    look_at_bytes,
    mirrored,
)
from xswe.mining.filter import Found, _by_learning
from xswe.mining.sounds import heard_in
from xswe.mining.trees import Trees
from xswe.mining.verdicts import BitextFilter
from xswe.mining.wrong import KINDS, WrongPairs
from xswe.model.ensemble import Ensemble

PAIR = ("en", "de")


@pytest.fixture(scope="module")
def mini():
    return xswe.load("mini")


@pytest.fixture(scope="module")
def pairs(sample):
    return list(dict.fromkeys(zip(sample["en"], sample["de"], strict=True)))


@pytest.fixture(scope="module")
def mixed(pairs):
    """Right pairs, and as many again of three kinds of wrong ones that the filter's own generator does not make so."""
    draw, out = random.Random(3), [(pair, "right") for pair in pairs[:1000]]
    for place, (a, b) in enumerate(pairs[1000:1500]):
        words = b.split()
        out.append(((a, pairs[1000 + (place + 1) % 500][1]), "neighbour"))
        if len(words) > 5:
            out.append(((a, " ".join(words[: 2 * len(words) // 5])), "truncated"))
        if re.search(r"\d", b):
            out.append(((a, re.sub(r"\d+", lambda found: str(int(found[0]) + 3), b)), "number"))
    draw.shuffle(out)
    return [pair for pair, _ in out], np.array([kind for _, kind in out])


@pytest.fixture(scope="module")
def found(mini, mixed):
    return xswe.filter(mini, mixed[0], languages=PAIR, explain=True, evidence=True)


def test_wrong_pairs_are_seen_and_the_precision_lies_within_what_is_told(found, mixed):
    kinds = mixed[1]
    kept = {kind: found.kept[kinds == kind].mean() for kind in set(kinds)}
    assert kept["right"] > 0.9
    assert max(kept["neighbour"], kept["truncated"]) < 0.08
    assert kept["number"] < 0.15
    true = (kinds[found.kept] == "right").mean()
    low, high = found.threshold.within
    assert low <= true <= high + 0.01
    assert high - low < 0.07
    assert (found.threshold.precision is None) == ("precision cannot be estimated: it lies between" in str(found))
    assert found.threshold.recall == pytest.approx(kept["right"], abs=0.06)
    assert "not judged: the order of words" in str(found)
    assert found.counts["other sentence"] + found.counts["word salad"] > 300


def test_the_cosine_alone_promises_what_the_same_bitext_refutes(mini, mixed):
    plain = xswe.filter(mini, mixed[0], languages=PAIR, method="cosine")
    assert plain.kept[mixed[1] == "truncated"].mean() > 0.3
    assert plain.threshold.precision - (mixed[1][plain.kept] == "right").mean() > 0.05


def test_gold_pairs_say_how_right_is_what_is_kept(mini, mixed, pairs, tmp_path):
    (tmp_path / "gold.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in pairs[:1500]), encoding="utf-8")
    (tmp_path / "a.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in mixed[0]), encoding="utf-8")
    how = {"languages": PAIR, "method": "cosine", "gold": str(tmp_path / "gold.tsv")}
    found = xswe.filter(mini, mixed[0], **how)
    right = mixed[1] == "right"
    assert found.gold.checked == found.kept.sum()
    assert found.gold.precision == right[found.kept].mean() < 0.95
    assert found.gold.pairs == right.sum()
    assert found.gold.recall == found.kept[right].mean()
    shown = (
        f"on gold: precision {100 * found.gold.precision:.1f} % of {found.gold.checked:,} kept pairs with a side in gold, "
    )
    assert f"{shown}recall {100 * found.gold.recall:.1f} % of 1,000 gold pairs" in str(found)
    assert xswe.filter(mini, tmp_path / "a.tsv", tmp_path / "o.tsv", **how).gold == found.gold
    (tmp_path / "gold.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in pairs[:100]), encoding="utf-8")
    some = xswe.filter(mini, [*mixed[0], mixed[0][0], ("Nobody.", "Niemand.")], **how)
    assert some.gold.pairs == 100  # those of other texts are not judged
    assert 90 < some.gold.checked <= 110
    with pytest.raises(InputError, match=r"none\.tsv"):
        xswe.filter(mini, mixed[0], **how | {"gold": str(tmp_path / "none.tsv")})


def test_the_order_of_records_decides_nothing_and_what_is_unusual_is_said(mini, mixed, found, tmp_path):
    """In memory, and in a file whose lines stand in another order."""
    order = np.random.default_rng(1).permutation(len(found))
    texts = [mixed[0][row] for row in order]
    (tmp_path / "a.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in texts), encoding="utf-8")
    files = {"output": tmp_path / "o.tsv", "rejects": tmp_path / "no.tsv"}
    other = xswe.filter(mini, tmp_path / "a.tsv", **files, languages=PAIR, explain=True)
    assert other.threshold == found.threshold
    assert other.noise == found.noise
    assert np.array_equal(other.reasons, found.reasons[order])
    assert np.array_equal(other.scores, found.scores[order], equal_nan=True)
    row = int(np.flatnonzero((mixed[1][order] == "truncated") & ~other.kept & np.isfinite(other.scores))[0])
    assert re.search(r"(source|target) \d+, usually \d+ to \d+", other.unusual(row))
    assert other.unusual(row) == found.unusual(int(order[row]))
    written = files["rejects"].read_text(encoding="utf-8").split("\n")[:-1]
    reason, score, *record = written[int((other.reasons[:row] > 0).sum())].split("\t")
    assert reason == f"{other.names[other.reasons[row]]} ({other.unusual(row)})"
    assert float(score) == pytest.approx(other.scores[row], abs=1e-6)
    assert tuple(record) == texts[row]


def test_a_precision_that_is_not_reached_is_named(mini, found, mixed):
    assert found.threshold.missed is None
    lost = xswe.filter(mini, mixed[0], languages=PAIR, method="cosine", precision=0.99999)
    assert lost.threshold.precision < 0.99999
    assert lost.threshold.missed == 0.99999
    assert "precision=0.99999 is not reached at any threshold" in str(lost)


def test_where_there_is_little_to_learn_from_the_cosine_decides(mini, mixed, pairs):
    few = xswe.filter(mini, mixed[0][:300], languages=PAIR)
    with pytest.raises(ConfigError, match="explain=True"):
        few.unusual(0)
    assert "judged by the cosine alone: " in str(few)
    assert "pairs are too few to learn from" in few.note
    draw = random.Random(0)
    targets = draw.sample([b for _, b in pairs], len(pairs))
    wrong = xswe.filter(mini, [(a, b) for (a, _), b in zip(pairs, targets, strict=True)], languages=PAIR)
    assert wrong.threshold.precision is None
    assert "too few pairs seem right" in wrong.note


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"method": "learned"}, "name two languages of en, de, zh, ja"),
        ({"method": "learnt", "languages": PAIR}, "method"),
    ],
)
def test_a_method_that_cannot_be_had_is_named(mini, pairs, settings, message):
    with pytest.raises(ConfigError, match=message):
        xswe.filter(mini, pairs[:5], **settings)


def texts_of(some):
    return tuple(Texts.of([pair[side] for pair in some]) for side in (0, 1))


@pytest.mark.parametrize("dim", [256, 250])  # a multiple of the width of registers, and another number
def test_coverage_is_that_of_a_plain_reading(mini, pairs, dim):
    model, some = mini.truncate(dim), pairs[:40]
    found, _ = features_of(Features(model, PAIR), some)
    for row, texts in enumerate(some):
        ids = [model.units.bags([text]).ids for text in texts]
        units = [model.rows(own) / np.linalg.norm(model.rows(own), axis=1, keepdims=True) for own in ids]
        for side, own in enumerate(ids):
            words = np.array([any(map(str.isalnum, model.units.tokens[unit])) for unit in own.tolist()])
            weights = np.linalg.norm(model.rows(own), axis=1) * words
            best = np.maximum((units[side] @ units[1 - side].T).max(axis=1), 0)
            total, order = weights.sum(), np.argsort(best)
            tenth = best[order][np.searchsorted(np.cumsum(weights[order]), 0.1 * total)]
            covered, missed = float((weights * best).sum() / total), float((weights * (best < 0.4)).sum() / total)
            for name, wanted in (("covered", covered), ("not covered", missed), ("least covered", tenth)):
                place = PLACES[f"{name} of the {('source', 'target')[side]}"]
                assert found[row, place] == pytest.approx(255 * wanted, abs=1.01)


LATIN = "A-Za-zÀ-ÖØ-öø-ɏ"
# Words, numbers, marks, and the characters on both sides of every range that is read otherwise than its neighbours.
SEEN = "Berlin paris Älter straße ÉTÉ Ab c été, 1,400 3.5. １２ ，7 7，8 ルーマニア ピア ーヽ・ 東京 ひらがな Москва 한국"
SEEN += " » ？ ?? e?t Berlix berlinÉ BERLI"  # words are the same by their first five letters
SEEN += " Ã¼ â€™ Ã» ø” . ! : ; 、 。 … “ „ ) 」 😀 \n end. End Name, Names! namen"
RIMS = """
20 2F 30 39 40 41 5A 60 61 7A 7F 80 9F BF C0 D7 DE F7 FF 24F 250 1FFF 2012 2013 2018 201F 203A 20AC 2122 3000 3040 30A0 30A1
30FB 30FC 30FF 33FF 3400 9FFF A000 D7FF E000 F8FF FF01 FF10 FF5E FF61 FF65 FF66 FF9D FF9F FFFD 10000 1F600
"""


def plain_reading(text):
    """Return what a text holds, by regular expressions: words, whether each is a name, spans of names, numbers, counts."""
    folded = "".join(chr(ord(c) - 0xFEE0) if "\uff01" <= c <= "\uff5e" else c for c in text)
    words, spans = [], []
    for found in re.finditer(f"[{LATIN}]{{3,}}", folded):
        before = re.findall(f'[{LATIN}0-9.!?:"“„]', folded[: found.start()])
        name = bool(before) and before[-1] not in '.!?:"“„' and bool(re.match("[A-ZÀ-ÖØ-Þ]", found[0]))
        small = re.sub("[A-ZÀ-ÖØ-Þ]", lambda one: chr(ord(one[0]) + 32), found[0])
        words.append((small[:5], name))
        spans += [found.span()] if name else []
    spans += [found.span() for found in re.finditer("[ァ-ヺー]{3,}", text)]
    ends = [len(text[:place].encode()) for span in sorted(spans, key=lambda span: span[1])[:4] for place in span]
    numbers = [
        re.sub(r"\D", "", unicodedata.normalize("NFKC", one))
        for one in re.findall("[0-9０-９]+(?:[.,．，](?=[0-9])[0-9０-９]+)*", text)
    ]
    counts = [len(re.findall(f"[{LATIN}]", folded)), len(re.findall("[ぁ-ヺー-ヿｦ-ﾝ]", folded))]
    counts += [len(re.findall("[\u0250-\u1fff\ua000-\ud7ff]", folded)), len(re.findall("[\u3400-\u9fff]", folded))]
    damaged = sum(
        bool(re.match("[\ufffd\x80-\x9f\ue000-\uf8ff｡-ﾟ]", c))
        or (before == "?" and bool(re.match(f"[{LATIN}]", c) or raw == "?"))
        or ("À" <= before <= "ÿ" and bool(re.match("[\x80-\xbf€\u2013-\u203a™]", c)) and c not in "»”’“")
        for before, c, raw in zip(" " + folded, folded, text, strict=False)
    )
    last = re.sub("[\x00- \"')‘-‟」』»«\u3000]+$", "", folded)[-1:]
    end = next((k for k, marks in enumerate((".。…", "?", "!", ":;,、"), 1) if last and last in marks), 0)
    stops = sum(
        (c in "。!?" or (c == "." and (after is None or after <= " "))) and before not in "!?."
        for before, c, after in zip(" " + folded, folded, [*text[1:], None], strict=False)
    )
    return words, ends, numbers, counts, damaged, end, stops


def test_what_a_pair_looks_like_is_what_a_plain_reading_finds():
    draw = random.Random(2)
    pieces = [*SEEN.split(" "), *(chr(int(rim, 16) + k) for rim in RIMS.split() for k in (-1, 0, 1)), *"  ,.!?"]
    pieces = [piece for piece in pieces if not re.search("[\ud800-\udfff]", piece)]

    def text():
        return "".join(draw.choice(pieces) + draw.choice(("", " ")) for _ in range(draw.randint(0, 9)))

    pairs = [(text(), text()) for _ in range(900)]
    pairs += [(a, " ".join(draw.sample(a.split(), len(a.split())))) for a, _ in pairs[:200]]
    sides, out = texts_of(pairs), np.zeros((len(pairs), len(NAMES)), np.uint8)
    names, words = np.zeros((len(pairs), 2, 4, 2), np.int64), np.empty((4, 256), np.uint64)
    look_at_bytes(*sides[0].frozen, *sides[1].frozen, words, np.empty((2, 16), np.int64), names, out)

    def share(part, whole):
        return 255 if not whole else min(255, 255 * part / whole)

    def logarithm(a, b):
        return min(255, max(0, 128 + 40 * np.log((a + 1) / (b + 1))))

    for row, pair in enumerate(pairs):
        one, other = map(plain_reading, pair)
        sizes = [len(text.encode()) for text in pair]
        wanted = {
            "length": min(255, 32 * np.log(1 + sum(sizes))),
            NAMES[PLACES["length"] - 1]: logarithm(*sizes[::-1]),
            "sentences of the target to those of the source": min(255, max(0, 128 + 25 * (other[6] - one[6]))),
            "ends": 128 if one[5] == other[5] else 96 if one[5] and other[5] else 0 if one[5] else 255,
        }
        places = [int(sides[k].offsets[row]) for k in (0, 1)]
        for k, (here, there, missing) in enumerate(((one, other, "target"), (other, one, "source"))):
            side = ("source", "target")[k]
            known, all_names = {word for word, _ in there[0]}, [word for word, name in here[0] if name]
            wanted[f"names missing in the {missing}"] = share(
                sum(word not in known for word in all_names), 1.01 * len(all_names)
            )
            for script, count in zip(("Latin", "Kana", "other"), here[3], strict=False):
                wanted[f"{script} letters in the {side}"] = share(count, max(1, sum(here[3])))
            wanted[f"characters of damaged encoding in the {side}"] = share(4 * here[4], max(1, len(pair[k])))
            assert names[row, k][names[row, k, :, 1] > 0].ravel().tolist() == [places[k] + end for end in here[1]], pair
        words = [[word for word, _ in side[0]] for side in (one, other)]
        common = sum(word in words[1] for word in words[0])
        wanted["words in common"] = share(common, max(1, min(map(len, words))))
        both = [Counter(side[2]) for side in (one, other)]
        if not any(both):
            wanted["numbers"] = NO_NUMBERS
        elif both[0] == both[1]:
            wanted["numbers"] = SAME_NUMBERS
        else:
            wanted["numbers"] = OTHER_NUMBERS if both[0] - both[1] and both[1] - both[0] else MORE_NUMBERS
        found = {name: float(out[row, PLACES[name]]) for name in wanted}
        assert found == pytest.approx(wanted, abs=1.01), pair


def test_texts_are_looked_at_with_the_first_part_of_an_ensemble(mini, pairs):
    other = replace(mini, matrix=np.roll(mini.matrix, 7, axis=0), scales=np.roll(mini.scales, 7))
    found, _ = features_of(Features(Ensemble.of([mini, other]), PAIR), pairs[:20])
    alone, _ = features_of(Features(mini, PAIR), pairs[:20])
    assert np.array_equal(found[:, 1:], alone[:, 1:])  # of both are the cosines alone


def test_features_of_exchanged_sides_are_mirrored(mini, pairs):
    some = [*pairs[:200], ("Page 12 of Berlin?", "Seite 14 von Bonn."), ("We met Anna.", "Wir trafen Peter. Schön!")]
    one, _ = features_of(Features(mini, PAIR), some)
    other, _ = features_of(Features(mini, PAIR[::-1]), [pair[::-1] for pair in some])
    assert np.abs(mirrored(one).astype(int) - other.astype(int)).max() <= 1


@pytest.mark.parametrize(
    ("pair", "value"),
    [
        (("On page 12.", "Auf Seite 12."), SAME_NUMBERS),
        (("We open at 7 a.m.", "Wir öffnen um sieben."), SAME_NUMBERS),
        (("1,400 of them", "1.400 davon"), SAME_NUMBERS),
        (("On page 12.", "Auf Seite 14."), OTHER_NUMBERS),
        (("We open at nine.", "Wir öffnen um 10 Uhr."), OTHER_NUMBERS),
        (("It costs 5 dollars.", "Es kostet Geld."), MORE_NUMBERS),
    ],
)
def test_numbers_are_compared(mini, pair, value):
    found, _ = features_of(Features(mini, PAIR), [pair])
    assert found[0, PLACES["numbers"]] == value


@pytest.mark.parametrize(
    ("name", "other", "heard"),
    [
        ("ピストル", "the pistol brace rule", True),
        ("ペイントスティック", "a line with a paint stick from", True),
        ("ルーマニア", "the railway to Romania.", True),
        ("ミュンヘン", "nach München", True),
        ("ピストル", "the president said that tourists should leave early", False),
        ("Romania", "西側のルーマニアへの鉄道", True),
        ("Romania", "西側のドイツへの鉄道", False),
        ("Romania", "a railway to Romania", False),  # which is no Katakana: words tell
    ],
)
def test_katakana_is_heard_in_a_word_of_the_other_side(name, other, heard):
    text = f"… {name} …"
    span = np.array([[text.encode().index(name.encode()), len(f"… {name}".encode())]])
    value = heard_in(Texts.of([text]), span, np.array([1]), Texts.of(["x", other]))[0]
    assert value > 0.7 if heard else value == 0


def test_names_are_heard_together_as_each_by_itself():
    names, spans = "ピストル Romania ルーマニア ペイントスティック München " + "ストラ" * 20, []
    for found in re.finditer(r"\S+", names):
        spans.append([len(names[:place].encode()) for place in found.span()])
    others = Texts.of(
        [
            "the pistol, to Romania",
            "西側のルーマニアとピストル Pistol",
            "",
            "straststrast" * 9 + " paint stick",
            "ミュンヘン",
        ]
    )
    records = np.repeat(np.arange(len(others)), len(spans))
    texts, spans = Texts.of([names] * len(others)), np.tile(spans, (len(others), 1))
    together = heard_in(texts, spans, records, others)
    alone = [heard_in(texts, spans[k : k + 1], records[k : k + 1], others)[0] for k in range(len(spans))]
    assert together.tolist() == alone
    assert (together > 0.7).reshape(len(others), -1).sum(axis=1).tolist() == [2, 2, 0, 2, 1]


def test_a_name_in_katakana_that_no_unit_covers_is_covered_by_its_sound(mini):
    pairs = [("Then Bramwick Tolliver left.", "それからブラムウィック・トリバーは去った。")]
    pairs += [("Then Bramwick Tolliver left.", "それからサンドロヴィッチ・ケネトは去った。")]
    found, _ = features_of(Features(mini, ("en", "ja")), pairs)
    covered = found[:, PLACES["least covered name of the target"]]
    assert covered[0] > covered[1] + 50


def test_any_text_has_features(mini):
    odd = ["", " ", "\x00", "?" * 300, "a" * 5000, "東京" * 900, "Ã¼ \ufffd \ue000", "😀😀", "1" * 400, "A1,2.3"]
    some = [(a, b) for a in odd for b in odd]
    found, _ = features_of(Features(mini, PAIR), some)
    assert found.shape == (100, len(NAMES))
    finder = Features(mini, PAIR)
    read = [finder.read(side) for side in texts_of(some)]
    again = finder.of(*texts_of(some), (read[0][1], read[1][1]), row_products(read[0][0], read[1][0]), threads=3)
    assert all(np.array_equal(one[0], mini.encode(side)) for one, side in zip(read, texts_of(some), strict=True))
    assert np.array_equal(found, again)


def test_wrong_pairs_are_wrong_and_the_same_each_time(mini, pairs):
    some = pairs[:300]
    vectors = mini.encode([b for _, b in some])
    both = [WrongPairs(some, vectors, (["猫が寝ている。"], ["猫が寝ている。"]), 5) for _ in range(2)]
    for kind in KINDS:
        made, origins = both[0].of_kind(kind, 100)
        assert both[1].of_kind(kind, 100)[0] == made
        assert len(made) == len(origins) >= 15
        for (a, b), origin in zip(made, origins.tolist(), strict=True):
            assert (a, b) != some[origin]
            assert (a == some[origin][0]) or (b == some[origin][1])


def test_examples_are_there_for_models_and_languages_that_none_ship_for(mini, model):
    shipped, classes, middles = examples_for(mini, ("en", "ja"))
    turned = examples_for(mini, ("ja", "en"))
    assert len(shipped) == len(turned[0]) > 4000
    assert set(classes.tolist()) == set(range(len(learning.CLASSES)))
    assert np.abs(middles[:2] - 128).max() < 40
    made, own, _ = examples_for(model, ("en", "ja"))
    assert set(own.tolist()) == set(range(len(learning.CLASSES)))
    assert made.shape[1] == len(NAMES)
    assert len(CENTRED) == 4


def test_a_kind_that_is_told_from_right_pairs_by_its_number_alone_is_taken_for_a_middling_one():
    shares = np.full(len(learning.CLASSES), 0.01)
    shares[0], shares[8] = 0.77, 0.15
    seen = np.full((20, len(shares)), 0.001)
    classes = np.repeat([2, 8], 10)
    seen[:10, 2], seen[10:, 8], seen[10:, 0] = 0.99, 0.4, 0.6  # wrong only if there are many such
    assert learning.weighed(seen, shares)[10:, 0].max() < 0.5
    seen /= seen.sum(axis=1, keepdims=True)
    possible, right = np.full(len(shares) - 1, 0.6), np.eye(len(shares))[:1].repeat(100, axis=0)
    limits = learning._limits(seen, classes, shares, possible, right)
    assert limits[8] == pytest.approx(0.006)
    assert np.delete(limits, 8).tolist() == [1.0] * (len(shares) - 1)


@pytest.mark.parametrize(
    ("kind", "possible", "seen_share", "wanted"),
    [
        ("other numbers", 0.6, 0.12, 2 * 0.12),
        ("other numbers", 0.6, 0.03, 0.006),  # which right pairs may look like
        # Half of the names would be kept: a third more than where right pairs hardly look like them; twice that do.
        ("other names", 0.3, 0.12, 2 * 0.12 - 2 * (0.5 - 0.17) * 0.3),
        ("other names", 0.6, 0.12, 0.0),
    ],
)
def test_a_kind_that_many_pairs_are_for_sure_is_taken_for_as_many_as_its_visible_part_tells(
    kind, possible, seen_share, wanted
):
    place = learning.CLASSES.index(kind)
    shares = np.full(len(learning.CLASSES), 0.01)
    shares[0], shares[place] = 0.67, 0.25
    seen = np.full((10, len(shares)), 1e-6)
    seen[:5, place], seen[5:, place], seen[5:, 0] = 1, 0.4, 0.6  # half of them are seen however few there are
    pairs = np.full((100, len(shares)), 1e-6)
    pairs[:, 0] = 1
    pairs[: round(100 * seen_share), [0, place]] = 1e-6, 1
    parts = [part / part.sum(axis=1, keepdims=True) for part in (seen, pairs)]
    limits = learning._limits(parts[0], np.full(10, place), shares, np.full(len(shares) - 1, possible), parts[1])
    assert limits[place] == pytest.approx(wanted)


def test_changed_names_are_told_where_few_pairs_have_a_name(mini, pairs):
    names = "Alice Bernard Claudia Dominik Esther Ferdinand Gisela Herbert Ingrid Jonas Katharina Leopold Margaret Norbert "
    known = (names + "Ottilie Patrick Renate Sebastian Theresa Ulrich Vanessa").split()
    said = [
        ("A man shows {} the way to the river.", "Ein Mann zeigt {} den Weg zum Fluss."),
        ("Two children wave at {} from the window.", "Zwei Kinder winken {} vom Fenster aus zu."),
        ("The old woman is talking with {} in the garden.", "Die alte Frau spricht mit {} im Garten."),
        ("In the evening they cooked for {} and sang.", "Am Abend kochten sie für {} und sangen."),
    ]
    named, changed = [], []
    for source, target in said:
        for place, name in enumerate(known[:16]):
            changed.append(place % 3 == 0)
            named.append((source.format(name), target.format(known[place + 5] if changed[-1] else name)))
    kept = xswe.filter(mini, named + pairs, languages=PAIR, method="learned", threads=1).kept[: len(named)]
    assert kept[np.flatnonzero(changed)].mean() <= 0.1
    assert kept[~np.array(changed)].mean() >= 0.95


def test_the_precision_says_of_which_kinds_it_tells_nothing():
    shares = np.full(len(learning.CLASSES), 0.01)
    shares[0] = 0.91
    aside = tuple(np.full(50, 0.99 if kind == "other names" else 0.1) for kind in KINDS)
    learnt = learning.Learnt(np.full(1000, 0.98, np.float32), np.ones(1000, np.uint8), shares, aside)
    found = Found(np.zeros(1000, np.uint8), np.ones(1000, np.float32), np.zeros(1000), np.zeros((1000, 1)), np.zeros(1000))
    threshold = _by_learning(found, learnt, BitextFilter()).threshold
    assert threshold.aside == ("other names",)
    assert re.search(
        r"expected precision 98 % \(.*?\) but for other names, for which it cannot be estimated", threshold.sentence()
    )


def test_a_precision_that_may_be_far_off_is_told_by_its_bounds_alone():
    shares = np.full(len(learning.CLASSES), 0.05)
    shares[0] = 0.55
    aside = tuple(np.where(np.arange(200) < 20, 0.95, 0.1) for _ in KINDS)  # one in ten of those that are made is kept
    learnt = learning.Learnt(np.repeat([0.92, 0.1], 500).astype(np.float32), np.ones(1000, np.uint8), shares, aside)
    threshold = learnt.expected().threshold("learnt", 0.9)
    low, high = threshold.within
    assert threshold.precision is None
    assert low < 0.9
    assert high > 0.99
    assert "precision cannot be estimated: it lies between 8" in threshold.sentence()
    assert "precision=0.9 is aimed at, not promised" in threshold.sentence()


def test_shares_of_classes_are_found_again():
    draw = np.random.default_rng(0)
    count = len(learning.CLASSES)
    true = np.full(count, 0.02)
    true[0] = 1 - true[1:].sum()
    classes = draw.choice(count, 20_000, p=true)
    logits = draw.standard_normal((len(classes), count)) + 4.0 * np.eye(count)[classes]
    exact = np.exp(4.0 * logits) * learning._learnt_shares()  # of unit normals whose means are 4 apart
    found = learning.priors_fitted((exact / exact.sum(axis=1, keepdims=True)).astype(np.float32))
    assert np.abs(found - true).max() < 0.005


def test_rows_are_sorted_by_their_first_columns_and_ties_by_the_others():
    draw = np.random.default_rng(0)
    rows = draw.random((2000, 4), np.float32)
    rows[draw.random(rows.shape) < 0.3] = 0
    rows[::3, :2] = rows[::3, :2].round(1)
    found = learning.sorted_rows(rows)
    assert found.tolist() == sorted(rows.tolist())
    assert (learning.sorted_rows(rows[::-1]) == found).all()
    assert len(learning.sorted_rows(rows[:0])) == 0


def test_trees_that_are_read_by_compiled_code_are_those_that_were_fitted():
    from sklearn.ensemble import HistGradientBoostingClassifier

    draw = np.random.default_rng(0)
    rows = draw.integers(0, 256, (3000, 6)).astype(np.float32)
    classes = np.array([1, 4, 6])[(rows[:, 0] > 80).astype(int) + (rows[:, 1] + 40 * draw.random(3000) > 200)]
    model = HistGradientBoostingClassifier(max_iter=12, max_leaf_nodes=15, random_state=0)
    model.fit(np.where(draw.random(rows.shape) < 0.1, np.nan, rows), classes)  # some are unknown to it
    rows[:2] = [[0] * 6, [255] * 6]
    out = np.zeros((len(rows), 8), np.float32)
    Trees.of(model).probabilities(rows.astype(np.uint8), out)
    np.testing.assert_allclose(out[:, [1, 4, 6]], model.predict_proba(rows), rtol=1e-6, atol=1e-9)
    assert not out[:, [0, 2, 3, 5, 7]].any()
    del model._baseline_prediction  # as a version without it
    with pytest.raises(ConfigError, match=r"trees of scikit-learn \S+ cannot be read .* use method=cosine"):
        Trees.of(model)


def test_names_are_covered_as_if_their_units_were_compared_once_more(mini, pairs, monkeypatch):
    given = [*pairs[:300], ("He saw Anna in Paris.", "Er sah Anna in Paris. " * 20), ("x Anna " * 60, "Anna und Bob")]
    found, _ = features_of(Features(mini, PAIR), given)
    of_names = [PLACES[f"least covered name of the {side}"] for side in ("source", "target")]
    assert len(np.unique(found[:, of_names])) > 20
    monkeypatch.setattr(
        "xswe.mining.features.cover_names",
        lambda names, own, *rest: cover_names(names, own._replace(best=np.full_like(own.best, -1)), *rest),
    )
    np.testing.assert_array_equal(features_of(Features(mini, PAIR), given)[0], found)


def test_a_name_is_covered_as_far_as_the_other_side_says_or_sounds_it():
    """Of three records with a name of one unit, the other side of the first says it, and that of the last sounds alike."""
    rows, ones = np.array([[100, 0], [0, 100]], np.int8), np.ones(2, np.float32)
    table = UnitTable(rows, ones / 100, ones, np.zeros((2, 0), np.float32), (-1, -1))
    ids, ends, unknown = np.array([0, 0, 0], np.int32), np.arange(4), np.full(3, -1, np.float32)
    names = FoundNames(ids, ends, np.arange(3), np.array([0.0, 0.0, 0.5], np.float32))
    own, other = Side(ids, ends, unknown), Side(np.array([0, 1, 1], np.int32), ends, unknown)
    out = np.full((3, 2), 255, np.uint8)
    cover_names(names, own, other, table, 0, out)
    assert out.tolist() == [[254, 255], [0, 255], [127, 255]]
