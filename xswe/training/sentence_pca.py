"""The papers' sentence PCA (:mod:`xswe.training.components`) as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal, Self

import numpy as np

from xswe.errors import DependencyError
from xswe.training.components import Components

try:
    from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
    from sklearn.utils import check_array
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError:
    raise DependencyError("scikit-learn", "train", "SentencePCA") from None

_TYPES = (np.float64, np.float32)  # anything else is converted to the first


class SentencePCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Principal components of sentence vectors, applied to word vectors.

    The components are fitted on *sentences* (means of word vectors) of all languages of the model together, because
    sentences are what the model must tell apart. The first ``drop`` components, which carry what all sentences share (and,
    with several languages, the language itself), are removed; the next ``dim`` are kept. Word vectors are centred by the
    sentences' mean, so averaging commutes with the projection: the transform of a mean is the mean of transforms.

    Sentences are accumulated into a mean and a d x d covariance, in float64; no matrix of all sentences is ever needed.
    NaN and infinity are refused; feature names, ``set_output`` and types work as in scikit-learn's own estimators.

    Args:
        drop: components removed; ``"auto"`` is floor(d / 100), the papers' rule.
        dim: components kept; ``"auto"`` is 256 (the paper's), or all that remain of narrower vectors.

    Attributes:
        mean_: float64 (d,), the sentences' mean.
        components_: float64 (dim, d), rows orthonormal; the entry of largest magnitude in each row is positive.
        explained_variance_: float64 (d,), variance along *every* component, dropped ones first.
        explained_variance_ratio_: float64 (d,), the same as fractions of the total.
        drop_: components removed.
        n_samples_seen_: sentences seen.
        n_features_in_: d.
        feature_names_in_: names of the columns, if a data frame was given.
    """

    def __init__(self, drop: int | Literal["auto"] = "auto", dim: int | Literal["auto"] = "auto") -> None:
        self.drop = drop
        self.dim = dim

    def fit(self, X: np.ndarray | Iterator[np.ndarray], y: object = None) -> Self:
        """Fit the components.

        Args:
            X: float (n, d) sentence vectors, or an iterator over such blocks.
            y: ignored, for scikit-learn's pipelines.

        Raises:
            ConfigError: ``drop + dim`` exceeds the vectors' width.
            ValueError: there are fewer than two sentences, or a number is not finite.
        """
        blocks: Iterable[np.ndarray]
        if isinstance(X, Iterator):
            blocks = (check_array(block, dtype=_TYPES, ensure_min_samples=0) for block in X)
        else:
            blocks = iter([validate_data(self, X, dtype=_TYPES, ensure_min_samples=2)])
        made = Components(self.drop, self.dim).fit(blocks)
        self.__dict__.update({name: value for name, value in vars(made).items() if name.endswith("_")})
        self.n_features_in_ = len(made.mean_)
        return self

    def transform(self, X: np.ndarray) -> np.ndarray:
        """Project float (n, d) vectors to (n, dim) of the same type."""
        check_is_fitted(self)
        vectors = validate_data(self, X, dtype=_TYPES, reset=False)
        return ((vectors.astype(np.float64) - self.mean_) @ self.components_.T).astype(vectors.dtype)

    @property
    def _n_features_out(self) -> int:
        """Number of columns of the transform."""
        return len(self.components_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
