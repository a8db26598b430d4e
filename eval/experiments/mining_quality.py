"""How good mined pairs are: sets in the shape of BUCC, and planted pairs, made from the data that XSWE_DATA names.

    python -m eval.experiments.mining_quality model=DIR [pairs=de-ja,zh-ja] [noise=20000] [lines=20000] [output=FILE.json]

**BUCC-shaped**: WMT23 pairs (out of domain) hidden among sentences of the training files that are no translations of each
other, as far as those files know. Half of the hidden pairs and of the noise tune the threshold, the other half is measured,
by the shared task's protocol (precision, recall and F1 of the set of pairs). **Planted**: 1, 10, 50 or 100 % of the lines
have a translation on the other side (half of them unseen in training), the others are noise: of the same sources
(``alike``), where what nearly translates each other counts as wrong, so that the precision is a lower bound; English of
other sources (``apart``), where it is exact; and with word salad and boilerplate for half of it (``messy``). The threshold
is the automatic one; ``gold`` is given 300 of the planted pairs. Does what it expects come true? Pairs without English
(``de-ja``, ``zh-ja``) are those that say the same English sentence, as many as there are; their noise says English
sentences that the other side has not. Rows of other pairs stay in the file.
"""

from __future__ import annotations

import json
import random
import tempfile
from dataclasses import replace
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any, get_args

import xswe
from eval.experiments.bucc import BuccFiles, extract_by, precision_recall_f1, read_gold_ids, score, tune
from eval.settings import DATA, REQUIRED, chosen, pairs_of, run_script
from xswe.io.results import table
from xswe.mining.gold import GoldSearch, gold_scores
from xswe.mining.margin import Score
from xswe.mining.pipeline import MineConfig, choose_pairs, mine_sides
from xswe.model.static import StaticModel
from xswe.search.lists import Neighbours, SearchConfig

SCORES = tuple(score for score in get_args(Score) if score != "csls")  # which ranks as the distance does
TATOEBA = {"de": "deu", "ja": "jpn", "zh": "cmn"}
PAIRS = ("en-de", "en-ja", "en-zh", "de-ja", "zh-ja")
DEFAULTS: dict[str, Any] = {"model": REQUIRED, "pairs": ",".join(PAIRS), "noise": 20_000, "lines": 20_000, "output": ""}
SHARES = (0.01, 0.1, 0.5, 1.0)
NOISE = ("alike", "apart", "messy")
_APART = {
    **{"en-de": ("en-ja/kyoto-wiki",), "en-ja": ("en-de/newstest08-18", "en-zh/python-docs")},
    **{"en-zh": ("en-ja/kyoto-wiki",), "de-ja": ("en-de/newstest08-18",), "zh-ja": ("en-zh/python-docs",)},
}
_EVERYDAY = ("tatoeba", "tanaka", "captions-3am")  # short sentences, most of which are said again elsewhere in the file
_GOLD = 300
_ONE_THREAD = MineConfig(neighbours=SearchConfig(threads=1))
Texts = list[tuple[str, str]]


def read_rows(path: Path) -> Texts:
    """Read English-foreign pairs."""
    return [(a, b) for a, b in pairs_of(path) if a and b]


def hidden_pairs(root: Path, language: str, tatoeba: bool) -> Texts:
    """Return the pairs to hide, shuffled (WMT23 before Tatoeba's)."""
    draw = random.Random(0)
    pairs = list(dict.fromkeys(read_rows(root / "dev" / f"wmt23.en-{language}.tsv")))
    draw.shuffle(pairs)
    if tatoeba:
        folder = root / "mteb-local" / "mteb" / "tatoeba-bitext-mining" / "test"
        with open(folder / f"{TATOEBA[language]}-eng.jsonl", encoding="utf-8") as stream:
            rows = [json.loads(line) for line in stream]
        more = [(row["sentence2"], row["sentence1"]) for row in rows]
        draw.shuffle(more)
        pairs += more
    return pairs


@cache
def noise_lines(root: Path, language: str, count: int, folder: str = "train") -> tuple[list[str], list[str]]:
    """Return ``count`` English and ``count`` foreign sentences of a folder, no two of which are known as translations.

    The two sides come from different pairs. That is not enough: the same sentence stands in many pairs, and of 100,000
    lines a side drawn in this way one in ten has its translation on the other side.
    """
    pairs = [pair for path in sorted((root / folder / f"en-{language}").glob("*.tsv.gz")) for pair in read_rows(path)]
    random.Random(1).shuffle(pairs)
    source = list(dict.fromkeys(a for a, _ in pairs[: len(pairs) // 2]))[:count]
    there = {letters(a) for a in source}
    translated = {letters(b) for a, b in pairs if letters(a) in there}
    target = [b for b in dict.fromkeys(b for _, b in pairs[len(pairs) // 2 :]) if letters(b) not in translated][:count]
    if min(len(source), len(target)) < count:
        raise SystemExit(f"en-{language}: {count:,} noise lines a side wanted, {min(len(source), len(target)):,} there")
    return source, target


def letters(text: str) -> str:
    """Return the letters and digits of a text, in lower case: what is left when two spellings of it are compared."""
    return "".join(character for character in text.casefold() if character.isalnum())


def write_set(folder: Path, name: str, language: str, pairs: Texts, source: list[str], target: list[str]) -> str:
    """Write shuffled corpora and gold in the shared task's format; returns their common beginning."""
    draw = random.Random(2)
    places: list[dict[int, str]] = []
    for code, own, noise in (("en", [a for a, _ in pairs], source), (language, [b for _, b in pairs], target)):
        lines: list[tuple[str, int | None]] = [
            *((text, n) for n, text in enumerate(own)),
            *((text, None) for text in noise),
        ]
        draw.shuffle(lines)
        ids = [f"{code}-{i:09d}" for i in range(1, len(lines) + 1)]
        with open(folder / f"{name}.{code}", "w", encoding="utf-8") as stream:
            stream.writelines(f"{i}\t{' '.join(text.split())}\n" for i, (text, _) in zip(ids, lines, strict=True))
        places.append({n: i for i, (_, n) in zip(ids, lines, strict=True) if n is not None})
    with open(folder / f"{name}.gold", "w", encoding="utf-8") as stream:
        stream.writelines(f"{places[0][n]}\t{places[1][n]}\n" for n in range(len(pairs)))
    return str(folder / name)


def bucc_shaped(
    model: StaticModel,
    root: Path,
    language: str,
    noise: int,
    scores: tuple[str, ...] = SCORES,
    folder: str = "train",
) -> list[dict[str, object]]:
    """The shared task's protocol on a set in its shape, the noise from a folder of the data."""
    pairs, (source, target) = hidden_pairs(root, language, False), noise_lines(root, language, 2 * noise, folder)
    half = len(pairs) // 2
    out: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as folder:
        parts = (
            ("training", pairs[:half], source[:noise], target[:noise]),
            ("test", pairs[half:], source[noise:], target[noise:]),
        )
        names = [write_set(Path(folder), name, language, *part) for name, *part in parts]  # type: ignore[arg-type]
        training, test = (BuccFiles.find(name, ("en", language)) for name in names)
        config = MineConfig(threshold=None)
        pools = [extract_by(model, files, config, scores) for files in (training, test)]
        for kind, tuned, mined in zip(scores, *pools, strict=True):
            threshold = tune(tuned, read_gold_ids(training.gold or ""))
            found = score(mined, read_gold_ids(test.gold or ""), threshold)
            out.append(
                {"set": "BUCC-shaped", "pair": f"en-{language}", "score": kind, **vars(found), "lines": noise + half}
            )
    return out


def bitext(root: Path, pair: str, draw: random.Random) -> tuple[Texts, Texts, list[str], list[str]]:
    """Return pairs that no training has seen, pairs of the training files, and lines of both sides to draw noise from."""
    first, second = pair.split("-")
    if first == "en":
        pairs = _training(root, second)
        draw.shuffle(pairs)
        rest = pairs[len(pairs) // 3 :]
        half = len(rest) // 2
        return hidden_pairs(root, second, True), pairs, [a for a, _ in rest[:half]], [b for _, b in rest[half:]]
    read = {code: _training(root, code) for code in (first, second)}
    pairs = _same_english(read[first], read[second])
    unseen = _same_english(*(read_rows(root / "dev" / f"wmt23.en-{code}.tsv") for code in (first, second)))
    sides = []
    for own, other in ((first, second), (second, first)):
        said = {letters(a) for a, _ in read[other]}
        sides.append([b for a, b in read[own] if letters(a) not in said])
    for lines in (unseen, pairs, *sides):
        draw.shuffle(lines)
    return unseen, pairs, sides[0], sides[1]


def _training(root: Path, language: str) -> Texts:
    """Return the English-foreign pairs of the training files, but for those of everyday sentences."""
    files = sorted((root / "train" / f"en-{language}").glob("*.tsv.gz"))
    return [pair for path in files if path.name.split(".")[0] not in _EVERYDAY for pair in read_rows(path)]


def _same_english(first: Texts, second: Texts) -> Texts:
    """Return the pairs of sentences that say the same English one."""
    there = dict(reversed(second))
    return list(dict.fromkeys((b, there[a]) for a, b in first if a in there))


def planted_lines(root: Path, pair: str, lines: int, share: float, noise: str) -> tuple[Texts, list[str], list[str]]:
    """Return pairs to plant, and lines of both sides that have no translation."""
    draw = random.Random(0)
    hidden, pairs, *rest = bitext(root, pair, draw)
    lines = min(lines, len(hidden) + len(pairs))
    unseen = hidden[: round(lines * share) // 2]
    seen = pairs[: round(lines * share) - len(unseen)]
    count = lines - len(unseen) - len(seen)
    source = list(dict.fromkeys(rest[0]))[:count]
    if noise == "apart":
        side = 0 if pair.startswith("en") else 1
        apart = [row[side] for name in _APART[pair] for row in read_rows(root / "train" / f"{name}.tsv.gz")]
        draw.shuffle(apart)
        source = list(dict.fromkeys(apart))[:count]
    there = {letters(a) for a in [*source, *(a for a, _ in unseen + seen)]}
    translated = {letters(b) for a, b in pairs if letters(a) in there} | {letters(b) for _, b in unseen}
    target = [b for b in dict.fromkeys(rest[1]) if letters(b) not in translated][:count]
    if noise == "messy":
        source, target = (_messy(draw, side, [pair[k] for pair in pairs]) for k, side in enumerate((source, target)))
    return unseen + seen, source, target


def _messy(draw: random.Random, side: list[str], texts: list[str]) -> list[str]:
    """Replace a third of the lines by words without order, and an eighth by boilerplate."""
    joint = " " if texts[0].isascii() or " " in texts[0].strip() else ""
    cut = (lambda text: text.split()) if joint else (lambda text: [text[i : i + 3] for i in range(0, len(text), 3)])
    words = [word for text in texts[:3000] for word in cut(text)]
    salad = [joint.join(draw.choices(words, k=draw.randint(3, 15))) for _ in range(len(side) // 3)]
    plates = [f"item {draw.randint(0, 9999)} · page {draw.randint(0, 99)} · {words[i % 40]}" for i in range(len(side) // 8)]
    return [*salad, *plates, *side[len(salad) + len(plates) :]]


def planted(model: StaticModel, root: Path, pair: str, lines: int) -> list[dict[str, object]]:
    """True pairs among lines without a translation, at the threshold found without gold, and with some."""
    out: list[dict[str, object]] = []
    for share, noise in product(SHARES, NOISE):
        pairs, *others = planted_lines(root, pair, lines, share, noise)
        if share == 1 and noise != "alike":
            continue
        texts = [[*(pair[k] for pair in pairs), *others[k]] for k in (0, 1)]
        right = {(" ".join(a.split()), " ".join(b.split())) for a, b in pairs}
        known = random.Random(3).sample(sorted(right), min(_GOLD, len(right)))
        with tempfile.TemporaryDirectory() as folder:
            # One search for all: the other scores look at as many neighbours as the cosine, or at fewer.
            sides, *_ = mine_sides(model, (texts[0], texts[1]), replace(_ONE_THREAD, score="cosine"), Path(folder))
            lists = Neighbours.open(Path(folder) / "neighbours")
            for kind, gold in [(kind, False) for kind in SCORES] + [("ratio", True)]:
                config = replace(_ONE_THREAD, score=kind)  # type: ignore[arg-type]
                how = GoldSearch(config.neighbours, config.score, config.k, config.select)
                scores = gold_scores(known, sides, lists, partial(model.encode, threads=1), how) if gold else None
                mined = choose_pairs(lists, config, sides, scores, vectors=(sides[0].vectors, sides[1].vectors))
                rows = zip(mined.pairs.source.tolist(), mined.pairs.target.tolist(), strict=True)
                here = [(" ".join(sides[0].texts[i].split()), " ".join(sides[1].texts[j].split())) for i, j in rows]
                precision, recall, f1 = precision_recall_f1(len(here), sum(pair in right for pair in here), len(right))
                row = {
                    "set": f"planted {share:.0%}",
                    "noise": noise,
                    "pair": pair,
                    "score": kind,
                }
                row |= {
                    "calibrated": "gold" if gold else "mismatches",
                    "lines": len(texts[0]),
                    "gold": len(right),
                    "found": len(here),
                    "f1": f1,
                }
                row |= {"precision": precision, "recall": recall, "expected_precision": mined.threshold.precision}
                out.append(row)
    return out


def main(settings: dict[str, Any]) -> None:
    """Measure and print; write the figures."""
    model = xswe.load(settings["model"])
    noise, lines = settings["noise"], settings["lines"]
    pairs = [pair for pair in chosen(settings["pairs"], "pairs", PAIRS) if set(pair.split("-")) <= set(model.languages)]
    rows = [row for pair in pairs if pair.startswith("en") for row in bucc_shaped(model, DATA, pair[3:], noise)]
    rows += [row for pair in pairs for row in planted(model, DATA, pair, lines)]
    header = [
        "set",
        "noise",
        "calibrated",
        "pair",
        "score",
        "lines",
        "gold",
        "found",
        "precision",
        "recall",
        "f1",
        "expected_precision",
    ]
    print(table(header, [[row.get(name) for name in header] for row in rows]))
    if settings["output"]:
        path = Path(settings["output"])
        path.parent.mkdir(parents=True, exist_ok=True)
        kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
        rows = [*(row for row in kept if row["pair"] not in pairs), *rows]
        path.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    run_script(main, DEFAULTS, __doc__)
