"""Fill the tables of README.md, docs/**/*.md and eval/results/*.md, and figures in sentences, from measured results.

    python -m eval.report.tables           # rewrite what stands between <!-- table:NAME --> and <!-- end -->, and figures
    python -m eval.report.tables check=1   # change nothing; exit with 1 if something would change

What a table shows is declared in TABLES, once; figures come from JSON files alone: measured ones from eval/results (rows of
task, subset, metric, value, …, as eval/experiments/main_job.py, compare and ablate.py write them), published ones from
eval/report/published.yaml. The best measured figure of a column is bold. A table of which no file is there is left as it
is. Models that were trained on other texts of a test's source are marked, by their cards (training_data.py). The figures in
the sentences of README.md and docs are those that eval/report/prose.py names.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from eval.report.encode_tables import ENCODING
from eval.report.fill_prose import fill_figures
from eval.report.lever_tables import LEVERS
from eval.report.parity_table import PARITY
from eval.report.phrase_tables import PHRASES
from eval.report.speed_tables import SPEED
from eval.report.training_data import MARK, mark_all, seen, trained_on
from eval.settings import ROOT, Measured, run_script
from xswe.errors import XsweError
from xswe.evaluation.metrics import primary_metrics
from xswe.io.files import whole_file
from xswe.io.results import markdown

DEFAULTS: dict[str, Any] = {"check": 0, "root": str(ROOT)}
_PLACE = re.compile(r"(<!-- table:(?P<name>[\w.-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


@dataclass(frozen=True)
class Column:
    """One column of figures.

    Attributes:
        title: its header.
        task: of the rows that it shows.
        subset: of the rows that it shows.
        metric: of the rows that it shows.
        published: the task of the published figures beside them, where it has another name there; None for none.
    """

    title: str
    task: str
    subset: str
    metric: str
    published: str | None = None


@dataclass(frozen=True)
class Table:
    """One table.

    Attributes:
        sources: JSON files, or folders of them, below eval/results.
        keys: what identifies a line: fields of the rows.
        titles: what the header calls them.
        where: fields that a row must have, and their values; a row without the field passes.
        columns: the figures; None for the main figure of every task and subset in the file.
        published: sections of published.yaml whose figures stand below the measured ones; of a model that is in several of
            them, those of the first.
        unmeasured: whether columns are shown in which only published figures stand.
    """

    sources: tuple[str, ...]
    keys: tuple[str, ...]
    titles: tuple[str, ...]
    where: tuple[tuple[str, Any], ...] = ()
    columns: tuple[Column, ...] | None = None
    published: tuple[str, ...] = ()
    unmeasured: bool = False


PAIRS = ("en-de", "en-zh", "en-ja")
LANGUAGES = ("en", "de", "zh", "ja")
TATOEBA = tuple(Column(f"Tatoeba {pair}", "tatoeba", pair, "f1", "tatoeba") for pair in PAIRS)
BY_MARGIN = tuple(Column(f"by margin {pair}", "tatoeba", pair, "margin_f1_both_ways") for pair in PAIRS)
WMT23 = tuple(Column(f"WMT23 {pair}", "file", f"wmt23.{pair}.tsv", "f1") for pair in PAIRS)
ELSEWHERE = (
    *(Column(f"BUCC {pair}", "bucc", pair, "f1", "bucc") for pair in PAIRS[:2]),
    *(Column(f"BUCC.v2 {pair}", "bucc.v2", pair, "f1", "bucc.v2") for pair in PAIRS[:2]),
    *(Column(f"NTREX {pair}", "ntrexbitextmining", pair, "f1", "ntrex") for pair in (*PAIRS, "de-ja", "zh-ja")),
    Column("STS17 en-de", "sts17", "en-de", "cosine_spearman", "sts17"),
)
STSB_XLING = tuple(Column(f"STS-B {pair}", "file", f"stsb-xling.{pair}.tsv", "spearman") for pair in PAIRS)
STSB = tuple(Column(f"STS-B {code}", "file", f"stsb.{code}.tsv", "spearman") for code in LANGUAGES)
STUDIES = {
    "dim": "dimensions",
    "dim_random": "dimensions",
    "vocabulary": "words a language",
    "pieces": "pieces",
    "drop": "components removed",
    "contexts": "sentences a unit",
    "pick": "sentences",
    "pca_level": "PCA fitted on",
    "segmenters": "segmenters",
}
LAID_OUT = {**SPEED, **ENCODING, **PHRASES, **LEVERS, **PARITY}  # tables whose files have shapes of their own
# What tables call the steps of the method, by main_job.py's names.
STEPS = {
    "extraction": "extraction",
    "pca-without-abtt": "+ sentence PCA, none removed",
    "pca-with-abtt": "+ sentence PCA with ABTT",
    "refinement": "+ refinement",
}
MAIN = ("main", "baselines.json")
WHO = ("model", "dims")
TABLES = {
    "main": Table(MAIN, WHO, WHO, (("pairs", 0),), (*TATOEBA, *WMT23, *STSB_XLING), ("retrieval", "rivals")),
    "retrieval": Table(MAIN, WHO, WHO, (("pairs", 0),), (*TATOEBA, *BY_MARGIN, *WMT23), ("retrieval", "rivals")),
    "rivals": Table(
        *(MAIN, WHO, WHO, (("pairs", 0), ("step", "refinement")), (*TATOEBA, *ELSEWHERE), ("rivals", "retrieval"), True)
    ),
    "similarity": Table(MAIN, WHO, WHO, (("pairs", 0),), (*STSB_XLING, *STSB)),
    "sizes": Table(
        ("main",), ("size", "model"), ("pairs", "model"), (("step", "refinement"),), (*TATOEBA, *WMT23, *STSB_XLING)
    ),
    "stages": Table(("main",), WHO, WHO, (("pairs", 100_000),), (*TATOEBA, *WMT23, *STSB_XLING)),
    "mono": Table(("mono",), ("pair", "model"), ("language", "model"), (("pairs", 100_000),), STSB),
    "imitation": Table(("imitation.json",), ("variant", "step"), ("mean taken off", "after")),
    "english": Table(("english.json",), ("model",), ("model",)),
    "ablation.stages": Table(("ablation/stages.json",), ("step",), ("step",)),
    **{
        f"ablation.{name}": Table((f"ablation/{name}.json",), ("variant", "step"), (title, "after"))
        for name, title in STUDIES.items()
    },
    # The same with a real encoder.
    "ablation.e5-small.stages": Table(("ablation/e5-small/stages.json",), ("step",), ("step",)),
    **{
        f"ablation.e5-small.{name}": Table(
            (f"ablation/e5-small/{name}.json",), ("variant", "step"), (STUDIES[name], "after")
        )
        for name in ("dim", "drop", "contexts", "pick", "pca_level")
    },
}


def load(folder: Path, sources: Sequence[str]) -> list[dict[str, Any]] | None:
    """Return the rows of all files that are there, each with the fields of its file; None if there is no file.

    Args:
        folder: eval/results.
        sources: names of files and folders in it.
    """
    files = [file for source in sources for file in _files(folder / source)]
    rows: list[dict[str, Any]] = []
    for file in files:
        record = json.loads(file.read_text(encoding="utf-8"))
        about = {key: value for key, value in record.items() if not isinstance(value, (dict, list))}
        steps = record["rows"] if isinstance(record["rows"], dict) else {None: record["rows"]}
        compared = {model["name"]: model["dim"] for model in record.get("models", [])}
        for step, found in steps.items():
            own = {**about, **_named(about, step), "dims": record.get("dims", {}).get(step)} if step else about
            texts = trained_on(record, step)
            rows += [{"dims": compared.get(row.get("model")), **own, **row, "trained_on": texts} for row in found]
    rows.sort(key=lambda row: row.get("pairs") or math.inf)  # 0 is all pairs
    return rows if files else None


def _files(source: Path) -> list[Path]:
    return sorted(source.glob("*.json")) if source.is_dir() else [source] if source.is_file() else []


def _named(about: Mapping[str, Any], step: str) -> dict[str, Any]:
    """Name a line of the main job: which step, from which start, on how many pairs."""
    teacher, size = about["teacher"], about.get("pairs", 0)
    if step == "teacher":
        model = f"the teacher ({teacher})"
    elif teacher == "none":
        model = f"random start {STEPS.get(step, step)}"
    else:
        model = f"{STEPS.get(step, step)} ({teacher})"
    model += f", {about['label']}" if about.get("label") else ""
    return {"step": step, "model": model, "size": f"{size:,}" if size else "all"}


def render(table: Table, rows: Sequence[Mapping[str, Any]], published: Mapping[str, Any]) -> str:
    """Lay one table out in Markdown.

    Args:
        table: what it shows.
        rows: of its sources.
        published: the figures of published.yaml.
    """
    rows = [row for row in rows if all(row.get(key, value) == value for key, value in table.where)]
    columns = table.columns or _all_columns(rows)
    by_key = {(column.task, column.subset, column.metric): column for column in columns}
    lines: dict[tuple[Any, ...], dict[Column, float]] = {}
    sources: dict[tuple[Any, ...], set[str]] = {}
    for row in rows:
        key = tuple(row.get(key) for key in table.keys)
        line = lines.setdefault(key, {})
        sources.setdefault(key, set()).update(row.get("trained_on", ()))
        column = by_key.get((row["task"], row["subset"], row["metric"]))
        if column is not None and row["value"] is not None:
            line[column] = float(row["value"])
    shown = [*lines.values(), *(_lines_of(table, columns, published) if table.unmeasured else [])]
    columns = tuple(column for column in columns if any(column in line for line in shown))
    best = {column: max((line[column] for line in lines.values() if column in line), default=0.0) for column in columns}
    below = _published(table, columns, published)
    origin, tasks = bool(below), {column.task for column in columns}
    body: list[list[Any]] = []
    for key, line in lines.items():
        if line:
            figures = [_figure(line.get(column), best[column]) for column in columns]
            who = [None if part is None else str(part) for part in key]
            if "model" in table.keys:
                place = table.keys.index("model")
                who[place] = _marked(str(who[place]), tasks, sources[key])
            body.append([*who, *(["measured here"] if origin else []), *figures])
    of_others = (entry.get("trained_on", ()) for section in table.published for entry in published[section])
    found = ", ".join(seen(tasks, set().union(*sources.values(), *of_others)))
    mark = f" ({MARK} {found} is in its training data)" if found else ""
    titles = [f"{title}{mark if key == 'model' else ''}" for key, title in zip(table.keys, table.titles, strict=True)]
    header = [*titles, *(["figures"] if origin else []), *(column.title for column in columns)]
    return markdown(header, body + below)


def _marked(model: str, tasks: Iterable[str], sources: Iterable[str]) -> str:
    return f"{model} {MARK}" if seen(tasks, sources) else model


def _figure(value: float | None, best: float) -> str | None:
    """Write one measured figure, the best one bold; two that are written alike are both the best."""
    if value is None:
        return None
    text = f"{100 * value:.1f}"
    return f"**{text}**" if text == f"{100 * best:.1f}" else text


def _figures_of(entry: Mapping[str, Any], columns: Sequence[Column]) -> dict[Column, float]:
    """Return the figures that a published entry has."""
    found = {column: entry.get(column.published or "", {}).get(column.subset) for column in columns}
    return {column: figure for column, figure in found.items() if figure is not None}


def _lines_of(table: Table, columns: Sequence[Column], published: Mapping[str, Any]) -> list[dict[Column, float]]:
    """Return the figures of all published entries of a table."""
    return [_figures_of(entry, columns) for section in table.published for entry in published[section]]


def _published(table: Table, columns: Sequence[Column], published: Mapping[str, Any]) -> list[list[Any]]:
    """Return the published lines that have a figure in any column, each model once."""
    out: dict[tuple[str, Any], list[Any]] = {}
    for section in table.published:
        for entry in published[section]:
            figures, who = _figures_of(entry, columns), (entry["model"], entry["dims"])
            if figures and who not in out:
                name = entry["model"] + (f" ({entry['note']})" if "note" in entry else "")
                tasks = {column.task for column in figures}
                own = {"model": _marked(name, tasks, entry.get("trained_on", ())), "dims": entry["dims"]}
                cells = [f"{figures[column]:.1f}" if column in figures else None for column in columns]
                out[who] = [
                    *(own.get(key, "") for key in table.keys),
                    f"published: {published['sources'][section]}",
                    *cells,
                ]
    return list(out.values())


def _all_columns(rows: Sequence[Mapping[str, Any]]) -> tuple[Column, ...]:
    """Return a column for the main figure of every task and subset, in the order of the rows."""
    chosen = primary_metrics(((row["task"], row["subset"]), row["metric"]) for row in rows)
    return tuple(
        Column(" ".join(filter(None, [task if task != "file" else "", subset])), task, subset, metric)
        for (task, subset), metric in chosen.items()
    )


def fill(text: str, folder: Path, published: Mapping[str, Any]) -> tuple[str, list[str]]:
    """Fill the marked places of a text.

    Args:
        text: with places ``<!-- table:NAME -->`` … ``<!-- end -->``.
        folder: of the measured results.
        published: the figures of published.yaml.

    Returns:
        The text, and a remark for each place that was left alone.

    Raises:
        KeyError: a place names a table that is not declared.
    """
    remarks: list[str] = []

    def place(match: re.Match[str]) -> str:
        name = match["name"]
        if name in LAID_OUT:
            sources, laid_out = LAID_OUT[name]
            missing = [file for file in sources.split() if not (folder / file).is_file()]
            if missing:
                remarks.append(f"table:{name} is left as it is: {folder} has no {missing[0]}")
                return match[0]
            records = [json.loads((folder / file).read_text(encoding="utf-8")) for file in sources.split()]
            texts = (trained_on(record) for record in records if isinstance(record, dict))
            return f"{match[1]}{mark_all(laid_out(*records), frozenset().union(*texts))}\n{match[3]}"
        if name not in TABLES:
            raise KeyError(f"table:{name} is not declared; there are {', '.join([*TABLES, *LAID_OUT])}")
        rows = load(folder, TABLES[name].sources)
        if rows is None:
            remarks.append(f"table:{name} is left as it is: {folder} has no {' or '.join(TABLES[name].sources)}")
            return match[0]
        content = render(TABLES[name], rows, published)
        return f"{match[1]}{content}\n{match[3]}"

    return _PLACE.sub(place, text), remarks


def main(settings: dict[str, Any]) -> None:
    """Fill all files, or check that they are filled."""
    root, check = Path(settings["root"]), settings["check"]
    results = root / "eval" / "results"
    published = yaml.safe_load((root / "eval" / "report" / "published.yaml").read_text(encoding="utf-8"))
    measured = Measured(root)
    stale = False
    for file in [root / "README.md", *sorted(root.glob("docs/**/*.md")), *sorted(results.glob("**/*.md"))]:
        before = file.read_text(encoding="utf-8")
        try:
            after, remarks = fill(before, results, published)
            after = fill_figures(file.relative_to(root).as_posix(), after, measured)
        except (KeyError, ValueError, OSError) as error:
            raise XsweError(f"{file}: {error.args[0]}") from None
        for remark in remarks:
            print(f"{file}: {remark}")
        if after != before:
            stale = True
            print(f"{file}: {'is not up to date' if check else 'filled'}")
            if not check:
                with whole_file(file) as temporary:
                    temporary.write_text(after, encoding="utf-8")
    sys.exit(1 if stale and check else 0)


if __name__ == "__main__":
    run_script(main, DEFAULTS, __doc__)
