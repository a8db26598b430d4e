"""Running a verb with its composed settings."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

from xswe.cli.settings import Values, arguments, check_used, function
from xswe.cli.verbs import VERBS
from xswe.errors import ConfigError
from xswe.io.files import check_apart, check_output
from xswe.model.ensemble import open_model
from xswe.progress import took


def run(verb: str, values: Values) -> str:
    """Call a verb's function, and return its summary."""
    spec = VERBS[verb]
    modes = list(spec.calls)
    mode = str(values["mode"]) if len(modes) > 1 else ""
    if mode not in modes:
        raise ConfigError(f"mode={mode!r}: choose one of {', '.join(modes)}")
    _check_files(values)
    check_used(verb, mode, values)
    if mode in spec.bitext:
        values["input"] = _bitext(values, f"mode={mode}" if mode else verb)
    if "pair" in spec.groups:
        values["languages"] = values["pair"]["languages"]
    given = arguments(verb, mode, values)
    if "rerank" in given:
        given["rerank"] = _reranker(values["rerank"], values.get("threads"))
    if verb == "split":
        given["input"] = Path(given["input"])  # a str would be taken as the text itself
    if values.get("report") and verb in ("mine", "filter"):
        given["model"] = open_model(given["model"], verb)  # once, for the verb and for the report
    if mode == "search":
        from xswe.report.answers import answer

        return answer(given)
    started = time.monotonic()
    result = function(spec.calls[mode])(**given)
    seconds = time.monotonic() - started
    return _summary(verb, mode, result, values, seconds) + _write_report(values, result, given.get("model"))


def _summary(verb: str, mode: str, result: Any, values: Values, seconds: float) -> str:
    spec, output = VERBS[verb], values.get("output")
    if isinstance(result, str):
        return result
    if mode not in spec.says:
        own = getattr(result, "summary", None)
        summary = str(own() if callable(own) else result)
        is_named = output is None or any(f": {name}" in summary for name in (output, Path(str(output))))
        return summary if is_named else f"{summary}: {output}"
    further: dict[str, Any] = {"output": output}
    if spec.unit:
        further["took"] = took(len(result), seconds, spec.unit)
    if verb == "report":
        further["size"] = result.stat().st_size / 1e6
    return spec.says[mode].format(result, **further)


def _bitext(values: Values, what: str) -> list[str]:
    """Return the bitext of a verb: one file, or two line-aligned files."""
    given, moses = values["input"], (values["source"], values["target"])
    if bool(given) == bool(all(moses)) or (given and any(moses)):
        raise ConfigError(f"{what} needs input= (a bitext, - for standard input), or source= and target=, line by line")
    if not given and values.get("columns", [0, 1]) != [0, 1]:
        raise ConfigError("columns does nothing without input=: leave it out")
    return [str(path) for path in ([given] if given else moses)]


_WRITTEN = ("output", "rejects", "report", "index", "work")
_NO_FILES = ("pair", "languages", "language")  # a file may have the name of a language


def _check_files(values: Values) -> None:
    """Check, before any work, that no file is written twice or is also read, and that a report can be written.

    Standard input is read only once, too.
    """
    given = {name: values[name] for name in _WRITTEN if values.get(name)}
    if "report" in given:
        from xswe.report.page import check_page

        check_page(given["report"])
    for (other, path), (name, again) in combinations(given.items(), 2):
        check_apart(name, again, path, other)
    if len(names := [name for name, value in values.items() if value == "-" and name not in given]) > 1:
        raise ConfigError(f"{'=- '.join(names)}=-: only one of them can be read from standard input")
    read = [text for name, value in values.items() if name not in (*given, *_NO_FILES) for text in _texts_in(value)]
    for name, path in given.items():
        if name == "report" or (path != "-" and Path(path).is_file()):
            check_output(path, read, name)


def _texts_in(value: Any) -> Iterator[str]:
    """Yield the texts of a setting, of which any may name a file."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (Mapping, list, tuple)):
        for part in value.values() if isinstance(value, Mapping) else value:
            yield from _texts_in(part)


def _write_report(values: Values, result: Any, model: Any = None) -> str:
    """Write the report of a result if there is to be one, and return the line that names it."""
    if not values.get("report") or isinstance(result, str):
        return ""
    from xswe.report.write import shown_with, write_report

    shown = {key: value for key, value in values.items() if key != "hydra" and not isinstance(value, dict)}
    sections = {key: value for key, value in values.items() if key != "hydra" and isinstance(value, dict)}
    opened = None if isinstance(model, (str, Path)) else model
    given: dict[str, Any] = {"model": opened, "settings": {"of the run": shown, **sections}}
    taken = shown_with(result)
    write_report(result, values["report"], **{name: value for name, value in given.items() if name in taken})
    return f"\nreport: {values['report']}"


def _reranker(name: str | None, threads: int | None) -> Any:
    """Open the encoder of ``rerank=``; None without one."""
    if not name:
        return None
    from xswe.evaluation.models import open_encoder  # slow to import
    from xswe.io.parallel import available_threads

    return open_encoder(name, available_threads(threads))
