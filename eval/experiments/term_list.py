"""How often the list that ``link what=terms`` makes of a bitext has the right translation of a term first.

    python -m eval.experiments.term_list [model=mini] [output=eval/results/term_list.json] [sample=FILE]

``hidden_terms.tsv`` holds 60 English terms with their German and 60 with their Japanese translations, drawn at random from
6,000 lines each of software documentation, news and articles on Kyoto (``XSWE_DATA``: ``train/en-*``), and translated by
hand from what those lines say; ``line`` is one of them, from 1. Nothing of the list was chosen on these lines, but ``mini``
was trained on files that hold them. A term is right where the first row of the list that has it, in any inflection, gives
one of its translations, in any inflection; one without a row is wrong.

``wrong`` counts the wrong rows among those of a random sample that was looked at: ``term_verdicts.tsv`` has the verdict on
each, made on the last 8,000 lines of the documentation, and on other 6,000 lines of news and articles. A row is wrong that
is a part of a term, holds more than a term, is no term (a clause, a number), or is mistranslated. ``sample=FILE`` writes
the sampled rows that have no verdict yet.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import xswe
from eval.experiments.terms import hash_of
from eval.settings import DATA, RESULTS, pairs_of, run_script
from xswe.alignment.terms import bilingual_terms
from xswe.io.files import write_json
from xswe.io.results import table
from xswe.phrases.terms import same_term

DEFAULTS: dict[str, Any] = {"model": "mini", "output": str(RESULTS / "term_list.json"), "sample": ""}
HERE = Path(__file__).parent
LINES = {  # first and one past the last, from 0: of the hidden terms, and of the sample
    ("de", "msdocs"): ((2_000, 8_000), (112_000, 120_000)),
    ("de", "newstest08-18"): ((8_000, 14_000), (20_000, 26_000)),
    ("ja", "msdocs"): ((2_000, 8_000), (52_000, 60_000)),
    ("ja", "kyoto-wiki"): ((60_000, 66_000), (120_000, 126_000)),
}
SAMPLED = 50  # rows of each list


def rows_of(name: str) -> Iterator[dict[str, str]]:
    """Yield the rows of a table beside this script."""
    with (HERE / name).open(encoding="utf-8", newline="") as stream:
        yield from csv.DictReader(stream, delimiter="\t", quoting=csv.QUOTE_NONE)


def term_list(model: Any, language: str, corpus: str, lines: tuple[int, int]) -> Any:
    """Return the list of some lines."""
    pairs = list(pairs_of(DATA / "train" / f"en-{language}" / f"{corpus}.tsv.gz", lines[1]))[lines[0] :]
    links = xswe.align_words(model, [a for a, _ in pairs], [b for _, b in pairs])
    return bilingual_terms(links, ("en", language))


def is_right(found: Sequence[Any], term: str, answers: Sequence[str]) -> tuple[bool, str]:
    """Return whether the first row with a term has one of its translations, and which it has."""
    for row in found:
        if any(same_term(term, form) for form in (row.source, *row.source_variants)):
            forms = (row.target, *row.target_variants)
            return any(same_term(answer, form) for answer in answers for form in forms), row.target
    return False, ""


def main(settings: dict[str, Any]) -> None:
    """Measure and write."""
    model, rows, unknown = xswe.load(settings["model"]), [], []
    hidden, verdicts = defaultdict(list), {}
    for one in rows_of("hidden_terms.tsv"):
        hidden[one["language"], one["corpus"]].append((one["term"], one["answers"].split("|")))
    for one in rows_of("term_verdicts.tsv"):
        verdicts[one["language"], one["source"], one["target"]] = one["verdict"] == "right"
    for (language, corpus), (own, other) in LINES.items():
        found = term_list(model, language, corpus, own)
        answered = [(term, *is_right(found, term, answers)) for term, answers in hidden[language, corpus]]
        for term, right, target in answered:
            if not right:
                print(f"{language} {corpus}: {term} -> {target or 'no row'}")
        sampled = sorted(term_list(model, language, corpus, other), key=lambda row: hash_of(f"{row.source}\t{row.target}"))
        kept = [verdicts.get((language, row.source, row.target)) for row in sampled[:SAMPLED]]
        unknown += [(language, corpus, row) for row, known in zip(sampled, kept, strict=False) if known is None]
        known = [one for one in kept if one is not None]
        rows.append(
            {
                "language": language,
                "corpus": corpus,
                "rows": len(found),
                "hidden": len(answered),
                "right": sum(right for _, right, _ in answered),
                "sampled": len(known),
                "wrong": sum(not one for one in known),
            }
        )
    header = list(rows[0])
    print(table(header, [list(row.values()) for row in rows]))
    if settings["sample"]:
        lines = (
            f"{language}\t{corpus}\t{row.source}\t{row.target}\t\t{row.source_example}\t{row.target_example}\n"
            for language, corpus, row in unknown
        )
        Path(settings["sample"]).write_text("".join(lines), encoding="utf-8")
    write_json(Path(settings["output"]), rows)


if __name__ == "__main__":
    run_script(main, DEFAULTS, __doc__)
