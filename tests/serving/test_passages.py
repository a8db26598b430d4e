"""Passages of corpora by language, and which of them hold a unit, against what is written by hand."""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xswe.errors import ConfigError
from xswe.io.ragged import Bags
from xswe.serving.concordance import Postings
from xswe.serving.passages import Corpus, read_corpora

MEMORY = """<?xml version="1.0"?><tmx version="1.4"><header srclang="en"/><body>
<tu><tuv xml:lang="en"><seg>one</seg></tuv><tuv xml:lang="ja"><seg>一</seg></tuv></tu>
<tu><tuv xml:lang="de"><seg>zwei</seg></tuv><tuv xml:lang="ja"><seg>二</seg></tuv></tu></body></tmx>"""


def listed(passages):
    columns = passages.units.tolist(), passages.corpora.tolist(), passages.lines.tolist()
    return list(zip(passages.texts, *columns, strict=True))


def test_each_passage_knows_its_unit_its_corpus_and_its_line(tmp_path):
    (tmp_path / "a.en-de.tsv").write_text("a\tA\nI see\tIch sehe\nyes\tja\n", "utf-8")
    (tmp_path / "b.de.txt").write_text("x\n\nB\n", "utf-8")
    (tmp_path / "c.tmx").write_text(MEMORY, "utf-8")
    corpora = [Corpus.of(str(tmp_path / name)) for name in ("a.en-de.tsv", "b.de.txt", "c.tmx")]
    found = read_corpora(corpora, ["en", "de", "ja", "zh"])
    assert set(found) == {"en", "de", "ja"}
    assert listed(found["en"]) == [("a", 0, 0, 1), ("I see", 1, 0, 2), ("yes", 2, 0, 3), ("one", 6, 2, 1)]
    assert listed(found["de"])[:3] == [("A", 0, 0, 1), ("Ich sehe", 1, 0, 2), ("ja", 2, 0, 3)]
    assert listed(found["de"])[3:] == [("x", 3, 1, 1), ("B", 5, 1, 3), ("zwei", 7, 2, 2)]
    assert listed(found["ja"]) == [("一", 6, 2, 1), ("二", 7, 2, 2)]
    for code, rows in (("en", [0, 1, 2, None, None, None, 3, None, None]), ("ja", [None] * 6 + [0, 1, None])):
        assert [found[code].row_of(unit) for unit in range(9)] == rows
    assert set(read_corpora(corpora, ["ja"])) == {"ja"}
    with pytest.raises(ConfigError, match=r"corpora: no passages in zh in a\.en-de\.tsv, b\.de\.txt, c\.tmx"):
        read_corpora(corpora, ["zh"])
    assert read_corpora([], ["zh"]) == {}


def test_a_corpus_says_its_languages_by_its_name_or_is_told_them(tmp_path):
    with gzip.open(tmp_path / "news.en-de.tsv.gz", "wt") as stream:
        stream.write("a\tb\n")
    entry = {"path": str(tmp_path / "news.en-de.tsv.gz"), "name": "News", "languages": ["de", "ja"]}
    for asked, name, languages in (
        (str(tmp_path / "news.en-de.tsv.gz"), "news.en-de.tsv.gz", ("en", "de")),
        (entry, "News", ("de", "ja")),
        ({"path": "manual.ja.txt"}, "manual.ja.txt", ("ja",)),
        ("memory.en-de.tmx", "memory.en-de.tmx", ()),
    ):
        found = Corpus.of(asked)
        assert (found.name, found.languages) == (name, languages)
    assert Corpus.of(entry).entry == Path(entry["path"])  # what else it says is no setting of the file
    columns = {"path": "a.en-de.tsv", "columns": [0, 2]}
    assert Corpus.of(columns | {"name": "A"}).entry == columns
    for wrong, said in (
        ("news.tsv", r"news\.tsv does not say its languages"),
        ({"path": "a.tsv", "languages": ["en", "de", "ja"]}, r"a\.tsv does not say its languages"),
        ({"path": "a.tsv", "languages": ["en", "xx"]}, "unknown language 'xx'"),
        ({"languages": ["en", "de"]}, "names no file"),
    ):
        with pytest.raises(ConfigError, match=said):
            Corpus.of(wrong)


@given(st.lists(st.lists(st.integers(0, 5), max_size=6), max_size=7), st.data())
def test_the_passages_of_a_unit_are_those_that_hold_it(passages, data):
    offsets = np.cumsum([0, *map(len, passages)]).astype(np.int64)
    found = Postings.of(Bags(np.array([unit for own in passages for unit in own], np.int32), offsets), 6)
    for unit in range(6):
        rows = found.rows[found.bounds[unit] : found.bounds[unit + 1]].tolist()
        assert rows == [row for row, own in enumerate(passages) for _ in range(Counter(own)[unit])]
    asked = data.draw(st.lists(st.integers(0, 5), unique=True))
    weights = [2.0**k for k in range(len(asked))]
    summed = found.weigh(np.array(asked, np.int64), np.array(weights), len(passages))
    assert summed.tolist() == [sum(w for unit, w in zip(asked, weights, strict=True) if unit in own) for own in passages]
