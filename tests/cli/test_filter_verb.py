"""``python -m xswe filter`` as a user types it."""

from __future__ import annotations

from tests.cli.verbs import run_verb

PAIRS = "A cat sleeps.\tEine Katze schläft.\nThe train is late.\tWir kaufen Brot.\n"


def test_from_standard_input_to_standard_output(tmp_path):
    words = ["input=-", "output=-", "languages=[en,de]", "threshold=0.5"]
    done = run_verb("filter", "model=mini", *words, cwd=tmp_path, given=PAIRS)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "A cat sleeps.\tEine Katze schläft.\n"
    assert "2 pairs read, 1 kept; dropped: 1 low similarity" in done.stderr


def test_a_file_with_its_rejects(tmp_path):
    (tmp_path / "a.tsv").write_text(PAIRS, encoding="utf-8")
    words = ["input=a.tsv", "output=o.tsv", "rejects=no.tsv", "threshold=0.5"]
    done = run_verb("filter", "model=mini", *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "1 kept" in done.stdout
    assert (tmp_path / "no.tsv").read_text(encoding="utf-8").startswith("low similarity\t")
    refused = run_verb("filter", "model=mini", "input=a.tsv", "output=o.html", cwd=tmp_path)
    assert refused.returncode == 2
    assert "pairs are not written as .html" in refused.stderr
