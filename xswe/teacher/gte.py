"""The encoder in this package, run by torch alone: importing transformers takes longer than encoding a small corpus.

Its architecture is ``gte`` in transformers (Zhang et al. 2024, mGTE), with the same operations in the same order, so the
states are the same bytes. Its weights have the same names as there, so it is the same teacher.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file
from torch.nn.functional import embedding, gelu, layer_norm, linear, scaled_dot_product_attention

from xswe.io.files import read_json
from xswe.text.tokenizers import load_tokenizer


class Packed(dict[str, torch.Tensor]):
    """A tokenised batch: tensors by the names of an encoder's inputs, and the tokenizer's ``encodings``."""

    encodings: list[Any]

    def to(self, device: Any) -> Packed:
        """Move all tensors to a device, in place."""
        self.update({name: tensor.to(device) for name, tensor in self.items()})
        return self


class GteTokenizer:
    """The tokenizer of an encoder's folder, with padding and truncation."""

    is_fast = True

    def __init__(self, folder: Path) -> None:
        self.backend_tokenizer = load_tokenizer(folder / "tokenizer.json")
        self._pad = read_json(folder / "tokenizer_config.json")["pad_token"]

    def __call__(self, batch: list[str], *, max_length: int, return_offsets_mapping: bool = False, **_: Any) -> Packed:
        """Tokenise texts to int64 (b, t): ids, attention mask, mask of special tokens, and their places."""
        own = self.backend_tokenizer
        own.enable_truncation(max_length)
        own.enable_padding(pad_id=own.token_to_id(self._pad), pad_token=self._pad)
        packed, found = Packed(), own.encode_batch(batch)
        names = {"input_ids": "ids", "attention_mask": "attention_mask"}
        if return_offsets_mapping:
            names |= {"offset_mapping": "offsets", "special_tokens_mask": "special_tokens_mask"}
        for name, attribute in names.items():
            packed[name] = torch.from_numpy(np.array([getattr(one, attribute) for one in found], np.int64))
        packed.encodings = found
        return packed


class GteEncoder:
    """The encoder of a folder with ``config.json`` and ``model.safetensors``, computing in ``dtype``."""

    def __init__(self, folder: Path, dtype: torch.dtype) -> None:
        self.config = SimpleNamespace(**read_json(folder / "config.json"))
        self.device = torch.device("cpu")
        weights = {name: tensor.to(dtype) for name, tensor in load_file(folder / "model.safetensors").items()}
        self._weights = {name: weights[name] for name in weights if name.startswith("embeddings.")}
        for k in range(self.config.num_hidden_layers):
            own = {
                name.split(".", 3)[3]: tensor for name, tensor in weights.items() if name.startswith(f"encoder.layer.{k}.")
            }
            for kind in ("weight", "bias"):
                parts = own[f"attention.qkv_proj.{kind}"].chunk(3)
                own |= {f"self_attn.{name}_proj.{kind}": part for name, part in zip("qkv", parts, strict=True)}
                del own[f"attention.qkv_proj.{kind}"]
                own[f"self_attn.o_proj.{kind}"] = own.pop(f"attention.o_proj.{kind}")
                own[f"post_attention_layernorm.{kind}"] = own.pop(f"attn_ln.{kind}")
                own[f"post_mlp_layernorm.{kind}"] = own.pop(f"mlp_ln.{kind}")
            up, gate = own.pop("mlp.up_gate_proj.weight").chunk(2)
            own |= {"mlp.up_proj.weight": up, "mlp.gate_proj.weight": gate}
            self._weights |= {f"layers.{k}.{name}": tensor.contiguous() for name, tensor in own.items()}
        head = self.config.hidden_size // self.config.num_attention_heads
        theta = self.config.rope_parameters["rope_theta"]
        self._frequencies = 1.0 / (theta ** (torch.arange(0, head, 2, dtype=torch.float) / head))

    def named_parameters(self) -> Iterator[tuple[str, torch.Tensor]]:
        """Yield the names and weights."""
        return iter(self._weights.items())

    def parameters(self) -> Iterator[torch.Tensor]:
        """Yield the weights."""
        return iter(self._weights.values())

    def eval(self) -> GteEncoder:
        """Return the encoder itself: it never trains."""
        return self

    def to(self, device: Any) -> GteEncoder:
        """Move the encoder to a device."""
        self.device = torch.device(device)
        self._weights = {name: tensor.to(device) for name, tensor in self._weights.items()}
        self._frequencies = self._frequencies.to(device)
        return self

    def __call__(
        self, input_ids: torch.Tensor, attention_mask: torch.Tensor | None = None, **_: torch.Tensor
    ) -> SimpleNamespace:
        """Return ``last_hidden_state`` (b, t, d) of ids (b, t)."""
        states = self._norm(
            embedding(input_ids, self._weights["embeddings.word_embeddings.weight"]), "embeddings.LayerNorm"
        )
        turns = torch.arange(input_ids.shape[1], device=self.device)[None, :, None].float() * self._frequencies
        angles = torch.cat((turns, turns), dim=-1)
        rotary = tuple(part.to(states.dtype).unsqueeze(1) for part in (angles.cos(), angles.sin()))
        mask = None
        if attention_mask is not None and not bool(attention_mask.all()):
            b, t = input_ids.shape
            mask = attention_mask.bool()[:, None, None, :].expand(b, 1, t, t)
        for k in range(self.config.num_hidden_layers):
            states = self._layer(states, f"layers.{k}", rotary, mask)
        return SimpleNamespace(last_hidden_state=states)

    def _layer(self, states: torch.Tensor, at: str, rotary: tuple[torch.Tensor, ...], mask: Any) -> torch.Tensor:
        heads = (*states.shape[:-1], self.config.num_attention_heads, -1)
        query, key, value = (
            self._linear(states, f"{at}.self_attn.{name}_proj").view(heads).transpose(1, 2) for name in "qkv"
        )
        query, key = (_rotate(side, *rotary) for side in (query, key))
        scale = query.shape[-1] ** -0.5
        found = scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=scale)
        found = found.transpose(1, 2).contiguous().reshape(*states.shape[:-1], -1)
        states = self._norm(self._linear(found, f"{at}.self_attn.o_proj").add_(states), f"{at}.post_attention_layernorm")
        gated = gelu(self._linear(states, f"{at}.mlp.gate_proj")).mul_(self._linear(states, f"{at}.mlp.up_proj"))
        return self._norm(self._linear(gated, f"{at}.mlp.down_proj").add_(states), f"{at}.post_mlp_layernorm")

    def _linear(self, states: torch.Tensor, at: str) -> torch.Tensor:
        return linear(states, self._weights[f"{at}.weight"], self._weights.get(f"{at}.bias"))

    def _norm(self, states: torch.Tensor, at: str) -> torch.Tensor:
        weight, bias = self._weights[f"{at}.weight"], self._weights[f"{at}.bias"]
        return layer_norm(states, weight.shape, weight, bias, self.config.layer_norm_eps)


def _rotate(side: torch.Tensor, cosines: torch.Tensor, sines: torch.Tensor) -> torch.Tensor:
    """Rotate each pair of dimensions by the angle of its position."""
    half, out = side.shape[-1] // 2, side * cosines
    out[..., :half] -= side[..., half:] * sines[..., :half]
    out[..., half:] += side[..., :half] * sines[..., half:]
    return out
