"""From Hydra's untyped configuration to plain values."""

from __future__ import annotations

import re
import typing
from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields
from typing import Any, TypeVar

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import InterpolationResolutionError

from xswe.errors import ConfigError
from xswe.io.files import check_apart, check_output, resource
from xswe.io.settings import build, meant
from xswe.work.config import LOCAL

T = TypeVar("T")
_TEXTS = ("model", "output", "report", "source", "target")  # one path or name in every verb that has them
_MANY = ("encode", "import")  # verbs whose ``input`` may be several
# Settings that are names or texts, and no numbers, in every verb that has them; of some several may be given.
NAMES = frozenset(_TEXTS) | {"compare", "corpora", "corpus.paths", "counts", "documents", "fit", "fixed", "gold", "hits"}
NAMES |= {"index", "input", "manifest", "mined", "models", "passages", "projector", "queries", "rejects", "rerank", "run"}
NAMES |= {"space", "tasks", "tokenizer", "uncorrected", "work"}


def plain(config: DictConfig) -> dict[str, Any]:
    """Resolve a configuration to plain Python values.

    Raises:
        ConfigError: a setting is taken from an environment variable that is not set, or must be given and is not.
    """
    try:
        if missing := sorted(OmegaConf.missing_keys(config)):
            raise ConfigError(f"{missing[0]} is not set: give {missing[0]}=…")
        return typing.cast("dict[str, Any]", OmegaConf.to_container(config, resolve=True))
    except InterpolationResolutionError as error:
        if (found := re.search(r"Environment variable '(\w+)' not found", str(error))) is None:
            raise
        key, name = error.full_key, found[1]
        raise ConfigError(f"{key} is under the folder that {name} names, which is not set: export {name}=DIR") from None


def shaped(verb: str, values: dict[str, Any]) -> dict[str, Any]:
    """Return a verb's composed settings with one text as a list where a list is asked for.

    Raises:
        ConfigError: a setting is unknown, a section was given a value of its own, or one path or name is a list or a
            mapping, or is none where there must be one.
    """
    usual = (resource("conf") / f"{verb}.yaml").read_text(encoding="utf-8")
    known, groups = re.findall(r"^(?:  - )?(\w+):", usual, re.MULTILINE), re.findall(r"^  - (\w+):", usual, re.MULTILINE)
    # What + added, or a file of the user's; the sections of train are checked where they are built.
    if verb != "train" and (unknown := sorted(values.keys() - set(known))):
        raise ConfigError(f"there is no setting {unknown[0]!r}{meant(unknown[0], known)}")
    for name in {*groups, *re.findall(r"^(\w+): *(?:#.*)?$", usual, re.MULTILINE)} & values.keys():
        if not isinstance(value := values[name], Mapping):
            chosen = f"; a file chooses it by  defaults: [override /{name}: {value}, _self_]" if name in groups else ""
            raise ConfigError(f"{name}={value}: {name} has settings of its own, {name}.…=; --help lists them{chosen}")
    for name in _TEXTS if verb in _MANY else (*_TEXTS, "input"):
        if isinstance(values.get(name), list if verb == "evaluate" else (list, dict)):  # whose models may be mappings
            cure = "; two aligned files are source= and target=" if name == "input" and "source" in values else ""
            raise ConfigError(f"{name}={values[name]}: give one name, without brackets{cure}")
    for name in NAMES & values.keys() - set(re.findall(r"^(\w+): *null", usual, re.MULTILINE)):
        if values[name] is None:
            raise ConfigError(f"{name} is not set: give {name}=…")
    lists = set(re.findall(r"^(\w+): *\[", usual, re.MULTILINE))
    return {name: [value] if name in lists and isinstance(value, str) else value for name, value in values.items()}


def settings(cls: type[T], values: Mapping[str, Any], verb: str, **more: Any) -> T:
    """Build a dataclass of those of a verb's settings that have the names of its fields; ``more`` go before.

    The threads of a search for neighbours are the verb's.
    """
    every = {**values, **more}
    if "neighbours" in every:
        every["neighbours"] = {"threads": values["threads"], **every["neighbours"]}
    return build(cls, {f.name: every[f.name] for f in fields(cls) if f.name in every}, verb)  # type: ignore[arg-type]


def bitext_files(values: Mapping[str, Any], what: str) -> list[str]:
    """Return the file, or the two line-aligned files, of a verb that reads a bitext.

    Raises:
        ConfigError: neither or both are given.
    """
    given, moses = values["input"], (values["source"], values["target"])
    if bool(given) == bool(all(moses)) or (given and any(moses)):
        raise ConfigError(f"{what} needs input= (a bitext, - for standard input), or source= and target=, line by line")
    return [str(path) for path in ([given] if given else moses)]


# Settings that only another makes use of, in every verb that has both: the other, and its value ("" for any).
_NEEDS = {
    **dict.fromkeys(("neighbours.clusters", "neighbours.probes", "neighbours.seed"), ("neighbours.method", "clusters")),
    **dict.fromkeys(("turns", "keep"), ("method", "itermax")),
    **dict.fromkeys(("heat", "share"), ("method", "transport")),
    "best": ("select", "kbest"),
    "columns": ("input", ""),
    "examples": ("mode", "terms"),
    "precision": ("threshold", "auto"),
    "rerank_share": ("rerank", ""),
}


def refuse_unused(verb: str, values: Mapping[str, Any], unused: Mapping[str, Iterable[str]] | None = None) -> None:
    """Refuse settings that nothing looks at, where they are not as they usually are.

    Args:
        verb: the verb, whose file in ``conf/`` says how they usually are.
        values: its composed settings.
        unused: what a table cannot say: by the reason, as in ``with what=links``, the settings (``section.name`` of one
            within a section).
    """
    refused = [(name, why) for why, names in (unused or {}).items() for name in names]
    for name, (other, value) in _NEEDS.items():
        held = _held(values, other)
        if other.partition(".")[0] in values and (held != value if value else not held):
            refused.append((name, f"without {other}={value}"))
    refused = [(name, why) for name, why in refused if name.partition(".")[0] in values]
    # To read the verb's file takes a hundredth of a second: only where one of these could have been set.
    own = OmegaConf.load(resource("conf") / f"{verb}.yaml") if refused else OmegaConf.create()
    for name, why in refused:
        elsewhere = name.partition(".")[0] == "execution"
        usual = _held({"execution": asdict(LOCAL)}, name) if elsewhere else OmegaConf.select(own, name)
        if _held(values, name) != usual:
            raise ConfigError(f"{name} does nothing {why}: leave it out")


def _held(values: Any, name: str) -> Any:
    """Return what ``section.name`` is in composed settings, None where there is no such setting."""
    for part in name.split("."):
        values = values.get(part) if isinstance(values, Mapping) else None
    return values


def is_cut(path: object, split: bool | None) -> bool:
    """Tell whether a file is cut into sentences: where it is asked for, or is a document."""
    from xswe.text.sentences import is_document

    return split if split is not None else isinstance(path, str) and path != "-" and is_document(path)


def check_report(values: dict[str, Any], inputs: Iterable[str] = ()) -> bool:
    """Return whether a report is wanted; refuse, before any work is done, one that cannot be written.

    Raises:
        ConfigError: the name is none of a page, or one of the inputs or the output.
        DependencyError: the library that writes pages is not installed.
    """
    if not values.get("report"):
        return False
    from xswe.report.page import check_page

    check_page(values["report"])
    check_output(values["report"], inputs, "report")
    check_apart("report", values["report"], values.get("output") or "-")
    return True


def reported(values: dict[str, Any], result: Any, model: Any = None) -> str:
    """Write the report of a result where one is wanted, and return the line that says so."""
    if not values.get("report"):
        return ""
    from xswe.report.write import write_report

    plain_values = {key: value for key, value in values.items() if key != "hydra" and not isinstance(value, dict)}
    sections = {key: value for key, value in values.items() if key != "hydra" and isinstance(value, dict)}
    write_report(result, values["report"], model=model, settings={"settings": plain_values, **sections})
    return f"\nreport: {values['report']}"


def open_judge(name: str | None, threads: int | None) -> Any:
    """Open the encoder of ``rerank=``; None where none is asked for."""
    if not name:
        return None
    from xswe.evaluation.models import open_encoder  # not needed without a judge, and slow to import
    from xswe.io.parallel import available_threads

    return open_encoder(name, threads or available_threads())


# Cures by settings that not every verb has which reads such files, and what is said without them.
_OFFERED = (
    ("on_error", r",? or (set )?on_error=skip[^;]*$", ""),
    ("columns", r"set columns=\[…\] \(counted from 0\)", "write the two texts, and a tab between, on each line"),
)


def as_keys(message: str, values: Mapping[str, Any]) -> str:
    """Return an error's message with the library's arguments as the verb's keys: ``drop=3`` as ``pca.drop=3``.

    A name at the top of the verb's settings, or in several sections, stays. A cure by a setting of readers that the verb
    does not have is left out.
    """
    sections: dict[str, list[str]] = {}
    for section, inside in values.items():
        for name in inside if isinstance(inside, Mapping) else ():
            sections.setdefault(name, []).append(section)

    def key(found: re.Match[str]) -> str:
        within = sections.get(found[0], [])
        return f"{within[0]}.{found[0]}" if len(within) == 1 and found[0] not in values else found[0]

    for name, offered, instead in _OFFERED:
        if name not in values and name not in sections:
            message = re.sub(offered, instead, message)
    return re.sub(r"(?<![\w./='\"-])[a-z_]+(?==)", key, message)


def register_execution() -> None:
    """Register what Hydra composes of ``execution=local``, ``array`` or ``ray``."""
    from hydra.core.config_store import ConfigStore

    for kind in ("local", "array", "ray"):
        ConfigStore.instance().store(group="execution", name=kind, node={**asdict(LOCAL), "kind": kind})
