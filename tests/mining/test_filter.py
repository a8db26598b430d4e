"""Filtering noisy bitext: every reason, every format, the threshold from the file itself."""

from __future__ import annotations

import gzip
import json
import random
import unicodedata
from functools import partial

import numpy as np
import pytest

import xswe
from xswe.bitext.source import find_pairs, read_pairs
from xswe.errors import ConfigError, InputError
from xswe.io.ragged import Texts
from xswe.mining import filter as filtering
from xswe.mining import verdicts
from xswe.mining.filter import filter_bitext
from xswe.work import kept

GOOD = [
    ("The train is late.", "Der Zug hat Verspätung."),
    ("A cat sleeps on the roof.", "Eine Katze schläft auf dem Dach."),
]
BAD = [("We buy bread.", "Eine Katze schläft."), ("Open the window.", "Open the window !"), ("x", ""), GOOD[0]]
REASONS = ["low similarity", "copy", "blank", "duplicate"]


@pytest.fixture(scope="module")
def mini():
    return xswe.load("mini")


@pytest.fixture(scope="module")
def noisy(sample):
    """Real pairs, and as many whose target is another pair's."""
    pairs = list(dict.fromkeys(zip(sample["en"], sample["de"], strict=True)))[:1200]
    draw = random.Random(0)
    wrong = [
        (a, b) for (a, _), (_, b) in zip(pairs[:400], draw.sample(pairs[:400], 400), strict=True) if (a, b) not in pairs
    ]
    everything = [*((pair, True) for pair in pairs[400:]), *((pair, False) for pair in wrong)]
    draw.shuffle(everything)
    return [pair for pair, _ in everything], np.array([good for _, good in everything])


def test_every_pair_is_kept_or_has_a_reason(mini):
    found = xswe.filter(mini, [*GOOD, *map(list, BAD)], threshold=0.5, languages=("en", "de"))
    assert found.kept.tolist() == [True, True, False, False, False, False]
    assert [found.names[reason] for reason in found.reasons[2:]] == REASONS
    assert np.isfinite(found.scores[:3]).all()
    assert np.isnan(found.scores[3:]).all()
    assert "2 kept" in str(found)
    assert [row[1] for row in found.records()][:2] == ["kept", "kept"]


@pytest.mark.parametrize(
    ("pair", "settings", "reason"),
    [
        (("Page 12 of 40", "Seite 12 von 14"), {"numbers": True}, "numbers"),
        (("Page １２ of 1,400", "Seite 12 von 1.400"), {"numbers": True}, "kept"),
        (("12 - 34 - 56", "12 - 34 - 56 -"), {"copies": False}, "few letters"),
        (("Short.", "Ein sehr langer Satz, der viel mehr sagt als der kurze."), {}, "length ratio"),
        (("The train is late.", "列車が遅れている。"), {}, "other script"),
        (("The train is late.", "Der Zug hat Verspätung."), {"max_characters": 20}, "too long"),
        (("Microsoft Visual Studio Code", "microsoft visual studio code!"), {}, "copy"),
    ],
)
def test_filters_one_by_one(mini, pair, settings, reason):
    found = filter_bitext(mini, [pair], threshold=None, languages=("en", "de"), **settings)
    assert found.names[found.reasons[0]] == reason


def test_which_texts_may_hold_a_digit():
    texts = ["0", "a9b", "", "/", ":", "é", "３", "no digit"]
    assert verdicts._has_digit(Texts.of(texts)).tolist() == [True, True, False, False, False, False, True, False]


def test_the_threshold_comes_from_the_file_itself(mini, noisy):
    """By the cosine; by what is learnt from the file, in test_learning.py."""
    pairs, good = noisy
    how = {"languages": ("en", "de"), "method": "cosine"}
    found = xswe.filter(mini, pairs, **how)
    precision, recall = good[found.kept].mean(), found.kept[good].mean()
    assert precision > 0.95
    assert recall > 0.95
    assert found.threshold.precision == pytest.approx(precision, abs=0.05)
    loose = xswe.filter(mini, pairs, **how, precision=0.7)
    assert loose.threshold.value < found.threshold.value
    assert loose.threshold.precision >= 0.7


def test_too_few_pairs_tell_no_precision(mini):
    assert "cannot be estimated: 2 pairs are too few" in xswe.filter(mini, GOOD).threshold.sentence()
    for nothing in ([], [("", "")]):
        assert str(xswe.filter(mini, nothing)).endswith("\nthreshold: none, no pairs are left")


RECORDS = [*GOOD, BAD[0]]


def write(path, records):
    """Write records with something around each pair, which must stay."""
    if path.suffix == ".tsv":
        path.write_text(
            "".join(f"id{n}\t{a}\t{b}\tx\r\n" for n, (a, b) in enumerate(records)), newline="", encoding="utf-8"
        )
        return {"columns": (1, 2)}
    if path.suffix == ".csv":
        path.write_text("n,en,de\n" + "".join(f'{n},"{a}","{b}"\n' for n, (a, b) in enumerate(records)), encoding="utf-8")
        return {"columns": ("en", "de")}
    if path.suffix == ".jsonl":
        rows = [json.dumps({"en": a, "de": b, "n": n}, ensure_ascii=False) + "\n" for n, (a, b) in enumerate(records)]
        path.write_text("".join(rows), encoding="utf-8")
        return {}
    units = "".join(
        f'<tu tuid="u{n}" changeid="me"><note>kept</note><tuv xml:lang="en-US"><seg>{a}</seg></tuv>'
        f'<tuv xml:lang="de"><seg>{b}</seg></tuv></tu>'
        for n, (a, b) in enumerate(records)
    )
    head = '<?xml version="1.0"?><tmx version="1.4"><header creationtool="other" srclang="en"/>'
    path.write_text(f"{head}<body>{units}</body></tmx>", encoding="utf-8")
    return {}


@pytest.mark.parametrize("name", ["a.tsv", "a.csv", "a.jsonl", "a.tmx"])
def test_records_stay_as_they_stand(mini, tmp_path, name):
    how = write(tmp_path / name, RECORDS)
    out, rejects = tmp_path / f"out-{name}", tmp_path / "no.tsv"
    found = filter_bitext(mini, tmp_path / name, out, rejects=rejects, threshold=0.5, languages=("en", "de"), **how)
    assert found.kept.tolist() == [True, True, False]
    text = out.read_text(encoding="utf-8")
    assert {"a.tsv": "id1\t", "a.csv": "n,en,de\n", "a.jsonl": '"n": 1', "a.tmx": 'tuid="u1" changeid="me"'}[name] in text
    assert ("creationtool" in text) == (name == "a.tmx")
    if name != "a.csv":
        columns = how.get("columns", (0, 1))
        (file,) = find_pairs([out], ("en", "de"), columns if name == "a.tsv" else (0, 1))
        assert list(read_pairs(file)) == GOOD
    reason, score, record = rejects.read_text(encoding="utf-8").split("\t", 2)
    assert reason == "low similarity"
    assert float(score) < 0.5
    assert "We buy bread." in record
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([name, out.name, rejects.name])


def test_another_format_receives_pairs_and_scores(mini, tmp_path):
    for side in (0, 1):
        text = "".join(f"{pair[side]}\n" for pair in RECORDS)
        (tmp_path / f"a.{('en', 'de')[side]}").write_text(text, encoding="utf-8")
    paths = [tmp_path / "a.en", tmp_path / "a.de"]
    filter_bitext(mini, paths, tmp_path / "out.tmx.gz", threshold=0.5, languages=("en", "de"))
    assert b'creationtool="xswe"' in gzip.decompress((tmp_path / "out.tmx.gz").read_bytes())
    (file,) = find_pairs([tmp_path / "out.tmx.gz"], ("en", "de"))
    assert list(read_pairs(file)) == GOOD
    filter_bitext(mini, paths, tmp_path / "out.tsv", threshold=0.5, languages=("en", "de"))
    assert (tmp_path / "out.tsv").read_text(encoding="utf-8") == "".join(f"{a}\t{b}\n" for a, b in GOOD)


def test_a_killed_run_goes_on_to_the_same_bytes(mini, tmp_path, noisy, monkeypatch):
    pairs = noisy[0] + noisy[0][:100]
    (tmp_path / "a.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in pairs), encoding="utf-8")
    monkeypatch.setattr(verdicts, "BLOCK", 100)
    monkeypatch.setattr(kept, "BRIEF", 0.0)
    filter_bitext(mini, tmp_path / "a.tsv", tmp_path / "whole.tsv")
    judged, original = [], filtering.PairFilter.compared

    def stop(self, block, reasons):
        judged.append(len(block))
        if len(judged) == 6:
            raise KeyboardInterrupt
        return original(self, block, reasons)

    monkeypatch.setattr(filtering.PairFilter, "compared", stop)
    with pytest.raises(KeyboardInterrupt):
        filter_bitext(mini, tmp_path / "a.tsv", tmp_path / "o.tsv", threads=1)
    assert not (tmp_path / "o.tsv").exists()
    found = filter_bitext(mini, tmp_path / "a.tsv", tmp_path / "o.tsv", threads=2)
    assert sum(judged) - 100 == len(pairs) == len(found)
    assert (tmp_path / "o.tsv").read_bytes() == (tmp_path / "whole.tsv").read_bytes()
    assert not (tmp_path / "o.tsv.work").exists()


def test_mistakes_in_filtering_are_named(mini, tmp_path):
    (tmp_path / "a.tsv").write_bytes(b"one\ttwo\nthree\n")
    with pytest.raises(InputError, match=r"a\.tsv:2: 1 tab-separated columns"):
        filter_bitext(mini, tmp_path / "a.tsv")
    found = filter_bitext(mini, tmp_path / "a.tsv", on_error="skip")
    assert found.counts["damaged"] == 1
    with pytest.raises(ConfigError, match="treshold: there is no such setting"):
        filter_bitext(mini, GOOD, treshold=1)
    with pytest.raises(ConfigError, match="filtered in memory"):
        filter_bitext(mini, GOOD, tmp_path / "o.tsv")
    for mixed in ([*GOOD, "a.tsv"], [*GOOD, ("a", "b", "c")]):
        with pytest.raises(ConfigError, match="give pairs, each of two texts, or names of files"):
            filter_bitext(mini, mixed)
    for missing in (None, float("nan")):  # as pandas has it
        with pytest.raises(ConfigError, match=rf"pair {len(GOOD)} is \('a', (None|nan)\); give two texts, '' for one"):
            filter_bitext(mini, [*GOOD, ("a", missing)])
    with pytest.raises(ConfigError, match="unknown language 'fr'"):
        filter_bitext(mini, GOOD, languages=("en", "fr"))
    with pytest.raises(ConfigError, match="precision does nothing without threshold=auto"):
        filter_bitext(mini, GOOD, threshold=0.3, precision=0.9)


WORDS = (
    "The train STRASSE Straße über ÜBER ﬁnd Ｔｏｋｙｏ 東京 京都に行く １２ "
    "12 ① x² ΣΊΓΜΑ σίγμα Don't don't e\u0301te\u0301 été a b"
)


def test_no_copy_is_missed_by_the_look_at_bytes():
    draw, pairs = random.Random(0), []
    for _ in range(4000):
        one = draw.choices(WORDS.split(), k=draw.randint(0, 7))
        other = [draw.choice((word, word, word, word.upper(), word.casefold(), draw.choice(WORDS.split()))) for word in one]
        pairs.append((draw.choice((" ", "\u3000")).join(one), " ".join(draw.sample(other, len(other)))))
    pairs.append((" ".join(map(str, range(100, 500))), " ".join(map(str, range(120, 520)))))
    sides = [Texts.of([pair[k] for pair in pairs]) for k in (0, 1)]
    wanted = [row for row, pair in enumerate(pairs) if verdicts.is_copy(*pair)]
    assert 100 < len(wanted) < 3000
    assert verdicts.find_copies(*sides, np.arange(len(pairs))) == wanted


@pytest.mark.parametrize(
    ("source", "target", "copied"),
    [
        ("Straße 12", "STRASSE 12!", True),
        ("Ｈｅｌｌｏ", "hello", True),
        ("Привет", "привет.", True),
        ("H₂O, 10⁵", "h2o 105", True),
        ("Привет", "Привет, как дела?", False),  # of another length
        ("Привет", "Пришёл", False),
        ("The old cat sleeps", "the old cat SLEEPS again and once more", True),  # words of the shorter side
        ("The old cat sleeps", "The new dog barks", False),
        ("Berlin", "Berlin an der Spree", False),  # one word may be a name
        ("", "", True),
    ],
)
def test_copies_have_the_same_letters_or_mostly_the_same_words(source, target, copied):
    assert verdicts.is_copy(source, target) == verdicts.is_copy(target, source) == copied


def test_no_copy_is_missed_whatever_its_characters():
    blocks = (0x20, 0x3400), (0xA640, 0xABC0), (0xF900, 0x10000), (0x10400, 0x10450), (0x1D400, 0x1D800)
    texts = [f"ab{chr(code)}cd" for first, end in blocks for code in range(first, end)]
    for other in (str.casefold, str.upper, partial(unicodedata.normalize, "NFKC")):
        pairs = [(text, other(text)) for text in texts if other(text) != text]
        wanted = [row for row, pair in enumerate(pairs) if verdicts.is_copy(*pair)]
        assert len(wanted) > 500
        assert verdicts.find_copies(*map(Texts.of, zip(*pairs, strict=True)), np.arange(len(pairs))) == wanted


def test_what_looks_like_no_copy_is_not_read_again(monkeypatch, noisy):
    monkeypatch.setattr(verdicts, "is_copy", lambda source, target: True)
    sides = [Texts.of([pair[k] for pair in noisy[0]]) for k in (0, 1)]
    assert len(verdicts.find_copies(*sides, np.arange(len(noisy[0])))) < 0.02 * len(noisy[0])


@pytest.mark.parametrize("suffix", ["tsv", "jsonl"])
@pytest.mark.parametrize("threads", [1, 2])
def test_lines_are_copied_as_they_stand(mini, tmp_path, suffix, threads):
    rows = [*GOOD, *BAD] * 2
    lines = ["\ufeff"]
    for a, b in rows:
        lines.append(f"{a}\t{b}\tmore" if suffix == "tsv" else json.dumps({"en": a, "de": b, "n": 1}, ensure_ascii=False))
        lines.append(random.Random(len(lines)).choice(("\n", "\r\n")))
    raw = "".join(lines[1:-1] if suffix == "jsonl" else lines[:-1]).encode()  # no end to the last line
    (tmp_path / f"a.{suffix}").write_bytes(raw)
    names = [tmp_path / f"{name}.{suffix}" for name in "ao"]
    rejects = tmp_path / "rejects"
    found = filter_bitext(mini, *names, rejects=rejects, threshold=0.5, languages=("en", "de"), threads=threads)
    split = raw.split(b"\n")
    assert found.kept[:2].all()
    assert names[1].read_bytes() == b"".join(split[row] + b"\n" for row in np.flatnonzero(found.kept))
    thrown = rejects.read_bytes().splitlines()
    assert [line.split(b"\t", 2)[2] for line in thrown] == [split[row].rstrip(b"\r") for row in np.flatnonzero(~found.kept)]
