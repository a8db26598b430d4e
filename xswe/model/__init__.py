"""The static model: pooling, encoding, its folder on disk, export and import, the hub. It does not depend on training."""

from __future__ import annotations
