"""``find_phrases``: passages streamed through the search of spans."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from xswe.errors import ConfigError
from xswe.io.arguments import check_model, texts_of
from xswe.io.files import fingerprint, read_json
from xswe.io.lines import read_blocks
from xswe.io.results import Result
from xswe.io.settings import changed
from xswe.model.ensemble import AnyModel, share_model
from xswe.phrases.search import Search, SpanConfig, StaticWords, WordSource, load_words, open_words
from xswe.progress import bar
from xswe.version import __version__
from xswe.work.config import LOCAL, ExecutionConfig
from xswe.work.gather import GatherJob, gather
from xswe.work.plan import TextPlan, plan_identity
from xswe.work.stage import Stage

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
        """Return ``most`` characters before and after the span, with an ellipsis where there are more."""
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
class FoundPhrases(
    Result[tuple[Hit, ...]], entries="found", row=("query", "score", "text", "times", "passages", "passage", "context")
):
    """The hits of several phrases: a sequence of the hits of each; a row a hit in tables.

    Attributes:
        queries: the phrases.
        found: the hits of each, the best first.
    """

    queries: tuple[str, ...]
    found: tuple[tuple[Hit, ...], ...]

    def __repr__(self) -> str:
        return f"FoundPhrases({len(self.queries)} phrases, {sum(map(len, self.found))} hits)"

    def records(self) -> Iterator[tuple[Any, ...]]:
        """Yield a row a hit, with the first place of it."""
        for query, hits in zip(self.queries, self.found, strict=True):
            for hit in hits:
                first = hit.places[0]
                yield query, hit.score, first.text, hit.times, hit.passages, first.passage, first.context


@dataclass(frozen=True)
class PhraseJob(GatherJob):
    """Search the passages of a shard."""

    folder: Path  # of the stage, whose manifest holds the rest
    model: Path  # where the model is, unless it has a name
    heavy: bool  # whether it is an encoder

    def open(self) -> tuple[WordSource, np.ndarray, SpanConfig, TextPlan]:
        """Load the model and the plan."""
        manifest = read_json(self.folder / "manifest.json")
        source = load_words(manifest["model"] or str(self.model), 1)
        return source, source.queries(manifest["queries"]), SpanConfig(**manifest["config"]), TextPlan.read(self.folder)

    def share(self, opened: Any) -> None:
        """Write a model without a name for others to load."""
        if isinstance(opened[0], StaticWords):
            share_model(opened[0].model, self.model)

    def records(self, opened: Any, shard: int) -> Iterator[str]:
        """Iterate over the passages of a shard."""
        file, span = opened[3].shard(shard)
        return (text for block in read_blocks(file, span=span) for text in block)

    def empty(self, opened: Any) -> Search:
        """Return a search of no passage."""
        return Search(*opened[:3])


@dataclass
class PassageFile:
    """Passages, a line each in a file, and who searches them."""

    path: str
    folder: Path  # for what a killed run leaves; with others, all can write there
    execution: ExecutionConfig = LOCAL
    model: str = ""  # the name of an encoder, by which others load it
    lines: int = 0  # how many passages there are; known at the end

    def find(self, search: Search, queries: Sequence[str]) -> None:
        """Fill the lists of a search, and its passages that hold a hit.

        ConfigError: others cannot load the encoder. XsweError: shards failed. Unfinished: with ``execution=array``, the
        others are not done yet.
        """
        config = replace(search.config, threads=1, k=search.config.k + _SPARE * search.config.distinct)
        plan, inputs = TextPlan.of([self.path], self.execution.shard)
        is_static = isinstance(search.source, StaticWords)
        if not (is_static or self.model or self.execution.alone):
            raise ConfigError("others load the encoder that phrases are sought with: give its name or folder")
        manifest = {"model": "" if is_static else _absolute(self.model), "queries": list(queries), "config": asdict(config)}
        identity = fingerprint(__version__, search.source.identity, manifest, plan_identity(plan, inputs))
        folder = (self.folder / f"search-{identity}").absolute()
        job = PhraseJob(folder, folder / ".model" / "model", not is_static)
        stage = Stage(folder, "search", plan.count, ".safetensors", job, identity, inputs)
        opened = search.source, search.queries, config, plan
        gather(
            stage,
            search,
            self.execution,
            search.config.threads,
            opened=opened,
            unit="passage",
            plan=asdict(plan),
            **manifest,
        )
        self.lines = search.done


def _absolute(name: str) -> str:
    """Return the name of an encoder for workers, which have working directories of their own."""
    _, teacher, which = name.rpartition("teacher:")
    return f"{teacher}{Path(which).absolute() if (Path(which) / 'config.json').is_file() else which}"


def find_phrases(
    model: AnyModel | WordSource,
    queries: Sequence[str],
    input: Iterable[str] | PassageFile,
    config: SpanConfig | None = None,
    **settings: Unpack[SpanSettings],
) -> FoundPhrases:
    """Find, for each phrase, the spans of the passages that are nearest to it.

    Queries and passages may be in any of the model's languages. Of spans that overlap only the best is a hit. The result
    is exact: it is that of scoring every span.

    Args:
        model: a static embedding, or another source of words with vectors.
        queries: phrases; one without a known unit finds nothing.
        input: passages, read once, as a stream, only those with a hit are kept; or a file of them, see
            :class:`PassageFile`.
        config: the settings.
        settings: single fields of ``config``: ``k``, ``min_score``, ``max_size``, …

    Returns:
        For each query its hits, a tuple, best first; of equal scores the earlier passage, then the earlier span.

    Raises:
        ConfigError: the settings do not fit the model (see :class:`xswe.phrases.search.Search`).
        ModelError: it is an ensemble.
        TypeError: one text is given in the place of many.

    Example:
        hits = find_phrases(model, ["Lieferkette"], open("news.ja", encoding="utf-8"))
        hits[0][0].places[0].text
    """
    check_model(model, "find_phrases(model, queries, input)")
    passages = input if isinstance(input, (Iterator, PassageFile)) else texts_of(input, "input")
    config, queries = changed(config or SpanConfig(), settings, "a search of phrases"), texts_of(queries, "queries")
    source = open_words(model)
    search = Search(source, source.queries(queries), config)
    if unknown := [query for query, row in zip(queries, search.queries, strict=True) if not row.any()]:
        logger.warning("%d of %d phrases hold nothing that the model knows: %.200r", len(unknown), len(queries), unknown)
    if isinstance(passages, PassageFile):
        passages.find(search, queries)
        return FoundPhrases(tuple(queries), _resolve(search))
    with bar("search", unit="passage") as progress:
        for read in search.read(passages):
            progress.update(read)
    return FoundPhrases(tuple(queries), _resolve(search))


def _resolve(search: Search) -> tuple[tuple[Hit, ...], ...]:
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
        out.append(tuple(hits))
    return tuple(out)


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
