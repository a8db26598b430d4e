"""A researcher's day: train, evaluate, compare, and find out which settings matter."""

from pathlib import Path
from typing import Any

import xswe

# The sentences that come with the package: the first thousand to learn from, the others to be judged by.
sample = Path(__file__).parents[1] / "corpora" / "sample" / "sentences.tsv"
rows = [line.split("\t") for line in sample.read_text(encoding="utf-8").splitlines()]
pairs = [(row[0], row[1]) for row in rows[:1000]]
Path("test.tsv").write_text("".join(f"{row[0]}\t{row[1]}\n" for row in rows[1000:]), encoding="utf-8")

few = {"batch_size": 128, "max_steps": 60}
common: dict[str, Any] = {"recipe": "static", "objective.prefixes": [], "threads": 1, "refine": few}
trained = xswe.train(pairs, ["en", "de"], output="run", **common)
print(trained.model)

scores = xswe.evaluate(trained.model, "test.tsv")
for row in scores:
    if row.metric in ("accuracy", "f1", "mrr"):
        print(f"{row.metric:<9} {row.value:.3f}  ({row.low:.3f} to {row.high:.3f}, {row.n} pairs)")

mini = {"path": "mini", "name": "mini", "languages": ["en", "de"]}
print(xswe.compare([trained.model, mini], "test.tsv", seconds=0))

grid: dict[str, list[float]] = {"pca.dim": [16, 256], "refine.learning_rate": [0.002, 0.01]}
found = xswe.sweep(pairs, ["en", "de"], grid, seeds=[0, 1, 2], tasks="test.tsv", output="sweep", **common)
found.write("sweep.csv")
found.write("sweep.tex")
print(found)
