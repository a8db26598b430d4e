"""xswe's own look-up inside sentence-transformers: the exact way for word models.

    from xswe.model.st_module import sentence_transformer
    model = sentence_transformer("runs/en-ja/model")      # a SentenceTransformer; encode, train, evaluate as ever

Model folders open in ``SentenceTransformer(folder)`` as they are, but for word models, the ``tokenizer.json`` that it reads
only comes close to the look-up. The module here looks texts up with the model's own units. It is passed to
sentence-transformers as an object, so that no folder names code to run. After training,
``model[0].trained().save(folder)`` writes a folder that opens everywhere.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules.input_module import InputModule
from sentence_transformers.sentence_transformer.modules import Normalize

from xswe.errors import ModelError
from xswe.model.ensemble import locate
from xswe.model.static import StaticModel


class StaticUnits(InputModule):
    """The mean of a text's unit vectors, with the look-up of an xswe model, whose vectors become trainable weights."""

    def __init__(self, model: StaticModel) -> None:
        super().__init__()
        self.model = model
        self.embedding = torch.nn.EmbeddingBag.from_pretrained(torch.from_numpy(model.vectors.copy()), freeze=False)

    def preprocess(self, inputs: Sequence[Any], prompt: str | None = None, **_: Any) -> dict[str, torch.Tensor]:
        """Look texts up; return flat ids, and where those of each text begin."""
        texts = [prompt + text for text in inputs] if prompt else list(inputs)
        bags = self.model.widen(self.model.units.bags(texts))
        return {
            "input_ids": torch.from_numpy(bags.ids.astype("int64")),
            "offsets": torch.from_numpy(bags.offsets[:-1].astype("int64")),
        }

    def forward(self, features: dict[str, Any], **_: Any) -> dict[str, Any]:
        """Average the vectors of each text."""
        features["sentence_embedding"] = self.embedding(features["input_ids"], features["offsets"])
        return features

    def get_embedding_dimension(self) -> int:
        """Return the dimensions of a vector."""
        return self.model.dim

    @property
    def max_seq_length(self) -> float:
        """Infinite: texts are not truncated."""
        return float("inf")

    def trained(self) -> StaticModel:
        """Return the model with the current vectors."""
        matrix = self.embedding.weight.detach().cpu().float().numpy().copy()
        return replace(self.model, matrix=matrix, scales=None, shared=0)

    def save(self, output_path: str, *_: Any, **__: Any) -> None:
        """Write the model's files into ``output_path``, beside those of sentence-transformers."""
        with tempfile.TemporaryDirectory(dir=output_path) as folder:
            self.trained().save(Path(folder) / "model")
            for file in (Path(folder) / "model").iterdir():
                if file.is_file():
                    shutil.move(file, Path(output_path) / file.name)

    @classmethod
    def load(cls, model_name_or_path: str, subfolder: str = "", **_: Any) -> StaticUnits:  # type: ignore[override]
        """Load from a model folder."""
        return cls(StaticModel.load(Path(model_name_or_path) / subfolder))


def sentence_transformer(model: StaticModel | str | Path, **settings: Any) -> SentenceTransformer:
    """Open a model as a ``SentenceTransformer`` that gives exactly the vectors of ``model.encode``.

    Args:
        model: a model, its folder, ``mini``, or ``user/repository`` on the hub.
        settings: further arguments of ``SentenceTransformer`` (``device``, …).

    Raises:
        ModelError: ``modules`` is among the settings.
    """
    if "modules" in settings:
        raise ModelError("sentence_transformer builds the modules itself; use StaticUnits to build your own")
    opened = model if isinstance(model, StaticModel) else StaticModel.load(locate(model))
    return SentenceTransformer(modules=[StaticUnits(opened), Normalize()], **settings)
