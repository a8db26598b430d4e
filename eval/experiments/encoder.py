"""A small sentence encoder, and how it is trained.

A small encoder of the mGTE architecture that starts out as a static model, exactly.

The architecture normalises every token vector at its input and after each block, which would throw away what static
vectors keep in their lengths: how much a token matters. Two spare dimensions save it: each token vector is filled up so
that all have the same mean (zero) and the same length, normalising then changes none of their proportions, and the last
normalisation weighs the spare dimensions with zero. With the blocks' outputs started at zero, the mean of the token
states is a multiple of the mean of the static vectors: training starts at the static model's figures and not below.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from tokenizers import AddedToken, Tokenizer
from transformers import GteConfig, GteModel, PreTrainedTokenizerFast

from xswe.errors import ConfigError
from xswe.io.files import fingerprint, whole_file
from xswe.io.ragged import Bags
from xswe.progress import bar
from xswe.training.objective import Objective
from xswe.training.optimisers import Adam
from xswe.training.pairs import ParallelBags
from xswe.training.stages import fingerprint_fields

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


# Training a small multilingual sentence encoder on parallel text: the way ``teacher=mini`` was made.
#
# Translation ranking on mean-pooled token states, with an additive margin, plus relational distillation of a real
# sentence encoder's similarities of the English sides. The token table is updated lazily, row by row, like any table of
# this library; only the small body goes through automatic differentiation.


logger = logging.getLogger(__name__)
_WINDOW = 64  # batches whose pairs are sorted by length together, so that little is padded


@dataclass(frozen=True)
class EncoderConfig:
    """Settings of the encoder's training.

    Attributes:
        max_steps: optimiser steps.
        batch_size: pairs a batch, of all processes together.
        micro_batch: pairs that are in the graph at a time; it decides memory, not the result, and what each of several
            processes can have of a batch.
        max_tokens: sentences are cut there in training.
        learning_rate: AdamW's learning rate for the body.
        token_rate: lazy Adam's learning rate for the token vectors.
        warmup: fraction of the steps in which the rates rise; they fall linearly to zero after it.
        weight_decay: AdamW's weight decay.
        eval_steps: steps between looks at the development pairs.
        bfloat16: run the body in bfloat16 (twice as fast on processors that have its instructions).
        seed: decides batches and initial weights.
        threads: torch's threads.
    """

    max_steps: int = 320
    batch_size: int = 1024
    micro_batch: int = 256
    max_tokens: int = 64
    learning_rate: float = 5e-4
    token_rate: float = 5e-5
    warmup: float = 0.05
    weight_decay: float = 0.01
    eval_steps: int = 40
    bfloat16: bool = True
    seed: int = 0
    threads: int = 1

    def __post_init__(self) -> None:
        if self.batch_size < 2 or self.max_steps < 0 or self.eval_steps < 1:
            raise ConfigError("encoder needs batch_size >= 2, max_steps >= 0 and eval_steps >= 1")

    def pace(self, step: int) -> float:
        """Fraction of the learning rates at ``step``."""
        rise = max(1.0, self.warmup * self.max_steps)
        return min((step + 1) / rise, (self.max_steps - step) / max(1.0, self.max_steps - rise))


def length_batches(
    bitexts: Sequence[ParallelBags], batch: int, max_tokens: int, seed: int, epoch: int
) -> list[tuple[int, np.ndarray]]:
    """Cut every bitext into batches of pairs of similar length, in random order.

    Pairs are shuffled, sorted by length within windows of some dozens of batches, and cut; the batches of all bitexts
    are then shuffled together.

    Returns:
        (bitext, rows) for each batch of the epoch.
    """
    out: list[tuple[int, np.ndarray]] = []
    for k, bitext in enumerate(bitexts):
        order = np.random.default_rng([seed, epoch, k]).permutation(len(bitext))
        longest = np.minimum(np.maximum.reduce([side.lengths for side in bitext.sides]), max_tokens)
        for start in range(0, len(order), batch * _WINDOW):
            window = order[start : start + batch * _WINDOW]
            window = window[np.argsort(longest[window], kind="stable")]
            cuts = [window[i : i + batch] for i in range(0, len(window), batch)]
            out += [(k, rows) for rows in cuts if len(rows) == batch or len(order) < batch]
    shuffle = np.random.default_rng([seed, epoch, len(bitexts)]).permutation(len(out))
    return [out[i] for i in shuffle]


@dataclass(frozen=True)
class Peers:
    """The processes that train one encoder together, as ``torchrun`` starts them; this one alone, unless there are others.

    A batch is cut into its micro-batches, of which each process encodes some. The vectors of all are gathered, so that
    every pair is compared with the whole batch, as in one process; so are the gradients.

    Attributes:
        rank: number of this process.
        size: how many there are.
    """

    rank: int = 0
    size: int = 1

    @classmethod
    def here(cls) -> Peers:
        """Return the processes of the group that was set up, if one was."""
        together = torch.distributed.is_available() and torch.distributed.is_initialized()
        return cls(torch.distributed.get_rank(), torch.distributed.get_world_size()) if together else cls()

    def gathered(self, own: list[Any]) -> list[Any]:
        """Return the parts of all processes, of which this one has every ``size``-th from ``rank`` on, in order."""
        if self.size == 1:
            return own
        found: list[list[Any]] = [[] for _ in range(self.size)]
        torch.distributed.all_gather_object(found, own)
        return [found[k % self.size][k // self.size] for k in range(sum(map(len, found)))]

    def told(self, word: str | None = None) -> str | None:
        """Return what the first process says; the others wait for it."""
        words = [word]
        if self.size > 1:
            torch.distributed.broadcast_object_list(words)
        return words[0]


class EncoderTrainer:
    """The encoder, its two optimisers, and one step."""

    def __init__(self, model: GteModel, config: EncoderConfig, objective: Objective) -> None:
        self.model, self.config, self.objective, self.peers = model, config, objective, Peers.here()
        self.table = model.embeddings.word_embeddings.weight.detach().numpy()
        # Each of the processes of a machine has a card of its own; the table, of which a step needs few rows, is on none.
        card = int(os.environ.get("LOCAL_RANK", "0"))
        self.device = torch.device("cuda", card) if torch.cuda.is_available() else torch.device("cpu")
        model.to(self.device)
        model.embeddings.word_embeddings.weight.data = torch.from_numpy(self.table)
        self.tokens = Adam(self.table, "lazy", threads=config.threads)
        model.embeddings.word_embeddings.weight.requires_grad_(False)
        self.body = [p for p in model.parameters() if p.requires_grad]
        self.optimiser = torch.optim.AdamW(self.body, lr=config.learning_rate, weight_decay=config.weight_decay)

    def pooled(self, bags: Bags) -> tuple[torch.Tensor, torch.Tensor, np.ndarray]:
        """Unit vectors (n, d) of bags; also the leaf of gathered token vectors, and the tokens' ids, (n, t)."""
        lengths = np.minimum(bags.lengths, self.config.max_tokens)
        width = max(1, int(lengths.max(initial=0)))
        real = np.arange(width) < lengths[:, None]
        ids = np.full((len(bags), width), self.model.config.pad_token_id, np.int32)
        source = np.repeat(bags.offsets[:-1], lengths) + (np.nonzero(real)[1])
        ids[real] = bags.ids[source]
        leaf = torch.from_numpy(self.table[ids]).to(self.device).requires_grad_(torch.is_grad_enabled())
        mask = torch.from_numpy(real).to(self.device)
        with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self.config.bfloat16):
            hidden = self.model(inputs_embeds=leaf, attention_mask=mask.long()).last_hidden_state
        total = (hidden.float() * mask[..., None]).sum(1)
        return torch.nn.functional.normalize(total, dim=-1), leaf, ids

    def step(self, bitext: ParallelBags, rows: np.ndarray) -> float:
        """Take one step and return the loss before it.

        All pairs of the batch are compared with each other, but only ``micro_batch`` of them are in the graph at a time:
        a first pass without a graph gives all vectors, the objective their gradients, and a second pass carries these
        to the weights, part by part; of several processes each does some of the parts.
        """
        c, pace = self.config, self.config.pace(self.tokens.steps)
        for group in self.optimiser.param_groups:
            group["lr"] = c.learning_rate * pace
        parts = [rows[i : i + c.micro_batch] for i in range(0, len(rows), c.micro_batch)]
        mine = range(self.peers.rank, len(parts), self.peers.size)
        with torch.inference_mode():
            unit = self.peers.gathered([self.pooled(bitext.batch(parts[k]))[0].cpu().numpy() for k in mine])
        source = np.concatenate([u[: len(u) // 2] for u in unit])
        target = np.concatenate([u[len(u) // 2 :] for u in unit])
        loss, *gradients = self.objective(source, target, bitext.same(rows), bitext.teacher_of(rows), c.threads)
        self.optimiser.zero_grad(set_to_none=True)
        found = []
        for k in mine:
            cut = slice(k * c.micro_batch, k * c.micro_batch + len(parts[k]))
            pooled, leaf, tokens = self.pooled(bitext.batch(parts[k]))
            of_pooled = torch.from_numpy(np.concatenate([gradient[cut] for gradient in gradients]))
            pooled.backward(of_pooled.to(self.device))
            flat = np.flatnonzero(tokens.ravel() != self.model.config.pad_token_id)
            found.append((tokens.ravel()[flat], leaf.grad.cpu().numpy().reshape(-1, leaf.shape[-1])[flat]))
        if self.peers.size > 1:
            for parameter in self.body:
                parameter.grad = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
                torch.distributed.all_reduce(parameter.grad)
        ids, token_gradients = zip(*self.peers.gathered(found), strict=True)
        torch.nn.utils.clip_grad_norm_(self.body, 1.0)
        self.optimiser.step()
        all_ids = np.concatenate(ids)
        places = np.arange(len(all_ids), dtype=np.int64)
        self.tokens.step(all_ids, places, places + 1, np.concatenate(token_gradients), c.token_rate * pace)
        return loss

    def loss(self, bitext: ParallelBags) -> float:
        """Mean ranking loss over a (development) bitext."""
        c, total = self.config, 0.0
        with torch.inference_mode():
            for start in range(0, len(bitext), c.batch_size):
                rows = np.arange(start, min(start + c.batch_size, len(bitext)))
                unit = np.ascontiguousarray(self.pooled(bitext.batch(rows))[0].cpu().numpy())
                halves = unit[: len(rows)], unit[len(rows) :]
                total += self.objective(*halves, bitext.same(rows), None, gradient=False)[0] * len(rows)
        return total / max(1, len(bitext))


def train_encoder(
    model: GteModel,
    bitexts: Sequence[ParallelBags],
    development: Sequence[ParallelBags],
    config: EncoderConfig,
    objective: Objective,
    *,
    checkpoint: Path | None = None,
    checkpoint_seconds: float = 120.0,
) -> list[dict[str, float]]:
    """Train ``model`` in place.

    Args:
        model: from :func:`xswe.training.encoder.build`.
        bitexts: tokenised training pairs, with the distilled encoder's vectors of the English sides where wanted.
        development: tokenised held-out pairs.
        config: the settings.
        objective: the losses.
        checkpoint: a file to save the state to now and then (the first process does), and to resume from.
        checkpoint_seconds: how often.

    Returns:
        The history: step, training loss, development loss of each bitext.
    """
    if not any(len(bitext) for bitext in bitexts):
        raise ConfigError("there is no training pair: give a larger corpus")
    torch.set_num_threads(config.threads)
    trainer = EncoderTrainer(model, config, objective)
    identity = fingerprint(
        asdict(config), fingerprint_fields(objective), [len(b) for b in bitexts], sorted(p.numel() for p in trainer.body)
    )
    history: list[dict[str, float]] = []
    losses: list[float] = []  # since the last row of the history
    if checkpoint is not None and checkpoint.exists():
        history, losses = _restore(checkpoint, identity, trainer)
    saved = time.monotonic()
    epoch, batches = -1, []
    per_epoch = len(length_batches(bitexts, config.batch_size, config.max_tokens, config.seed, 0))
    with bar("train encoder", config.max_steps, "step", trainer.tokens.steps) as progress:
        while (step := trainer.tokens.steps) < config.max_steps:
            if step // per_epoch != epoch:
                epoch = step // per_epoch
                batches = length_batches(bitexts, config.batch_size, config.max_tokens, config.seed, epoch)
            which, rows = batches[step % per_epoch]
            losses.append(trainer.step(bitexts[which], rows))
            progress.update()
            if (step + 1) % config.eval_steps == 0 or step + 1 == config.max_steps:
                row = {"step": step + 1, "loss": float(np.mean(losses))}
                row |= {f"development_{k}": trainer.loss(bitext) for k, bitext in enumerate(development)}
                history.append(row)
                losses = []
                progress.set_postfix({k: f"{v:.3f}" for k, v in row.items() if k != "step"})
                logger.info("encoder: %s", row)
            if checkpoint is not None and not trainer.peers.rank and time.monotonic() - saved > checkpoint_seconds:
                _save(checkpoint, identity, trainer, history, losses)
                saved = time.monotonic()
    model.to("cpu")
    return history


def _save(path: Path, identity: str, trainer: EncoderTrainer, history: list[dict[str, float]], losses: list[float]) -> None:
    """Write the state of both optimisers and all weights into one file."""
    tensors = {"table": torch.from_numpy(trainer.table), "moments": torch.from_numpy(trainer.tokens.moments)}
    for k, parameter in enumerate(trainer.body):
        tensors[f"body.{k}"] = parameter.detach()
        state = trainer.optimiser.state[parameter]
        tensors[f"mean.{k}"], tensors[f"square.{k}"] = state["exp_avg"], state["exp_avg_sq"]
    place = json.dumps({"identity": identity, "steps": trainer.tokens.steps, "history": history, "losses": losses})
    with whole_file(path) as temporary:
        save_file({k: v.contiguous() for k, v in tensors.items()}, temporary, {"place": place})


def _restore(path: Path, identity: str, trainer: EncoderTrainer) -> tuple[list[dict[str, float]], list[float]]:
    """Load a checkpoint into ``trainer``; empty lists if it belongs to other settings."""
    with safe_open(path, "pt") as opened:
        place = json.loads(opened.metadata()["place"])
    if place["identity"] != identity:
        return [], []
    tensors = load_file(path)
    trainer.table[:] = tensors["table"].numpy()
    trainer.tokens.moments[:] = tensors["moments"].numpy()
    trainer.tokens.steps = place["steps"]
    for k, parameter in enumerate(trainer.body):
        parameter.data.copy_(tensors[f"body.{k}"])
        trainer.optimiser.state[parameter] = {
            "step": torch.tensor(float(place["steps"])),
            "exp_avg": tensors[f"mean.{k}"].to(trainer.device),
            "exp_avg_sq": tensors[f"square.{k}"].to(trainer.device),
        }
    logger.info("resuming the encoder's training at step %d", place["steps"])
    return place["history"], place["losses"]
