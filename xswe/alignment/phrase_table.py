"""Phrase tables: linked phrases with their counts, probabilities and lexical weights."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from xswe.alignment.words import LinkedPair
from xswe.errors import ConfigError
from xswe.io.results import Result
from xswe.text.borders import opens_sentence
from xswe.text.forms import Forms
from xswe.text.scripts import has_kana

_KATAKANA = re.compile("[ァ-ヺーㇰ-ㇿｦ-ﾟ]{2,}")
_TWO_HAN = re.compile("(?<![㐀-鿿々])[㐀-鿿々]{2}(?![㐀-鿿々])")
_UNLINKED_PROBABILITY = 1e-7
Span = tuple[int, int]


class Phrase(NamedTuple):
    """Two linked phrases with their probabilities.

    Attributes:
        source: the phrase in its most frequent spelling; case is ignored in counting.
        target: its counterpart, likewise.
        times: how often they are linked.
        forward: probability of the target given the source.
        backward: probability of the source given the target.
        lexical_forward: lexical weight of the target given the source, from word links alone (Koehn et al., 2003).
        lexical_backward: lexical weight of the source given the target.
    """

    source: str
    target: str
    times: int
    forward: float
    backward: float
    lexical_forward: float
    lexical_backward: float


@dataclass(frozen=True, eq=False)
class PhraseTable(Result[Phrase], row=Phrase, entries="phrases"):
    """Phrases of a bitext, grouped by source, the most frequent first; a sequence of :class:`Phrase`.

    Attributes:
        phrases: the rows.
    """

    phrases: tuple[Phrase, ...]

    def __repr__(self) -> str:
        return f"PhraseTable({len(self):,} pairs)"


def phrase_table(links: Iterable[LinkedPair], *, most: int = 1, min_count: int = 1) -> PhraseTable:
    """Count linked phrases.

    Args:
        links: sentence pairs with links, as from :func:`xswe.align_words`.
        most: maximum words of a phrase on either side; 1 makes a dictionary. Phrases are pairs of runs of words without
            links to words outside the pair, as in phrase-based translation.
        min_count: leave out pairs linked less often.

    Example:
        >>> import xswe
        >>> model = xswe.load("mini")
        >>> links = xswe.align_words(model, ["A cat sleeps.", "The cat eats."], ["Eine Katze schläft.", "Die Katze isst."])
        >>> [(row.source, row.target, row.times) for row in phrase_table(links, min_count=2)]
        [('cat', 'Katze', 2)]
    """
    if most < 1 or min_count < 1:
        raise ConfigError(f"most={most}, min_count={min_count}: give at least 1")
    pairs: Counter[tuple[str, str]] = Counter()
    words: Counter[tuple[str, str]] = Counter()
    inside: dict[tuple[str, str], Counter[tuple[tuple[str, ...], tuple[str, ...], tuple[Span, ...]]]] = defaultdict(Counter)
    written = Forms(), Forms()
    for pair in map(with_whole_words, links):
        sides = _words(pair.source, pair.source_words), _words(pair.target, pair.target_words)
        words.update((sides[0][i], sides[1][j]) for i, j in pair.links)
        for (a, b), (c, d) in phrase_spans(pair, most):
            own = tuple(sorted((i - a, j - c) for i, j in pair.links if a <= i < b))
            texts = (
                noted(written[0], pair.source, pair.source_words[a][0], pair.source_words[b - 1][1], str.lower),
                noted(written[1], pair.target, pair.target_words[c][0], pair.target_words[d - 1][1], str.lower),
            )
            pairs[texts] += 1
            if len(inside[texts]) < 4:  # alignments within the phrase; the most frequent one is used
                inside[texts][tuple(sides[0][a:b]), tuple(sides[1][c:d]), own] += 1
    (forward, backward), chances = _chances(pairs), _chances(words)
    kept = {texts: count for texts, count in pairs.items() if count >= min_count}
    sources, targets = (forms.ranked({texts[side] for texts in kept}) for side, forms in enumerate(written))
    out = []
    for (source, target), count in sorted(kept.items(), key=lambda item: (item[0][0], -item[1], item[0][1])):
        here, there, own = inside[source, target].most_common(1)[0][0]
        lexical = _weight(there, here, [(j, i) for i, j in own], chances[0]), _weight(here, there, own, chances[1])
        shown = sources[source][0], targets[target][0]
        out.append(Phrase(*shown, count, forward[target, source], backward[source, target], *lexical))
    return PhraseTable(tuple(out))


def with_whole_words(pair: LinkedPair, han: bool = False) -> LinkedPair:
    """Merge units that are parts of one Katakana word into one word, with the links of all of them.

    ``han`` also merges isolated pairs of Han characters in Japanese: the model does not know 治世.
    """
    sides = (pair.source, pair.source_words), (pair.target, pair.target_words)
    (source, here), (target, there) = (_whole(*side, han) for side in sides)
    if source is pair.source_words and target is pair.target_words:
        return pair
    links: dict[Span, float] = {}
    for (i, j), score in zip(pair.links, pair.scores, strict=True):
        both = here[i], there[j]
        links[both] = max(score, links.get(both, -1.0))
    ranked = sorted(links.items())
    return LinkedPair(*pair[:2], source, target, tuple(both for both, _ in ranked), tuple(score for _, score in ranked))


def _whole(text: str, places: tuple[Span, ...], han: bool) -> tuple[tuple[Span, ...], Sequence[int]]:
    """Widen word places to the runs that they overlap; return the words, and the new index of each old word."""
    runs = [match.span() for match in _KATAKANA.finditer(text)]
    if han and has_kana(text):
        runs += [match.span() for match in _TWO_HAN.finditer(text)]
    if not runs:
        return places, range(len(places))
    words: list[Span] = []
    became = []
    for start, end in places:
        for first, last in runs:
            if first < end and last > start:
                start, end = min(start, first), max(end, last)
        if words and start < words[-1][1]:
            words[-1] = min(start, words[-1][0]), max(end, words[-1][1])
        else:
            words.append((start, end))
        became.append(len(words) - 1)
    return tuple(words), became


def _words(text: str, places: Sequence[Span]) -> list[str]:
    return [text[a:b].lower() for a, b in places]


def noted(written: Forms, text: str, start: int, end: int, fold: Callable[[str], str]) -> str:
    """Record the spelling of a span of a text, and return the key to count it by."""
    form = " ".join(text[start:end].split())
    folded = fold(form)
    written.add(folded, form, form == folded or not opens_sentence(text, start))
    return folded


def phrase_spans(pair: LinkedPair, most: int) -> Iterator[tuple[Span, Span]]:
    """Yield pairs of runs of words, (first, one past the last) on either side, that are linked only to each other.

    Both runs begin and end with linked words.
    """
    partners: dict[int, list[int]] = defaultdict(list)
    back: dict[int, list[int]] = defaultdict(list)
    for i, j in pair.links:
        partners[i].append(j)
        back[j].append(i)
    for a in sorted(partners):
        low, high = len(pair.target_words), -1
        for b in range(a, min(a + most, len(pair.source_words))):
            if b not in partners:
                continue
            low, high = min(low, *partners[b]), max(high, *partners[b])
            if high - low >= most:
                break
            if all(a <= i <= b for j in range(low, high + 1) for i in back.get(j, ())):
                yield (a, b + 1), (low, high + 1)


def _chances(pairs: Counter[tuple[str, str]]) -> tuple[dict[tuple[str, str], float], dict[tuple[str, str], float]]:
    """Return the probabilities of targets given sources, and of sources given targets."""
    totals: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
    for (a, b), count in pairs.items():
        totals[0][a] += count
        totals[1][b] += count
    forward = {(b, a): count / totals[0][a] for (a, b), count in pairs.items()}
    return forward, {(a, b): count / totals[1][b] for (a, b), count in pairs.items()}


def _weight(
    words: Sequence[str], given: Sequence[str], links: Iterable[Span], chances: dict[tuple[str, str], float]
) -> float:
    """Return the product, over the words, of the mean probability given the words they are linked to."""
    linked: dict[int, list[int]] = defaultdict(list)
    for i, j in links:
        linked[i].append(j)
    weight = 1.0
    for i, word in enumerate(words):
        own = [chances.get((word, given[j]), _UNLINKED_PROBABILITY) for j in linked.get(i, ())]
        weight *= sum(own) / len(own) if own else _UNLINKED_PROBABILITY
    return weight
