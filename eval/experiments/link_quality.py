"""Word links against published gold: alignment error rate of each choice, beside an encoder's states and eflomal.

    python -m eval.experiments.link_quality gold=FOLDER [model=mini] [teacher=FOLDER] [train=20000] [sentences=0]
        [output=FILE]

``gold`` holds ``jaen.src-tgt`` and ``jaen.gold`` (KFTT's test set, Neubig 2011), ``zhen.src-tgt`` and ``zhen.gold``
(TsinghuaAligner's, Liu and Sun 2015): tokenised pairs as ``source ||| target``, links counted from 1, ``p`` for possible
ones; and ``test.de``, ``test.en`` and ``de-en.wa`` (100 sentences of Europarl, Biçici 2011). ``teacher`` is an encoder,
whose token states are linked by SimAlign's rule (itermax, mean state of a word's tokens).
eflomal (Östling and Tiedemann 2016), where it is installed, learns from the gold's own sentences, and from these and
``train`` pairs of XSWE_DATA, cut into words by the segmenters of the library; its links are symmetrised by grow-diag-final.
``sentences`` takes the first so many alone; 0 all. The settings of ``transport`` were chosen on the two larger sets.
``function`` is the recall on the 100 most frequent words.
"""

from __future__ import annotations

import json
import re
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import xswe
from eval.experiments.align_gold import cut_words, read_bitext
from eval.settings import DATA, RESULTS, run_script
from xswe.alignment import words as own
from xswe.io.files import write_json
from xswe.io.results import table
from xswe.text.segmenters import make_segmenter

DEFAULTS: dict[str, Any] = {
    **{
        "gold": None,
        "model": "mini",
        "teacher": "",
        "train": 20_000,
        "sentences": 0,
        "output": str(RESULTS / "links.json"),
    },
}
SETS = {
    "ja-en": ("jaen", "en-ja/kyoto-wiki"),
    "zh-en": ("zhen", "en-zh/newstest17-18"),
    "de-en": ("deen", "en-de/newstest08-18"),
}
Links = list[set[tuple[int, int]]]


def read_gold(folder: Path, name: str) -> tuple[list[str], list[str], Links, Links]:
    """Return both sides, tokenised, and the sure and the possible links (all that are named), from 0."""
    if name == "deen":
        german, english, links = (
            (folder / one).read_text("utf-8-sig").splitlines() for one in ("test.de", "test.en", "de-en.wa")
        )
        sides = [[" ".join(text.split()) for text in side] for side in (german, english)]
        all_sure = [{(int(a), int(b)) for a, _, b in (link.partition("-") for link in row.split())} for row in links]
        return sides[0], sides[1], all_sure, all_sure
    lines = (folder / f"{name}.src-tgt").read_text("utf-8").splitlines()
    sides = list(zip(*(line.split(" ||| ") for line in lines), strict=True))
    rows = [line.split() for line in (folder / f"{name}.gold").read_text("utf-8").splitlines()]

    def numbers(link: str) -> tuple[int, int]:
        a, b = re.split("[-p]", link)
        return int(a) - 1, int(b) - 1

    sure = [{numbers(link) for link in row if "-" in link} for row in rows]
    return list(sides[0]), list(sides[1]), sure, [{numbers(link) for link in row} for row in rows]


def figures(found: Sequence[set[tuple[int, int]]], sure: Links, possible: Links, source: Sequence[str]) -> dict[str, float]:
    """Return the alignment error rate, precision, recall, and the recall of frequent and of other source words."""
    often = {word for word, _ in Counter(word for text in source for word in text.split(" ")).most_common(100)}
    hits = sum(len(a & b) for a, b in zip(found, sure, strict=True))
    right = sum(len(a & b) for a, b in zip(found, possible, strict=True))
    all_found, all_sure = sum(map(len, found)), sum(map(len, sure))
    out = {
        "aer": 1 - (hits + right) / (all_found + all_sure),
        "precision": right / max(1, all_found),
        "recall": hits / all_sure,
    }
    for name, wanted in (("function", True), ("other", False)):
        chosen = [
            {(i, j) for i, j in links if (text.split(" ")[i] in often) == wanted}
            for text, links in zip(source, sure, strict=True)
        ]
        out[name] = sum(len(a & b) for a, b in zip(found, chosen, strict=True)) / max(1, sum(map(len, chosen)))
    return out


def states_of(folder: str, texts: list[str]) -> own.Read:
    """Read texts as the mean states of each word's tokens in an encoder."""
    from xswe.teacher.protocol import TeacherConfig
    from xswe.teacher.transformer import load_teacher

    teacher = load_teacher(TeacherConfig(folder, device="cpu"))
    places = [np.array([match.span() for match in re.finditer(r"[^ ]+", text)], np.int32) for text in texts]
    bounds = np.concatenate([[0], np.cumsum([len(one) for one in places])]).astype(np.int64)
    vectors = np.zeros((bounds[-1], teacher.dim), np.float32)
    for states in teacher.states(texts, teacher.batches(texts)):
        for k, row in enumerate(states.rows.tolist()):
            part = slice(int(states.offsets[k]), int(states.offsets[k + 1]))
            middle = (states.starts[part] + states.ends[part]) // 2
            word = np.searchsorted(places[row][:, 1], middle, side="right")
            there = word < len(places[row])
            np.add.at(vectors, bounds[row] + word[there], states.hidden[part][there])
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-6)
    return vectors, bounds, places


def by_states(read: tuple[own.Read, own.Read], source: list[str], target: list[str], method: str) -> Links:
    """Link words by what was read of both sides."""
    config, sides = own.LinkConfig(method=method, prior=0.0, min_score=-1.0), iter(read)
    return [set(pair.links) for pair in own._linked(lambda texts: next(sides), [source, target], config)]


def by_eflomal(sides: tuple[list[str], list[str]], more: list[tuple[str, str]]) -> Links:
    """Learn from the sentences and further pairs; symmetrise."""
    import eflomal

    texts = [[*side, *(pair[k] for pair in more)] for k, side in enumerate(sides)]
    with tempfile.TemporaryDirectory() as folder:
        names = [f"{folder}/{way}" for way in ("forward", "backward")]
        eflomal.Aligner().align(*texts, links_filename_fwd=names[0], links_filename_rev=names[1], quiet=True)
        read = [
            [{tuple(map(int, link.split("-"))) for link in line.split()} for line in Path(name).read_text().splitlines()]
            for name in names
        ]
    return [_grown(a, b) for a, b in zip(read[0][: len(sides[0])], read[1][: len(sides[0])], strict=True)]


def _grown(forward: set[tuple[int, int]], backward: set[tuple[int, int]]) -> set[tuple[int, int]]:
    """Symmetrise by grow-diag-final (Koehn et al., 2003)."""
    out, union = forward & backward, forward | backward
    near = [(a, b) for a in (-1, 0, 1) for b in (-1, 0, 1) if a or b]
    grown = True
    while grown:
        grown = False
        for i, j in sorted(out):
            for a, b in near:
                new = (i + a, j + b)
                free = new[0] not in {x for x, _ in out} or new[1] not in {y for _, y in out}
                if new in union and new not in out and free:
                    out.add(new)
                    grown = True
    for i, j in sorted(union):
        if i not in {x for x, _ in out} or j not in {y for _, y in out}:
            out.add((i, j))
    return out


def measure(pair: str, settings: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of one pair of languages."""
    name, corpus = SETS[pair]
    model = xswe.load(settings["model"])
    a, b, sure, possible = (part[: settings["sentences"] or None] for part in read_gold(Path(settings["gold"]), name))
    rows: list[dict[str, Any]] = []

    def add(method: str, seconds: float, found: Links) -> None:
        row = {"pair": pair, "sentences": len(a), "method": method, "seconds": round(seconds, 2)}
        rows.append({**row, **figures(found, sure, possible, a)})
        print(rows[-1], flush=True)

    for method in ("transport", "itermax", "intersection", "forward", "union"):
        begun = time.process_time()
        found = [set(one.links) for one in xswe.align_words(model, a, b, tokens=True, method=method)]
        add(f"{settings['model']}, {method}", time.process_time() - begun, found)
    if settings["teacher"]:
        begun = time.process_time()
        read = states_of(settings["teacher"], a), states_of(settings["teacher"], b)
        seconds = time.process_time() - begun
        for method in ("itermax", "intersection"):
            add(f"{Path(settings['teacher']).name}'s states, {method}", seconds, by_states(read, a, b, method))
    if settings["train"] and find_spec("eflomal"):
        kind = {"ja": "fugashi", "zh": "jieba"}.get(pair[:2])
        cut = make_segmenter(kind, pair[:2], None) if kind else None
        pairs = read_bitext(DATA / "train" / f"{corpus}.tsv.gz")[: settings["train"]]
        more = [(cut_words(b.lower(), cut), " ".join(re.findall(r"\w+|[^\w\s]", a.lower()))) for a, b in pairs]
        for title, further in (("alone", []), (f"and {len(more):,} pairs", more)):
            begun = time.monotonic()
            found = by_eflomal((a, b), further)
            add(f"eflomal, {title}", time.monotonic() - begun, found)
    return rows


def main(settings: dict[str, Any]) -> None:
    """Measure and write; rows of other numbers of sentences stay in the file."""
    path = Path(settings["output"])
    kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    rows = [row for pair in SETS for row in measure(pair, settings)]
    print(table(list(rows[0]), [list(row.values()) for row in rows]))
    new = {(row["pair"], row["sentences"], row["method"]) for row in rows}
    write_json(path, [*(row for row in kept if (row["pair"], row["sentences"], row["method"]) not in new), *rows])


if __name__ == "__main__":
    run_script(main, DEFAULTS, __doc__)
