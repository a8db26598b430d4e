"""The small bilingual model of the mining tests, for the commands that mine."""

from tests.mining.conftest import model, model_folder

__all__ = ["model", "model_folder"]
