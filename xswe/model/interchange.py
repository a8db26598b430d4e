"""Import of other projects' vectors: tables of words, WordLlama's matrix, Model2Vec folders."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack, assert_never

import numpy as np
from tokenizers import Tokenizer

from xswe.errors import ConfigError, DependencyError, ModelError
from xswe.io.arguments import file_names
from xswe.io.files import check_folder, package_folder, read_json
from xswe.io.lines import OnError
from xswe.io.settings import changed, check_choice, for_all
from xswe.model.ensemble import locate
from xswe.model.static import StaticModel
from xswe.model.word_vectors import read_vectors
from xswe.text.languages import LANGUAGES, check_languages
from xswe.text.segmenters import BY_TEACHER
from xswe.text.subwords import SubwordUnits
from xswe.text.tokenizers import WORD_START, load_tokenizer
from xswe.text.words import WordSplitter, WordUnits

if TYPE_CHECKING:
    from xswe.settings import ImportSettings


def read_static(name: str, languages: Sequence[str] | None = None) -> StaticModel:
    """Open a model: one of ours (see :func:`xswe.model.ensemble.locate`), a Model2Vec folder, or ``wordllama``.

    WordLlama's package need not be importable; its files (of 0.3) suffice. ``languages`` are those of another library's
    model; None for English (WordLlama) or all (Model2Vec). ModelError: a file is missing or damaged.
    """
    if name == WORDLLAMA:
        if (folder := package_folder("wordllama")) is None:
            raise DependencyError("wordllama", "baselines", "the model wordllama")
        files = folder / "weights/l2_supercat_256.safetensors", folder / "tokenizers/l2_supercat_tokenizer_config.json"
        return StaticModel(*_pieces(*files, languages or ("en",)), {"from": "WordLlama"})
    folder = locate(name)
    if is_model2vec(folder):
        files = folder / "model.safetensors", folder / "tokenizer.json"
        return StaticModel(*_pieces(*files, languages or tuple(LANGUAGES)), {"from": folder.name})
    return StaticModel.load(folder)


def is_model2vec(folder: Path) -> bool:
    """Return True if Model2Vec wrote a folder."""
    try:
        config = read_json(folder / "config.json")
    except (OSError, ValueError):
        return False
    return isinstance(config, dict) and config.get("model_type") == "model2vec"


def _rows_of(path: Path) -> np.ndarray:
    """Read a matrix with one row per token, float32; apply the mapping and weights of tokens in its file, if any."""
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
        rows = np.asarray(matrix[tensors["mapping"]] if "mapping" in tensors else matrix, np.float32)
        return rows * np.asarray(tensors["weights"], np.float32)[:, None] if "weights" in tensors else rows
    except (IndexError, ValueError) as error:
        raise ModelError(f"{path}: its mapping or weights do not fit its matrix ({error}); fetch it again") from None


# A table of words (word2vec, fastText, MUSE, GloVe, the reference implementation's ``vec.txt``) becomes a model of word
# units, which look words up as the paper does: unchanged, in lower case, then along a teacher's sub-words if its tokenizer
# is given. A matrix with a ``tokenizer.json`` becomes a model of that tokenizer's pieces.

WORDLLAMA = "wordllama"  # the model in WordLlama's package
Format = Literal["text", "word2vec-binary", "model2vec", "wordllama"]
Merge = Literal["average", "first"]
_ONLY_FIRST = for_all(Merge, {"average": False, "first": True})
# Paths of matrix and tokenizer in the libraries' folders.
_LAYOUTS = (
    ("model.safetensors", "tokenizer.json"),
    ("0_StaticEmbedding/model.safetensors", "0_StaticEmbedding/tokenizer.json"),
)


@dataclass(frozen=True)
class ImportConfig:
    """Settings of an import: the vectors, and how text is looked up in them.

    Attributes:
        format: ``text`` (word2vec, fastText, MUSE, GloVe, the reference's ``vec.txt``; a file whose name ends in ``.bin``
            is read as binary), ``word2vec-binary`` (also fastText models), ``model2vec`` (a Model2Vec folder, or one of
            sentence-transformers' StaticEmbedding) or ``wordllama``.
        tokenizer: for tables of words, the ``tokenizer.json`` whose sub-words guide the back-off and, for the segmenters
            ``teacher`` and ``teacher-text``, cut Chinese and Japanese (the reference: mGTE's); for ``wordllama``, its own.
        segmenters: for tables of words, for zh ``teacher``, ``teacher-text`` (the reference) or ``jieba``, for ja
            ``teacher``, ``teacher-text`` (the reference) or ``fugashi``.
        folding: for tables of words, whether to look up traditional Chinese as simplified (the reference: no).
        merge: the vector of a word in several tables: the ``average`` of its vectors (the reference), or the ``first``.
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
    """Read another project's vectors.

    InputError: a table is damaged; the message names file and line. ModelError: a matrix or tokenizer is missing, damaged,
    or does not fit the other.
    """
    languages = check_languages(languages)
    description = {"imported": {"format": config.format, "files": [path.name for path in paths]}}
    match config.format:
        case "text":
            tables = [read_vectors(path, config.limit, config.on_error) for path in paths]
        case "word2vec-binary":
            tables = [read_vectors(path, config.limit, binary=True) for path in paths]
        case "model2vec" | "wordllama":
            if len(paths) != 1:
                raise ConfigError(f"format={config.format} takes one input, {len(paths)} are given")
            found = (paths[0], Path(str(config.tokenizer))) if config.format == "wordllama" else _matrix_files(paths[0])
            return StaticModel(*_pieces(*found, languages), description)
        case other:
            assert_never(other)
    words, matrix = merge_tables(tables, config.merge)
    return StaticModel(word_units(words, languages, config), matrix, description)


def import_vectors(
    input: str | Path | Sequence[str | Path],
    languages: Sequence[str],
    output: str | Path | None = None,
    *,
    config: ImportConfig | None = None,
    **settings: Unpack[ImportSettings],
) -> StaticModel:
    """Make a model from another project's vectors.

    Args:
        input: a file, or one per language with vectors in one space; a folder for Model2Vec.
        languages: codes of the model's languages.
        output: model folder to write, too.
        config: what to read; see :class:`ImportConfig`.
        settings: single fields of it: ``format``, ``tokenizer``, ``limit``, …

    Raises:
        ConfigError: a setting is unknown or impossible, or the folder exists.
        InputError: a table is damaged; the message names file and line.
        ModelError: a matrix or tokenizer is missing, damaged, or does not fit the other.
    """
    config = changed(config or ImportConfig(), settings, "import")
    if output is not None:
        check_folder(output)
    paths = list(map(Path, file_names(input, "input", "vectors are read from files")))
    model = import_model(paths, languages, config)
    if output is not None:
        model.save(output)
    return model


def merge_tables(tables: Sequence[tuple[list[str], np.ndarray]], merge: Merge) -> tuple[list[str], np.ndarray]:
    """Merge tables of words in one space; the words are in the order of their first occurrences, table by table."""
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
    """Return word units for the words of a table."""
    pieces = load_tokenizer(Path(config.tokenizer)) if config.tokenizer else None
    if pieces is not None:
        pieces.no_padding()
        pieces.no_truncation()
    by_teacher = [code for code in languages if config.segmenters.get(code) in BY_TEACHER and code in ("zh", "ja")]
    if pieces is None and by_teacher:
        hint = f"give tokenizer=…/tokenizer.json, or another one: segmenters.{by_teacher[0]}=" + (
            "jieba" if by_teacher[0] == "zh" else "fugashi"
        )
        name = config.segmenters[by_teacher[0]]
        raise ConfigError(f"the segmenter {name!r} of {by_teacher[0]} needs the teacher's tokenizer: {hint}")
    # The reference's Chinese and Japanese words are the teacher's tokens without the word-start mark.
    bare = [word.removeprefix(WORD_START) or word for word in words]
    named = bare if len(set(bare)) == len(words) else list(words)
    return WordUnits(named, WordSplitter(languages, config.segmenters, pieces, config.folding), pieces)


def _matrix_files(path: Path) -> tuple[Path, Path]:
    """Find the matrix and the tokenizer of a folder."""
    for weights, tokenizer in _LAYOUTS:
        if (path / weights).is_file() and (path / tokenizer).is_file():
            return path / weights, path / tokenizer
    raise ModelError(f"{path}: there is no model.safetensors beside a tokenizer.json; give a folder of model2vec's")


def _pieces(weights: Path, tokenizer: Path, languages: Sequence[str]) -> tuple[SubwordUnits, np.ndarray]:
    """Read a tokenizer, and the matrix with a row for each of its pieces."""
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
    """Return a copy that neither pads nor truncates nor adds tokens."""
    state: dict[str, Any] = json.loads(tokenizer.to_str())
    state["padding"] = state["truncation"] = state["post_processor"] = None
    return Tokenizer.from_str(json.dumps(state, ensure_ascii=False))
