"""``python -m xswe <verb> --help``: what a verb does, examples, and its settings with meaning, type, choices and default.

Nothing is said twice: meanings, types and defaults are those of the verb's function and of the dataclasses of its settings,
whose source is read as text, so that help is there at once, whatever the code imports.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from xswe.cli.verbs import FLAGS, OWN, PACKAGES, VERBS, merged
from xswe.io.resources import resource
from xswe.io.signatures import MISSING, NO_SETTINGS

_LIBRARY = Path(__file__).parents[1]
_WIDTH, _COLUMN = 100, 34
# The sections of groups, which are no fields of a dataclass that has defaults for them.
_SECTIONS = {
    "corpus": ("corpus/bitext.py", "CorpusConfig"),
    "corpus.clean": ("corpus/cleaning.py", "CleanConfig"),
    "units": ("training/inputs.py", "UnitsConfig"),
    "objective": ("training/objective.py", "Objective"),
    "teacher": ("teacher/protocol.py", "TeacherConfig"),
}
_DOCUMENTS = "Markdown, HTML, EPUB, DOCX, PDF"
_MEANING = {
    "pair": "the model's languages, the hub of the pairs first",
    "recipe": "a way to train",
    "teacher": "the encoder whose states are the start; teacher=custom teacher.model=FOLDER for any",
    "distilled": "the encoder whose similarities are imitated; same for the teacher",
    "units": "what gets a vector",
    "objective": "what is trained for",
    "corpus": "what is learnt from: a corpus card, or local with corpus.paths=[…]",
    "corpus/clean": "filters of pairs",
    "execution": "who does the work: this process, the tasks of a batch queue, or a Ray cluster",
}
SHORT = (  # the settings of train that matter
    *("pair", "recipe", "teacher", "corpus", "corpus.paths", "corpus/clean", "corpus.limit", "units", "units.size"),
    *("objective", "contexts.per_unit", "pca.dim", "pca.drop", "refine.max_steps", "refine.batch_size"),
    *("refine.learning_rate", "output", "seed", "threads", "keep_steps"),
)


@dataclass(frozen=True)
class Setting:
    """One line of the help.

    Attributes:
        name: as on the command line.
        kind: its type, or its choices.
        default: as written on the command line; "" where it must be given.
        meaning: in words.
    """

    name: str
    kind: str
    default: str
    meaning: str

    def lines(self) -> list[str]:
        """Lay it out."""
        head = f"  {self.name}={self.default}"
        text = f"{self.meaning} ({self.kind})" if self.kind else self.meaning
        text = text if self.default else f"{text} [must be given]"
        wrapped = textwrap.wrap(text, _WIDTH - _COLUMN) or [""]
        first = [f"{head:<{_COLUMN}}{wrapped[0]}"] if len(head) < _COLUMN else [head, " " * _COLUMN + wrapped[0]]
        return [*first, *(" " * _COLUMN + line for line in wrapped[1:])]


def verb_help(verb: str, full: bool = False) -> str:
    """Return the help of a verb; of ``train`` only what matters, unless it is to be in full."""
    found = settings(verb)
    shown = found if full or verb != "train" else [by for name in SHORT for by in found if by.name == name]
    examples = "\n".join(f"  python -m xswe {verb} {example}" for example in VERBS[verb].examples)
    lines = [line for setting in shown for line in setting.lines()]
    further = f"\n\npython -m xswe {verb} --help-all   all {len(found)} settings" if len(shown) < len(found) else ""
    what = VERBS[verb].what
    return f"python -m xswe {verb}: {what}\n\n{examples}\n\nsettings, with their defaults:\n" + "\n".join(lines) + further


def settings(verb: str) -> list[Setting]:
    """Return all settings of a verb: its choices, the arguments of its function, and the fields of its dataclasses."""
    spec = VERBS[verb]
    found: dict[str, Setting] = {group: _choice(verb, group) for group in spec.groups}
    modes = {mode: {one.name: one for one in _of_mode(verb, mode)} for mode in spec.calls}
    if len(modes) > 1:
        said = "; ".join(f"{mode} ({_summary(call)})" for mode, call in spec.calls.items())
        found["mode"] = Setting("mode", ", ".join(modes), next(iter(modes)), OWN["mode"] + said)
    for own in modes.values():
        for name, one in own.items():
            before = found.get(name)
            default = merged(before.default or MISSING, one.default or MISSING) if before else one.default
            found[name] = replace(
                before or one, default="null" if default is None else "" if default == MISSING else str(default)
            )
    for name, one in found.items():
        if len(modes) > 1 and not one.default and not all(name in own for own in modes.values()):
            found[name] = replace(one, default="null")
    if spec.report:
        found["report"] = Setting("report", "", "null", OWN["report"])
    if flag := FLAGS.get(verb):
        found[flag] = Setting(flag, "true, false", "false", OWN[flag])
    return [one for name, one in found.items() if not name.startswith("execution")] + [
        one for name, one in found.items() if name.startswith("execution")
    ]


def _summary(path: str) -> str:
    module, name = _place(path)
    return (ast.get_docstring(_defined(module, name)[1]) or "").partition("\n")[0].rstrip(".")  # type: ignore[arg-type]


def _place(path: str) -> tuple[str, str]:
    module, _, name = path.partition(":")
    return f"{module.replace('.', '/')}.py", name


def _of_mode(verb: str, mode: str) -> Iterator[Setting]:
    """Yield the settings of a verb's function."""
    spec = VERBS[verb]
    module, name = _place(spec.calls[mode])
    node = _defined(module, name)[1]
    if not isinstance(node, ast.FunctionDef):
        raise TypeError(node)
    meanings, seen = _meanings(ast.get_docstring(node) or "", "Args"), set()
    places = [*node.args.args, *node.args.kwonlyargs]
    defaults = [*[None] * (len(node.args.args) - len(node.args.defaults)), *node.args.defaults, *node.args.kw_defaults]
    config = ""
    for place, default in zip(places, defaults, strict=True):
        hint = ast.unparse(place.annotation) if place.annotation else ""
        if place.arg == "config":
            config = hint.partition(" ")[0]
        if place.arg in NO_SETTINGS or (place.arg == "languages" and "pair" in spec.groups) or place.arg in spec.groups:
            continue
        seen.add(place.arg)
        meaning = meanings.get(place.arg, "").rstrip(".")
        yield from _of_argument(verb, mode, module, Setting(place.arg, hint, _default(module, default), meaning))
    for section in (name for name in _SECTIONS if name.partition(".")[0] in spec.groups):
        yield from _of_class(*_SECTIONS[section], f"{section}.")
    apart = seen | NO_SETTINGS | {*spec.groups} | ({"languages"} if "pair" in spec.groups else set())
    for one in _of_class(module, config, "") if config else ():
        if one.name.partition(".")[0] not in apart:
            yield replace(one, default=_plain(spec.usual[one.name])) if one.name in spec.usual else one


def _of_argument(verb: str, mode: str, module: str, one: Setting) -> Iterator[Setting]:
    """Yield the settings that an argument is on the command line; of its type as it is written."""
    spec = VERBS[verb]
    if one.name == "execution":
        yield from _execution()
        return
    if one.name == "bootstrap":
        yield from _of_class(module, one.kind.partition(" ")[0], "bootstrap.")
        return
    both = one.name == "input" and mode in spec.bitext
    default = "" if one.name == "output" else "null" if both else one.default
    if one.name in spec.usual:
        default = _plain(spec.usual[one.name])
    yield replace(one, kind=_kind(module, one.kind), default=default)
    if both:
        yield from (Setting(side, "", "null", OWN[side]) for side in ("source", "target"))


def _execution() -> Iterator[Setting]:
    yield Setting("execution", "local, array, ray", "local", _MEANING["execution"])
    yield from (one for one in _of_class("work/config.py", "ExecutionConfig", "execution.") if one.name != "execution.kind")


def _choice(verb: str, group: str) -> Setting:
    """Return the choices that are files of conf/, and which of them the defaults name."""
    conf, named = resource("conf"), PACKAGES.get(group, group)
    listed = re.search(rf"^  - {named}: ([\w-]+)", (conf / f"{verb}.yaml").read_text(encoding="utf-8"), re.MULTILINE)
    first, foreign = listed[1] if listed else "", {"teacher": "same", "distilled": "none"}.get(group)
    if group == "pair":
        return Setting(group, "en, de, zh and ja in any order, as en-ja, en-de-zh-ja or ja", first, _MEANING[group])
    names = sorted(path.stem for path in (conf / named.partition("@")[0]).glob("*.yaml"))
    kind = ", ".join([first, *(name for name in names if name not in (first, foreign))])
    return Setting(group, kind, first, _MEANING[group])


def _readers() -> str:
    """Return the suffixes of documents."""
    table = _defined("text/readers.py", "READERS")[1]
    return " ".join(node.value for node in table.value.keys)  # type: ignore[attr-defined]


@lru_cache(maxsize=64)
def _text(module: str) -> str:
    return (_LIBRARY / module).read_text(encoding="utf-8")


@lru_cache(maxsize=256)
def _defined(module: str, name: str) -> tuple[str, ast.stmt]:
    """Return where a function, a class, a table or a closed choice is defined that a module names, and its definition.

    Of a module that is long only what is asked for is parsed: help is to be there at once.
    """
    text = _text(module)
    if found := re.search(rf"^(?:(?:class|def) {name}\b|{name}\b[^\n=]* = )", text, re.MULTILINE):
        rest = re.compile(r"^[^\s)\]}]", re.MULTILINE).search(text, found.end())
        return module, ast.parse(text[found.start() : rest.start() if rest else len(text)]).body[0]
    listed = rf"^from xswe\.([\w.]+) import (?:\([^)]*\b{name}\b[^)]*\)|[^\n(]*\b{name}\b)"
    if found := re.search(listed, text, re.MULTILINE):
        return _defined(f"{found[1].replace('.', '/')}.py", name)
    raise LookupError(f"{module} has no {name}")


def _fields(module: str, name: str, section: str) -> Iterator[Setting]:
    """Yield the fields of a dataclass, first those that it inherits, whose defaults and meanings it may change."""
    module, node = _defined(module, name)
    if not isinstance(node, ast.ClassDef):
        raise TypeError(node)
    own: dict[str, Setting] = {}
    for base in node.bases:
        own |= {one.name: one for one in _fields(module, ast.unparse(base), section)}
    meanings = _meanings(ast.get_docstring(node) or "", "Attributes")
    for one in node.body:
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name):
            field, hint = one.target.id, ast.unparse(one.annotation)
            meaning = meanings[field].rstrip(".")
            own[section + field] = Setting(section + field, _kind(module, hint), _default(module, one.value), meaning)
    yield from own.values()


def _of_class(module: str, name: str, section: str) -> Iterator[Setting]:
    """Yield the settings of a dataclass: its fields, and those of the dataclasses in it, but for what the run decides."""
    usual, there = _usual(), list(_fields(module, name, section))
    within = {one.name: _nested(module, name, one) for one in there}
    for one in there:
        field = one.name.removeprefix(section)
        if one.name == "execution" or (not section and field == "execution"):
            yield from _execution()
        elif inner := within[one.name] if field != "clean" else None:
            yield from (each for each in _of_class(*inner, f"{one.name}.") if each.name != f"{one.name}.threads")
            if f"{section}threads" not in within:
                yield Setting(f"{section}threads", "", "null", OWN["threads"])
        elif not section or field not in ("seed", "threads", "clean") or section in ("bootstrap.", "neighbours."):
            yield replace(one, default=usual.get((section.rstrip("."), field)) or one.default)


def _nested(module: str, name: str, setting: Setting) -> tuple[str, str] | None:
    """Return where the dataclass is defined that a field is of, if it is."""
    if setting.default != "…":
        return None
    place, node = _defined(module, name)
    for one in node.body:  # type: ignore[attr-defined]
        if isinstance(one, ast.AnnAssign) and ast.unparse(one.target) == setting.name.rpartition(".")[2]:
            hint = ast.unparse(one.annotation)
            return (place, hint) if re.fullmatch(r"[A-Z]\w+", hint) else None
    for base in node.bases:  # type: ignore[attr-defined]
        return _nested(place, ast.unparse(base), setting)
    return None


@lru_cache(maxsize=1)
def _usual() -> dict[tuple[str, str], str]:
    """Return what the default recipe sets, by section and name."""
    text, section, found = (resource("conf") / "recipe" / "quickstart.yaml").read_text(encoding="utf-8"), "", {}
    for name, value in re.findall(r"^ *(\w+):(.*)$", text, re.MULTILINE):
        section = section if value else name
        found[section, name] = value.strip()
    return found


def _kind(module: str, hint: str) -> str:
    """Return a type in words; closed choices as they are."""
    plain = hint.removesuffix(" | None")
    if re.fullmatch(r"[A-Z]\w+", plain):
        try:
            node = _defined(module, plain)[1]
        except LookupError:
            return ""
        plain = ast.unparse(node.value).removeprefix("typing.") if isinstance(node, ast.Assign) else ""
    if plain.startswith("Literal["):
        return ", ".join("''" if choice == "" else str(choice) for choice in ast.literal_eval(f"({plain[8:-1]},)"))
    words = {"int": "whole number", "float": "number", "bool": "true, false", "str": "text"}
    if plain in words:
        return words[plain]
    return "list" if plain.startswith(("tuple", "Sequence")) else "mapping" if plain.startswith("dict") else ""


def _default(module: str, value: ast.expr | None) -> str:
    """Return a default as it is written on the command line; of a dataclass three dots."""
    if isinstance(value, ast.Call):  # field(default=…, …)
        given = {keyword.arg: keyword.value for keyword in value.keywords}
        value = given.get("default", given.get("default_factory"))
        value = value.body if isinstance(value, ast.Lambda) else value
    if value is None:
        return ""
    try:
        return _plain(_number(value))
    except ValueError:
        if not isinstance(value, ast.Name):
            return "…"
    try:
        node = _defined(module, value.id)[1]
        return _plain(ast.literal_eval(node.value)) if isinstance(node, ast.Assign) else "…"
    except (LookupError, ValueError):
        return "[source,target,cross]" if value.id == "SIDES" else "…"


def _number(value: ast.expr) -> object:
    """Return a constant; of whole numbers also one that is shifted, as sizes are written."""
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.LShift):
        return int(ast.literal_eval(value.left)) << int(ast.literal_eval(value.right))
    return ast.literal_eval(value)


def _plain(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ",".join(f"{name}:{_plain(own)}" for name, own in value.items()) + "}"
    if isinstance(value, (tuple, list)):
        return f"[{','.join(map(_plain, value))}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else str(value) or "''"


def _meanings(docstring: str, part: str) -> dict[str, str]:
    """Return the texts under ``Args:`` or ``Attributes:`` of a docstring, by name."""
    out: dict[str, str] = {}
    name = ""
    for line in docstring.partition(f"{part}:\n")[2].splitlines():
        if line and not line.startswith(" "):
            break
        if found := re.match(r"    (\w+): (.*)", line):
            name, out[found[1]] = found[1], found[2]
        elif name and line.strip():
            out[name] += f" {line.strip()}"
    return {name: _in_words(text) for name, text in out.items()}


def _in_words(text: str) -> str:
    """Return a meaning as the command line says it: null for None, and suffixes for documents."""
    text = re.sub(r":\w+:`([^`]*)`", r"\1", text).replace("``", "")
    if _DOCUMENTS in text:
        text = text.replace(_DOCUMENTS, _readers())
    return re.sub(r"\bNone\b", "null", text)
