"""The small model of English and Japanese that mining is tested with."""

from tests.mining.conftest import model  # noqa: F401
