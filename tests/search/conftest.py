"""The small bilingual model and the vectors of the mining tests."""

from tests.mining.conftest import model, model_folder, vectors

__all__ = ["model", "model_folder", "vectors"]
