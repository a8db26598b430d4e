"""systemd: sockets that it passes, and notifications to it."""

from __future__ import annotations

import os
import socket

from xswe.errors import ConfigError

_FIRST = 3  # the file descriptor of the first socket


def handed_over() -> socket.socket | None:
    """Return the socket on which systemd listens for this process; None where it does not; ConfigError: it has several."""
    count = os.environ.get("LISTEN_FDS", "0")
    if count == "0" or os.environ.get("LISTEN_PID") != str(os.getpid()):
        return None
    if count != "1":
        raise ConfigError(f"systemd hands over {count} sockets: write one ListenStream= in the .socket unit")
    return socket.socket(fileno=_FIRST)


def notify(state: str) -> None:
    """Notify systemd of ``READY=1`` or ``STOPPING=1``, if it asks for that (``Type=notify``)."""
    if place := os.environ.get("NOTIFY_SOCKET"):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as one:
            one.connect(f"\0{place[1:]}" if place.startswith("@") else place)
            one.send(state.encode())
