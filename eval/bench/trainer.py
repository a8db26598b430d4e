"""Training to the same loss, side by side in one run: this library's trainer against that of sentence-transformers.

    python -m eval.bench.trainer [batches=128,2048] [steps=400,60] [rounds=3] [units=180000] [pairs=100000] [threads=0]
                                 [output=eval/results/bench_trainer.json]

Both train the same table (units x 256, one start) on the same sentences of 15 words, with the symmetric ranking loss: here
``refine``, there ``SentenceTransformerTrainer`` with ``StaticEmbedding``, ``MultipleNegativesRankingLoss`` in both
directions, and fused AdamW (it needs the package accelerate). Word k of a source sentence is translated by word k of a
random permutation. In each round sentence-transformers takes so many steps from the start; the loss that its table then has
on held-out pairs is the target, and the other trains from the start until it is there. Seconds are those of training, with
the look-up of the texts, but without the making of tables and tokenizers, and without the looks at the held-out pairs.
Rounds are interleaved; medians are quoted. Run it on an idle machine.
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import numpy as np
import torch
from datasets import Dataset
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from tokenizers import Tokenizer, models, pre_tokenizers

from eval.settings import numbers, run_script
from xswe.errors import ConfigError
from xswe.io.parallel import available_threads, in_order
from xswe.io.ragged import Bags, concatenate_bags
from xswe.text.words import WordSplitter, WordUnits
from xswe.training.loop import Schedule, awake
from xswe.training.objective import Objective
from xswe.training.pairs import ParallelBags
from xswe.training.refine import RefineConfig, Trainer

WIDTH, LENGTH, HELD_OUT, RATE = 256, 15, 2048, 1e-3
OBJECTIVE = Objective(margin=0.0)
DEFAULTS: dict[str, Any] = {"batches": "128,2048", "steps": "400,60", "rounds": 3, "units": 180_000, "pairs": 100_000}
DEFAULTS |= {"threads": 0, "output": ""}


@dataclass
class Problem:
    """What both sides train on."""

    tokenizer: Tokenizer  # theirs
    units: WordUnits  # ours, of the same words with the same numbers
    source: list[str]
    target: list[str]
    held_out: ParallelBags
    start: np.ndarray


def problem(units: int, pairs: int) -> Problem:
    """Make sentences whose word frequencies fall like 1 / rank, and their word-by-word translations."""
    generator = np.random.default_rng(0)
    half = units // 2
    chances = 1.0 / np.arange(1, half + 1)
    words = generator.choice(half, (pairs + HELD_OUT, LENGTH), p=chances / chances.sum())
    sides = words, generator.permutation(half)[words] + half
    texts = [[" ".join(f"w{i}" for i in row) for row in side] for side in sides]
    vocabulary = {f"w{i}": i for i in range(units)} | {"[UNK]": units}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    own = WordUnits(list(vocabulary), WordSplitter(("en", "de"), {}, None), None)
    held_out = ParallelBags(*(own.bags(side[pairs:]) for side in texts))
    start = generator.normal(0, 0.02, (units + 1, WIDTH)).astype(np.float32)
    return Problem(tokenizer, own, texts[0][:pairs], texts[1][:pairs], held_out, start)


def held_out_loss(trainer: Trainer, given: Problem) -> float:
    """The ranking loss of one batch of all held-out pairs."""
    return trainer.loss(given.held_out, np.arange(len(given.held_out)))


def theirs(given: Problem, batch: int, steps: int, threads: int) -> tuple[float, float]:
    """Train with sentence-transformers; seconds, and the loss on the held-out pairs."""
    torch.set_num_threads(threads)
    module = StaticEmbedding(given.tokenizer, embedding_weights=given.start.copy())
    model = SentenceTransformer(modules=[module], device="cpu")
    loss = MultipleNegativesRankingLoss(
        model, scale=20.0, directions=("query_to_doc", "doc_to_query"), partition_mode="per_direction"
    )
    data = Dataset.from_dict({"anchor": given.source, "positive": given.target})
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        arguments = SentenceTransformerTrainingArguments(
            output_dir=folder,
            per_device_train_batch_size=batch,
            max_steps=steps,
            learning_rate=RATE,
            lr_scheduler_type="constant",
            optim="adamw_torch_fused",
            weight_decay=0.0,
            max_grad_norm=0.0,
            save_strategy="no",
            logging_strategy="no",
            report_to="none",
            disable_tqdm=True,
            use_cpu=True,
        )
        trainer = SentenceTransformerTrainer(model=model, args=arguments, train_dataset=data, loss=loss)
        begun = time.perf_counter()
        trainer.train()
        seconds = time.perf_counter() - begun
    table = module.embedding.weight.detach().numpy()
    return seconds, held_out_loss(Trainer(np.ascontiguousarray(table), RefineConfig(threads=threads), OBJECTIVE), given)


def ours(given: Problem, batch: int, target: float, most: int, threads: int) -> dict[str, float]:
    """Train here until the held-out loss is ``target``; seconds, those of the steps alone, and how many steps."""
    trainer = Trainer(given.start.copy(), RefineConfig(batch_size=batch, learning_rate=RATE, threads=threads), OBJECTIVE)
    begun = time.perf_counter()
    bitext = ParallelBags(*(look_up(given.units, side, threads) for side in (given.source, given.target)))
    schedule, seconds, step, loss = Schedule((len(bitext),), batch, 0), time.perf_counter() - begun, 0, float("inf")
    looked_up, every = seconds, max(1, most // 40)
    with awake(threads):
        while loss > target and step < 10 * most:
            started = time.perf_counter()
            trainer.step(bitext, schedule.at(step)[1], RATE)
            seconds += time.perf_counter() - started
            step += 1
            if step % every == 0:
                loss = held_out_loss(trainer, given)
    return {"seconds": seconds, "stepping": seconds - looked_up, "steps": step, "loss": loss}


def look_up(units: WordUnits, texts: list[str], threads: int) -> Bags:
    """Look texts up block by block, as a run does."""
    return concatenate_bags(list(in_order(units.bags, (texts[i : i + 8192] for i in range(0, len(texts), 8192)), threads)))


def main(settings: dict[str, Any]) -> None:
    """Measure, print, write."""
    threads, rounds = settings["threads"] or available_threads(), settings["rounds"]
    batches, steps = (numbers(settings[name], name) for name in ("batches", "steps"))
    if len(batches) != len(steps):
        raise ConfigError(f"batches={settings['batches']} steps={settings['steps']}: give as many of one as of the other")
    given = problem(settings["units"], settings["pairs"])
    report: dict[str, Any] = {"units": len(given.start), "pairs": len(given.source), "threads": threads, "rounds": rounds}
    ours(given, min(batches), 0.0, 1, threads)  # compilation
    for batch, count in zip(batches, steps, strict=True):
        rows: list[dict[str, float]] = []
        for _ in range(rounds):
            seconds, loss = theirs(given, batch, count, threads)
            found = ours(given, batch, loss, count, threads)
            rows.append({"theirs": seconds, "their_loss": loss, **found, "times": seconds / found["seconds"]})
        each = [(row["theirs"] / count) / (row["stepping"] / row["steps"]) for row in rows]
        medians = {"times": statistics.median(row["times"] for row in rows), "times_per_step": statistics.median(each)}
        report[f"batch {batch}"] = {"steps": count, "rounds": rows, "median": medians}
        last = rows[-1]
        print(
            f"batch {batch}, {threads} threads: loss {last['their_loss']:.4f} after {count} steps there, "
            f"{last['loss']:.4f} after {last['steps']:.0f} here; {last['theirs']:.2f} s there, {last['seconds']:.2f} s "
            f"here: x{medians['times']:.1f} to the same loss, x{medians['times_per_step']:.1f} a step"
        )
    if settings["output"]:
        Path(settings["output"]).parent.mkdir(parents=True, exist_ok=True)
        Path(settings["output"]).write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    run_script(main, DEFAULTS, __doc__)
