"""``python -m xswe search``: the sentences of a file, or of an index, that are nearest to a phrase or a question."""

from __future__ import annotations

import os
import sys
from typing import Any

from xswe.commands.config import open_judge, refuse_unused, settings
from xswe.errors import ConfigError, ModelError
from xswe.report.answers import Answers, FileSearchConfig, search_file
from xswe.search.verification import verify_index


def run(values: dict[str, Any]) -> str:
    """Build or open the index, ask it, and return or write what was found."""
    if values["verify"]:
        refuse_unused("search", values, {"with verify=true": set(values) - {"index", "verify"}})
        if values["index"] is None:
            raise ConfigError("verify=true: give the index= that is to be read")
        return _verify(str(values["index"]))
    config = settings(FileSearchConfig, values, "search")
    prompts = values["queries"] is None and sys.stdin.isatty()
    queries = None if prompts else values["queries"] or "-"
    how = {"index": values["index"], "output": values["output"], "config": config}
    found = search_file(
        values["model"], values["documents"], queries, rerank=open_judge(values["rerank"], values["threads"]), **how
    )
    marks = ("\033[1m", "\033[0m") if sys.stdout.isatty() and "NO_COLOR" not in os.environ else ("[", "]")
    if prompts:
        return _prompt(found, marks)
    return str(found) if values["output"] else "\n\n".join(found.shown(marks))


def _verify(folder: str) -> str:
    """Read an index, and say that it is what was written; where several files are not, print a line for each."""
    try:
        return verify_index(folder)
    except ModelError as error:
        if not (more := str(error).splitlines()[1:]):
            raise
        sys.stdout.write(f"{error}\n")
        raise ModelError(f"{folder}: {len(more) + 1} files are not what was written; see the lines above") from None


def _prompt(found: Answers, marks: tuple[str, str]) -> str:
    """Ask for one phrase after the other, until an empty line or the end of input."""
    sys.stdout.write(f"{found.index}; an empty line ends\n> ")
    sys.stdout.flush()
    while query := sys.stdin.readline().strip():
        (answer,) = found.shown(marks, found.ask([query]))
        sys.stdout.write(f"{answer}\n\n> ")
        sys.stdout.flush()
    return ""
