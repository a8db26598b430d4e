"""``python -m xswe corpus``: what corpora there are, and a corpus fetched, checked and converted for training."""

from __future__ import annotations

from typing import Any

from xswe.corpus.bitext import CorpusConfig
from xswe.corpus.prepare import prepare_corpus
from xswe.io.settings import build
from xswe.work.config import ExecutionConfig


def run(values: dict[str, Any]) -> str:
    """List the cards, show one, fetch a corpus, or fetch and convert it; return what to print."""
    config = build(CorpusConfig, values["corpus"], "corpus")
    execution = build(ExecutionConfig, values["execution"], "execution")
    how = {"action": values["action"], "threads": values["threads"], "execution": execution}
    return str(prepare_corpus(values["pair"]["languages"], values["output"], corpus=config, **how))
