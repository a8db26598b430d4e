"""From what a user calls a model to an encoder that can be evaluated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import islice
from pathlib import Path
from typing import Any

from xswe.corpus.streams import read_lines
from xswe.embedding.ensemble import Ensemble, load_any
from xswe.embedding.importers import merge_tables
from xswe.embedding.locate import is_elsewhere, locate
from xswe.embedding.static import StaticEmbedding
from xswe.embedding.storage import MODEL_TYPE
from xswe.errors import ConfigError, ModelError
from xswe.evaluation.baselines import Model2VecEncoder, SentenceTransformerEncoder, UseEncoder, WordLlamaEncoder
from xswe.evaluation.encoders import About, SentenceEncoder, StaticEncoder, TeacherEncoder
from xswe.evaluation.ensembles import EnsembleEncoder
from xswe.evaluation.sif import sif
from xswe.evaluation.speed import sample_texts
from xswe.evaluation.vectors import read_vectors
from xswe.files import read_json
from xswe.language.codes import LANGUAGES, check_languages
from xswe.language.tokenizer_files import load_tokenizer, pieces_only
from xswe.language.words import WordSplitter, WordUnits

KINDS = ("xswe", "teacher", "wordllama", "use-multilingual", "model2vec", "st", "vectors")
_SIF_TEXTS = 100_000  # sentences that SIF looks at, at most
_HINT = "give a model folder, a file of word vectors, wordllama, use-multilingual, teacher:NAME, model2vec:NAME or st:NAME"
Pathlike = str | tuple[str, ...]


@dataclass(frozen=True)
class ModelSpec:
    """A model as a user names it.

    Attributes:
        path: ``KIND:WHERE``, or just where: a folder (of ours, of Model2Vec, of sentence-transformers), a file of word
            vectors or several (one a language, in one space), ``wordllama``, ``use-multilingual``, ``teacher:NAME``.
            ``sif:`` before any static one weights it.
        name: what tables call it.
        languages: codes of the languages to evaluate it on; None for those it knows (word vectors: those that the
            file's name says, else English).
        limit: word vectors to read of each file.
        tokenizer: for word vectors whose Chinese and Japanese units are a teacher's tokens: its ``tokenizer.json``, by
            which unknown words are cut short too.
        texts: for SIF: a file of sentences to count words in; without it the order of the vocabulary stands for the
            frequency.
    """

    path: Pathlike
    name: str | None = None
    languages: tuple[str, ...] | None = None
    limit: int | None = None
    tokenizer: str | None = None
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
    model = load_any(locate(where))
    encoder: Any = (
        EnsembleEncoder(model, name, threads) if isinstance(model, Ensemble) else StaticEncoder(model, name, threads)
    )
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
    return StaticEncoder(StaticEmbedding(units, matrix), name, threads, About("vectors", ("NumPy",)))


def _weighted(encoder: Any, spec: ModelSpec, threads: int) -> StaticEncoder:
    """Weight a table of vectors by SIF."""
    table = encoder.model if isinstance(encoder, StaticEncoder) else getattr(encoder, "table", lambda: None)()
    if table is None:
        raise ConfigError(f"sif:{encoder.name}: SIF weights tables of vectors, and this is none")
    if spec.texts:
        texts = [line or "" for _, line in islice(read_lines(spec.texts), _SIF_TEXTS)]
    else:
        texts = sample_texts(encoder.languages)
    about = About(encoder.about.library, encoder.about.framework, adapted_from=encoder.about.adapted_from)
    out = StaticEncoder(sif(table, texts, count=bool(spec.texts)), f"SIF {encoder.name}", threads, about)
    out.languages = encoder.languages
    return out
