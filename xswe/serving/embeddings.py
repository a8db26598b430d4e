"""Vectors of texts for concurrent requests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
import numpy as np
import orjson
from starlette.responses import Response, StreamingResponse

from xswe.io.ragged import Bags, Texts
from xswe.io.settings import for_all
from xswe.model.ensemble import AnyModel
from xswe.model.static import StaticModel
from xswe.serving.budget import BLOCK, SMALL, Reservation
from xswe.serving.config import ANY, ServeConfig
from xswe.serving.guard import Gate
from xswe.serving.messages import Embedding, Embeddings, EmbeddingsRequest, Encoding, Usage
from xswe.serving.metrics import Metrics
from xswe.serving.refusals import TOO_LARGE, TOO_LONG, TOO_MANY, Refused

_INLINE_CHARACTERS = 20_000  # at most this many are encoded without a thread: about a millisecond
_LOOKUP_BYTES = 1 << 20  # bytes of texts, at most, whose units are looked up in one go
_NUMBER_BYTES, _MARKUP_BYTES = 17, 64  # upper bounds for a number in an answer, and for the JSON around a vector

_Encoded = tuple[np.ndarray, np.ndarray]  # vectors of texts, and the number of units in each


@dataclass(frozen=True)
class Asked:
    """A request to encode, and its answer."""

    texts: list[str] | Texts | Bags  # a list if the answer is made in one go; bags once the units are looked up
    each: int  # bytes per text in the answer, at most
    dim: int
    form: str


def _slices(vectors: np.ndarray) -> list[bytes]:
    data, size = vectors.astype("<f4", copy=False).tobytes(), 4 * vectors.shape[1]
    return [data[start : start + size] for start in range(0, len(data), size)]  # half the time of slicing rows


def json_rows(numbers: np.ndarray) -> list[msgspec.Raw]:
    """Return rows of numbers as JSON, each number as short as its type allows: 12 bytes per float32, not 21."""
    return [msgspec.Raw(orjson.dumps(row, option=orjson.OPT_SERIALIZE_NUMPY)) for row in np.ascontiguousarray(numbers)]


_ROWS: dict[str, Callable[[np.ndarray], Any]] = for_all(Encoding, {"float": json_rows, "base64": _slices})


@dataclass
class _Batch:
    """Texts that arrived in one turn of the loop; the first request to resume encodes them for all."""

    texts: list[str] = field(default_factory=list)
    encoded: _Encoded | asyncio.Future[_Encoded] | None = None


class Embedder:
    """Encodes texts: small requests that arrive together in one batch, larger ones on a thread of the gate.

    A large answer is streamed: each block is made when the one before it has been sent.
    """

    def __init__(self, model: AnyModel, names: Sequence[str], config: ServeConfig, gate: Gate, metrics: Metrics) -> None:
        self._model, self._names, self._config, self._gate, self._metrics = model, names, config, gate, metrics
        self._batch = _Batch()
        self._encode(["", *["warm"] * 3000])  # loads, or compiles, the code before the first request

    def asked(self, request: EmbeddingsRequest) -> Asked:
        """Return the checked request.

        Refused: the model is not served or has fewer dimensions, or the input is empty or too large.
        """
        if request.model:
            check_model(request.model, self._names)
        texts = [request.input] if isinstance(request.input, str) else request.input
        if not texts:
            raise Refused(400, "input is empty: give a text, or a list of texts", "input", "empty_array")
        check_texts(request.input, self._config, "input")
        if "" in texts:
            where = "input" if isinstance(request.input, str) else f"input[{texts.index('')}]"
            raise Refused(400, f"{where} is an empty string: leave it out", where, "empty_string")
        dim = request.dimensions or self._model.dim
        if dim > self._model.dim:
            raise Refused(400, f"the model has {self._model.dim} dimensions, not {dim}", "dimensions", TOO_LARGE)
        form = request.encoding_format or "float"
        each = _MARKUP_BYTES + dim * (6 if form == "base64" else _NUMBER_BYTES)
        return Asked(Texts.of(texts) if each * len(texts) > SMALL else texts, each, dim, form)

    async def __call__(self, asked: Asked, reservation: Reservation) -> Response:
        """Return the answer; a large one is made while the client reads it."""
        texts = asked.texts
        if not isinstance(texts, list):
            await reservation.reserve(BLOCK + texts.nbytes)
            if isinstance(self._model, StaticModel) and texts.nbytes <= _LOOKUP_BYTES:
                texts = await self._gate.run(self._model.units.bags, texts)
            reservation.resize(BLOCK + texts.nbytes)
            return StreamingResponse(self._blocks(replace(asked, texts=texts)), media_type="application/json")
        await reservation.reserve(asked.each * len(texts))
        if sum(map(len, texts)) <= _INLINE_CHARACTERS:
            vectors, units = await self._together(texts)
        else:
            vectors, units = await self._gate.run(self._encode, texts)
        self._metrics.texts.inc(len(texts))
        content = self._written(_rows(vectors, asked), int(units.sum()))
        reservation.resize(len(content))
        return Response(content, media_type="application/json")

    async def _blocks(self, asked: Asked) -> AsyncIterator[bytes | memoryview]:
        """Yield the answer to many texts."""
        tokens, size, count = 0, max(1, BLOCK // asked.each), len(asked.texts)
        yield b'{"data":['
        for start in range(0, count, size):
            if start:
                yield b","
            stop = min(start + size, count)
            texts = asked.texts.block(start, stop) if isinstance(asked.texts, Bags) else Texts.of(asked.texts[start:stop])
            if texts.nbytes > 2 * _INLINE_CHARACTERS:  # twice, because the offsets count as well
                rows, more = await self._gate.run(self._block, texts, asked, start)
            else:
                async with self._gate.turn:
                    await asyncio.sleep(0)
                    rows, more = self._block(texts, asked, start)
            tokens += more
            self._metrics.texts.inc(len(texts))
            yield memoryview(rows)[1:-1]
        yield self._written([], tokens).removeprefix(b'{"data":[')

    def _block(self, texts: Texts | Bags, asked: Asked, start: int) -> tuple[bytes, int]:
        """Return a block as a JSON list, and its number of units."""
        vectors, units = self._encode(texts)
        return msgspec.json.encode(_rows(vectors, asked, start)), int(units.sum())

    def _written(self, rows: list[Embedding], tokens: int) -> bytes:
        return msgspec.json.encode(Embeddings(rows, self._names[0], Usage(tokens, tokens)))

    async def _together(self, texts: list[str]) -> _Encoded:
        """Encode together with other texts of this turn of the loop: for short texts most of the cost is per call."""
        batch, start = self._batch, len(self._batch.texts)
        batch.texts += texts
        await asyncio.sleep(0)
        if batch.encoded is None:  # this request is the first of the batch to resume
            self._batch = _Batch()
            if sum(map(len, batch.texts)) > _INLINE_CHARACTERS:
                batch.encoded = self._gate.run(self._encode, batch.texts)
            else:
                batch.encoded = self._encode(batch.texts)
        found = batch.encoded
        if isinstance(found, asyncio.Future):
            found = await asyncio.shield(found)  # cancelling one request must not cancel the others
        vectors, units = found
        return vectors[start : start + len(texts)], units[start : start + len(texts)]

    def _encode(self, texts: Sequence[str] | Bags) -> _Encoded:
        """Return the vectors of texts, and the number of units in each."""
        model = self._model
        if isinstance(model, StaticModel):
            bags = texts if isinstance(texts, Bags) else model.units.bags(texts)
            return model.pool(bags), bags.lengths
        assert not isinstance(texts, Bags)
        return model.encode(texts), model.parts[0].units.bags(texts).lengths


def _rows(vectors: np.ndarray, asked: Asked, first: int = 0) -> list[Embedding]:
    """Return vectors as they are sent, cut to the requested dimensions and numbered from ``first``."""
    if asked.dim < vectors.shape[1]:
        vectors = vectors[:, : asked.dim]
        vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return [Embedding(index, row) for index, row in enumerate(_ROWS[asked.form](vectors), first)]


def check_texts(texts: str | Sequence[str], config: ServeConfig, where: str) -> None:
    """Refuse texts and lists that are too long."""
    if isinstance(texts, str):
        if len(texts) > config.max_characters:
            problem = f"{where} has {len(texts):,} characters: send at most {config.max_characters:,}"
            raise Refused(400, problem, where, TOO_LONG)
    elif len(texts) > config.max_texts:
        raise Refused(400, f"{where} has {len(texts):,} texts: send at most {config.max_texts:,}", where, TOO_MANY)
    elif max(map(len, texts), default=0) > config.max_characters:
        for row, text in enumerate(texts):
            check_texts(text, config, f"{where}[{row}]")


def check_model(name: str, names: Sequence[str]) -> None:
    """Refuse a model name that is not served."""
    if name not in names and ANY not in names:
        problem = f"the model {name!r:.100} does not exist: ask for {names[0]!r}, or serve with aliases=[{name:.100}]"
        raise Refused(404, problem, "model", "model_not_found")
