"""Encoders by name, including those of other libraries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from xswe.errors import ConfigError, DependencyError, ModelError, brief
from xswe.evaluation.encoders import About, SentenceEncoder, StaticEncoder, TeacherEncoder
from xswe.io.files import arrays_digest, fingerprint, read_json
from xswe.model.ensemble import is_elsewhere, load_any, locate
from xswe.model.folder import MODEL_TYPE
from xswe.model.interchange import WORDLLAMA, ImportConfig, import_model, is_model2vec, read_static
from xswe.text.languages import LANGUAGES, check_languages

KINDS = ("xswe", "teacher", WORDLLAMA, "model2vec", "st", "vectors")
_HINT = "give a model folder, a file of word vectors, wordllama, teacher:NAME or st:NAME"
Pathlike = str | tuple[str, ...]


@dataclass(frozen=True)
class ModelSpec:
    """A model as a user names it."""

    # ``KIND:WHERE``, or only the place: a folder (of ours, of Model2Vec, of sentence-transformers), a file of word vectors
    # or several (one per language, in one space), ``wordllama``, ``teacher:NAME``
    path: Pathlike
    name: str | None = None  # name in tables
    # codes of the languages to evaluate it on; None for those it knows (word vectors: those in the file name, else
    # English)
    languages: tuple[str, ...] | None = None
    limit: int | None = None  # word vectors to read from each file
    # for word vectors whose Chinese and Japanese units are a teacher's tokens: its ``tokenizer.json``, whose sub-words
    # also guide the back-off of unknown words
    tokenizer: str | None = None

    @classmethod
    def of(cls, which: str | Mapping[str, Any]) -> ModelSpec:
        """Read a model's entry in a configuration: a path, or a mapping of the attributes."""
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
    """Open any model, named as in :class:`ModelSpec`.

    ConfigError: the name is incomplete. ModelError, InputError: the folder or file is missing or damaged.
    DependencyError: its library is not installed.
    """
    spec = ModelSpec.of(which)
    encoder = _open(*_kind(spec.path), spec, threads)
    if spec.name:
        encoder.name = spec.name
    return encoder


def check_exists(spec: ModelSpec) -> None:
    """Check, before anything is loaded, that the folder or files of a model exist; ModelError: one is missing."""
    kind, where = _kind(spec.path)
    if kind not in ("xswe", "model2vec", "vectors"):  # others may be names on a hub, or need no path
        return
    for path in [where] if isinstance(where, str) else where:
        if not Path(path).exists() and not (kind == "xswe" and is_elsewhere(path)):
            raise ModelError(f"{path}: no such folder or file; {_HINT}")


def _kind(path: Pathlike) -> tuple[str, Pathlike]:
    """Return the kind of model that a path names, by its prefix or its files."""
    if not isinstance(path, str):
        return "vectors", path
    head, _, rest = path.partition(":")
    if head in KINDS:
        return head, rest
    folder = Path(path)
    if folder.is_file():
        return "vectors", path
    if is_model2vec(folder):
        return "model2vec", path
    config = read_json(folder / "config.json") if (folder / "config.json").is_file() else {}
    if isinstance(config, dict) and config.get("model_type") == MODEL_TYPE:
        return "xswe", path
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
    if kind in (WORDLLAMA, "model2vec"):
        model = read_static(where or kind, languages)
        return StaticEncoder(model, model.description["from"], threads, About(adapted_from=model.description["from"]))
    if kind == "st":
        return SentenceTransformerEncoder(where, threads, languages or tuple(LANGUAGES))
    folder = Path(where)
    parent = folder.resolve().parent.name if folder.name == "model" else ""
    name = f"{parent}/{folder.name}".strip("/")
    encoder = StaticEncoder(load_any(locate(where)), name, threads)
    encoder.languages = languages or encoder.languages
    return encoder


def _languages_in(files: Sequence[Path]) -> tuple[str, ...]:
    """Return the languages in file names (``wiki.multi.de.vec``), or English if there are none."""
    parts = {part for file in files for part in file.name.lower().replace("-", ".").replace("_", ".").split(".")}
    return tuple(code for code in LANGUAGES if code in parts) or ("en",)


def _open_vectors(files: list[Path], spec: ModelSpec, threads: int) -> StaticEncoder:
    """Open word vectors; a word in several files gets the mean of its vectors, as in the reference code."""
    by_teacher = {"zh": "teacher", "ja": "teacher"}
    segmenters = by_teacher if spec.tokenizer else {"zh": "jieba", "ja": "fugashi"}
    config = ImportConfig(tokenizer=spec.tokenizer, segmenters=segmenters, limit=spec.limit or 0, on_error="skip")
    model = import_model(files, spec.languages or _languages_in(files), config)
    return StaticEncoder(model, "+".join(file.name for file in files), threads, About("vectors", ("NumPy",)))


def _unit(vectors: np.ndarray) -> np.ndarray:
    """Scale rows to norm 1, in float32; zero rows stay zero, values that are not finite become zero."""
    out = np.nan_to_num(np.asarray(vectors, np.float32), posinf=0.0, neginf=0.0)
    norms = np.linalg.norm(out, axis=1, keepdims=True)
    return np.divide(out, norms, out=np.zeros_like(out), where=norms > 0)


class SentenceTransformerEncoder:
    """A sentence-transformers folder or hub name; no code in it is executed."""

    def __init__(self, where: str, threads: int, languages: tuple[str, ...]) -> None:
        try:
            import torch
            from sentence_transformers import SentenceTransformer
        except ImportError:
            raise DependencyError("sentence-transformers", "baselines", f"the model {where}") from None
        try:
            self._model = SentenceTransformer(where, trust_remote_code=False)
        except Exception as error:  # the library passes on errors of any type
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
