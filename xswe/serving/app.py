"""The application: pages, and an interface for programs; any ASGI server runs it, :func:`serve` with uvicorn."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xswe.errors import DependencyError
from xswe.io.settings import changed
from xswe.model.ensemble import AnyModel, load_any
from xswe.model.resolve import locate
from xswe.serving.config import LOOPBACK, ServeConfig

if TYPE_CHECKING:
    from xswe.serving.passages import Entry

logger = logging.getLogger(__name__)
_NEEDED = ("starlette", "uvicorn", "msgspec", "httptools")


def make_app(
    model: AnyModel | str | Path,
    corpora: Sequence[Entry] = (),
    *,
    config: ServeConfig | None = None,
    **settings: Any,
) -> Callable[..., Awaitable[None]]:
    """Make the application, for any ASGI server.

    Args:
        model: a model, its folder, or its name.
        corpora: files that can be searched: translation memories, ``news.en-de.tsv`` and other bitext, ``manual.ja.txt``;
            or mappings ``{path: …, languages: [en, de]}`` where a name does not say its languages.
        config: limits and keys.
        settings: single fields of it: ``api_key``, ``max_bytes``, …

    Returns:
        An ASGI application.

    Raises:
        ConfigError: a setting is impossible, or the languages of a corpus are not known.
        InputError: a corpus is missing or damaged.
        DependencyError: a library is missing.

    Example:
        app = xswe.make_app("mini", ["memory.tmx"])  # in app.py;  uvicorn app:app
    """
    config = changed(config or ServeConfig(), settings, "serve")
    for library in _NEEDED:
        if find_spec(library) is None:
            raise DependencyError(library, "serve", "serving")
    from xswe.serving.guard import Guard
    from xswe.serving.service import Service

    name = str(model) if isinstance(model, str) else "xswe"
    loaded = load_any(locate(model)) if isinstance(model, (str, Path)) else model
    service = Service(loaded, Path(name).name, corpora, config)
    return Guard(service.app(), config, service.metrics)


def serve(
    model: AnyModel | str | Path,
    corpora: Sequence[Entry] = (),
    *,
    config: ServeConfig | None = None,
    **settings: Any,
) -> None:
    """Serve the application until it is interrupted: see :func:`make_app`.

    Args:
        model: a model, its folder, or its name.
        corpora: files that can be searched.
        config: where to listen, limits and keys.
        settings: single fields of it: ``port``, ``host``, ``api_key``, …

    Raises:
        ConfigError: a setting is impossible.
        InputError: a corpus is missing or damaged.
        DependencyError: a library is missing.
    """
    config = changed(config or ServeConfig(), settings, "serve")
    app = make_app(model, corpora, config=config)
    import uvicorn

    from xswe.serving.connection import patient_for

    if config.host not in LOOPBACK and config.api_key is None:
        logger.warning("listening on %s without api_key=: whoever reaches this machine may ask", config.host)
    uvicorn.run(
        app,
        host=config.host,
        port=config.port,
        http=patient_for(config.seconds),
        ws="none",
        lifespan="on",
        log_level="info",
        access_log=config.access_log,
        server_header=False,
        date_header=False,
        timeout_graceful_shutdown=5,
    )
