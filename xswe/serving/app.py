"""The ASGI application, and :func:`serve`, which runs it with uvicorn."""

from __future__ import annotations

import contextlib
import logging
import socket
from collections.abc import Awaitable, Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from xswe.errors import ConfigError, DependencyError
from xswe.io.settings import changed, for_all
from xswe.model.ensemble import AnyModel, open_model
from xswe.serving.config import LOOPBACK, Log, ServeConfig
from xswe.serving.systemd import handed_over

if TYPE_CHECKING:
    from xswe.serving.passages import Entry
    from xswe.settings import ServeSettings

logger = logging.getLogger(__name__)
_SEND_BUFFER = 1 << 19  # bytes of a response that the system buffers until the client reads them


def make_app(
    model: AnyModel | str | Path,
    corpora: Sequence[Entry] = (),
    *,
    config: ServeConfig | None = None,
    **settings: Unpack[ServeSettings],
) -> Callable[..., Awaitable[None]]:
    """Make the application, for any ASGI server.

    Args:
        model: a model, its folder, or its name.
        corpora: files to search: translation memories, bitext such as ``news.en-de.tsv``, text such as ``manual.ja.txt``;
            or mappings ``{path: …, languages: [en, de]}`` for names that do not give the languages.
        config: limits and keys.
        settings: single fields of ``config``: ``api_key``, ``max_bytes``, …

    Returns:
        An ASGI application.

    Raises:
        ConfigError: a setting is invalid, or the languages of a corpus are unknown.
        InputError: a corpus is missing or damaged.
        DependencyError: a library is missing.

    Example:
        app = xswe.make_app("mini", ["memory.tmx"])  # in app.py;  uvicorn app:app
    """
    config = changed(config or ServeConfig(), settings, "serve")
    _need("starlette", "msgspec", "orjson", "prometheus_client")
    return _app(open_model(model, "make_app(model, corpora)"), _name(model), corpora, config)


def _app(model: AnyModel, name: str, corpora: Sequence[Entry], config: ServeConfig) -> Callable[..., Awaitable[None]]:
    from xswe.serving.guard import Guard
    from xswe.serving.service import Service

    service = Service(model, name, corpora, config)
    return Guard(service.app(), config, service.metrics, service.budget)


def _name(model: AnyModel | str | Path) -> str:
    """Return the name by which clients request the model."""
    return Path(model).absolute().name if isinstance(model, (str, Path)) else "xswe"


def serve(
    model: AnyModel | str | Path,
    corpora: Sequence[Entry] = (),
    *,
    config: ServeConfig | None = None,
    **settings: Unpack[ServeSettings],
) -> None:
    """Serve the application of :func:`make_app` until interrupted.

    Args:
        model: a model, its folder, or its name.
        corpora: files to search.
        config: where to listen, limits and keys.
        settings: single fields of ``config``: ``port``, ``host``, ``api_key``, …

    Raises:
        ConfigError: a setting is invalid, or the port is taken.
        ModelError: the model is missing or damaged.
        InputError: a corpus is missing or damaged.
        DependencyError: a library is missing.
    """
    config = changed(config or ServeConfig(), settings, "serve")
    _need("starlette", "msgspec", "orjson", "prometheus_client", "uvicorn", "httptools")
    from xswe.serving.connections import Server

    if (formatter := formatter_of(config.log)) is not None:
        for handler in logging.getLogger().handlers:
            handler.setFormatter(formatter)
    loaded, shared = open_model(model, "serve(model, corpora)"), handed_over()
    with shared or listening(config) as listener:  # first, because reading the corpora takes longer
        app = _app(loaded, _name(model), corpora, config)
        if config.host not in LOOPBACK and config.api_key is None:
            logger.warning("listening on %s without api_key=: anyone who can reach this machine can use it", config.host)
        if shared is None:
            logger.info("http://%s:%d  (Ctrl+C ends it)", config.host, listener.getsockname()[1])
        else:
            logger.info("listening on the systemd socket %s", listener.getsockname())
        with contextlib.suppress(KeyboardInterrupt):  # raised by uvicorn when it is interrupted
            Server(app, config, shared is not None).run(sockets=[listener])


def formatter_of(log: Log) -> logging.Formatter | None:
    """Return the log formatter for ``log``; None for the default."""
    if not for_all(Log, {"text": False, "json": True})[log]:
        return None
    from xswe.serving.logs import JsonLines

    return JsonLines()


def _need(*libraries: str) -> None:
    for library in libraries:
        if find_spec(library) is None:
            raise DependencyError(library, "serve", "serving")


def listening(config: ServeConfig) -> socket.socket:
    """Bind the port.

    Raises:
        ConfigError: it is taken, or this machine does not have the address.
    """
    listener = socket.socket(socket.AF_INET6 if ":" in config.host else socket.AF_INET)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)  # per connection; the default grows to megabytes
    try:
        listener.bind((config.host, config.port))
    except OSError as error:
        listener.close()
        hint = "give another port=, or port=0 for any free one; host= must be an address of this machine"
        raise ConfigError(f"host={config.host} port={config.port}: {error.strerror or error}; {hint}") from None
    return listener
