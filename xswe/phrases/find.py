"""Phrases in, hits out: passages streamed through a search, which may be killed and goes on where it stopped."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from xswe.io.files import fingerprint
from xswe.io.settings import changed
from xswe.model.ensemble import AnyModel
from xswe.phrases.kernels.top import Top
from xswe.phrases.search import Search, SpanConfig
from xswe.phrases.shards import PhraseShards
from xswe.phrases.state import restore, save, searched
from xswe.phrases.words import WordSource, open_words
from xswe.progress import bar
from xswe.text.units import in_blocks

logger = logging.getLogger(__name__)


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


def find_phrases(
    model: AnyModel | WordSource,
    queries: Sequence[str],
    passages: Iterable[str],
    config: SpanConfig | None = None,
    *,
    checkpoint: Path | None = None,
    passages_identity: object = None,
    checkpoint_seconds: float = 60.0,
    shards: PhraseShards | None = None,
    **settings: Any,
) -> list[list[Hit]]:
    """Find, for each phrase, the spans of the passages that are nearest to it.

    Queries and passages may be in any of the model's languages. Of spans that overlap only the best is a hit. The result
    is exact unless ``config.first_stage`` says otherwise: it is that of scoring every span.

    Args:
        model: a static embedding, or another source of words with vectors.
        queries: phrases; one without a known unit finds nothing.
        passages: read once, as a stream; only those with a hit are kept.
        config: the settings.
        checkpoint: a file that the state is saved to now and then, and resumed from if it is there and fits.
        passages_identity: with ``checkpoint``, what tells these passages from others, as a JSON value.
        checkpoint_seconds: how often to save.
        shards: search these passages, and by many processes, in the place of ``passages``.
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
    if shards is not None:
        return _resolve(search, shards.find(search, queries))
    texts: dict[int, str] = {}
    done, identity = 0, ""
    if checkpoint is not None:
        same = {k: v for k, v in asdict(config).items() if k not in ("threads", "prune")}
        well_formed = [text for block in in_blocks(queries) for text in block]
        identity = fingerprint(source.identity, Top._fields, same, well_formed, passages_identity)
        if state := restore(checkpoint, identity):
            search.top, texts, done = state
    saved = time.monotonic()
    with bar("search", unit="passage", initial=done) as progress:
        for reached in searched(search, passages, texts, done):
            progress.update(reached - done)
            done = reached
            if checkpoint is not None and time.monotonic() - saved >= checkpoint_seconds:
                save(checkpoint, identity, search.top, texts, done)
                saved = time.monotonic()
    return _resolve(search, texts)


def _resolve(search: Search, texts: dict[int, str]) -> list[list[Hit]]:
    """Turn word numbers into characters: only now are the few passages that hold a hit read with offsets."""
    top = search.top
    places = dict(zip(texts, search.source.places(list(texts.values())), strict=True))

    def place(passage: int, first: int, last: int) -> Place:
        where = places[passage]
        return Place(passage, int(where[first, 0]), int(where[first:last, 1].max()), texts[passage])

    out = []
    for q in range(len(search.queries)):
        hits = []
        for r in range(int(top.used[q])):
            examples = min(int(top.times[q, r]), top.passages.shape[2])
            found = [
                place(int(top.passages[q, r, e]), int(top.first[q, r, e]), int(top.last[q, r, e])) for e in range(examples)
            ]
            hits.append(Hit(float(top.scores[q, r]), int(top.times[q, r]), int(top.spread[q, r]), tuple(found)))
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
