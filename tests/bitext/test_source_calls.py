"""A bitext that the library opens is read by all that is known of it: the languages decide the order of its columns."""

from __future__ import annotations

import ast
from pathlib import Path

import xswe
from xswe.mining.gold import read_gold

# Without languages: what of a file is read, or why they are not known.
WITHOUT = {
    "alignment/dictionary.py": "words of a gold lexicon, in the order of the two lists",
    "bitext/texts.py": "all of a file's texts",
    "corpus/decontamination.py": "the texts of all columns",
    "mining/dedup.py": "one column, or lines",
}


def test_each_bitext_is_opened_with_its_languages():
    root, without = Path(xswe.__file__).parent, set[str]()
    for path in root.rglob("*.py"):
        text = path.read_text("utf-8")
        if path.name == "licences.py" or "licences import Source" in text:  # another class of that name
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Source":
                named = {one.arg for one in node.keywords}
                if len(node.args) < 3 and "languages" not in named:
                    without.add(path.relative_to(root).as_posix())
    assert without == {*WITHOUT}


def test_gold_pairs_stand_in_any_columns_with_the_names_of_their_languages(tmp_path):
    (tmp_path / "a.csv").write_text("id,de,en\n1,Katze,cat\n2,Hund,dog\n", encoding="utf-8")
    assert read_gold(tmp_path / "a.csv", ("en", "de")) == [("cat", "Katze"), ("dog", "Hund")]
