"""Mined pairs in the formats of other programs, read back by these programs' libraries."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

from xswe.bitext.output import output_format
from xswe.bitext.source import find_pairs, read_pairs
from xswe.errors import ConfigError
from xswe.io.ragged import Texts
from xswe.mining.mined import MinedPairs
from xswe.mining.threshold import Threshold

SOURCE = ['A "quoted", cat <b>', "=SUM(A1)", "tab\there"]
TARGET = ["猫 & 犬", "http://example.org", "bell\x07 ü"]


@pytest.fixture(scope="module")
def mined():
    rows = np.arange(3)
    scores = np.array([1.5, 1.25, 1.0], np.float32)
    return MinedPairs(scores, rows, rows, Texts.of(SOURCE), Texts.of(TARGET), Threshold(1.0, "given"), ("en", "ja"))


@pytest.mark.parametrize("name", ["a.tmx", "a.tmx.gz", "a.xliff", "a.jsonl"])
def test_our_own_reader_reads_them_back(mined, tmp_path, name):
    mined.write(tmp_path / name)
    (file,) = find_pairs([tmp_path / name], ("en", "ja"))
    if name.endswith("jsonl"):
        (file,) = find_pairs([{"path": tmp_path / name, "fields": ["source", "target"]}], ("en", "ja"))
    found = list(read_pairs(file))
    assert [pair[0].replace("\t", " ") for pair in found] == [text.replace("\t", " ") for text in SOURCE]
    assert [pair[1].replace("\x07", " ") for pair in found] == [text.replace("\x07", " ") for text in TARGET]


@pytest.mark.parametrize("name", ["a.tmx", "a.xlf"])
def test_translation_tools_read_them(mined, tmp_path, name):
    factory = pytest.importorskip("translate.storage.factory")
    mined.write(tmp_path / name)
    units = [unit for unit in factory.getobject(str(tmp_path / name)).units if unit.source]
    assert [unit.source.replace("\t", " ") for unit in units] == [text.replace("\t", " ") for text in SOURCE]
    assert units[0].target == TARGET[0]


def test_scores_are_properties_of_tmx_units_before_their_variants(mined, tmp_path):
    etree = pytest.importorskip("lxml.etree")
    mined.write(tmp_path / "a.tmx")
    unit = etree.parse(str(tmp_path / "a.tmx")).getroot().find("body/tu")
    assert [child.tag for child in unit] == ["prop", "prop", "tuv", "tuv"]
    assert (unit[0].get("type"), unit[0].text) == ("x-score", "1.500000")


def test_sheets_hold_text_and_no_formulas(mined, tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    mined.write(tmp_path / "a.xlsx")
    rows = list(openpyxl.load_workbook(tmp_path / "a.xlsx").active.iter_rows(values_only=True))
    assert rows[0] == ("score", "source", "target", "source_id", "target_id", "rank")
    assert [row[1] for row in rows[1:]] == SOURCE
    assert rows[1][0] == 1.5


def test_tables_of_text(mined, tmp_path):
    for name in ("a.csv", "a.md", "a.tex", "a.jsonl"):
        mined.write(tmp_path / name)
    with open(tmp_path / "a.csv", encoding="utf-8", newline="") as stream:
        assert [row["source"] for row in csv.DictReader(stream)] == SOURCE
    assert "| 1.5000 |" in (tmp_path / "a.md").read_text(encoding="utf-8")
    assert r"猫 \& 犬" in (tmp_path / "a.tex").read_text(encoding="utf-8")
    assert json.loads((tmp_path / "a.jsonl").read_text(encoding="utf-8").splitlines()[0])["rank"] == 1


@pytest.mark.parametrize("name", ["a.html", "a.json", "a.tbx", "a.docx.gz"])
def test_a_name_that_promises_another_format_is_refused(name):
    with pytest.raises(ConfigError, match="pairs are not written as"):
        output_format("auto", name)


@pytest.mark.parametrize(("kind", "name"), [("bucc", "a.tsv.gz"), ("laser", "a.jsonl"), ("jsonl", "a.tmx")])
def test_a_format_under_the_name_of_another_is_refused(kind, name):
    with pytest.raises(ConfigError, match=f"format={kind}: .* is the name of"):
        output_format(kind, name, ("en", "ja"))


def test_memories_need_the_languages():
    assert output_format("auto", "a.tmx", ("en", "ja")) == "tmx"
    with pytest.raises(ConfigError, match=r"set languages, as in languages=\[en,ja\]"):
        output_format("auto", "a.tmx")
