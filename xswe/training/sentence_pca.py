"""The papers' reduction (:mod:`xswe.training.components`) as an estimator of scikit-learn."""

from __future__ import annotations

from xswe.errors import DependencyError
from xswe.training.components import Components

try:
    from sklearn.base import BaseEstimator, TransformerMixin
except ImportError:
    raise DependencyError("scikit-learn", "train", "SentencePCA") from None


class SentencePCA(TransformerMixin, BaseEstimator, Components):
    """Principal components of sentence vectors, applied to word vectors.

    The components are fitted on *sentences* (means of word vectors) of all languages of the model together, because it is
    sentences that must be told apart. The first ``drop`` components, which carry what all sentences share (and, with
    several languages, the language itself), are removed; the next ``dim`` are kept. Word vectors are centred by the
    sentences' mean, so that averaging commutes with the projection: the transform of a mean is the mean of transforms.

    Sentences are accumulated into a mean and a d x d covariance, in float64: no matrix of all sentences is ever needed.

    Args:
        drop: components removed; ``"auto"`` is floor(d / 100), the papers' rule.
        dim: components kept (paper: 256).

    Attributes:
        mean_: float64 (d,), the sentences' mean.
        components_: float64 (dim, d), rows orthonormal; each row's entry of largest size is positive.
        explained_variance_: float64 (d,), variance along *every* component, dropped ones first.
        explained_variance_ratio_: float64 (d,), the same as fractions of the whole.
        drop_: components removed.
        n_samples_seen_: sentences seen.
    """
