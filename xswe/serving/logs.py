"""Logs of requests, as text or as lines of JSON."""

from __future__ import annotations

import logging
import random
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

access = logging.getLogger("xswe.access")
_IDENTITY = re.compile(rb"[\w.:-]{1,64}")


def identity(headers: Mapping[bytes, bytes]) -> bytes:
    """Return the id of a request for the log and the response: the one that a client or proxy sent, or a new one."""
    given = headers.get(b"x-request-id", b"")
    return given if _IDENTITY.fullmatch(given) else b"%016x" % random.getrandbits(64)


def log_request(scope: Mapping[str, Any], request: str, status: int, seconds: float) -> None:
    """Log an answered request, without its query."""
    client, ms = (scope.get("client") or ("-",))[0], round(1000 * seconds, 1)
    fields = {"request": request, "client": client, "method": scope["method"], "path": scope["path"]}
    fields |= {"status": status, "ms": ms}
    access.info("%(client)s %(method)s %(path)r %(status)d %(ms).1f ms %(request)s", fields, extra={"fields": fields})


class JsonLines(logging.Formatter):
    """Formats a record as a JSON line: time, level, logger, message, the fields of a request, and any traceback."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= getattr(record, "fields", {})
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return msgspec.json.encode(line).decode()
