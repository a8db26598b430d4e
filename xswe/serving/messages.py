"""Messages of the API: one definition, from which requests are checked and documented."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal, TypeVar, get_origin, get_type_hints

import msgspec
from msgspec import Meta, Struct

from xswe.mining.margin import Score
from xswe.version import __version__

T = TypeVar("T")
Language = Literal["en", "de", "zh", "ja"]
Exported = Literal["tmx", "tbx", "tsv"]
Encoding = Literal["float", "base64"]
Matching = Literal["meaning", "exact", "fuzzy"]
Count = Annotated[int, Meta(ge=1, le=1000)]


class EmbeddingsRequest(Struct):
    """Texts to encode, as OpenAI's interface takes them; all but the input may be left out, or null."""

    input: str | list[str]
    model: str | None = None
    encoding_format: Encoding | None = None
    dimensions: Annotated[int, Meta(ge=1)] | None = None
    user: str | None = None


class SearchRequest(Struct, forbid_unknown_fields=True):
    """A question to the sentences of the corpora: the k nearest of each language."""

    query: str
    k: Count = 10
    languages: list[Language] = []
    corpora: list[str] = []


class PhrasesRequest(Struct, forbid_unknown_fields=True):
    """A word or phrase whose translations are sought in the corpora, or in passages that come with the request.

    The best ``k`` forms of each language, and ``lines`` passages of each form; ``k`` times ``lines`` is at most 20,000.
    With ``match`` exact the query itself is sought, in any case and width, and with fuzzy what differs from it in a quarter
    of its characters at most; a ``*`` before or behind it stands for the rest of a word.
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
    """Two texts, or two lists of texts, and the pair of them that is to be explained."""

    left: list[str]
    right: list[str]
    pair: tuple[int, int] = (0, 0)


class MineRequest(Struct, forbid_unknown_fields=True):
    """Two lists of lines in which translations are sought."""

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
    """A vector: its numbers, or base64 of them as little-endian float32."""

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
    """A passage, the spans of it that are marked, and where it is from.

    Spans count characters as Python does: code points. ``line`` counts from 1: the lines of plain text, the units of a
    translation memory, and the pairs of other files, in which a blank line is none.
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

    With ``more``, the language has more passages than were looked at, and the count is that of the nearest ones. The score
    is a cosine, or of a string the share of its characters that are the same.
    """

    text: str
    language: str
    score: float
    count: int
    more: bool
    forms: list[str]
    lines: list[Line]


class Phrases(Struct):
    """The spans that mean the same as a phrase, the best first within each language."""

    query: str
    variants: list[Variant]
    seconds: float = 0.0


class Word(Struct):
    """A word of a text, where it stands, and its share of the cosine."""

    text: str
    start: int
    end: int
    share: float


class Comparison(Struct):
    """Cosines of all texts on the left with all on the right; for one pair, the contribution of each pair of words.

    ``shares[i][j]`` is what word ``i`` of the left and word ``j`` of the right add; all of them together are the cosine.
    """

    cosines: list[list[float]]
    pair: tuple[int, int]
    left: list[Word]
    right: list[Word]
    shares: list[list[float]]
    links: list[tuple[int, int]]


class MinedPair(Struct):
    """A pair and its lines, counted from 1."""

    score: float
    source: str
    target: str
    source_line: int
    target_line: int


class Mined(Struct):
    """Pairs, best first; the threshold, null if it cannot be estimated; both sides' languages, none if unclear."""

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
    """An answer that is none."""

    error: Fault


def _find_lists(kind: Any) -> frozenset[str]:
    return frozenset(name for name, hint in get_type_hints(kind).items() if get_origin(hint) is list)


_lists_of: Callable[[Any], frozenset[str]] = cache(_find_lists)  # the fields of a message that are lists


def from_query(kind: type[T], pairs: Iterable[tuple[str, str]]) -> T:
    """Make a message of the parameters of an address: a list is of all that have its name, anything else of the last."""
    lists = _lists_of(kind)
    given: dict[str, Any] = {}
    for name, value in pairs:
        if name in lists:
            given.setdefault(name, []).append(value)
        else:
            given[name] = value
    return msgspec.convert(given, kind, strict=False)


MODEL = "/v1/models/{model}"  # the one path with a name in it
_FAULTS = {
    "400": "the body is no JSON, or a value is impossible; `param` names it",
    "401": "the key is missing or wrong",
    "404": "the model, or a corpus, does not exist",
    "413": "the body is too large",
    "415": "the body is not declared as JSON",
    "429": "too many requests at once",
    "503": "no memory for more requests and answers; ask again in a second",
}


@dataclass(frozen=True)
class Operation:
    """One thing that can be asked.

    ``asked`` is the message that is sent, None for nothing; ``answered`` the message, or the media type, that comes back;
    ``query`` whether it can be asked by parameters of the address, too.
    """

    path: str
    asked: type[msgspec.Struct] | None
    answered: type[msgspec.Struct] | str
    summary: str
    query: bool = False


def describe(operations: Sequence[Operation], keyed: bool) -> dict[str, Any]:
    """Return the document."""
    kinds = dict.fromkeys(kind for one in operations for kind in (one.asked, one.answered) if isinstance(kind, type))
    _, schemas = msgspec.json.schema_components([Failure, *kinds], ref_template="#/components/schemas/{name}")
    faults = {status: {"description": what, "content": _content(Failure)} for status, what in _FAULTS.items()}
    paths: dict[str, Any] = {}
    for one in operations:
        answers: dict[str, Any] = {"200": {"description": "what was asked for", "content": _content(one.answered)}}
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
