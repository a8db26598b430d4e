"""The verb ``report``, and ``report=`` of the verbs that make what pages show."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from tests.cli.verbs import run_verb

pytest.importorskip("jinja2", reason="pages need Jinja2: pip install 'xswe[report]'")


@pytest.fixture
def folder(sample, tmp_path):
    for code, rows in (("en", slice(0, 300)), ("ja", slice(100, 400))):
        (tmp_path / f"{code}.txt").write_text("".join(f"{line}\n" for line in sample[code][rows]), encoding="utf-8")
    pairs = zip(sample["en"][:200], sample["ja"][:200], strict=True)
    (tmp_path / "bitext.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in pairs) + "x\tx\n", encoding="utf-8")
    return tmp_path


def test_every_page_has_its_command_on_the_page_of_reports():
    from xswe.report.write import Kind

    page = (Path(__file__).parents[2] / "docs" / "how-to" / "reports.md").read_text("utf-8")
    assert not [kind for kind in get_args(Kind) if kind != "auto" and f"report {kind}=" not in page]


def test_mining_and_filtering_write_their_pages(folder, model_folder):
    given = ("mine", f"model={model_folder}", "source=en.txt", "target=ja.txt")
    mined = run_verb(*given, "output=p.tsv", "report=p.html", cwd=folder)
    assert mined.returncode == 0, mined.stderr
    assert mined.stdout.splitlines()[-1] == "report: p.html"
    page = (folder / "p.html").read_text(encoding="utf-8")
    for part in ("Just above the cut", "mismatches", "Hubs", "data-l=", "threshold"):
        assert part in page
    plain = run_verb(*given, "output=q.tsv", cwd=folder)
    assert plain.returncode == 0
    assert (folder / "q.tsv").read_bytes() == (folder / "p.tsv").read_bytes()  # looking changes nothing
    again = run_verb("report", "mined=p.tsv", "languages=[en,ja]", "output=again.html", cwd=folder)
    assert again.stdout.startswith("report: again.html (0."), again.stderr
    done = run_verb("filter", f"model={model_folder}", "input=bitext.tsv", "output=c.tsv", "report=c.html", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "copy" in (folder / "c.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_phrases_write_their_page(folder):
    given = ("queries=train", "input=bitext.tsv", "output=h.tsv", "mode=terms", "languages=[en,ja]", "report=h.html")
    done = run_verb("phrases", "model=mini", *given, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert 'data-phrase="train"' in (folder / "h.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("mine", "model=mini", "source=en.txt", "target=ja.txt", "output=a.tsv", "report=a.pdf"), "call it report.html"),
        (("mine", "model=mini", "source=en.txt", "output=a.html", "report=en.txt"), "call it report.html"),
        (("compare", "models=[mini]", "output=a.html", "report=a.html"), "the output, too"),
        (
            ("mine", "mode=score", "model=mini", "input=bitext.tsv", "output=a.tsv", "report=a.html"),
            "report does nothing with mode=score",
        ),
        (("align", "model=mini", "source=.", "target=.", "output=a", "report=a.html"), "report= do nothing for folders"),
        (("report", "output=a.html"), "needs one of mined=, run=, hits=, compare=, space="),
        (("report", "run=.", "mined=bitext.tsv"), "needs one of"),
        (("report", "mined=bitext.tsv"), "bitext.tsv:1: no score"),
        (("report", "mined=absent.tsv"), "absent.tsv: no such file"),
        (("report", "hits=bitext.tsv"), "no column 'phrase' or 'term'"),
        (("report", "compare=bitext.tsv"), "no comparison in it"),
        (("report", "space=bitext.tsv"), "needs a single static model"),
        (("report", "run=absent"), "no results.json"),
    ],
)
def test_what_cannot_be_a_page_is_said_at_once(folder, arguments, said):
    done = run_verb(*arguments, cwd=folder)
    assert done.returncode == 2
    assert said in done.stderr
    assert sum(line.startswith("xswe: ") for line in done.stderr.splitlines()) == 1
    assert not list(folder.glob("*.html"))
