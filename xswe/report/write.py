"""``xswe.write_report``: the page of any result or run folder."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, cast

from xswe.errors import ConfigError
from xswe.io.arguments import file_name
from xswe.io.files import check_output
from xswe.io.settings import check_choice, for_all, sound
from xswe.model.ensemble import AnyModel, open_model
from xswe.report import OF_RESULTS
from xswe.report.comparison import comparison_page, read_comparison
from xswe.report.page import check_page, write_page
from xswe.report.pairs import pairs_page, view_of_file
from xswe.report.space import export_space, open_space, space_page
from xswe.report.terms import terms_page, view_of_hits
from xswe.report.training import training_page

Kind = Literal["auto", "run", "mined", "hits", "compare", "space"]


def write_report(
    result: Any,
    output: str | Path,
    *,
    kind: Kind = "auto",
    model: AnyModel | None = None,
    languages: Sequence[str] = (),
    settings: Mapping[str, Any] | None = None,
) -> Path:
    """Write a report: a self-contained HTML file to read, annotate, print or mail.

    Args:
        result: what a verb with ``report=`` returned, or ``sweep``; the terms or hits of
            :class:`xswe.report.terms.TermView`; or a run folder or a file, as :func:`report_of` takes it. Without
            ``evidence=True``, the pages of ``mine``, ``filter`` and ``align`` show only what they keep.
        output: the file, ``.html``.
        kind: content of a folder or file, by its name in :func:`report_of`; ``auto`` to detect a run folder, the ``.json``
            of ``compare``, or else a file of scored pairs.
        model: for word links in pairs, or the model whose space is shown; None for no links.
        languages: of source and target, of phrases and passages, or of the columns, in a file that does not tell them.
        settings: of the run, by section; shown at the end.

    Returns:
        The file.

    Raises:
        ConfigError: there is no report for such a result, its page does not show what is given besides, or the file name is
            not that of a page.
        DependencyError: Jinja2 is not installed.

    Example:
        >>> import pathlib, tempfile, xswe
        >>> english, german = ["The train is late.", "A cat sleeps."], ["Eine Katze schläft.", "Der Zug hat Verspätung."]
        >>> mined = xswe.mine(xswe.load("mini"), english, german, threshold=None, evidence=True)
        >>> page = xswe.write_report(mined, pathlib.Path(tempfile.mkdtemp()) / "report.html")
        >>> "Eine Katze schläft." in page.read_text(encoding="utf-8")
        True
    """
    check_page(output)
    given = {"model": model, "languages": sound(tuple(languages), "languages"), "settings": dict(settings or {})}
    if isinstance(result, (str, Path)):
        check_output(output, [result])
        page = _page_of_path(Path(result), kind, given)
    else:
        name = _class_of(result)
        page = _page(_maker(name), name, result, given | {"kind": "" if kind == "auto" else kind})
    write_page(output, page)
    return Path(output)


def shown_with(result: Any) -> set[str]:
    """Return which of ``model`` and ``settings`` the page of a result shows."""
    return {*_taken(_maker(_class_of(result)))}


def _class_of(result: Any) -> str:
    """Return the name of the class for which there is a page."""
    for kind in type(result).__mro__:
        if kind.__name__ in OF_RESULTS:
            return kind.__name__
    raise ConfigError(f"no report is made of {type(result).__name__}: give a result, a run folder or a file")


def _taken(make: Callable[..., str]) -> list[str]:
    """Return the names of what a page shows besides its content."""
    return [*inspect.signature(make).parameters][1:]


def _page(make: Callable[..., str], what: str, content: Any, given: dict[str, Any]) -> str:
    """Return a page; ConfigError: it does not show all that is given."""
    taken = _taken(make)
    for name, value in given.items():
        if name not in taken and value not in (None, (), {}, ""):
            raise ConfigError(f"{name} does nothing for the page of {what}: leave it out")
    return make(content, *(given[name] for name in taken))


def _maker(name: str) -> Callable[..., str]:
    """Return the function that makes the page of a class, imported with what it needs, which may be torch."""
    module, _, function = OF_RESULTS[name].partition(":")
    return cast("Callable[..., str]", getattr(importlib.import_module(f"xswe.report.{module}"), function))


def _page_of_path(path: Path, kind: Kind, given: dict[str, Any]) -> str:
    """Return the page of a run folder or a file."""
    check_choice("kind", kind, Kind)
    return _page(_PAGES[kind], kind, path, given)


def _detected(path: Path, model: AnyModel | None, languages: tuple[str, ...], settings: dict[str, Any]) -> str:
    kind: Kind = "run" if path.is_dir() else "compare" if path.suffix == ".json" else "mined"
    return _page_of_path(path, kind, {"model": model, "languages": languages, "settings": settings})


# Page makers by kind, given a path and what else they name.
_PAGES: dict[str, Callable[..., str]] = for_all(
    Kind,
    {
        "auto": _detected,
        "run": training_page,
        "hits": lambda path, languages, settings: terms_page(view_of_hits(path, languages), settings),
        "space": lambda path, model, languages: space_page(open_space(model, path, languages)),
        "compare": lambda path, settings: comparison_page(read_comparison(path), settings),
        "mined": lambda path, model, languages, settings: pairs_page(
            view_of_file(path, languages or (() if model is None else model.pair)), model, settings
        ),
    },
)


def report_of(
    output: str | Path = "report.html",
    *,
    mined: str | Path | None = None,
    run: str | Path | None = None,
    hits: str | Path | None = None,
    compare: str | Path | None = None,
    space: str | Path | None = None,
    model: AnyModel | str | Path | None = None,
    languages: tuple[str, ...] = (),
    projector: str | Path | None = None,
) -> Path:
    """Write the report of one file or folder that a run left on disk, and return its path.

    Args:
        output: the page, ``.html``.
        mined: a file of scored pairs, as written by ``mine``.
        run: a run folder of ``train``.
        hits: the output of a phrase search in either mode, ``.tsv``, ``.csv`` or ``.jsonl``.
        compare: the output of ``compare``, ``.json``.
        space: a file of any bitext, to show where its sentences and words lie in the model's space.
        model: for word links in pairs, or for ``space``; or its name.
        languages: of source and target, of phrases and passages, or of the columns of ``space``.
        projector: with ``space``: a new folder for TensorBoard's projector and embedding-atlas.

    Raises:
        ConfigError: not exactly one input is given, or the file name is not that of a page.
    """
    known = {"auto": None, "mined": mined, "run": run, "hits": hits, "compare": compare, "space": space}
    given = [kind for kind, what in for_all(Kind, known).items() if what]
    if len(given) != 1:
        names = ", ".join(f"{name}=" for name in known if name != "auto")
        raise ConfigError(f"report needs one of {names}, and only one")
    what = file_name(known[given[0]], given[0], "results in memory are shown by xswe.write_report(result, output)")
    opened = open_model(model, "report_of(output, model=model)") if model else None
    if projector:
        if given != ["space"]:
            raise ConfigError("projector= exports the space of a bitext: give space=BITEXT")
        export_space(open_space(opened, what, tuple(languages)), projector)
    return write_report(what, output, kind=cast("Kind", given[0]), model=opened, languages=languages)
