"""One table names the suffixes of all formats: every other table agrees with it, and no prose lists them, or languages."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from xswe.alignment import corrections, formats, rows, words
from xswe.bitext import formats as bitext
from xswe.bitext import output
from xswe.corpus.decontamination import _SUFFIXES as DEVELOPMENT
from xswe.errors import ConfigError
from xswe.io import results
from xswe.io.files import check_folder
from xswe.io.suffixes import SUFFIXES, TABLES
from xswe.model import vector_files
from xswe.text.languages import LANGUAGES
from xswe.text.readers import READERS

ROOT = Path(__file__).parents[1]
READ_OR_WRITTEN = {
    "documents": READERS,
    "bitext": bitext.BY_SUFFIX,
    "pairs": output.WRITTEN,
    "beads": formats._OWN.values(),
    "corrections": corrections.SUFFIXES,
    "rows": rows.SUFFIXES,
    "links": (*words._TABLES, *words._PAGES),
    "tables": {*results._TEXT_WRITERS, *results.BINARY},
    "vectors": vector_files.SUFFIXES,
}
_NAME = r"`{0,2}(\.[a-z][a-z0-9]*)`{0,2}"
_LIST = re.compile(rf"{_NAME}(?: \([^)]*\))?(?:(?:, (?:and |or )?| and | or | ){_NAME}(?: \([^)]*\))?){{3,}}(?!, …)")
_LANGUAGE = rf"`{{0,2}}\b(?:{'|'.join((*LANGUAGES, *(one.name for one in LANGUAGES.values())))})\b`{{0,2}}"
_LANGUAGES = re.compile(rf"{_LANGUAGE}, {_LANGUAGE}, {_LANGUAGE},?(?: and| or)? {_LANGUAGE}|\b(?:all|the) four languages")
# What they say of the languages of the models in the package stays true if one is added to the table.
_OF_MODELS = ("README.md", "docs/models.md", "docs/explanation/method.md", "docs/papers.md")
_GENERATED = ROOT / "docs" / "reference" / "files.md"


def prose() -> Iterator[tuple[Path, str]]:
    """Yield the pages, and the docstrings of the library, as lines of their own."""
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        if page != _GENERATED:
            yield page, page.read_text("utf-8")
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for file in sorted((ROOT / "xswe").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, documented) and (text := ast.get_docstring(node)):
                yield file, " ".join(text.split())


@pytest.mark.parametrize("what", READ_OR_WRITTEN)
def test_every_format_has_its_line_in_the_table(what):
    missing = {*READ_OR_WRITTEN[what]} - {suffix for suffix, one in SUFFIXES.items() if one.is_ours}
    assert not missing, f"add {missing} to xswe/io/suffixes.py"


@pytest.mark.parametrize("suffix", sorted(SUFFIXES))
def test_a_format_is_written_or_refused_by_every_output(suffix):
    """Otherwise a file would have another content than its name promises."""
    if suffix not in (*output.WRITTEN, ".txt"):
        with pytest.raises(ConfigError, match=rf"pairs are not written as \{suffix}; use \.\w"):
            output.output_format("auto", f"a{suffix}")
    if suffix not in (*words._TABLES, *words._PAGES, ".jsonl", ".txt"):
        with pytest.raises(ConfigError, match=rf"links are not written as \{suffix}; use \.txt"):
            words.check_links(f"a{suffix}")
    if suffix not in TABLES:
        with pytest.raises(ConfigError, match=r"the suffix says the format: use \.\w"):
            results.check_suffix(f"a{suffix}")
    if SUFFIXES[suffix].is_ours:
        with pytest.raises(ConfigError, match=f"leave {suffix} out"):
            check_folder(f"a{suffix}")


def test_development_files_may_be_named_after_every_language():
    assert {f".{code}" for code in LANGUAGES} <= {*DEVELOPMENT}


def test_no_prose_lists_formats():
    """A list would be forgotten: docstrings say ``any table``, to which the help adds its suffixes; pages say ``…``."""
    listed = [
        f"{file.relative_to(ROOT)}: {found[0]}"
        for file, text in prose()
        for found in _LIST.finditer(text)
        if len({*re.findall(r"\.[a-z][a-z0-9]*", found[0])} & {*SUFFIXES}) >= 4
    ]
    assert not listed, "name two and end with …, or say any table, any pairs or any bitext (tools/verb_settings.py)"


def test_no_prose_lists_languages():
    """A list would be out of date with another one: docstrings say ``any known language``, to which the help adds codes."""
    listed = [
        f"{file.relative_to(ROOT)}: {found[0]}"
        for file, text in prose()
        if file not in map(ROOT.joinpath, _OF_MODELS)
        for found in _LANGUAGES.finditer(" ".join(text.split()))
    ]
    assert not listed, "say any known language (tools/verb_settings.py), or which model's languages"
