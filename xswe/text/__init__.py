"""From text to ``Bags``: languages, scripts, segmenters, and the three choices of units, behind one look-up."""

from __future__ import annotations
