"""What the checks of arguments let through, and what they refuse."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from xswe.errors import ConfigError
from xswe.io.arguments import (
    check_encoded,
    check_finite,
    check_model,
    check_reranker,
    file_name,
    file_names,
    is_texts,
    lines_of,
    no_text,
    pairs_or_names,
    several,
    texts_of,
)

ENCODER = SimpleNamespace(encode=len)


def frame(**columns):
    return type("Frame", (), {"columns": list(columns), "__getitem__": lambda self, name: columns[name]})()


def test_pairs_or_names_of_files():
    assert pairs_or_names("a.tsv") == ([], ["a.tsv"])
    assert pairs_or_names([Path("a"), "b"]) == ([], ["a", "b"])
    assert pairs_or_names([(" a", ""), ["b", "c\n"]]) == ([("a", ""), ("b", "c")], [])
    assert pairs_or_names(frame(target=["x", "y"], source=["a", "b"], more=[1, 2]))[0] == [("a", "x"), ("b", "y")]
    assert pairs_or_names([]) == ([], [])
    for wrong in ([("a", "b"), "c.tsv"], [("a", "b", "c")], [("a", "b"), ("c",)]):
        with pytest.raises(ConfigError, match="each of two texts, or names of files"):
            pairs_or_names(wrong)
    for wrong, said in (([("a", "b"), ("c", None)], r"pair 1 is \('c', None\)"), ([(1, "b")], r"pair 0 is \(1, 'b'\)")):
        with pytest.raises(ConfigError, match=said):
            pairs_or_names(wrong)


def test_several_texts():
    for given in (["a"], ("a", "b"), []):
        assert several(given, "x") is given
    assert several(iter("ab"), "x") == ["a", "b"]
    assert several(np.array(["a", "b"]), "x") == ["a", "b"]
    assert several({"a"}, "x") == ["a"]
    assert several(range(3), "x") == range(3)
    assert several(SimpleNamespace(to_pylist=lambda: ["a"]), "x") == ["a"]
    assert several(frame(text=["a"], more=["b"]), "x") == ["a"]
    assert several(frame(other=["a"]), "x") == ["a"]
    with pytest.raises(TypeError, match="x is a data frame of 'a', 'b': name the wanted columns text, or drop all others"):
        several(frame(a=["a"], b=["b"]), "x")
    for wrong, said in (
        ("text", r"one str, not several texts: give \[text\]"),
        (Path("a"), "is a Path"),
        (b"text", "decode it first"),
        (bytearray(b"text"), "decode it first"),
        ({"a": "b"}, "a list of its texts"),
        (np.zeros(3), r"an array of float64 \(3,\)"),
        (np.array([["a"]]), r"an array of <U1 \(1, 1\)"),
        (None, "x is None: give texts"),
        (7, "x is of type int"),
    ):
        with pytest.raises(TypeError, match=said):
            several(wrong, "x")


def test_the_first_that_is_no_text_is_named():
    assert no_text(["a", ""]) is None
    assert str(no_text(["a", None, 3], 5, "lines")) == "lines[6] is NoneType, not a str; leave it out, or give '' for it"
    assert texts_of(("a",), "x") == ("a",)
    with pytest.raises(TypeError, match=r"x\[1\] is int"):
        texts_of(["a", 1], "x")
    assert lines_of("a.txt", "x") == "a.txt"
    assert lines_of(["a"], "x") == ["a"]
    assert [is_texts(given) for given in (np.array(["a"]), np.array([1.0]), ["a"], np.array(["a"], object))] == [
        True,
        False,
        False,
        True,
    ]


def test_names_of_files(tmp_path):
    assert file_name(Path("a"), "x", "instead") == "a"
    assert file_names("a b", "x", "instead") == ["a b"]
    assert file_names([Path("a"), "b"], "x", "instead") == file_names(iter(["a", "b"]), "x", "instead") == ["a", "b"]
    (tmp_path / "a b.txt").touch()
    for named in (str(tmp_path / "a b.txt"), "s3://a/b c.txt", "a b*.txt"):
        assert file_names([named], "x", "instead") == [named]
    for wrong in (["The cat sleeps."], ["a", 1], None, {"a"}):
        with pytest.raises(TypeError, match=r"x (is|has) .*instead"):
            file_names(wrong, "x", "instead")
    with pytest.raises(TypeError, match="x is of type list: give the name of a file; instead"):
        file_name(["a"], "x", "instead")


def test_models_and_rerankers():
    check_model(ENCODER, "call(model)")
    check_model(SimpleNamespace(queries=1), "call(model)")
    for wrong, said in (
        ("mini", "is the name 'mini': load it first"),
        (Path("a"), "load it first"),
        (None, "model is None"),
    ):
        with pytest.raises(TypeError, match=said):
            check_model(wrong, "call(model)")
    for given, named in ((None, False), (ENCODER, False), (ENCODER, True), ("mini", True), (Path("a"), True), (None, True)):
        check_reranker(given, named)
    for wrong, named in (("mini", False), (Path("a"), False), (7, False), (7, True)):
        with pytest.raises(TypeError, match="rerank is of type"):
            check_reranker(wrong, named)


def test_vectors_of_a_reranker():
    vectors = np.ones((3, 2), np.float32)
    assert check_encoded(vectors, 3) is vectors
    for wrong, texts in ((vectors, 2), (vectors[:, 0], 3), (vectors[None], 1)):
        with pytest.raises(ConfigError, match=f"for {texts} texts"):
            check_encoded(wrong, texts)
    for bad in (np.nan, np.inf):
        vectors[1, 1] = bad
        with pytest.raises(ConfigError, match=r"name: vector 5 \(from 0\)"):
            check_finite(vectors, "name", 4)
        with pytest.raises(ConfigError, match="vector 1 "):
            check_encoded(vectors, 3)
