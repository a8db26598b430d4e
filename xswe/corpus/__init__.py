"""Corpora for training: cards, cleaning, splits, conversion, context sentences."""
