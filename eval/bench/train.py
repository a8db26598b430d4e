"""Training speed, side by side in one run: this library's step against dense Adam and torch's sparse one.

    python -m eval.bench.train [batches=128,512,2048] [output=eval/results/bench_train.json]

All train the same symmetric ranking loss on bags of 15 units of a table of 180,000 x 256, from the same start. Rounds are
interleaved; medians of the rates are quoted, and of the ratios to dense Adam in the same round. Run it on an idle machine.
"""

from __future__ import annotations

import json
import os
import statistics
import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import numpy as np
import torch

from eval.settings import numbers, run_script
from xswe.io.parallel import available_threads
from xswe.io.ragged import Bags
from xswe.training.loop import awake
from xswe.training.objective import Objective
from xswe.training.pairs import ParallelBags
from xswe.training.refine import RefineConfig, Trainer

UNITS, WIDTH, LENGTH, PAIRS = 180_000, 256, 15, 20_000


def bitext(generator: np.random.Generator) -> ParallelBags:
    """Two sides of random bags; unit frequencies fall like 1 / rank, as words' do."""
    chances = 1.0 / np.arange(1, UNITS + 1)
    chances /= chances.sum()
    offsets = np.arange(PAIRS + 1, dtype=np.int64) * LENGTH
    sides = [generator.choice(UNITS, PAIRS * LENGTH, p=chances).astype(np.int32) for _ in range(2)]
    return ParallelBags(*(Bags(ids, offsets) for ids in sides))


def ours(start: np.ndarray, data: ParallelBags, batch: int, threads: int, kind: str) -> Callable[[int], float]:
    """One step of this library."""
    config = RefineConfig(batch_size=batch, learning_rate=1e-3, optimiser=kind, threads=threads)
    trainer = Trainer(start.copy(), config, Objective(margin=0.0))

    def step(k: int) -> float:
        return trainer.step(data, np.arange(k * batch, (k + 1) * batch) % PAIRS, 1e-3)

    return step


def with_torch(start: np.ndarray, data: ParallelBags, batch: int, threads: int, kind: str) -> Callable[[int], float]:
    """One step of torch: EmbeddingBag, cross-entropies, ``Adam(fused=True)`` or ``SparseAdam``."""
    table = torch.nn.EmbeddingBag.from_pretrained(
        torch.from_numpy(start.copy()), freeze=False, mode="sum", sparse=kind == "sparse"
    )
    parameters = list(table.parameters())
    optimiser = (
        torch.optim.SparseAdam(parameters, lr=1e-3)
        if kind == "sparse"
        else torch.optim.Adam(parameters, lr=1e-3, fused=True)
    )
    answers = torch.arange(batch)

    def step(k: int) -> float:
        torch.set_num_threads(threads)
        rows = np.arange(k * batch, (k + 1) * batch) % PAIRS
        bags = data.batch(rows)
        pooled = table(torch.from_numpy(bags.ids).long(), torch.from_numpy(bags.offsets[:-1]))
        unit = torch.nn.functional.normalize(pooled, dim=-1)
        cosines = unit[:batch] @ unit[batch:].T / 0.05
        loss = torch.nn.functional.cross_entropy(cosines, answers) + torch.nn.functional.cross_entropy(cosines.T, answers)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()
        return float(loss.detach())

    return step


def measure(
    steps: dict[str, Callable[[int], float]], threads: int, seconds: float = 2.0, rounds: int = 5
) -> dict[str, dict[str, float]]:
    """Run each step function in turn for about ``seconds`` a round; median steps/s, and the loss after equal steps."""
    rates: dict[str, list[float]] = {name: [] for name in steps}
    done = dict.fromkeys(steps, 0)
    losses: dict[str, list[float]] = {name: [] for name in steps}
    for name, step in steps.items():  # warm-up, and compilation
        for _ in range(3):
            losses[name].append(step(done[name]))
            done[name] += 1
    for _ in range(rounds):
        for name, step in steps.items():
            # Ours is measured as ``refine`` runs it.
            with awake(threads) if name.startswith("xswe") else nullcontext():
                begun, count = time.perf_counter(), 0
                while count < 3 or time.perf_counter() - begun < seconds:
                    losses[name].append(step(done[name]))
                    done[name] += 1
                    count += 1
                rates[name].append(count / (time.perf_counter() - begun))
    dense = rates["torch dense Adam, fused"]
    return {
        name: {
            "steps_per_second": statistics.median(rates[name]),
            "times_dense": statistics.median(own / other for own, other in zip(rates[name], dense, strict=True)),
            "min": min(rates[name]),
            "max": max(rates[name]),
            "loss_at_step_3": losses[name][2],
        }
        for name in steps
    }


def main(settings: dict[str, Any]) -> None:
    """Measure and print; write the figures."""
    output, batches = settings["output"], numbers(settings["batches"], "batches")
    generator = np.random.default_rng(0)
    data = bitext(generator)
    start = generator.normal(0, 0.02, (UNITS, WIDTH)).astype(np.float32)
    report: dict[str, object] = {"units": UNITS, "width": WIDTH, "length": LENGTH, "threads": available_threads()}
    for batch in batches:
        for threads in sorted({1, available_threads()}):
            made = {
                "xswe lazy Adam": ours(start, data, batch, threads, "lazy"),
                "torch dense Adam, fused": with_torch(start, data, batch, threads, "dense"),
                "torch SparseAdam": with_torch(start, data, batch, threads, "sparse"),
                "xswe dense Adam": ours(start, data, batch, threads, "dense"),
            }
            found = measure(made, threads)
            print(f"batch {batch}, {threads} threads")
            for name, row in found.items():
                rate = row["steps_per_second"]
                print(f"  {name:<26} {rate:8.2f} steps/s  x{row['times_dense']:6.1f}  loss {row['loss_at_step_3']:.4f}")
            report[f"batch {batch}, {threads} threads"] = found
    if output:
        with open(output, "w", encoding="utf-8") as stream:
            json.dump(report, stream, indent=2)
            stream.write("\n")


if __name__ == "__main__":
    run_script(main, {"batches": "128,512,2048", "output": ""}, __doc__)
