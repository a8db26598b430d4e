"""Confidence intervals, paired tests and their correction for many, beside scipy and the formulas written out."""

from __future__ import annotations

import numpy as np

from eval.parity.figures import Figures, Inputs, figure
from xswe.evaluation.metrics import Bootstrap, Row, compare_rows, corrected, with_interval

NEEDS = ("scipy",)


def row(items: np.ndarray, metric: str = "accuracy", value: float | None = None) -> Row:
    """Return a row of the library made of some items."""
    return Row("t", "en-ja", metric, float(items.mean()) if value is None else value, items.shape[-1], items=items)


def paired(a: np.ndarray, b: np.ndarray, rounds: int, seed: int = 0) -> float:
    """Return the two-sided p of the paired bootstrap (Koehn 2004): twice the share of draws that say the contrary."""
    generator = np.random.default_rng([seed, len(a)])
    draws = []
    for _ in range(rounds):
        drawn = generator.integers(0, len(a), len(a))
        draws.append(a[drawn].mean() - b[drawn].mean())
    contrary = min(sum(d <= 0 for d in draws), sum(d >= 0 for d in draws))
    return min(1.0, 2 * (contrary + 1) / (rounds + 1))


def holm(p: np.ndarray) -> list[float]:
    """Return each p corrected for the number of tests by the definition (Holm 1979)."""
    n = len(p)
    return [min(1.0, max((n - (p < other).sum()) * other for other in p if other <= one)) for one in p]


def measure(inputs: Inputs) -> Figures:
    """Compare on what is drawn from a known distribution."""
    from scipy.stats import bootstrap, spearmanr

    rounds, n = (200, 100) if inputs.small else (2000, 1000)
    generator = np.random.default_rng(1)
    x = generator.normal(size=n)
    y = x + generator.normal(size=n)
    ours = with_interval(row(np.stack([x, y]), "cosine_spearman", spearmanr(x, y).statistic), Bootstrap(rounds))
    how = {"paired": True, "vectorized": False, "n_resamples": rounds, "method": "percentile"}
    theirs = bootstrap((x, y), lambda a, b: spearmanr(a, b).statistic, **how).confidence_interval
    ends = [ours.low, ours.high], [theirs.low, theirs.high]
    yield figure("bootstrap", "scipy", "ends of Spearman's interval (other draws)", *ends, 0.08 if inputs.small else 0.01)
    hard = generator.random(n)
    a, b = (hard < 0.82).astype(float), (generator.random(n) < 0.78).astype(float)
    found = compare_rows(row(a), row(b), Bootstrap(rounds))
    assert found is not None
    yield figure("paired test", "written out", "p (the same draws)", found.p, paired(a, b, rounds), 1e-9)
    values = generator.beta(0.3, 4.0, 40)
    yield figure("p of 40 tests", "Holm's, written out", "corrected p", corrected(values.tolist()), holm(values), 1e-12)
