"""One format of bitext into any other: texts, locales, ids, notes, scores and statuses stay."""

from __future__ import annotations

from dataclasses import replace

import polib
import pytest
from lxml import etree

from xswe.bitext.convert import _note_properties, read_units, rewrite_bitext
from xswe.bitext.memories import Unit
from xswe.bitext.source import Source
from xswe.corpus.bitext import CorpusConfig
from xswe.corpus.prepare import prepare_corpus
from xswe.errors import ConfigError
from xswe.io.lines import Skipped

SUFFIXES = (".csv", ".jsonl", ".parquet", ".po", ".tmx", ".xlf", ".xlsx")
TMX = """<?xml version="1.0"?><tmx version="1.4"><header srclang="en-GB"/><body>
<tu tuid="a1"><note>look at this</note><prop type="x-score">0.500000</prop><prop type="x-status">right</prop>
<tuv xml:lang="en-GB"><seg>A "cat" &amp; a dog.</seg></tuv><tuv xml:lang="zh-Hant"><seg>一隻貓和一隻狗。</seg></tuv></tu>
<tu tuid="a2"><tuv xml:lang="zh-Hant"><seg>雨</seg></tuv><tuv xml:lang="en-GB"><seg>A back\\slash</seg></tuv></tu>
<tu tuid="a3"><prop type="x-score">-0.250000</prop>
<tuv xml:lang="en-GB"><seg>Alone</seg></tuv><tuv xml:lang="zh-Hant"><seg></seg></tuv></tu>
</body></tmx>"""


@pytest.fixture
def memory(tmp_path):
    path = tmp_path / "given.tmx"
    path.write_text(TMX, encoding="utf-8")
    return path


def units(path):
    """What a file holds, by way of JSON lines."""
    output = path.with_name(f"{path.name}-units.jsonl")
    found = rewrite_bitext([path], output, ("en", "zh"))
    return found.languages, output.read_text("utf-8")


@pytest.mark.parametrize("second", SUFFIXES)
@pytest.mark.parametrize("first", SUFFIXES)
def test_there_and_back_loses_nothing(tmp_path, memory, first, second):
    languages, wanted = units(memory)
    assert languages == ("en-GB", "zh-Hant")
    assert '"id": "a1", "notes": "look at this", "score": 0.5, "status": "right"' in wanted
    one, other = tmp_path / f"one{first}", tmp_path / f"other{second}"
    assert rewrite_bitext([memory], one, ("en", "zh")).pairs == 3
    rewrite_bitext([one], other, ("en", "zh"))
    assert units(other) == (languages, wanted)


def test_what_a_format_has_no_place_for_is_counted(tmp_path, memory):
    found = rewrite_bitext([memory], tmp_path / "a.tsv", ("en", "zh"))
    assert found.left_out == {"ids": 3, "notes": 1, "scores": 2, "statuses": 1}
    assert "left out: 3 ids, 1 notes, 2 scores, 1 statuses" in str(found)
    assert (tmp_path / "a.tsv").read_text("utf-8").splitlines()[1] == "A back\\slash\t雨"


def test_each_format_holds_all_in_its_own_way(tmp_path, memory):
    def made(suffix):
        rewrite_bitext([memory], tmp_path / f"b{suffix}", ("en", "zh"))
        return (tmp_path / f"b{suffix}").read_text("utf-8").splitlines()

    assert made(".jsonl") == [
        '{"en-GB": "A \\"cat\\" & a dog.", "zh-Hant": "一隻貓和一隻狗。", "id": "a1", "notes": "look at this", '
        '"score": 0.5, "status": "right"}',
        '{"en-GB": "A back\\\\slash", "zh-Hant": "雨", "id": "a2"}',
        '{"en-GB": "Alone", "zh-Hant": "", "id": "a3", "score": -0.25}',
    ]
    assert made(".csv") == [
        "en-GB,zh-Hant,id,notes,score,status,lines",
        '"A ""cat"" & a dog.",一隻貓和一隻狗。,a1,look at this,0.5,right,',
        "A back\\slash,雨,a2,,,,",
        "Alone,,a3,,-0.25,,",
    ]
    found = rewrite_bitext([memory] * 2, tmp_path / "b.tsv", ("zh", "en"))
    assert (found.pairs, found.languages) == (6, ("zh-Hant", "en-GB"))
    for suffix in (".json", ".md", ".tex"):
        with pytest.raises(ConfigError):
            rewrite_bitext([memory], tmp_path / f"b{suffix}", ("en", "zh"))


def test_lines_are_converted_with_their_scores_and_without_damaged_ones(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("\ufeff0.5\tcat\tKatze\nx\tdog\tHund\ncow\n-1\ta\tb\n", "utf-8")
    source = Source((str(path),), (1, 2), ("en", "de"), "skip", score=0)
    left_out = Skipped()
    assert list(read_units(source, left_out)) == [
        Unit(0.5, "cat", "Katze", ""),
        Unit(None, "dog", "Hund", ""),
        None,
        Unit(-1.0, "a", "b", ""),
    ]
    assert left_out.counts == {"too few columns": 1}
    assert [unit.score for unit in read_units(replace(source, score=None), Skipped()) if unit] == [None] * 3
    found = rewrite_bitext([path], tmp_path / "b.csv", ("en", "de"), columns=(1, 2), on_error="skip")
    assert (found.pairs, found.left_out) == (3, {"too few columns": 1})
    path.write_text("a\tb\tc\n", "utf-8")
    rewrite_bitext([path], tmp_path / "b.csv", ("en", "de"))
    assert (tmp_path / "b.csv").read_text("utf-8") == "en,de,id,notes,score,status,lines\na,b,,,,,\n"


def test_a_note_may_hold_the_score_and_status_that_were_written():
    for first, expected in (
        ("score 0.500000", {"score": "0.500000", "status": ""}),
        ("score -1.000000, right", {"score": "-1.000000", "status": "right"}),
        ("score 0.5 points", None),
    ):
        rest = ["more", "and more"]
        notes = "\n".join(rest if expected else [first, *rest])
        assert _note_properties(("id", [first, *rest])) == ("id", notes, expected or {})
    assert _note_properties(("id", [])) == ("id", "", {})


def test_catalogues_and_memories_are_what_their_tools_read(tmp_path, memory):
    rewrite_bitext([memory], tmp_path / "a.po", ("en", "zh"), date="2026-01-31")
    catalogue = polib.pofile(str(tmp_path / "a.po"))
    assert catalogue.metadata["Language"] == "zh-Hant"
    assert [entry.msgctxt for entry in catalogue] == ["a1", "a2", "a3"]
    assert catalogue[0].msgid == 'A "cat" & a dog.'
    rewrite_bitext([memory], tmp_path / "a.xlf", ("zh", "en"))
    root = etree.parse(str(tmp_path / "a.xlf")).getroot()
    (file,) = root.iterfind("{*}file")
    assert (file.get("source-language"), file.get("target-language")) == ("zh-Hant", "en-GB")


def test_the_verb_converts_files_to_a_file(tmp_path, memory):
    config = CorpusConfig(paths=(str(memory),))
    made = prepare_corpus(("en", "zh"), tmp_path / "a.xlsx", corpus=config)
    assert str(made) == f"3 pairs (en-GB-zh-Hant): {tmp_path / 'a.xlsx'}"
    with pytest.raises(ConfigError, match=r"name them, as in corpus\.paths"):
        prepare_corpus(("en", "zh"), tmp_path / "b.csv", corpus=CorpusConfig())


def test_notes_of_a_unit_are_those_of_all_its_segments(tmp_path):
    pairs = (("x", "y"), ("v", "w"))
    segments = "".join(f"<segment><source>{a}</source><target>{b}</target></segment>" for a, b in pairs)
    unit = f'<unit id="u1"><notes><note>look at this</note></notes>{segments}</unit>'
    (tmp_path / "a.xlf").write_text(
        f'<xliff version="2.0" srcLang="en" trgLang="de"><file id="f">{unit}</file></xliff>', encoding="utf-8"
    )
    read = list(read_units(Source((str(tmp_path / "a.xlf"),), languages=("en", "de")), Skipped()))
    assert [(one.source, one.notes) for one in read] == [("x", "look at this"), ("v", "look at this")]


def test_a_conversion_says_why_units_are_left_out(tmp_path):
    (tmp_path / "a.po").write_text(
        'msgid "cat"\nmsgstr "Katze"\n\n#, fuzzy\nmsgid "dog"\nmsgstr "Hand"\n', encoding="utf-8"
    )
    found = rewrite_bitext([tmp_path / "a.po"], tmp_path / "a.tsv", ("en", "de"))
    assert (found.pairs, found.left_out) == (1, {"fuzzy or obsolete": 1})
