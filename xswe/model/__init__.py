"""The static model: pooling, encoding, its folder on disk, export and import, the hub. It knows nothing of training."""

from __future__ import annotations
