"""The small model of English and Japanese that mining is tested with."""

from tests.mining.conftest import model, model_folder  # noqa: F401
