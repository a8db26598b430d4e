"""Outline of an encoder without its weights: tokenizer, sizes, cost a token."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from xswe.errors import DependencyError, ModelError
from xswe.io.files import read_json
from xswe.teacher.protocol import TeacherConfig
from xswe.teacher.transformer import explain, find_settings, locate, prompt_of, quiet, settings_file
from xswe.text.tokenizers import load_tokenizer

_SIZES = ("hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size")
_GATED = ("gte", "new", "modernbert")  # architectures whose feed-forward layer has a third matrix


@dataclass(frozen=True)
class Outline:
    """An encoder without its weights."""

    name: str  # the requested name
    dim: int  # width of the states
    layers: int
    inner: int  # width of the feed-forward layers
    heads: int
    vocabulary: int
    gated: bool  # whether feed-forward layers have three matrices instead of two
    tokenizer: Tokenizer  # without truncation and padding
    prompt: str
    max_tokens: int  # of a text, including special tokens and prompt

    @property
    def weights(self) -> int:
        """Number of weights in the matrices of all layers, without the token table."""
        return self.layers * (4 * self.dim**2 + (3 if self.gated else 2) * self.dim * self.inner)

    @property
    def parameters(self) -> int:
        """Number of all weights."""
        return self.weights + self.vocabulary * self.dim

    def operations(self, tokens: float) -> float:
        """Return the number of operations for a text of ``tokens`` tokens."""
        return tokens * (2.0 * self.weights + 4.0 * self.layers * tokens * self.dim)

    def numbers_at_once(self, tokens: int) -> float:
        """Return how many numbers a layer holds in memory per padded token of a text of ``tokens`` tokens."""
        return 8.0 * self.dim + 3.0 * self.inner + self.heads * tokens

    def lengths(self, texts: list[str]) -> np.ndarray:
        """Count the tokens of each text as encoded, int64 (n,)."""
        further = len(self.tokenizer.encode(self.prompt, add_special_tokens=False).ids)
        further += self.tokenizer.num_special_tokens_to_add(is_pair=False)
        found = self.tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        return np.minimum(np.fromiter(map(len, found), np.int64, len(texts)) + further, self.max_tokens)


def load_outline(config: TeacherConfig) -> Outline:
    """Load an encoder's tokenizer and configuration, without fetching more from the hub.

    ModelError: it is missing, needs remote code, has no fast tokenizer, or its configuration does not have its sizes.
    DependencyError: transformers is missing.
    """
    where = locate(config.model)
    try:
        file = settings_file(where, "config.json", config.revision)
        settings = read_json(file) if file else {}
        tokenizer = _tokenizer(where, config, settings)
        prompt = prompt_of(where, config.revision) if config.prompt is None else config.prompt
    except (OSError, ValueError, KeyError) as error:
        raise ModelError(explain(where, error)) from None
    limit = min(config.max_tokens, settings.get("max_position_embeddings") or config.max_tokens)
    gated = settings.get("model_type") in _GATED
    try:
        dim, layers, heads, vocabulary = (int(settings[name]) for name in _SIZES)
    except (KeyError, TypeError, ValueError):
        raise ModelError(f"teacher {where}: its config.json does not say its sizes, and nothing can be estimated") from None
    inner = int(settings.get("intermediate_size", 4 * dim))
    return Outline(config.model, dim, layers, inner, heads, vocabulary, gated, tokenizer, prompt, limit)


def _tokenizer(where: str, config: TeacherConfig, settings: dict[str, Any]) -> Tokenizer:
    if config.model == "mini":
        return load_tokenizer(Path(where) / "tokenizer.json")
    try:
        from transformers import AutoTokenizer, PretrainedConfig
    except ImportError:
        raise DependencyError("transformers", "train", "a teacher") from None
    options: dict[str, Any] = {"revision": config.revision, "trust_remote_code": False}
    if find_settings(where, config.revision) is not None:  # keeps transformers from its own code
        options["config"] = PretrainedConfig(**{k: v for k, v in settings.items() if k != "auto_map"})
    with quiet():
        found = AutoTokenizer.from_pretrained(where, **options)
    if not getattr(found, "is_fast", False):
        raise ModelError(f"teacher {where}: its tokenizer has no character offsets; choose one with a tokenizer.json")
    own = Tokenizer.from_str(found.backend_tokenizer.to_str())
    own.no_truncation()
    own.no_padding()
    return own
