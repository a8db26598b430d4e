"""The small bilingual model of the mining tests, for the commands that mine; and a Hydra that copies less."""

from __future__ import annotations

from collections.abc import Iterator
from unittest.mock import patch

import pytest
from hydra.core.config_store import ConfigStore

from tests.mining.conftest import model, model_folder

__all__ = ["model", "model_folder"]


@pytest.fixture(scope="session", autouse=True)
def settings_copied_where_read() -> Iterator[None]:
    """Let Hydra not copy the settings of all verbs whenever it composes those of one: it copies each that it reads."""
    with patch.object(ConfigStore, "__deepcopy__", lambda store, _: store, create=True):
        yield
