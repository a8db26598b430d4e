"""Passages searched by many processes: each keeps the best spans of its shard, and these are merged in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from xswe.io.execution import ExecutionConfig, run_shards
from xswe.io.files import fingerprint, read_json
from xswe.io.lines import read_blocks
from xswe.io.shards import Stage, TextPlan, plan_identity
from xswe.phrases.kernels.top import Top, merge
from xswe.phrases.search import Search, SpanConfig
from xswe.phrases.state import restore, save, searched
from xswe.phrases.words import WordSource, load_words
from xswe.version import __version__

_SPARE = 32  # places of a shard's lists of distinct spans beside k: of equal ones another may come first in the whole


@dataclass(frozen=True)
class PhraseJob:
    """Search the passages of a shard.

    Attributes:
        folder: of the stage, whose manifest holds the rest.
        heavy: whether the model is an encoder.
    """

    folder: Path
    heavy: bool

    def open(self) -> tuple[WordSource, np.ndarray, SpanConfig, TextPlan]:
        """Load the model and the plan."""
        told = read_json(self.folder / "manifest.json")
        source = load_words(told["model"], 1)
        return source, source.queries(told["queries"]), SpanConfig(**told["config"]), TextPlan.read(self.folder)

    def run(self, opened: Any, shard: int, output: Path) -> dict[str, Any]:
        """Write the best spans of a shard, whose passages count from 0."""
        source, queries, config, plan = opened
        file, span = plan.shard(shard)
        search, texts = Search(source, queries, config), dict[int, str]()
        passages = (text for block in read_blocks(file, span=span) for text in block)
        done = max(searched(search, passages, texts, 0), default=0)
        save(output, "", search.top, texts, done)
        return {"lines": done}

    def files(self, output: Path) -> Sequence[Path]:
        """Return the file of spans."""
        return [output]


@dataclass
class PhraseShards:
    """Passages of a file, and who searches them.

    Attributes:
        model: its name, by which each process loads it.
        passages: text file, a passage a line.
        folder: for the shards, which all can write.
        execution: who does it.
        lines: how many passages there are; known at the end.
    """

    model: str
    passages: str
    folder: Path
    execution: ExecutionConfig
    lines: int = 0

    def find(self, search: Search, queries: Sequence[str]) -> dict[int, str]:
        """Fill the lists of a search; returns the passages that hold a hit.

        Raises:
            XsweError: shards failed.
            Unfinished: with ``execution=array``, the others are not done yet.
        """
        config = replace(search.config, threads=1, k=search.config.k + _SPARE * search.config.distinct)
        plan, stamps = TextPlan.of([self.passages], self.execution.shard)
        _, teacher, name = self.model.rpartition("teacher:")
        if (Path(name) / "config.json").is_file():  # workers have working directories of their own
            name = str(Path(name).absolute())
        model = f"{teacher}{name}"
        told = {"model": model, "queries": list(queries), "config": asdict(config)}
        identity = fingerprint(__version__, search.source.identity, told, plan_identity(plan, stamps))
        folder = (self.folder / f"search-{identity}").absolute()
        job = PhraseJob(folder, self.model.startswith("teacher:"))
        stage = Stage(folder, "search", plan.count, ".safetensors", job, identity)
        stage.begin(**told, plan=asdict(plan))
        run_shards(stage, self.execution, search.config.threads)
        texts: dict[int, str] = {}
        for shard in range(plan.count):
            state = restore(stage.path(shard), "")
            assert state is not None
            top, own, lines = state
            for numbers in (top.passages, top.latest):
                numbers[numbers >= 0] += self.lines
            merge(search.top, Top(*map(np.ascontiguousarray, top)), np.arange(len(queries)), search.config.distinct)
            texts |= {self.lines + number: text for number, text in own.items()}
            self.lines += lines
        wanted = set(search.top.passages.ravel().tolist())
        return {number: text for number, text in texts.items() if number in wanted}
