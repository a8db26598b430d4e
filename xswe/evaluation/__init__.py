"""How good vectors are: retrieval of translations, sentence similarity, the mteb bridge, and tables."""
