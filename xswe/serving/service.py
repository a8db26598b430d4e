"""The routes of the application."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route, Router

from xswe.alignment.words import link_vectors
from xswe.bitext.checks import detected_languages
from xswe.bitext.memories import write_memory
from xswe.bitext.output import one_line
from xswe.bitext.termbases import Candidate, write_concepts
from xswe.errors import ConfigError
from xswe.io.files import scratch
from xswe.io.products import products
from xswe.io.settings import for_all
from xswe.mining.pipeline import MineConfig, mine_sides
from xswe.model.ensemble import AnyModel
from xswe.model.static import StaticModel
from xswe.report.page import asset
from xswe.serving import messages as m
from xswe.serving.budget import BLOCK, PIECE, Budget
from xswe.serving.concordance import Concordance, Words, phrases_in
from xswe.serving.config import ANY, ServeConfig
from xswe.serving.embeddings import Embedder, check_model, check_texts, json_rows
from xswe.serving.guard import Gate, exchange_of
from xswe.serving.messages import MODEL, Operation, describe
from xswe.serving.metrics import Metrics
from xswe.serving.passages import Corpus, Entry
from xswe.serving.refusals import KNOWN, TOO_LARGE, TOO_LONG, TOO_MANY, Refused, refused
from xswe.text.languages import LANGUAGES
from xswe.text.scripts import has_cjk, is_punctuation

T = TypeVar("T")
_STATIC = Path(__file__).parent / "static"
_MAX_PAIRS = 1_000_000  # of texts, or of their words, in one comparison
_MAX_LINES = 20_000  # lines of all forms of a phrase
_MAX_PARTS_PER_TEXT = 32  # quotation marks, or lists, in a large body, per text that a request may have
_HIT_BYTES = 1 << 10  # estimate for a passage and its translations in an answer
_LARGE_BODY = 1 << 20  # bytes
_FORMULA = re.compile(r'[\s"]*[=+\-@＝＋－＠]')  # the beginning of a cell that a spreadsheet would run as a formula
_MEDIA = {".css": "text/css", ".js": "text/javascript"}
_decoder: Callable[[Any], msgspec.json.Decoder[Any]] = cache(msgspec.json.Decoder)


class Service:
    """A running application."""

    def __init__(self, model: AnyModel, name: str, corpora: Sequence[Entry], config: ServeConfig) -> None:
        self.model, self.names, self.config = model, (name, *config.aliases), config
        self.part = model if isinstance(model, StaticModel) else model.parts[0]
        self.budget = Budget(config)
        self.gate = Gate(config)
        self.words = Words(self.part)
        files = [Corpus.of(entry) for entry in corpora]
        if twice := {file.name for file in files if [other.name for other in files].count(file.name) > 1}:
            raise ConfigError(f"corpora: two are called {min(twice)}; give one another name, as in {{path: …, name: …}}")
        self.corpora: Concordance | None = None
        if files:
            self.corpora = Concordance(model, files, config.workers, self.words, self.part, config.keep, config.max_bytes)
        self.operations = self._operations()
        paths = {operation.path for operation, _ in self.operations} | {"/", "/api"}
        self.metrics = Metrics(paths, lambda: self.gate.busy, self.budget.account.total)
        self.embedder = Embedder(model, self.names, config, self.gate, self.metrics)

    def app(self) -> Callable[..., Awaitable[None]]:
        """Return the ASGI application."""
        routes = [
            Route(
                one.path.replace("}", ":path}"),
                endpoint,
                methods=["GET"] if one.asked is None else ["GET", "POST"][not one.query :],
            )
            for one, endpoint in self.operations
        ]
        document = msgspec.json.encode(describe([operation for operation, _ in self.operations], bool(self.config.api_key)))
        routes.append(Route("/openapi.json", partial(_fixed, document, "application/json")))
        pages = {"/": "index.html", "/api": "api.html"}
        pages |= {f"/static/{file.name}": file.name for file in _STATIC.iterdir() if file.suffix in (".css", ".js")}
        files = {path: (_STATIC / name).read_text("utf-8") for path, name in pages.items()}
        files |= {f"/static/{name}": asset(name) for name in ("style.css", "page.js")}  # shared with the reports
        for path, content in files.items():
            media = _MEDIA.get(Path(path).suffix, "text/html")
            routes.append(Route(path, partial(_fixed, content.encode(), media)))

        @asynccontextmanager
        async def lifespan(app: Any) -> Any:
            """Shut down the threads at the end."""
            yield
            self.gate.close()

        app = _Application(routes, lifespan)
        if not (origins := self.config.origins):
            return app
        return CORSMiddleware(app, allow_origins=list(origins), allow_methods=["*"], allow_headers=["*"])

    def _operations(self) -> list[tuple[Any, Callable[[Request], Awaitable[Response]]]]:
        text = "text/plain; charset=utf-8"
        return [
            (Operation("/v1/embeddings", m.EmbeddingsRequest, m.Embeddings, "vectors of texts"), self._embeddings),
            (Operation("/v1/models", None, "application/json", "the model, as OpenAI lists it"), self._models),
            (Operation(MODEL, None, "application/json", "the model under one of its names"), self._one_model),
            (Operation("/search", m.SearchRequest, m.Found, "the sentences nearest to a text", True), self._search),
            (Operation("/phrases", m.PhrasesRequest, m.Phrases, "forms of a phrase, in passages", True), self._phrases),
            (Operation("/compare", m.CompareRequest, m.Comparison, "cosines, and what words add to one"), self._compare),
            (Operation("/mine", m.MineRequest, m.Mined, "translations among the lines of two lists"), self._mine),
            (Operation("/export", m.ExportRequest, KINDS["tmx"], "ticked units as TMX, TBX or TSV"), self._export),
            (Operation("/info", None, "application/json", "the model, its corpora, and the limits"), self._info),
            (Operation("/healthz", None, text, "ok while the server lives"), self._health),
            (Operation("/readyz", None, text, "ready, or 503 while too many requests wait"), self._ready),
            (Operation("/metrics", None, text, "counts for Prometheus"), self._metrics),
        ]

    async def _asked(self, request: Request, kind: type[T], checked: Callable[[T], Any] | None = None) -> Any:
        """Return the result of ``checked`` for the message of a request, by default the message with its texts checked."""
        checked = checked or self._checked
        if request.method != "POST":
            return checked(m.from_query(kind, request.query_params.multi_items()))
        exchange = exchange_of(request)
        content_type = exchange.headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        if content_type != b"application/json":
            given = content_type.decode("latin-1") or "of no kind"
            raise Refused(415, f"the body is {given}: send it as  Content-Type: application/json")
        body = await exchange.body(self.config.max_bytes, self.config.seconds)
        decode = _decoder(kind).decode
        if len(body) <= PIECE:
            return checked(decode(body))
        async with self.gate.turn:
            await asyncio.sleep(0)
            if len(body) > _LARGE_BODY and _parts(body, kind) > _MAX_PARTS_PER_TEXT * self.config.max_texts:
                raise Refused(400, "the body has too many parts: send less at a time")  # decoded, each grows manyfold
            return checked(decode(body))

    def _checked(self, message: T) -> T:
        """Return the message; Refused: it has too many texts, or one that is too long."""
        for name in ("query", "passages", "left", "right", "source", "target"):
            check_texts(getattr(message, name, ""), self.config, name)
        return message

    async def _answer(self, request: Request, work: Callable[[Any], Any], message: Any, size: int = BLOCK) -> Response:
        """Run ``work`` on a thread; answer with its result, of about ``size`` bytes, and the seconds it took."""

        def encoded() -> bytes:
            started, found = time.perf_counter(), work(message)
            if hasattr(found, "seconds"):
                found.seconds = round(time.perf_counter() - started, 4)
            return msgspec.json.encode(found)

        return _response(await self.gate.answer(exchange_of(request).reservation, size, encoded))

    async def _embeddings(self, request: Request) -> Response:
        asked = await self._asked(request, m.EmbeddingsRequest, self.embedder.asked)
        return await self.embedder(asked, exchange_of(request).reservation)

    async def _search(self, request: Request) -> Response:
        message = await self._asked(request, m.SearchRequest)
        return await self._answer(
            request, self._opened(message.corpora).search, message, _HIT_BYTES * message.k * len(self.model.languages)
        )

    async def _phrases(self, request: Request) -> Response:
        message = await self._asked(request, m.PhrasesRequest)
        if message.k * message.lines > _MAX_LINES:
            problem = f"k={message.k} times lines={message.lines} is over {_MAX_LINES:,}: ask for fewer"
            raise Refused(400, problem, "lines", TOO_LARGE)
        own = partial(phrases_in, self.words, self.config.max_bytes)
        work = own if message.passages else self._opened(message.corpora).phrases
        size = _HIT_BYTES * message.k * message.lines * len(self.model.languages)
        return await self._answer(request, work, message, size)

    def _opened(self, wanted: Sequence[str]) -> Any:
        """Return the concordance; Refused: there is none, or it lacks a wanted corpus."""
        if self.corpora is None:
            problem = "no corpus is open: serve with corpora=[memory.tmx,news.en-de.tsv], or send passages to /phrases"
            raise Refused(404, problem, code="corpus_not_found")
        if unknown := sorted(set(wanted) - set(self.corpora.corpora)):
            problem = f"the corpus {unknown[0]!r:.100} is not open; there is {', '.join(self.corpora.corpora)}"
            raise Refused(404, problem, "corpora", "corpus_not_found")
        return self.corpora

    async def _compare(self, request: Request) -> Response:
        message = await self._asked(request, m.CompareRequest)
        i, j = message.pair
        if not (0 <= i < len(message.left) and 0 <= j < len(message.right)):
            problem = f"pair ({i}, {j}) is not among {len(message.left)} and {len(message.right)} texts"
            raise Refused(400, problem, "pair", "invalid_value")
        if len(message.left) * len(message.right) > _MAX_PAIRS:
            raise Refused(400, "over a million pairs: send shorter lists", "left", TOO_MANY)
        return await self._answer(request, partial(compare, self.model, self.part), message)

    async def _mine(self, request: Request) -> Response:
        message = await self._asked(request, m.MineRequest)
        return await self._answer(request, partial(mine_lines, self.model), message)

    async def _export(self, request: Request) -> Response:
        message = await self._asked(request, m.ExportRequest)
        named = {"content-disposition": f'attachment; filename="xswe.{message.format}"'}
        content = await self.gate.answer(exchange_of(request).reservation, BLOCK, export, message)
        return Response(content, 200, named, KINDS[message.format])

    async def _models(self, request: Request) -> Response:
        return _response({"object": "list", "data": [_model(name) for name in self.names if name != ANY]})

    async def _one_model(self, request: Request) -> Response:
        name = request.path_params["model"]
        check_model(name, self.names)
        return _response(_model(name))

    async def _info(self, request: Request) -> Response:
        corpora = self.corpora
        return _response(
            {
                "model": self.names[0],
                "dimensions": self.model.dim,
                "languages": self.model.languages,
                "corpora": corpora.corpora if corpora else [],
                "passages": corpora.counts if corpora else {},
                "limits": {name: getattr(self.config, name) for name in ("max_bytes", "max_texts", "max_characters")},
            }
        )

    async def _health(self, request: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def _ready(self, request: Request) -> Response:
        if self.gate.full:
            raise Refused(503, f"{self.gate.busy} requests are being processed")
        return PlainTextResponse("ready\n")

    async def _metrics(self, request: Request) -> Response:
        return Response(self.metrics.render(), media_type=CONTENT_TYPE_LATEST)


class _Application:
    """The routes, and the responses to user errors.

    Requests to a path without parameters go straight to its endpoint: Starlette's own application adds two layers, each
    with its own request and coroutines.
    """

    def __init__(self, routes: Sequence[Route], lifespan: Any) -> None:
        self._router = Router(routes, lifespan=lifespan)
        plain = [route for route in routes if not route.param_convertors]
        self._endpoints = {(method, route.path): route.endpoint for route in plain for method in route.methods or ()}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request, or run the lifespan of the server."""
        if scope["type"] != "http":
            await self._router(scope, receive, send)
            return
        scope["app"] = self  # makes the router raise HTTPException for unknown paths
        request = Request(scope, receive, send)
        try:
            if (endpoint := self._endpoints.get((scope["method"], scope["path"]))) is None:
                await self._router(scope, receive, send)
                return
            response = await endpoint(request)
        except KNOWN as error:
            response = refused(request, error)
        await response(scope, receive, send)


def _model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "xswe"}


def _parts(body: bytes | bytearray, kind: type[Any]) -> int:
    """Estimate the parts of a JSON body: its quotation marks or, where lists may be empty and are more, its lists."""
    lists = body.count(b"[") if kind is m.ExportRequest else 0
    return max(lists, body.count(b'"') - body.count(b'\\"'))


def _response(content: Any) -> Response:
    body = content if isinstance(content, bytes) else msgspec.json.encode(content)
    return Response(body, media_type="application/json")


async def _fixed(content: bytes, media: str, request: Request) -> Response:
    """Respond with a file of the application."""
    return Response(content, headers={"cache-control": "no-cache"}, media_type=media)


# Units ticked on a page, exported as a translation memory, a term base, or a table.


def export(request: m.ExportRequest) -> bytes:
    """Return the file."""
    units = [own for unit in request.units if (own := [segment for segment in unit if segment.text.strip()])]
    return "".join(_EXPORTS[request.format](units)).encode()


def _memory(units: Sequence[Sequence[m.Segment]]) -> Iterator[str]:
    return write_memory(
        ([(segment.language or "und", segment.text) for segment in unit], {"x-note": _notes(unit)}) for unit in units
    )


def _terms(units: Sequence[Sequence[m.Segment]]) -> Iterator[str]:
    concepts: list[dict[str, list[Candidate]]] = [{} for _ in units]
    for concept, unit in zip(concepts, units, strict=True):
        for segment in unit:
            concept.setdefault(segment.language or "und", []).append(Candidate(segment.text, segment.context, segment.note))
    return write_concepts(concepts)


def _table(units: Sequence[Sequence[m.Segment]]) -> Iterator[str]:
    """Write units as a table with a column per language."""
    found = {segment.language for unit in units for segment in unit}
    columns = [*(code for code in LANGUAGES if code in found), *sorted(found - set(LANGUAGES))]
    if sum(map(len, units)) * len(columns) > _MAX_PAIRS:
        problem = f"a table of {len(units):,} units in {len(columns):,} languages: send fewer"
        raise Refused(400, problem, "units", TOO_MANY)
    lines = [[*(code or "text" for code in columns), "note"]]
    for unit in units:
        cells = (" | ".join(segment.text for segment in unit if segment.language == code) for code in columns)
        lines.append([*cells, _notes(unit)])
    return ("\t".join(map(_cell, line)) + "\n" for line in lines)


def _notes(unit: Sequence[m.Segment]) -> str:
    return " ".join(dict.fromkeys(segment.note for segment in unit if segment.note))


def _cell(text: str) -> str:
    """Return a text as a cell, after an apostrophe if a spreadsheet would run it as a formula."""
    text = one_line(text)
    return f"'{text}" if _FORMULA.match(text) else text


_EXPORTS = for_all(m.Exported, {"tmx": _memory, "tbx": _terms, "tsv": _table})
KINDS = for_all(
    m.Exported,
    {"tmx": "application/x-tmx+xml", "tbx": "application/x-tbx+xml", "tsv": "text/tab-separated-values; charset=utf-8"},
)


# Translations among the lines of two pasted or dropped texts.

_MIN_LINES = 50  # of the shorter side, to estimate a threshold
_DETECTION_LINES = 200  # lines of each side from which its language is detected


def mine_lines(model: AnyModel, request: m.MineRequest) -> m.Mined:
    """Return all pairs, one to one, and the threshold estimated from the texts themselves."""
    enough = min(len(request.source), len(request.target)) >= _MIN_LINES
    config = MineConfig(score=request.score, threshold="auto" if enough else None)
    with scratch("xswe-mine-") as folder:
        sides, mined, _ = mine_sides(model, (request.source, request.target), config, Path(folder))
        rows = mined.selected.source.astype(np.int64), mined.selected.target.astype(np.int64)
        texts = [side.texts.take(chosen) for side, chosen in zip(sides, rows, strict=True)]
        lines = [side.numbers[chosen].tolist() for side, chosen in zip(sides, rows, strict=True)]
    scores = (round(score, 4) for score in mined.selected.scores.tolist())
    pairs = [m.MinedPair(*pair) for pair in zip(scores, *texts, *lines, strict=True)]
    languages = list(detected_languages(request.source[:_DETECTION_LINES], request.target[:_DETECTION_LINES]))
    if not enough:
        return m.Mined(pairs, None, "too few lines to estimate a threshold: set it yourself", languages)
    value = mined.threshold.value
    threshold = round(value, 4) if abs(value) < float("inf") else None
    return m.Mined(pairs, threshold, mined.threshold.sentence(), languages)


# Two texts compared: their cosine, and the contribution of each word.

_MIN_LINK_COSINE = 0.4  # of linked words


def compare(model: AnyModel, part: StaticModel, request: m.CompareRequest) -> m.Comparison:
    """Compare all texts of two lists, and explain one pair of them.

    A text's vector is the normalised mean of its units' vectors, so a cosine is exactly a sum over pairs of units: two
    words contribute the sum over the pairs of their units. For an ensemble, ``part`` is explained.
    """
    left, right = (np.asarray(model.encode(texts)) for texts in (request.left, request.right))
    cosines = products(left, right)
    i, j = request.pair
    (words, vectors), (others, theirs) = explained(part, request.left[i]), explained(part, request.right[j])
    if len(words) * len(others) > _MAX_PAIRS:
        problem = f"texts of {len(words):,} and {len(others):,} words are too long to explain: send shorter ones"
        raise Refused(400, problem, "pair", TOO_LONG)
    shares = products(vectors, theirs)
    return m.Comparison(
        _written(cosines, 4),
        (i, j),
        [m.Word(*word, round(float(share), 5)) for word, share in zip(words, shares.sum(1), strict=True)],
        [m.Word(*word, round(float(share), 5)) for word, share in zip(others, shares.sum(0), strict=True)],
        _written(shares, 5),
        link_vectors(vectors, theirs, method="intersection", prior=0.0, min_score=_MIN_LINK_COSINE),
    )


def _written(numbers: np.ndarray, digits: int) -> Any:
    """Return rounded rows as JSON; lists of numbers would take five times the memory."""
    return json_rows(np.round(numbers.astype(np.float64), digits))


def explained(model: StaticModel, text: str) -> tuple[list[tuple[str, int, int]], np.ndarray]:
    """Split a text into words whose vectors add up to the text's.

    Returns the words with their starts and ends, and float32 (words, d), whose sum is ``model.encode(text)``.
    """
    located = model.units.locate([text])
    ids, starts, ends = located.bags.ids, located.starts.tolist(), located.ends.tolist()
    rows = model.rows(ids)
    if model.bigrams is not None:  # each bigram is shared equally by its two units
        found = model.bigrams.find(ids[:-1], ids[1:])
        places = np.flatnonzero(found >= 0)
        halves = model.rows(found[places]) / 2
        rows[places] += halves
        rows[places + 1] += halves
    firsts = [k for k in range(len(ids)) if k == 0 or not _continues_word(text, starts, ends, k)]
    words = []
    for a, b in pairwise([*firsts, len(ids)]):
        start, end = min(starts[a:b]), max(ends[a:b])
        words.append((text[start:end], start, end))
    sums = np.add.reduceat(rows, firsts, axis=0) if firsts else np.zeros((0, model.dim), np.float32)
    norm = float(np.linalg.norm(sums.sum(0)))
    return words, sums / norm if norm else sums


def _continues_word(text: str, starts: list[int], ends: list[int], k: int) -> bool:
    """Return True if piece ``k`` belongs to the same word as the piece before it."""
    if starts[k] != ends[k - 1]:
        return starts[k] < ends[k - 1]  # several pieces of one character
    before, after = text[starts[k - 1] : ends[k - 1]], text[starts[k] : ends[k]]
    return not (has_cjk(before + after) or is_punctuation(before[-1:]) or is_punctuation(after[:1]))
