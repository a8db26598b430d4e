"""The look-up of text in compiled code: bytes, alphabet, chunks, Viterbi, scan."""
