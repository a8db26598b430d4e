"""Exact neighbours on a graphics card, through torch: the same blocks, a product and two ``topk`` calls each."""

from __future__ import annotations

import numpy as np

from xswe.errors import ConfigError, DependencyError
from xswe.mining.topk import merge
from xswe.mining.types import Neighbours, SearchConfig
from xswe.mining.vectors import Vectors
from xswe.progress import bar

_SOURCES, _TARGETS = 8192, 65_536
_NOTHING = np.zeros(0, np.int64)


def search_on_device(source: Vectors, target: Vectors, k: int, config: SearchConfig) -> Neighbours:
    """Find all neighbours with the largest inner products, in full float32 precision.

    Raises:
        DependencyError: torch is not installed.
        ConfigError: there is no such device.
    """
    try:
        import torch
    except ImportError:
        raise DependencyError("torch", "train", f"neighbours.device={config.device}") from None
    try:
        device = torch.device(config.device)
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError) as error:
        problem = str(error).splitlines()[0]
        raise ConfigError(f"neighbours.device={config.device}: {problem}; use cpu, or cuda where there is one") from None
    lists = Neighbours.empty(len(source), len(target), k)
    precise = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = False
    try:
        with torch.inference_mode(), bar("neighbours", len(source) * len(target), "pair") as progress:
            for column in range(0, len(target), _TARGETS):
                panel = torch.from_numpy(target.read(column, column + _TARGETS)).to(device)
                columns = slice(column, column + len(panel))
                for row in range(0, len(source), _SOURCES):
                    strip = torch.from_numpy(source.read(row, row + _SOURCES)).to(device)
                    rows = slice(row, row + len(strip))
                    scores = strip @ panel.T
                    for block, into, ids, at in (
                        (scores, lists.forward[rows], lists.forward_ids[rows], column),
                        (scores.T, lists.backward[columns], lists.backward_ids[columns], row),
                    ):
                        best = torch.topk(block, min(k, block.shape[1]), dim=1)
                        names = (best.indices + at).to(torch.int32).cpu().numpy()
                        merge(into, ids, _NOTHING, best.values.cpu().numpy(), names, _NOTHING)
                    progress.update(len(strip) * len(panel))
    finally:
        torch.backends.cuda.matmul.allow_tf32 = precise
    return lists
