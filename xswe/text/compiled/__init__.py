"""Compiled look-up of text: bytes, alphabet, chunks, Viterbi, scan."""
