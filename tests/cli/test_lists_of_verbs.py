"""Lists of verbs and executors that are written by hand, on pages and in tests: each has all that the tables have."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.bitext.test_pipes import VERBS as PIPED
from tests.cli.test_bars import COMMANDS
from xswe.cli.help import settings
from xswe.cli.verbs import VERBS
from xswe.work.config import HOSTS

ROOT = Path(__file__).parents[2]
CLUSTER, LINE, INSTALL = "docs/how-to/several-machines.md", "docs/reference/command-line.md", "docs/how-to/install.md"
SETTINGS = {verb: {setting.name for setting in settings(verb)} for verb in VERBS}
SHARED = {verb for verb in VERBS if "execution" in SETTINGS[verb]}


def in_column(page: str, head: str, column: int = 0) -> set[str]:
    """The verbs in a column of the table with a head, of all its rows."""
    table = re.search(rf"^{re.escape(head)}\n\|[-:| ]+\|\n((?:\|.*\n)+)", (ROOT / page).read_text("utf-8"), re.MULTILINE)
    assert table, f"{page} has no table {head}"
    cells = [row.replace("\\|", "/").split("|")[column + 1] for row in table[1].splitlines()]
    return {word for cell in cells for word in re.findall(r"`([a-z]+)\b[^`]*`", cell)} & VERBS.keys()


# What a page lists, and the verbs that need not be there, each with a reason.
LISTS = {
    "in shards": (CLUSTER, in_column(CLUSTER, "| verb | in shards | in one process |"), SHARED),
    "where inputs may be": (CLUSTER, in_column(CLUSTER, "| files | where they may be |"), SHARED),
    "what stays": (CLUSTER, in_column(CLUSTER, "| verb | what stays |"), SHARED - {"train"}),  # whose folder is its output
    "what is kept": (
        LINE,
        in_column(LINE, "| verb | keeps |") | in_column(LINE, "| verb | keeps |", 1),
        VERBS.keys() - {"status", "serve"},  # which write nothing
    ),
    "extras": (INSTALL, in_column(INSTALL, "| extra | for |", 1), VERBS.keys()),
}


@pytest.mark.parametrize("name", LISTS)
def test_a_page_lists_all_verbs_and_no_other(name):
    page, there, wanted = LISTS[name]
    assert there == wanted, f"{page}, {name}"


@pytest.mark.parametrize("kind", HOSTS)
def test_every_executor_has_a_section_of_the_page(kind):
    """It names it before the first command and, if it is a cluster, says what to install."""
    sections = re.split(r"\n## ", (ROOT / CLUSTER).read_text("utf-8"))
    begins = [section.partition("```")[0] for section in sections]
    (own,) = (section for section in begins if f"`execution={kind}`" in section)
    assert "pip install 'xswe[" in own or not HOSTS[kind].has_workers


def test_a_verb_has_bars_or_is_named_here_as_one_without():
    without = {"ensemble", "export", "lexicon", "report", "serve", "split", "status"}
    assert {name.partition(" ")[0] for name in COMMANDS} == VERBS.keys() - without


def test_a_verb_that_reads_texts_is_tried_with_pipes():
    reads = {verb for verb in VERBS if SETTINGS[verb] & {"input", "source", "corpus.paths"} and "output" in SETTINGS[verb]}
    assert {*PIPED} == reads - {"train", "import"}  # the corpus is read as by corpus; vectors
