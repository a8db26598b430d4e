"""Smaller models out of a model: fewer dimensions, fewer units."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from itertools import islice

import numpy as np
from tokenizers import Tokenizer

from xswe.embedding.static import StaticEmbedding
from xswe.errors import ConfigError
from xswe.language.subwords import SubwordUnits
from xswe.language.tokenizer_files import unknown_id
from xswe.language.units import BLOCK
from xswe.language.words import WordUnits


def rotate(model: StaticEmbedding) -> StaticEmbedding:
    """Turn the vectors so that the first dimensions carry the most, and all cosines stay as they are.

    The axes are the principal ones of the units' vectors about zero (nothing is subtracted, so that inner products are
    kept); a model whose dimensions are not ordered by its training is best turned before :func:`truncate`.
    """
    matrix = model.vectors.astype(np.float64)
    _, axes = np.linalg.eigh(matrix.T @ matrix)
    axes = axes[:, ::-1]
    axes *= np.where(axes[np.abs(axes).argmax(0), np.arange(axes.shape[1])] < 0, -1.0, 1.0)  # one sign on every machine
    return replace(model, matrix=np.ascontiguousarray(matrix @ axes, np.float32), scales=None)


def truncate(model: StaticEmbedding, dim: int) -> StaticEmbedding:
    """Keep the first dimensions.

    Raises:
        ConfigError: the model has fewer.
    """
    return model.truncate(dim)


def count_units(model: StaticEmbedding, texts: Iterable[str]) -> np.ndarray:
    """Count how often each unit occurs in texts, int64 (units,)."""
    counts = np.zeros(len(model.matrix), np.int64)
    lines = iter(texts)
    while block := list(islice(lines, BLOCK)):
        counts += model.units.bags(block).counts(len(counts))
    return counts


def prune(model: StaticEmbedding, units: int, counts: np.ndarray | None = None) -> StaticEmbedding:
    """Keep the most frequent units.

    Of a Unigram tokenizer single characters, special tokens and the unknown piece always stay, so that the rest is still a
    tokenizer: what a dropped piece covered is then covered by shorter ones. Of words the first of the list stay, which
    are the most frequent where xswe counted them.

    Args:
        model: the model.
        units: how many to keep.
        counts: int (units,), how often each occurs in some text; not given, a Unigram piece's own score decides.

    Raises:
        ConfigError: there are not so many, or fewer than the characters, or the tokenizer cannot lose pieces.
    """
    if not 0 < units <= len(model.matrix):
        raise ConfigError(f"keep={units}: the model has {len(model.matrix)} units; keep between 1 and as many")
    if isinstance(model.units, WordUnits):
        words = model.units
        order = np.arange(len(model.matrix)) if counts is None else np.argsort(-counts, kind="stable")
        kept = np.sort(order[:units])
        scales = None if model.scales is None else model.scales[kept]
        fewer = WordUnits([words.tokens[i] for i in kept], words.splitter, words.pieces)
        return replace(model, units=fewer, matrix=model.matrix[kept], scales=scales)
    if isinstance(model.units, SubwordUnits):
        tokenizer, kept = _prune_unigram(model.units.tokenizer, units, counts)
        scales = None if model.scales is None else model.scales[kept]
        old = model.units
        lone_mark = bool(old.settings.get("lone_mark"))
        fewer_pieces = SubwordUnits(tokenizer, old.kind, old.languages, lone_mark=lone_mark, folding=old.folding)
        return replace(model, units=fewer_pieces, matrix=model.matrix[kept], scales=scales)
    raise ConfigError(f"units of the kind {model.units.kind} cannot be pruned")


def _prune_unigram(tokenizer: Tokenizer, units: int, counts: np.ndarray | None) -> tuple[Tokenizer, np.ndarray]:
    """Return a tokenizer of fewer pieces, and the old ids of those kept, in their old order."""
    state = json.loads(tokenizer.to_str())
    vocabulary = state["model"].get("vocab", [])
    added = {token["id"] for token in state["added_tokens"]}
    if state["model"]["type"] != "Unigram" or any(i >= len(vocabulary) for i in added):
        raise ConfigError(
            f"a {state['model']['type']} tokenizer with {len(added)} added tokens cannot lose pieces: only a Unigram "
            "without tokens beside its vocabulary can"
        )
    always = {*added, unknown_id(tokenizer)}
    stays = np.array([i in always or len(piece) == 1 for i, (piece, _) in enumerate(vocabulary)])
    if stays.sum() > units:
        raise ConfigError(f"keep={units}: the vocabulary has {stays.sum()} single characters, which must stay; keep more")
    worth = np.array([score for _, score in vocabulary]) if counts is None else counts.astype(np.float64)
    order = np.lexsort((np.arange(len(worth)), -worth, ~stays))
    kept = np.sort(order[:units])
    place = {int(old): new for new, old in enumerate(kept)}
    state["model"]["vocab"] = [vocabulary[i] for i in kept]
    state["model"]["unk_id"] = place.get(state["model"]["unk_id"])
    for token in state["added_tokens"]:
        token["id"] = place[token["id"]]
    return Tokenizer.from_str(json.dumps(state, ensure_ascii=False)), kept
