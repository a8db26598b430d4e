"""Evaluation of models: retrieval of translations, sentence similarity, mteb's tasks."""
