"""What the details of the papers' recipe are worth with a real encoder, in small: one setting each, all else equal.

    python -m eval.experiments.paper_details teacher=FOLDER [only=contexts.length,drop] [output=runs/details]
        [results=eval/results/details] [threads=1] [corpus.limit=20000 refine.max_steps=1200 …]

Each is a study of ``experiments/ablate.py`` on ``recipe=paper`` for en-ja, with the words, contexts and steps of SMALL, and
is measured on the held-out pairs; what studies share is extracted once. ``python -m eval.report.tables`` makes the tables
of docs/papers.md of the files. About three minutes of a processor a study, as long as the vectors are not shared.
"""

from __future__ import annotations

import sys
from typing import Any

from eval.experiments import ablate
from eval.settings import DATA, REQUIRED, RESULTS, chosen, run_script, split_words

# Where the sources differ, or where we differ from them: the recipe's own choice first.
DETAILS = {
    "contexts.length": "tokens,units",
    "extract.shared": "vocabulary,contexts",
    "pca.sample_from": "contexts,corpus",
    "refine.sample_from": "contexts,corpus",
    "refine.duplicates": "keep,mask",
    "extract.isolated": "false,true",
}
STUDIES = ("drop", "dim", "pca_level", "contexts", "pick", "segmenters")
VALUES = {"drop": "0,1,2,3,5,7", "dim": "64,128,256", "contexts": "1,2,5"}
SMALL: dict[str, Any] = {
    **{"corpus.limit": 20_000, "corpus.held_out": 0.1, "corpus.max_characters": 150, "contexts.per_unit": 2},
    **{"units.most_frequent": {"en": 1500, "ja": 1500}, "refine.max_steps": 1200},
}
DEFAULTS: dict[str, Any] = {"teacher": REQUIRED, "only": "", "output": "runs/details", "threads": 1}
DEFAULTS |= {"bitext": f"[{DATA / 'train/en-ja'}]", "results": str(RESULTS / "details")}


def main(settings: dict[str, Any], further: dict[str, Any]) -> None:
    """Run the studies, and print their tables."""
    names = chosen(settings["only"], "only", [*DETAILS, *STUDIES]) or [*DETAILS, *STUDIES]
    shared = {name: settings[name] for name in ("teacher", "bitext", "output", "results", "threads")}
    for name in names:
        what = {"setting": name, "values": DETAILS[name]} if name in DETAILS else {"study": name}
        values = {**ablate.DEFAULTS, "recipe": "paper", **shared, **what}
        values |= {"values": VALUES[name]} if name in VALUES else {}
        print(ablate.run(values, {**SMALL, **further}), flush=True)


if __name__ == "__main__":
    words, changes = split_words(sys.argv[1:], DEFAULTS)
    run_script(lambda settings: main(settings, changes), DEFAULTS, __doc__, words)
