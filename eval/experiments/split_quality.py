"""Real sentences joined to running text and cut again: how many cuts are right, how many are found, and what goes wrong.

    python -m eval.experiments.split_quality [splitters=xswe,sentencex] [sentences=30000] [joined=5]
        [output=eval/results/sentences.json]

The lines of a bitext that begin and end as a sentence does are joined, as they stand (``running``, where they are those of
documents) and shuffled. A cut is right where a line ends. Lines may hold several sentences, the most in lectures and
documentation, so that precision tells splitters from each other, and not what is wrong; a cut that is missed is an error.
Splitters are ``xswe``, ``sentencex`` (the library that it asks, alone) and ``blingfire``, if that is installed.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from eval.settings import DATA, RESULTS, pairs_of, run_script
from xswe.errors import ConfigError
from xswe.io.files import write_json
from xswe.io.results import table
from xswe.text.boundaries import split_sentences

DEFAULTS: dict[str, Any] = {
    "splitters": "xswe,sentencex",
    "sentences": 30_000,
    "joined": 5,
    "output": str(RESULTS / "sentences.json"),
}
# What: the bitext, the column, the language, and whether its lines follow each other.
SETS = {
    "news en": ("en-de/newstest08-18", 0, "en", True),
    "news de": ("en-de/newstest08-18", 1, "de", True),
    "news zh": ("en-zh/newstest17-18", 1, "zh", True),
    "wikipedia en": ("en-ja/kyoto-wiki", 0, "en", True),
    "wikipedia ja": ("en-ja/kyoto-wiki", 1, "ja", True),
    "lectures en": ("en-zh/coursera", 0, "en", True),
    "lectures zh": ("en-zh/coursera", 1, "zh", True),
    "lectures ja": ("en-ja/coursera", 1, "ja", True),
    "documentation en": ("en-de/msdocs", 0, "en", True),
    "documentation de": ("en-de/msdocs", 1, "de", True),
    "documentation zh": ("en-zh/msdocs", 1, "zh", True),
    "documentation ja": ("en-ja/msdocs", 1, "ja", True),
    "everyday en": ("en-de/tatoeba", 0, "en", False),
    "everyday de": ("en-de/tatoeba", 1, "de", False),
    "everyday zh": ("en-zh/tatoeba", 1, "zh", False),
    "everyday ja": ("en-ja/tatoeba", 1, "ja", False),
    "textbook en": ("en-ja/talpco", 0, "en", False),
    "textbook ja": ("en-ja/talpco", 1, "ja", False),
}
_QUOTES = "\"'“”„‘’‚«»‹›「」『』"
_BEGINS = re.compile(rf"[{_QUOTES}（(\[]*[\dA-ZÄÖÜ\u3040-\u30ff\u4e00-\u9fff]")
_ENDS = re.compile(rf"[.!?。！？…][{_QUOTES}）)\]]*$")
Splitter = Callable[[str, str], Iterable[int]]


def by_xswe(text: str, language: str) -> Iterator[int]:
    """Yield where sentences end."""
    return (end for _, end in split_sentences(text, language))


def by_sentencex(text: str, language: str) -> Iterator[int]:
    """Yield the same by the library alone."""
    import sentencex

    end = 0
    for piece in sentencex.segment(language, text):
        end += len(piece)
        yield end - len(piece) + len(piece.rstrip())


def by_blingfire(text: str, language: str) -> Iterator[int]:
    """Yield the same by BlingFire."""
    import blingfire

    return (end for _, end in blingfire.text_to_sentences_and_offsets(text)[1])


SPLITTERS: dict[str, Splitter] = {"xswe": by_xswe, "sentencex": by_sentencex, "blingfire": by_blingfire}


def lines_of(path: Path, column: int, most: int) -> list[str]:
    """Return the lines of a side that begin and end as sentences do."""
    lines = (" ".join(pair[column].split()) for pair in pairs_of(path))
    return [line for line in lines if _BEGINS.match(line) and _ENDS.search(line)][:most]


def joined(lines: list[str], language: str, count: int) -> Iterator[tuple[str, set[int]]]:
    """Yield texts of so many lines, and where in them lines end, the last one aside."""
    joint = "" if language in ("zh", "ja") else " "
    for start in range(0, len(lines), count):
        ends, end = set(), -len(joint)
        for line in lines[start : start + count]:
            end += len(joint) + len(line)
            ends.add(end)
        yield joint.join(lines[start : start + count]), ends - {end}


def kind_of(text: str, cut: int) -> str:
    """Say what stands at a cut."""
    word, after = text[:cut].rstrip(_QUOTES + "）)] ").split()[-1], text[cut:].lstrip()
    if text[cut - 1] in _QUOTES or after[:1] in _QUOTES:
        return "quote"
    if text[cut - 1] in "）)]":
        return "bracket"
    if after[:1].isdigit():
        return "digit"
    if word[-1] == "." and re.fullmatch(r"(?:\w+\.)*\w{1,5}\.", word):
        return "short word"
    return "ellipsis" if word[-1] == "…" or word.endswith("..") else "other"


def measure(splitter: Splitter, lines: list[str], language: str, count: int) -> dict[str, Any]:
    """Return how many cuts there are, are found and are right, and what the others are."""
    right, missed, extra = 0, Counter[str](), Counter[str]()
    for text, ends in joined(lines, language, count):
        found = set(splitter(text, language)) - {len(text)}
        right += len(found & ends)
        missed.update(kind_of(text, cut) for cut in ends - found)
        extra.update(kind_of(text, cut) for cut in found - ends)
    precision, recall = right / max(1, right + extra.total()), right / max(1, right + missed.total())
    scores = {"precision": precision, "recall": recall, "f1": 2 * precision * recall / max(1e-9, precision + recall)}
    return {"cuts": right + missed.total(), **scores, "missed": dict(missed), "extra": dict(extra)}


def main(settings: dict[str, Any]) -> None:
    """Measure all splitters on all sets."""
    names = settings["splitters"].split(",")
    if unknown := sorted(set(names) - SPLITTERS.keys()):
        raise ConfigError(f"splitters={unknown[0]}: choose from {', '.join(SPLITTERS)}")
    rows = []
    for what, (file, column, language, running) in SETS.items():
        lines = lines_of(DATA / "train" / f"{file}.tsv.gz", column, settings["sentences"])
        for order in ("running", "shuffled") if running else ("shuffled",):
            if order == "shuffled":
                random.Random(1).shuffle(lines)
            for name in names:
                found = measure(SPLITTERS[name], lines, language, settings["joined"])
                rows.append({"set": what, "language": language, "order": order, "splitter": name, **found})
    write_json(Path(settings["output"]), {"joined": settings["joined"], "rows": rows})
    shown = [(r["set"], r["order"], r["splitter"], *(f"{r[s]:.4f}" for s in ("precision", "recall", "f1"))) for r in rows]
    print(table(("what", "order", "splitter", "precision", "recall", "F1"), shown))


if __name__ == "__main__":
    run_script(main, DEFAULTS, __doc__)
