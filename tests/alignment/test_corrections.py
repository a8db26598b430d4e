"""Corrections given back: what a file says of two texts is kept, in every format and for texts of any size."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

import xswe
from tests.alignment.test_align import lines_of
from xswe.__main__ import main
from xswe.alignment import windows
from xswe.alignment.beads import Constraints
from xswe.alignment.corrections import read_corrections
from xswe.alignment.documents import align_files
from xswe.bitext.convert import rewrite_bitext
from xswe.errors import ConfigError, InputError

EN = ["The train is late.", "It rains.", "A cat sleeps on the roof.", "Interest rates have fallen.", "We buy bread."]
DE = [
    "Der Zug hat Verspätung.",
    "Es regnet.",
    "Auf dem Dach schläft eine Katze.",
    "Die Zinsen sind gefallen.",
    "Wir kaufen Brot.",
]
ONE_TO_ONE = [((line,), (line,)) for line in range(5)]


@pytest.fixture(scope="module")
def mini():
    return xswe.load("mini")


def written(tmp_path, name, text):
    (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path / name


def test_lines_without_a_counterpart_stay_without_one(mini, tmp_path):
    assert lines_of(xswe.align(mini, EN, DE)) == ONE_TO_ONE
    ladder = written(tmp_path, "a.ladder", "[2]:[]\n[]:[3]\n")
    lines = '{"source_lines": [2], "target_lines": []}\n{"source_lines": [], "target_lines": [3]}\n'
    for fixed in (ladder, written(tmp_path, "a.jsonl", lines), [((2,), ()), ((), (3,))]):
        found = xswe.align(mini, EN, DE, fixed=fixed)
        assert [pair for pair in lines_of(found) if all(pair)] == [ONE_TO_ONE[line] for line in (0, 1, 4)]
        # Lines 3 of the source and 2 of the target are free, and translate nothing that is.
        assert found.fixed.tolist() == [pair in (((2,), ()), ((), (3,))) for pair in lines_of(found)]


def test_lines_that_are_there_twice_keep_their_order(mini, tmp_path):
    """A file of texts alone, as a person sends it back, says which of two equal lines is meant by what stands around."""
    english = ["Is it raining?", "Yes.", "Yes.", "Then let us go."]
    german = ["Regnet es?", "Ja.", "Doch.", "Dann lass uns gehen."]
    rows = "".join(f"{a}\t{b}\n" for a, b in zip(english, german, strict=True))
    found = xswe.align(mini, english, german, fixed=written(tmp_path, "a.tsv", f"source\ttarget\n{rows}"))
    assert lines_of(found) == ONE_TO_ONE[:4]
    assert found.fixed.all()


def test_a_rejected_pair_is_in_no_bead_of_the_result(mini, tmp_path):
    for fixed in ([((2,), (2,), "rejected")], written(tmp_path, "a.ladder", "[2]:[2]:rejected\n[0]:[0]:0.93\n")):
        found = xswe.align(mini, EN, DE, fixed=fixed)
        assert not any(2 in a and 2 in b for a, b in lines_of(found))
        assert {ONE_TO_ONE[line] for line in (0, 1, 3, 4)} <= set(lines_of(found))
    # A part of what was rejected is no part of the correction: the wrong line of a bead is taken off by it.
    longer = (
        ["The train is late.", "A cat sleeps.", "It rains."],
        ["Der Zug hat Verspätung. Eine Katze schläft.", "Es regnet."],
    )
    assert lines_of(xswe.align(mini, *longer))[0] == ((0, 1), (0,))
    assert lines_of(xswe.align(mini, *longer, fixed=[((0, 1), (0,), "rejected")]))[0] in (((0,), (0,)), ((0,), ()))


def test_what_was_taken_out_of_a_file_stays_out(mini, tmp_path):
    for suffix in ("tmx", "ladder", "jsonl"):
        before = tmp_path / f"before.{suffix}"
        xswe.align(mini, EN, DE, languages=("en", "de"), output=before)
        text = before.read_text("utf-8")
        rows = [row for row in text.splitlines(keepends=True) if "cat sleeps" not in row and "[2]:[2]" not in row]
        assert len(rows) == text.count("\n") - 1
        after = written(tmp_path, f"after.{suffix}", "".join(rows))
        free = xswe.align(mini, EN, DE, languages=("en", "de"), fixed=after)
        assert lines_of(free) == ONE_TO_ONE  # nobody said that the pair is wrong
        found = xswe.align(mini, EN, DE, languages=("en", "de"), fixed=after, uncorrected=before)
        assert [pair for pair in lines_of(found) if all(pair)] == [ONE_TO_ONE[line] for line in (0, 1, 3, 4)]
        assert found.fixed.tolist().count(True) == 4


def test_a_unit_whose_text_was_edited_was_not_taken_out(mini, tmp_path, caplog):
    before = tmp_path / "before.tmx"
    xswe.align(mini, EN, DE, languages=("en", "de"), output=before)
    after = written(tmp_path, "after.tmx", before.read_text("utf-8").replace("eine Katze", "ein Kater"))
    assert read_corrections(after, before, EN, DE, ("en", "de")).constraints.rejected.tolist() == []
    text = before.read_text("utf-8").replace("eine Katze", "ein Kater").replace("A cat", "A tom-cat")
    assert (
        read_corrections(written(tmp_path, "both.tmx", text), before, EN, DE, ("en", "de")).constraints.rejected.tolist()
        == []
    )


def test_units_stand_where_their_writer_says(tmp_path):
    """The same sentences come twice, and the first of either is taken out: the others are not put in its place."""
    english, german = ["Yes.", "No.", "Yes.", "No."], ["Ja.", "Nein.", "Ja.", "Nein."]
    units = [
        f'<tu><prop type="x-lines">{line + 1} {line + 1}</prop><tuv xml:lang="en"><seg>{english[line]}</seg></tuv>'
        f'<tuv xml:lang="de"><seg>{german[line]}</seg></tuv></tu>\n'
        for line in range(4)
    ]

    def anchors(*chosen, marks=True):
        body = "".join(unit if marks else re.sub("<prop.*?</prop>", "", unit) for unit in chosen)
        file = written(tmp_path, "a.tmx", f'<tmx version="1.4"><header srclang="en"/><body>\n{body}</body></tmx>')
        return read_corrections(file, None, english, german, ("en", "de")).constraints.anchors

    def cells(*lines):
        return tuple(((line, line), (line + 1, line + 1)) for line in lines)

    assert anchors(units[2], units[3]) == cells(2, 3)
    assert anchors(units[3], units[0]) == cells(0, 3)  # and the order of the file does not matter
    assert anchors(units[2], units[3], marks=False) == cells(0, 1)
    assert anchors(*units, marks=False) == cells(0, 1, 2, 3)
    wrong = units[1].replace("2 2", "7 x")
    assert anchors(units[0], wrong, units[2]) == cells(0, 1, 2)
    assert anchors(units[1].replace("2 2", ""), units[2]) == cells(1, 2)  # before the next one that has a place
    shifted = units[1].replace("2 2", "1 2")
    assert anchors(shifted, units[2]) == cells(1, 2)


def test_an_empty_text_of_a_unit_is_a_gap_and_its_status_may_be_rejected(mini, tmp_path):
    before = tmp_path / "a.tmx"
    xswe.align(mini, EN, DE, languages=("en", "de"), output=before)
    text = before.read_text("utf-8").replace("<seg>Es regnet.</seg>", "<seg></seg>")
    known = read_corrections(written(tmp_path, "b.tmx", text), None, EN, DE, ("en", "de")).constraints
    assert (known.source_gaps.tolist(), known.target_gaps.tolist(), len(known.anchors)) == ([1], [], 4)
    text = re.sub(
        '(<prop type="x-lines">2 . 2</prop>)', '\\1<prop type="x-status">rejected</prop>', before.read_text("utf-8")
    )
    known = read_corrections(written(tmp_path, "b.tmx", text), None, EN, DE, ("en", "de")).constraints
    assert (known.rejected.tolist(), len(known.anchors)) == ([[1, 2, 1, 2]], 4)


@pytest.mark.parametrize(
    ("ladder", "wrong"),
    [
        (
            "[0]:[0]\n\n[0]:[]\n",
            r"a.ladder:3: line 0 of the source has no .*\[0\]:\[0\] \(line 1\); remove one of them",
        ),
        ("[]:[0,1]\n[0]:[1]\n", r"a.ladder:1: line 1 of the target has no .*\[0\]:\[1\] \(line 2\); remove one"),
        (
            "[0]:[0]:rejected\n[0,1]:[0]\n",
            r"a.ladder:1: \[0\]:\[0\] is rejected, but within the bead \[0,1\]:\[0\] \(line 2\)",
        ),
        ("[0]:[0]\n[0]:[1]\n", r"a.ladder:2: \[0\]:\[1\] cannot be a bead beside \[0\]:\[0\] \(line 1\)"),
        ("[4]:[5]\n", r"a.ladder:1: lines \[5\] of the target, which has 5, cannot be a bead here"),
        ("[4]:[]\n[5]:[]\n", r"a.ladder:2: lines \[5\] of the source, which has 5, cannot be in a gap here"),
        (
            "[0,2]:[0]\n",
            r"a.ladder:1: lines \[0, 2\] of the source.* cannot be a bead here; a bead's lines follow each other",
        ),
        (
            "[0]:[]:rejected\n",
            r"a.ladder:1: \[0\]:\[\] is a gap, and rejected; give the pair that is right, or leave it out",
        ),
        ("[0]:[0]:rejetced\n", r"a.ladder:1: there is no status 'rejetced'; write rejected, right, open, or nothing"),
        ("[0]:0\n", r"a.ladder:1: '\[0\]:0' is no rung; write \[0\]:\[0,1\]"),
    ],
)
def test_what_cannot_be_obeyed_is_refused_with_its_line(tmp_path, ladder, wrong):
    with pytest.raises(InputError, match=wrong):
        read_corrections(written(tmp_path, "a.ladder", ladder), None, EN, DE, ())


def test_lists_and_other_files_are_refused_with_their_places(tmp_path):
    with pytest.raises(ConfigError, match=r"fixed\[1\]: line 0 of the source has no .*\[0\]:\[0\] \(fixed\[0\]\)"):
        read_corrections([((0,), (0,)), ((0,), ())], None, EN, DE, ())
    with pytest.raises(ConfigError, match=r"fixed\[0\]: \(0, 1\) is no pair; write"):
        read_corrections([(0, 1)], None, EN, DE, ())
    with pytest.raises(ConfigError, match=r"uncorrected=a: this is what fixed= was made from; give fixed="):
        read_corrections(None, "a", EN, DE, ())
    text = '{"source_lines": [0], "target_lines": [0]}\n{"source_lines": 0}\n'
    with pytest.raises(InputError, match=r"a.jsonl:2: '.*' is no pair; write \{"):
        read_corrections(written(tmp_path, "a.jsonl", text), None, EN, DE, ())
    with pytest.raises(InputError, match=r"b.ladder:1: lines \[9\] of the source"):
        read_corrections([], written(tmp_path, "b.ladder", "[9]:[0]\n"), EN, DE, ())
    units = "".join(
        f'<tu><prop type="x-lines">{n} {n}</prop><prop type="x-status">{status}</prop>'
        f'<tuv xml:lang="en"><seg>{EN[n - 1]}</seg></tuv><tuv xml:lang="de"><seg>{DE[n - 1]}</seg></tuv></tu>\n'
        for n, status in ((1, ""), (2, ""), (2, "rejected"))
    )
    text = f'<?xml version="1.0"?>\n<tmx version="1.4"><header srclang="en"/><body>\n{units}</body></tmx>'
    for encoding in ("utf-8", "utf-16"):
        (tmp_path / "a.tmx").write_bytes(text.replace("?>", f' encoding="{encoding}"?>', 1).encode(encoding))
        with pytest.raises(
            InputError, match=r"a.tmx:5: \[1\]:\[1\] is rejected, but within the bead \[1\]:\[1\] \(line 4\)"
        ):
            read_corrections(tmp_path / "a.tmx", None, EN, DE, ("en", "de"))


# What a person does to a file of beads.


class Edited:
    """Beads, as somebody goes through them, and what is said of them in the end.

    Attributes:
        rows: the beads and gaps of the file that is given back, each with its first number in the one before.
        rejected: pairs with that status.
        removed: pairs that are no more there.
    """

    def __init__(self, beads, draw):
        self.rows = [list(bead) for bead in beads]
        self.rejected, self.removed = [], []
        for _ in range(int(draw.integers(1, 8))):
            row = int(draw.integers(len(self.rows)))
            getattr(self, str(draw.choice(["remove", "reject", "gap", "merge", "split"])))(row)

    def remove(self, row):
        if all(self.rows[row]):
            self.removed.append(self.rows.pop(row))

    def reject(self, row):
        if all(self.rows[row]):
            self.rejected.append(self.rows.pop(row))

    def gap(self, row):
        source, target = self.rows.pop(row)
        self.rows[row:row] = [[source, ()], [(), target]]

    def merge(self, row):
        rest = self.rows[row : row + 2]
        sides = [rest[0][k] + rest[-1][k] for k in (0, 1)]
        if (
            len(rest) == 2
            and all(list(side) == list(range(side[0], side[-1] + 1)) for side in sides if side)
            and all(sides)
        ):
            self.rows[row : row + 2] = [sides]

    def split(self, row):
        source, target = self.rows[row]
        if len(source) > 1 and target:
            self.rows[row : row + 1] = [[source[:1], target], [source[1:], ()]]
        elif len(target) > 1 and source:
            self.rows[row : row + 1] = [[source, target[:1]], [(), target[1:]]]

    def kept(self):
        """What must be so: beads, lines in gaps, and pairs that no bead holds."""
        beads = {(a, b) for a, b in self.rows if a and b}
        gaps = [{line for row in self.rows if not row[1 - k] for line in row[k]} for k in (0, 1)]
        out = [
            (a, b)
            for a, b in self.rejected + self.removed
            if not any(set(a) <= set(x) and set(b) <= set(y) for x, y in beads)
        ]
        return beads, gaps, out


def broken(found, edited, sizes):
    """Return the corrections that beads do not keep, and the sides whose lines are not all there once, in order."""
    beads, gaps, out = edited.kept()
    pairs = {(a, b) for a, b in found if a and b}
    holders = {line: (set(a), set(b)) for a, b in pairs for line in a}
    nothing: tuple[set[int], set[int]] = set(), set()
    wrong = [*(beads - pairs)]
    for k in (0, 1):
        wrong += [f"side {k}"] if [line for pair in found for line in pair[k]] != list(range(sizes[k])) else []
        wrong += gaps[k] & {line for pair in pairs for line in pair[k]}
    held = ((a, b, *holders.get(a[0], nothing)) for a, b in out)
    return wrong + [(a, b) for a, b, x, y in held if set(a) <= x and set(b) <= y]


def write_edited(path, edited, texts):
    """Write what a person has made of a file, in its own format."""
    rows = [(a, b, "") for a, b in edited.rows] + [(a, b, "rejected") for a, b in edited.rejected]
    if path.suffix == ".ladder":
        lines = [f"[{','.join(map(str, a))}]:[{','.join(map(str, b))}]{status and ':'}{status}" for a, b, status in rows]
    elif path.suffix == ".jsonl":
        lines = [json.dumps({"source_lines": a, "target_lines": b, "status": status or None}) for a, b, status in rows]
    else:
        lines = ['<tmx version="1.4"><header srclang="en"/><body>']
        for a, b, status in rows:
            first = " ".join(str(line + 1) for line in a + b)
            sides = (" ".join(text[line] for line in lines) for text, lines in zip(texts, (a, b), strict=True))
            variants = "".join(
                f'<tuv xml:lang="{code}"><seg>{text}</seg></tuv>' for code, text in zip(("en", "de"), sides, strict=True)
            )
            lines.append(f'<tu><prop type="x-lines">{first}</prop><prop type="x-status">{status}</prop>{variants}</tu>')
        lines.append("</body></tmx>")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.mark.parametrize("files", [3, pytest.param(20, marks=pytest.mark.slow)])
@pytest.mark.parametrize("suffix", ["ladder", "jsonl", "tmx"])
def test_random_corrections_are_kept_exactly(mini, sample, tmp_path, suffix, files):
    draw = np.random.default_rng(len(suffix))
    for number in range(files):
        start = int(draw.integers(0, 1000))
        english = [text.replace("&", "and").replace("<", "") for text in sample["en"][start : start + 30]]
        german = [text.replace("&", "und").replace("<", "") for text in sample["de"][start : start + 30]]
        english[3:5] = [" ".join(english[3:5])]
        del german[12]
        german[20:20] = [german[2], "Ja.", "Ja."]
        before, after = tmp_path / f"before.{suffix}", tmp_path / f"after{number}.{suffix}"
        free = xswe.align(mini, english, german, languages=("en", "de"), output=before)
        edited = Edited([pair for pair in lines_of(free) if suffix != "tmx" or all(pair)], draw)
        write_edited(after, edited, (english, german))
        found = xswe.align(mini, english, german, languages=("en", "de"), fixed=after, uncorrected=before)
        assert not broken(lines_of(found), edited, (len(english), len(german)))
        again = xswe.align(mini, english, german, fixed=[*edited.rows, *([*pair, "rejected"] for pair in edited.rejected)])
        edited.removed = []
        assert not broken(lines_of(again), edited, (len(english), len(german)))


@pytest.mark.slow
def test_corrections_of_long_texts_are_kept(mini, sample, tmp_path, monkeypatch):
    """In windows, of a run of some hundred lines that the texts have in common and somebody says they have not."""
    for name, value in {"_WHOLE": 100, "_WINDOW": 800, "_COARSE": 1000, "_LEARN": 3000, "_BORDER": 60, "_STEPS": 6}.items():
        monkeypatch.setattr(windows, name, value)
    rows = np.random.default_rng(5).permutation(np.tile(np.arange(len(sample["en"])), 2))[:3000].tolist()
    english, german = ([sample[code][row] for row in rows] for code in ("en", "de"))
    xswe.align(mini, english, german, output=tmp_path / "a.ladder")
    beads = [
        tuple(tuple(map(int, re.findall(r"\d+", side))) for side in line.split(":")[:2])
        for line in (tmp_path / "a.ladder").read_text("utf-8").splitlines()
    ]
    edited = Edited(beads, np.random.default_rng(1))
    edited.rows, edited.removed = [row for row in edited.rows if not (row[0] and 500 <= row[0][0] < 2500)], []
    edited.rows += [[(line,), ()] for line in range(1000, 1400)]
    edited.rejected += [[(line,), (line,)] for line in range(1800, 1900)]
    write_edited(tmp_path / "b.ladder", edited, ())
    found = xswe.align(mini, english, german, fixed=tmp_path / "b.ladder")
    assert not broken(lines_of(found), edited, (3000, 3000))
    right = sum(pair == ((line,), (line,)) for pair in lines_of(found) for line in pair[0][:1])
    assert right > 0.95 * 2500


def test_windows_done_under_other_corrections_are_not_taken(mini, tmp_path, monkeypatch):
    """What a killed run has left is of its own corrections alone."""
    identities = []
    real = windows.fingerprint
    monkeypatch.setattr(windows, "_WHOLE", 4)
    monkeypatch.setattr(windows, "fingerprint", lambda *parts: identities.append(real(*parts)) or identities[-1])
    for fixed in (None, [], [((2,), ())], [((), (2,))], [((2,), (2,), "rejected")], [((2,), (2,))]):
        xswe.align(mini, EN, DE, fixed=fixed, output=tmp_path / "a.ladder")
    assert len(set(identities)) == len(identities) - 1  # no corrections, and none in a list


@pytest.mark.parametrize("long", [False, True])
def test_beads_score_as_before_where_a_file_is_given_back_as_it_was(mini, sample, tmp_path, monkeypatch, long):
    """What translations look like is learnt from known beads, too, of which a text may be full."""
    if long:
        for name, value in {"_WHOLE": 100, "_WINDOW": 400, "_LEARN": 3000}.items():
            monkeypatch.setattr(windows, name, value)
    aligned = []
    real = windows.Pair.path
    monkeypatch.setattr(windows.Pair, "path", lambda *given: aligned.append(given) or real(*given))
    english, german = sample["en"][:1000], sample["de"][:400] + sample["de"][420:700] + sample["de"][710:1000]
    free = xswe.align(mini, english, german, output=tmp_path / "a.ladder")
    aligned.clear()
    found = xswe.align(mini, english, german, fixed=tmp_path / "a.ladder", output=tmp_path / "b.ladder")
    assert lines_of(found) == lines_of(free)
    assert found.fixed.all()
    assert found.scores == pytest.approx(free.scores, abs=0.05)
    assert found.prices.gaps == pytest.approx(free.prices.gaps, rel=0.2)
    assert bool(aligned) == long
    assert len(aligned) < 10  # windows hold as many known beads as fit


def test_nothing_known_is_nothing_changed(mini, sample):
    english, german = sample["en"][:300], sample["de"][40:300]
    free, found = (xswe.align(mini, english, german, **how) for how in ({}, {"fixed": []}))
    assert np.array_equal(free.cells, found.cells)
    assert np.array_equal(free.scores, found.scores)
    assert not found.fixed.any()
    assert Constraints().within((0, 0), (3, 3)).rejected.shape == (0, 4)


@pytest.fixture
def folders(tmp_path, sample):
    """Two documents a side."""
    for code in ("en", "de"):
        (tmp_path / code / "inner").mkdir(parents=True)
        for number, name in enumerate(("a", "inner/b")):
            texts = sample[code][40 * number : 40 * number + 20]
            (tmp_path / code / f"{name}.{code}.txt").write_text("\n".join(texts) + "\n", encoding="utf-8")
    return tmp_path / "en", tmp_path / "de"


def test_folders_have_a_file_of_corrections_a_pair(mini, folders, tmp_path):
    align_files(mini, *folders, tmp_path / "out", format="ladder")
    (tmp_path / "fixed" / "inner").mkdir(parents=True)
    text = (tmp_path / "out" / "inner" / "b.ladder").read_text("utf-8")
    written(
        tmp_path,
        "fixed/inner/b.ladder",
        text.replace("[4]:[4]:", "[4]:[4]:rejected\n[5]:[]\n[]:[5]\nx").replace("\nx", "\n#"),
    )
    with pytest.raises(InputError, match=r"b.ladder:\d+: '#"):
        align_files(mini, *folders, tmp_path / "again", format="ladder", fixed=tmp_path / "fixed")
    rows = [row for row in text.splitlines(keepends=True) if not row.startswith(("[4]:", "[5]:"))]
    written(tmp_path, "fixed/inner/b.ladder", "".join(rows) + "[5]:[]\n")
    how = {"format": "ladder", "fixed": tmp_path / "fixed", "uncorrected": tmp_path / "out"}
    align_files(mini, *folders, tmp_path / "again", **how)
    again = (tmp_path / "again" / "inner" / "b.ladder").read_text("utf-8")
    assert not re.search(r"^\[4\]:\[4\]|^\[5\]:\[\d", again, re.MULTILINE)
    assert (tmp_path / "again" / "a.ladder").read_bytes() == (tmp_path / "out" / "a.ladder").read_bytes()
    align_files(mini, *folders, tmp_path / "all.tsv", fixed=tmp_path / "fixed", uncorrected=tmp_path / "out")
    pairs = [row.split("\t") for row in (tmp_path / "all.tsv").read_text("utf-8").splitlines()]
    line = (folders[0] / "inner" / "b.en.txt").read_text("utf-8").splitlines()[5]
    assert [target for _, text, target in pairs if text == line] == [""]


def test_folders_of_corrections_that_belong_to_nothing_are_refused(mini, folders, tmp_path):
    (tmp_path / "fixed").mkdir()

    def refused(match, fixed=tmp_path / "fixed", output=tmp_path / "out", **how):
        with pytest.raises(ConfigError, match=match):
            align_files(mini, *folders, output, fixed=fixed, **how)

    refused(r"fixed=.*fixed: no file in it with a suffix of .ladder, .jsonl, .csv, .mo, .* .xlsx; give a folder")
    written(tmp_path, "fixed/c.ladder", "[0]:[]\n")
    refused(r"c.ladder belongs to no pair of documents; name files as in output=, for example a.ladder")
    (tmp_path / "fixed" / "c.ladder").rename(tmp_path / "fixed" / "a.ladder")
    refused(r"fixed=.*: this is also output=", output=tmp_path / "fixed")
    refused(r"fixed=.*a.ladder: for folders of documents, give a folder", fixed=tmp_path / "fixed" / "a.ladder")
    refused(r"fixed=\[\(.*: for folders of documents, give a folder", fixed=[((0,), ())])
    refused(r"uncorrected=.*: this is what fixed= was made from", fixed=None, uncorrected=tmp_path / "fixed")
    written(tmp_path, "fixed/a.jsonl", "")
    refused(r"a.ladder and a.jsonl belong to the same pair; remove one of them|a.jsonl and a.ladder")


def test_the_verb_obeys_corrections(folders, tmp_path, capsys):
    source, target = folders[0] / "a.en.txt", folders[1] / "a.de.txt"
    given = ["align", "model=mini", f"source={source}", f"target={target}", "languages=[en,de]"]
    assert main([*given, f"output={tmp_path / 'a.ladder'}"]) == 0
    text = (tmp_path / "a.ladder").read_text("utf-8")
    assert "\n[7]:[7]:" in text
    written(tmp_path, "b.ladder", re.sub(r"\n\[7\]:\[7\]:.*\n", "\n[7]:[]\n", text))
    for suffix in ("ladder", "tsv", "tmx", "csv"):
        output = tmp_path / f"c.{suffix}"
        assert main([*given, f"output={output}", f"fixed={tmp_path / 'b.ladder'}"]) == 0
        assert source.read_text("utf-8").splitlines()[6] in output.read_text("utf-8") or suffix == "ladder"
        beside = r"(\t|</seg></tuv><tuv[^>]*><seg></seg>|\"?,,)"
        alone = re.escape(source.read_text("utf-8").splitlines()[7]) + beside
        assert re.search(alone, output.read_text("utf-8")) or suffix == "ladder"
    assert not re.search(r"^\[7\]:\[\d", (tmp_path / "c.ladder").read_text("utf-8"), re.MULTILINE)
    written(tmp_path, "b.ladder", text.replace("[7]:[7]:", "[7]:[]:\n[8]:[]:"))
    capsys.readouterr()
    with pytest.raises(SystemExit, match="2"):
        main([*given, f"output={tmp_path / 'd.ladder'}", f"fixed={tmp_path / 'b.ladder'}"])
    assert "b.ladder:9: line 8 of the source has no counterpart" in capsys.readouterr().err
    assert not (tmp_path / "d.ladder").exists()
    rest = re.sub(r"\n\[7\]:\[7\]:.*\n", "\n", text)
    written(tmp_path, "b.ladder", rest)
    more = [f"fixed={tmp_path / 'b.ladder'}", f"uncorrected={tmp_path / 'a.ladder'}"]
    assert main([*given, f"output={tmp_path / 'd.ladder'}", *more]) == 0
    assert not re.search(r"^\[7\]:\[7\]", (tmp_path / "d.ladder").read_text("utf-8"), re.MULTILINE)
    with pytest.raises(SystemExit, match="2"):
        main([*given, f"output={tmp_path / 'b.ladder'}", *more])
    assert "would be overwritten" in capsys.readouterr().err


# Tables that people read.


def test_a_sheet_holds_each_line_and_is_easy_to_read(mini, tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    xswe.align(mini, EN, [*DE[:3], DE[4]], output=tmp_path / "a.xlsx")
    sheet = openpyxl.load_workbook(tmp_path / "a.xlsx").active
    rows = list(sheet.iter_rows(values_only=True))
    assert rows[0] == ("source", "target", "score", "status", "notes", "source_lines", "target_lines")
    assert rows[4] == (EN[3], None, None, None, None, "4", None)
    assert (sheet.freeze_panes, sheet.auto_filter.ref) == ("A2", "A1:G6")
    assert 20 < sheet.column_dimensions["A"].width <= 61
    kinds = {rule.type for area in sheet.conditional_formatting for rule in area.rules}
    assert kinds == {"colorScale", "containsBlanks"}
    assert sheet.data_validations.dataValidation[0].formula1 == '"right,wrong,open"'


def test_a_table_begins_with_a_mark_where_somebody_wants_one(mini, tmp_path):
    for bom in (False, True):
        xswe.align(mini, EN, DE, output=tmp_path / "a.csv", bom=bom)
        assert (tmp_path / "a.csv").read_bytes().startswith(b"\xef\xbb\xbf") == bom
        found = xswe.align(mini, EN, DE, fixed=tmp_path / "a.csv")
        assert (lines_of(found), found.changes) == (ONE_TO_ONE, "5 as they were")


def test_rows_taken_out_of_a_table_stay_out(mini, tmp_path, caplog):
    xswe.align(mini, EN, DE, output=tmp_path / "a.csv")
    rows = (tmp_path / "a.csv").read_text("utf-8").splitlines(keepends=True)
    after = written(tmp_path, "b.csv", "".join(row for row in rows if "cat" not in row and "rains" not in row))
    found = xswe.align(mini, EN, DE, fixed=after)
    assert [bead.source_lines for bead in found.pairs] == [(0,), (3,), (4,)]
    assert found.changes == "3 as they were, 4 lines taken out"
    found = xswe.align(mini, EN, DE, fixed=after, uncorrected=tmp_path / "a.csv")
    assert [bead.source_lines for bead in found.pairs] == [(0,), (3,), (4,)]
    assert not caplog.records
    xswe.align(mini, EN, DE, fixed=written(tmp_path, "c.csv", "".join(rows[:2])))
    assert "most lines are in none of its rows" in caplog.text
    part = "".join(f"{','.join(row.split(',')[:2])}\n" for row in rows[:2])
    assert lines_of(xswe.align(mini, EN, DE, fixed=written(tmp_path, "d.csv", part))) == ONE_TO_ONE


def test_statuses_of_a_table(mini, tmp_path):
    text = "Source;Target;Status;Notes\n"
    for line, status in enumerate(("right", "wrong", "open", "", "OK")):
        text += f"{EN[line]};{DE[line]};{status};{'why?' if line == 3 else ''}\n"
    found = xswe.align(mini, EN, DE, fixed=written(tmp_path, "a.csv", text), languages=("en-GB", "de-AT"))
    assert [bead[3:] for bead in found.pairs] == [
        ((0,), (0,), "right", ""),
        ((2,), (2,), "", ""),
        ((3,), (3,), "right", "why?"),
        ((4,), (4,), "right", ""),
    ]
    assert found.changes == "3 as they were, 1 rejected, 1 to be aligned anew"
    found.write(tmp_path / "a.tmx")
    assert '<tuv xml:lang="de-AT">' in (tmp_path / "a.tmx").read_text("utf-8")
    assert "<note>why?</note>" in (tmp_path / "a.tmx").read_text("utf-8")
    with pytest.raises(InputError, match=r"b.csv:3: there is no status 'perhaps'; write rejected, right, open"):
        xswe.align(mini, EN, DE, fixed=written(tmp_path, "b.csv", text.replace("wrong", "perhaps")))
    with pytest.raises(InputError, match=r"c.csv:1: its columns are a, b; name them source and target"):
        xswe.align(mini, EN, DE, fixed=written(tmp_path, "c.csv", "a,b\nx,y\n"))
    with pytest.raises(ConfigError, match=r"fixed=.*d.txt: corrections are read from .ladder, .jsonl, .csv"):
        xswe.align(mini, EN, DE, fixed=written(tmp_path, "d.txt", ""))


def test_a_text_that_was_typed_over_is_what_is_written(mini, tmp_path):
    how = {"languages": ("en", "de")}
    xswe.align(mini, EN, DE, output=tmp_path / "a.tmx", **how)
    text = (tmp_path / "a.tmx").read_text("utf-8").replace("eine Katze", "ein Kater").replace("Es regnet.", "Regen fällt.")
    found = xswe.align(mini, EN, DE, fixed=written(tmp_path, "b.tmx", text), output=tmp_path / "c.tmx", **how)
    assert lines_of(found) == ONE_TO_ONE
    assert [found[1].target, found[2].target] == ["Regen fällt.", "Auf dem Dach schläft ein Kater."]
    assert found.changes == "3 as they were, 2 typed over"
    assert "Regen fällt." in (tmp_path / "c.tmx").read_text("utf-8")


def test_lines_without_a_counterpart_are_written_where_somebody_wants_them(mini, tmp_path):
    german = [*DE[:3], DE[4]]
    found = xswe.align(mini, EN, german, languages=("en", "de"))
    for suffix in ("tsv", "tmx", "xliff", "csv", "xlsx", "html", "jsonl"):
        sizes = []
        for gaps in (False, True):
            found.write(tmp_path / f"a.{suffix}", gaps=gaps)
            sizes.append((tmp_path / f"a.{suffix}").stat().st_size)
        assert sizes[0] < sizes[1]
    found.write(tmp_path / "a.html")
    page = (tmp_path / "a.html").read_text("utf-8")
    assert f'<td lang="en">{EN[3]}</td><td lang="de"></td>' in page
    assert 'lang="de">Es regnet.</td>' in page


@pytest.mark.parametrize("suffix", ["csv", "parquet", "po", "tmx", "tsv", "xlf", "xlsx"])
def test_corrections_are_read_in_every_format_that_beads_are_written_in(mini, tmp_path, suffix):
    """Of a table or memory that was converted to another one, too."""
    written_first = xswe.align(mini, EN, DE, output=tmp_path / "a.tmx", languages=("en", "de"))
    beads = [bead for bead in lines_of(written_first) if all(bead)]
    rewrite_bitext([tmp_path / "a.tmx"], tmp_path / f"b.{suffix}", ("en", "de"))
    found = xswe.align(mini, EN, DE, fixed=tmp_path / f"b.{suffix}", languages=("en", "de"))
    assert [bead for bead in lines_of(found) if all(bead)] == beads
    assert found.fixed.tolist().count(True) == len(beads)
