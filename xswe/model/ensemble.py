"""Several static models as one: the inner product of its vectors is the weighted mean of the parts' cosines.

E(z) = [a_1 f(E_1(z)), ..., a_L f(E_L(z))] / sqrt(a_1^2 + ... + a_L^2), where f scales to norm 1 (EN paper, appendix D); the
weight of part l's cosine is a_l^2. Parts may differ in units, tokenizers and dimensions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from xswe.errors import ConfigError, ModelError
from xswe.io.arguments import check_model
from xswe.io.files import file_digest, fingerprint, read_json, whole_folder, write_json
from xswe.io.settings import suggestion
from xswe.model import folder as storage
from xswe.model.encoding import Encoding
from xswe.model.hub import from_hub, push_folder
from xswe.model.static import StaticModel
from xswe.work.once import once

FORMAT_VERSION = 1
KIND = "ensemble"
_PART = re.compile(r"part-\d+")


@dataclass(frozen=True, eq=False)
class Ensemble(Encoding):
    """Static models that encode together.

    Attributes:
        parts: the models.
        weights: of each part's cosine; they sum to 1.
        description: the other entries of ``config.json``, as plain JSON values.
    """

    parts: tuple[StaticModel, ...]
    weights: tuple[float, ...]
    description: dict[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        parts = ", ".join(f"{weight:.3g}: {part}" for part, weight in zip(self.parts, self.weights, strict=True))
        return f"Ensemble({'-'.join(self.languages)}, {self.dim} dimensions, {{{parts}}})"

    @classmethod
    def of(
        cls, parts: Sequence[StaticModel], weights: Sequence[float] = (), description: dict[str, Any] | None = None
    ) -> Ensemble:
        """Make an ensemble; weights are scaled to sum to 1, and equal if none are given.

        Raises:
            ConfigError: there is no part, the weights are negative or not one per part, or no language is common to all.
        """
        chosen = np.array(weights if len(weights) else [1.0] * len(parts), np.float64)
        if not parts or len(chosen) != len(parts) or (chosen < 0).any() or not 0 < chosen.sum() < np.inf:
            raise ConfigError(
                f"weights={list(weights)}: give one for each of the {len(parts)} models, none negative, not all 0"
            )
        made = cls(tuple(parts), tuple(float(x) for x in chosen / chosen.sum()), description or {})
        if not made.languages:
            raise ConfigError("the models have no language in common: an ensemble encodes what all of them know")
        return made

    @cached_property
    def identity(self) -> str:
        """A fingerprint of everything that determines :meth:`encode`: the weights and the parts' identities."""
        return fingerprint(self.weights, [part.identity for part in self.parts])

    @property
    def dim(self) -> int:
        """Dimensions of a vector: the sum over all parts."""
        return sum(part.dim for part in self.parts)

    @property
    def languages(self) -> tuple[str, ...]:
        """Codes of the languages that every part knows."""
        return tuple(code for code in self.parts[0].languages if all(code in part.languages for part in self.parts))

    def encode_into(self, texts: Sequence[str], out: np.ndarray) -> None:
        """Encode ``n`` texts into float32 (n, d).

        A part without known units in a text leaves it to the others; a text unknown to all gives the zero vector.
        """
        from xswe.io.products import norms  # compiled: loading a model does without
        from xswe.model.kernels import divide_rows

        start = 0
        for part, weight in zip(self.parts, self.weights, strict=True):
            np.multiply(part.encode(texts), np.float32(weight**0.5), out=out[:, start : start + part.dim])
            start += part.dim
        divide_rows(out, norms(out))

    def word_cosines(self, text: str, language: str | None = None) -> dict[str, float]:
        """Return the words of a language that all parts have, except the text itself, with their cosines with the text."""
        found = [part.word_cosines(text, language) for part in self.parts]
        return {
            word: sum(weight * own[word] for weight, own in zip(self.weights, found, strict=True))
            for word in found[0]
            if all(word in own for own in found)
        }

    def save(self, folder: str | Path) -> None:
        """Write one folder atomically: a model folder for each part, and ``config.json``.

        Raises:
            ModelError: the folder exists and is something else; it is left alone.
        """
        folder = Path(folder)
        if folder.exists() and not (folder.is_dir() and (is_ensemble(folder) or not any(folder.iterdir()))):
            raise ModelError(f"{folder}: exists and is no ensemble's folder; choose another name or move it away")
        with whole_folder(folder) as temporary:
            parts = []
            for k, (part, weight) in enumerate(zip(self.parts, self.weights, strict=True)):
                part.save(temporary / f"part-{k}")
                digest = file_digest(storage.matrix_file(temporary / f"part-{k}"))
                parts.append({"folder": f"part-{k}", "weight": weight, "dim": part.dim, "sha256": digest})
            config = {"model_type": storage.MODEL_TYPE, "kind": KIND, "format_version": FORMAT_VERSION, "parts": parts}
            write_json(temporary / "config.json", {**config, **self.description})


def is_ensemble(folder: Path) -> bool:
    """Return True if a folder is an ensemble's."""
    try:
        config = read_json(folder / "config.json")
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(config, dict) and config.get("kind") == KIND


def load(folder: Path) -> Ensemble:
    """Load an ensemble's folder; ModelError: a file, which it names, is missing, damaged or too new."""
    path = folder / "config.json"
    config = read_json(path)
    storage.check_version(path, config.get("format_version"), FORMAT_VERSION)
    try:
        names = [str(part["folder"]) for part in config["parts"]]
        weights = [float(part["weight"]) for part in config["parts"]]
    except (KeyError, TypeError, ValueError) as error:
        raise ModelError(f"{path}: damaged ({error!r}); make the ensemble again") from None
    if strange := [name for name in names if not _PART.fullmatch(name)]:
        raise ModelError(f"{path}: a part is called {strange[0]!r}, not part-0 and so on; make the ensemble again")
    own = {"model_type", "kind", "format_version", "parts"}
    parts = [StaticModel.load(folder / name) for name in names]
    return Ensemble.of(parts, weights, {k: v for k, v in config.items() if k not in own})


AnyModel = StaticModel | Ensemble


def share_model(model: AnyModel, folder: Path) -> None:
    """Write a model for workers elsewhere, once for all processes; the parent folder holds nothing else."""
    once(folder.parent, model.identity, lambda place: model.save(place / folder.name))


def load_any(folder: Path) -> AnyModel:
    """Load a model folder (:func:`xswe.model.folder.load`) or an ensemble's (:func:`load`)."""
    return load(folder) if is_ensemble(folder) else StaticModel.load(folder)


def open_model(model: AnyModel | str | Path, call: str) -> AnyModel:
    """Return a model, loaded if it is given by name (see :func:`locate`); TypeError: it is none.

    ``call`` is the example call in the message.
    """
    if isinstance(model, (str, Path)):
        return load_any(locate(model))
    check_model(model, call)
    return model


def load_single(folder: Path) -> StaticModel:
    """Load a single model for a task that needs its table; raise ModelError for an ensemble."""
    if is_ensemble(folder):
        raise ModelError(
            f"{folder}: an ensemble, where one table of vectors is needed; give one of its parts, {folder}/part-0"
        )
    return StaticModel.load(folder)


def fit_weights(score: Callable[[np.ndarray], float], parts: int, steps: Sequence[float] = (0.2, 0.1, 0.05)) -> np.ndarray:
    """Return non-negative weights, float64 (parts,), of sum 1, with a high score, by hill climbing.

    Starting with equal weights, the first of ``steps`` is moved from one part to another wherever that raises the score,
    until nothing does; then the next step.
    """
    weights = np.full(parts, 1.0 / parts)
    best = score(weights)
    for step in steps:
        improved = True
        while improved:
            improved = False
            for giver in range(parts):
                for taker in range(parts):
                    share = min(step, weights[giver])
                    if giver == taker or share <= 1e-9:
                        continue
                    moved = weights.copy()
                    moved[giver] -= share
                    moved[taker] += share
                    if (found := score(moved)) > best + 1e-9:
                        weights, best, improved = moved, found, True
    return weights


PRETRAINED = ("mini",)
_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")


def locate(model: str | Path, revision: str | None = None, *, token: str | None = None) -> Path:
    """Return the folder of a model: a folder, ``mini`` (in this package), or ``user/repository`` on the Hugging Face hub.

    Local folders have priority, except that one without a model does not hide a model of this package. ``revision`` is a
    branch, tag or commit of a repository, ``token`` an access token, if none is stored. ModelError: this installation or
    the hub lacks the model.
    """
    if not isinstance(model, (str, Path, int)):
        raise TypeError(f"model is {model!r}: give a folder, mini, or user/repository")
    path = Path(str(model))  # on the command line, a name may be a number
    if model in PRETRAINED and not (path / "config.json").is_file():
        return pretrained(str(model))
    if isinstance(model, Path) or path.exists():
        return path
    if _REPOSITORY.fullmatch(str(model)):
        return from_hub(str(model), revision, token=token)
    if guess := suggestion(str(model), PRETRAINED):
        raise ModelError(f"{model}: there is no such folder{guess}")
    return path


def is_elsewhere(model: str) -> bool:
    """Return True if a name that is not a path may be one in this package or on the hub."""
    return model in PRETRAINED or _REPOSITORY.fullmatch(model) is not None


def pretrained(name: str) -> Path:
    """Return the folder of a model that ships with this package, or raise a ModelError if an installation lacks it."""
    folder = Path(__file__).parent.parent / "pretrained" / name
    if not (folder / "config.json").is_file():
        raise ModelError(
            f"{folder}: the model {name!r} is not in this installation; install the released wheel, or train one: "
            "python -m xswe train"
        )
    return folder


def push_to_hub(
    folder: str | Path,
    repository: str,
    *,
    revision: str | None = None,
    private: bool = False,
    token: str | None = None,
    message: str = "Upload model",
) -> str:
    """Push a model folder with its card to the hub, and return the address of the commit.

    For the arguments, see :meth:`xswe.model.encoding.Encoding.push_to_hub`, which pushes a loaded model.

    Raises:
        ModelError: the folder is no model, or the hub refuses.
    """
    load_any(Path(folder))  # never push a folder that cannot be loaded
    return push_folder(Path(folder), repository, revision, private, token, message)
