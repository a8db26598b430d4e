"""The model card: ``README.md`` in the model folder, in the hub's form.

Front matter for machines (languages, licence, teacher, figures), then text for people: how to open the model, what it is,
how it was made (the resolved configuration and its fingerprint), its figures and its limits.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from xswe.io.files import fingerprint, whole_file
from xswe.model.licences import Source, derive
from xswe.model.static import StaticModel
from xswe.text.languages import LANGUAGES

_TAGS = ("static-embeddings", "sentence-transformers", "model2vec", "feature-extraction", "bitext-mining", "cross-lingual")
_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
_METRICS = {"accuracy": "accuracy", "f1": "f1", "spearman": "spearmanr", "cosine_spearman": "spearmanr"}
_NAMES = {"margin_accuracy": "accuracy by ratio margin", "margin_f1": "F1 by ratio margin", "f1": "F1"}
_KINDS = {
    "subwords": "sub-word pieces of one Unigram vocabulary for all its languages",
    "teacher": "the pieces of its teacher's tokenizer",
    "words": "words; Chinese and Japanese as its segmenters cut them",
}


def write_card(folder: Path, text: str) -> None:
    """Write a model's card (:func:`card`) into its folder, atomically."""
    with whole_file(folder / "README.md") as temporary:
        temporary.write_text(text, encoding="utf-8")


def card(
    model: StaticModel,
    *,
    name: str,
    settings: Mapping[str, Any],
    rows: Sequence[Mapping[str, Any]] = (),
    sources: Sequence[Source] = (),
    versions: Mapping[str, str] | None = None,
) -> str:
    """Return the card of a model under the given ``name``.

    ``settings`` is the resolved configuration that made it; ``rows`` are figures, as in ``results.json`` (task, subset,
    metric, value, n, note); ``sources`` is its training data, which decides the licence; ``versions`` are those of the
    libraries that made it.
    """
    licence, why = derive(sources)
    parts = [
        _front_matter(model, name, settings, rows, licence),
        f"# {name}\n\n{_summary(model)}",
        _USE.format(name=name, examples=_examples(model.languages))
        + (_SHARED if model.shared else _OTHER_LIBRARIES if model.bigrams is None else _BIGRAMS),
        _made(model, settings, versions or {}),
        _data(sources, licence, why),
        _figures(rows),
        _limits(model),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _front_matter(
    model: StaticModel, name: str, settings: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], licence: str
) -> str:
    teacher = str((settings.get("teacher") or {}).get("model") or "")
    values: dict[str, Any] = {
        "language": list(model.languages),
        "license": licence,
        "library_name": "xswe",
        "pipeline_tag": "sentence-similarity",
        "tags": list(_TAGS),
    }
    if _HUB_NAME.fullmatch(teacher):
        values["base_model"] = teacher
    if hub := (settings.get("corpus") or {}).get("hub"):
        values["datasets"] = [hub["repo"]] if isinstance(hub, Mapping) and hub.get("repo") else []
    measured = [row for row in rows if row["metric"] in _METRICS and row["value"] is not None]
    if measured:
        values["metrics"] = sorted({_METRICS[row["metric"]] for row in measured})
        values["model-index"] = [{"name": name, "results": [_result(row) for row in measured]}]
    return f"---\n{yaml.safe_dump(values, sort_keys=False, allow_unicode=True)}---"


def _result(row: Mapping[str, Any]) -> dict[str, Any]:
    kind = "semantic-similarity" if "spearman" in row["metric"] else "translation-retrieval"
    dataset = {"name": f"{row['task']} {row['subset']}", "type": str(row["task"])}
    if row.get("revision"):
        dataset["revision"] = row["revision"]
    metric = {"type": _METRICS[row["metric"]], "value": round(100 * row["value"], 2)}
    return {"task": {"type": kind}, "dataset": dataset, "metrics": [metric]}


def _summary(model: StaticModel) -> str:
    names = [LANGUAGES[code].name for code in model.languages]
    listed = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    size = model.matrix.nbytes + (0 if model.scales is None else model.scales.nbytes)
    shared = f" in memory; in the folder 256 rows for each {model.shared} dimensions" if model.shared else ""
    rows = f"{len(model.units):,} units"
    rows += "" if model.bigrams is None else f" and {len(model.bigrams):,} pairs of neighbouring units"
    return (
        f"Static embeddings that encode sentences of {listed} in one space, on a CPU. A text's vector is the mean of the\n"
        f"vectors of its units, scaled to norm 1: inner products are cosines. {rows} of {model.dim} "
        f"dimensions\n({model.dtype}, {size / 1e6:,.1f} MB{shared}). The units are {_KINDS[model.units.kind]}."
    )


def _examples(languages: Sequence[str]) -> str:
    """Return a list of sentences in the model's own languages, as Python code."""
    sentences = [LANGUAGES[code].example for code in languages if LANGUAGES[code].example] or ["…"]
    return f"[{', '.join(json.dumps(text, ensure_ascii=False) for text in sentences)}]"


_USE = """## Use

```python
import xswe

model = xswe.load("{name}")  # this folder, or its name on the hub
vectors = model.encode({examples})
```

"""
_OTHER_LIBRARIES = """The folder also opens, with no code of its own, in `sentence_transformers.SentenceTransformer` and in
`model2vec.StaticModel.from_pretrained`."""
_SHARED = """Other libraries do not open the folder, whose units share rows: `xswe.model.st_module.sentence_transformer`
makes a `SentenceTransformer` of it, `python -m xswe export dtype=int8` a folder for all."""
_BIGRAMS = """Other libraries do not open the folder, as they know no rows for pairs of units:
`xswe.model.st_module.sentence_transformer` makes a `SentenceTransformer` of it."""


def _made(model: StaticModel, settings: Mapping[str, Any], versions: Mapping[str, str]) -> str:
    made = yaml.safe_dump(dict(settings), sort_keys=False, allow_unicode=True, width=110) if settings else "not recorded\n"
    listed = ", ".join(f"{library} {version}" for library, version in versions.items())
    return (
        f"## How it was made\n\nConfiguration, fingerprint `{fingerprint(settings)}`"
        f"{f'; {listed}' if listed else ''}:\n\n```yaml\n{made}```"
    )


def _data(sources: Sequence[Source], licence: str, why: str) -> str:
    lines = []
    for source in sources:
        licence_stated = source.licence or "not stated"
        if source.restrictions:
            licence_stated += f" ({', '.join(source.restrictions)})"
        pairs = "" if source.pairs is None else f" {source.pairs:,}"
        lines.append(f"| {source.name} | {source.by or 'not stated'} | {licence_stated} |{pairs} |")
    head = ["| source | by | licence, as it states | pairs |", "|---|---|---|---|"]
    table = "\n".join([*head, *lines]) if lines else ""
    return "\n\n".join(
        part
        for part in (
            "## Training data and licence",
            table,
            f"All files of this folder, weights and vocabulary: `{licence}`; {why} Derived by rule from the\n"
            "sources' statements, which is no legal advice.",
        )
        if part
    )


def _figures(rows: Sequence[Mapping[str, Any]]) -> str:
    shown = [row for row in rows if row["value"] is not None and (row["metric"] in _METRICS or row["metric"] in _NAMES)]
    if not shown:
        return ""
    lines = [
        f"| {row['task']} | {row['subset']} | {_NAMES.get(row['metric'], row['metric'])} | {100 * row['value']:.1f} | "
        f"{row['n']:,} | {row.get('note') or ''} |"
        for row in shown
    ]
    return "\n".join(["## Figures\n", "| task | subset | metric | value | n | note |", "|---|---|---|---|---|---|", *lines])


def _limits(model: StaticModel) -> str:
    order = (
        "Word order is lost: *dog bites man* and *man bites dog* have one vector. Negation weighs as much as any word."
        if model.bigrams is None
        else "Of word order only frequent neighbours are seen. Negation weighs little more than any word."
    )
    points = [
        order,
        "One vector a unit: senses of a word are not told apart.",
        "Long texts average out; cut documents into sentences or short paragraphs.",
        "Cosines of unrelated sentences are not zero, and thresholds differ between models: calibrate on your data.",
        "It reflects what its training text says, with that text's topics and biases.",
    ]
    if len(model.languages) > 1:
        points.insert(0, "Other languages than those named are read as far as their characters are known, and mean little.")
    if model.units.kind == "words":
        points.append(
            "sentence-transformers and model2vec look words up through a tokenizer that is close to this model's own "
            "look-up and not equal to it; `xswe.model.st_module.sentence_transformer` is exact."
        )
    return "\n".join(["## Limits\n", *(f"- {point}" for point in points)])
