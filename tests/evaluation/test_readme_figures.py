"""The figures in the sentences of README and pages are those that were measured (eval/report)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import eval_script

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["README.md", *sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("docs/**/*.md"))]
pytestmark = pytest.mark.skipif(not (ROOT / "eval").is_dir(), reason="eval/ is not in this installation")


@pytest.fixture(scope="module")
def prose():
    return eval_script("report.fill_prose")


def test_tables_and_sentences_say_what_was_measured(capsys):
    tables = eval_script("report.tables")
    with pytest.raises(SystemExit) as end:
        tables.main(tables.DEFAULTS | {"root": str(ROOT), "check": 1})
    assert end.value.code == 0, capsys.readouterr().out


def test_what_looks_measured_is_checked(prose):
    """A figure with a unit, or with decimals, is filled by the script or named among those that are no results."""
    found = {page: prose.unnamed(page, (ROOT / page).read_text("utf-8")) for page in PAGES}
    assert not {page: figures for page, figures in found.items() if figures}
    text = (
        "It takes 3 to 7 times as\nlong, 0.2 more, and 12 GiB; `0.3`, 2023, 256 dimensions and 1,000 pairs are settings.\n"
    )
    assert prose.unnamed("docs/new.md", text) == ["1: 3", "1: 7", "2: 0.2", "2: 12"]


@pytest.mark.parametrize(
    ("page", "right", "wrong"),
    [
        ("docs/faq.md", "lines took 0.6 GiB", "lines took 0.7 GiB"),
        ("docs/results.md", "a recall of 99.8 %", "a recall of 99.7 %"),
    ],
)
def test_a_figure_that_differs_is_noticed_and_mended(prose, page, right, wrong):
    text, measured = (ROOT / page).read_text("utf-8"), eval_script("settings").Measured(ROOT)
    assert right in text
    assert (
        prose.fill_figures(page, text.replace(right, wrong), measured) == text
    )  # which --check compares with what stands there
    with pytest.raises(ValueError, match="has 0 times"):
        prose.fill_figures(page, text.replace(right, "lines"), measured)
