"""Early updates: bounded buffer of document updates that arrive before those they depend on.

The library would keep them too, without a bound, and each costs twenty times as much to merge then.
What has no room here is fetched by an exchange like everything that was lost.
"""

from collections.abc import Sequence
from typing import Final

EARLY_MAX: Final = 64
EARLY_BYTES_MAX: Final = 65_536


class EarlyUpdates:
    """Updates by the writer and the entry that each begins at; the oldest leave first."""

    __slots__ = ("_bytes", "_kept")

    def __init__(self) -> None:
        self._kept: dict[tuple[int, int], tuple[bytes, int]] = {}
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._kept)

    def clients(self) -> Sequence[int]:
        """Return whose updates are kept, sorted."""
        return sorted({client for client, _ in self._kept})

    def keep(self, beginning: tuple[int, int], update: bytes, upto: int) -> None:
        """Keep an update until `take` asks for it."""
        if beginning in self._kept or len(update) > EARLY_BYTES_MAX:
            return
        self._kept[beginning] = (update, upto)
        self._bytes += len(update)
        while len(self._kept) > EARLY_MAX or self._bytes > EARLY_BYTES_MAX:
            oldest, _ = self._kept.pop(next(iter(self._kept)))
            self._bytes -= len(oldest)

    def take(self, client: int, upto: int) -> tuple[bytes, int] | None:
        """Return what that writer wrote next, with how far it goes; None if it is not here.

        What it wrote before is not needed any more.
        """
        for beginning in [kept for kept in self._kept if kept[0] == client and kept[1] < upto]:
            self._bytes -= len(self._kept.pop(beginning)[0])
        found = self._kept.pop((client, upto), None)
        if found is not None:
            self._bytes -= len(found[0])
        return found

    def clear(self) -> None:
        """Forget all of them."""
        self._kept.clear()
        self._bytes = 0
