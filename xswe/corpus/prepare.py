"""Corpora for training: listing, showing and fetching them, and converting them once for all runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from xswe.bitext.convert import Rewritten, rewrite_bitext
from xswe.bitext.output import WRITTEN
from xswe.corpus.bitext import CorpusConfig
from xswe.corpus.cards import entries_of
from xswe.corpus.convert import ConvertedCorpus, convert_corpus, fetch_corpora, list_corpora, show_corpora
from xswe.errors import ConfigError
from xswe.io.settings import check_choice, for_all, refuse_unused
from xswe.io.sources import expand, suffix_of
from xswe.text.languages import check_languages
from xswe.work.config import LOCAL, ExecutionConfig

Action = Literal["convert", "fetch", "list", "show"]
_ACTIONS = for_all(
    Action,
    {
        "convert": None,
        "fetch": lambda config, languages: fetch_corpora(config, check_languages(languages)),
        "list": lambda *_: list_corpora(),
        "show": lambda config, _: show_corpora(config),
    },
)


def prepare_corpus(
    languages: Sequence[str] = (),
    output: str | Path | None = None,
    *,
    action: Action = "convert",
    corpus: CorpusConfig | None = None,
    threads: int | None = None,
    execution: ExecutionConfig = LOCAL,
) -> str | ConvertedCorpus | Rewritten:
    """List corpus cards, show one, fetch a corpus, or fetch and convert it for training.

    Args:
        languages: codes of source and target.
        output: folder of the converted corpus; null for the cache. With the suffix of a bitext format: a file in that
            format, with all pairs of ``corpus.paths``, uncleaned.
        action: ``convert``, ``fetch``, ``list`` or ``show``.
        corpus: which corpus, and what to drop from it.
        threads: null for all processors.
        execution: who reads and cleans: this process, the tasks of a batch queue, or a cluster; the bytes are the same.

    Raises:
        ConfigError: a setting is impossible, or there is no such corpus.
        InputError: a file is missing, damaged, or not as its card says.
        Unfinished: other tasks of the array are not done yet.
    """
    check_choice("action", action, Action)
    config = corpus or CorpusConfig()
    if action == "convert" and suffix_of(str(output or "")) in WRITTEN:
        entries = list(entries_of(config.paths or (), tuple(languages)))
        if not entries or not all(isinstance(entry, (str, Path)) for entry in entries):
            raise ConfigError(f"output={output}: files are converted to it; name them, as in corpus.paths=[a.tmx]")
        dropping = ("split", "max_characters", "min_score", "clean", "decontaminate", "limit")
        refuse_unused(config, {f"with output={output}, to which all pairs are written": dropping}, "corpus")
        return rewrite_bitext(
            expand(entries),
            str(output),
            check_languages(languages),
            columns=config.columns[:2],
            on_error=config.on_error,
        )
    if (done := _ACTIONS[action]) is None:
        return convert_corpus(config, check_languages(languages), output, threads, execution)
    given = {"execution": None if execution.alone else execution, "output": output, "threads": threads}
    if unused := next((name for name, value in given.items() if value is not None), None):
        name = "execution.kind" if unused == "execution" else unused
        raise ConfigError(f"{name} does nothing with {action}, which converts nothing: leave it out")
    return done(config, languages)
