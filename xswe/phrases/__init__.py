"""Phrase mining: the spans of running text that translate or paraphrase a phrase, in any of the model's languages.

An average of static vectors is span-aggregatable (SLICE, Orbach et al. 2024) for free: every span of every passage is
scored without a forward pass. :func:`xswe.phrases.find.find_phrases` is the entry point.
"""

from __future__ import annotations
