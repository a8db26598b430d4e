import pytest

from xswe.io.ragged import Texts
from xswe.text import units
from xswe.text.units import FEW, CompileHeuristic


def alone(x):
    return x


FEW_LONG, MANY_SHORT, FEW_SHORT = ["a" * FEW], ["a"] * 10000, ["a cat"] * 100


@pytest.fixture(params=[list, Texts.of])
def form(request):
    return request.param


def test_once_compiled_a_call_is_judged_by_its_size_alone(form, monkeypatch):
    monkeypatch.setattr("xswe.io.compiler.is_compiled", lambda _: True)
    assert [CompileHeuristic()(form(texts)) for texts in (FEW_SHORT, FEW_LONG, MANY_SHORT, [])] == [
        False,
        True,
        True,
        False,
    ]


def test_once_loaded_whatever_is_not_empty_is_worth_it(form, monkeypatch):
    monkeypatch.setattr("xswe.io.compiler.is_compiled", lambda _: True)
    worth = CompileHeuristic()
    assert worth(form(FEW_LONG))
    assert [worth(form(texts)) for texts in (FEW_SHORT, ["a cat"], [])] == [True, True, False]


def test_compiling_waits_for_as_much_text_as_it_is_worth(form, monkeypatch):
    monkeypatch.setattr("xswe.io.compiler.is_compiled", lambda _: False)
    assert CompileHeuristic()(form(MANY_SHORT))
    worth, calls = CompileHeuristic(), units._UNCOMPILED // FEW
    assert not any(worth(form(FEW_SHORT)) for _ in range(1000))
    assert [worth(form(FEW_LONG)) for _ in range(calls + 1)] == [False] * (calls - 1) + [True] * 2


def test_what_is_compiled_and_kept_is_known(tmp_path, monkeypatch):
    from numba import njit

    from xswe.io.compiler import is_compiled

    monkeypatch.setattr("numba.config.CACHE_DIR", str(tmp_path))
    first, second = njit(cache=True)(alone), njit(cache=True)(alone)
    assert not is_compiled(first)
    first(1)
    assert is_compiled(first)
    assert is_compiled(second)


def test_little_is_done_in_python_until_it_adds_up_or_the_code_is_compiled(tmp_path, monkeypatch):
    from numba import njit

    from xswe.io.compiler import for_steps

    monkeypatch.setattr("numba.config.CACHE_DIR", str(tmp_path))
    monkeypatch.setattr("xswe.io.compiler._STEPS_WORTH_COMPILING", 10)
    first, second = njit(cache=True)(alone), njit(cache=True)(alone)
    assert [for_steps(first, 4), for_steps(first, 4), for_steps(first, 4)] == [alone, alone, first]
    assert for_steps(second, 1) is alone
    second(1)
    assert for_steps(second, 1) is second
