"""Keywords of the public functions: former names, American spelling, and suggestions for misspelt ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])
# Former names of arguments and settings, by function; dotted ones are settings of the verb.
FORMER: Mapping[str, Mapping[str, str]] = {
    "compare": {"data.root": "data", "speed.seconds": "seconds"},
    "dedup": {"texts": "input"},
    "evaluate": {"data.root": "data"},
    "filter_bitext": {"bitext": "input"},
    "find_phrases": {"passages": "input"},
    "find_terms": {"passages": "input"},
    "index": {"texts": "input"},
    "mine_negatives": {"bitext": "input"},
    "prepare_corpus": {"name": "corpus"},
    "search_file": {"documents": "input"},
    "search_phrases": {"passages": "input"},
    "split_text": {"given": "input"},
    "sweep": {"bitext": "input"},
    "train": {"bitext": "input"},
}


def spelling(name: str) -> str:
    """Return a name in the spelling of the settings: ``neighbours`` for ``neighbors``."""
    return name.replace("neighbors", "neighbours")


def checked(call: F, public: str) -> F:
    """Wrap a public function to accept American spelling, and to answer former or misspelt keywords as the prompt does."""
    import inspect

    parameters = inspect.signature(call).parameters
    known = {name for name, one in parameters.items() if one.kind is not one.VAR_KEYWORD}
    is_closed = len(known) == len(parameters)

    @wraps(call)
    def function(*given: Any, **named: Any) -> Any:
        """Call the function, with American names spelt as its own, after a check of unknown ones."""
        if named.keys() - known:
            named = {spelling(name): value for name, value in named.items()}
            for name in named.keys() - known:
                _check(call, public, name, known, is_closed)
        return call(*given, **named)

    function.__module__, function.__qualname__ = "xswe", public  # where pickle, too, finds it
    return cast(F, function)


def _check(call: Callable[..., Any], public: str, name: str, known: set[str], is_closed: bool) -> None:
    """Raise ConfigError for an unknown keyword, unless it seems to be a setting, which the function checks itself."""
    from difflib import get_close_matches

    from xswe.errors import ConfigError

    if new := FORMER.get(call.__name__, {}).get(name):
        raise ConfigError(f"{public}: {name}= is now {new}=")
    config = call.__globals__.get(call.__annotations__.get("config", "").partition(" ")[0])
    settings = set(getattr(config, "__dataclass_fields__", ()))
    settings |= {"threads", "method"} if "neighbours" in settings else set()  # settings of its search
    guess = get_close_matches(name, sorted(known | settings), 1)
    if is_closed or (settings and known & set(guess) and name not in settings):
        hint = f"; did you mean {guess[0]}?" if guess else f"; {public} has {', '.join(sorted(known))}"
        raise ConfigError(f"{name}: there is no such argument{hint}")
