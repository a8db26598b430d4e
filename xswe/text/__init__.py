"""From text to unit ids: languages, segmenters, tokenizers, units, and the compiled look-up."""

from __future__ import annotations
