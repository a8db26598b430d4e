"""The static model: pooling, encoding, its folder on disk, export and import, the hub. Training is elsewhere."""

from __future__ import annotations
