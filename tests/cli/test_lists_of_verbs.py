"""Lists of verbs and executors that are written by hand, on pages: each has all that the tables have."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from xswe.bitext.output import WRITTEN
from xswe.cli.help import settings
from xswe.cli.verbs import VERBS
from xswe.io.suffixes import TABLES
from xswe.work.config import HOSTS

ROOT = Path(__file__).parents[2]
CLUSTER, LINE, KEEPS = "docs/how-to/several-machines.md", "docs/reference/command-line.md", "| verb | keeps |"
SETTINGS = {verb: {setting.name for setting in settings(verb)} for verb in VERBS}
SHARED = {verb for verb in VERBS if "execution" in SETTINGS[verb]}


def in_column(page: str, head: str) -> set[str]:
    """The verbs in the first column of the table with a head, of all its rows."""
    table = re.search(rf"^{re.escape(head)}\n\|[-:| ]+\|\n((?:\|.*\n)+)", (ROOT / page).read_text("utf-8"), re.MULTILINE)
    assert table, f"{page} has no table {head}"
    cells = [row.replace("\\|", "/").split("|")[1] for row in table[1].splitlines()]
    return {word for cell in cells for word in re.findall(r"`([a-z]+)\b[^`]*`", cell)} & VERBS.keys()


# What a page lists, and the verbs that need not be there, each with a reason.
LISTS = {
    "in shards": (CLUSTER, in_column(CLUSTER, "| verb | in shards | in one process |"), SHARED),
    "where inputs may be": (CLUSTER, in_column(CLUSTER, "| files | where they may be |"), SHARED),
    "what stays": (CLUSTER, in_column(CLUSTER, "| verb | what stays |"), SHARED - {"train"}),  # whose folder is its output
    "what is kept": (LINE, SHARED & in_column(LINE, KEEPS), SHARED),
}


@pytest.mark.parametrize("name", LISTS)
def test_a_page_lists_all_verbs_that_others_can_work_for_and_no_other(name):
    page, there, wanted = LISTS[name]
    assert there == wanted, f"{page}, {name}"


@pytest.mark.parametrize(("column", "suffixes"), [("pairs out", sorted(WRITTEN)), ("tables", TABLES)])
def test_the_reference_of_files_names_the_verbs_that_write_a_format(column, suffixes):
    page = (ROOT / "docs/reference/files.md").read_text("utf-8")
    bullet = re.search(rf"^- \*\*{column}\*\*: (.*?)\n(?=- |\n)", page, re.MULTILINE | re.DOTALL)
    assert bullet
    listed = " ".join(suffixes)
    writes = {verb for verb in VERBS for one in settings(verb) if one.name == "output" and listed in one.meaning}
    assert writes
    assert not writes - set(re.findall(r"`([a-z]+)\b[^`]*`", bullet[1]))


def test_the_readme_has_every_guide():
    readme = (ROOT / "README.md").read_text("utf-8")
    assert not [page.name for page in (ROOT / "docs" / "how-to").glob("*.md") if f"(docs/how-to/{page.name})" not in readme]


@pytest.mark.parametrize("kind", HOSTS)
def test_every_executor_has_a_section_of_the_page(kind):
    """It names it before the first command and says what to install."""
    sections = re.split(r"\n## ", (ROOT / CLUSTER).read_text("utf-8"))
    begins = [section.partition("```")[0] for section in sections]
    own = [section for section in begins if f"`execution={kind}`" in section]
    assert len(own) == 1, f"{CLUSTER}: {len(own)} sections begin with `execution={kind}`"
    assert not (library := HOSTS[kind].library) or f"pip install 'xswe[{library}]'" in own[0]
    (section,) = (section for section, begin in zip(sections, begins, strict=True) if begin == own[0])
    assert {*re.findall(r"execution\.(\w+)", section)} - {"shard"} == {*HOSTS[kind].settings}
    others = [host.does for other, host in HOSTS.items() if other != kind]
    assert HOSTS[kind].does not in others
    tests = ROOT / "tests" / "work" / f"test_{kind}.py"
    assert library or not HOSTS[kind].has_workers or tests.is_file(), "what all executors promise is not all that it does"
