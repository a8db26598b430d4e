"""Make the examples that a filter that learns begins with: features of right and of wrong pairs, no texts.

    python -m eval.experiments.filter_examples [models=mini,models/base] [right=2000] [each=260]
        [output=xswe/mining/examples.npz]

The right pairs are drawn from training files whose licences allow what is learnt from them to be passed on (``XSWE_DATA``):
Microsoft's documentation (CC BY 4.0), Tatoeba and Tanaka (CC BY 2.0 FR), lectures (Apache-2.0), the documentation
of Python (CC0), the WMT sample and captions (MIT), news to 2018 (CC BY-SA 4.0), Wikipedia on Kyoto (CC BY-SA 3.0), and
from the sample corpus of this project (CC0).
"""

from __future__ import annotations

import gzip
import random
from typing import Any

import numpy as np

import xswe
from eval.settings import DATA, run_script
from xswe.corpus.cards import sample_sentences
from xswe.mining.examples import features_of, foreign_texts, other_languages, shipped_name, wrong_ones
from xswe.mining.features import Features
from xswe.mining.learning import SAMPLE
from xswe.mining.names import NameUsage
from xswe.mining.wrong import KINDS, WrongPairs
from xswe.model.ensemble import AnyModel

DEFAULTS: dict[str, Any] = {
    "models": "mini,models/base",
    "right": 2000,
    "each": 260,
    "output": "xswe/mining/examples.npz",
}
FILES = {
    "de": ("msdocs", "tatoeba", "wmt-sample", "newstest08-18"),
    "ja": ("msdocs", "coursera", "tatoeba", "tanaka", "kyoto-wiki"),
    "zh": ("msdocs", "coursera", "python-docs", "tatoeba", "captions-3am", "newstest17-18"),
}
_LONGEST = 1500  # characters of a side
_NEARBY = 40_000  # pairs from which those are drawn whose names are counted
_NAMES = 1 + KINDS.index("other names")


def right_pairs(language: str, most: int) -> list[tuple[list[tuple[str, str]], NameUsage]]:
    """Draw right pairs of each corpus, a quarter of them of the sample corpus, and count the names of more of its pairs."""
    draw, sample = random.Random(7), sample_sentences()
    own = list(zip(sample["en"], sample[language], strict=True))
    out = [(draw.sample(own, most // 4), NameUsage.of(own[:SAMPLE]))]
    for name in FILES[language]:
        with gzip.open(DATA / "train" / f"en-{language}" / f"{name}.tsv.gz", "rt", encoding="utf-8") as stream:
            rows = [tuple(line.rstrip("\n").split("\t")[:2]) for line in stream]
        fine = list(dict.fromkeys((a, b) for a, b in rows if a and b and max(len(a), len(b)) <= _LONGEST))
        start = draw.randrange(max(1, len(fine) - _NEARBY))  # names come back in pairs that are near each other
        pool = draw.sample(fine[start : start + _NEARBY], min(SAMPLE, len(fine)))
        out.append((pool[: (most - most // 4) // len(FILES[language])], NameUsage.of(pool)))
    return out


def examples(model: AnyModel, language: str, right: int, each: int) -> np.ndarray:
    """Return the features and the class of right and wrong pairs, uint8 (n, features + 1)."""
    own = ("en", language)
    finder, groups = Features(model, own), right_pairs(language, right)
    parts: list[tuple[np.ndarray, np.ndarray | int]] = []
    for place, (pairs, usage) in enumerate(groups):
        found, vectors = features_of(finder, pairs, usage)
        made = WrongPairs(pairs, vectors, foreign_texts(own), 1 + place, usage)
        wrong, classes = wrong_ones(finder, made, each // len(groups) + 1 if place else each // 3)
        others = np.flatnonzero(classes != _NAMES)
        parts += [(found, 0), (wrong[others], classes[others])]
        renamed, rows = made.of_kind(KINDS[_NAMES - 1], each // 2)  # few corpora have many names
        if renamed:
            parts.append((features_of(finder, renamed, usage, [pairs[row] for row in rows.tolist()])[0], _NAMES))
    parts.append((features_of(finder, other_languages(own))[0], 1 + KINDS.index("wrong language")))
    classes = np.concatenate([np.broadcast_to(np.asarray(kind, np.uint8), len(rows)) for rows, kind in parts])
    return np.c_[np.concatenate([rows for rows, _ in parts]), classes]


def main(settings: dict[str, Any]) -> None:
    """Make and write them."""
    out = {}
    for name in settings["models"].split(","):
        model = xswe.load(name)
        for language in FILES:
            rows = examples(model, language, settings["right"], settings["each"])
            out[shipped_name(model.identity, language)] = rows
            print(f"{name} en-{language}: {len(rows):,} examples, {int((rows[:, -1] == 0).sum()):,} of them right")
    np.savez_compressed(settings["output"], allow_pickle=False, **out)


if __name__ == "__main__":
    run_script(main, DEFAULTS, __doc__)
