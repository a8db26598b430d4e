"""Parallel text from files to flat arrays: readers, cleaning, splits and the choice of context sentences."""
