"""Every verb that reads a bitext, and mine, print the share of near-duplicates."""

from __future__ import annotations

import pytest

from tests.cli.verbs import run_verb
from xswe.cli.help import settings
from xswe.cli.verbs import VERBS

# Only their numbers differ, and all digits are alike: every line but the first repeats an earlier one.
LINES = {
    "en.txt": [f"The train number {n} is late again today." for n in range(10, 30)],
    "de.txt": [f"Der Zug Nummer {n} hat heute wieder Verspätung." for n in range(10, 30)],
}
FURTHER = {"filter": ["threshold=null"]}
READ = [(verb, mode) for verb, spec in VERBS.items() for mode in spec.bitext]


@pytest.mark.parametrize(("verb", "mode"), [*READ, ("align", ""), ("mine", "mine")])
def test_a_verb_prints_the_share_of_near_duplicates(verb, mode, tmp_path):
    for name, lines in LINES.items():
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), "utf-8")
    words = ["source=en.txt", "target=de.txt", "languages=[en,de]", "output=o.tsv", *FURTHER.get(verb, [])]
    words += ["model=mini"] if "model" in {one.name for one in settings(verb)} else []
    done = run_verb(verb, *words, *([f"mode={mode}"] if mode else []), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    what, times = ("lines", 2) if mode == "mine" else ("beads" if verb == "align" else "pairs", 1)
    assert done.stdout.count(f"; near-duplicates of earlier {what}: 95 %") == times, done.stdout


def test_records_without_texts_are_no_near_duplicates(tmp_path):
    """They have no links, but are counted."""
    (tmp_path / "a.tsv").write_text("no second column\n" * 3 + f"{LINES['en.txt'][0]}\t{LINES['de.txt'][0]}\n", "utf-8")
    done = run_verb("link", "model=mini", "input=a.tsv", "on_error=skip", "output=o.txt", cwd=tmp_path)
    assert done.stdout.startswith("4 pairs, ")
    assert "; near-duplicates of earlier pairs: none: o.txt" in done.stdout
