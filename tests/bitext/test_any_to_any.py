"""One format of bitext into any other: texts, locales, ids, notes, scores and statuses stay."""

from __future__ import annotations

import polib
import pytest
from lxml import etree

from xswe.bitext.convert import read_units, rewrite_bitext
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
