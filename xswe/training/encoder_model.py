"""A small encoder of the mGTE architecture that starts out as a static model, exactly.

The architecture normalises every token vector at its input and after each block, which would throw away what static
vectors keep in their lengths: how much a token matters. Two spare dimensions save it: each token vector is filled up so
that all have the same mean (zero) and the same length, normalising then changes none of their proportions, and the last
normalisation weighs the spare dimensions with zero. With the blocks' outputs started at zero, the mean of the token
states is a multiple of the mean of the static vectors: training starts at the static model's figures and not below.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import AddedToken, Tokenizer
from transformers import GteConfig, GteModel, PreTrainedTokenizerFast

from xswe.errors import ConfigError

PAD = "<pad>"


@dataclass(frozen=True)
class EncoderShape:
    """Size of the encoder.

    Attributes:
        hidden: width; at least two more than the static vectors' dimensions.
        layers: transformer layers.
        heads: attention heads; must divide ``hidden`` into even parts (rotary positions).
        intermediate: width of the gated feed-forward layer.
        max_tokens: longest input.
    """

    hidden: int = 320
    layers: int = 2
    heads: int = 5
    intermediate: int = 640
    max_tokens: int = 512


def filled_up(static: np.ndarray, hidden: int) -> np.ndarray:
    """Fill static vectors up to ``hidden`` dimensions with mean 0 and one common length.

    With v a vector of sum s, the two numbers x + y = -s and x^2 + y^2 = r^2 - |v|^2 do it; r is just large enough for
    the longest vector.

    Args:
        static: float32 (units, d).
        hidden: at least d + 2.

    Returns:
        float32 (units, hidden): the vectors, the two numbers, zeros.
    """
    units, width = static.shape
    if hidden < width + 2:
        raise ConfigError(f"the encoder's width {hidden} must exceed the static vectors' {width} by at least 2")
    vectors = static.astype(np.float64)
    total, squares = vectors.sum(1), (vectors**2).sum(1)
    radius = (squares + total**2 / 2).max() * 1.01 + 1e-9
    difference = np.sqrt(np.maximum(2 * (radius - squares) - total**2, 0.0))
    out = np.zeros((units, hidden), np.float32)
    out[:, :width] = static
    out[:, width], out[:, width + 1] = (-total + difference) / 2, (-total - difference) / 2
    return out


def build(static: np.ndarray, shape: EncoderShape, seed: int) -> GteModel:
    """Make the encoder around static vectors.

    Args:
        static: float32 (units, d), unit ``i`` the token ``i``; one padding token is added after them.
        shape: its size.
        seed: of the blocks' inner weights.
    """
    units, width = static.shape
    torch.manual_seed(seed)
    config = GteConfig(
        vocab_size=units + 1,
        hidden_size=shape.hidden,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        intermediate_size=shape.intermediate,
        max_position_embeddings=shape.max_tokens,
        hidden_dropout_prob=0.0,
        type_vocab_size=0,
        pad_token_id=units,
        layer_norm_eps=1e-12,
        rope_parameters={"rope_type": "default", "rope_theta": 10_000.0},
    )
    model = GteModel(config)
    with torch.no_grad():
        table = np.zeros((units + 1, shape.hidden), np.float32)
        table[:units] = filled_up(static, shape.hidden)
        model.embeddings.word_embeddings.weight.copy_(torch.from_numpy(table))
        for layer in model.layers:
            for out in (layer.self_attn.o_proj, layer.mlp.down_proj):
                out.weight.zero_()
                out.bias.zero_()
        model.layers[-1].post_mlp_layernorm.weight[width:] = 0.0
    return model


def save(model: GteModel, tokenizer: Tokenizer, folder: Path) -> None:
    """Write the encoder as transformers and sentence-transformers load it: float16 weights, tokenizer, mean pooling."""
    fast = Tokenizer.from_str(tokenizer.to_str())
    fast.add_special_tokens([AddedToken(PAD, special=True)])
    wrapped = PreTrainedTokenizerFast(
        tokenizer_object=fast, pad_token=PAD, unk_token="<unk>", model_max_length=model.config.max_position_embeddings
    )
    if wrapped.pad_token_id != model.config.pad_token_id:
        raise ConfigError(f"the tokenizer has {wrapped.pad_token_id} units, the encoder {model.config.pad_token_id}")
    model.to(torch.float16).save_pretrained(folder)
    model.to(torch.float32)
    wrapped.save_pretrained(folder)
    modules: list[dict[str, Any]] = [
        {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
        {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
        {"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"},
    ]
    (folder / "modules.json").write_text(json.dumps(modules, indent=2) + "\n", encoding="utf-8")
    for name in ("1_Pooling", "2_Normalize"):
        (folder / name).mkdir(exist_ok=True)
    pooling = {"word_embedding_dimension": model.config.hidden_size, "pooling_mode_mean_tokens": True}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling, indent=2) + "\n", encoding="utf-8")
