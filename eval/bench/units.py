"""How fast texts are read in full size: counting words, looking them up, and finding their places, compiled and plainly.

    python -m eval.bench.units output=eval/results/units.json

reads the en-ja files under XSWE_DATA: a few thousand lines plainly and all of them in compiled code, in turn, several
times. Seconds are those of the processor, so that the ratios hold on a machine that is shared; the median is kept.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

from tokenizers import Tokenizer

from eval.counting import frequent_words
from eval.settings import DATA, pairs_of, run_script
from xswe.io.files import write_json
from xswe.io.ragged import Texts
from xswe.teacher.transformer import mini_folder
from xswe.text.subwords import SubwordUnits
from xswe.text.tokenizers import load_tokenizer
from xswe.text.words import WordSplitter, WordUnits, most_frequent

PAIR = ("en", "ja")
DEFAULTS: dict[str, Any] = {"texts": 60_000, "plain": 2000, "repeats": 10, "output": "units.json"}


def lines(side: int) -> Iterator[str]:
    """Iterate over one side of the bitext."""
    for path in sorted((DATA / "train" / "-".join(PAIR)).glob("*.gz")):
        yield from (pair[side] for pair in pairs_of(path))


def seconds(work: Callable[[], object]) -> float:
    """Return the processor's seconds of some work."""
    begun = time.process_time()
    work()
    return time.process_time() - begun


def compared(
    name: str, few: list[str], texts: Texts, plainly: Callable[[list[str]], object], fast: Callable[[Texts], object]
) -> dict[str, object]:
    """Measure plain and compiled work in turn."""
    fast(texts)
    pairs = [(seconds(lambda: plainly(few)) / len(few), seconds(lambda: fast(texts)) / len(texts)) for _ in range(5)]
    row = {
        "work": name,
        "plain_per_second": round(1 / median(plain for plain, _ in pairs)),
        "compiled_per_second": round(1 / median(fast for _, fast in pairs)),
        "ratio": round(median(plain / fast for plain, fast in pairs), 1),
    }
    print(json.dumps(row), flush=True)
    return row


def main(settings: dict[str, Any]) -> None:
    """Measure, print and write the figures."""
    pieces = load_tokenizer(mini_folder() / "tokenizer.json")
    splitter = WordSplitter(PAIR, {"ja": "teacher"}, pieces)
    sides = [list(islice(lines(side), settings["texts"])) for side in (0, 1)]
    counts = {code: frequent_words(side, splitter, 20_000) for code, side in zip(PAIR, sides, strict=True)}
    words = WordUnits(most_frequent(counts, dict.fromkeys(PAIR, 20_000)), splitter, pieces)
    state = json.loads(pieces.to_str()) | {"added_tokens": []}
    subwords = SubwordUnits(Tokenizer.from_str(json.dumps(state)), "subwords", PAIR)
    rows, count = [], partial(frequent_words, splitter=splitter, most=20_000)

    def plainly(texts: list[str]) -> Counter[str]:
        return Counter(word.form for text in texts for word in splitter(text))

    for code, side in zip(PAIR, sides, strict=True):
        few, texts = side[-settings["plain"] :], Texts.of(side)
        several = Texts.of(side * settings["repeats"])
        rows += [
            compared(f"{code} count", few, several, plainly, count),
            compared(f"{code} words: bags", few, texts, words._plainly, words.bags),
            compared(f"{code} words: places", few, texts, words._locate_plainly, words.locate),
            compared(f"{code} sub-words: places", few, texts, subwords._locate_by_tokenizer, subwords.locate),
        ]
    write_json(Path(settings["output"]), {"texts": settings["texts"], "rows": rows})


if __name__ == "__main__":
    run_script(main, DEFAULTS, __doc__)
