"""Copied caches of a data process: rows of prompt caches, sent by its control process and to it.

What a process writes counts in it at once, and elsewhere a moment later. Rows are kept here only until they are followed.
"""

from collections.abc import Callable, Sequence
from typing import Final

from smg_mesh.shared import CacheRow
from smg_node.processes.ipc.data_uplink import Uplink
from smg_node.processes.replication.state_messages import CACHE_ROWS, CacheRows, read, write

HELD_MAX: Final = 100_000
"""Rows that wait for a follower; of more the first ones go."""


class CopiedCaches:
    """Rows of prompt caches; see `cluster.providers.cache_sharing.CacheRows`."""

    def __init__(self, uplink: Uplink) -> None:
        self._uplink: Final = uplink
        self._held: dict[tuple[int, int], CacheRow] = {}
        self._heard: list[Callable[[Sequence[CacheRow]], None]] = []
        uplink.on(CACHE_ROWS, self._take)

    def put(self, row: CacheRow) -> None:
        """Let all know a row, for its life from now on."""
        self._uplink.tell(CACHE_ROWS, write(CacheRows((row,))))

    def remove(self, beginning: int, scope: int) -> None:
        """Let none know it any more."""
        self.put(CacheRow(beginning, scope))

    def follow(self, heard: Callable[[Sequence[CacheRow]], None]) -> None:
        """Tell `heard` all rows that came, and then those that come."""
        rows, self._held = list(self._held.values()), {}
        if rows:
            heard(rows)
        self._heard.append(heard)

    def _take(self, content: bytes) -> None:
        rows = read(content, CacheRows).rows
        for heard in self._heard:
            heard(rows)
        if self._heard:
            return
        for row in rows:
            self._held.pop((row.beginning, row.scope), None)
            if row.life_ms:
                self._held[row.beginning, row.scope] = row
        while len(self._held) > HELD_MAX:
            del self._held[next(iter(self._held))]
