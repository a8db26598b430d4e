"""What Hydra composes of ``execution=local``, ``array`` or ``ray``: the settings of whoever does the shards."""

from __future__ import annotations

from dataclasses import asdict

from hydra.core.config_store import ConfigStore

from xswe.io.execution import LOCAL


def register() -> None:
    """Register the group."""
    for kind in ("local", "array", "ray"):
        ConfigStore.instance().store(group="execution", name=kind, node={**asdict(LOCAL), "kind": kind})
