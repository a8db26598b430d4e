"""A teacher that the workers of a cluster load."""

from __future__ import annotations

import os
from contextlib import chdir, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from xswe.errors import ConfigError
from xswe.teacher.protocol import Teacher, TeacherConfig
from xswe.work.config import ExecutionConfig


@dataclass(frozen=True)
class SharedTeacher:
    """The description by which a worker loads a teacher."""

    config: TeacherConfig | None  # its settings; None for an object without settings
    identity: str  # by which a worker checks that it has the same weights
    place: str  # the folder that a relative path starts from

    @classmethod
    def of(cls, teacher: Teacher, execution: ExecutionConfig) -> SharedTeacher:
        """Return the description of a teacher, with a worker's number of threads."""
        config = getattr(teacher, "config", None)
        if isinstance(config, TeacherConfig):
            config = replace(config, threads=max(1, int(execution.cpus)))
        return cls(config if isinstance(config, TeacherConfig) else None, teacher.identity, os.getcwd())

    def check(self) -> TeacherConfig:
        """Return the settings, or raise ConfigError if there are none."""
        if self.config is None:
            raise ConfigError("the workers of a cluster load the teacher: give its name or folder, not an object")
        return self.config

    def load(self) -> Teacher:
        """Load the teacher.

        Raises:
            ConfigError: the teacher of that name has other weights on this machine.
        """
        from xswe.teacher.transformer import load_teacher

        config = self.check()
        with chdir(self.place) if Path(self.place).is_dir() else nullcontext():
            teacher = load_teacher(config)
        if teacher.identity != self.identity:
            where = f"teacher.model={config.model}"
            raise ConfigError(f"{where}: the weights on this machine differ from the driver's; copy the folder again")
        return teacher
