"""``python -m xswe <verb> --help``: what a verb does, examples, and its settings with meaning, type, choices and default.

Nothing is said twice: meanings are those of the dataclasses' docstrings and of the comments in ``conf/``, read as text, so
that help is there at once, whatever the code imports.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from pathlib import Path

from xswe.io.files import resource

_LIBRARY = Path(__file__).parents[1]
_WIDTH, _COLUMN = 100, 34
EXAMPLES = {
    "train": ("pair=en-ja corpus.paths=[bitext.tsv.gz] output=runs/en-ja", "recipe=static pair=en-de corpus=ccmatrix"),
    "encode": (
        "model=mini input=texts.txt output=vectors.npy",
        "model=runs/en-ja/model input=- output=v.parquet dtype=int8",
        "model=mini input=s3://bucket/*.txt.gz output=vectors/*.npy execution=ray",
    ),
    "search": ("model=mini documents=texts.txt queries='late train'", "index=runs/index documents=texts.txt model=mini"),
    "phrases": (
        "model=mini queries=phrases.txt passages=texts.txt output=hits.tsv",
        "model=mini queries=terms.txt passages=texts.txt output=terms.tsv mode=terms",
    ),
    "mine": (
        "model=mini source=en.txt target=ja.txt output=pairs.tsv",
        "model=mini source=en.txt select=forward output=paraphrases.tsv",
        "mode=score model=mini input=bitext.tsv output=scored.tsv",
        "mode=negatives model=mini input=bitext.tsv output=triples.jsonl negatives=4",
    ),
    "align": (
        "model=mini source=novel.en.txt target=novel.de.txt output=beads.tmx languages=[en,de] split=true",
        "model=mini source=english/ target=german/ output=beads/ pairing=content",
    ),
    "link": (
        "model=mini input=bitext.tsv output=links.html",
        "model=mini source=en.txt target=de.txt what=terms languages=[en,de] output=terms.tbx",
    ),
    "split": ("input=novel.md language=de output=sentences.txt", "input=report.docx language=ja output=sentences.jsonl"),
    "filter": (
        "model=mini input=noisy.tsv output=clean.tsv languages=[en,de] rejects=rejects.tsv",
        "model=mini input=memory.tmx output=clean.tmx languages=[en,ja] numbers=true",
    ),
    "dedup": (
        "model=mini input=texts.txt output=unique.txt rejects=duplicates.tsv",
        "model=mini input=texts.csv column=text output=unique.csv threshold=0.85",
    ),
    "lexicon": (
        "model=mini languages=[en,de] output=lexicon.tsv",
        "model=mini source=en.txt target=de.txt output=lexicon.tsv",
    ),
    "evaluate": ("model=mini tasks=[tatoeba] output=eval.json", "model=mini tasks=[pairs.tsv,scores.tsv]"),
    "corpus": ("list", "corpus.paths=[memory.tmx] pair=en-de output=runs/my-corpus"),
    "report": ("mined=pairs.tsv output=report.html", "run=runs/en-ja output=report.html"),
    "compare": ("models=[mini,wordllama] tasks=[pairs.tsv]", "models=[mini,teacher:mini] tasks=[tatoeba]"),
    "ensemble": (
        "models=[runs/a/model,runs/b/model] output=runs/ensemble",
        "models=[runs/a/model,wordllama] fit=[dev.tsv] output=runs/ensemble",
    ),
    "status": ("output=vectors.npy", "output='vectors/*.npy'"),
    "serve": (
        "model=mini corpora=[memory.tmx,news.en-de.tsv,manual.ja.txt]",
        "model=runs/en-ja/model port=8080 api_key=secret",
    ),
    "export": ("model=mini output=small dim=128 dtype=int8", "model=mini output=vectors.txt format=word2vec"),
    "import": ("pair=en-de input=[wiki.en.vec,wiki.de.vec] output=muse", "pair=en-ja input=vec.txt output=swe"),
}
# What a section of the configuration is made of.
_SECTIONS = {
    "corpus": "corpus/bitext.py:CorpusConfig",
    "corpus.clean": "corpus/cleaning.py:CleanConfig",
    "units": "training/inputs.py:UnitsConfig",
    "contexts": "corpus/contexts.py:ContextConfig",
    "extract": "training/extract.py:ExtractConfig",
    "pca": "training/config.py:PCAConfig",
    "refine": "training/refine.py:RefineConfig",
    "objective": "training/objective.py:Objective",
    "graded": "training/triplets.py:GradedConfig",
    "shape": "training/config.py:ShapeConfig",
    "spans": "training/triplets.py:SpanTraining",
    "teacher": "teacher/protocol.py:TeacherConfig",
    "execution": "work/config.py:ExecutionConfig",
}
# Where the tables of _GROUPS are, and those that a comment in conf/ names in braces.
_TABLES = ("teacher/protocol", "corpus/cleaning", "training/config", "text/readers")
_ALIASES = (
    "text/units.py",
    "io/lines.py",
    "training/losses.py",
    "training/optimisers.py",
    "training/refine.py",
    "teacher/protocol.py",
)
_GROUPS = {  # a choice of several settings at once, and the table that it is made from
    "train": {
        **{"pair": "", "recipe": "RECIPES", "teacher": "TEACHERS", "distilled": "TEACHERS"},
        **{"units": "UNITS", "objective": "OBJECTIVES", "corpus": "", "corpus/clean": "CLEANING"},
    },
    "corpus": {"pair": "", "corpus": "", "corpus/clean": "CLEANING"},
    "import": {"pair": ""},
}
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


def verb_help(verb: str, what: str, full: bool = False) -> str:
    """Return the help of a verb; of ``train`` only what matters, unless it is to be in full."""
    found = settings(verb)
    shown = found if full or verb != "train" else [by for name in SHORT for by in found if by.name == name]
    examples = "\n".join(f"  python -m xswe {verb} {example}" for example in EXAMPLES.get(verb, ()))
    lines = [line for setting in shown for line in setting.lines()]
    further = f"\n\npython -m xswe {verb} --help-all   all {len(found)} settings" if len(shown) < len(found) else ""
    return f"python -m xswe {verb}: {what}\n\n{examples}\n\nsettings, with their defaults:\n" + "\n".join(lines) + further


def settings(verb: str) -> list[Setting]:
    """Return all settings of a verb: its choices, those of its file in ``conf/``, and the fields of its sections."""
    groups = _GROUPS.get(verb, {})
    own = list(_of_file(resource("conf") / f"{verb.replace('-', '_')}.yaml"))
    found = [_choice(verb, group, table) for group, table in groups.items()]
    if "- execution: local" in (resource("conf") / f"{verb}.yaml").read_text(encoding="utf-8"):
        own.append(Setting("execution", "local, array, ray", "local", _MEANING["execution"]))
        own += [setting for setting in _of_class("execution") if setting.name != "execution.kind"]
    training = [name for name in _SECTIONS if name != "execution"]
    sections = [name for name in training if verb == "train" or (verb == "corpus" and name.startswith("corpus"))]
    return [*found, *own, *(setting for name in sections for setting in _of_class(name))]


def _choice(verb: str, group: str, table: str) -> Setting:
    if group == "pair":
        return Setting(group, "en, de, zh and ja in any order, as en-ja, en-de-zh-ja or ja", "en-ja", _MEANING[group])
    if group == "corpus":
        cards = [path.stem for path in sorted(resource("corpora").glob("*.yaml")) if path.stem != "local"]
        return Setting(
            group, ", ".join(["sample", "local", *cards]), "sample" if verb == "train" else "local", _MEANING[group]
        )
    names = _tables()[table]
    extra = {"teacher": ["none", "custom"], "distilled": ["same", "custom"]}.get(group, [])
    first = {"objective": "ranking", "distilled": "same"}.get(group, names[0])
    return Setting(group, ", ".join([*names, *extra]), first, _MEANING[group])


@lru_cache(maxsize=1)
def _tables() -> dict[str, list[str]]:
    """Return the names in each table of choices."""
    out = {}
    for node in chain.from_iterable(_parsed(f"{name}.py").body for name in _TABLES):
        target = (
            node.target if isinstance(node, ast.AnnAssign) else node.targets[0] if isinstance(node, ast.Assign) else None
        )
        value = node.value if isinstance(node, (ast.Assign, ast.AnnAssign)) else None
        if isinstance(target, ast.Name) and isinstance(value, ast.Dict):
            out[target.id] = [str(key.value) for key in value.keys if isinstance(key, ast.Constant)]
    return out


def _of_file(path: Path) -> Iterator[Setting]:
    """Yield the settings of a file in ``conf/``: ``name: default  # meaning``, and those of a section below its name.

    ``{TABLE}`` in a meaning stands for the names in a table of the code.
    """
    section, name, default, meaning = "", "", "", ""
    for line in [*path.read_text(encoding="utf-8").splitlines(), "end:"]:
        found = re.match(r"( *)([a-z_0-9]+):(?: +(.*?))?(?: +# *(.*))?$", line)
        if found is None and name and (more := re.match(r" +# *(.*)$", line)):
            meaning += f" {more[1]}"
            continue
        if name:
            listed = re.sub(r"\{([A-Z]+)\}", lambda table: " ".join(_tables()[table[1]]), meaning)
            yield Setting(name, "", default, listed)
            name = ""
        if found is None or found[2] == "defaults":
            continue
        section = section if found[1] else ""
        if found[3] is None:
            section = found[2] + "."
        else:
            name = section + found[2]
            default, meaning = "" if found[3] == "???" else found[3].replace(", ", ","), found[4] or ""


@lru_cache(maxsize=32)
def _parsed(module: str) -> ast.Module:
    return ast.parse((_LIBRARY / module).read_text(encoding="utf-8"))


def _aliases(module: str) -> dict[str, str]:
    """Return what the names of closed choices stand for, in a module and in those that it may take them from."""
    out = {}
    for node in (node for name in (*_ALIASES, module) for node in _parsed(name).body):
        value = ast.unparse(node.value).removeprefix("typing.") if isinstance(node, ast.Assign) else ""
        if isinstance(node, ast.Assign) and value.startswith("Literal["):
            out[ast.unparse(node.targets[0])] = value
    return out


def _of_class(section: str) -> list[Setting]:
    """Return the fields of a section's dataclass, but for those that the run decides."""
    module, _, name = _SECTIONS[section].partition(":")
    node = next(node for node in _parsed(module).body if isinstance(node, ast.ClassDef) and node.name == name)
    meanings, aliases, usual = _meanings(ast.get_docstring(node) or ""), _aliases(module), _usual()
    out = []
    for one in node.body:
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name):
            field, hint = one.target.id, ast.unparse(one.annotation)
            if field not in ("seed", "threads", "clean"):
                default = usual.get((section, field)) or _default(one.value)
                kind = _kind(aliases.get(hint, hint))
                out.append(Setting(f"{section}.{field}", kind, default, meanings[field].rstrip(".")))
    return out


@lru_cache(maxsize=1)
def _usual() -> dict[tuple[str, str], str]:
    """Return what the default recipe sets, by section and name."""
    for node in _parsed("training/config.py").body:
        if (
            isinstance(node, ast.Assign)
            and ast.unparse(node.targets[0]) == "QUICKSTART"
            and isinstance(node.value, ast.Call)
        ):
            values = ast.literal_eval(next(one.value for one in node.value.keywords if one.arg == "settings"))
            return {(section, name): _plain(own) for section, held in values.items() for name, own in held.items()}
    return {}


def _kind(hint: str) -> str:
    """Return a type in words; closed choices as they are."""
    if hint.startswith("Literal["):
        return ", ".join("''" if choice == "" else str(choice) for choice in ast.literal_eval(f"({hint[8:-1]},)"))
    words = {"int": "whole number", "float": "number", "bool": "true, false", "str": "text", "Any": ""}
    plain = hint.removesuffix(" | None")
    return words.get(plain, "list" if plain.startswith("tuple") else "mapping" if plain.startswith("dict") else plain)


def _default(value: ast.expr | None) -> str:
    """Return a default as it is written on the command line."""
    if isinstance(value, ast.Call):  # field(default=…, …)
        given = {keyword.arg: keyword.value for keyword in value.keywords}
        value = given.get("default", given.get("default_factory"))
        value = value.body if isinstance(value, ast.Lambda) else value
    if value is None:
        return ""
    try:
        return _plain(ast.literal_eval(value))
    except ValueError:
        return {"SIDES": "[source,target,cross]"}.get(ast.unparse(value), "…")


def _plain(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ",".join(f"{name}:{_plain(own)}" for name, own in value.items()) + "}"
    if isinstance(value, (tuple, list)):
        return f"[{','.join(map(_plain, value))}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else str(value) or "''"


def _meanings(docstring: str) -> dict[str, str]:
    """Return the texts under ``Attributes:`` of a docstring, by name."""
    out: dict[str, str] = {}
    name = ""
    for line in docstring.partition("Attributes:\n")[2].splitlines():
        if found := re.match(r"    (\w+): (.*)", line):
            name, out[found[1]] = found[1], found[2]
        elif name and line.strip():
            out[name] += f" {line.strip()}"
    return {name: re.sub(r":\w+:`([^`]*)`", r"\1", text).replace("``", "") for name, text in out.items()}
