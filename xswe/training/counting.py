"""Counting the words of a corpus in shards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from xswe.io.files import fingerprint, write_json
from xswe.io.ragged import Texts, TextView
from xswe.text.counting import COUNTED, WordCounter
from xswe.text.words import WordSplitter, WordUnits
from xswe.training.corpus_stage import Corpus, Pair, open_part, texts_of
from xswe.work.once import once
from xswe.work.run import OPENED, run_shards
from xswe.work.stage import Job, Stage

_TEXTS_PER_SHARD = 1 << 18


@dataclass(frozen=True)
class CountJob(Job):
    """Count the words of a range of a language's training texts."""

    folder: Path  # of the stage; holds the splitter, too
    corpus: Path  # folder of the corpus stage
    pairs: tuple[Pair, ...]
    sizes: tuple[tuple[str, int], ...]  # (language, number of texts); shards come in this order
    texts: int  # texts per shard

    def open(
        self, splitter: WordSplitter | None = None, threads: int = 1
    ) -> tuple[WordCounter, dict[str, Texts | TextView], int]:
        """Memory-map the texts, and load the splitter unless it is given."""
        if splitter is None:
            splitter = WordUnits.load(self.folder / OPENED).splitter
        bitexts = [open_part(self.corpus, "train", pair) for pair in self.pairs]
        return WordCounter(splitter), {code: texts_of(bitexts, code) for code, _ in self.sizes}, threads

    def share(self, opened: tuple[WordCounter, Any, int]) -> None:
        """Write the splitter."""
        none = _without_words(opened[0].splitter)

        def write(place: Path) -> None:
            none.save(place)
            write_json(place / "config.json", {"units": none.settings})

        once(self.folder / OPENED, none.identity, write)

    def shards(self) -> list[tuple[str, int]]:
        """Return the language and the first text of each shard."""
        return [(code, first) for code, size in self.sizes for first in range(0, size, self.texts)]

    def run(self, opened: Any, shard: int, output: Path) -> dict[str, Any]:
        """Write the words and counts."""
        (counter, texts, threads), (code, first) = opened, self.shards()[shard]
        part = texts[code][first : first + self.texts]
        counter.count(part, output, threads)
        texts[code].release()
        return {"lines": len(part)}


def _without_words(splitter: WordSplitter) -> WordUnits:
    return WordUnits([], splitter, splitter.tokenizer)


def count_by_shards(
    corpus: Corpus, languages: Sequence[str], splitter: WordSplitter, folder: Path
) -> dict[str, list[Path]]:
    """Count the words of the training texts in shards; return the files of each language."""
    execution, bitexts = corpus.stages.execution, corpus.part("train")
    sizes = tuple((code, len(texts_of(bitexts, code))) for code in languages)
    job = CountJob(folder.absolute(), corpus.folder.absolute(), tuple(corpus.pairs), sizes, _TEXTS_PER_SHARD)
    shards = job.shards()
    identity = fingerprint(_without_words(splitter).identity, corpus.identity, sizes, _TEXTS_PER_SHARD)

    stage = Stage(job.folder, "count words", len(shards), COUNTED, job, identity)
    stage.begin()
    # One shard at a time, counted by all threads, because a language may have only one.
    run_shards(stage, execution, 1, opened=job.open(splitter, corpus.threads))
    return {code: [stage.sound(n) for n, (own, _) in enumerate(shards) if own == code] for code in languages}
