"""The hits of a query."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from xswe.io.results import Result


class Hit(NamedTuple):
    """A sentence found by a query: its cosine, its text, its number, and its metadata."""

    score: float
    text: str
    row: int
    metadata: Any = None


@dataclass(frozen=True)
class Hits(Result[Hit], row=Hit, entries="hits"):
    """The hits of one query, best first; a sequence of :class:`Hit`.

    Attributes:
        query: its text; None for a query vector.
        hits: the sentences found.
    """

    query: str | None
    hits: tuple[Hit, ...]

    def __repr__(self) -> str:
        return f"Hits({self.query!r}, {len(self)})"

    def __str__(self) -> str:
        return "\n".join(f"{hit.score:.4f}  {' '.join(hit.text.split())}" for hit in self) or "nothing found"

    def with_texts(self, texts: Iterable[str]) -> Hits:
        """Return the hits with their texts replaced by as many others."""
        return Hits(self.query, tuple(hit._replace(text=text) for hit, text in zip(self.hits, texts, strict=True)))
