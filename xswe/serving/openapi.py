"""The description of the interface in the form of OpenAPI 3.1, made of the messages themselves."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import msgspec

from xswe.serving.messages import Failure
from xswe.version import __version__

_FAULTS = {
    "400": "the body is no JSON",
    "401": "the key is missing or wrong",
    "413": "the body is too large",
    "415": "the body is not declared as JSON",
    "422": "a value is impossible; `param` names it",
    "429": "too many requests at once",
}


@dataclass(frozen=True)
class Operation:
    """One thing that can be asked.

    Attributes:
        path: where.
        asked: the message that is sent; None for nothing.
        answered: the message, or the media type, that comes back.
        query: whether it can be asked by parameters of the address, too.
        summary: what it does, in a few words.
    """

    path: str
    asked: type[msgspec.Struct] | None
    answered: type[msgspec.Struct] | str
    summary: str
    query: bool = False


def describe(operations: Iterable[Operation], keyed: bool) -> dict[str, Any]:
    """Return the document."""
    operations = list(operations)
    kinds: dict[str, type] = {"Failure": Failure}
    for one in operations:
        kinds |= {kind.__name__: kind for kind in (one.asked, one.answered) if isinstance(kind, type)}
    _, schemas = msgspec.json.schema_components(kinds.values(), ref_template="#/components/schemas/{name}")
    paths: dict[str, Any] = {}
    for one in operations:
        answer = {"description": "what was asked for", "content": _content(one.answered)}
        common: dict[str, Any] = {"summary": one.summary, "responses": {"200": answer}}
        if one.asked is None:
            paths[one.path] = {"get": common}
            continue
        faults = {status: {"description": what, "content": _content(Failure)} for status, what in _FAULTS.items()}
        common["responses"] |= faults
        paths[one.path] = {"post": {**common, "requestBody": {"required": True, "content": _content(one.asked)}}}
        if one.query:
            paths[one.path]["get"] = {**common, "parameters": _parameters(schemas[one.asked.__name__])}
    document: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {"title": "xswe", "version": __version__, "description": "Static embeddings and concordances."},
        "paths": paths,
        "components": {"schemas": schemas},
    }
    if keyed:
        document["components"]["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
        document["security"] = [{"key": []}]
    return document


def _content(kind: type[msgspec.Struct] | str) -> dict[str, Any]:
    if isinstance(kind, str):
        return {kind.partition(";")[0]: {"schema": {"type": "string"}}}
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/{kind.__name__}"}}}


def _parameters(schema: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the fields of a message as parameters of an address."""
    required = schema.get("required", [])
    return [
        {"name": name, "in": "query", "required": name in required, "schema": kind}
        for name, kind in schema["properties"].items()
    ]
