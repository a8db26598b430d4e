"""Translations among the lines of two texts that were pasted or dropped."""

from __future__ import annotations

import time

from xswe.mining.mined import mine
from xswe.model.ensemble import AnyModel
from xswe.serving.messages import Mined, MinedPair, MineRequest

_FEWEST = 50  # lines of the shorter side below which no threshold can be found


def mine_lines(model: AnyModel, request: MineRequest) -> Mined:
    """Return all pairs, one to one, and the threshold that is found from the texts themselves."""
    started = time.perf_counter()
    threshold, note = None, "too few lines to find a threshold: move it yourself"
    if min(len(request.source), len(request.target)) >= _FEWEST:
        found = mine(model, request.source, request.target, score=request.score).threshold
        note = found.sentence()
        threshold = round(found.value, 4) if abs(found.value) < float("inf") else None
    pairs = [
        MinedPair(round(pair.score, 4), pair.source or "", pair.target or "", pair.source_row + 1, pair.target_row + 1)
        for pair in mine(model, request.source, request.target, score=request.score, threshold=None)
    ]
    return Mined(pairs, threshold, note, round(time.perf_counter() - started, 3))
