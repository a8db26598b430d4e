"""Messages of the API, defined once for the checks of requests and for the documentation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, get_origin, get_type_hints

import msgspec
from msgspec import Meta, Struct

from xswe.mining.margin import Score
from xswe.text.languages import LANGUAGES
from xswe.version import __version__

T = TypeVar("T")
Exported = Literal["tmx", "tbx", "tsv"]
Encoding = Literal["float", "base64"]
Matching = Literal["meaning", "exact", "fuzzy"]
Count = Annotated[int, Meta(ge=1, le=1000)]
if TYPE_CHECKING:  # where a table is no Literal
    Language = str
else:
    Language = Literal[tuple(LANGUAGES)]


class EmbeddingsRequest(Struct):
    """Texts to encode, as in OpenAI's API; everything except the input is optional, or may be null."""

    input: str | list[str]
    model: str | None = None
    encoding_format: Encoding | None = None
    dimensions: Annotated[int, Meta(ge=1)] | None = None
    user: str | None = None


class SearchRequest(Struct, forbid_unknown_fields=True):
    """A text whose nearest sentences in the corpora are searched, k in each language."""

    query: str
    k: Count = 10
    languages: list[Language] = []
    corpora: list[str] = []


class PhrasesRequest(Struct, forbid_unknown_fields=True):
    """A word or phrase whose translations are searched in the corpora, or in passages sent with the request.

    The response has the best ``k`` forms in each language, with ``lines`` passages of each; ``k`` times ``lines`` is at
    most 20,000. With ``match`` exact the query itself is searched, in any case and width; with fuzzy, strings that differ
    from it in at most a quarter of its characters. A ``*`` before or after it stands for the rest of a word.
    """

    query: str
    k: Count = 8
    lines: Count = 5
    languages: list[Language] = []
    corpora: list[str] = []
    passages: list[str] = []
    min_score: Annotated[float, Meta(ge=0, le=1)] = 0.6
    match: Matching = "meaning"


class CompareRequest(Struct, forbid_unknown_fields=True):
    """Two texts, or two lists of texts, and the pair to explain."""

    left: list[str]
    right: list[str]
    pair: tuple[int, int] = (0, 0)


class MineRequest(Struct, forbid_unknown_fields=True):
    """Two lists of lines to search for translations."""

    source: list[str]
    target: list[str]
    score: Score = "ratio"


class Segment(Struct, forbid_unknown_fields=True):
    """A text in a language."""

    language: str
    text: str
    note: str = ""
    context: str = ""


class ExportRequest(Struct, forbid_unknown_fields=True):
    """Ticked units: texts with the same meaning."""

    format: Exported
    units: list[list[Segment]]


class Embedding(Struct):
    """A vector: its numbers, or their little-endian float32 bytes in base64."""

    index: int
    embedding: list[float] | bytes  # which msgspec writes as base64
    object: str = "embedding"


class Usage(Struct):
    """Units that the model found in the texts."""

    prompt_tokens: int
    total_tokens: int


class Embeddings(Struct):
    """The vectors of the texts, in their order."""

    data: list[Embedding]
    model: str
    usage: Usage
    object: str = "list"


class Marked(Struct):
    """A passage, its marked spans, and where it comes from.

    Spans count code points, as Python does. ``line`` counts from 1: the lines of plain text, the units of a translation
    memory, or the pairs of other files.
    """

    text: str
    language: str
    corpus: str
    line: int
    spans: list[tuple[int, int]] = []


class Line(Struct):
    """A passage that was found, and its translations."""

    score: float
    passage: Marked
    translations: list[Marked] = []


class Found(Struct):
    """Passages, the nearest first within each language."""

    query: str
    hits: list[Line]
    seconds: float = 0.0


class Variant(Struct):
    """A form of the queried phrase: its count, its spellings, and passages that contain it.

    With ``more``, the language has more passages than were searched, and the count covers the nearest ones only. The score
    is a cosine or, for a string, the share of its characters that agree.
    """

    text: str
    language: str
    score: float
    count: int
    more: bool
    forms: list[str]
    lines: list[Line]


class Phrases(Struct):
    """The forms of a phrase, the best first within each language."""

    query: str
    variants: list[Variant]
    seconds: float = 0.0


class Word(Struct):
    """A word of a text, its place, and its share of the cosine."""

    text: str
    start: int
    end: int
    share: float


class Comparison(Struct):
    """Cosines of all texts on the left with all on the right; for one pair, the contribution of each pair of words.

    ``shares[i][j]`` is the contribution of word ``i`` on the left and word ``j`` on the right; they sum to the cosine.
    """

    cosines: list[list[float]]
    pair: tuple[int, int]
    left: list[Word]
    right: list[Word]
    shares: list[list[float]]
    links: list[tuple[int, int]]


class MinedPair(Struct):
    """A pair and its line numbers, from 1."""

    score: float
    source: str
    target: str
    source_line: int
    target_line: int


class Mined(Struct):
    """Pairs, best first; the threshold, or null if it cannot be estimated; the languages of both sides, if clear."""

    pairs: list[MinedPair]
    threshold: float | None
    note: str
    languages: list[str] = []
    seconds: float = 0.0


class Fault(Struct):
    """The problem of a request, and a hint."""

    message: str
    type: str = "invalid_request_error"
    param: str | None = None
    code: str | None = None


class Failure(Struct):
    """An error response."""

    error: Fault


def _find_lists(kind: Any) -> frozenset[str]:
    return frozenset(name for name, hint in get_type_hints(kind).items() if get_origin(hint) is list)


_lists_of: Callable[[Any], frozenset[str]] = cache(_find_lists)  # the fields of a message that are lists


def from_query(kind: type[T], pairs: Iterable[tuple[str, str]]) -> T:
    """Make a message from query parameters: a list takes all parameters of its name, any other field the last."""
    lists = _lists_of(kind)
    given: dict[str, Any] = {}
    for name, value in pairs:
        if name in lists:
            given.setdefault(name, []).append(value)
        else:
            given[name] = value
    return msgspec.convert(given, kind, strict=False)


MODEL = "/v1/models/{model}"  # the only path with a parameter
_FAULTS = {
    "400": "the body is not JSON, or a value is invalid; `param` names it",
    "401": "the key is missing or wrong",
    "404": "the model, or a corpus, does not exist",
    "413": "the body is too large",
    "415": "the body is not declared as JSON",
    "429": "too many requests at once",
    "503": "no memory for more requests and answers; try again in a second",
}


@dataclass(frozen=True)
class Operation:
    """An operation of the API.

    ``asked`` is the type of the request's message, None for no body; ``answered`` the type, or the media type, of the
    response; ``query``: whether the message may also be sent as query parameters.
    """

    path: str
    asked: type[msgspec.Struct] | None
    answered: type[msgspec.Struct] | str
    summary: str
    query: bool = False


def describe(operations: Sequence[Operation], keyed: bool) -> dict[str, Any]:
    """Return the OpenAPI document."""
    kinds = dict.fromkeys(kind for one in operations for kind in (one.asked, one.answered) if isinstance(kind, type))
    _, schemas = msgspec.json.schema_components([Failure, *kinds], ref_template="#/components/schemas/{name}")
    faults = {status: {"description": what, "content": _content(Failure)} for status, what in _FAULTS.items()}
    paths: dict[str, Any] = {}
    for one in operations:
        answers: dict[str, Any] = {"200": {"description": "the result", "content": _content(one.answered)}}
        common: dict[str, Any] = {"summary": one.summary, "responses": answers}
        if one.asked is None:
            paths[one.path] = {"get": common}
            if one.path == MODEL:
                answers["404"] = faults["404"]
                common["parameters"] = [{"name": "model", "in": "path", "required": True, "schema": {"type": "string"}}]
            continue
        answers |= faults
        paths[one.path] = {"post": {**common, "requestBody": {"required": True, "content": _content(one.asked)}}}
        if one.query:
            schema = schemas[one.asked.__name__]
            paths[one.path]["get"] = common | {
                "parameters": [
                    {"name": name, "in": "query", "required": name in schema["required"], "schema": kind}
                    for name, kind in schema["properties"].items()
                ]
            }
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
