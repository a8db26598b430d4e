"""All results index, slice, iterate, print, convert and write alike."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import xswe
from tests.cli.verbs import commands, returned
from xswe.alignment.documents import align_files, pair_documents
from xswe.alignment.phrase_table import phrase_table
from xswe.alignment.term_check import check_terms
from xswe.alignment.terms import bilingual_terms
from xswe.evaluation.metrics import Bootstrap, Row
from xswe.io.results import Result, Rows
from xswe.training.sweep import Sweep, SweepPoint
from xswe.work.status import StageStatus

EN = ["The train is late.", "A cat sleeps on the roof.", "We buy bread.", "It is raining."]
DE = ["Der Zug hat Verspätung.", "Eine Katze schläft auf dem Dach.", "Wir kaufen Brot.", "Es regnet."]
PAIRS = list(zip(EN, DE, strict=True))


@pytest.fixture(scope="module")
def mini():
    return xswe.load("mini")


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    path = tmp_path_factory.mktemp("own") / "own.tsv"
    path.write_text("".join(f"{a}\t{b}\n" for a, b in PAIRS), "utf-8")
    return str(path)


def _stage(name: str) -> StageStatus:
    return StageStatus(name, 3, 1, 1, {2: "no space"}, 10, 0.5)


def _trained(folder):
    few = {"max_steps": 5, "batch_size": 32}
    return xswe.train("sample", ["en", "de"], recipe="static", refine=few, corpus={"limit": 400}, threads=1)


def _swept(folder):
    """Runs that were measured already."""
    rows = (Row("held-out", "en-de", "f1", 0.75, 4, items=np.array([1.0, 1.0, 0.0, 1.0])),)
    points = (SweepPoint({"pca.dim": dim}, (0,), (rows,), (folder / f"{dim}",)) for dim in (64, 128))
    return Sweep(("pca.dim",), tuple(points), Bootstrap(20))


def _documents(mini, folder):
    for name, texts in (("en", EN), ("de", DE)):
        (folder / name).mkdir()
        for document in ("a", "b", "c"):
            (folder / name / f"{document}.txt").write_text("".join(f"{text}\n" for text in texts), "utf-8")
    return align_files(mini, folder / "en", folder / "de", folder / "out")


# How one of each is made: of the model mini, a bitext to measure on, and an empty folder. Any other is what a verb returns.
MAKERS = {
    "AlignedDocuments": lambda mini, file, folder: _documents(mini, folder),
    "AlignedTexts": lambda mini, file, folder: xswe.align(mini, EN, DE),
    "BilingualTerms": lambda mini, file, folder: bilingual_terms(
        xswe.align_words(mini, EN * 3, DE * 3), ["en", "de"], min_score=0.0
    ),
    "Comparison": lambda mini, file, folder: xswe.compare(
        [mini, {"path": "mini", "name": "other"}], file, seconds=0, threads=1
    ),
    "Deduplicated": lambda mini, file, folder: xswe.dedup(mini, [*EN, EN[0]]),
    "Filtered": lambda mini, file, folder: xswe.filter(mini, [*PAIRS, PAIRS[0]], threshold=None),
    "DocumentPairs": lambda mini, file, folder: pair_documents(mini, [EN[:2], EN[2:]], [DE[2:], DE[:2]]),
    "FoundPhrases": lambda mini, file, folder: xswe.find_phrases(mini, ["late train", "cat"], DE, k=2),
    "FoundTerms": lambda mini, file, folder: xswe.find_terms(mini, ["train", "cat"], DE, min_score=0.0),
    "HardNegatives": lambda mini, file, folder: xswe.mine_negatives(mini, PAIRS, negatives=2, relative_margin=0.0),
    "Hits": lambda mini, file, folder: xswe.index(mini, EN).search("Zug", k=3),
    "MinedPairs": lambda mini, file, folder: xswe.mine(mini, EN, DE, threshold=None),
    "Neighbours": lambda mini, file, folder: mini.neighbours("car", k=3),
    "PhraseTable": lambda mini, file, folder: phrase_table(xswe.align_words(mini, EN, DE)),
    "Rows": lambda mini, file, folder: Rows(("a", "b"), [(1, "x"), (2, "y"), (3, "z")]),
    "Scores": lambda mini, file, folder: xswe.evaluate(mini, file, threads=1),
    "SplitText": lambda mini, file, folder: xswe.split_text("One. Two. Three.", "en"),
    "Sweep": lambda mini, file, folder: _swept(folder),
    "TermCheck": lambda mini, file, folder: check_terms(
        xswe.align_words(mini, EN, DE),
        [xswe.types.AgreedTerm("train", "Fahrt"), xswe.types.AgreedTerm("cat", "Hund")],
        ("en", "de"),
    ),
    "TrainResult": lambda mini, file, folder: _trained(folder),
    "WordLinks": lambda mini, file, folder: xswe.align_words(mini, EN, DE),
    "WorkStatus": lambda mini, file, folder: xswe.types.WorkStatus("out", (_stage("a"), _stage("b"), _stage("c"))),
}


def _kinds(base: type) -> set[str]:
    own = {one for one in base.__subclasses__() if one.__module__.startswith("xswe.")}
    return {one.__name__ for one in own}.union(*map(_kinds, own))


def test_what_a_verb_returns_is_a_sequence_that_prints_converts_and_writes(tmp_path):
    for name in dir(xswe.types):
        getattr(xswe.types, name)
    others = _kinds(Result) - MAKERS.keys()
    assert others <= commands().keys(), "which no verb returns: MAKERS of tests/test_result_types.py must make them"
    for kind in others:
        (folder := tmp_path / kind).mkdir()
        check(returned(kind, folder), kind, folder)


@pytest.mark.parametrize("kind", sorted(MAKERS))
def test_a_result_is_a_sequence_that_prints_converts_and_writes(kind, mini, measured, tmp_path):
    for library in {"Sweep": ["torch"], "TrainResult": ["torch"]}.get(kind, []):
        pytest.importorskip(library)
    result = MAKERS[kind](mini, measured, tmp_path)
    check(result, kind, tmp_path)


def check(result: Result, kind: str, folder: Path) -> None:
    assert isinstance(result, Sequence)
    assert type(result).__name__ == kind
    entries = list(result)
    assert len(result) == len(entries) >= 2
    assert _said(result[0]) == _said(entries[0])
    assert _said(result[-1]) == _said(entries[-1])
    assert isinstance(result[:2], tuple)
    assert _said(result[:2]) == _said(tuple(entries[:2]))
    assert _said(result[::-1]) == _said(tuple(entries[::-1]))
    assert _said(list(reversed(result))) == _said(entries[::-1])
    for place in (len(entries), -len(entries) - 1):
        with pytest.raises(IndexError):
            result[place]
    assert "object at" not in f"{result!r}{result}"
    assert not hasattr(type(result).__repr__, "__wrapped__"), "that of a dataclass, which shows all of its content"
    assert "<" in result._repr_html_()
    rows = list(map(tuple, result.records()))
    assert all(len(row) == len(result.columns()) for row in rows)
    result.write(folder / "result.jsonl")
    assert [json.loads(line) for line in (folder / "result.jsonl").read_text("utf-8").splitlines()]
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    frame = result.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert (len(frame), tuple(frame.columns)) == (len(rows), result.columns())
    assert isinstance(other := result.to_polars(), polars.DataFrame)
    assert other.shape == frame.shape


def _said(entry: object) -> str:
    with np.printoptions(threshold=100_000):
        return repr(entry)
