"""The model itself: pooling, encoding, and the folder it is kept in. Knows nothing of how the vectors came about."""

from __future__ import annotations
