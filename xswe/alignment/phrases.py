"""Phrases sought in files, marked in both sides of a bitext."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from xswe.alignment.words import counterparts
from xswe.io.lines import OnError
from xswe.io.parallel import available_threads
from xswe.io.settings import changed, refuse_unused
from xswe.model.ensemble import AnyModel
from xswe.phrases.in_files import FoundInFiles, Mode, PhraseFiles, find_in_files
from xswe.phrases.search import SpanConfig, WordSource
from xswe.work.config import LOCAL, ExecutionConfig

if TYPE_CHECKING:
    from xswe.settings import PhraseSearchSettings


@dataclass(frozen=True)
class PhraseSearchConfig(SpanConfig):
    """What is searched for, and how files are read.

    Attributes:
        mode: ``phrases``: the best places of each phrase; ``terms``: the best distinct candidates, counted, with examples.
        languages: of the phrases and of the passages, as in ``[en,ja]``: for ``.tmx``, ``.tbx``, bitext, and to split.
        split: cut the passages into sentences first; null for documents only (Markdown, HTML, EPUB, DOCX, PDF).
        on_error: what a damaged line of the passages does: ``raise``, or ``skip`` (it has no hits, and is counted).
        execution: who searches: this process, the tasks of a batch queue, or a Ray cluster, to the same bytes.
    """

    mode: Mode = "phrases"
    languages: tuple[str, ...] = ()
    split: bool | None = None
    on_error: OnError = "raise"
    execution: ExecutionConfig = LOCAL


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
    """Find what says the phrases of a file in the passages of another, in any language of the model, and write it.

    A search that was killed goes on from ``<output>.work``.

    Args:
        model: a static model, or the name of one; ``teacher:mini``, ``teacher:minilm`` or ``teacher:PATH`` for an encoder,
            whose token states are then used. Others that take part need a name.
        queries: a phrase, or a text file with one phrase a line; ``-`` for standard input.
        input: text file, one passage a line, plain or packed; ``-`` for standard input; with ``languages`` also bitext
            (``.tsv`` of two columns, ``.tmx``, ``.xliff``, ``.po``, ``.jsonl``, ``.parquet``), whose second side is
            searched.
        output: file, its format by its suffix: ``.tsv``, ``.csv``, ``.json``, ``.jsonl``, ``.md``, ``.tex`` (plain or
            packed), ``.parquet``, ``.xlsx``, ``.tmx``, and for terms ``.tbx``; ``-`` for standard output.
        threads: how many share the passages; null for all processors.
        config: what is searched for; see :class:`PhraseSearchConfig`.
        settings: single fields of it: ``mode``, ``k``, ``min_score``, ``languages``, …

    Raises:
        ConfigError: the settings do not fit.
        InputError: a file is missing or damaged.
        Unfinished: with an array, the tasks that have other shards are not done yet.
    """
    config = changed(config or PhraseSearchConfig(), settings, "a search of phrases")
    names = str(queries), str(input), str(output)
    files = PhraseFiles(*names, config.mode, tuple(config.languages), config.on_error, config.split)
    refuse_unused(config, {"without mode=terms": () if config.mode == "terms" else ["examples"]})
    spans = SpanConfig(**{field.name: getattr(config, field.name) for field in fields(SpanConfig)})
    spans = replace(spans, distinct=config.mode == "terms", threads=threads or available_threads())
    return find_in_files(model, files, spans, counterparts if files.is_bitext else None, config.execution)
