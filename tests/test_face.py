"""Keywords of the public functions: what is accepted, and what is said of others."""

from __future__ import annotations

import pickle
from dataclasses import dataclass

import pytest

import xswe
from xswe.errors import ConfigError
from xswe.face import checked, spelling


@dataclass(frozen=True)
class WorkConfig:
    size: int = 1
    neighbours: int = 2


def closed(model, near_neighbours=1):
    return model, near_neighbours


def sweep(model, *, config: WorkConfig | None = None, input=None, **settings):
    return model, input, settings


def test_american_spelling_is_accepted():
    assert spelling("neighbors.method") == "neighbours.method"
    assert checked(closed, "closed")("m", near_neighbors=3) == ("m", 3)
    assert checked(sweep, "sweep")("m", neighbors=3, size=2) == ("m", None, {"neighbours": 3, "size": 2})


def test_a_wrong_keyword_is_answered():
    for call, named, said in (
        (closed, {"near_neighbour": 1}, "near_neighbour: there is no such argument; did you mean near_neighbours?"),
        (closed, {"zzz": 1}, "zzz: there is no such argument; public has model, near_neighbours"),
        (sweep, {"bitext": 1}, "public: bitext= is now input="),
        (sweep, {"modl": 1}, "modl: there is no such argument; did you mean model?"),
    ):
        with pytest.raises(ConfigError) as raised:
            checked(call, "public")("m", **named)
        assert str(raised.value) == said
    for name in ("sise", "threads", "method", "zzz"):  # which the function itself checks
        assert checked(sweep, "sweep")("m", **{name: 1}) == ("m", None, {name: 1})


def test_a_public_function_is_called_as_it_is_imported():
    made = checked(closed, "public")
    assert (made.__module__, made.__qualname__, made.__name__) == ("xswe", "public", "closed")
    assert pickle.loads(pickle.dumps(xswe.mine)) is xswe.mine
    for name, said in (
        ("StaticModel", "xswe.StaticModel is xswe.types.StaticModel"),
        ("phrase_table", "xswe.phrase_table is now in its room: from xswe.alignment.phrase_table import phrase_table"),
        ("align_documents", "xswe.align_documents is now in its room: from xswe.alignment.documents import align_files"),
        ("nothing", "module 'xswe' has no attribute 'nothing'"),
    ):
        with pytest.raises(AttributeError) as raised:
            getattr(xswe, name)
        assert str(raised.value) == said
    assert set(dir(xswe)) == set(xswe.__all__)
    assert all(getattr(xswe, name) is getattr(xswe, name) for name in xswe.__all__)
