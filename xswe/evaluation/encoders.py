"""Encoders under evaluation: whatever turns texts into unit vectors and knows its languages; and how fast they are.

Word vectors in the files of other programs are encoders, too.
"""

from __future__ import annotations

import io
import logging
import struct
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, NamedTuple, Protocol

import numpy as np
from numba import njit

from xswe.errors import ConfigError, InputError
from xswe.io.lines import open_binary
from xswe.io.sources import without_packing
from xswe.model.ensemble import AnyModel, Ensemble
from xswe.model.static import StaticModel, pool
from xswe.progress import bar
from xswe.text.languages import LANGUAGES

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class About:
    """What a result file says of an encoder beside its name; the words are mteb's."""

    library: str = "xswe"  # who runs it; the first half of the name in mteb's result tree
    framework: tuple[str, ...] = ("NumPy", "safetensors")  # what it is made with
    static: bool = True  # it is a table of vectors
    max_tokens: float = float("inf")  # what is beyond is cut off
    license: str | None = None  # of the weights, in mteb's spelling; None if unknown
    adapted_from: str | None = None  # the model that it was made from


class SentenceEncoder(Protocol):
    """An encoder under evaluation."""

    @property
    def name(self) -> str:
        """What tables call it."""

    @property
    def languages(self) -> tuple[str, ...]:
        """Codes of the languages it is evaluated on."""

    @property
    def dim(self) -> int:
        """Dimensions of a vector."""

    @property
    def parameters(self) -> int:
        """Number of weights."""

    @property
    def size(self) -> int:
        """Bytes of the weights in memory."""

    @property
    def identity(self) -> str:
        """A fingerprint of the weights."""

    @property
    def about(self) -> About:
        """What else is known of it."""

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Unit vectors, float32 (n, d)."""


class StaticEncoder:
    """A static model, or an ensemble of some, under evaluation."""

    def __init__(self, model: AnyModel, name: str, threads: int = 1, about: About | None = None) -> None:
        self.model, self.name, self._threads = model, name, threads
        self.languages, self.dim = model.languages, model.dim
        parts = model.parts if isinstance(model, Ensemble) else (model,)
        self.parameters, self.size = sum(p.matrix.size for p in parts), sum(p.matrix.nbytes for p in parts)
        teacher = None if isinstance(model, Ensemble) else model.description.get("teacher")
        self.about = about or About(adapted_from=str(teacher) if teacher else None)

    @property
    def identity(self) -> str:
        """A fingerprint of weights, units and matrices."""
        return self.model.identity

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Unit vectors, float32 (n, d)."""
        return self.model.encode(texts, threads=self._threads)


class TeacherEncoder:
    """A teacher under evaluation: its sentence vectors, in whatever languages it is asked.

    Args:
        model: one of ``TEACHERS`` (``mini``, ``minilm``, ``mgte``), a folder, or a hub name.
        threads: torch's threads.
        languages: codes of the languages to evaluate it on.
    """

    def __init__(self, model: str, threads: int = 1, languages: Sequence[str] = tuple(LANGUAGES)) -> None:
        from xswe.teacher.protocol import TeacherConfig
        from xswe.teacher.transformer import load_teacher

        self._teacher = load_teacher(TeacherConfig.named(model, threads))
        self.name, self.languages, self.dim = f"teacher:{Path(model).name}", tuple(languages), self._teacher.dim
        weights = list(self._teacher.model.parameters())
        self.parameters = sum(p.numel() for p in weights)
        self.size = sum(p.numel() * p.element_size() for p in weights)
        self.about = About(
            framework=("PyTorch", "Transformers"), static=False, max_tokens=float(self._teacher.config.max_tokens)
        )

    @property
    def identity(self) -> str:
        """A fingerprint of the weights."""
        return self._teacher.checksum()

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Unit vectors, float32 (n, d)."""
        return self._teacher.vectors(texts)


_MOST = 1_000_000  # texts a call


def sample_texts(languages: Sequence[str]) -> list[str]:
    """Return the sentences that come with the package, in those of the languages named that it has, else in English."""
    from xswe.corpus.cards import sample_sentences  # brings what fetches corpora

    sides = sample_sentences()
    chosen = [texts for code, texts in sides.items() if code in languages] or [sides["en"]]
    return [text for row in zip(*chosen, strict=True) for text in row]


def sentences_per_second(encoder: SentenceEncoder, texts: Sequence[str], seconds: float = 1.0) -> float:
    """Time ``encode`` on ever more texts until a call takes ``seconds``, and return the best rate seen.

    The first call is not counted: it compiles and fills caches.

    Args:
        encoder: what is timed, with its own number of threads.
        texts: what is encoded, repeated as often as it takes.
        seconds: how long the last call takes, roughly.
    """
    encoder.encode([texts[i % len(texts)] for i in range(256)])
    count, best = 256, 0.0
    while True:
        block = [texts[i % len(texts)] for i in range(count)]
        start = time.perf_counter()
        encoder.encode(block)
        took = time.perf_counter() - start
        best = max(best, count / max(took, 1e-9))
        if took >= seconds / 2 or count >= _MOST:
            return best
        count = min(_MOST, count * min(8, max(2, int(seconds / max(took, 1e-6)))))


_SIF = 1e-3  # the smaller, the less frequent units weigh (the paper: 1e-3 to 1e-4)


def sif(model: StaticModel, texts: Sequence[str], count: bool) -> StaticModel:
    """Weight a model's rows by a / (a + p), and project the first principal direction of sentences out (Arora et al. 2017).

    Both act on single rows, so that the outcome is again a static embedding: the mean of weighted, projected rows is
    the projected weighted mean.

    Args:
        model: any static embedding.
        texts: sentences whose first singular direction is removed.
        count: take p, the probability of a unit, from these sentences; else from its place in the vocabulary, taken to
            be in order of frequency (Zipf's law: p of place r is proportional to 1 / r).

    Raises:
        ConfigError: no sentence holds any unit.
    """
    bags = model.units.bags(texts)
    if not len(bags.ids):
        raise ConfigError("SIF found nothing in its texts that the model knows: give texts in its languages")
    size = len(model.matrix)
    if count:
        frequencies = bags.counts(size) / len(bags.ids)
    else:
        frequencies = 1.0 / np.arange(1, size + 1)
        frequencies /= frequencies.sum()
    weighted = (model.vectors * (_SIF / (_SIF + frequencies))[:, None]).astype(np.float32)
    sentences = pool(weighted, bags, normalise=False).astype(np.float64)
    direction = np.linalg.eigh(sentences.T @ sentences)[1][:, -1]
    projected = weighted - np.outer(weighted @ direction, direction)
    return replace(model, matrix=np.ascontiguousarray(projected, np.float32), scales=None, shared=0)


MAGIC = struct.pack("<i", 793_712_314)
_SUPERVISED = 3
_END_OF_SENTENCE = b"</s>"
_CURE = "fetch the file again"


class _Header(NamedTuple):
    """What the file says of itself: dimensions, buckets of n-grams, shortest and longest n-gram."""

    dim: int
    buckets: int
    shortest: int
    longest: int


def is_fasttext(path: Path) -> bool:
    """Tell whether a file is a fastText model."""
    if not path.is_file():
        return False
    with path.open("rb") as stream:
        return stream.read(4) == MAGIC


def read_fasttext(path: Path, limit: int | None = None) -> tuple[list[str], np.ndarray]:
    """Read the vectors of a model's words, as fastText gives them.

    The rows stay on the disk but for those that are needed. Words that the model does not list, to which fastText would
    give the mean of their n-grams, are not known afterwards.

    Args:
        path: the model, not compressed.
        limit: words to read, most frequent first; None for all.

    Returns:
        The words, and float32 (words, d). A word that is no UTF-8 is left out.

    Raises:
        InputError: the file is cut short, or is a quantised model.
    """
    with path.open("rb") as stream:
        try:
            header = _read_settings(stream)
            words, pruned = _read_words(stream)
            (quantised,) = struct.unpack("<?", stream.read(1))
            if quantised:
                raise InputError(path, "a quantised fastText model", "give the model it was made from, or its .vec file")
            rows, width = struct.unpack("<qq", stream.read(16))
        except (struct.error, IndexError, MemoryError):
            raise InputError(path, "a fastText model that ends too early", _CURE) from None
        start = stream.tell()
    if width != header.dim or rows < len(words) or path.stat().st_size < start + 4 * rows * width:
        raise InputError(path, f"a fastText model without its {rows:,} rows of {header.dim} numbers", _CURE)
    matrix = np.memmap(path, "<f4", "r", start, (rows, width))
    shortest, longest = (1, 0) if pruned == 0 else (header.shortest, header.longest)
    kept: list[str] = []
    out = np.empty((min(limit or len(words), len(words)), width), np.float32)
    for k, word in enumerate(words):
        if len(kept) == len(out):
            break
        try:
            text = word.decode("utf-8")
        except UnicodeDecodeError:
            continue
        ids = np.zeros(0, np.int64)
        if word != _END_OF_SENTENCE:
            marked = np.frombuffer(b"<" + word + b">", np.uint8)
            ids = _buckets(marked, shortest, longest, header.buckets) + len(words)
        out[len(kept)] = matrix[np.concatenate([[k], ids])].mean(0)
        kept.append(text)
    return kept, out[: len(kept)]


def _read_settings(stream: BinaryIO) -> _Header:
    """Read magic, version and arguments."""
    _, version = struct.unpack("<ii", stream.read(8))
    dim, _, _, _, _, _, _, kind, buckets, shortest, longest, _ = struct.unpack("<12i", stream.read(48))
    stream.read(8)  # the sampling threshold
    # The oldest files say n-grams of supervised models, which those do not use.
    return _Header(dim, buckets, shortest, 0 if version == 11 and kind == _SUPERVISED else longest)


def _read_words(stream: BinaryIO) -> tuple[list[bytes], int]:
    """Read the dictionary: its words (labels come after them and are left out), and its number of pruned n-grams."""
    size, words, _ = struct.unpack("<iii", stream.read(12))
    _, pruned = struct.unpack("<qq", stream.read(16))
    found, pending, place = [], b"", 0
    for _ in range(size):
        while (end := pending.find(b"\0", place)) < 0 or len(pending) < end + 10:
            more = stream.read(1 << 16)
            if not more:
                raise IndexError
            pending, place = pending[place:] + more, 0
        if pending[end + 9] == 0:
            found.append(pending[place:end])
        place = end + 10
    stream.seek(place - len(pending), 1)
    if pruned > 0:
        stream.seek(8 * pruned, 1)
    return found[:words], pruned


@njit(cache=True)
def _buckets(word: np.ndarray, shortest: int, longest: int, buckets: int) -> np.ndarray:
    """Return the buckets of a marked word's n-grams of characters, int64, by fastText's hash (FNV-1a, signed bytes)."""
    out = np.empty(len(word) * max(1, longest), np.int64)
    count = 0
    for i in range(len(word)):
        if word[i] & 0xC0 == 0x80:
            continue
        h, j, n = np.uint32(2166136261), i, 1
        while j < len(word) and n <= longest:
            first = True
            while j < len(word) and (first or word[j] & 0xC0 == 0x80):
                byte = np.uint32(word[j])
                if byte >= 128:
                    byte |= np.uint32(0xFFFFFF00)
                h = np.uint32((h ^ byte) * np.uint32(16777619))
                first = False
                j += 1
            if n >= shortest and not (n == 1 and (i == 0 or j == len(word))):
                out[count] = np.int64(h) % buckets
                count += 1
            n += 1
    return out[:count]


def read_vectors(path: Path, limit: int | None = None) -> tuple[list[str], np.ndarray]:
    """Read word vectors.

    A file whose name ends in ``.bin`` is a fastText model or word2vec's binary form; any other is text: an optional line
    ``words dimensions``, then a line a word. Files may be compressed (``.gz .xz .bz2 .zst``), but for fastText models.

    Args:
        path: the file.
        limit: words to read, from the start, where such files have the frequent ones; None for all.

    Returns:
        The words, each once, and float32 (words, d). A word that is no UTF-8 is left out.

    Raises:
        InputError: the file is missing, cut short, or a line has another number of columns.
    """
    if is_fasttext(path):
        return read_fasttext(path, limit)
    bare = without_packing(path)
    words: list[str] = []
    matrix, index, unreadable = np.zeros((0, 0), np.float32), set(), 0
    with open_binary(path) as stream, bar(f"read {path.name}", unit="word") as progress:
        rows = _binary(stream, path) if bare.suffix == ".bin" else _text(stream, path)
        for raw, vector in rows:
            try:
                word = raw.decode("utf-8")
            except UnicodeDecodeError:
                unreadable += 1
                continue
            if word in index:
                continue
            if len(words) == len(matrix):
                matrix = _grown(matrix, len(vector))
            matrix[len(words)] = vector
            index.add(word)
            words.append(word)
            progress.update()
            if len(words) == limit:
                break
    if not words:
        raise InputError(path, "holds no word vector", _CURE)
    if unreadable:
        logger.warning("%s: %d words are no UTF-8 and were left out", path, unreadable)
    return words, np.ascontiguousarray(matrix[: len(words)])


def _grown(matrix: np.ndarray, width: int) -> np.ndarray:
    """Return the matrix with room for half as many rows again."""
    out = np.empty((max(8192, len(matrix) * 3 // 2), width), np.float32)
    out[: len(matrix)] = matrix.reshape(-1, width)
    return out


def _text(stream: BinaryIO, path: Path) -> Iterator[tuple[bytes, np.ndarray]]:
    """Yield word and vector of each line; the width is that of the header, or of the first line."""
    width = 0
    for number, line in enumerate(stream, 1):
        fields = line.rstrip().split(b" ")
        if number == 1 and len(fields) == 2 and all(field.isdigit() for field in fields):
            width = int(fields[1])
            continue
        width = width or len(fields) - 1
        # A word may itself hold blanks (GloVe 840B has some): the numbers are the last columns.
        if width < 1 or len(fields) <= width:
            raise InputError(path, f"{len(fields) - 1} numbers where {max(1, width)} are expected", _CURE, number)
        try:
            vector = np.array(fields[-width:], np.float32)
        except ValueError:
            raise InputError(path, "a column is no number", _CURE, number) from None
        yield b" ".join(fields[:-width]), vector


def _binary(stream: BinaryIO, path: Path) -> Iterator[tuple[bytes, np.ndarray]]:
    """Yield word and vector of word2vec's binary form: ``words dimensions`` and then ``word␠float32…`` each."""
    buffered = stream if isinstance(stream, io.BufferedReader) else io.BufferedReader(stream)  # type: ignore[type-var]
    header = buffered.readline(100)
    if header.startswith(MAGIC):
        raise InputError(path, "a compressed fastText model", "unpack it: its rows are read from where they lie")
    fields = header.split()
    if len(fields) != 2 or not all(field.isdigit() for field in fields):
        raise InputError(path, "does not start with the number of words and dimensions", _CURE)
    count, width = map(int, fields)
    pending, place = b"", 0
    for k in range(count):
        while (blank := pending.find(b" ", place)) < 0 or len(pending) < blank + 1 + 4 * width:
            more = buffered.read(1 << 22)
            if not more:
                raise InputError(path, f"ends after {k:,} of {count:,} words", _CURE)
            pending, place = pending[place:] + more, 0
        start = blank + 1
        yield pending[place:blank].lstrip(b"\n"), np.frombuffer(pending, "<f4", width, start)
        place = start + 4 * width
