"""The division of a text into shards, independent of the executor."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from xswe.errors import ConfigError
from xswe.io.files import fingerprint, read_json
from xswe.io.inputs import Inputs, state_of
from xswe.io.sources import is_remote, packing_of


@dataclass(frozen=True)
class TextPlan:
    """How the lines of files are cut into shards: by bytes; a line belongs to the shard of its first byte."""

    files: tuple[str, ...]  # names
    # bytes of each file; None if it is compressed or its storage cannot seek: the whole file is then one shard
    sizes: tuple[int | None, ...]
    shard_bytes: int  # of text, at most, not counting the rest of the last line
    align: int = 1  # shards begin at multiples of this number of bytes

    @classmethod
    def of(cls, files: Sequence[str], shard_bytes: int, align: int = 1) -> tuple[TextPlan, Inputs]:
        """Return a plan for files, and the state of the files now.

        The plan has absolute names, because workers have working directories of their own. ConfigError: standard input,
        which several processes cannot read. InputError: a file is missing.
        """
        sizes: list[int | None] = []
        stamps = []
        for name in files:
            if name == "-":
                raise ConfigError("standard input cannot be cut into shards: give a file, or leave execution=local")
            size, stamp = state_of(name)
            sizes.append(None if packing_of(name) else size)
            stamps.append(stamp)
        found = tuple(name if is_remote(name) else str(Path(name).absolute()) for name in files)
        return cls(found, tuple(sizes), shard_bytes, align), Inputs(found, tuple(stamps))

    @classmethod
    def read(cls, folder: Path) -> TextPlan:
        """Read the plan of a stage from its manifest."""
        plan = read_json(folder / "manifest.json")["plan"]
        return cls(tuple(plan["files"]), tuple(plan["sizes"]), plan["shard_bytes"], plan["align"])

    @property
    def count(self) -> int:
        """Number of shards."""
        return sum(map(self._shards, self.sizes))

    def _shards(self, size: int | None) -> int:
        return 1 if size is None else -(-size // self.shard_bytes)

    def shard(self, number: int) -> tuple[str, tuple[int, int] | None]:
        """Return the file of a shard and its span in bytes, None for the whole file."""
        file, span = self.place(number)
        return self.files[file], span

    def place(self, number: int) -> tuple[int, tuple[int, int] | None]:
        """Return the number of a shard's file, from 0, and its span in bytes, None for the whole file."""
        for file, size in enumerate(self.sizes):
            shards = self._shards(size)
            if number < shards:
                if size is None:
                    return file, None
                begin, end = (size * place // shards // self.align * self.align for place in (number, number + 1))
                return file, (begin, size if number + 1 == shards else end)
            number -= shards
        raise IndexError(number)

    def shards_of(self, file: int) -> range:
        """Return the shards of a file; both are counted from 0."""
        first = sum(map(self._shards, self.sizes[:file]))
        return range(first, first + self._shards(self.sizes[file]))


def plan_identity(plan: TextPlan, inputs: Inputs) -> str:
    """Return a digest of the inputs and their division."""
    return fingerprint(inputs.stamps, plan.shard_bytes, plan.align)


def ranges(numbers: Iterable[int]) -> str:
    """Return numbers in the notation of batch queues.

    Example:
        >>> ranges([3, 9, 7, 8])
        '3,7-9'
    """
    listed: list[list[int]] = []
    for number in sorted(set(numbers)):
        if listed and listed[-1][1] == number - 1:
            listed[-1][1] = number
        else:
            listed.append([number, number])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in listed)
