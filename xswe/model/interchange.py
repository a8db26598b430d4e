"""Vectors of other projects as models of ours: tables of words, WordLlama's matrix, and the folders of Model2Vec."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, assert_never

import numpy as np
from tokenizers import Tokenizer

from xswe.errors import ConfigError, DependencyError, InputError, ModelError
from xswe.io.files import package_folder, read_json, whole_file
from xswe.io.lines import OnError, Skipped, read_lines
from xswe.io.settings import check_choice, for_all
from xswe.model.static import StaticModel
from xswe.text.languages import LANGUAGES, check_languages
from xswe.text.segmenters import BY_TEACHER
from xswe.text.tokenizers import MARK, load_tokenizer, pieces_only
from xswe.text.units import SubwordUnits
from xswe.text.words import WordSplitter, WordUnits


def read_wordllama(languages: Sequence[str] = ("en",)) -> StaticModel:
    """Read the model in WordLlama's package; the package need not be importable, its files (of 0.3) suffice."""
    if (folder := package_folder("wordllama")) is None:
        raise DependencyError("wordllama", "baselines", "the part wordllama")
    rows = _rows_of(folder / "weights" / "l2_supercat_256.safetensors")
    tokenizer = load_tokenizer(folder / "tokenizers" / "l2_supercat_tokenizer_config.json")
    return piece_table(tokenizer, rows, languages, "wordllama")


def is_model2vec(folder: Path) -> bool:
    """Tell whether a folder is one that Model2Vec wrote."""
    try:
        config = read_json(folder / "config.json")
    except (OSError, ValueError):
        return False
    return isinstance(config, dict) and config.get("model_type") == "model2vec"


def read_model2vec(folder: Path, languages: Sequence[str] = tuple(LANGUAGES)) -> StaticModel:
    """Read a folder that Model2Vec wrote, or raise a ModelError where a file is missing or damaged."""
    rows = _rows_of(folder / "model.safetensors")
    return piece_table(load_tokenizer(folder / "tokenizer.json"), rows, languages, folder.name)


def _rows_of(path: Path) -> np.ndarray:
    """Read a matrix of a row a token, float32; a mapping and weights of tokens that are with it are worked into it."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        tensors = load_file(path)
    except (SafetensorError, ValueError, OSError) as error:
        raise ModelError(f"{path}: missing or damaged ({error}); fetch it again") from None
    matrix = next((tensors[name] for name in ("embeddings", "embedding.weight") if name in tensors), None)
    if matrix is None or matrix.ndim != 2:
        raise ModelError(f"{path}: has no matrix 'embeddings' or 'embedding.weight', only {', '.join(tensors)}")
    try:
        return token_rows(matrix, tensors.get("mapping"), tensors.get("weights"))
    except (IndexError, ValueError) as error:
        raise ModelError(f"{path}: its mapping or weights do not fit its matrix ({error}); fetch it again") from None


def token_rows(matrix: np.ndarray, mapping: np.ndarray | None, weights: np.ndarray | None) -> np.ndarray:
    """Work Model2Vec's mapping of tokens to rows, and its weights of tokens, into a float32 matrix of a row a token."""
    rows = np.asarray(matrix if mapping is None else matrix[mapping], np.float32)
    return rows if weights is None else rows * np.asarray(weights, np.float32)[:, None]


def piece_table(tokenizer: Tokenizer, matrix: np.ndarray, languages: Sequence[str], name: str) -> StaticModel:
    """Make a static embedding of pieces; rows beyond the tokenizer's last id are left out, missing ones are zero."""
    units = SubwordUnits(pieces_only(tokenizer), "teacher", languages)
    rows = np.zeros((len(units.tokens), matrix.shape[1]), np.float32)
    rows[: len(matrix)] = matrix[: len(rows)]
    return StaticModel(units, rows, {"from": name})


# A table of words (word2vec, fastText, MUSE, GloVe, the reference implementation's ``vec.txt``) becomes a model of word
# units, which look words up as the paper does: as they stand, in lower case, then along a teacher's sub-words where its
# tokenizer is given. A matrix with a ``tokenizer.json`` becomes a model of that tokenizer's pieces.


logger = logging.getLogger(__name__)
Format = Literal["text", "word2vec-binary", "model2vec", "wordllama"]
Merge = Literal["average", "first"]
_ONLY_FIRST = for_all(Merge, {"average": False, "first": True})
# Where the libraries keep matrix and tokenizer in a folder.
_LAYOUTS = (
    ("model.safetensors", "tokenizer.json"),
    ("0_StaticEmbedding/model.safetensors", "0_StaticEmbedding/tokenizer.json"),
)


@dataclass(frozen=True)
class ImportConfig:
    """What to read, and how text is looked up in it.

    Attributes:
        format: ``text`` (word2vec, fastText, MUSE, GloVe, the reference's ``vec.txt``), ``word2vec-binary``,
            ``model2vec`` (a folder of theirs, or of sentence-transformers' StaticEmbedding) or ``wordllama``.
        tokenizer: for tables of words, the ``tokenizer.json`` whose sub-words guide the back-off and, for the segmenter
            ``teacher`` and ``teacher-text``, cut Chinese and Japanese (the reference: mGTE's); for ``wordllama``, its own.
        segmenters: for tables of words, zh by ``teacher``, ``teacher-text`` (the reference) or ``jieba``, ja by
            ``teacher``, ``teacher-text`` (the reference) or ``fugashi``.
        folding: for tables of words, whether traditional Chinese is looked up as simplified (the reference: not).
        merge: what a word of several tables gets: the ``average`` of its vectors (the reference), or the ``first``.
        limit: read at most this many words of each table, 0 for all.
        on_error: what a line that is not UTF-8 does: ``raise`` or ``skip``.
    """

    format: Format = "text"
    tokenizer: str | None = None
    segmenters: dict[str, str] = field(default_factory=lambda: {"zh": "teacher", "ja": "teacher"})
    folding: bool = True
    merge: Merge = "average"
    limit: int = 0
    on_error: OnError = "raise"

    def __post_init__(self) -> None:
        check_choice("format", self.format, Format)
        check_choice("merge", self.merge, Merge)
        if self.limit < 0:
            raise ConfigError(f"limit={self.limit}: give how many words to read of each table, 0 for all")
        if self.format == "wordllama" and not self.tokenizer:
            raise ConfigError("format=wordllama needs its tokenizer: tokenizer=l2_supercat_tokenizer_config.json")


def import_model(paths: Sequence[Path], languages: Sequence[str], config: ImportConfig) -> StaticModel:
    """Read vectors of another project.

    Raises:
        InputError: a table is damaged; the message names file and line.
        ModelError: a matrix or tokenizer is missing, damaged, or does not fit the other.
    """
    languages = check_languages(languages)
    description = {"imported": {"format": config.format, "files": [path.name for path in paths]}}
    match config.format:
        case "text":
            tables = [read_text(path, config.limit, config.on_error) for path in paths]
        case "word2vec-binary":
            tables = [read_binary(path, config.limit) for path in paths]
        case "model2vec" | "wordllama":
            if len(paths) != 1:
                raise ConfigError(f"format={config.format} takes one input, {len(paths)} are given")
            found = (paths[0], Path(str(config.tokenizer))) if config.format == "wordllama" else _matrix_files(paths[0])
            return StaticModel(*_pieces(*found, languages), description)
        case other:
            assert_never(other)
    words, matrix = merge_tables(tables, config.merge)
    return StaticModel(word_units(words, languages, config), matrix, description)


def merge_tables(tables: Sequence[tuple[list[str], np.ndarray]], merge: Merge) -> tuple[list[str], np.ndarray]:
    """Merge tables of words in one space into one; the order is that of the first occurrences, table by table."""
    if len({matrix.shape[1] for _, matrix in tables}) > 1:
        widths = ", ".join(str(matrix.shape[1]) for _, matrix in tables)
        raise ConfigError(f"the tables have {widths} dimensions: give tables of one space")
    index: dict[str, int] = {}
    for words, _ in tables:
        for word in words:
            index.setdefault(word, len(index))
    total = np.zeros((len(index), tables[0][1].shape[1]), np.float32)
    count = np.zeros(len(index), np.float32)
    for words, matrix in tables:
        rows = np.array([index[word] for word in words])
        new = count[rows] == 0 if _ONLY_FIRST[merge] else np.ones(len(rows), bool)
        total[rows[new]] += matrix[new]
        count[rows[new]] += 1
    return list(index), total / count[:, None]


def word_units(words: Sequence[str], languages: Sequence[str], config: ImportConfig) -> WordUnits:
    """Return word units over the words of a table."""
    pieces = load_tokenizer(Path(config.tokenizer)) if config.tokenizer else None
    if pieces is not None:
        pieces.no_padding()
        pieces.no_truncation()
    by_teacher = [code for code in languages if config.segmenters.get(code) in BY_TEACHER and code in ("zh", "ja")]
    if pieces is None and by_teacher:
        cure = f"give tokenizer=…/tokenizer.json, or another one: segmenters.{by_teacher[0]}=" + (
            "jieba" if by_teacher[0] == "zh" else "fugashi"
        )
        name = config.segmenters[by_teacher[0]]
        raise ConfigError(f"the segmenter {name!r} of {by_teacher[0]} needs the teacher's tokenizer: {cure}")
    # The reference keys Chinese and Japanese by the teacher's tokens without the mark of a word's start.
    bare = [word.removeprefix(MARK) or word for word in words]
    named = bare if len(set(bare)) == len(words) else list(words)
    return WordUnits(named, WordSplitter(languages, config.segmenters, pieces, config.folding), pieces)


def _matrix_files(path: Path) -> tuple[Path, Path]:
    """Find the matrix and the tokenizer of a folder."""
    for weights, tokenizer in _LAYOUTS:
        if (path / weights).is_file() and (path / tokenizer).is_file():
            return path / weights, path / tokenizer
    raise ModelError(f"{path}: there is no model.safetensors beside a tokenizer.json; give a folder of model2vec's")


def _pieces(weights: Path, tokenizer: Path, languages: Sequence[str]) -> tuple[SubwordUnits, np.ndarray]:
    """Read a matrix over a tokenizer's pieces."""
    vectors = _rows_of(weights)
    units = SubwordUnits(_without_truncation(load_tokenizer(tokenizer)), "teacher", languages, lone_mark=True)
    tokens = units.tokens
    if len(vectors) < len(tokens):
        raise ModelError(f"{weights}: {len(vectors)} vectors for the {len(tokens)} tokens of {tokenizer}; fetch both again")
    vectors = vectors[: len(tokens)]
    if not np.isfinite(vectors).all():
        raise ModelError(f"{weights}: holds values that are not finite; fetch it again")
    vectors[[not token for token in tokens]] = 0.0
    return units, np.ascontiguousarray(vectors)


def _without_truncation(tokenizer: Tokenizer) -> Tokenizer:
    """Return a copy that neither pads nor cuts nor adds tokens."""
    state: dict[str, Any] = json.loads(tokenizer.to_str())
    state["padding"] = state["truncation"] = state["post_processor"] = None
    return Tokenizer.from_str(json.dumps(state, ensure_ascii=False))


_ROWS = 4096  # written at a time


def write_text(path: Path, tokens: list[str], vectors: np.ndarray) -> None:
    """Write word2vec's text format: a line ``units dimensions``, then ``token value …``; values read back exactly.

    Tokens are n strings without blanks or line ends, vectors float32 (n, d); the file appears whole or not at all.
    """
    with whole_file(path) as temporary, open(temporary, "w", encoding="utf-8", newline="\n") as stream:
        stream.write(f"{len(tokens)} {vectors.shape[1]}\n")
        for start in range(0, len(tokens), _ROWS):
            rows = vectors[start : start + _ROWS].astype(str)  # the shortest decimal that is the same float32
            lines = (f"{token} {' '.join(row)}\n" for token, row in zip(tokens[start : start + _ROWS], rows, strict=True))
            stream.writelines(lines)


def write_binary(path: Path, tokens: list[str], vectors: np.ndarray) -> None:
    """Write word2vec's binary format: the same first line, then token, blank, d little-endian float32, line end."""
    with whole_file(path) as temporary, open(temporary, "wb") as stream:
        stream.write(f"{len(tokens)} {vectors.shape[1]}\n".encode())
        for token, row in zip(tokens, vectors.astype("<f4"), strict=True):
            stream.write(token.encode() + b" " + row.tobytes() + b"\n")


def read_text(path: Path, limit: int = 0, on_error: OnError = "raise") -> tuple[list[str], np.ndarray]:
    """Read vectors as text, plain or compressed, with or without a first line of numbers.

    Args:
        path: of word2vec's, fastText's, MUSE's, GloVe's or the reference implementation's format.
        limit: read at most this many, 0 for all.
        on_error: ``raise`` at a line that is not UTF-8, or ``skip`` it (some of fastText's files have such).

    Returns:
        The tokens, each once (the first of several stays), and float32 (tokens, d).

    Raises:
        InputError: with the line that has too few values, or one that is no finite number, or after which others are
            missing that the first line promises.
    """
    tokens: dict[str, int] = {}
    rows: list[np.ndarray] = []
    width = promised = number = 0
    skipped = Skipped()
    for number, line in read_lines(path, on_error=on_error, skipped=skipped):
        if line is None:
            continue
        fields = line.rstrip(" ").split(" ")
        if number == 1 and len(fields) == 2 and all(field.isdecimal() for field in fields):
            promised, width = map(int, fields)
            continue
        width = width or len(fields) - 1
        token = " ".join(fields[: len(fields) - width])  # GloVe's larger tables have tokens with blanks
        if len(fields) <= width or width == 0:
            raise InputError(path, f"{len(fields) - 1} values, expected {width}", "mend or remove the line", number)
        if not token or token in tokens:
            continue
        try:
            row = np.array(fields[-width:], np.float32)
        except ValueError:
            raise InputError(path, "a value is no number", "mend or remove the line", number) from None
        if not np.isfinite(row).all():
            raise InputError(path, "a value is not finite", "mend or remove the line", number)
        tokens[token] = len(rows)
        rows.append(row)
        if len(rows) == limit:
            break
    if not rows:
        raise InputError(path, "no vector in it", "give a file of lines  token value value …")
    if number <= promised and len(rows) != limit:
        found = f"ends after {number - 1:,} of the {promised:,} vectors that its first line promises"
        raise InputError(path, found, "fetch it again, or correct that line", number)
    return list(tokens), np.stack(rows)


def read_binary(path: Path, limit: int = 0) -> tuple[list[str], np.ndarray]:
    """Read word2vec's binary format; see :func:`read_text`.

    Raises:
        InputError: the file is missing, ends early, or is of another format.
    """
    if not path.is_file():
        raise InputError(path, "no such file", "check the path")
    cure = "give a binary file of word2vec's format, or format=text"
    with open(path, "rb") as stream:
        head = stream.readline(64).split()
        if len(head) != 2 or not all(field.isdigit() for field in head):
            raise InputError(path, "does not begin with two numbers", cure)
        count, width = int(head[0]), int(head[1])
        room = path.stat().st_size - stream.tell()
        if not 0 < width <= room // 4 or count * (4 * width + 2) > room + count:
            raise InputError(path, f"too short for {count} vectors of {width} dimensions", cure)
        tokens: dict[str, int] = {}
        rows: list[np.ndarray] = []
        for token, row in _binary_rows(stream, min(count, limit or count), width, path, cure):
            if token and token not in tokens:
                tokens[token] = len(rows)
                rows.append(row)
    if not rows or not all(np.isfinite(row).all() for row in rows):
        raise InputError(path, "no vector in it, or values that are not finite", cure)
    return list(tokens), np.stack(rows)


def _binary_rows(
    stream: io.BufferedReader, count: int, width: int, path: Path, cure: str
) -> Iterator[tuple[str, np.ndarray]]:
    for place in range(count):
        token = bytearray()
        while (byte := stream.read(1)) not in (b" ", b""):
            if byte != b"\n":  # some writers end a vector with one, some do not
                token += byte
        values = stream.read(4 * width)
        if len(values) < 4 * width:
            raise InputError(path, f"ends within vector {place + 1}", cure)
        yield token.decode("utf-8", "replace"), np.frombuffer(values, "<f4")
