"""A search on a graphics card, by a torch of our own on the processor: the real one takes ten seconds to import."""

from __future__ import annotations

import contextlib
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from xswe.errors import ConfigError
from xswe.search import exact
from xswe.search.lists import SearchConfig
from xswe.search.neighbours import find_neighbours, neighbours_within

HERE = SearchConfig(method="exact", threads=1)


class Tensor(np.ndarray):
    """An array with the methods of a tensor that the search calls."""

    def to(self, what):
        return self.astype(what) if isinstance(what, type) else self

    def masked_fill(self, mask, value):
        return np.where(mask, value, self).view(Tensor)

    def triu(self, diagonal):
        return np.triu(self, diagonal).view(Tensor)

    def cpu(self):
        return self

    def numpy(self):
        return np.asarray(self)

    def numel(self):
        return self.size


def topk(block, k, dim):
    assert dim == 1
    order = np.argsort(-np.asarray(block), axis=1, kind="stable")[:, :k]
    return SimpleNamespace(values=np.take_along_axis(block, order, 1), indices=order.view(Tensor))


def device(name):
    if name == "cuda":
        raise RuntimeError("no card is there\nand more")
    return name


@pytest.fixture
def torch(monkeypatch):
    fake = SimpleNamespace(
        device=device,
        zeros=lambda size, device: np.zeros(size),
        from_numpy=lambda array: array.view(Tensor),
        topk=topk,
        ones_like=lambda array, dtype: np.ones(array.shape, dtype).view(Tensor),
        inf=np.inf,
        int32=np.int32,
        bool=bool,
        inference_mode=contextlib.nullcontext,
        backends=SimpleNamespace(cuda=SimpleNamespace(matmul=SimpleNamespace(allow_tf32=True))),
    )
    monkeypatch.setitem(sys.modules, "torch", fake)
    for name, size in (("_SOURCES", 16), ("_TARGETS", 23), ("_TILE_ROWS", 64)):
        monkeypatch.setattr(exact, name, size)
    return fake


def assert_same(found, expected):
    for side in ("forward", "backward"):
        np.testing.assert_allclose(getattr(found, side), getattr(expected, side), atol=1e-6)
        np.testing.assert_array_equal(getattr(found, f"{side}_ids"), getattr(expected, f"{side}_ids"))


@pytest.mark.parametrize("n", [1, 15, 16, 17, 70])
def test_a_card_finds_what_the_processor_finds(torch, vectors, n):
    a, b = vectors(n, 150)
    assert_same(find_neighbours(a, b, 4, replace(HERE, device="cpu:0")), find_neighbours(a, b, 4, HERE))
    assert_same(neighbours_within(b[: n + 1], 2, replace(HERE, device="cpu:0")), neighbours_within(b[: n + 1], 2, HERE))
    assert torch.backends.cuda.matmul.allow_tf32  # as it was before


def test_a_card_that_is_not_there_is_named_and_what_was_set_stays(torch, vectors, monkeypatch):
    a, b = vectors(5, 6)
    with pytest.raises(ConfigError, match=r"device=cuda: no card is there; use cpu"):
        find_neighbours(a, b, 1, replace(HERE, device="cuda"))

    def broken(*_, **__):
        assert not torch.backends.cuda.matmul.allow_tf32  # in full precision
        raise MemoryError

    monkeypatch.setattr(torch, "topk", broken)
    with pytest.raises(MemoryError):
        find_neighbours(a, b, 1, replace(HERE, device="cpu:0"))
    assert torch.backends.cuda.matmul.allow_tf32
