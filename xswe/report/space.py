"""The page of a vector space: sentences and words of a model by language.

The analyses of Wada et al. (2025, sections 5.2 and 5.3, appendix C): the first components of sentence vectors by language,
with and without the top ones; which components encode language or length; a t-SNE map; norms of words by frequency and part
of speech; nearest neighbours both ways. Also files for TensorBoard's projector and embedding-atlas.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from xswe.bitext.source import find_pairs, read_pairs
from xswe.errors import ConfigError, InputError
from xswe.evaluation.metrics import pearson
from xswe.io.files import whole_folder
from xswe.model.static import StaticModel
from xswe.report import figures
from xswe.report.figures import Cloud, language_silhouette, plane, proportion, scatter
from xswe.report.page import figure, number, percent, render
from xswe.text.languages import LANGUAGES

logger = logging.getLogger(__name__)
_SAMPLED_PAIRS, _MAPPED_SENTENCES = 1000, 200  # sentences per language on a map
_COMPONENTS = 10
_MAX_WORDS, _MIN_COUNT = 2500, 3  # words whose norms are shown; occurrences of each; also words per part of speech
_NEIGHBOURS = 10  # of a sentence in atlas.parquet
_TAGGERS = {"en": "HanTa", "de": "HanTa", "zh": "jieba", "ja": "fugashi"}  # taggers of parts of speech


@dataclass(frozen=True, eq=False)
class Space:
    """Sentences of two or more languages, translations of each other, and their unit vectors in a model's space."""

    model: StaticModel
    texts: Mapping[str, Sequence[str]]
    vectors: Mapping[str, np.ndarray]


def open_space(model: Any, path: str | Path, languages: Sequence[str] = ()) -> Space:
    """Read a bitext of any format and encode it; of more than 1,000 lines, 1,000 are sampled.

    ``languages``: two or more, for a tab-separated file in the order of its columns; by default those of a model of two.
    ConfigError: the languages are unknown, or the model is an ensemble. InputError: the file is missing or has too few
    pairs.
    """
    if not isinstance(model, StaticModel):
        raise ConfigError("space= needs a single static model: give model=, and no ensemble")
    codes = tuple(languages) or tuple(model.pair)
    if len(codes) < 2 or len(set(codes)) < len(codes):
        raise ConfigError(f"languages={list(codes)}: name those of the bitext, as in languages=[en,ja]")
    lines = _lines(path, codes)
    if len(lines) < 2 * _COMPONENTS:
        raise InputError(path, f"{len(lines)} pairs are too few", f"give a bitext of at least {2 * _COMPONENTS}")
    rows = np.sort(np.random.default_rng(0).permutation(len(lines))[:_SAMPLED_PAIRS])
    texts = {code: [lines[row][k] for row in rows.tolist()] for k, code in enumerate(codes)}
    return Space(model, texts, {code: model.encode(own) for code, own in texts.items()})


def _lines(path: str | Path, languages: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the lines that have a text in every language; with three or more languages, each first text once."""
    sides = []
    for k, code in enumerate(languages[1:], 1):
        files = find_pairs([str(path)], (languages[0], code), (0, k))
        sides.append([pair for file in files for pair in read_pairs(file, whole=True)])
    if len(sides) == 1:
        return list(sides[0])
    others = [dict(reversed(pairs)) for pairs in sides]
    common = (text for text, _ in sides[0] if all(text in other for other in others))
    return [(text, *(other[text] for other in others)) for text in dict.fromkeys(common)]


@threadpool_limits.wrap(1)  # small matrices: threads would wait more than work
def space_page(space: Space) -> str:
    """Return the page of a space."""
    drop = max(1, space.model.dim // 100)
    every = np.concatenate(list(space.vectors.values())).astype(np.float64)
    _, values, components = np.linalg.svd(every - every.mean(0), full_matrices=False)
    clouds = [plane("As it is", space.vectors, space.texts)]
    removed = {code: _without(rows, every.mean(0), components[:drop]) for code, rows in space.vectors.items()}
    clouds.append(plane(f"Without the first {drop}", removed, space.texts))
    if (mapped := _tsne(space)) is not None:
        clouds.append(mapped)
    words = {code: _counted(space, code) for code in space.texts}
    norms = list(_norms(words))
    speech = _speech(space, words)
    return render(
        "space.html",
        title=f"Space of {'-'.join(space.texts)}",
        about="How far languages separate, which components encode them, whose neighbours agree, and the norms of words.",
        overview=[
            ("sentences", number(len(every)), "as many of each language"),
            ("dimensions", number(space.model.dim), ""),
            ("silhouette of languages", figure(language_silhouette(space.vectors), 3), "0 if they overlap"),
        ],
        clouds=clouds,
        components=_components(space, every, values, components),
        neighbours=_reciprocity(space),
        norms=norms,
        speech=speech,
        identity=space.model.identity,
    )


def _without(rows: np.ndarray, mean: np.ndarray, components: np.ndarray) -> np.ndarray:
    """Return unit vectors with ``components`` removed (all but the top, Mu & Viswanath, 2018)."""
    centred = rows - mean
    left = centred - (centred @ components.T) @ components
    return (left / np.maximum(np.linalg.norm(left, axis=1, keepdims=True), 1e-12)).astype(np.float32)


def _tsne(space: Space) -> Cloud | None:
    """Return a t-SNE map (van der Maaten & Hinton, 2008); None if scikit-learn is not installed."""
    if find_spec("sklearn") is None:
        logger.warning("scikit-learn is not installed: the page has no t-SNE map (pip install 'xswe[train]')")
        return None
    from sklearn.manifold import TSNE

    vectors = {code: rows[:_MAPPED_SENTENCES] for code, rows in space.vectors.items()}
    every = np.concatenate(list(vectors.values()))
    how = {"perplexity": min(30, len(every) // 4), "init": "pca", "random_state": 0, "metric": "cosine", "max_iter": 500}
    with threadpool_limits(1):  # again, for the library loaded by the import above
        places = TSNE(2, n_jobs=1, **how).fit_transform(every)
    texts = {code: own[:_MAPPED_SENTENCES] for code, own in space.texts.items()}
    return Cloud("t-SNE", scatter(places, vectors, texts, ("", ""), "t-SNE"), language_silhouette(vectors))


def _components(
    space: Space, every: np.ndarray, values: np.ndarray, components: np.ndarray
) -> tuple[list[tuple[str, ...]], Any]:
    """Return, for the first components, their share of the variance, and how much of it language and length explain."""
    places = (every - every.mean(0)) @ components[:_COMPONENTS].T
    codes = np.repeat(np.arange(len(space.texts)), [len(own) for own in space.texts.values()])
    lengths = np.log([len(text.encode("utf-8", "replace")) for own in space.texts.values() for text in own])
    rows: list[tuple[str, ...]] = []
    groups: dict[str, dict[str, figures.Bar]] = {}
    for k in range(places.shape[1]):
        column = places[:, k]
        between = sum((codes == c).sum() * (column[codes == c].mean() - column.mean()) ** 2 for c in np.unique(codes))
        language = float(between / max(1e-12, ((column - column.mean()) ** 2).sum()))
        length = pearson(column, lengths) ** 2
        share = float(values[k] ** 2 / max(1e-12, (values**2).sum()))
        rows.append((f"PC {k + 1}", percent(share), percent(language), percent(length)))
        known = {"language": language, "length": length}
        groups[str(k + 1)] = {name: (100 * part, None, None) for name, part in known.items() if part == part}
    return rows, figures.bars(groups, "% of variance explained", "What language and length explain of each component")


def _reciprocity(space: Space) -> list[tuple[str, ...]]:
    """Return, for each pair of languages, how often the nearest sentence is the translation, and how often both ways."""
    rows: list[tuple[str, ...]] = []
    for (a, left), (b, right) in combinations(space.vectors.items(), 2):
        cosines = left @ right.T
        there, back, own = cosines.argmax(1), cosines.argmax(0), np.arange(len(left))
        hits = ((there == own).mean(), (back == own).mean(), (back[there] == own).mean())
        low, high = proportion(float(hits[2]), len(own))
        times = np.bincount(there, minlength=len(right))
        cells = [*(percent(float(hit)) for hit in hits), f"{percent(low)} to {percent(high)}"]
        rows.append((f"{a}-{b}", *cells, percent(float((times == 0).mean())), str(int(times.max()))))
    return rows


def _counted(space: Space, code: str) -> list[tuple[str, int, float]]:
    """Return words of a language that occur in its sentences: the word, its count, and the norm of its vector."""
    model = space.model
    words = model.words(code)
    counts = model.units.bags(list(space.texts[code])).counts(len(model.units.tokens))
    table = np.asarray(model.vectors)
    found = [(word, int(counts[row]), float(np.linalg.norm(table[row]))) for word, row in words.items()]
    return sorted((one for one in found if one[1] >= _MIN_COUNT), key=lambda one: -one[1])[:_MAX_WORDS]


def _norms(counted: Mapping[str, list[tuple[str, int, float]]]) -> Iterator[tuple[str, Any, float]]:
    """Yield, for each language, a title, a plot of its words by frequency and norm, and the correlation."""
    for code, words in counted.items():
        if len(words) > 10:
            points = {code: [(float(times), norm, word) for word, times, norm in words]}
            title = f"{LANGUAGES[code].name}: norm of a word's vector by its frequency"
            chart = figures.dots(points, "times", "norm", title, log=(True, False), texts={code: (code,)}, height=260)
            yield title, chart, pearson(np.log([t for _, t, _ in words]), np.array([norm for *_, norm in words]))


def _speech(space: Space, counted: Mapping[str, list[tuple[str, int, float]]]) -> list[tuple[str, ...]]:
    """Return mean norms by part of speech, for the languages whose tagger is installed."""
    rows: list[tuple[str, ...]] = []
    for code in space.texts:
        if code not in _TAGGERS or find_spec(_TAGGERS[code]) is None:
            continue
        kinds: dict[str, list[float]] = {}
        norms = {word: norm for word, _, norm in counted[code]}
        tagged = ((word if word in norms else word.lower(), kind) for word, kind in _tagged(code, space.texts[code]))
        for word, kind in dict.fromkeys(tagged):
            if word in norms:
                kinds.setdefault(kind, []).append(norms[word])
        for kind, own in sorted(kinds.items(), key=lambda one: -len(one[1])):
            if len(own) >= _MIN_COUNT:
                rows.append((code, kind, number(len(own)), figure(float(np.mean(own)), 3), figure(float(np.std(own)), 3)))
    return rows


def _tagged(code: str, texts: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the words of texts with their parts of speech, in the names of the language's tagger."""
    if code in ("ja", "zh"):
        yield from (_japanese if code == "ja" else _chinese)(texts)
        return
    from HanTa import HanoverTagger

    tagger = HanoverTagger.HanoverTagger({"en": "morphmodel_en.pgz", "de": "morphmodel_ger.pgz"}[code])
    for text in texts:
        for word, _, tag in tagger.tag_sent(re.findall(r"\b\w{1,60}\b|[^\w\s]", text)):  # of 240 letters one takes seconds
            yield word, str(tag)[:2]


def _japanese(texts: Sequence[str]) -> Iterator[tuple[str, str]]:
    from fugashi import Tagger

    tagger = Tagger()
    for text in texts:
        for word in tagger(text):
            yield word.surface, str(word.feature.pos1)


def _chinese(texts: Sequence[str]) -> Iterator[tuple[str, str]]:
    import jieba
    from jieba import posseg

    jieba.setLogLevel(logging.WARNING)
    for text in texts:
        for word in posseg.cut(text):
            yield word.word, str(word.flag)[:1]


def export_space(space: Space, folder: str | Path) -> Path:
    """Write the sentences for other viewers.

    ``vectors.tsv``, ``metadata.tsv`` and ``projector_config.pbtxt`` are for TensorBoard's projector (``tensorboard
    --logdir`` the folder, or load the two tables by hand); ``atlas.parquet``, if pyarrow is installed, for embedding-atlas:
    ``embedding-atlas atlas.parquet --text text --x x --y y --neighbors neighbors``.

    Raises:
        ConfigError: the folder exists already.
    """
    target = Path(folder)
    if target.exists():
        raise ConfigError(f"{target} exists already; give the name of a new folder")
    with whole_folder(target) as made:
        every = np.concatenate(list(space.vectors.values()))
        labels = [(code, " ".join(text.split())) for code, own in space.texts.items() for text in own]
        with (made / "vectors.tsv").open("w", encoding="utf-8") as stream:
            stream.writelines("\t".join(f"{value:.6f}" for value in row) + "\n" for row in every.tolist())
        with (made / "metadata.tsv").open("w", encoding="utf-8") as stream:
            stream.writelines(f"{code}\t{text}\n" for code, text in [("language", "text"), *labels])
        config = 'embeddings {\n  tensor_path: "vectors.tsv"\n  metadata_path: "metadata.tsv"\n}\n'
        (made / "projector_config.pbtxt").write_text(config, encoding="utf-8")
        if find_spec("pyarrow") is not None:
            _write_atlas(made / "atlas.parquet", every, labels)
    return target


def _write_atlas(path: Path, vectors: np.ndarray, labels: Sequence[tuple[str, str]]) -> None:
    """Write texts, their coordinates in the first two components, and their nearest neighbours."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    centred = vectors - vectors.mean(0)
    left, values, _ = np.linalg.svd(centred, full_matrices=False)
    places = left[:, :2] * values[:2]
    cosines = vectors @ vectors.T
    ids = np.argsort(-cosines, axis=1, kind="stable")[:, : _NEIGHBOURS + 1]
    near = np.take_along_axis(cosines, ids, 1)
    neighbours = [
        {"ids": own.tolist(), "distances": [max(0.0, 1.0 - value) for value in one.tolist()]}
        for own, one in zip(ids, near, strict=True)
    ]
    columns: dict[str, list[Any]] = {"language": [code for code, _ in labels], "text": [text for _, text in labels]}
    columns |= {"x": places[:, 0].tolist(), "y": places[:, 1].tolist(), "neighbors": neighbours}
    pq.write_table(pa.table(columns), path)
