"""Dictionaries from word vectors: two word lists, or the model's own words, paired by CSLS."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Unpack

import numpy as np

from xswe.bitext.output import one_line
from xswe.bitext.source import Source, read_pairs
from xswe.errors import ConfigError, InputError
from xswe.io.arguments import texts_of
from xswe.io.files import check_output
from xswe.io.lines import Skipped, left_out_of, read_lines
from xswe.io.results import Result, check_suffix, write_text
from xswe.io.settings import changed, check_least, refuse_unused
from xswe.io.sources import suffix_of
from xswe.mining.margin import Pairs, score_candidates, select
from xswe.model.ensemble import AnyModel, Ensemble, open_model
from xswe.model.static import StaticModel
from xswe.search.lists import SearchConfig
from xswe.search.neighbours import find_neighbours
from xswe.text.languages import LANGUAGES, check_languages

if TYPE_CHECKING:
    from xswe.settings import DictionarySettings


@dataclass(frozen=True)
class LexiconConfig:
    """How words are paired.

    Attributes:
        best: number of translations a word.
        mutual: keep a pair only if each word is in the other's list.
        k: number of neighbours that CSLS averages over (MUSE: 10).
        candidates: number of nearest words by cosine from which CSLS chooses.
        neighbours: settings of the neighbour search.
    """

    best: int = 1
    mutual: bool = True
    k: int = 10
    candidates: int = 50
    neighbours: SearchConfig = field(default_factory=SearchConfig)

    def __post_init__(self) -> None:
        if min(self.best, self.k) < 1 or self.candidates < max(self.best, self.k):
            raise ConfigError(
                f"best={self.best}, k={self.k}, candidates={self.candidates}: need 1 <= best, k <= candidates"
            )


@dataclass(frozen=True)
class Precision:
    """How good a lexicon is on the source words of a gold lexicon."""

    at_1: float  # fraction of the words whose first translation is a gold one
    at_5: float  # fraction of the words with a gold translation among the first five
    words: int  # gold source words in the source vocabulary, with a gold translation in the target vocabulary
    gold: int  # all gold source words

    def __str__(self) -> str:
        figures = f"P@1 {100 * self.at_1:.1f}, P@5 {100 * self.at_5:.1f}"
        return f"{figures} on {self.words:,} of {self.gold:,} gold words (those in both vocabularies)"


def vocabularies(model: StaticModel, languages: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the words of two languages.

    ConfigError: the languages share a script, and the model has no counts to tell their units apart.
    """
    source, target = check_languages(languages)
    scripts = {LANGUAGES[code].script if LANGUAGES[code].spaced else "han" for code in (source, target)}
    if len(scripts) == 1 and model.counts is None:
        raise ConfigError(
            f"{source} and {target} share a script, and the model has no unit counts to tell them apart "
            "(counts.safetensors, which train writes): give word lists, source=words.txt target=words.txt"
        )
    return list(model.words(source)), list(model.words(target))


def read_words(given: str | Path | Sequence[str], limit: int, left_out: Skipped) -> list[str]:
    """Read distinct words, one a line of a file or a text of a list; anything after a tab (such as a count) is ignored.

    Blank and repeated ones are counted. InputError: the file is missing or has no word.
    """
    words: dict[str, None] = {}
    lines = (line for _, line in read_lines(given)) if isinstance(given, (str, Path)) else texts_of(given, "words")
    for line in lines:
        word = (line or "").split("\t")[0].strip()
        if not word or word in words:
            left_out.add("repeated" if word else "blank")
        else:
            words[word] = None
        if limit and len(words) >= limit:
            break
    if not words and isinstance(given, (str, Path)):
        raise InputError(given, "no word in it", "give a file with a word a line")
    return list(words)


def make_lexicon(
    model: AnyModel, source: Sequence[str], target: Sequence[str], config: LexiconConfig | None = None
) -> Pairs:
    """Pair distinct words by CSLS, sorted by source word and rank; words without any known unit are left out."""
    config = config or LexiconConfig()
    vectors = [model.encode(list(words), threads=config.neighbours.workers) for words in (source, target)]
    known = [np.flatnonzero(np.abs(each).max(1, initial=0) > 0) for each in vectors]
    parts = [np.ascontiguousarray(each[rows]) for each, rows in zip(vectors, known, strict=True)]
    lists = find_neighbours(parts[0], parts[1], config.candidates, config.neighbours)
    forward = select(score_candidates(lists, "csls", config.k), "kbest", config.best)
    if config.mutual:
        backward = select(score_candidates(lists.reversed(), "csls", config.k), "kbest", config.best)
        there = np.int64(max(1, len(known[1])))
        both = np.isin(forward.source * there + forward.target, backward.target * there + backward.source)
        forward = forward.take(both)
    return Pairs(forward.scores, known[0][forward.source], known[1][forward.target], forward.rank)


def precision(
    model: AnyModel,
    source: Sequence[str],
    target: Sequence[str],
    gold: str | Path,
    config: LexiconConfig | None = None,
) -> Precision:
    """Evaluate against a gold lexicon, ``source<TAB>target`` a line, one line for each translation of a word.

    Case is ignored. Words outside the vocabularies cannot be found and do not count; ``words`` is the number that do.
    """
    config = config or LexiconConfig()
    config = replace(config, best=5, mutual=False, candidates=max(5, config.candidates))
    answers: dict[str, set[str]] = {}
    for a, b in read_pairs(Source((str(gold),)), whole=True):
        answers.setdefault(a.casefold(), set()).add(b.casefold())
    there = {word.casefold() for word in target}
    queries = [w for w in source if w.casefold() in answers and answers[w.casefold()] & there]
    if not queries:
        raise InputError(gold, "no pair of words in both vocabularies", "check the languages and their order")
        # All source words take part, because they make up the targets' neighbourhoods.
    found = make_lexicon(model, source, target, config)
    lists: dict[int, list[str]] = {}
    for row, column in zip(found.source.tolist(), found.target.tolist(), strict=True):
        lists.setdefault(row, []).append(target[column].casefold())
    place = {word: i for i, word in enumerate(source)}
    answered = [(lists.get(place[word], []), answers[word.casefold()]) for word in queries]
    first, five = (np.mean([not right.isdisjoint(words[:n]) for words, right in answered]) for n in (1, 5))
    return Precision(float(first), float(five), len(queries), len(answers))


@dataclass(frozen=True)
class DictionaryConfig(LexiconConfig):
    """Which words are paired, and how.

    Attributes:
        languages: of source and target, as in ``[en,ja]``; not needed for a model of two languages, nor with word lists.
        limit: use only the first words of each side, up to this number; 0 for all.
        gold: lexicon of ``source<TAB>target`` to report P@1 and P@5 against; null for none.
    """

    languages: tuple[str, ...] = ()
    limit: int = 0
    gold: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_least(self, limit=0)


class Entry(NamedTuple):
    """A word and a translation of it.

    Attributes:
        source: the word.
        target: its translation.
        csls: twice their cosine, less the mean cosines of both words' nearest neighbours (twice the distance margin).
        rank: place in the word's list, from 0.
    """

    source: str
    target: str
    csls: float
    rank: int


@dataclass(frozen=True, eq=False)
class Dictionary(Result[Entry], row=Entry, entries="entries"):
    """Words and their translations, by source word and rank; a sequence of :class:`Entry`.

    Attributes:
        entries: the rows.
        words: number of words on each side.
        precision: precision against a gold lexicon; None without one.
        left_out: blank and repeated words of both sides, counted.
    """

    entries: tuple[Entry, ...]
    words: tuple[int, int]
    precision: Precision | None = None
    left_out: Mapping[str, int] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Dictionary({len(self):,} pairs)"

    def write(self, path: str | Path) -> None:
        """Write ``source<TAB>target<TAB>csls<TAB>rank``, without a header; or a table with one, by the name's suffix."""
        if _is_plain(path):
            write_text(path, (f"{a}\t{b}\t{score:.6f}\t{rank}\n" for a, b, score, rank in self))
        else:
            super().write(path)

    def summary(self) -> str:
        """Describe the result in one line."""
        told = "" if self.precision is None else f", {self.precision}"
        return f"{self.words[0]:,} and {self.words[1]:,} words, {len(self):,} pairs{told}{left_out_of(self.left_out)}"


def lexicon(
    model: AnyModel | str | Path,
    output: str | Path | None = None,
    *,
    source: str | Path | Sequence[str] | None = None,
    target: str | Path | Sequence[str] | None = None,
    config: DictionaryConfig | None = None,
    **settings: Unpack[DictionarySettings],
) -> Dictionary:
    """Make a dictionary from word vectors.

    Args:
        model: the model that encodes words, or its name.
        output: file of ``source<TAB>target<TAB>csls<TAB>rank``, or by its suffix any table, with a header; ``-`` for
            standard output.
        source: words, or a file with a word a line; by default, the model's own units that are words.
        target: the other side, likewise.
        config: settings; see :class:`DictionaryConfig`.
        settings: single fields of ``config``: ``languages``, ``best``, ``mutual``, ``gold``, …; ``threads`` and ``method``
            are those of the search.

    Raises:
        ConfigError: a setting is unknown or impossible, or only one side is given.
        InputError: a file is missing, or has no word.

    Example:
        >>> import xswe
        >>> found = xswe.lexicon(xswe.load("mini"), source=["cat", "bread"], target=["Brot", "Katze"], k=1, candidates=2)
        >>> [(entry.source, entry.target) for entry in found]
        [('cat', 'Katze'), ('bread', 'Brot')]
    """
    config = changed(config or DictionaryConfig(), settings, "lexicon")
    if (source is None) != (target is None):
        raise ConfigError("give both source= and target= (a word a line), or neither, for the model's own words")
    if source is not None:
        refuse_unused(config, {"with source= and target=": ["languages"]})
    if output is not None:
        check_output(output, [name for name in (source, target, config.gold) if isinstance(name, (str, Path))])
        if not _is_plain(output):
            check_suffix(str(output))
    model, left_out = open_model(model, "lexicon(model, output)"), Skipped()
    if source is not None and target is not None:
        first, second = (read_words(side, config.limit, left_out) for side in (source, target))
    else:
        first, second = (words[: config.limit or None] for words in _own_words(model, config.languages))
    pairs = make_lexicon(model, first, second, config)
    rows = zip(pairs.source, pairs.target, pairs.scores, pairs.rank, strict=True)
    entries = tuple(Entry(one_line(first[a]), one_line(second[b]), float(score), int(rank)) for a, b, score, rank in rows)
    good = precision(model, first, second, config.gold, config) if config.gold else None
    found = Dictionary(entries, (len(first), len(second)), good, left_out.counts)
    if output is not None:
        found.write(output)
    return found


def _is_plain(path: str | Path) -> bool:
    return str(path) == "-" or suffix_of(path) in ("", ".tsv", ".txt")


def _own_words(model: AnyModel, named: Sequence[str]) -> tuple[list[str], list[str]]:
    languages = named or model.languages
    if len(languages) != 2:
        raise ConfigError(f"the model has the languages {', '.join(model.languages)}: name two, as in languages=[en,ja]")
    if isinstance(model, Ensemble):
        raise ConfigError("an ensemble has no words of its own: give source= and target=, a word a line")
    return vocabularies(model, languages)
