"""Phrases in, hits out: passages streamed through a search, which may be killed and goes on where it stopped.

Many processes may share the passages: each keeps the best spans of its shard, and these are merged in order.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from xswe.io.files import fingerprint, read_json
from xswe.io.lines import read_blocks
from xswe.io.settings import changed
from xswe.model.ensemble import AnyModel
from xswe.phrases.kernels.top import Top, merge
from xswe.phrases.search import Search, SpanConfig, WordSource, load_words, open_words
from xswe.progress import bar, every
from xswe.text.units import in_blocks
from xswe.version import __version__
from xswe.work.config import ExecutionConfig
from xswe.work.plan import TextPlan, plan_identity
from xswe.work.run import run_shards
from xswe.work.stage import Job, Stage

if TYPE_CHECKING:
    from xswe.settings import SpanSettings

logger = logging.getLogger(__name__)
_SPARE = 32  # places of a shard's lists of distinct spans beside k: of equal ones another may come first in the whole


@dataclass(frozen=True)
class Place:
    """A span of a passage.

    Attributes:
        passage: which passage, counted from 0.
        start: its first character in the passage.
        end: one past its last.
        context: the passage.
    """

    passage: int
    start: int
    end: int
    context: str

    @property
    def text(self) -> str:
        """The span's text."""
        return self.context[self.start : self.end]

    def around(self, most: int) -> tuple[str, str]:
        """Return so many characters before and after the span, with a mark where there are more."""
        before, after = self.context[: self.start], self.context[self.end :]
        return "…" * (len(before) > most) + before[-most:], after[:most] + "…" * (len(after) > most)


@dataclass(frozen=True)
class Hit:
    """A span that is near to a phrase.

    Attributes:
        score: the cosine of the two.
        times: where equal spans are counted, how often it was found; else 1.
        passages: likewise in how many passages.
        places: where; of equal spans the first few.
    """

    score: float
    times: int
    passages: int
    places: tuple[Place, ...]


@dataclass(frozen=True)
class PhraseJob(Job):
    """Search the passages of a shard."""

    folder: Path  # of the stage, whose manifest holds the rest
    heavy: bool  # whether the model is an encoder

    def open(self) -> tuple[WordSource, np.ndarray, SpanConfig, TextPlan]:
        """Load the model and the plan."""
        told = read_json(self.folder / "manifest.json")
        source = load_words(told["model"], 1)
        return source, source.queries(told["queries"]), SpanConfig(**told["config"]), TextPlan.read(self.folder)

    def run(self, opened: Any, shard: int, output: Path) -> dict[str, Any]:
        """Write the best spans of a shard, whose passages count from 0."""
        *given, plan = opened
        file, span = plan.shard(shard)
        search = Search(*given)
        for _ in search.read(text for block in read_blocks(file, span=span) for text in block):
            pass
        search.save(output, "")
        return {"lines": search.done}


@dataclass
class PhraseShards:
    """Passages of a file, and who searches them."""

    model: str  # its name, by which each process loads it
    passages: str  # text file, a passage a line
    folder: Path  # for the shards, which all can write
    execution: ExecutionConfig  # who does it
    lines: int = 0  # how many passages there are; known at the end

    def find(self, search: Search, queries: Sequence[str]) -> None:
        """Fill the lists of a search, and its passages that hold a hit.

        Raises:
            XsweError: shards failed.
            Unfinished: with ``execution=array``, the others are not done yet.
        """
        config = replace(search.config, threads=1, k=search.config.k + _SPARE * search.config.distinct)
        plan, inputs = TextPlan.of([self.passages], self.execution.shard)
        _, teacher, name = self.model.rpartition("teacher:")
        if (Path(name) / "config.json").is_file():  # workers have working directories of their own
            name = str(Path(name).absolute())
        told = {"model": f"{teacher}{name}", "queries": list(queries), "config": asdict(config)}
        identity = fingerprint(__version__, search.source.identity, told, plan_identity(plan, inputs))
        folder = (self.folder / f"search-{identity}").absolute()
        job = PhraseJob(folder, self.model.startswith("teacher:"))
        stage = Stage(folder, "search", plan.count, ".safetensors", job, identity, inputs)
        stage.begin(**told, plan=asdict(plan))
        run_shards(stage, self.execution, search.config.threads)
        for shard in range(plan.count):
            part = Search(search.source, search.queries, config)
            part.restore(stage.sound(shard), "")
            for numbers in (part.top.places["passage"], part.top.hits["latest"]):
                numbers[numbers >= 0] += self.lines
            merge(search.top, part.top, np.arange(len(queries)), search.config.distinct)
            search.texts |= {self.lines + number: text for number, text in part.texts.items()}
            self.lines += part.done
        search.only_wanted()


def find_phrases(
    model: AnyModel | WordSource,
    queries: Sequence[str],
    passages: Iterable[str] | PhraseShards,
    config: SpanConfig | None = None,
    *,
    checkpoint: Path | None = None,
    passages_identity: object = None,
    **settings: Unpack[SpanSettings],
) -> list[list[Hit]]:
    """Find, for each phrase, the spans of the passages that are nearest to it.

    Queries and passages may be in any of the model's languages. Of spans that overlap only the best is a hit. The result
    is exact: it is that of scoring every span.

    Args:
        model: a static embedding, or another source of words with vectors.
        queries: phrases; one without a known unit finds nothing.
        passages: read once, as a stream, only those with a hit are kept; or a file of them that many processes search.
        config: the settings.
        checkpoint: a file that the state is saved to now and then, and resumed from if it is there and fits.
        passages_identity: with ``checkpoint``, what tells these passages from others, as a JSON value.
        settings: single fields of ``config``: ``k``, ``min_score``, ``max_size``, …

    Returns:
        For each query its hits, best first; of equal scores the earlier passage, then the earlier span.

    Raises:
        ConfigError: the settings do not fit the model (see :class:`xswe.phrases.search.Search`).
        ModelError: it is an ensemble.
        TypeError: one text is given in the place of many.

    Example:
        hits = find_phrases(model, ["Lieferkette"], open("news.ja", encoding="utf-8"))
        hits[0][0].places[0].text
    """
    if isinstance(queries, str) or isinstance(passages, str):
        raise TypeError("queries and passages are lists of texts: find_phrases(model, [query], [passage])")
    config, queries = changed(config or SpanConfig(), settings, "a search of phrases"), list(queries)
    source = open_words(model)
    search = Search(source, source.queries(queries), config)
    if unknown := [query for query, row in zip(queries, search.queries, strict=True) if not row.any()]:
        logger.warning("%d of %d phrases hold nothing that the model knows: %.200r", len(unknown), len(queries), unknown)
    if isinstance(passages, PhraseShards):
        passages.find(search, queries)
        return _resolve(search)
    identity, due = "", every()
    if checkpoint is not None:
        same = asdict(config) | {"threads": None}
        well_formed = [text for block in in_blocks(queries) for text in block]
        identity = fingerprint(source.identity, Top._fields, same, well_formed, passages_identity)
        search.restore(checkpoint, identity)
        if search.done:
            logger.info("resuming the search at passage %d", search.done)
    with bar("search", unit="passage", initial=search.done) as progress:
        for read in search.read(passages):
            progress.update(read)
            if checkpoint is not None and due():
                search.save(checkpoint, identity)
    return _resolve(search)


def _resolve(search: Search) -> list[list[Hit]]:
    """Turn word numbers into characters: only now are the few passages that hold a hit read with offsets."""
    top, texts = search.top, search.texts
    places = dict(zip(texts, search.source.places(list(texts.values())), strict=True))

    def place(passage: int, first: int, last: int) -> Place:
        where = places[passage]
        return Place(passage, int(where[first, 0]), int(where[first:last, 1].max()), texts[passage])

    out = []
    for q, used in enumerate(top.used.tolist()):
        hits = []
        for r in range(q * top.k, q * top.k + used):
            _, times, spread, _, score = top.hits[r].item()
            first = r * top.examples
            examples = top.places[first : first + min(times, top.examples)].tolist()
            hits.append(Hit(score, times, spread, tuple(place(*example) for example in examples)))
        out.append(hits)
    return out


def mark_best(model: AnyModel, query: str, texts: Iterable[str], before: str = "[", after: str = "]") -> Iterator[str]:
    """Yield texts with the span that says the most of a query marked, unless it is the whole text."""
    source = open_words(model)
    for text in texts:
        hits = find_phrases(source, [query], [text], k=1)[0]
        place = hits[0].places[0] if hits else None
        if place is None or place.text == text.strip():
            yield text
        else:
            yield f"{text[: place.start]}{before}{place.text}{after}{text[place.end :]}"
