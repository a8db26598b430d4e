"""A sentence encoder seen as two functions: the token states of a sentence, and the vector of a sentence."""
