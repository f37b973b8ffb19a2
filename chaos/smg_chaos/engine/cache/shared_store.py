"""Shared store of KV blocks for several engines: only the keys of blocks, in memory or in a
folder.
"""

from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Protocol

_KEPT_MAX: Final = 1 << 20
"""Blocks a store in memory keeps: 16 million tokens of 16 in a block, more than any test writes."""


class Store(Protocol):
    """Set of block keys."""

    def put(self, keys: Sequence[int]) -> None:
        """Add these blocks."""
        ...

    def match(self, keys: Sequence[int]) -> int:
        """Return how many of these blocks are there, from the first one on without a gap."""
        ...


class MemoryStore:
    """Shared by the engines of one process."""

    def __init__(self) -> None:
        self._kept: OrderedDict[int, None] = OrderedDict()

    def put(self, keys: Sequence[int]) -> None:
        """Add these blocks; the oldest ones are dropped when it is full."""
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
        """Add these blocks."""
        for key in keys:
            self._path(key).touch()

    def match(self, keys: Sequence[int]) -> int:
        """Return how many of these blocks are there, from the first one on."""
        return next((at for at, key in enumerate(keys) if not self._path(key).exists()), len(keys))

    def _path(self, key: int) -> Path:
        return self._folder / f"{key:016x}"
