"""The benchmarks of the filter and of the index write what their tables show; what large jobs cost."""

from __future__ import annotations

import json

import pytest

from tests.conftest import SAMPLE, eval_script


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "table", "settings", "first"),
    [
        ("bench.filter", "filtering", {"pairs": 400, "rounds": 1}, "| 1 | "),
        ("bench.search", "searching", {"sentences": 300, "questions": 3}, "| exact | float32 | "),
    ],
)
def test_a_benchmark_fills_its_table(script, table, settings, first, tmp_path):
    (tmp_path / "data").mkdir()
    lines = SAMPLE.read_text(encoding="utf-8").splitlines()[:400]
    (tmp_path / "data" / "pairs.tsv").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    module, output = eval_script(script), tmp_path / "figures.json"
    module.main(module.SETTINGS | settings | {"data": str(tmp_path / "data"), "output": str(output)})
    text = getattr(eval_script("report.speed_tables"), table)(json.loads(output.read_text()))
    assert text.splitlines()[2].startswith(first)
    assert "None" not in text


def test_what_binds_a_large_job_is_the_longer():
    script = eval_script("report.speed_tables")
    few = script.job("encode", threads=16 * 3600, cards=0, moved=1)
    assert (few["node_hours"], few["binds"]) == (1, "encoding")
    much = script.job("mine", threads=3600, cards=0, moved=script.DISK * 7200)
    assert (much["node_hours"], much["binds"]) == (2, "storage")
