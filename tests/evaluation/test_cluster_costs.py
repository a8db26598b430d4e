"""The page on several machines shows what the script computes of what was measured."""

from __future__ import annotations

import json

from tests.conftest import eval_script
from xswe.io.files import resource


def test_the_page_shows_the_table():
    script = eval_script("report.cluster_costs")
    rows = script.jobs(script.constants())
    page = resource("corpora").parent / "docs" / "how-to" / "several-machines.md"
    assert script.table(rows).strip() in page.read_text(encoding="utf-8")
    assert json.loads((script.RESULTS / "cluster_costs.json").read_text(encoding="utf-8"))["jobs"] == rows


def test_what_binds_is_the_longer():
    script = eval_script("report.cluster_costs")
    few = script.job("encode", threads=16 * 3600, cards=0, moved=1)
    assert (few["node_hours"], few["binds"]) == (1, "encoding")
    much = script.job("mine", threads=3600, cards=0, moved=script.DISK * 7200)
    assert (much["node_hours"], much["binds"]) == (2, "storage")
