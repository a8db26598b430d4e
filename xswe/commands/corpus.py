"""``python -m xswe corpus``: what corpora there are, and a corpus fetched, checked and converted for training."""

from __future__ import annotations

from typing import Any

from xswe.commands.config import refuse_unused
from xswe.corpus.bitext import CorpusConfig
from xswe.corpus.convert import convert_corpus, fetch_corpora, list_corpora, show_corpora
from xswe.errors import ConfigError
from xswe.io.settings import build
from xswe.text.languages import check_languages
from xswe.work.config import ExecutionConfig


def run(values: dict[str, Any]) -> str:
    """List the cards, show one, fetch a corpus, or fetch and convert it; return what to print."""
    action = values["action"]
    if action in ("list", "show", "fetch"):
        refuse_unused("corpus", values, {f"with {action}, which converts nothing": ["execution.kind", "output", "threads"]})
    if action == "list":
        return list_corpora()
    config = build(CorpusConfig, values["corpus"], "corpus")
    if action == "show":
        return show_corpora(config)
    languages = check_languages(values["pair"]["languages"])
    if action == "fetch":
        return fetch_corpora(config, languages)
    if action == "convert":
        execution = build(ExecutionConfig, values["execution"], "execution")
        return str(convert_corpus(config, languages, values["output"], values["threads"], execution))
    raise ConfigError(f"action={action!r}: use list, show, fetch or convert")
