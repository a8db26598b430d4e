"""Bitext: names of files to blocks of pairs, and back."""
