"""``python -m xswe filter`` as a user types it."""

from __future__ import annotations

import subprocess
import sys


def xswe(*words, given=None):
    return subprocess.run([sys.executable, "-m", "xswe", *words], capture_output=True, text=True, input=given, timeout=300)


PAIRS = "A cat sleeps.\tEine Katze schläft.\nThe train is late.\tWir kaufen Brot.\n"


def test_from_standard_input_to_standard_output():
    done = xswe("filter", "model=mini", "input=-", "output=-", "languages=[en,de]", "threshold=0.5", given=PAIRS)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "A cat sleeps.\tEine Katze schläft.\n"
    assert "2 pairs read, 1 kept; dropped: 1 low similarity" in done.stderr


def test_a_file_with_its_rejects(tmp_path):
    (tmp_path / "a.tsv").write_text(PAIRS, encoding="utf-8")
    words = [f"input={tmp_path}/a.tsv", f"output={tmp_path}/o.tsv", f"rejects={tmp_path}/no.tsv", "threshold=0.5"]
    done = xswe("filter", "model=mini", *words)
    assert done.returncode == 0, done.stderr
    assert "1 kept" in done.stdout
    assert (tmp_path / "no.tsv").read_text(encoding="utf-8").startswith("low similarity\t")
    refused = xswe("filter", "model=mini", f"input={tmp_path}/a.tsv", f"output={tmp_path}/o.html")
    assert refused.returncode == 2
    assert "pairs are not written as .html" in refused.stderr
