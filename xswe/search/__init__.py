"""Nearest neighbours, exact and in clusters, and the index of sentences."""
