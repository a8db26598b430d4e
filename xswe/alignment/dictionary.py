"""A dictionary from the vectors of words: of two lists, or of the words that a model knows itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Unpack

from xswe.alignment.lexicon import LexiconConfig, Precision, make_lexicon, precision, read_words, vocabularies
from xswe.bitext.output import one_line
from xswe.errors import ConfigError
from xswe.io.files import check_output
from xswe.io.results import Result, check_suffix, write_text
from xswe.io.settings import changed, refuse_unused
from xswe.io.sources import suffix_of
from xswe.model.ensemble import AnyModel, Ensemble, open_model

if TYPE_CHECKING:
    from xswe.settings import DictionarySettings


@dataclass(frozen=True)
class DictionaryConfig(LexiconConfig):
    """Which words are paired, and how.

    Attributes:
        languages: of source and target, as in ``[en,ja]``; not needed for a model of two, nor with lists of words.
        limit: use the first words of each side only; 0 for all.
        gold: lexicon of ``source<TAB>target`` to report P@1 and P@5 against; null for none.
    """

    languages: tuple[str, ...] = ()
    limit: int = 0
    gold: str | None = None


class Entry(NamedTuple):
    """A word and a translation of it.

    Attributes:
        source: the word.
        target: its translation.
        csls: how near they are, less what each is near to anyway (twice the distance margin).
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
        words: how many words each side has.
        precision: how good it is on the words of a gold lexicon; None without one.
    """

    entries: tuple[Entry, ...]
    words: tuple[int, int]
    precision: Precision | None = None

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
        return f"{self.words[0]:,} and {self.words[1]:,} words, {len(self):,} pairs"


def lexicon(
    model: AnyModel | str | Path,
    output: str | Path | None = None,
    *,
    source: str | Path | Sequence[str] | None = None,
    target: str | Path | Sequence[str] | None = None,
    config: DictionaryConfig | None = None,
    **settings: Unpack[DictionarySettings],
) -> Dictionary:
    """Make a dictionary from the vectors of words.

    Args:
        model: what encodes words, or its name.
        output: file of ``source<TAB>target<TAB>csls<TAB>rank``, or by its suffix any table, with a header; ``-`` for
            standard output.
        source: words, or a file with a word a line; without, the model's own units that are words.
        target: the other side, likewise.
        config: how; see :class:`DictionaryConfig`.
        settings: single fields of it: ``languages``, ``best``, ``mutual``, ``gold``, …; ``threads`` and ``method`` are
            those of the search.

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
    model = open_model(model, "lexicon(model, output)")
    if source is not None and target is not None:
        first, second = (_words(side, config.limit) for side in (source, target))
    else:
        first, second = (words[: config.limit or None] for words in _own_words(model, config.languages))
    pairs = make_lexicon(model, first, second, config)
    rows = zip(pairs.source, pairs.target, pairs.scores, pairs.rank, strict=True)
    entries = tuple(Entry(one_line(first[a]), one_line(second[b]), float(score), int(rank)) for a, b, score, rank in rows)
    good = precision(model, first, second, config.gold, config) if config.gold else None
    found = Dictionary(entries, (len(first), len(second)), good)
    if output is not None:
        found.write(output)
    return found


def _is_plain(path: str | Path) -> bool:
    return str(path) == "-" or suffix_of(path) in ("", ".tsv", ".txt")


def _words(given: str | Path | Sequence[str], limit: int) -> list[str]:
    if isinstance(given, (str, Path)):
        return read_words(given, limit)
    return list(dict.fromkeys(given))[: limit or None]


def _own_words(model: AnyModel, named: Sequence[str]) -> tuple[list[str], list[str]]:
    languages = named or model.languages
    if len(languages) != 2:
        raise ConfigError(f"the model has the languages {', '.join(model.languages)}: name two, as in languages=[en,ja]")
    if isinstance(model, Ensemble):
        raise ConfigError("an ensemble has no words of its own: give source= and target=, a word a line")
    return vocabularies(model, languages)
