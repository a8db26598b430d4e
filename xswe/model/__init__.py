"""The static model: pooling, encoding, its folder on disk, other forms of it, the hub. It knows nothing of training."""

from __future__ import annotations
