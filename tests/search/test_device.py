"""A search by torch: on the processor always, and on a graphics card where there is one."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from xswe.errors import ConfigError
from xswe.search import exact
from xswe.search.lists import SearchConfig
from xswe.search.neighbours import find_neighbours, neighbours_within

torch = pytest.importorskip("torch")
HERE = SearchConfig(method="exact", threads=1)


@pytest.fixture(params=["cpu:0", "cuda"])
def there(request, monkeypatch):
    """Settings of a search on a device, in blocks of few lines."""
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("there is no graphics card")
    for name, size in (("_SOURCES", 16), ("_TARGETS", 23), ("_TILE_ROWS", 64)):
        monkeypatch.setattr(exact, name, size)
    return replace(HERE, device=request.param)


def assert_same(found, expected):
    for side in ("forward", "backward"):
        np.testing.assert_allclose(getattr(found, side), getattr(expected, side), atol=1e-6)
        np.testing.assert_array_equal(getattr(found, f"{side}_ids"), getattr(expected, f"{side}_ids"))


@pytest.mark.parametrize(("n", "k"), [(1, 4), (15, 4), (16, 1), (17, 20), (70, 4)])
def test_a_device_finds_what_the_processor_finds(there, vectors, n, k):
    a, b = vectors(n, 150)
    assert_same(find_neighbours(a, b, k, there), find_neighbours(a, b, k, HERE))
    assert_same(neighbours_within(b[: n + 1], k, there), neighbours_within(b[: n + 1], k, HERE))


def test_a_device_keeps_the_first_of_equal_lines(there, vectors):
    if there.device != "cuda":
        pytest.skip("on the processor topk takes any of equal scores")
    a, b = (np.repeat(side, 30, axis=0)[np.random.default_rng(1).permutation(300)] for side in vectors(10, 10))
    assert_same(find_neighbours(a, b, 4, there), find_neighbours(a, b, 4, HERE))


# What torch calls the precision of products on a card, since 2.9 and before it.
@pytest.mark.parametrize(("name", "fast", "full"), [("fp32_precision", "tf32", "ieee"), ("allow_tf32", True, False)])
def test_products_are_in_full_precision_and_what_was_set_stays(there, vectors, monkeypatch, name, fast, full):
    products = SimpleNamespace(**{name: fast})
    monkeypatch.setattr(torch.backends.cuda, "matmul", products)
    kept = torch.topk

    def looked_at(*given, **named):
        assert vars(products) == {name: full}
        return kept(*given, **named)

    monkeypatch.setattr(torch, "topk", looked_at)
    a, b = vectors(5, 6)
    find_neighbours(a, b, 1, there)
    assert vars(products) == {name: fast}

    def exhausted(*_, **__):
        raise torch.OutOfMemoryError("Tried to allocate 2.00 GiB.")

    monkeypatch.setattr(torch, "topk", exhausted)
    with pytest.raises(ConfigError, match=f"^device={there.device}: the card has too little free memory; a search "):
        find_neighbours(a, b, 1, there)
    assert vars(products) == {name: fast}


def test_a_user_of_the_new_names_of_precision_can_search(there, vectors):
    products = torch.backends.cuda.matmul
    if not hasattr(products, "fp32_precision"):
        pytest.skip("torch before 2.9 has the old names only")
    before, products.fp32_precision = products.fp32_precision, "tf32"
    try:
        a, b = vectors(40, 50)
        assert_same(find_neighbours(a, b, 4, there), find_neighbours(a, b, 4, HERE))
        assert products.fp32_precision == "tf32"
    finally:
        products.fp32_precision = before


def test_a_device_that_is_not_there_is_named(vectors, monkeypatch):
    def missing(*_, **__):
        raise RuntimeError("no card is there\nand more")

    monkeypatch.setattr(torch, "zeros", missing)
    with pytest.raises(ConfigError, match=r"^device=cuda: no card is there; use cpu, or cuda where there is one$"):
        find_neighbours(*vectors(5, 6), 1, replace(HERE, device="cuda"))
