"""A model as a step of scikit-learn pipelines: texts in, vectors out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from xswe.errors import DependencyError
from xswe.model.ensemble import AnyModel, load_any, locate

try:
    from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
except ImportError:
    raise DependencyError("scikit-learn", "train", "SentenceVectors") from None


class SentenceVectors(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """A model as a scikit-learn transformer, with feature names and ``set_output``.

    It keeps the model's name, not the model: copies of a pipeline are small, and a parameter search may try several
    models. The model is loaded when texts are first transformed. There is nothing to fit.

    Args:
        model: a model folder, ``mini`` (in this package), or ``user/repository`` on the Hugging Face hub.
        threads: how many threads share the work.

    Example:
        >>> from sklearn.linear_model import LogisticRegression
        >>> from sklearn.pipeline import make_pipeline
        >>> texts = ["The train is late.", "The bus leaves at noon.", "We bake bread.", "The soup needs salt."]
        >>> sorter = make_pipeline(SentenceVectors("mini"), LogisticRegression(C=10))
        >>> sorter.fit(texts, ["travel", "travel", "food", "food"]).predict(["Der Zug hat Verspätung."]).tolist()
        ['travel']
    """

    def __init__(self, model: str | Path = "mini", threads: int = 1) -> None:
        self.model = model
        self.threads = threads

    def fit(self, X: Sequence[str], y: object = None) -> Self:
        """Check the texts; nothing is learnt from them.

        Raises:
            ValueError: an entry is not a str.
        """
        _texts(X)
        return self

    def transform(self, X: Sequence[str]) -> np.ndarray:
        """Encode texts to unit vectors, float32 (n, d).

        Args:
            X: texts: a list, an array or a column of a table.

        Raises:
            ValueError: an entry is not a str, such as a missing value.
            ModelError: the model is missing or damaged.
        """
        return self._loaded().encode(_texts(X), threads=self.threads)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.input_tags.string, tags.input_tags.two_d_array = True, False
        tags.transformer_tags.preserves_dtype = []
        return tags

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "_model"}

    @property
    def _n_features_out(self) -> int:
        """The number of columns of the transform."""
        return self._loaded().dim

    def _loaded(self) -> AnyModel:
        """Return the model named by the parameter, loaded once."""
        name, model = getattr(self, "_model", (None, None))
        if model is None or name != str(self.model):
            model = load_any(locate(self.model))
            self._model = (str(self.model), model)
        return model


def _texts(given: Any) -> list[str]:
    """Return texts as a list.

    Raises:
        ValueError: it is one text, or an entry is not a str.
    """
    values = None if isinstance(given, str) else np.asarray(given, object)
    if values is None or values.ndim != 1:
        what = "one text" if values is None else f"an array of {values.ndim} dimensions"
        raise ValueError(f"SentenceVectors takes texts: a list, or a column of a table; this is {what}")
    for row, value in enumerate(values):
        if not isinstance(value, str):
            raise ValueError(f"row {row} is {value!r}, and no text: leave it out, or put '' there")
    return list(values)
