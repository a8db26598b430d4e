"""Keywords of the public functions: former names, American spelling, and suggestions for misspelt ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])
# Former names of arguments and settings by the functions that have them, with those of the verbs.
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
    """Return a name in the one spelling that the settings have: ``neighbours`` for ``neighbors``."""
    return name.replace("neighbors", "neighbours")


def checked(call: F, public: str) -> F:
    """Return a public function that answers a former or misspelt keyword, or the other spelling, as the prompt does."""
    import inspect

    parameters = inspect.signature(call).parameters
    known = {name for name, one in parameters.items() if one.kind is not one.VAR_KEYWORD}
    is_closed = len(known) == len(parameters)

    @wraps(call)
    def function(*given: Any, **named: Any) -> Any:
        if named.keys() - known:
            named = {spelling(name): value for name, value in named.items()}
            for name in named.keys() - known:
                _check(call, public, name, known, is_closed)
        return call(*given, **named)

    function.__module__, function.__qualname__ = "xswe", public  # where others find it, as pickle does
    return cast(F, function)


def _check(call: Callable[..., Any], public: str, name: str, known: set[str], is_closed: bool) -> None:
    """Raise ConfigError for a keyword that is no argument; what is rather a setting is left to who knows these."""
    from difflib import get_close_matches

    from xswe.errors import ConfigError

    if new := FORMER.get(call.__name__, {}).get(name):
        raise ConfigError(f"{public}: {name}= is now {new}=")
    config = call.__globals__.get(call.__annotations__.get("config", "").partition(" ")[0])
    settings = set(getattr(config, "__dataclass_fields__", ()))
    settings |= {"threads", "method"} if "neighbours" in settings else set()  # those of the search in it
    guess = get_close_matches(name, sorted(known | settings), 1)
    if is_closed or (settings and known & set(guess) and name not in settings):
        hint = f"; did you mean {guess[0]}?" if guess else f"; {public} has {', '.join(sorted(known))}"
        raise ConfigError(f"{name}: there is no such argument{hint}")
