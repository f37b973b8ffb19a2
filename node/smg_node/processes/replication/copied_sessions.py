"""Copied sessions of a data process: rows of tool sessions, sent by its control process and to it.

What a process writes counts in it at once, and elsewhere a moment later. What the control process says counts whenever it
comes: it has heard all others, and writes of one process reach it in order.
"""

from collections.abc import Callable
from typing import Final

import msgspec

from smg_mesh.shared import SessionRow
from smg_node.processes.ipc.data_uplink import Uplink
from smg_node.processes.replication.state_messages import SESSION_ROWS, SessionRows, read, write

HELD_MAX: Final = 20_000
"""As many as the whole cluster shares; of more those go that were written first."""


class CopiedSessions:
    """Rows of tool sessions; see `mcp.shared.session_rows.SessionRows`."""

    def __init__(self, uplink: Uplink, now_ms: Callable[[], int]) -> None:
        self._uplink: Final = uplink
        self._now_ms: Final = now_ms
        self._held: dict[str, SessionRow] = {}
        uplink.on(SESSION_ROWS, self._take)

    def __len__(self) -> int:
        """How many rows are held."""
        return len(self._held)

    def get(self, key: str) -> SessionRow | None:
        """Return the row that counts, None if there is none or it is over."""
        row = self._held.get(key)
        if row is None:
            return None
        if row.until_ms < self._now_ms():
            del self._held[key]
            return None
        return row

    def put(self, row: SessionRow) -> SessionRow:
        """Let all know a row for its life from now on, and return it with its end."""
        held = self.get(row.key)
        until_ms = max(self._now_ms() + row.life_ms, 0 if held is None else held.until_ms)
        told = msgspec.structs.replace(row, until_ms=until_ms)
        self._keep(told)
        self._uplink.tell(SESSION_ROWS, write(SessionRows((row,))))
        return told

    def remove(self, key: str) -> None:
        """Let none know it any more."""
        if self._held.pop(key, None) is not None:
            self._uplink.tell(SESSION_ROWS, write(SessionRows((SessionRow(key),))))

    def _take(self, content: bytes) -> None:
        for row in read(content, SessionRows).rows:
            if row.content:
                self._keep(row)
            else:
                self._held.pop(row.key, None)

    def _keep(self, row: SessionRow) -> None:
        self._held.pop(row.key, None)
        self._held[row.key] = row
        while len(self._held) > HELD_MAX:
            del self._held[next(iter(self._held))]
