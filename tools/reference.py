"""The reference as Markdown, from the code: a page for every verb, one for each part of the public API, one of formats.

What a page says of a setting is what ``python -m xswe VERB --help-all`` says, from the same place; what it says of a
function is its docstring, read by griffe without importing anything.

    python tools/reference.py             # fill what files.md, upgrade.md and reports.md list: formats, names, verbs
    python tools/reference.py FOLDER      # write the pages, for reading without the site
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import xswe
from xswe.alignment import rows
from xswe.bitext import formats, output
from xswe.cli.help import settings
from xswe.cli.verbs import VERBS
from xswe.face import FORMER
from xswe.io import suffixes
from xswe.model import vector_files
from xswe.text.readers import READERS

if TYPE_CHECKING:
    import griffe

ROOT = Path(__file__).resolve().parents[1]
_LAST = ("evaluation", "errors", "types")  # the rooms that come after the others


def parts() -> dict[str, list[str]]:
    """Return the public names by the room of the library that they come from; those of results and settings by theirs."""
    found: dict[str, list[str]] = {"model": ["load"], "errors": ["errors"], "types": ["types"]}
    for name, (module, _) in xswe._PUBLIC.items():
        found.setdefault(module.split(".")[1], []).append(name)
    # Functions first, then the classes that they return.
    sorted_names = {room: sorted(names, key=lambda name: (name[0].isupper(), name)) for room, names in found.items()}
    return dict(sorted(sorted_names.items(), key=lambda item: (item[0] in _LAST, item[0] != "model")))


def pages() -> dict[str, str]:
    """Return the generated pages by their path below ``docs/``."""
    made = {f"reference/verbs/{verb}.md": verb_page(verb) for verb in VERBS}
    made["reference/verbs/index.md"] = _verbs()
    for room, names in parts().items():
        told = "\n".join(_member(_package()[name], name, 2) for name in names)
        made[f"reference/api/{room}.md"] = f"# {room.capitalize()}\n\n{_opening(room)}{told}"
    made["reference/api/index.md"] = _api()
    return made


def verb_page(verb: str) -> str:
    """Return the page of a verb: what it does, examples, every setting."""
    shown = "\n".join(f"python -m xswe {verb} {example}" for example in VERBS[verb].examples)
    rows = [
        (f"`{one.name}`", f"`{one.default}`" if one.default else "must be given", _cell(one.meaning), _cell(one.kind))
        for one in settings(verb)
    ]
    shown_columns = 4 if any(row[3] for row in rows) else 3
    table = _table(("setting", "default", "meaning", "values")[:shown_columns], [row[:shown_columns] for row in rows])
    return f"# {verb}\n\n{VERBS[verb].what[0].upper()}{VERBS[verb].what[1:]}.\n\n```text\n{shown}\n```\n\n{table}\n"


def _verbs() -> str:
    rows = [(f"[{verb}]({verb}.md)", one.what) for verb, one in VERBS.items()]
    return (
        "# Verbs\n\nEvery verb with all its settings, as `python -m xswe VERB --help-all` prints them.\n\n"
        f"{_table(('verb', 'what it does'), rows)}\n"
    )


def _api() -> str:
    rows = [
        (f"[{room.capitalize()}]({room}.md)", ", ".join(f"[`{name}`]({room}.md#{_anchor(name)})" for name in names))
        for room, names in parts().items()
    ]
    return f"# API\n\nAll of it is `import xswe`.\n\n{_table(('what for', 'names'), rows)}\n"


def format_table() -> str:
    """Return which suffixes are read and written, from the tables by which they are."""
    bitext, packed = {*formats.BY_SUFFIX}, {s for s, kind in formats.BY_SUFFIX.items() if formats.FORMATS[kind].packed}
    roles = {
        "bitext in": bitext,
        "packed, in archives": packed - {".mo"},
        "filter, score": bitext - {".mo"},
        "dedup": {suffix for suffix, kind in formats.BY_SUFFIX.items() if formats.FORMATS[kind].family != "memory"},
        "`align fixed=`": {".ladder", *rows.SUFFIXES, ".jsonl"},
        "running text": {".txt", *READERS},
        "pairs out": {".tsv", *output.WRITTEN},
        "tables": {*suffixes.TABLES},
        "`evaluate tasks=`, `serve corpora=`": bitext,
        "`phrases input=`": bitext | {*READERS},
        "vectors": {*vector_files.SUFFIXES},
    }
    names = sorted({suffix for held in roles.values() for suffix in held})
    cells = [(f"`{name}`", *("yes" if name in held else "" for held in roles.values())) for name in names]
    return _table(("suffix", *roles), cells)


def _opening(room: str) -> str:
    """Return what a room of the library says of itself."""
    member = _package()[room] if room not in ("errors", "types") else None
    return f"{_docstring(member)}" if member is not None and member.docstring else ""


@lru_cache(maxsize=1)
def _package() -> griffe.Module:
    import griffe

    found = griffe.load("xswe", search_paths=[ROOT], resolve_aliases=True)
    if not isinstance(found, griffe.Module):
        raise TypeError(found)
    return found


def _member(member: Any, name: str, level: int) -> str:
    """Return what there is to say of a function, a class with its public members, or a module."""
    member = member.final_target if member.is_alias else member
    head = f"{'#' * level} {name} {{ #{_anchor(name)} }}\n\n"
    if name == "types":
        named = ((own, _package()[f"{place.removeprefix('xswe.')}.{own}"]) for own, place in xswe.types._PLACES.items())
        return head + _docstring(member) + "".join(_member(one, own, level + 1) for own, one in sorted(named))
    if member.is_module:
        return head + _docstring(member) + "".join(_member(one, one.name, level + 1) for one in _own(member))
    signature = f"```text\n{_signature(member, name)}\n```\n\n" if member.is_function or member.is_class else ""
    text = head + signature + _docstring(member)
    if member.is_class:
        text += "".join(_member(one, f"{name}.{one.name}", level + 1) for one in _own(member))
    return text


def _own(member: Any) -> Iterator[Any]:
    """Yield the public functions, properties and classes of a class or module that say something, inherited ones too."""
    for one in member.all_members.values():
        if one.name.startswith("_") or (one.is_alias and not (member.is_class and one.inherited)):
            continue
        target = one.final_target if one.is_alias else one
        if target.docstring and (target.is_function or target.is_class or "property" in target.labels):
            yield target


def _signature(member: Any, name: str) -> str:
    """Return how it is called, an argument a line where it is long."""
    parameters = [one for one in member.parameters if one.name not in ("self", "cls")]
    marks = {"variadic positional": "*", "variadic keyword": "**"}
    shown, named = [], False
    for one in parameters:
        kind = one.kind.value if one.kind else ""
        if kind == "keyword-only" and not named:
            named = True
            shown.append("*")
        text = marks.get(kind, "") + one.name + (f": {one.annotation}" if one.annotation else "")
        default = None if kind.startswith("variadic") else one.default
        shown.append(f"{text} = {default}" if default is not None else text)
    returns = f" -> {member.returns}" if member.is_function and member.returns else ""
    line = f"{name}({', '.join(shown)}){returns}"
    return line if len(line) <= 90 else f"{name}(\n" + "".join(f"    {one},\n" for one in shown) + f"){returns}"


def _docstring(member: Any) -> str:
    """Return a docstring of Google's style as Markdown."""
    if member.docstring is None:
        return ""
    out = []
    for section in member.docstring.parse("google", warnings=False):
        kind = section.kind.value
        if kind == "text":
            out.append(_prose(section.value))
        elif kind == "examples":
            out += [f"```pycon\n{text}\n```" if str(what.value) == "examples" else text for what, text in section.value]
        elif kind == "admonition":
            said = section.value.description
            said = f"```pycon\n{said}\n```" if said.lstrip().startswith(">>>") else _prose(said)
            out.append(f"*{section.title or section.value.kind}*\n\n{said}")
        elif kind in ("parameters", "attributes", "other parameters"):
            rows = [(f"`{one.name}`", _cell(_prose(one.description))) for one in section.value]
            out.append(_table((kind.capitalize(), ""), rows))
        elif kind in ("returns", "yields", "raises"):
            said = [_prose(one.description) for one in section.value]
            names = [str(one.annotation or "") if kind == "raises" else "" for one in section.value]
            lines = [f"`{name}`: {text}" if name else text for name, text in zip(names, said, strict=True)]
            out.append(
                f"**{kind.capitalize()}** " + ("\n\n".join(lines) if len(lines) == 1 else "\n\n- " + "\n- ".join(lines))
            )
    return "\n\n".join(out) + "\n\n"


def _prose(text: str) -> str:
    """Return text of a docstring without the marks of another language than Markdown."""
    text = re.sub(r":\w+:`~?([^`]*)`", r"`\1`", text)
    text = re.sub(r"``([^`]*)``", r"`\1`", text)
    return re.sub(r"(?m)::$", ":", text)


def _cell(text: str) -> str:
    plain = (re.sub(r"<(?=\w)", "&lt;", part) if k % 2 == 0 else part for k, part in enumerate(text.split("`")))
    return " ".join("`".join(plain).split()).replace("|", "\\|")


def _table(titles: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [titles, tuple("---" for _ in titles), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _anchor(name: str) -> str:
    return f"xswe.{name}"


def former_table() -> str:
    """Return the former names of settings and arguments, by the functions and verbs that have them."""
    inside = {own: name for name, (_, own) in xswe._PUBLIC.items()}
    verbs = {path.partition(":")[2]: verb for verb, one in VERBS.items() for path in one.calls.values()}
    rows = [
        (f"`{former}`", f"`{new}`", f"`xswe.{inside.get(name, name)}`", f"`{verbs[name]}`" if name in verbs else "")
        for name, names in FORMER.items()
        for former, new in names.items()
    ]
    return _table(("formerly", "now", "function", "verb"), rows)


def moved_table() -> str:
    """Return where the names are that ``xswe`` had and few need."""
    rows = [(f"`xswe.{name}`", "`from {} import {}`".format(*place)) for name, place in sorted(xswe._ELSEWHERE.items())]
    return _table(("formerly", "now"), rows)


def verbs_with_reports() -> str:
    """Return the verbs that have ``report=``."""
    return ", ".join(f"`{verb}`" for verb in sorted(VERBS) if any(one.name == "report" for one in settings(verb)))


TABLES = {"formats": format_table, "former": former_table, "moved": moved_table, "reports": verbs_with_reports}
PAGES = tuple(ROOT / "docs" / name for name in ("reference/files.md", "how-to/upgrade.md", "how-to/reports.md"))


def filled(text: str) -> str:
    """Return a page with its tables as the code is."""
    for name, make in TABLES.items():
        if f"<!-- {name} -->" in text:
            made = f"<!-- {name} -->\n{make()}\n<!-- end -->"
            text = re.sub(rf"(?s)<!-- {name} -->\n.*?<!-- end -->", lambda _, made=made: made, text)
    return text


def main() -> None:
    """Fill the tables, or write all pages into a folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path)
    folder = parser.parse_args().folder
    if folder:
        made = {folder / name: text for name, text in pages().items()}
    else:
        made = {page: filled(page.read_text(encoding="utf-8")) for page in PAGES}
    for path, text in made.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
