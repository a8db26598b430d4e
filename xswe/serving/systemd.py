"""systemd: socket activation and notifications."""

from __future__ import annotations

import os
import socket

from xswe.errors import ConfigError

_FIRST_SOCKET = 3  # its file descriptor


def handed_over() -> socket.socket | None:
    """Return the socket that systemd passed to this process, None without one; ConfigError: it passed several."""
    count = os.environ.get("LISTEN_FDS", "0")
    if count == "0" or os.environ.get("LISTEN_PID") != str(os.getpid()):
        return None
    if count != "1":
        raise ConfigError(f"systemd passed {count} sockets: write one ListenStream= in the .socket unit")
    return socket.socket(fileno=_FIRST_SOCKET)


def notify(state: str) -> None:
    """Send systemd ``READY=1`` or ``STOPPING=1`` if it expects notifications (``Type=notify``)."""
    if address := os.environ.get("NOTIFY_SOCKET"):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as connection:
            connection.connect(f"\0{address[1:]}" if address.startswith("@") else address)
            connection.send(state.encode())
