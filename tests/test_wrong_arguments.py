"""What is given wrongly is refused in one sentence that says what to give, by every public function alike."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import xswe
from tests.conftest import Later
from xswe.alignment.documents import pair_documents
from xswe.errors import XsweError

polars = Later("polars")
EN = ["A cat sleeps.", "We buy bread.", "The train is late."]
DE = ["Eine Katze schläft.", "Wir kaufen Brot.", "Der Zug hat Verspätung."]

# Each public function that takes a model, and texts: called with one of each.
CALLS = {
    "align": lambda model, texts: xswe.align(model, texts, DE),
    "align_words": lambda model, texts: xswe.align_words(model, texts, DE),
    "dedup": lambda model, texts: xswe.dedup(model, texts),
    "encode": lambda model, texts: model.encode(texts),
    "encode_stream": lambda model, texts: list(model.encode_stream(texts)),
    "find_phrases, passages": lambda model, texts: xswe.find_phrases(model, ["cat"], texts),
    "find_phrases, queries": lambda model, texts: xswe.find_phrases(model, texts, EN),
    "find_terms": lambda model, texts: xswe.find_terms(model, texts, DE),
    "index": lambda model, texts: xswe.index(model, texts),
    "mine": lambda model, texts: xswe.mine(model, texts, DE, threshold=None),
    "pair_documents": lambda model, texts: pair_documents(model, [texts], [DE]),
    "score": lambda model, texts: xswe.score(model, texts, DE),
    "search": lambda model, texts: xswe.index(model, EN).search(texts),
    "similarity": lambda model, texts: model.similarity(texts, DE),
}
OTHERS = {
    "align_files": lambda model: xswe.align_files(model, "a.txt", "b.txt", "c.tsv"),
    "lexicon": lambda model: xswe.lexicon(model, source=["cat"], target=["Katze"]),
    "link": lambda model: xswe.link(model, "a.tsv", "links.txt"),
    "score_file": lambda model: xswe.score_file(model, "a.tsv", "scored.tsv"),
    "search_file": lambda model: xswe.search_file(model, "a.txt", "cat"),
    "serve": lambda model: xswe.make_app(model),
    "search_phrases": lambda model: xswe.search_phrases(model, "cat", "a.txt", "hits.tsv"),
    "export": lambda model: xswe.export(model, "out"),
    "encode_file": lambda model: xswe.encode_file(model, "a.txt", "a.npy"),
    "evaluate": lambda model: xswe.evaluate(model, "a.tsv"),
    "filter": lambda model: xswe.filter(model, "a.tsv"),
    "mine_negatives": lambda model: xswe.mine_negatives(model, "a.tsv"),
}
# None for what is refused where iterating it begins; names of files are texts to some.
WRONG = {
    "a number": (5, "is of type int: give texts"),
    "nothing": (None, "is None: give texts"),
    "a mapping": ({"a": 1}, "is of type dict: give a list of its texts"),
    "bytes": (b"a cat", "is of type bytes: decode it first"),
    "numbers": ([1, 2, 3], r"\[0\] is int, not a str"),
    "bytes in a list": ([b"a", b"b", b"c"], r"\[0\] is bytes, not a str"),
    "vectors": (np.zeros(3), r"is an array of float64 \(3,\): give texts|vectors"),
    "a path": (Path("a.txt"), "is a Path, and texts are wanted"),
    "a data frame": (
        lambda: polars.DataFrame({"a": ["x"], "b": ["y"]}),
        "is a data frame of 'a', 'b': name the wanted columns",
    ),
}
_FILES = {"align", "dedup", "index", "mine"}  # which take files as well
_PARTS = {"pair_documents"}  # of documents


@pytest.fixture(scope="module")
def mini():
    return xswe.load("mini")


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("call", CALLS)
def test_what_is_no_texts_is_refused(mini, call, wrong):
    given, message = WRONG[wrong]
    if wrong == "a path" and call in _FILES:
        return
    with pytest.raises(
        (TypeError, XsweError), match=message if (call, wrong) != ("search", "vectors") else "queries are"
    ) as told:
        CALLS[call](mini, given() if callable(given) else given)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("call", CALLS)
def test_texts_of_other_libraries_are_accepted(mini, call):
    pandas, arrow = (pytest.importorskip(name) for name in ("pandas", "pyarrow"))
    """Those that encode take each; the others, which ask the same function, every third in turn."""
    expected = repr(CALLS[call](mini, EN))
    frame, first = {"text": EN, "number": [1, 2, 3]}, [*CALLS].index(call) % 3
    every = (
        *(np.array(EN), np.array(EN, object), tuple(EN), iter(EN), (text for text in EN)),
        *(pandas.Series(EN, index=[7, 8, 9]), pandas.DataFrame(frame), pandas.DataFrame({"a": EN})),
        *(polars.Series(EN), polars.DataFrame(frame), arrow.array(EN), arrow.chunked_array([EN]), arrow.table(frame)),
    )
    for given in every if call.startswith("encode") else every[first::3]:
        assert repr(CALLS[call](mini, given)) == expected


@pytest.mark.parametrize("call", ["filter", "mine_negatives"])
def test_pairs_of_other_libraries_are_accepted(mini, call):
    pandas, arrow = (pytest.importorskip(name) for name in ("pandas", "pyarrow"))
    verb, settings = {"filter": (xswe.filter, {}), "mine_negatives": (xswe.mine_negatives, {"negatives": 1})}[call]

    def made(pairs):
        return [repr(row) for row in verb(mini, pairs, **settings).records()]

    frame, only = {"source": EN, "number": [1, 2, 3], "target": DE}, {"a": EN, "b": DE}
    expected = made(list(zip(EN, DE, strict=True)))
    swapped = pandas.DataFrame({"target": DE, "source": EN})
    for given in (pandas.DataFrame(frame), polars.DataFrame(frame), arrow.table(frame), polars.DataFrame(only), swapped):
        assert made(given) == expected
    assert made(zip(EN, DE, strict=True)) == expected


# Functions that read files, and what each says takes texts; what is given them in the place of a name.
FILES = {
    "align_files": (lambda model, given: xswe.align_files(model, given, "b.txt", "c.tsv"), r"xswe\.align\(model, source"),
    "encode_file": (lambda model, given: xswe.encode_file(model, given, "a.npy"), r"model\.encode\(texts\)"),
    "evaluate": (lambda model, given: xswe.evaluate(model, given), "pairs are read from files"),
    "score_file": (lambda model, given: xswe.score_file(model, given, "a.tsv"), r"xswe\.score\(model, source, target\)"),
    "search_file": (lambda model, given: xswe.search_file(model, given, "cat"), r"xswe\.index\(model, texts\)\.search"),
    "search_phrases": (
        lambda model, given: xswe.search_phrases(model, "cat", given, "a.tsv"),
        r"xswe\.find_phrases\(model, queries, texts\)",
    ),
}


@pytest.mark.parametrize("call", FILES)
def test_functions_of_files_refuse_texts_and_say_what_takes_them(mini, call):
    pandas, arrow = (pytest.importorskip(name) for name in ("pandas", "pyarrow"))
    frame, (function, cure) = {"source": EN, "target": DE}, FILES[call]
    pairs = list(zip(EN, DE, strict=True))
    for given in (
        pandas.DataFrame(frame),
        polars.DataFrame(frame),
        arrow.table(frame),
        np.array(EN),
        pairs,
        EN,
        iter(EN),
        None,
    ):
        if given is None and call == "search_file":  # which then searches an index
            continue
        with pytest.raises((TypeError, XsweError), match=cure if given is not None else "is None: give"):
            function(mini, given)


def test_pairs_are_linked_as_those_of_a_file(mini, tmp_path):
    (tmp_path / "a.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in zip(EN, DE, strict=True)), "utf-8")
    xswe.link(mini, tmp_path / "a.tsv", tmp_path / "file.txt")
    for given in (list(zip(EN, DE, strict=True)), polars.DataFrame({"source": EN, "target": DE})):
        assert xswe.link(mini, given, tmp_path / "given.txt").pairs == 3
        assert (tmp_path / "given.txt").read_bytes() == (tmp_path / "file.txt").read_bytes()


@pytest.mark.parametrize("call", sorted({*CALLS, *OTHERS} - {"encode", "encode_stream", "search", "similarity"}))
def test_texts_in_the_place_of_the_model_are_told_from_it(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, line in (("a.txt", "a\n"), ("b.txt", "b\n"), ("a.tsv", "a\tb\n")):
        (tmp_path / name).write_text(line, "utf-8")
    for given, message in (
        (EN, "model is of type list: the first argument is what xswe.load returns"),
        (5, "model is of type int"),
    ):
        with pytest.raises(TypeError, match=message):
            CALLS[call](given, EN) if call in CALLS else OTHERS[call](given)


def test_a_name_in_the_place_of_the_model_is_to_be_loaded():
    with pytest.raises(TypeError, match=r"load it first, as in .*xswe\.load\('mini'\)"):
        xswe.align_words("mini", EN, DE)
    with pytest.raises(XsweError, match=r"minni: there is no such folder; did you mean mini\?"):
        xswe.load("minni")
    with pytest.raises(TypeError, match="model is None: give a folder, mini"):
        xswe.load(None)
    with pytest.raises(TypeError, match="models is of type StaticModel: give several"):
        xswe.compare(xswe.load("mini"), "a.tsv")
    with pytest.raises(TypeError, match="models has one of type StaticModel: give names or folders"):
        xswe.ensemble([xswe.load("mini"), "mini"])
    with pytest.raises(TypeError, match="tasks is None: give names of tasks"):
        xswe.evaluate("mini", None)
    with pytest.raises(TypeError, match="input is None: give pairs"):
        xswe.filter(xswe.load("mini"), None)
    with pytest.raises(TypeError, match="input is of type list: give running text"):
        xswe.split_text(EN, "en")


class _Shaped:
    def __init__(self, *shape):
        self.shape = shape

    def encode(self, texts):
        return np.full(
            [len(texts) if size is None else size for size in self.shape], np.nan if self.shape[-1] == 2 else 1.0
        )


@pytest.mark.parametrize(
    ("rerank", "message"),
    [
        (_Shaped(None), r"rerank: encode\(\) gave \(4,\) for 4 texts"),
        (_Shaped(9, 4), r"rerank: encode\(\) gave \(9, 4\) for 4 texts; it must return one vector a text"),
        (_Shaped(None, 2), r"rerank: encode\(\): vector 0 \(from 0\) holds NaN"),
        ("mini", "rerank is of type str: give an encoder"),
        (5, "rerank is of type int: give an encoder"),
    ],
)
def test_a_reranker_of_another_shape_is_refused(mini, rerank, message):
    with pytest.raises((TypeError, XsweError), match=message):
        xswe.index(mini, EN).search("cat", k=2, rerank=rerank)


def test_vectors_that_are_no_numbers_are_refused(mini):
    damaged = np.full((2, mini.dim), np.nan, np.float32)
    with pytest.raises(XsweError, match=r"queries: vector 0 \(from 0\) holds NaN or is infinite"):
        xswe.index(mini, EN).search(damaged)
    with pytest.raises(XsweError, match=r"vector 0 \(from 0\) holds NaN or is infinite"):
        xswe.mine(None, damaged, damaged, threshold=None)
    with pytest.raises(TypeError, match=r"model is an array: vectors are mined without one, as in xswe\.mine\(None"):
        xswe.mine(mini.encode(EN), mini.encode(DE))
