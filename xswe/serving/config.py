"""Settings of the application."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from xswe.errors import ConfigError
from xswe.io.parallel import available_threads
from xswe.io.settings import check_choice, check_least

ANY = "*"
LOOPBACK = ("127.0.0.1", "localhost", "::1")

Log = Literal["text", "json"]


@dataclass(frozen=True)
class ServeConfig:
    """Settings of the application.

    Attributes:
        host: the address to listen on; by default only this machine can connect.
        port: the port; 0 for any free one.
        aliases: further names by which clients may request the model, e.g. text-embedding-3-small; ``*`` for any.
        api_key: the key that requests must send, as ``Authorization: Bearer KEY``; null for none.
        hosts: host names that requests may use, in addition to its own; ``*`` for any. On the loopback, other names are
            refused, so that a web page cannot read from here under its own host name.
        origins: other sites whose pages may send requests, e.g. ``https://example.org``; none by default.
        max_bytes: the largest body of a request (413).
        max_texts: the most texts, or lines, in a request (400).
        max_characters: the most characters in a text (400).
        max_buffered: total bytes of requests in progress and of answers not yet read; a client gets at most half. Requests
            without room wait for up to ``seconds`` (503); stalled clients then give way.
        max_connections: above this, the connection that has been idle for longest is closed; only with :func:`xswe.serve`.
        waiting: requests that may wait for a thread; any more are turned away (429).
        seconds: time allowed for the head of a request, for its body, and for a client to read 64 KB of an answer.
        threads: how many requests are processed at once; null for all processors.
        access_log: log every request, without its query, as ``xswe.access``.
        log: ``text``, or ``json`` for one JSON line per record of the process's log handlers; only with :func:`xswe.serve`.
        keep: keep the indexes of corpora in the cache folder (``XSWE_CACHE``, else ``~/.cache/xswe``) for the next start;
            indexes of changed files are rebuilt.
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
            raise ConfigError(f"port={self.port}: give one below 65536, or 0 for any free one")
        check_least(self, max_bytes=1, max_texts=1, max_characters=1, max_connections=1, waiting=1, threads=0)
        check_least(self, max_buffered=4 << 20)
        if not self.seconds > 0:
            raise ConfigError(f"seconds={self.seconds}: must be above 0")
        if self.api_key is not None and not (self.api_key.isascii() and self.api_key.strip()):
            raise ConfigError("api_key: give ASCII characters, or null for none")
        if wrong := [origin for origin in self.origins if "://" not in origin and origin != ANY]:
            raise ConfigError(f"origins={wrong}: write them as in origins=[https://example.org]")

    @property
    def workers(self) -> int:
        """The number of requests processed at once."""
        return available_threads(self.threads)

    @property
    def names(self) -> frozenset[str]:
        """The host names that requests may use; empty for any."""
        if ANY in self.hosts or (self.host not in LOOPBACK and not self.hosts):
            return frozenset()
        return frozenset(name.lower() for name in (*LOOPBACK, "[::1]", self.host, *self.hosts))
