"""Texts to vectors for many who ask at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import Any

import msgspec
import numpy as np
from starlette.responses import Response

from xswe.io.ragged import Bags, Texts
from xswe.io.settings import for_all
from xswe.model.ensemble import AnyModel
from xswe.model.static import StaticModel, pool
from xswe.serving.budget import BLOCK, SMALL, Reservation
from xswe.serving.config import ANY, ServeConfig
from xswe.serving.guard import Gate, Stream
from xswe.serving.messages import EmbeddingsRequest, Encoding, Usage
from xswe.serving.metrics import Metrics
from xswe.serving.refusals import TOO_LARGE, TOO_LONG, TOO_MANY, Refused

_AT_ONCE = 20_000  # characters that are encoded sooner than a thread could be asked to: about a millisecond
_FEW = 1 << 20  # bytes of texts whose units are looked up all at once
_NUMBER, _MARKUP = 25, 64  # bytes of a number, and of what stands about a vector, in an answer, at most


class _Vector(msgspec.Struct):
    """One of :class:`xswe.serving.messages.Embedding`, its numbers as they come cheapest: bytes are written as base64."""

    index: int
    embedding: list[float] | bytes
    object: str = "embedding"


class _Answer(msgspec.Struct):
    """:class:`xswe.serving.messages.Embeddings`, likewise."""

    data: list[_Vector]
    model: str
    usage: Usage
    object: str = "list"


@dataclass(frozen=True)
class Asked:
    """What is encoded, and how it is answered."""

    texts: list[str] | Texts | Bags  # a list where all are answered at once; units where they are few for many
    each: int  # bytes of one in the answer, at most
    dim: int
    form: str


_ROWS: dict[str, Callable[[np.ndarray], Any]] = for_all(
    Encoding,
    {
        "float": lambda vectors: vectors.tolist(),
        "base64": lambda vectors: map(bytes, vectors.astype("<f4", copy=False)),
    },
)


class Embedder:
    """Encodes texts: those of small requests that come at the same time together, others on a thread of the gate.

    An answer of more than a block is not made before it is read: each block when the one before has been sent.
    """

    def __init__(self, model: AnyModel, names: Sequence[str], config: ServeConfig, gate: Gate, metrics: Metrics) -> None:
        self._model, self._names, self._config, self._gate, self._metrics = model, names, config, gate, metrics
        self._waiting: list[tuple[list[str], asyncio.Future[tuple[np.ndarray, int]]]] = []
        self._encode(["", *["warm"] * 3000])  # loads, or compiles, what it needs, before anybody waits for it

    def asked(self, request: EmbeddingsRequest) -> Asked:
        """Return what a request asks for, checked.

        Raises:
            Refused: the model is another one, it has fewer dimensions, or the input is empty or too much.
        """
        if request.model:
            check_model(request.model, self._names)
        texts = self._checked(request)
        dim = request.dimensions or self._model.dim
        if dim > self._model.dim:
            raise Refused(400, f"the model has {self._model.dim} dimensions, not {dim}", "dimensions", TOO_LARGE)
        form = request.encoding_format
        each = _MARKUP + dim * (6 if form == "base64" else _NUMBER)
        return Asked(Texts.of(texts) if each * len(texts) > SMALL else texts, each, dim, form)

    async def __call__(self, asked: Asked, reservation: Reservation) -> Response:
        """Return the answer; that to many texts is made while it is read."""
        texts = asked.texts
        if not isinstance(texts, list):
            await reservation.reserve(BLOCK + texts.nbytes)
            if isinstance(self._model, StaticModel) and texts.nbytes <= _FEW:
                texts = await self._gate.run(self._model.units.bags, texts)
            reservation.resize(BLOCK + texts.nbytes)
            return Stream(self._blocks(replace(asked, texts=texts)), "application/json")
        await reservation.reserve(asked.each * len(texts))
        if sum(map(len, texts)) <= _AT_ONCE:
            vectors, tokens = await self._together(texts)
        else:
            vectors, tokens = await self._gate.run(self._encoded, texts)
        self._metrics.texts.inc(len(texts))
        content = msgspec.json.encode(_Answer(_rows(vectors, asked), self._names[0], Usage(tokens, tokens)))
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
            if texts.nbytes > 2 * _AT_ONCE:  # with where each text begins
                rows, more = await self._gate.run(self._written, texts, asked, start)
            else:
                async with self._gate.turn:
                    await asyncio.sleep(0)
                    rows, more = self._written(texts, asked, start)
            tokens += more
            self._metrics.texts.inc(len(texts))
            yield memoryview(rows)[1:-1]
        yield msgspec.json.encode(_Answer([], self._names[0], Usage(tokens, tokens))).removeprefix(b'{"data":[')

    def _written(self, texts: Texts | Bags, asked: Asked, start: int) -> tuple[bytes, int]:
        """Return a block as a list in JSON, and how many units it has."""
        vectors, tokens = self._encoded(texts)
        return msgspec.json.encode(_rows(vectors, asked, start)), tokens

    def _checked(self, request: EmbeddingsRequest) -> list[str]:
        texts = [request.input] if isinstance(request.input, str) else request.input
        if not texts:
            raise Refused(400, "input is empty: give a text, or a list of texts", "input", "empty_array")
        if len(texts) > self._config.max_texts:
            problem = f"{len(texts):,} texts: send at most {self._config.max_texts:,} at a time"
            raise Refused(400, problem, "input", TOO_MANY)
        if "" in texts:
            where = "input" if isinstance(request.input, str) else f"input[{texts.index('')}]"
            raise Refused(400, f"{where} is an empty string: leave it out", where, "empty_string")
        if max(map(len, texts)) > self._config.max_characters:
            for row, text in enumerate(texts):
                check_length(text, self._config, f"input[{row}]")
        return texts

    def _together(self, texts: list[str]) -> asyncio.Future[tuple[np.ndarray, int]]:
        """Encode with whatever else came in this turn of the loop: of short texts most of the cost is that of a call."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[tuple[np.ndarray, int]] = loop.create_future()
        self._waiting.append((texts, future))
        if len(self._waiting) == 1:
            loop.call_soon(self._flush)
        return future

    def _flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        texts = [text for texts, _ in waiting for text in texts]
        if len(waiting) > 1 and sum(map(len, texts)) > _AT_ONCE:
            done = self._gate.run(self._encode, texts)
            done.add_done_callback(lambda done: _share(waiting, done.result) if not done.cancelled() else None)
        else:
            _share(waiting, lambda: self._encode(texts))

    def _encoded(self, texts: Sequence[str] | Bags) -> tuple[np.ndarray, int]:
        vectors, tokens = self._encode(texts)
        return vectors, int(tokens.sum())

    def _encode(self, texts: Sequence[str] | Bags) -> tuple[np.ndarray, np.ndarray]:
        """Return vectors, and how many units each text has."""
        model = self._model
        if isinstance(model, StaticModel):
            bags = texts if isinstance(texts, Bags) else model.units.bags(texts)
            return pool(model.matrix, bags, normalise=True, scales=model.scales), bags.lengths
        assert not isinstance(texts, Bags)
        return model.encode(texts), model.parts[0].units.bags(texts).lengths


_Waiting = Sequence[tuple[list[str], asyncio.Future[tuple[np.ndarray, int]]]]


def _share(waiting: _Waiting, encoded: Callable[[], tuple[np.ndarray, np.ndarray]]) -> None:
    """Give each of those who wait the vectors of its texts, or the error."""
    try:
        vectors, tokens = encoded()
    except Exception as error:
        for _, future in waiting:
            if not future.done():
                future.set_exception(error)
        return
    bounds = accumulate((len(texts) for texts, _ in waiting), initial=0)
    for (a, b), (_, future) in zip(pairwise(bounds), waiting, strict=True):
        if not future.done():
            future.set_result((vectors[a:b], int(tokens[a:b].sum())))


def _rows(vectors: np.ndarray, asked: Asked, first: int = 0) -> list[_Vector]:
    """Return vectors, cut to some dimensions, as they are written; they are numbered from ``first`` on."""
    if asked.dim < vectors.shape[1]:
        vectors = vectors[:, : asked.dim]
        vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return [_Vector(index, row) for index, row in enumerate(_ROWS[asked.form](vectors), first)]


def check_length(text: str, config: ServeConfig, where: str) -> None:
    """Refuse a text that is too long."""
    if len(text) > config.max_characters:
        problem = f"{where} has {len(text):,} characters: send at most {config.max_characters:,}"
        raise Refused(400, problem, where, TOO_LONG)


def check_model(name: str, names: Sequence[str]) -> None:
    """Refuse the name of another model than is served under these names."""
    if name not in names and ANY not in names:
        problem = f"the model {name!r:.100} does not exist: ask for {names[0]!r}, or serve with aliases=[{name:.100}]"
        raise Refused(404, problem, "model", "model_not_found")
