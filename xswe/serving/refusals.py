"""Requests that are not answered: what is said of them, in the form of OpenAI's interface."""

from __future__ import annotations

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from xswe.errors import XsweError
from xswe.serving.messages import Failure, Fault

_TOKENS = (
    "token ids are of another model's tokenizer: send texts "
    "(in LangChain: OpenAIEmbeddings(check_embedding_ctx_length=False))"
)


class Refused(Exception):
    """A request that is not answered: HTTP's status, what was found and what cures it, and the field to blame."""

    def __init__(self, status: int, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.status, self.param = status, param


def failure(status: int, message: str, param: str | None = None) -> Response:
    """Return an answer that says what is wrong, in the form of OpenAI's interface."""
    kind = {401: "authentication_error", 429: "rate_limit_error"}.get(status, "invalid_request_error")
    fault = Fault(message, "server_error" if status >= 500 else kind, param, None)
    soon = {"retry-after": "1"}
    headers = {429: soon, 503: soon, 401: {"www-authenticate": "Bearer"}}.get(status, {})
    if status in (408, 413):
        headers = {"connection": "close"}  # the rest of the body is of no interest
    return Response(msgspec.json.encode(Failure(fault)), status, headers, "application/json")


def refused(request: Request, error: Exception) -> Response:
    """Return the answer to a request that failed for a reason that the one who asks can cure."""
    if isinstance(error, Refused):
        return failure(error.status, str(error), error.param)
    if isinstance(error, HTTPException):
        return failure(error.status_code, f"{request.method} {request.url.path}: {error.detail}; /api lists what there is")
    if isinstance(error, msgspec.ValidationError):
        param = str(error).rpartition("`$.")[2].rstrip("`")
        wanted = param.startswith("input[") and str(error).startswith(
            ("Expected `str`, got `int`", "Expected `str`, got `array`")
        )
        return failure(422, f"{param}: {_TOKENS}" if wanted else str(error), param or None)
    if isinstance(error, XsweError):
        return failure(422, str(error))
    return failure(400, f"not JSON: {error}")


KNOWN = (Refused, HTTPException, msgspec.MsgspecError, UnicodeDecodeError, RecursionError, XsweError)
