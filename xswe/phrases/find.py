"""``find_phrases``: passages streamed through the span search."""

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
_SPARE_HITS = 32  # distinct spans kept a shard in addition to k: with equal scores, others may come first overall


@dataclass(frozen=True)
class Place:
    """A span of a passage.

    Attributes:
        passage: number of the passage, from 0.
        start: first character of the span in the passage.
        end: one past its last character.
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
        """Return up to ``most`` characters before and after the span, with an ellipsis where text is cut off."""
        before, after = self.context[: self.start], self.context[self.end :]
        return "…" * (len(before) > most) + before[max(0, len(before) - most) :], after[:most] + "…" * (len(after) > most)


@dataclass(frozen=True)
class Hit:
    """A span similar to a phrase.

    Attributes:
        score: the cosine of the two.
        times: number of occurrences if equal spans are counted, else 1.
        passages: number of passages with it, likewise.
        places: its places; of equal spans, the first few.
    """

    score: float
    times: int
    passages: int
    places: tuple[Place, ...]


@dataclass(frozen=True)
class FoundPhrases(
    Result[tuple[Hit, ...]], entries="found", row=("query", "score", "text", "times", "passages", "passage", "context")
):
    """The hits of several phrases: a sequence with the hits of each phrase; in tables, a row a hit.

    Attributes:
        queries: the phrases.
        found: the hits of each phrase, best first.
    """

    queries: tuple[str, ...]
    found: tuple[tuple[Hit, ...], ...]

    def __repr__(self) -> str:
        return f"FoundPhrases({len(self.queries)} phrases, {sum(map(len, self.found))} hits)"

    def records(self) -> Iterator[tuple[Any, ...]]:
        """Yield a row a hit, with its first place."""
        for query, hits in zip(self.queries, self.found, strict=True):
            for hit in hits:
                first = hit.places[0]
                yield query, hit.score, first.text, hit.times, hit.passages, first.passage, first.context


@dataclass(frozen=True)
class PhraseJob(GatherJob):
    """Search the passages of a shard."""

    folder: Path  # of the stage; its manifest has the other settings
    model: Path  # where the model is, unless it has a name
    heavy: bool  # whether the model is an encoder

    def open(self) -> tuple[WordSource, np.ndarray, SpanConfig, TextPlan]:
        """Load the model and the plan."""
        manifest = read_json(self.folder / "manifest.json")
        source = load_words(manifest["model"] or str(self.model), 1)
        return source, source.queries(manifest["queries"]), SpanConfig(**manifest["config"]), TextPlan.read(self.folder)

    def share(self, opened: Any) -> None:
        """Save a model without a name, for other processes to load."""
        if isinstance(opened[0], StaticWords):
            share_model(opened[0].model, self.model)

    def records(self, opened: Any, shard: int) -> Iterator[str]:
        """Iterate over the passages of a shard."""
        file, span = opened[3].shard(shard)
        return (text for block in read_blocks(file, span=span) for text in block)

    def empty(self, opened: Any) -> Search:
        """Return a search without passages."""
        return Search(*opened[:3])


@dataclass
class PassageFile:
    """A file of passages, one a line, and how its search is executed."""

    path: str
    folder: Path  # for unfinished work; with several processes, all must be able to write there
    execution: ExecutionConfig = LOCAL
    model: str = ""  # the name of an encoder, for other processes to load
    lines: int = 0  # number of passages, known at the end

    def find(self, search: Search, queries: Sequence[str]) -> None:
        """Fill the lists of a search, and its passages with hits.

        ConfigError: other processes cannot load the encoder. XsweError: shards failed. Unfinished: with
        ``execution=array``, other tasks are not done yet.
        """
        config = replace(search.config, threads=1, k=search.config.k + _SPARE_HITS * search.config.distinct)
        plan, inputs = TextPlan.of([self.path], self.execution.shard)
        is_static = isinstance(search.source, StaticWords)
        if not (is_static or self.model or self.execution.alone):
            raise ConfigError("other processes must load the encoder of the search: give its name or folder")
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
    """Return an encoder's name for workers, with an absolute path because their working directories differ."""
    _, teacher, which = name.rpartition("teacher:")
    return f"{teacher}{Path(which).absolute() if (Path(which) / 'config.json').is_file() else which}"


def find_phrases(
    model: AnyModel | WordSource,
    queries: Sequence[str],
    input: Iterable[str] | PassageFile,
    config: SpanConfig | None = None,
    **settings: Unpack[SpanSettings],
) -> FoundPhrases:
    """Find the spans of the passages most similar to each phrase.

    Queries and passages may be in any of the model's languages. Among overlapping spans, only the best is a hit. The search
    is exact: the result is the same as from scoring every span.

    Args:
        model: a static embedding, or another source of words with vectors.
        queries: phrases; a phrase without known units finds nothing.
        input: passages, streamed once, of which only those with hits are kept; or a :class:`PassageFile`.
        config: the settings.
        settings: single fields of ``config``: ``k``, ``min_score``, ``max_size``, …

    Returns:
        A tuple of hits for each query, best first; ties go to the earlier passage, then the earlier span.

    Raises:
        ConfigError: the settings do not fit the model (see :class:`xswe.phrases.search.Search`).
        ModelError: the model is an ensemble.
        TypeError: a single text is given instead of a sequence.

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
        logger.warning("%d of %d phrases have no unit that the model knows: %.200r", len(unknown), len(queries), unknown)
    if isinstance(passages, PassageFile):
        passages.find(search, queries)
        return FoundPhrases(tuple(queries), _resolve(search))
    with bar("search", unit="passage") as progress:
        for read in search.read(passages):
            progress.update(read)
    return FoundPhrases(tuple(queries), _resolve(search))


def _resolve(search: Search) -> tuple[tuple[Hit, ...], ...]:
    """Turn word numbers into characters; only the few passages with hits are read with offsets, at the end."""
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
    """Yield texts with the span most similar to a query marked, unless it is the whole text."""
    source = open_words(model)
    for text in texts:
        hits = find_phrases(source, [query], [text], k=1)[0]
        place = hits[0].places[0] if hits else None
        if place is None or place.text == text.strip():
            yield text
        else:
            yield f"{text[: place.start]}{before}{place.text}{after}{text[place.end :]}"
