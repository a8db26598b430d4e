"""Errors of requests, with the status and in the form of OpenAI's API."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from xswe.errors import XsweError
from xswe.serving.messages import Failure, Fault

TOO_MANY, TOO_LONG, TOO_LARGE = "array_above_max_length", "string_above_max_length", "integer_above_max_value"
WRONG = "something went wrong here; the log says what"
_CODES = {401: "invalid_api_key", 404: "unknown_url", 405: "method_not_supported", 429: "rate_limit_exceeded"}
_RETRY = {"retry-after": "1"}
_CLOSED = {"connection": "close"}  # the rest of the body is not read
_HEADERS = {401: {"www-authenticate": "Bearer"}, 408: _CLOSED, 413: _CLOSED, 429: _RETRY, 503: _RETRY}
_INVALID = (  # msgspec's message, and OpenAI's error code
    (r"Object missing required field `(?P<field>\w+)`", "missing_required_parameter"),
    (r"Object contains unknown field `(?P<field>.+?)`", "unknown_parameter"),
    (r"Invalid enum value", "invalid_value"),
    (r"Expected `\w+` >=", "integer_below_min_value"),
    (r"Expected `\w+` <=", TOO_LARGE),
    (r"Expected ", "invalid_type"),
)
_TOKENS = (
    "token ids come from another model's tokenizer: send texts "
    "(in LangChain: OpenAIEmbeddings(check_embedding_ctx_length=False))"
)


class Refused(Exception):
    """An error of a request: the HTTP status, the problem with a hint, the field, and OpenAI's error code."""

    def __init__(self, status: int, message: str, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.status, self.param, self.code = status, param, code


def failure(
    status: int,
    message: str,
    param: str | None = None,
    code: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Return an error response in the form of OpenAI's API."""
    kind = "server_error" if status >= 500 else "requests" if status == 429 else "invalid_request_error"
    fault = Fault(message, kind, param, code or _CODES.get(status))
    return Response(
        msgspec.json.encode(Failure(fault)), status, {**_HEADERS.get(status, {}), **(headers or {})}, "application/json"
    )


def refused(request: Request, error: Exception) -> Response:
    """Return the response to a user error."""
    if isinstance(error, Refused):
        return failure(error.status, str(error), error.param, error.code)
    if isinstance(error, HTTPException):
        message = f"{request.method} {request.url.path}: {error.detail}; /api lists what there is"
        return failure(error.status_code, message, headers=error.headers)
    if isinstance(error, msgspec.ValidationError):
        return _invalid(str(error))
    if isinstance(error, XsweError):
        return failure(400, str(error))
    return failure(400, f"not JSON: {error}")


def _invalid(message: str) -> Response:
    """Return the response to a message that is valid JSON but does not match its type."""
    found, code = next(
        (match, code) for form, code in (*_INVALID, ("", "invalid_value")) if (match := re.match(form, message))
    )
    place = message.rpartition("`$.")[2].rstrip("`") if "`$." in message else ""
    param = ".".join(filter(None, (place, found.groupdict().get("field"))))
    if place.startswith("input[") and message.startswith(("Expected `str`, got `int`", "Expected `str`, got `array`")):
        message = f"{param}: {_TOKENS}"
    return failure(400, message, param or None, code)


KNOWN = (Refused, HTTPException, msgspec.MsgspecError, UnicodeDecodeError, RecursionError, XsweError)
