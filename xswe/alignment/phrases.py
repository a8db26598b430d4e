"""Phrase search in files of passages or bitext, with hits marked on both sides of bitext."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack

from xswe.alignment.words import counterparts
from xswe.bitext.formats import BY_SUFFIX
from xswe.bitext.memories import Unit, write_tmx
from xswe.bitext.source import Source, find_pairs
from xswe.bitext.termbases import Candidate, write_tbx
from xswe.bitext.texts import TextSource
from xswe.errors import ConfigError, InputError
from xswe.io.arguments import file_name
from xswe.io.files import check_input, check_output
from xswe.io.inputs import Inputs, state_of
from xswe.io.lines import OnError, Skipped, left_out_of
from xswe.io.parallel import available_threads
from xswe.io.results import Rows, check_suffix, write_text
from xswe.io.settings import changed, check_choice, for_all, refuse_unused
from xswe.io.sources import PACKED, is_tar, is_zip, suffix_of
from xswe.model.ensemble import AnyModel
from xswe.phrases.find import Hit, PassageFile, Place, find_phrases
from xswe.phrases.search import SpanConfig, StaticWords, WordSource, load_words, open_words
from xswe.phrases.terms import Term, find_terms
from xswe.progress import took
from xswe.text.languages import LANGUAGES, check_languages
from xswe.text.sentences import is_document
from xswe.work.config import LOCAL, ExecutionConfig
from xswe.work.folder import spooled, work_folder

if TYPE_CHECKING:
    from xswe.settings import PhraseSearchSettings

Mode = Literal["phrases", "terms"]
_TERMS = for_all(Mode, {"phrases": False, "terms": True})
_EXCHANGE = (".tbx", ".tmx")
_PASSAGES_OR_BITEXT = (".tsv", ".jsonl", ".ndjson")  # bitext if languages are given
_BITEXTS = tuple(suffix for suffix in BY_SUFFIX if suffix not in (*_PASSAGES_OR_BITEXT, ".txt"))  # read only as bitext
_TEXT_SUFFIXES = (".txt", ".tsv", *PACKED, *(f".{code}" for code in LANGUAGES))
_CONTEXT = 40  # characters on either side of an example


@dataclass(frozen=True)
class PhraseSearchConfig(SpanConfig):
    """Settings of the search, and of reading files.

    Attributes:
        mode: ``phrases``: the best places of each phrase; ``terms``: the best distinct candidates, counted, with examples.
        languages: of the phrases and passages, as in ``[en,ja]``; for ``.tmx``, ``.tbx``, bitext, and ``split``.
        split: split the passages into sentences first; null splits any document, and no other file.
        on_error: what to do with a damaged line of the passages: ``raise``, or ``skip`` (it has no hits, and is counted).
        execution: where to search: this process, tasks of a batch queue, or a cluster, with identical output.
    """

    mode: Mode = "phrases"
    languages: tuple[str, ...] = ()
    split: bool | None = None
    on_error: OnError = "raise"
    execution: ExecutionConfig = LOCAL


@dataclass(frozen=True)
class PhraseFiles:
    """Input and output files of a search."""

    queries: str  # text file; ``-`` for standard input
    passages: str  # likewise
    output: str  # file; ``-`` for standard output
    config: PhraseSearchConfig = field(default_factory=PhraseSearchConfig)

    def __post_init__(self) -> None:
        check_choice("mode", self.config.mode, Mode)
        if self.queries == self.passages == "-":
            raise ConfigError("queries=- input=-: only one of them can be read from standard input")
        check_output(self.output, [self.queries, self.passages])
        languages = tuple(self.config.languages)
        kind, named = self.format, check_languages(languages) if languages else ()
        if kind == ".tbx" and not _TERMS[self.config.mode]:
            raise ConfigError(f"output={self.output}: terms are written as .tbx: set mode=terms")
        if kind not in _EXCHANGE:
            check_suffix(self.output)
        needed = kind in _EXCHANGE or self._suffix in _BITEXTS or self.is_cut
        if len(named) != 2 and (named or needed):
            raise ConfigError(
                f"languages={list(named)}: name the languages of the phrases and the passages, as in languages=[en,ja]"
            )
        if named and kind not in _EXCHANGE and not self.is_bitext and not self.is_cut:
            raise ConfigError("languages= is only for passages in bitext, .tmx and .tbx output, and split: leave it out")
        if self.passages != "-":
            check_input(self.passages)

    @property
    def format(self) -> str:
        """The suffix of the output format."""
        if self.output == "-":
            return ".tsv"
        return suffix_of(self.output)

    @property
    def _suffix(self) -> str:
        if not (is_zip(Path(self.passages)) or is_tar(Path(self.passages))) or is_document(self.passages):
            return suffix_of(self.passages)
        sides = Source((self.passages,), languages=self.config.languages).paths
        return suffix_of(sides[0]) if len(sides) == 1 else ".tsv"

    @property
    def is_cut(self) -> bool:
        """Whether the passages are running text, to be split into sentences."""
        return TextSource(self.passages, split=self.config.split).is_cut

    @property
    def is_bitext(self) -> bool:
        """Whether the passages have another side."""
        return not self.is_cut and len(self.config.languages) == 2 and self._suffix in (*_BITEXTS, *_PASSAGES_OR_BITEXT)

    def texts(self, name: str = "") -> TextSource:
        """Return the passages, or those of a copy with this name; of a bitext, its second side."""
        name, (a, b) = name or self.passages, self.config.languages or ("", "")
        bitexts = find_pairs([name], (a, b)) if self.is_bitext else ()
        return TextSource(name, b, self.config.split, self.config.on_error, tuple(bitexts))


@dataclass(frozen=True)
class FoundInFiles:
    """Results and counts of a search in files.

    Attributes:
        found: the hits, or the candidates, of each phrase.
        passages: number of passages read.
        left_out: damaged lines and parts of documents outside their text, counted.
        seconds: time of the search.
        files: the input and output files.
        queries: the phrases.
        other: of bitext, the other side of the passages with hits, by passage number from 0.
        marks: the probable translation of the first place of each hit, by that place.
    """

    found: Sequence[Sequence[Hit | Term]]
    passages: int
    left_out: Mapping[str, int]
    seconds: float
    files: PhraseFiles
    queries: Sequence[str] = ()
    other: Mapping[int, str] | None = None
    marks: Mapping[Place, tuple[int, int]] = field(default_factory=dict)

    def __str__(self) -> str:
        total, some = sum(map(len, self.found)), sum(map(bool, self.found))
        kind = "candidates" if _TERMS[self.files.config.mode] else "hits"
        nothing = f", nothing found for {len(self.found) - some:,}" if some < len(self.found) else ""
        return (
            f"{self.passages:,} passages, {len(self.found):,} queries, {total:,} {kind} for {some:,} of them"
            f"{nothing}, {took(self.passages, self.seconds, 'passages')}: {self.files.output}{left_out_of(self.left_out)}"
        )


def search_phrases(  # type: ignore[misc]  # threads here may be null, unlike those of the dataclass
    model: AnyModel | WordSource | str,
    queries: str | Path,
    input: str | Path,
    output: str | Path,
    *,
    threads: int | None = None,
    config: PhraseSearchConfig | None = None,
    **settings: Unpack[PhraseSearchSettings],
) -> FoundInFiles:
    """Find the spans in a file of passages that translate the phrases of another file, in any language, and write them.

    A killed search resumes from ``<output>.work``.

    Args:
        model: a static model or its name; ``teacher:mini``, ``teacher:minilm`` or ``teacher:PATH`` for an encoder, whose
            token states are then used. If other processes take part, it must be a name.
        queries: a phrase, or a text file with one phrase a line; ``-`` for standard input.
        input: text file, one passage a line, plain or packed; ``-`` for standard input; with ``languages`` also a file of
            any bitext, whose second side is searched.
        output: file, its format given by its suffix: any table, ``.tmx``, for terms ``.tbx``; ``-`` for standard output.
        threads: number of threads; null for all processors.
        config: settings; see :class:`PhraseSearchConfig`.
        settings: single fields of ``config``: ``mode``, ``k``, ``min_score``, ``languages``, …

    Raises:
        ConfigError: the settings do not fit.
        InputError: a file is missing or damaged.
        Unfinished: with an array, tasks with other shards are not done yet.
    """
    config = changed(config or PhraseSearchConfig(), settings, "a search of phrases")
    instead = "texts are searched by xswe.find_phrases(model, queries, texts)"
    names = file_name(queries, "queries", instead), file_name(input, "input", instead)
    files = PhraseFiles(*names, str(output), config)
    terms, threads, execution = _TERMS[config.mode], available_threads(threads), config.execution
    refuse_unused(config, {"without mode=terms": () if terms else ["examples"]})
    spans = SpanConfig(**{field.name: getattr(config, field.name) for field in fields(SpanConfig)})
    spans, asked = replace(spans, distinct=terms, threads=threads), read_queries(files.queries)
    source = load_words(model, threads) if isinstance(model, str) else open_words(model)
    left_out, begun = Skipped(), time.monotonic()
    execution.check_names(files.passages, files.output)
    search: Any = find_terms if terms else find_phrases
    how: dict[str, Any] = {"bitext": files.texts().pairs(Skipped())} if files.is_bitext and terms else {}
    with work_folder(files.output, execution, leave=None) as folder:
        name = spooled(files.passages, folder, execution)
        given = Inputs((name,), (state_of(name)[1],))
        texts = files.texts(name)
        passages = PassageFile(texts.lines(folder, left_out), folder, execution, model if isinstance(model, str) else "")
        found = search(source, asked, passages, spans, **how)
        seconds = time.monotonic() - begun
        other = _other_sides(texts, found)
        marks = _marks(source, found, other)
        given.check_unchanged()
        _write(files, asked, found, spans.examples, other, marks)
    return FoundInFiles(found, passages.lines, left_out.counts, seconds, files, asked, other, marks)


def read_queries(given: str) -> list[str]:
    """Read phrases, one a line, skipping blank lines; a name that is no file is itself the phrase.

    InputError: there is no phrase, or the argument looks like the name of a missing file.
    """
    if given != "-" and not Path(given).exists():
        if not given.strip() or (" " not in given and Path(given).suffix in _TEXT_SUFFIXES):
            raise InputError(given, "no such file", "give a text file, or a phrase")
        return [given]
    found = [text.strip() for text in TextSource(given, split=False) if text.strip()]
    if not found:
        raise InputError(given, "no phrase in it", "give a file with one phrase a line, or a phrase")
    return found


def _other_sides(texts: TextSource, found: Sequence[Sequence[Hit | Term]]) -> dict[int, str] | None:
    """Read the other side of the passages with hits; None if they have none."""
    if not texts.bitexts:
        return None
    wanted = {place.passage for hits in found for hit in hits for place in hit.places}
    return {row: text for row, (text, _) in enumerate(texts.pairs(Skipped())) if row in wanted}


def _marks(
    source: WordSource, found: Sequence[Sequence[Hit | Term]], other: Mapping[int, str] | None
) -> dict[Place, tuple[int, int]]:
    """Find the translation of each hit's first place on the other side of its passage."""
    if other is None or not isinstance(source, StaticWords):
        return {}
    places = list(dict.fromkeys(hit.places[0] for hits in found for hit in hits))
    sides = [(place.context, other[place.passage]) for place in places]
    ends = counterparts(source.model, sides, [[(place.start, place.end)] for place in places])
    return {place: span for place, (span,) in zip(places, ends, strict=True) if span is not None}


def _write(
    files: PhraseFiles,
    queries: Sequence[str],
    found: Sequence[Sequence[Any]],
    examples: int,
    other: Mapping[int, str] | None,
    marks: Mapping[Place, tuple[int, int]],
) -> None:
    """Write the hits in the format of the output's suffix."""
    if files.format == ".tbx":
        write_text(files.output, write_tbx(_candidates(queries, found), files.config.languages))
    elif files.format == ".tmx":
        write_text(files.output, write_tmx(_units(queries, found), files.config.languages))
    else:
        terms = _TERMS[files.config.mode]
        rows = term_rows(queries, found, examples, other, marks) if terms else hit_rows(queries, found, other, marks)
        rows.write(files.output)


def hit_rows(
    queries: Sequence[str],
    found: Sequence[Sequence[Hit]],
    other: Mapping[int, str] | None = None,
    marks: Mapping[Place, tuple[int, int]] | None = None,
) -> Rows:
    """Make rows of hits; lines count from 1, characters from 0. ``marks`` are the translations on the other side."""
    rows = []
    for query, hits in zip(queries, found, strict=True):
        for hit in hits:
            place = hit.places[0]
            row: tuple[Any, ...] = (
                query,
                round(hit.score, 4),
                place.passage + 1,
                place.start,
                place.end,
                place.text,
                place.context,
            )
            if other is not None:
                said = other[place.passage]
                start, end = (marks or {}).get(place, (None, None))
                row = (*row, start, end, None if start is None else said[start:end], said)
            rows.append(row)
    names = ("phrase", "score", "line", "start", "end", "text", "sentence")
    return Rows(names if other is None else (*names, "other_start", "other_end", "other_text", "other_side"), rows)


def term_rows(
    queries: Sequence[str],
    found: Sequence[Sequence[Term]],
    examples: int = 1,
    other: Mapping[int, str] | None = None,
    marks: Mapping[Place, tuple[int, int]] | None = None,
) -> Rows:
    """Make rows of candidates; a phrase without any has a row of empty cells.

    ``examples`` is the number of column pairs for examples; the other side, if any, is that of the first example.
    """
    names = ["term", "candidate", "score", "times", "passages", "variants"]
    for number in range(1, examples + 1):
        names += [f"line_{number}", f"example_{number}"]
    names += [] if other is None else ["other_text", "other_side"]
    rows: list[list[Any]] = []
    for query, terms in zip(queries, found, strict=True):
        if not terms:
            rows.append([query, "", *[None] * (len(names) - 2)])
        for term in terms:
            cells: list[tuple[Any, Any]] = [(place.passage + 1, _example(place)) for place in term.places[:examples]]
            cells += [(None, None)] * (examples - len(cells))
            row: list[Any] = [query, term.text, round(term.score, 4), term.times, term.passages, " | ".join(term.variants)]
            rows.append([*row, *chain(*cells)])
            if other is not None:
                said, span = other[term.places[0].passage], (marks or {}).get(term.places[0])
                rows[-1] += [span and said[slice(*span)], said]
    return Rows(tuple(names), rows)


def _example(place: Place) -> str:
    left, right = place.around(_CONTEXT)
    return f"{left}[{place.text}]{right}"


def _units(queries: Sequence[str], found: Sequence[Sequence[Hit | Term]]) -> Iterator[Unit]:
    """Yield the units of a translation memory of phrases and their hits."""
    for query, hits in zip(queries, found, strict=True):
        for hit in hits:
            text = hit.text if isinstance(hit, Term) else hit.places[0].text
            yield Unit(round(hit.score, 6), query, text, f"phrase {hit.places[0].passage + 1}")


def _candidates(queries: Sequence[str], found: Iterable[Sequence[Term]]) -> Iterator[tuple[str, list[Candidate]]]:
    """Yield phrases with their candidates, each with a sentence and its counts."""
    for query, terms in zip(queries, found, strict=True):
        notes = [f"score {term.score:.4f}, {term.times} times in {term.passages} passages" for term in terms]
        yield query, [Candidate(t.text, t.places[0].context, note) for t, note in zip(terms, notes, strict=True)]
