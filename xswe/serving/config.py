"""Settings of the application."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from xswe.errors import ConfigError
from xswe.io.parallel import available_threads
from xswe.io.settings import check_choice

ANY = "*"
LOOPBACK = ("127.0.0.1", "localhost", "::1")

Log = Literal["text", "json"]


@dataclass(frozen=True)
class ServeConfig:
    """Settings of the application.

    Attributes:
        host: the address to listen on; that of this machine alone unless another is named.
        port: the port; 0 for any that is free.
        aliases: further names of the model under which programs may ask for it, as text-embedding-3-small; ``*`` for any.
        api_key: what a request must carry, as ``Authorization: Bearer KEY``; null for none.
        hosts: names under which it may be asked, beside its own; ``*`` for any. On the loopback, other names are refused,
            so that no page of the web reads from here under a name of its own.
        origins: other sites whose pages may ask, as ``https://example.org``; none by default.
        max_bytes: the largest body of a request (413).
        max_texts: texts, or lines, of a request (400).
        max_characters: of a text (400).
        max_buffered: bytes of requests that are worked on and of answers that are not yet read, in all; half of them for a
            client. What has no room waits for ``seconds`` at most (503), and clients that stall then give way.
        max_connections: beyond these, that which has been idle for longest is closed; :func:`xswe.serve` alone does.
        waiting: requests that may wait for a thread; what comes on top is turned away (429).
        seconds: that a request's head may take, its body, and a client to read 64 KB of an answer.
        threads: how many requests are worked on at once; null for all processors.
        access_log: log every request, without its query, as ``xswe.access``.
        log: ``text``, or ``json``: a line of JSON for each record of the handlers that the process has; :func:`xswe.serve`
            alone does.
        keep: leave the indexes of corpora in the cache folder (``XSWE_CACHE``, else ``~/.cache/xswe``), and open them when
            it starts again; what has changed is made anew.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    aliases: tuple[str, ...] = ()
    api_key: str | None = None
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    max_bytes: int = 16 << 20
    max_texts: int = 20_000
    max_characters: int = 100_000
    max_buffered: int = 32 << 20
    max_connections: int = 500
    waiting: int = 64
    seconds: float = 30.0
    threads: int | None = None
    access_log: bool = False
    log: Log = "text"
    keep: bool = True

    def __post_init__(self) -> None:
        check_choice("log", self.log, Log)
        if not 0 <= self.port < 65536:
            raise ConfigError(f"port={self.port}: give one below 65536, or 0 for any that is free")
        least = dict.fromkeys(("max_bytes", "max_texts", "max_characters", "max_connections", "waiting"), 1)
        for name, value in (least | {"max_buffered": 4 << 20}).items():
            if getattr(self, name) < value:
                raise ConfigError(f"{name}={getattr(self, name)}: must be at least {value}")
        if not self.seconds > 0:
            raise ConfigError(f"seconds={self.seconds}: must be above 0")
        if self.api_key is not None and not (self.api_key.isascii() and self.api_key.strip()):
            raise ConfigError("api_key: give ASCII characters, or null for none")
        if wrong := [origin for origin in self.origins if "://" not in origin and origin != ANY]:
            raise ConfigError(f"origins={wrong}: write them as in origins=[https://example.org]")

    @property
    def workers(self) -> int:
        """The number of requests that are worked on at once."""
        return self.threads or available_threads()

    @property
    def names(self) -> frozenset[str]:
        """The names under which it may be asked; empty for any."""
        if ANY in self.hosts or (self.host not in LOOPBACK and not self.hosts):
            return frozenset()
        return frozenset(name.lower() for name in (*LOOPBACK, "[::1]", self.host, *self.hosts))
