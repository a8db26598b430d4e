"""From text to ``Bags``: languages, scripts, segmenters, and the three choices of units, behind one look-up path."""

from __future__ import annotations
