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
from xswe.mining.wrong import KINDS, WrongPairs

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


def right_pairs(language: str, most: int) -> list[tuple[str, str]]:
    """Draw right pairs, a quarter of them of the sample corpus."""
    draw, sample = random.Random(7), sample_sentences()
    pairs = draw.sample(list(zip(sample["en"], sample[language], strict=True)), most // 4)
    for name in FILES[language]:
        with gzip.open(DATA / "train" / f"en-{language}" / f"{name}.tsv.gz", "rt", encoding="utf-8") as stream:
            rows = [tuple(line.rstrip("\n").split("\t")[:2]) for line in stream]
        fine = [(a, b) for a, b in rows if a and b and max(len(a), len(b)) <= _LONGEST]
        pairs += draw.sample(fine, (most - most // 4) // len(FILES[language]))
    draw.shuffle(pairs)
    return pairs


def main(settings: dict[str, Any]) -> None:
    """Make and write them."""
    out = {}
    for name in settings["models"].split(","):
        model = xswe.load(name)
        for language in FILES:
            own = ("en", language)
            finder, pairs = Features(model, own), right_pairs(language, settings["right"])
            right, vectors = features_of(finder, pairs)
            made = WrongPairs(pairs, vectors, foreign_texts(own), 1)
            wrong, classes = wrong_ones(finder, made, settings["each"])
            foreign = features_of(finder, other_languages(own))[0]
            kinds = [np.zeros(len(right)), classes, np.full(len(foreign), 1 + KINDS.index("wrong language"))]
            rows = np.concatenate([right, wrong, foreign])
            out[shipped_name(model.identity, language)] = np.c_[rows, np.concatenate(kinds).astype(np.uint8)]
            print(f"{name} en-{language}: {len(rows):,} examples, {len(right):,} of them right")
    np.savez_compressed(settings["output"], allow_pickle=False, **out)


if __name__ == "__main__":
    run_script(main, DEFAULTS, __doc__)
