"""Word links between a sentence and its translation, from word vectors alone.

The methods are those of SimAlign (Jalili Sabet et al., 2020) for similarities of words: the best partners of either side,
their intersection, the same with further turns for unlinked words (``itermax``), and optimal transport; with a penalty on
the distance of two words' relative positions.
"""

from __future__ import annotations

import html
import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Unpack

import numpy as np

from xswe.alignment import kernels
from xswe.errors import ConfigError, ModelError
from xswe.io.arguments import check_model, texts_of
from xswe.io.files import open_output
from xswe.io.ragged import Bags
from xswe.io.results import Result, check_suffix
from xswe.io.settings import changed, check_choice, for_all, refuse_unused
from xswe.io.sources import suffix_of
from xswe.io.suffixes import SUFFIXES, TABLES
from xswe.model.ensemble import AnyModel
from xswe.model.static import StaticModel
from xswe.progress import bar
from xswe.text.borders import whole_words, without_particles
from xswe.text.scripts import has_kana
from xswe.text.spans import make_cutter

if TYPE_CHECKING:
    from xswe.settings import LinkSettings

LinkMethod = Literal["itermax", "intersection", "forward", "backward", "union", "transport"]
_METHODS = for_all(
    LinkMethod,
    {
        **{"forward": kernels.FORWARD, "backward": kernels.BACKWARD, "intersection": kernels.INTERSECTION},
        **{"union": kernels.UNION, "itermax": kernels.ITERMAX, "transport": kernels.TRANSPORT},
    },
)
_TOKEN = re.compile(r"[^ \t]+")
BLOCK = 4096  # pairs at a time
_MARKS = str.maketrans("。、，！？：；「」『』（）“”‘’«»„", '.,,!?:;""""()""\'\'"""')


@dataclass(frozen=True)
class LinkConfig:
    """How words are linked.

    Attributes:
        method: ``transport``: optimal transport; ``intersection``: pairs that are the best for both words; ``itermax``:
            these, with further turns for unlinked words; ``forward``, ``backward``: the best pair of each source or target
            word; ``union`` of both.
        prior: penalty on the cosine of words a whole sentence apart.
        min_score: minimum cosine of a link.
        turns: with ``itermax``: number of further turns.
        keep: with ``itermax``: share of its similarities that a linked word keeps in a further turn.
        heat: with ``transport``: temperature; the lower, the fewer partners a word has.
        share: with ``transport``: minimum share of a word's mass that a link carries.
    """

    method: LinkMethod = "transport"
    prior: float = 0.4
    min_score: float = 0.1
    turns: int = 1
    keep: float = 0.9
    heat: float = 0.1
    share: float = 0.3

    def __post_init__(self) -> None:
        check_choice("method", self.method, LinkMethod)
        if self.prior < 0 or self.turns < 0:
            raise ConfigError(f"prior={self.prior}, turns={self.turns}: give no negative number")
        if self.heat <= 0 or not 0 < self.share <= 1 or not 0 < self.keep <= 1:
            raise ConfigError(f"heat={self.heat}, share={self.share}, keep={self.keep}: give numbers above 0, up to 1")
        unused = {"itermax": ("turns", "keep"), "transport": ("heat", "share")}
        refuse_unused(self, {f"without method={one}": names for one, names in unused.items() if one != self.method})


class LinkedPair(NamedTuple):
    """A sentence, its translation, and the links of their words.

    Attributes:
        source: the sentence.
        target: its translation.
        source_words: places of the source's words, (first character, one past the last) each.
        target_words: likewise.
        links: pairs of word numbers, from 0, in order.
        scores: their cosines.
    """

    source: str
    target: str
    source_words: tuple[tuple[int, int], ...]
    target_words: tuple[tuple[int, int], ...]
    links: tuple[tuple[int, int], ...]
    scores: tuple[float, ...]

    @property
    def linked(self) -> list[tuple[str, str]]:
        """The links as pairs of words."""
        a, b = self.source_words, self.target_words
        return [(self.source[slice(*a[i])], self.target[slice(*b[j])]) for i, j in self.links]

    def counterpart(self, start: int, end: int) -> tuple[int, int] | None:
        """Return the probable translation of a source span: from the first to the last word linked to it.

        Of the linked words, only the run with the highest sum of cosines counts; isolated words elsewhere are ignored.
        Katakana words are kept whole, and particles at the ends of Japanese are left out.

        Args:
            start: the span's first character in the source.
            end: one past its last.

        Returns:
            The characters of the target; None if no word of the span has a link.
        """
        inside = {i for i, (a, b) in enumerate(self.source_words) if a < end and b > start}
        found = sorted((j, score) for (i, j), score in zip(self.links, self.scores, strict=True) if i in inside)
        if not found:
            return None
        runs: list[list[tuple[int, float]]] = []
        for j, score in found:
            if runs and j - runs[-1][-1][0] <= 2:
                runs[-1].append((j, score))
            else:
                runs.append([(j, score)])
        best = max(runs, key=lambda run: sum(score for _, score in run))
        span = whole_words(self.target, self.target_words[best[0][0]][0], self.target_words[best[-1][0]][1])
        return without_particles(self.target, *span, True) if has_kana(self.target) else span


_COLUMNS = ("pair", "source", "target", "score", "source_start", "source_end", "target_start", "target_end")


@dataclass(frozen=True, eq=False)
class WordLinks(Result[LinkedPair], entries="pairs", row=_COLUMNS):
    """Sentence pairs with links; a sequence of :class:`LinkedPair`.

    Attributes:
        pairs: the pairs.
    """

    pairs: tuple[LinkedPair, ...]

    def __repr__(self) -> str:
        return f"WordLinks({len(self):,} pairs, {sum(len(pair.links) for pair in self):,} links)"

    def records(self) -> Iterator[tuple[Any, ...]]:
        """Yield the links as rows; pairs count from 0."""
        for number, pair in enumerate(self):
            for (i, j), score, (a, b) in zip(pair.links, pair.scores, pair.linked, strict=True):
                yield (number, a, b, round(score, 6), *pair.source_words[i], *pair.target_words[j])

    def html(self) -> str:
        """Return a standalone page with each pair, in which linked words have the same colour."""
        return "".join(_page(self))

    def write(self, path: str | Path) -> None:
        """Write the links atomically.

        Args:
            path: ``.html`` for coloured words, ``.jsonl`` for an object a pair; a suffix of :meth:`Result.write` for a
                row a link; any other, and ``-``, for the Pharaoh format.
        """
        if holds_all(path):
            super().write(path)
        else:
            write_links(path, self)


def holds_all(path: str | Path) -> bool:
    """Return True if a file is a table, which is written only when all links are known; others are streamed."""
    return suffix_of(path) in _TABLES


def check_links(path: str | Path) -> None:
    """Check that links can be written to a file of this suffix.

    ConfigError: they cannot. DependencyError: the library that writes it is not installed.
    """
    suffix = suffix_of(path)
    if holds_all(path):
        check_suffix(path)
    elif suffix in SUFFIXES and suffix not in (*_PAGES, ".jsonl", ".txt"):
        raise ConfigError(f"{path}: links are not written as {suffix}; use .txt, .html, .jsonl, {', '.join(_TABLES)}")


def write_links(path: str | Path, pairs: Iterable[LinkedPair]) -> None:
    """Write a stream of links atomically; see :meth:`WordLinks.write`."""
    check_links(path)
    suffix = suffix_of(path)
    lines = _page if suffix in _PAGES else _objects if suffix == ".jsonl" else _pharaoh
    with open_output(str(path)) as stream:
        stream.writelines(line.encode("utf-8", "backslashreplace") for line in lines(pairs))


def _pharaoh(pairs: Iterable[LinkedPair]) -> Iterator[str]:
    """Yield a line a pair: ``0-0 1-2``, word numbers from 0."""
    return (" ".join(f"{i}-{j}" for i, j in pair.links) + "\n" for pair in pairs)


def _objects(pairs: Iterable[LinkedPair]) -> Iterator[str]:
    return (json.dumps(pair._asdict(), ensure_ascii=False) + "\n" for pair in pairs)


def _page(pairs: Iterable[LinkedPair]) -> Iterator[str]:
    """Yield a standalone page with each pair, in which linked words have the same colour."""
    yield f"<!doctype html><html><meta charset='utf-8'><title>Word links</title><style>{_STYLE}</style>\n<table>"
    for source, target in map(_coloured, pairs):
        yield f"<tr><td>{source}</td><td>{target}</td></tr>\n"
    yield "</table></html>\n"


_PAGES = (".html", ".htm")
_TABLES = tuple(suffix for suffix in TABLES if suffix != ".jsonl")
_STYLE = "body{font:16px/1.8 sans-serif}td{padding:.3em .8em;vertical-align:top;width:50%}span{border-radius:.2em}"


def _coloured(pair: LinkedPair) -> tuple[str, str]:
    """Return both sides as HTML, with a colour for each group of words connected by links."""
    group: dict[tuple[int, int], int] = {}
    for number, (i, j) in enumerate(pair.links):
        old = {group[key] for key in ((0, i), (1, j)) if key in group}
        group |= {key: number for key, value in group.items() if value in old} | {(0, i): number, (1, j): number}
    hues = {value: 137.5 * place % 360 for place, value in enumerate(dict.fromkeys(group.values()))}
    out = []
    for side, (text, words) in enumerate(((pair.source, pair.source_words), (pair.target, pair.target_words))):
        parts, end = [], 0
        for place, (a, b) in enumerate(words):
            parts.append(html.escape(text[end:a]))
            word = html.escape(text[a:b])
            known = group.get((side, place))
            parts.append(
                word if known is None else f'<span style="background:hsl({hues[known]:.0f} 75% 82%)">{word}</span>'
            )
            end = b
        out.append("".join([*parts, html.escape(text[end:])]))
    return out[0], out[1]


def align_words(
    model: AnyModel,
    source: Sequence[str],
    target: Sequence[str],
    *,
    tokens: bool = False,
    config: LinkConfig | None = None,
    **settings: Unpack[LinkSettings],
) -> WordLinks:
    """Link the words of sentences and their translations.

    Args:
        model: a static model.
        source: sentences.
        target: their translations, as many.
        tokens: split words at whitespace, as in tokenised text; by default, use the model's words: split at whitespace and
            punctuation, or the model's units for Chinese and Japanese.
        config: settings; see :class:`LinkConfig`.
        settings: single fields of ``config``: ``method``, ``prior``, ``min_score``, …

    Raises:
        ConfigError: the sides differ in length, or a setting is unknown or impossible.
        ModelError: the model is an ensemble, which has no word vectors.

    Example:
        >>> import xswe
        >>> links = xswe.align_words(xswe.load("mini"), ["The cat sleeps here."], ["Hier schläft die Katze."])
        >>> links[0].linked
        [('The', 'die'), ('cat', 'Katze'), ('sleeps', 'schläft'), ('here', 'Hier')]
    """
    config = changed(config or LinkConfig(), settings, "align_words")
    check_model(model, "align_words(model, source, target)")
    source, target = texts_of(source, "source"), texts_of(target, "target")
    if len(source) != len(target):
        raise ConfigError(f"{len(source):,} sentences and {len(target):,} translations: give the same number of both")
    return WordLinks(tuple(link_pairs(model, zip(source, target, strict=True), config, tokens, len(source))))


def link_pairs(
    model: AnyModel, pairs: Iterable[tuple[str, str]], config: LinkConfig, tokens: bool = False, total: int | None = None
) -> Iterator[LinkedPair]:
    """Link the words of a stream of sentence pairs, a few thousand at a time; see :func:`align_words`.

    ``tokens``: split words at whitespace; ``total`` is the number of pairs, if known.
    """
    if not isinstance(model, StaticModel):
        raise ModelError("an ensemble has no single table of vectors; give one of its parts, as in model.parts[0]")
    return _linked_blocks(partial(_read_tokens if tokens else _read_words, model), iter(pairs), config, total)


def _linked_blocks(
    reader: Callable[[list[str]], Read], pairs: Iterator[tuple[str, str]], config: LinkConfig, total: int | None
) -> Iterator[LinkedPair]:
    with bar("link", total=total, unit="pair") as progress:
        while block := list(islice(pairs, BLOCK)):
            yield from _linked(reader, [list(side) for side in zip(*block, strict=True)], config)
            progress.update(len(block))


def counterparts(
    model: AnyModel, sides: Sequence[tuple[str, str]], spans: Sequence[Sequence[tuple[int, int]]]
) -> list[list[tuple[int, int] | None]]:
    """Find the probable translations of spans (first character, one past the last) in the translations of sentences.

    Returns the place of each span's translation, or None if no word of the span has a link. ModelError: see
    :func:`align_words`.
    """
    links = align_words(model, [text for text, _ in sides], [text for _, text in sides])
    return [[pair.counterpart(*span) for span in own] for pair, own in zip(links, spans, strict=True)]


def link_vectors(source: np.ndarray, target: np.ndarray, **settings: Unpack[LinkSettings]) -> list[tuple[int, int]]:
    """Link the words of one pair by given vectors, float32 (words, d) for either side; see :func:`align_words`.

    Returns pairs of word numbers, from 0, in order.
    """

    def read(texts: list[str]) -> Read:
        rows = sides.pop()
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        unit = np.ascontiguousarray(rows / np.where(norms > 0, norms, 1), np.float32)
        return unit, np.array([0, len(rows)], np.int64), [np.zeros((len(rows), 2), np.int32)]

    sides = [target, source]
    (pair,) = _linked(read, [[""], [""]], changed(LinkConfig(), settings, "link_vectors"))
    return list(pair.links)


Read = tuple[np.ndarray, np.ndarray, list[np.ndarray]]  # unit vectors of words, bounds of each text, places in it


def _read_words(model: StaticModel, texts: list[str]) -> Read:
    """Read texts as the model's words."""
    cutter = make_cutter(model.units)
    cut, places = cutter.cut(texts), cutter.places(texts)
    return model.pool(Bags(cut.ids, cut.words)), cut.texts, places


def _read_tokens(model: StaticModel, texts: list[str]) -> Read:
    """Read texts as words separated by whitespace."""
    words, bounds, places = [], [0], []
    for text in texts:
        found = [match.span() for match in _TOKEN.finditer(text)]
        words += [text[a:b] for a, b in found]
        places.append(np.array(found, np.int32).reshape(-1, 2))
        bounds.append(len(words))
    return _word_vectors(model, words), np.array(bounds, np.int64), places


def _word_vectors(model: StaticModel, words: Sequence[str]) -> np.ndarray:
    """Return unit vectors of words; words without a vector, mostly punctuation, get a random one, seeded by the word."""
    vectors = model.encode(list(words))
    for row in np.flatnonzero(~vectors.any(1)).tolist():
        bare = unicodedata.normalize("NFKC", words[row].translate(_MARKS)).casefold()
        random = np.random.default_rng(list(bare.encode("utf-8", "replace"))).normal(size=vectors.shape[1])
        vectors[row] = random / np.linalg.norm(random)
    return vectors


def _linked(reader: Callable[[list[str]], Read], texts: list[list[str]], config: LinkConfig) -> Iterator[LinkedPair]:
    (a, bounds_a, places_a), (b, bounds_b, places_b) = (reader(side) for side in texts)
    wide, high = (max(1, int(np.diff(bounds).max(initial=1))) for bounds in (bounds_a, bounds_b))
    square = (wide, high)
    room = (
        *(np.empty(square, np.float32) for _ in range(2)),
        *(np.empty(size, np.int64) for size in square),
        np.empty(square, np.bool_),
        *(np.empty(size) for size in square),
    )
    most = (
        (len(a) + len(b)) * (1 + config.turns)
        if config.method != "transport"
        else int((np.diff(bounds_a) * np.diff(bounds_b)).sum())
    )
    links, scores, ends = np.empty((most, 2), np.int32), np.empty(most, np.float32), np.zeros(len(texts[0]) + 1, np.int64)
    least = np.float32(config.min_score)  # as the cosines are
    how = (_METHODS[config.method], config.prior, least, config.turns, config.keep, config.heat, config.share)
    kernels.link_words(a, b, (bounds_a, bounds_b), how, room, links, scores, ends)
    for row, (left, right) in enumerate(zip(*texts, strict=True)):
        own = slice(int(ends[row]), int(ends[row + 1]))
        words, others, found = (tuple(map(tuple, one.tolist())) for one in (places_a[row], places_b[row], links[own]))
        yield LinkedPair(left, right, words, others, found, tuple(scores[own].tolist()))
