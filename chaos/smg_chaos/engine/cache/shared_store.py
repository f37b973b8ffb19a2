"""A store of KV blocks that engines share, by the keys of the blocks."""

from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Protocol

_KEPT_MAX: Final = 1 << 20
"""Blocks a store in memory keeps: 16 million tokens of 16 in a block, more than any test writes."""


class Store(Protocol):
    """Knows blocks by their keys."""

    def put(self, keys: Sequence[int]) -> None:
        """Keep these blocks."""
        ...

    def match(self, keys: Sequence[int]) -> int:
        """Return how many of these blocks are there, from the first one on without a gap."""
        ...


class MemoryStore:
    """Shared by the engines of one process."""

    def __init__(self) -> None:
        self._kept: OrderedDict[int, None] = OrderedDict()

    def put(self, keys: Sequence[int]) -> None:
        """Keep these blocks; the oldest ones go."""
        self._kept.update(dict.fromkeys(keys))
        while len(self._kept) > _KEPT_MAX:
            self._kept.popitem(last=False)

    def match(self, keys: Sequence[int]) -> int:
        """Return how many of these blocks are there, from the first one on."""
        return next((at for at, key in enumerate(keys) if key not in self._kept), len(keys))


class FolderStore:
    """Shared by the engines of several processes: an empty file a block."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def put(self, keys: Sequence[int]) -> None:
        """Keep these blocks."""
        for key in keys:
            self._path(key).touch()

    def match(self, keys: Sequence[int]) -> int:
        """Return how many of these blocks are there, from the first one on."""
        return next((at for at, key in enumerate(keys) if not self._path(key).exists()), len(keys))

    def _path(self, key: int) -> Path:
        return self._folder / f"{key:016x}"
