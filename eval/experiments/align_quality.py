"""Sentence alignment beside Gale-Church and vecalign, on documents edited at known places and on published gold.

    python -m eval.experiments.align_quality [model=mini] [encoders=LIST] [gold=FOLDER] [hunalign=PROGRAM]
        [bleualign=FOLDER] [sizes=2000,20000] [output=FILE]

Documents are runs of 300 pairs of XSWE_DATA's bitexts in document order (their second halves: settings were tuned on the
first), edited by eval/experiments/align_gold.py. ``gold`` names a folder with the MAC test set in InterText's XML (Zhu,
2021: ``test-anno.001_zh.001_en.xml``, …), Chinese novels and their English translations aligned by hand. vecalign gets
the same vectors: of overlaps of up to seven lines, that is as many bags as seven times the lines, all encoded.
``encoders`` are named as in :mod:`baselines` (``teacher:FOLDER,use-multilingual``); their vectors of lines go through
the library's own programme, a line's as often as it has characters. ``hunalign`` is that program, compiled
(github.com/danielvarga/hunalign), ``bleualign`` the folder of that one (github.com/rsennrich/Bleualign); both get words,
and XSWE_DATA's MUSE dictionaries. Growth is measured in a process for each size: the processor's seconds (up to 20,000
lines medians of five turns each), and the memory beyond that of the texts themselves. What is not measured, of encoders
and programs that are not named, and of growth with ``sizes=``, stays in ``output`` as it was.
"""

from __future__ import annotations

import gzip
import json
import multiprocessing
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import xswe
from eval.bench.memory import memory, watched
from eval.experiments.align_baselines import bleualign, gale_church, hunalign, overlaps, vecalign
from eval.experiments.align_gold import (
    JOINT,
    Document,
    beads_of,
    counts,
    cut_words,
    edited,
    f1,
    half_missing,
    moved,
    read_bitext,
)
from eval.experiments.baselines import open_encoder
from eval.settings import DATA, RESULTS, numbers, run_script
from xswe.alignment.beads import AlignConfig, Lines, align_lines, line_sums
from xswe.alignment.documents import pair_documents
from xswe.alignment.windows import align_texts
from xswe.errors import ConfigError
from xswe.io.files import write_json
from xswe.io.ragged import Texts
from xswe.io.results import table
from xswe.model.ensemble import AnyModel
from xswe.text.segmenters import make_segmenter

FILES = (
    *("en-de/msdocs", "en-de/newstest08-18", "en-ja/kyoto-wiki", "en-ja/coursera"),
    *("en-ja/msdocs", "en-zh/python-docs", "en-zh/coursera", "en-zh/newstest17-18"),
)
PAIRS, DOCUMENTS, MOST, TURNS = 300, 3, 7, 5
LINES, SIDE, SHARED = 10, 2000, 1800  # lines of a document to be paired, documents a side, and those on both
DEFAULTS: dict[str, Any] = {
    "model": "mini",
    "gold": "",
    **{"encoders": "", "hunalign": "", "bleualign": ""},
    "sizes": "2000,20000,200000,1000000",
    "output": str(RESULTS / "align.json"),
}
Align = Callable[[Document, tuple[str, str]], np.ndarray]


def documents(data: Path, second_half: bool = True) -> Iterator[tuple[str, str, tuple[str, str], Document]]:
    """Yield (bitext, kind of edits, languages, document)."""
    for name in FILES:
        pairs = read_bitext(data / "train" / f"{name}.tsv.gz")
        half = len(pairs) // 2
        pairs = pairs[half:] if second_half else pairs[:half]
        languages = (name[:2], name[3:5])
        draw = np.random.default_rng(7)
        for seed in range(DOCUMENTS):
            start = int(draw.integers(0, len(pairs) - PAIRS))
            made = edited(pairs[start : start + PAIRS], pairs, languages, seed)
            yield name, "edited", languages, made
            yield name, "half missing", languages, half_missing(made, seed)
            yield name, "moved", languages, moved(made, seed)


def novels(folder: Path) -> Iterator[tuple[str, str, tuple[str, str], Document]]:
    """Yield the documents of MAC's test set, or of its development set."""
    for path in sorted(folder.glob("*_zh.*_en.xml")):
        stem = path.name.partition("_zh.")[0]
        sides = []
        for language in ("zh", "en"):
            root = ET.parse(folder / f"{stem}_{language}.xml")
            sides.append({one.get("id"): " ".join("".join(one.itertext()).split()) for one in root.iter("s")})
        places = [{key: place for place, key in enumerate(side)} for side in sides]
        beads = []
        for link in ET.parse(path).iter("link"):
            target, source = (part.split() for part in link.get("xtargets", ";").split(";"))
            if source and target:
                beads.append((tuple(places[0][key] for key in source), tuple(places[1][key] for key in target)))
        yield "MAC zh-en", "novels", ("zh", "en"), Document(list(sides[0].values()), list(sides[1].values()), beads)


def by_xswe(model: AnyModel, config: AlignConfig) -> Align:
    """Return the library's own method."""

    def align(document: Document, languages: tuple[str, str]) -> np.ndarray:
        return align_lines(line_sums(model, document.source), line_sums(model, document.target), config)[0]

    return align


def by_vecalign(model: AnyModel, size: int) -> Align:
    """Return vecalign's method; every overlap is encoded."""

    def align(document: Document, languages: tuple[str, str]) -> np.ndarray:
        sides = []
        for texts, language in zip((document.source, document.target), languages, strict=True):
            sides.append(np.stack([model.encode(run) for run in overlaps(texts, min(MOST, size - 1), JOINT[language])]))
        return vecalign(*sides, size=size)

    return align


def measure(found: list[tuple[str, str, tuple[str, str], Document]], align: Align) -> dict[str, dict[str, float]]:
    """Return strict and lax F1 by bitext and by kind of edits, and the processor's seconds."""
    totals: dict[str, np.ndarray] = {}
    align(found[0][3], found[0][2])  # compiles
    begun = time.process_time()
    for name, kind, languages, document in found:
        count = counts(beads_of(align(document, languages)), document.beads)
        for key in dict.fromkeys((name, kind)):
            totals[key] = totals.get(key, 0) + count
    seconds = time.process_time() - begun
    out = {key: dict(zip(("strict", "lax"), f1(total), strict=True)) for key, total in totals.items()}
    bitexts = [out[name] for name in dict.fromkeys(one[0] for one in found)]
    out["mean"] = {kind: float(np.mean([one[kind] for one in bitexts])) for kind in ("strict", "lax")}
    out["seconds"] = seconds  # type: ignore[assignment]
    return out


def by_encoder(name: str) -> Align:
    """Return the library's programme on an encoder's vectors; a text is encoded once."""
    encoder, known = open_encoder(name, 1), {}

    def lines(texts: list[str]) -> Lines:
        new = [text for text in dict.fromkeys(texts) if text not in known]
        known.update(zip(new, encoder.encode(new), strict=True))
        sizes = np.fromiter(map(len, texts), np.float32, len(texts))
        return Lines(np.stack([known[text] for text in texts]).astype(np.float32) * sizes[:, None], sizes)

    def align(document: Document, languages: tuple[str, str]) -> np.ndarray:
        return align_lines(lines(document.source), lines(document.target), AlignConfig())[0]

    return align


def by_words(method: Callable[..., np.ndarray], where: str, data: Path) -> Align:
    """Return another's method, that looks at words and has a dictionary."""
    segmenters = {name: make_segmenter(*names, None) for name, *names in (("ja", "fugashi", "ja"), ("zh", "jieba", "zh"))}

    @cache
    def words(text: str, language: str) -> str:
        return cut_words(text.lower(), segmenters.get(language))

    @cache
    def dictionary(*languages: str) -> dict[str, str]:
        own = languages.index("en")
        with gzip.open(data / "lexicon" / f"muse.en-{languages[1 - own]}.tsv.gz", "rt", encoding="utf-8") as lines:
            rows = [line.rstrip("\n").lower().split("\t") for line in lines]
        return {row[own]: row[1 - own] for row in reversed(rows)}  # the first of each

    def align(document: Document, languages: tuple[str, str]) -> np.ndarray:
        pairs = zip((document.source, document.target), languages, strict=True)
        sides = ([words(text, language) for text in side] for side, language in pairs)
        return method(where, *sides, dictionary(*languages))

    return align


def growth(name: str, data: Path, size: int) -> dict[str, float]:
    """Return what it costs to encode and to align texts of some length, by xswe and by vecalign's method.

    Texts are Wikipedia's, one side without 50 lines; longer ones go round the file again. vecalign is measured to 20,000.
    """
    pairs, model = read_bitext(data / "train" / "en-ja" / "kyoto-wiki.tsv.gz"), xswe.load(name)
    source = [pairs[k % len(pairs)][0] for k in range(size)]
    target = [pairs[k % len(pairs)][1] for k in range(size) if not size // 2 <= k < size // 2 + 50]
    texts = Texts.of(source), Texts.of(target)
    align_texts(model, texts[0][:500], texts[1][:500], AlignConfig())  # compiles
    before, turns = memory("RssAnon"), TURNS if size <= 20_000 else 1
    clocks, peak = np.zeros((turns, 3)), 0
    for clock in clocks:  # one after the other: what else the machine does falls on both
        begun = time.process_time()
        with watched() as largest:
            (cells, _, _), _ = align_texts(model, *texts, AlignConfig())
        clock[0] = time.process_time() - begun
        peak = peak or largest[0] - before  # of the first turn: what vecalign leaves is not counted
        if size <= 20_000:
            begun = time.process_time()
            sides = [
                np.stack([model.encode(run) for run in overlaps(texts, MOST, JOINT[code])])
                for texts, code in ((source, "en"), (target, "ja"))
            ]
            clock[1] = time.process_time() - begun
            vecalign(*sides, size=8)
            clock[2] = time.process_time() - begun - clock[1]
            del sides
    seconds, encode, align = np.median(clocks, axis=0).tolist()
    row = {"lines": size, "seconds": seconds, "lines a second": 2 * size / seconds, "MiB": peak / 2**20}
    beads = cells[:-1][(np.diff(cells, axis=0) > 0).all(1)].tolist()
    row["share of lines right"] = sum(a == b or (a == b + 50 and a >= size // 2) for a, b in beads) / (size - 50)
    if size <= 20_000:
        row |= {"vecalign encode": encode, "vecalign align": align, "ratio": (encode + align) / seconds}
    return row


def paired(model: AnyModel, data: Path) -> dict[str, float]:
    """Return how well shuffled documents of ten lines find each other, of which a tenth is alone."""
    sides: tuple[list[list[str]], list[list[str]]] = ([], [])
    for name in ("kyoto-wiki", "coursera", "msdocs"):
        pairs = read_bitext(data / "train" / "en-ja" / f"{name}.tsv.gz")
        for start in np.linspace(0, len(pairs) - LINES, 734).astype(int).tolist():
            for k in (0, 1):
                sides[k].append([pair[k] for pair in pairs[start : start + LINES]])
    draw = np.random.default_rng(7)
    rows = draw.permutation(len(sides[0]))[: 2 * SIDE - SHARED]
    source, target = rows[:SIDE], draw.permutation(np.concatenate([rows[:SHARED], rows[SIDE:]]))
    begun = time.process_time()
    found = pair_documents(model, [sides[0][row] for row in source], [sides[1][row] for row in target], threads=1)
    right = sum(source[pair.source] == target[pair.target] for pair in found)
    seconds = time.process_time() - begun
    return {
        "documents": SIDE,
        "found": len(found),
        "precision": float(right / len(found)),
        "recall": float(right / SHARED),
        "seconds": seconds,
    }


def main(settings: dict[str, Any]) -> None:
    """Measure all, print and write it."""
    model = xswe.load(settings["model"])
    found = list(documents(DATA)) + (list(novels(Path(settings["gold"]))) if settings["gold"] else [])
    ways: dict[str, Align] = {
        "xswe": by_xswe(model, AlignConfig()),
        **{f"vecalign, beads to {size} lines": by_vecalign(model, size) for size in (4, 8)},
        "Gale-Church": lambda document, languages: gale_church(document.source, document.target),
    }
    for name, method in (("hunalign", hunalign), ("bleualign", bleualign)):
        if settings[name]:
            ways[name.capitalize() if method is bleualign else name] = by_words(method, settings[name], DATA)
    for encoder in settings["encoders"].split(",") if settings["encoders"] else ():
        ways[f"xswe, vectors of {Path(encoder.partition(':')[2] or encoder).name}"] = by_encoder(encoder)
    output = Path(settings["output"])
    result: dict[str, Any] = (
        json.loads(output.read_text(encoding="utf-8")) if output.is_file() else {"f1": {}, "growth": []}
    )
    if result.setdefault("model", settings["model"]) != settings["model"]:
        raise ConfigError(f"output={output}: has the figures of {result['model']}; give another file")
    for name, align in ways.items():
        result["f1"][name] = measure(found, align)
    names = list(result["f1"]["xswe"])[:-1]
    for kind in ("strict", "lax"):
        rows = [[name, *(one[key][kind] for key in names)] for name, one in result["f1"].items()]
        print(f"\n{kind} F1\n{table(['method', *names], rows)}", flush=True)
    result["documents"] = paired(model, DATA)
    print(result["documents"])
    write_json(output, result)  # growth takes long
    sizes = numbers(settings["sizes"], "sizes") if settings["sizes"] else []
    if sizes:
        result["growth"] = []
    for size in sizes:
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
            result["growth"].append(pool.submit(growth, settings["model"], DATA, size).result())
        print(result["growth"][-1], flush=True)
        write_json(output, result)


if __name__ == "__main__":
    run_script(main, DEFAULTS, __doc__)
