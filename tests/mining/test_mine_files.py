"""From files to files: sides, filters, formats, resumption, scoring, and calibration on gold."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os
import re
from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xswe
from xswe.bitext.output import one_line, output_format
from xswe.bitext.seen import KeySet, text_hashes
from xswe.bitext.source import Source
from xswe.errors import ConfigError, InputError
from xswe.io.ragged import Texts
from xswe.mining import mined, pipeline
from xswe.mining.gold import with_hidden
from xswe.mining.hard_rules import FilterConfig, identity_key, number_key
from xswe.mining.margin import Score
from xswe.mining.mined import mine
from xswe.mining.pipeline import MineConfig, mine_vectors
from xswe.mining.score import Distribution, score_file, score_pairs
from xswe.mining.side import SideConfig, prepare_side
from xswe.search.lists import SearchConfig
from xswe.search.neighbours import find_neighbours
from xswe.search.vectors import Vectors
from xswe.text.scripts import in_script
from xswe.work.folder import work_folder

ONE = SearchConfig(threads=1)


def mine_to_file(model, source, target, output, config=None):
    return mine(model, source, target, output=output, config=config).report


@pytest.fixture
def files(sample, tmp_path):
    """600 English and 600 Japanese lines, of which 300 are translations of each other."""
    source, target = tmp_path / "en.txt", tmp_path / "ja.txt"
    source.write_text("".join(f"{line}\n" for line in sample["en"][:600]), encoding="utf-8")
    target.write_text("".join(f"{line}\n" for line in sample["ja"][300:900]), encoding="utf-8")
    return source, target


def side(model, path, folder, **settings):
    config = SideConfig(str(path), **settings)
    return prepare_side(folder, config, model.encode, model.dim, "m", "side")


@given(st.lists(st.text(max_size=4), max_size=60), st.integers(1, 7))
@settings(max_examples=20)
def test_seen_is_a_set(texts, step):
    seen, known = KeySet(), set()
    hashes = text_hashes(Texts.of(texts))
    clean = [t.encode("utf-8", "replace") for t in texts]
    for start in range(0, len(texts), step):
        new = seen.add(hashes[start : start + step])
        for fresh, text in zip(new, clean[start : start + step], strict=True):
            assert fresh == (text not in known)
            known.add(text)


def test_seen_grows():
    hashes = np.random.default_rng(0).integers(1, 2**63, 300_000).astype(np.uint64)
    seen = KeySet()
    assert sum(int(seen.add(part).sum()) for part in np.array_split(hashes, 7)) == len(np.unique(hashes))
    assert not seen.add(hashes).any()


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        ("In 1999, 1,000 men", "1000人が1999年に", True),
        ("１０個", "10 pieces", True),
        ("3.5 %", "3,5 %", True),
        ("2 of 3", "3 von 2", True),
        ("2 of 3", "2 of 33", False),
        ("none", "keine", True),
        ("none", "1", False),
        ("007", "7", True),
        ("9" * 5000, "9" * 5000 + ".", True),  # more digits than Python makes a number of
    ],
)
def test_numbers_that_agree(a, b, same):
    assert (number_key(a) == number_key(b)) == same


@pytest.mark.parametrize(
    ("text", "languages"),
    [
        ("A cat.", {"en", "de"}),
        ("Füße", {"en", "de"}),
        ("猫が寝る", {"ja"}),
        ("今天天气", {"zh", "ja"}),
        ("Python は良い言語だと思う", {"ja"}),
        ("Привет", set()),
        ("123 !?", set()),
    ],
)
def test_script_of_a_language(text, languages):
    assert {code for code in ("en", "de", "zh", "ja") if in_script(text, code)} == languages


def test_identity_ignores_case_blanks_and_width():
    assert identity_key("Ａ cat ") == identity_key("a Cat") != identity_key("a bat")


@pytest.mark.parametrize("ending", ["", ".gz", ".xz", ".bz2", ".zst"])
def test_a_side_is_read_from_any_compression(model, tmp_path, ending):
    raw = "one\n\n  two words \nOne\none\na\tb\u2028c\r\nend".encode()
    zstandard = pytest.importorskip("zstandard")
    pack = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress, ".bz2": bz2.compress, ".zst": zstandard.compress}
    path = tmp_path / f"a.txt{ending}"
    path.write_bytes(pack[ending](raw))
    found = side(model, path, tmp_path / "side")
    assert list(found.texts) == ["one", "two words", "One", "a\tb\u2028c", "end"]
    assert found.numbers.tolist() == [1, 3, 4, 6, 7]
    assert (found.read, found.dropped) == (7, {"blank": 1, "duplicate": 1})
    assert list(found.names(np.array([1]))) == ["3"]
    np.testing.assert_array_equal(found.vectors.read(0, 5), model.encode(list(found.texts)))


def test_filters_on_lines_are_counted(model, tmp_path):
    (tmp_path / "a").write_text("abcdef\nabc\n猫猫猫猫猫\nabcdef\n", encoding="utf-8")
    filters = FilterConfig(min_characters=4, script=True)
    found = side(model, tmp_path / "a", tmp_path / "side", filters=filters, language="en")
    assert list(found.texts) == ["abcdef"]
    assert found.dropped == {"too short": 1, "wrong script": 1, "duplicate": 1}
    with pytest.raises(ConfigError, match="languages"):
        side(model, tmp_path / "a", tmp_path / "other", filters=filters)


def test_the_summary_tells_the_share_of_near_duplicates(model, sample):
    source, target = sample["en"][:200], sample["ja"][:200]
    again = [f"{text} Yes." for text in source[:50] if len(text) > 60]
    found = xswe.mine(model, [*source, *again], target, threads=1)
    share = len(again) / (len(source) + len(again))
    assert found.report.source.near == pytest.approx(share, abs=0.3 * share)
    assert found.report.target.near == 0
    assert f"near-duplicates of earlier lines: {100 * found.report.source.near:.0f} %" in str(found.report)
    assert "near-duplicates of earlier lines: none" in str(found.report)
    pairs = list(zip(source, target, strict=True))
    filtered = xswe.filter(model, [*pairs, *((f"{a} Yes.", b) for a, b in pairs[:50] if len(a) > 60)], threshold=None)
    assert filtered.near == pytest.approx(share, abs=0.3 * share)
    assert f"near-duplicates of earlier pairs: {100 * filtered.near:.0f} %" in str(filtered)


def test_damaged_lines_and_missing_ids(model, tmp_path):
    (tmp_path / "a").write_bytes(b"x1\tgood\nx2\tb\xffd\nno id\n")
    with pytest.raises(InputError, match=r"a:2: not UTF-8"):
        side(model, tmp_path / "a", tmp_path / "side", ids=True)
    found = side(model, tmp_path / "a", tmp_path / "side", ids=True, on_error="skip")
    assert (list(found.texts), list(found.names(np.array([0])))) == (["good"], ["x1"])
    assert found.dropped == {"not UTF-8": 1, "no id": 1}
    (tmp_path / "a").write_bytes(b"x1\tgood\nno id\n")
    with pytest.raises(InputError, match=r"a:2: no id<TAB>text"):
        side(model, tmp_path / "a", tmp_path / "side", ids=True)


def test_a_file_without_a_single_id_is_refused(model, tmp_path):
    (tmp_path / "a").write_text("one\ntwo\n")
    with pytest.raises(InputError, match="not one line is id<TAB>text; set ids=false"):
        side(model, tmp_path / "a", tmp_path / "side", ids=True, on_error="skip")


def test_a_side_is_made_once_and_again_when_its_file_changes(model, tmp_path):
    (tmp_path / "a").write_text("one\n")
    side(model, tmp_path / "a", tmp_path / "side")
    before = (tmp_path / "side" / "side.json").stat().st_ino
    side(model, tmp_path / "a", tmp_path / "side")
    assert (tmp_path / "side" / "side.json").stat().st_ino == before
    (tmp_path / "a").write_text("one\ntwo\n")
    assert len(side(model, tmp_path / "a", tmp_path / "side")) == 2


def test_an_empty_file_mines_nothing(model, tmp_path):
    (tmp_path / "a").write_text("")
    (tmp_path / "b").write_text("one\n")
    report = mine_to_file(
        model, str(tmp_path / "a"), str(tmp_path / "b"), str(tmp_path / "out.tsv"), MineConfig(neighbours=ONE)
    )
    assert (report.selected, report.kept) == (0, 0)
    assert report.threshold == "threshold: none, no lines of the source are left"
    assert (tmp_path / "out.tsv").read_bytes() == b""


def test_two_empty_files_are_an_error(model, tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).write_text("")
    files = [str(tmp_path / name) for name in ("a", "b")]
    with pytest.raises(InputError, match=r"a and .*b: no line in it; give texts, one a line"):
        mine_to_file(model, *files, str(tmp_path / "out.tsv"), MineConfig(neighbours=ONE))
    assert not (tmp_path / "out.tsv").exists()


def test_mining_files_equals_mining_their_vectors(model, files, sample, tmp_path):
    out = tmp_path / "pairs.tsv"
    report = mine_to_file(model, *map(str, files), str(out), MineConfig(neighbours=ONE))
    lines = [line.split("\t") for line in out.read_text(encoding="utf-8").splitlines()]
    sides = [list(dict.fromkeys(texts)) for texts in (sample["en"][:600], sample["ja"][300:900])]
    mined = mine_vectors(*(model.encode(texts) for texts in sides), MineConfig(neighbours=ONE))
    wanted = [
        [f"{score:.6f}", one_line(sides[0][a]), one_line(sides[1][b])]
        for score, a, b in zip(mined.pairs.scores, mined.pairs.source, mined.pairs.target, strict=True)
    ]
    assert lines == wanted
    assert report.kept == len(lines) == len(mined.pairs)
    truth = set(zip(sample["en"][300:600], sample["ja"][300:600], strict=True))
    found = {(a, b) for _, a, b in lines}
    assert len(found & truth) > 0.6 * len(truth)
    assert not (tmp_path / "pairs.tsv.work").exists()


def test_columns_of_a_frame_are_lines(model, sample):
    pandas = pytest.importorskip("pandas")
    sides = sample["en"][:40], sample["ja"][:40]
    found, expected = (list(mine(model, *given, threads=1)) for given in (map(pandas.Series, sides), sides))
    assert found == expected


def test_formats_say_the_same(model, files, tmp_path):
    pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    config = MineConfig(neighbours=ONE, threshold=None, select="kbest", best=2)
    for name in ("a.tsv.gz", "a.jsonl.zst", "a.parquet", "a.xz"):
        mine_to_file(model, *map(str, files), str(tmp_path / name), config)
    mine_to_file(model, *map(str, files), str(tmp_path / "a.ids"), replace(config, format="bucc"))
    laser = gzip.decompress((tmp_path / "a.tsv.gz").read_bytes())
    assert lzma.decompress((tmp_path / "a.xz").read_bytes()) == laser
    zstandard = pytest.importorskip("zstandard")
    raw = zstandard.ZstdDecompressor().decompressobj().decompress((tmp_path / "a.jsonl.zst").read_bytes())
    rows = [json.loads(line) for line in raw.splitlines()]
    assert "".join(f"{r['score']:.6f}\t{one_line(r['source'])}\t{one_line(r['target'])}\n" for r in rows) == laser.decode()
    assert "".join(f"{r['source_id']}\t{r['target_id']}\n" for r in rows) == (tmp_path / "a.ids").read_text()
    assert [r["rank"] for r in rows[:4]] == [1, 2, 1, 2]
    table = pq.read_table(tmp_path / "a.parquet").to_pylist()
    assert [{**r, "score": 0} for r in table] == [{**r, "score": 0} for r in rows]


def test_tabs_and_line_ends_within_texts():
    assert one_line("a\tb\u2028c\rd") == "a b c d"
    assert output_format("auto", "x.jsonl.gz") == "jsonl"
    assert output_format("auto", "-") == "laser"
    with pytest.raises(ConfigError, match="packed or to standard output"):
        output_format("parquet", "-")
    with pytest.raises(ConfigError, match="laser"):
        output_format("tsv", "a")


def test_pair_filters_let_the_next_best_in(model, tmp_path):
    source, target = tmp_path / "a", tmp_path / "b"
    source.write_text("A cat sleeps 3 hours.\n")
    target.write_text("a CAT sleeps 3 hours.\nA cat sleeps 4 hours.\nA dog eats 3 very small hours.\n")

    def best(**filters):
        out = tmp_path / "out"
        config = MineConfig(threshold=None, score="cosine", neighbours=ONE, filters=FilterConfig(**filters))
        report = mine_to_file(model, str(source), str(target), str(out), config)
        return out.read_text().split("\t")[2].strip() if out.read_text() else None, report.ruled_out

    assert best(identical=False)[0] == "a CAT sleeps 3 hours."
    found, ruled_out = best(identical=True)
    assert found in ("A cat sleeps 4 hours.", "A dog eats 3 very small hours.")
    assert ruled_out == {"identical sides": 2}
    assert best(numbers=True)[0] == "A dog eats 3 very small hours."
    assert best(numbers=True, length_ratio=1.2)[0] is None


def test_both_ends_and_a_given_threshold(model, files, tmp_path):
    def scores(**settings):
        mine_to_file(model, *map(str, files), str(tmp_path / "o"), MineConfig(neighbours=ONE, **settings))
        return [float(line.split("\t")[0]) for line in (tmp_path / "o").read_text(encoding="utf-8").splitlines()]

    everything = scores(threshold=None)
    assert scores(threshold=1.1) == [s for s in everything if s >= 1.1]
    assert scores(threshold=None, min_score=1.1, max_score=1.3) == [s for s in everything if 1.1 <= s <= 1.3]
    assert 0 < len(scores(precision=0.99)) < len(scores(precision=0.5))


@pytest.mark.parametrize("stop_at", ["find_neighbours", "choose_pairs", "write_rows"])
def test_a_stopped_run_goes_on_without_doing_anything_twice(model, files, tmp_path, monkeypatch, stop_at):
    config = MineConfig(neighbours=ONE)
    mine_to_file(model, *map(str, files), str(tmp_path / "whole"), config)

    def stop(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(mined if stop_at == "write_rows" else pipeline, stop_at, stop)
        with pytest.raises(KeyboardInterrupt):
            mine_to_file(model, *map(str, files), str(tmp_path / "o"), config)
    assert not (tmp_path / "o").exists()
    record = tmp_path / "o.work" / "source" / "side.json"
    before, seen = record.stat().st_ino, []
    original = pipeline.prepare_side
    monkeypatch.setattr(pipeline, "prepare_side", lambda *a: (original(*a), seen.append(record.stat().st_ino))[0])
    mine_to_file(model, *map(str, files), str(tmp_path / "o"), config)
    assert seen[0] == before
    assert (tmp_path / "o").read_bytes() == (tmp_path / "whole").read_bytes()
    assert not (tmp_path / "o.work").exists()


def test_a_folder_of_something_else_is_left_alone(model, files, tmp_path):
    (tmp_path / "o.work").mkdir()
    (tmp_path / "o.work" / "precious").write_text("x")
    with pytest.raises(ConfigError, match="no work folder"):
        mine_to_file(model, *map(str, files), str(tmp_path / "o"), MineConfig(neighbours=ONE))
    assert (tmp_path / "o.work" / "precious").exists()


def test_nothing_is_left_beside_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with work_folder(str(tmp_path / "pipe")) as folder:
        assert folder.parent != tmp_path
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]


def test_two_runs_do_not_share_a_work_folder(tmp_path):
    with work_folder(str(tmp_path / "o")) as folder:
        (folder / "half").write_text("of the first run")
        with pytest.raises(ConfigError, match="another run is at work"), work_folder(str(tmp_path / "o")):
            pass
        assert (folder / "half").exists()
    assert not folder.exists()


def test_hidden_lines_are_searched_as_if_they_had_been_there(vectors):
    a, b = vectors(300, 260, planted=100)
    lists = find_neighbours(a[:250], b[:200], 3, ONE)
    sides = [Vectors(x) for x in (a[:250], b[:200], a[250:], b[200:])]
    found = with_hidden(lists, *sides[:2], (sides[2], sides[3]), ONE)
    whole = find_neighbours(a, b, 3, ONE)
    for name in ("forward_ids", "backward_ids"):
        np.testing.assert_array_equal(getattr(found, name), getattr(whole, name))


def test_calibration_on_gold(model, files, sample, tmp_path):
    gold = tmp_path / "gold.tsv"
    pairs = zip(sample["en"][250:450], sample["ja"][250:450], strict=True)
    gold.write_text("".join(f"{a}\t{b}\n" for a, b in pairs), encoding="utf-8")
    mine_to_file(model, *map(str, files), str(tmp_path / "all"), MineConfig(neighbours=ONE, threshold=None))
    report = mine_to_file(model, *map(str, files), str(tmp_path / "o"), MineConfig(neighbours=ONE, gold=str(gold)))
    assert "on gold: recall" in report.threshold
    everything = (tmp_path / "all").read_text(encoding="utf-8").splitlines()
    kept = (tmp_path / "o").read_text(encoding="utf-8").splitlines()
    assert kept == everything[: len(kept)]
    assert 200 < len(kept) <= len(everything)
    clusters = SearchConfig("clusters", clusters=4, probes=4, threads=1)
    report = mine_to_file(model, *map(str, files), str(tmp_path / "c"), MineConfig(neighbours=clusters, gold=str(gold)))
    assert "on gold: recall" in report.threshold
    gold.write_text("".join(f"{b}\t{a}\n" for a, b in zip(sample["en"][250:450], sample["ja"][250:450], strict=True)))
    with pytest.raises(InputError, match=r"none of its 200 pairs is found among the lines; give source and target"):
        mine_to_file(model, *map(str, files), str(tmp_path / "o"), MineConfig(neighbours=ONE, gold=str(gold)))
    gold.write_text("")
    with pytest.raises(InputError, match="no pair"):
        mine_to_file(model, *map(str, files), str(tmp_path / "o"), MineConfig(neighbours=ONE, gold=str(gold)))


RAW = "\ufeffA cat sleeps.\t猫が寝ている。\textra\r\n\tx\ty\nA dog.\t犬。\t \nA cat sleeps.\t犬。\tno end".encode()


@pytest.mark.parametrize("score", get_args(Score))
def test_scoring_keeps_every_other_byte(model, tmp_path, score):
    path, out = tmp_path / "a.tsv", tmp_path / "b.tsv"
    path.write_bytes(RAW)
    more = {} if score == "cosine" else {"k": 2, "work": tmp_path / "work"}
    report = score_file(model, path, out, score=score, neighbours=ONE, **more)
    lines = out.read_bytes().split(b"\n")
    back = b"\n".join(line[: line.rindex(b"\t")] + (b"\r" if line.endswith(b"\r") else b"") for line in lines)
    assert back == RAW
    found = [float(line.rsplit(b"\t", 1)[1]) for line in lines]
    source, target = ["A cat sleeps.", "", "A dog.", "A cat sleeps."], ["猫が寝ている。", "x", "犬。", "犬。"]
    np.testing.assert_allclose(found, score_pairs(model, source, target, score, 2, ONE), atol=2e-6)
    assert report.lines == 4
    assert report.mean == pytest.approx(np.mean(found), abs=1e-5)


@pytest.mark.parametrize("score", get_args(Score))
def test_a_pair_that_is_mined_scores_as_in_a_bitext(model, sample, score):
    sides = sample["en"][:60], sample["ja"][:60]
    scores = dict(zip(zip(*sides, strict=True), score_pairs(model, *sides, score, 4, ONE).tolist(), strict=True))
    mined = mine(model, *sides, threshold=None, score=score, neighbours=ONE)
    found = {(pair.source, pair.target): pair.score for pair in mined}
    both = sorted(found.keys() & scores.keys())
    assert len(both) > 20
    np.testing.assert_allclose([found[pair] for pair in both], [scores[pair] for pair in both], atol=2e-6)


@pytest.mark.parametrize("score", ["cosine", "ratio"])
def test_scoring_ends_with_how_pairs_score(model, sample, tmp_path, score):
    sides = sample["en"][:400], sample["ja"][:300] + sample["ja"][301:400] + sample["ja"][300:301]
    path = tmp_path / "a.tsv"
    path.write_text("".join(f"{a}\t{b}\n" for a, b in zip(*sides, strict=True)), encoding="utf-8")
    found = score_file(model, path, tmp_path / "b.tsv", score=score, neighbours=ONE).distribution
    scores = score_pairs(model, *sides, score, 4, ONE)
    np.testing.assert_allclose(found.quantiles, np.quantile(scores, (0, 0.05, 0.25, 0.5, 0.75, 0.95, 1)), atol=1e-5)
    assert found.below == pytest.approx(0.25, abs=0.06)
    assert (scores[300:] < found.threshold).mean() > 0.85
    assert re.search(r"% score below \d\.\d{4}, as pairs of different lines do", str(found))
    assert "no threshold can be suggested: 3 pairs are too few" in str(Distribution.of(scores[:3], scores[:2]))


@pytest.mark.parametrize("score", ["cosine", "ratio"])
def test_the_summary_of_scores_shows_near_duplicates(model, sample, tmp_path, score):
    pairs = list(zip(sample["en"][:60], sample["ja"][:60], strict=True))
    pairs += [(f"The committee met in room {n} at noon.", f"委員会は正午に{n}号室で会合を開いた。") for n in range(41)]
    path = tmp_path / "a.tsv"
    path.write_text("".join(f"{a}\t{b}\n" for a, b in pairs), encoding="utf-8")
    more = {} if score == "cosine" else {"work": tmp_path / "work", "keep": True}
    for _ in range(1 + bool(more)):  # the second time of the vectors that the first one left
        report = score_file(model, path, tmp_path / "b.tsv", score=score, neighbours=ONE, **more)
        assert report.near == 40 / 101
        assert str(report).split("\n")[0].endswith("b.tsv; near-duplicates of earlier pairs: 40 %")


@pytest.mark.parametrize("score", ["cosine", "ratio"])
def test_of_nothing_no_mean_is_told(model, tmp_path, score):
    path = tmp_path / "a.tsv"
    damaged = (b"\xff\tx\n", "1 lines, 1 of them not scored (nan), ", "; left out: 1 not UTF-8")
    for raw, told, left_out in ((b"", "0 lines, ", ""), damaged):
        path.write_bytes(raw)
        report = score_file(model, path, tmp_path / "b.tsv", on_error="skip", score=score, neighbours=ONE)
        assert re.fullmatch(rf"{re.escape(told)}\d\.\d s: .*b\.tsv{left_out}", str(report))


def test_a_margin_of_an_aligned_bitext_is_that_of_the_mined_pair(model, sample):
    source, target = sample["en"][:200], sample["ja"][:200]
    scores = score_pairs(model, [*source, source[0]], [*target, target[0]], "ratio", neighbours=ONE)
    assert scores[0] == scores[-1]
    config = MineConfig(threshold=None, neighbours=ONE)
    sides = [list(dict.fromkeys(texts)) for texts in (source, target)]
    mined = mine_vectors(*(model.encode(texts) for texts in sides), config).pairs
    of_pair = {(sides[0][a], sides[1][b]): s for s, a, b in zip(mined.scores, mined.source, mined.target, strict=True)}
    aligned = [
        (pair, score) for pair, score in zip(zip(source, target, strict=True), scores, strict=False) if pair in of_pair
    ]
    assert len(aligned) > 150
    np.testing.assert_allclose([score for _, score in aligned], [of_pair[pair] for pair, _ in aligned], rtol=1e-4)


def test_scoring_lines_that_cannot_be_scored(model, tmp_path):
    path = tmp_path / "a.tsv"
    path.write_bytes(b"A cat.\tx\nonly one\nb\xffd\ty\n")
    with pytest.raises(InputError, match=r"a\.tsv:2: 1 tab-separated columns"):
        list(Source((str(path),)).read())
    for score in ("cosine", "ratio"):
        report = score_file(model, path, tmp_path / "o", on_error="skip", score=score, neighbours=ONE)
        assert report.unscored == 2
        lines = (tmp_path / "o").read_bytes().splitlines()
        assert lines[1:] == [b"only one\tnan", b"b\xffd\ty\tnan"]
    with pytest.raises(ConfigError, match="two columns"):
        Source(("a.tsv",), columns=(1,))


def test_scoring_two_aligned_files(model, tmp_path):
    for name, text in (("a", "one\r\ntwo\n"), ("b", "eins\nzwei\n"), ("c", "eins\n")):
        (tmp_path / name).write_bytes(text.encode())
    lines = list(Source((str(tmp_path / "a"), str(tmp_path / "b"))).read())
    assert [(line.raw, line.end) for line in lines] == [(b"one\teins", b"\r\n"), (b"two\tzwei", b"\n")]
    with pytest.raises(InputError, match=r"c:2: ends before line 2"):
        list(Source((str(tmp_path / "a"), str(tmp_path / "c"))).read())
    (tmp_path / "d").write_bytes("\ufeffeins\n".encode() + b"zw\xffei\n")
    with pytest.raises(InputError, match=r"/d:2: not UTF-8"):
        list(Source((str(tmp_path / "a"), str(tmp_path / "d"))).read())
    lines = list(Source((str(tmp_path / "a"), str(tmp_path / "d")), on_error="skip").read())
    assert [line.texts for line in lines] == [("one", "eins"), None]
    (tmp_path / "e.gz").write_bytes(gzip.compress(b"a\tb\n" * 5)[:-9])
    with pytest.raises(InputError, match=r"e\.gz:\d: the archive is truncated or damaged"):
        list(Source((str(tmp_path / "e.gz"),)).read())
    with pytest.raises(ConfigError, match="2 source texts for 1"):
        score_pairs(model, ["a", "b"], ["a"])
