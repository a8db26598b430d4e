"""Texts aligned by one call: files, running text, formats, anchors, and folders."""

from __future__ import annotations

import gzip
import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pytest

import xswe
from xswe.__main__ import main
from xswe.alignment import documents
from xswe.alignment.documents import align_files, pair_documents
from xswe.alignment.formats import SUFFIX_OF
from xswe.errors import ConfigError, InputError

EN = ["The train is late.", "It rains.", "A cat sleeps on the roof.", "Interest rates have fallen.", "We buy bread."]
DE = ["Der Zug hat Verspätung. Es regnet.", "Auf dem Dach schläft eine Katze.", "Wir kaufen Brot."]
BEADS = [((0, 1), (0,)), ((2,), (1,)), ((3,), ()), ((4,), (2,))]


@pytest.fixture(scope="module")
def mini():
    return xswe.load("mini")


@pytest.fixture
def files(tmp_path):
    (tmp_path / "a.en.txt").write_text("".join(f"{line}\n" for line in EN), encoding="utf-8")
    (tmp_path / "a.de.txt").write_text("".join(f"{line}\n" for line in DE), encoding="utf-8")
    return tmp_path / "a.en.txt", tmp_path / "a.de.txt"


def lines_of(found):
    return [(bead.source_lines, bead.target_lines) for bead in found]


def test_lists_and_files_give_the_same_beads(mini, files):
    found = xswe.align(mini, EN, DE)
    assert lines_of(found) == BEADS == lines_of(xswe.align(mini, *files))
    assert found[0].source == "The train is late. It rains."
    assert found[2].score == 0
    assert found[0].score > 0.5
    assert found.coverage == (0.8, 1.0)
    assert len(found.pairs) == 3
    with pytest.raises(IndexError):
        found[4]
    assert found[-1] == list(found)[3]


@pytest.mark.parametrize("kind", sorted({*SUFFIX_OF} - {"xlsx", "parquet"}))
def test_documents_are_written_in_any_format_under_its_suffix(mini, tmp_path, kind):
    folders = [tmp_path / "en", tmp_path / "de"]
    for folder, lines in zip(folders, (EN, DE), strict=True):
        folder.mkdir()
        for name in ("a", "b/c"):
            (folder / f"{name}.txt").parent.mkdir(exist_ok=True)
            (folder / f"{name}.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    found = align_files(mini, *folders, tmp_path / "out", format=kind, languages=("en", "de"))
    assert [one.output for one in found] == [f"a{SUFFIX_OF[kind]}", f"b/c{SUFFIX_OF[kind]}"]
    alone = xswe.align(mini, folders[0] / "a.txt", folders[1] / "a.txt", languages=("en", "de"))
    alone.write(tmp_path / f"alone{SUFFIX_OF[kind]}", format=kind)
    if kind != "docx":  # which has the time in it
        written = [(tmp_path / name).read_text("utf-8") for name in (f"out/{found[0].output}", f"alone{SUFFIX_OF[kind]}")]
        assert len({re.sub(r"\d{8}T\d{6}Z|a\.txt|alone", "", text) for text in written}) == 1 or kind == "html"


def test_no_document_is_overwritten(mini, tmp_path):
    folders = [tmp_path / "en", tmp_path / "de"]
    for folder, lines in zip(folders, (EN, DE), strict=True):
        folder.mkdir()
        for name in ("a.txt", "b.tsv"):
            (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    for output in (folders[0] / "a.txt", folders[1]):
        with pytest.raises(ConfigError, match="is also read, and would be overwritten"):
            align_files(mini, *folders, output, languages=("en", "de"))
    assert (folders[1] / "b.tsv").read_text("utf-8").splitlines() == DE
    align_files(mini, *folders, folders[1], languages=("en", "de"), format="ladder")


def test_every_format_says_the_same(mini, files, tmp_path):
    found = xswe.align(mini, *files, languages=("en", "de"))
    found.write(tmp_path / "b.ladder")
    assert [line.rsplit(":", 1)[0] for line in (tmp_path / "b.ladder").read_text().splitlines()] == [
        *("[0,1]:[0]", "[2]:[1]", "[3]:[]", "[4]:[2]")
    ]
    found.write(tmp_path / "b.tsv.gz")
    with gzip.open(tmp_path / "b.tsv.gz", "rt", encoding="utf-8") as lines:
        rows = [line.rstrip("\n").split("\t") for line in lines]
    assert [row[1:] for row in rows] == [[bead.source, bead.target] for bead in found]
    found.write(tmp_path / "b.tmx")
    units = ET.parse(tmp_path / "b.tmx").getroot().findall("body/tu")
    assert [[seg.text or "" for seg in unit.iter("seg")] for unit in units] == [row[1:] for row in rows]
    found.write(tmp_path / "b.jsonl")
    objects = [json.loads(line) for line in (tmp_path / "b.jsonl").read_text("utf-8").splitlines()]
    assert [(tuple(one["source_lines"]), tuple(one["target_lines"])) for one in objects] == BEADS
    found.write(tmp_path / "b.xliff")
    assert (tmp_path / "b.xliff").read_text("utf-8").count("<trans-unit") == 4
    found.write(tmp_path / "c.xliff", gaps=False)
    assert (tmp_path / "c.xliff").read_text("utf-8").count("<trans-unit") == 3
    told = xswe.align(mini, *files, languages=("en", "de"), output=tmp_path / "c.tsv", gaps=False).summary()
    assert told.endswith("; left out: 1 lines without a counterpart; near-duplicates of earlier beads: none")
    assert (tmp_path / "c.tsv").read_text("utf-8").count("\n") == 3
    with pytest.raises(ConfigError, match=r"b\.odt"):
        found.write(tmp_path / "b.odt")
    with pytest.raises(ConfigError, match="languages"):
        xswe.align(mini, EN, DE, output=tmp_path / "c.tmx")
    assert len(found.to_pandas()) == 4
    factory = pytest.importorskip("translate.storage.factory")  # translate-toolkit, where it is installed
    for name in ("b.tmx", "b.xliff"):
        units = factory.getobject(str(tmp_path / name)).units
        assert [[str(unit.source), str(unit.target or "")] for unit in units] == [row[1:] for row in rows]


def test_a_corrected_memory_holds_its_beads(mini, files, tmp_path):
    xswe.align(mini, *files, languages=("en", "de"), output=tmp_path / "b.tmx")
    text = (tmp_path / "b.tmx").read_text("utf-8")
    # Somebody joins the last two beads by hand.
    text = re.sub(r"<tu>(?:(?!</tu>).)*<seg>Interest rates have fallen\.</seg>.*?</tu>\n", "", text)
    text = text.replace("<seg>We buy bread.</seg>", "<seg>Interest rates have fallen. We buy bread.</seg>")
    (tmp_path / "c.tmx").write_text(text, encoding="utf-8")
    found = xswe.align(mini, *files, languages=("en", "de"), fixed=tmp_path / "c.tmx")
    assert lines_of(found) == [((0, 1), (0,)), ((2,), (1,)), ((3, 4), (2,))]
    assert found.fixed.tolist() == [True, True, True]
    (tmp_path / "d.ladder").write_text("[0]:[0,1]:1.0\n\n[4]:[2]\n", encoding="utf-8")
    found = xswe.align(mini, *files, fixed=tmp_path / "d.ladder")
    assert {((0,), (0, 1)), ((4,), (2,))} <= set(lines_of(found))
    assert lines_of(xswe.align(mini, *files, fixed=[((0,), (0, 1)), ((4,), (2,))])) == lines_of(found)


def test_anchors_that_cannot_be_are_refused(mini, files, tmp_path):
    for wrong in ([((0,), (1,)), ((1,), (1,))], [((0, 2), (0,))], [((4,), (3,))]):
        with pytest.raises(ConfigError, match="cannot be a bead"):
            xswe.align(mini, *files, fixed=wrong)
    (tmp_path / "d.ladder").write_text("0:1\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"d.ladder:1: .* no rung"):
        xswe.align(mini, *files, fixed=tmp_path / "d.ladder")
    xswe.align(mini, ["A dog barks."], ["Ein Hund bellt."], languages=("en", "de"), output=tmp_path / "other.tmx")
    with pytest.raises(InputError, match="none of its rows"):
        xswe.align(mini, *files, languages=("en", "de"), fixed=tmp_path / "other.tmx")
    with pytest.raises(InputError, match="none of its rows"):
        xswe.align(mini, *files, fixed=tmp_path / "other.tmx")


def test_anchors_cut_the_texts_and_keep_every_line(mini, sample):
    """Every fifth bead is given; what lies between is found as without them."""
    english, japanese = sample["en"][:200], sample["ja"][:200]
    free = xswe.align(mini, english, japanese)
    known = [(bead.source_lines, bead.target_lines) for bead in free.pairs[::5]]
    found = xswe.align(mini, english, japanese, fixed=known)
    assert set(known) <= set(lines_of(found))
    assert sorted(line for bead in found for line in bead.source_lines) == list(range(200))
    assert len(set(lines_of(found)) & set(lines_of(free))) > 0.95 * len(free)
    assert found.fixed.sum() == len(known)


def test_a_format_that_cannot_be_written_is_refused_before_the_texts_are_read(mini, tmp_path):
    for name, how in (("a.odt", {}), ("a.tmx", {}), ("a.tsv", {"format": "bucc"})):
        with pytest.raises(ConfigError, match=r"pairs are not written as|set languages|beads have line numbers"):
            xswe.align(mini, tmp_path / "none.txt", tmp_path / "none.txt", output=tmp_path / name, **how)


def test_low_beads_become_gaps(mini):
    found = xswe.align(mini, EN, DE)
    least = sorted(bead.score for bead in found.pairs)[1]
    cut = xswe.align(mini, EN, DE, min_score=least)
    assert [bead.score for bead in cut.pairs] == [bead.score for bead in found.pairs if bead.score >= least]
    assert sorted(line for bead in cut for line in bead.target_lines) == [0, 1, 2]
    assert len(cut.scores) == len(cut.cells) - 1 == len(cut.fixed)


def test_running_text_keeps_its_places(mini, tmp_path):
    pytest.importorskip("sentencex")
    (tmp_path / "a.md").write_text("# Travel\n\nThe **train** is late. It rains.\n\nWe buy\nbread.\n", encoding="utf-8")
    (tmp_path / "b.txt").write_text("Reise\nDer Zug hat Verspätung. Es regnet. Wir kaufen Brot.\n", encoding="utf-8")
    found = xswe.align(mini, tmp_path / "a.md", tmp_path / "b.txt", languages=("en", "de"), split=True)
    assert [(bead.source, bead.target) for bead in found] == [
        ("Travel", "Reise"),
        ("The train is late.", "Der Zug hat Verspätung."),
        ("It rains.", "Es regnet."),
        ("We buy bread.", "Wir kaufen Brot."),
    ]
    found.write(tmp_path / "c.jsonl")
    target = (tmp_path / "b.txt").read_text("utf-8")
    for line in (tmp_path / "c.jsonl").read_text("utf-8").splitlines():
        value = json.loads(line)
        assert [target[a:b] for a, b in value["target_places"]] == [value["target"]]
    with pytest.raises(ConfigError, match="set languages"):
        xswe.align(mini, tmp_path / "a.md", tmp_path / "b.txt")


@pytest.fixture
def folders(tmp_path, sample):
    """Six documents a side: five belong together, one of each is alone."""
    for name, language in (("english", "en"), ("deutsch", "de")):
        (tmp_path / name / "inner").mkdir(parents=True)
        for number in range(5):
            texts = sample[language][40 * number : 40 * number + 30]
            place = tmp_path / name / ("inner" if number % 2 else "") / f"text{number}.{language}.txt"
            place.write_text("\n".join(texts), encoding="utf-8")
        start = 1000 if language == "en" else 1200
        (tmp_path / name / f"only-{language}-here.txt").write_text("\n".join(sample[language][start : start + 30]), "utf-8")
    return tmp_path / "english", tmp_path / "deutsch"


def test_folders_are_paired_by_names(mini, folders, tmp_path):
    found = align_files(mini, *folders, tmp_path / "out")
    assert len(found) == 5
    assert found.alone == (("only-en-here.txt",), ("only-de-here.txt",))
    assert all(one.beads >= 28 and one.coverage > 0.9 for one in found)
    assert (tmp_path / "out" / "inner" / "text1.tsv").is_file()
    assert len((tmp_path / "out" / "documents.tsv").read_text("utf-8").splitlines()) == 6
    assert not (tmp_path / "out" / ".xswe-align.jsonl").exists()
    assert "5 pairs of documents aligned, 1 and 1 without a partner" in str(found)


def test_folders_are_paired_by_what_they_say(mini, folders, tmp_path):
    for number, path in enumerate(sorted(folders[1].rglob("*.txt"), key=lambda path: path.read_text("utf-8"))):
        path.rename(folders[1] / f"unknown{number}.txt")
    found = align_files(mini, *folders, tmp_path / "all.tsv", pairing="content")
    assert {one.source for one in found} == {f"{'inner/' if k % 2 else ''}text{k}.en.txt" for k in range(5)}
    assert all(one.coverage > 0.9 for one in found)
    assert found.alone[0] == ("only-en-here.txt",)
    assert len((tmp_path / "all.tsv").read_text("utf-8").splitlines()) == sum(one.beads for one in found)


def test_a_pair_of_documents_is_described_and_kept_while_its_file_is_there(mini, tmp_path, monkeypatch):
    sides = tmp_path / "en", tmp_path / "de"
    for side, lines in zip(sides, (EN, DE), strict=True):
        side.mkdir()
        for name in ("a.txt", "b.txt"):
            (side / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    found = align_files(mini, *sides, tmp_path / "out")
    assert [tuple(one) for one in found] == [
        (name, name, None, 5, 3, 3, 0.875, f"{name[0]}.tsv") for name in ("a.txt", "b.txt")
    ]
    assert str(replace(found, seconds=1.25)) == (
        f"2 pairs of documents aligned, 0 and 0 without a partner; 16 lines, 6 beads, 1.2 s: {tmp_path / 'out'}; "
        "near-duplicates of earlier beads: 50 %"
    )
    for output in ("all.tsv", "without"):
        paired = align_files(mini, *sides, tmp_path / output, gaps=False)
        ends = f"{output}; left out: 2 lines without a counterpart; near-duplicates of earlier beads: 50 %"
        assert str(paired).endswith(ends)
    assert "2 pairs of documents aligned, 1 of them by an earlier run, 0 and" in str(replace(found, kept=1))
    with monkeypatch.context() as patch:  # a run that was killed at its end, of which one file is lost
        patch.setattr(documents.AlignedDocuments, "write", lambda self, path: None)
        patch.setattr(type(tmp_path), "unlink", lambda self, **how: None)
        align_files(mini, *sides, tmp_path / "killed")
    state = tmp_path / "killed" / ".xswe-align.jsonl"
    state.write_bytes(state.read_bytes()[:-3] + b"\xc3" + state.read_bytes())  # and one that was cut, within a character
    (tmp_path / "killed" / "a.tsv").unlink()
    again = align_files(mini, *sides, tmp_path / "killed")
    assert (again.kept, (tmp_path / "killed" / "a.tsv").is_file()) == (1, True)
    assert replace(again, kept=0, output=found.output, seconds=found.seconds) == found
    assert sorted(path.name for path in (tmp_path / "killed").iterdir()) == ["a.tsv", "b.tsv", "documents.tsv"]
    for wrong, said in (
        ({"source": "-", "target": "-"}, "source=- target=-: only one of them can be read from standard input"),
        ({"pairing": "content"}, "pairing is only for folders and has no effect on two files: leave it out"),
    ):
        given = {"source": sides[0] / "a.txt", "target": sides[1] / "a.txt", "output": tmp_path / "o.tsv", **wrong}
        with pytest.raises(ConfigError, match=said):
            align_files(mini, **given)


def test_all_documents_may_be_in_one_file(mini, tmp_path):
    sides = tmp_path / "en", tmp_path / "de"
    for side, lines in zip(sides, (EN, DE), strict=True):
        side.mkdir()
        for name in ("a.txt", "b.txt"):
            (side / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    found = align_files(mini, *sides, tmp_path / "all.xlf", languages=("en", "de"))
    assert [one.output for one in found] == [None, None]
    assert (found.kept, found.output) == (0, str(tmp_path / "all.xlf"))
    text = (tmp_path / "all.xlf").read_text("utf-8")
    assert ('original="en"' in text, text.count("<trans-unit")) == (True, 8)


def test_a_document_is_known_by_its_sentences_evenly_spread(mini, sample):
    texts = [sample["en"][:3], [], sample["en"][:100]]
    found = documents._Collection.of(mini, texts, 1)
    assert found.bounds.tolist() == [0, 3, 3, 51]  # up to 48
    assert (found.of_document(0) == documents.line_sums(mini, texts[0]).sums).all()
    last = documents.line_sums(mini, texts[2][-1:]).sums
    assert (found.of_document(2)[-1:] == last).all()
    assert found.vectors[0] == pytest.approx(found.of_document(0).sum(0), abs=1e-4)


def test_an_empty_document_has_no_partner(mini):
    english, german = (
        [["The train is late."], [], ["A cat sleeps."]],
        [[], ["Eine Katze schläft."], ["Der Zug hat Verspätung."]],
    )
    found = pair_documents(mini, english, german)
    assert {(0, 2), (2, 1)} >= {pair[1:] for pair in found}
    assert all(np.isfinite(pair.score) for pair in found)
    assert [pair[1:] for pair in pair_documents(mini, english[:1], german[2:])] == [(0, 0)]
    assert list(pair_documents(mini, [], german)) == list(pair_documents(mini, english, [])) == []


def test_a_manifest_says_what_belongs_together(mini, folders, tmp_path):
    (tmp_path / "list.tsv").write_text("text0.en.txt\ttext0.de.txt\n", encoding="utf-8")
    found = align_files(mini, *folders, tmp_path / "out.csv", manifest=tmp_path / "list.tsv")
    assert [one.source for one in found] == ["text0.en.txt"]
    assert (tmp_path / "out.csv").read_text("utf-8").splitlines()[1].split(",")[-2].startswith("text0.en.txt:1")
    for name in ("absent.txt", "../deutsch/text0.de.txt", str(folders[1] / "text0.de.txt")):
        (tmp_path / "list.tsv").write_text(f"text0.en.txt\t{name}\n", encoding="utf-8")
        with pytest.raises(InputError, match=r"list.tsv:1: there is no .*(absent|text0)"):
            align_files(mini, *folders, tmp_path / "out", manifest=tmp_path / "list.tsv")
    with pytest.raises(ConfigError, match="ladder numbers the lines"):
        align_files(mini, *folders, tmp_path / "out.ladder")


def test_no_pair_takes_the_place_of_another(mini, tmp_path):
    sides = tmp_path / "en", tmp_path / "de"
    names = ["documents.{}.txt", "news.v1.txt", "news.v2.{}.txt", "news.{}.v3.txt"]
    for code, side in zip(("en", "de"), sides, strict=True):
        side.mkdir()
        for name in names:
            (side / name.format(code)).write_text(f"{name}\n", encoding="utf-8")
    found = align_files(mini, *sides, tmp_path / "out", threads=1)
    assert [(one.source, one.target) for one in found] == [
        tuple(name.format(code) for code in ("en", "de")) for name in names
    ]
    for name, one in zip(names, found, strict=True):
        assert name in (tmp_path / "out" / one.output).read_text("utf-8")
    assert len({one.output for one in found} | {"documents.tsv"}) == 5
    lines = "".join(f"news.v1.txt\t{name.format('de')}\n" for name in names)
    (tmp_path / "list.tsv").write_text(lines + lines, encoding="utf-8")
    found = align_files(mini, *sides, tmp_path / "listed", manifest=tmp_path / "list.tsv", threads=1)
    assert len({one.output for one in found}) == 8


def test_a_killed_run_goes_on_to_the_same_bytes(mini, folders, tmp_path, monkeypatch):
    from xswe.alignment import documents

    align_files(mini, *folders, tmp_path / "whole")
    calls, real = [], documents.align

    def dying(*arguments, **how):
        calls.append(arguments)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(*arguments, **how)

    monkeypatch.setattr(documents, "align", dying)
    with pytest.raises(KeyboardInterrupt):
        align_files(mini, *folders, tmp_path / "killed")
    monkeypatch.setattr(documents, "align", real)
    found = align_files(mini, *folders, tmp_path / "killed")
    assert found.kept == 2
    for path in (tmp_path / "whole").rglob("*.tsv"):
        assert path.read_bytes() == (tmp_path / "killed" / path.relative_to(tmp_path / "whole")).read_bytes()


def test_shuffled_documents_find_each_other_and_strangers_nobody(mini, sample):
    rng = np.random.default_rng(2)
    parts = {code: [sample[code][k : k + 12] for k in range(0, 1200, 12)] for code in ("en", "ja")}
    order = rng.permutation(80)  # a tenth of either side is alone
    english, japanese = parts["en"][:89], [parts["ja"][k] for k in order] + parts["ja"][89:98]
    found = pair_documents(mini, english, japanese)
    right = sum(pair.target < 80 and order[pair.target] == pair.source for pair in found)
    assert right >= 78
    assert len(found) <= 82
    assert len(pair_documents(mini, [], japanese)) == 0


@pytest.mark.parametrize("count", [1, 2, 3, 6])
def test_the_score_of_two_documents_is_the_margin_of_their_best_sentences(mini, sample, count):
    """By the plain definition, over the near documents of both: one less than there are, but no more than four."""
    sides = [[sample[code][7 * k : 7 * k + 3 + k] for k in range(count)] for code in ("en", "de")]
    found = pair_documents(mini, *sides)
    one, other = (documents._Collection.of(mini, side, 1) for side in sides)
    one, other = one.centred(other), other.centred(one)
    alike = np.zeros((count, count))
    for a, b in np.ndindex(count, count):
        cosines = one.of_document(a) @ other.of_document(b).T
        alike[a, b] = (cosines.max(0).mean() + cosines.max(1).mean()) / 2
    near = min(4, max(1, count - 1))
    rows, columns = (np.sort(values, 1)[:, -near:].mean(1) for values in (alike, alike.T))
    expected = {(k, k): alike[k, k] - (rows[k] + columns[k]) / 2 for k in range(count)}
    assert {pair[1:]: pair.score for pair in found} == pytest.approx(expected, abs=1e-5)
    assert [pair.score for pair in found] == sorted((pair.score for pair in found), reverse=True)


def test_the_order_of_documents_decides_nothing(mini, sample):
    english, german = ([sample[code][k : k + 1 + k % 3] for k in range(0, 60, 3)] for code in ("en", "de"))
    found = {(pair.source, pair.target): pair.score for pair in pair_documents(mini, english, german)}
    back = {(19 - pair.source, 19 - pair.target): pair.score for pair in pair_documents(mini, english[::-1], german[::-1])}
    assert len(found) > 15
    assert found == pytest.approx(back, abs=1e-5)


def test_the_verbs(files, folders, tmp_path, capsys):
    source, target = map(str, files)
    assert main(["align", "model=mini", f"source={source}", f"target={target}", f"output={tmp_path / 'v.ladder'}"]) == 0
    assert "5 and 3 lines, 3 beads" in capsys.readouterr().out
    assert (tmp_path / "v.ladder").read_text("utf-8").startswith("[0,1]:[0]:")
    wanted = [f"source={folders[0]}", f"target={folders[1]}", f"output={tmp_path / 'folder'}"]
    assert main(["align", "model=mini", *wanted]) == 0
    assert "5 pairs of documents" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="2"):
        main(["align", "model=mini", f"source={source}", f"target={target}", f"output={source}"])
    assert "would be overwritten" in capsys.readouterr().err


def test_a_precision_cuts_where_it_is_expected(mini, sample):
    """Blocks of the translation are of another text; the expected precision of the beads is true within five points."""
    draw = np.random.default_rng(3)
    english, japanese = sample["en"][:600], list(sample["ja"][:600])
    foreign = [row for row in range(600) if row // 20 % 2]
    for row in foreign:
        japanese[row] = sample["ja"][700 + int(draw.integers(300))]
    plain = xswe.align(mini, english, japanese, evidence=True)
    assert plain.threshold.origin == "none"
    found = xswe.align(mini, english, japanese, precision=0.9)
    assert found.threshold.origin == "mismatched neighbours"
    right = [any(row in bead.target_lines for row in bead.source_lines if row not in foreign) for bead in found.pairs]
    assert np.mean(right) > 0.85
    assert found.threshold.precision == pytest.approx(np.mean(right), abs=0.05)
    assert len(found.pairs) <= len(plain.pairs)
    assert "expected precision" in found.summary()
    few = xswe.align(mini, english[:20], japanese[:20], precision=0.9)
    assert "pairs are too few; precision=0.9 is aimed at, not promised" in few.threshold.sentence()
    with pytest.raises(ConfigError, match=r"precision=1\.5"):
        xswe.align(mini, english, japanese, precision=1.5)


def test_a_page_shows_beads_and_what_is_alone(files, tmp_path, capsys):
    pytest.importorskip("jinja2")
    given = ["align", "model=mini", f"source={files[0]}", f"target={files[1]}", f"output={tmp_path / 'b.tsv'}"]
    assert main([*given, f"report={tmp_path / 'b.html'}"]) == 0
    page = (tmp_path / "b.html").read_text("utf-8")
    assert "Aligned texts" in page
    assert "Interest rates have fallen." in page
    assert "no counterpart" in page
    assert main([*given, f"report={tmp_path / 'b.html'}", "precision=0.9"]) == 0
    capsys.readouterr()
    (tmp_path / "no").write_text("")
    with pytest.raises(SystemExit, match="2"):
        main([*given, f"report={tmp_path / 'no' / 'a.html'}"])
    assert f"report={tmp_path / 'no' / 'a.html'}: {tmp_path / 'no'} is not a folder" in capsys.readouterr().err


def test_languages_in_the_wrong_order_are_warned_of(mini, sample, caplog):
    english, japanese, chinese = (sample[code][:40] for code in ("en", "ja", "zh"))
    for texts, languages in (
        ((english, japanese), ("en", "ja")),
        ((japanese, chinese), ("ja", "zh")),
        ((english, sample["de"][:40]), ("de", "en")),  # which no script tells
    ):
        xswe.align(mini, *texts, languages=languages)
        assert not caplog.records
    for texts, languages in (((english, japanese), ("ja", "en-GB")), ((japanese, chinese), ("zh-Hans", "ja"))):
        xswe.align(mini, *texts, languages=languages)
        a, b = (code[:2] for code in languages)
        assert f"the source looks like {b} and the target like {a}; name languages in the order" in caplog.text
        caplog.clear()


def test_a_catalogue_has_notes_and_statuses_and_lines_without_a_counterpart_have_no_score(mini, tmp_path):
    polib = pytest.importorskip("polib")
    english = ["The train is late.", "It rains.", "A zebra crosses the road."]
    rows = "The train is late.,Der Zug ist verspätet.,right,by hand\nIt rains.,Es regnet.,,\nA zebra crosses the road.,,,\n"
    (tmp_path / "c.csv").write_text(f"source,target,status,notes\n{rows}", "utf-8")
    how = {"languages": ("en", "de"), "fixed": tmp_path / "c.csv"}
    xswe.align(mini, english, ["Der Zug hat Verspätung.", "Es regnet."], output=tmp_path / "a.po", **how)
    entries = list(polib.pofile(str(tmp_path / "a.po")))
    assert [(one.msgstr, one.tcomment) for one in entries] == [
        ("Der Zug ist verspätet.", "by hand"),
        ("Es regnet.", ""),
        ("", ""),
    ]
    assert [one.comment[-7:] for one in entries] == [", right", ", right", ""]
