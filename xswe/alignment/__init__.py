"""Alignment of documents, of their sentences in order, and of the words of sentences."""
