"""Cluster session records: sessions with servers of tools as all processes of all nodes know them, sealed.

    row of the shared state: digest of server, credential, tenant and thread → the record, sealed by the cluster's key

Neither says anything to who has not the key. A session whose id is too long for a row is this process's alone.
"""

from collections.abc import Callable, Sequence
from typing import Final, Protocol

import msgspec

from smg_mesh.shared import SESSION_BYTES_MAX, SessionRow, StateError
from smg_node.cluster.definition_ports import DefinitionState
from smg_node.mcp.session.session_record import KeptRecord, SessionRecord

_KEY_BYTES: Final = 16
_OPENED_MAX: Final = 2_000
"""Records that are kept open, so that none is opened with every use."""
_decode: Final = msgspec.json.Decoder(SessionRecord).decode


class SessionRows(Protocol):
    """Port to the rows of the shared state; `smg_mesh.shared.ToolSessions` fits."""

    def get(self, key: str) -> SessionRow | None:
        """Return the row that counts."""
        ...

    def put(self, row: SessionRow) -> SessionRow:
        """Write a row, and return it with its end; ValueError for one that cannot travel."""
        ...

    def remove(self, key: str) -> None:
        """Take a row away."""
        ...


class Sealer(Protocol):
    """Port to what seals and opens with the cluster's key; `smg_mesh.shared.CarriedSecrets` fits."""

    def seal(self, secret: str) -> bytes:
        """Return a text sealed; StateError where the keys are not known yet."""
        ...

    def open_secret(self, sealed: bytes) -> str | None:
        """Return the text, None for what cannot be opened."""
        ...

    def digest(self, text: bytes, size_bytes: int) -> bytes:
        """Return a digest that is the same on all nodes."""
        ...


class SessionState(DefinitionState, Protocol):
    """Port to the shared state of servers of tools, and of sessions with them."""

    @property
    def tool_sessions(self) -> SessionRows:
        """The rows."""
        ...

    @property
    def carried(self) -> Sealer:
        """What seals them."""
        ...

    def living(self) -> Sequence[str]:
        """Return the names of the living members, this node too."""
        ...


class ClusterSessions:
    """Records as one process has them; see `SessionRecords`. `several`: its node has other processes, too."""

    def __init__(
        self, me: str, state: SessionState, now_ms: Callable[[], int], *, several: bool = False
    ) -> None:
        self.me = me
        self.now_ms = now_ms
        self._rows = state.tool_sessions
        self._sealer = state.carried
        self._living = state.living
        self._several = several
        self._opened: dict[str, tuple[bytes, SessionRecord]] = {}

    def key(self, parts: Sequence[str | bool]) -> str:
        """See `SessionRecords`."""
        try:
            return self._sealer.digest(msgspec.msgpack.encode(parts), _KEY_BYTES).hex()
        except StateError:
            # Without the cluster's keys nothing can be shared yet, and under this key nothing ever is.
            return ""

    def get(self, key: str) -> KeptRecord | None:
        """See `SessionRecords`."""
        row = self._rows.get(key) if key else None
        if row is None:
            return None
        known = self._opened.get(key)
        if known is not None and known[0] == row.content:
            return KeptRecord(known[1], row.until_ms)
        record = self._open(row.content)
        if record is None:
            return None
        self._note(key, row.content, record)
        return KeptRecord(record, row.until_ms)

    def put(self, key: str, record: SessionRecord, life_ms: int) -> bool:
        """See `SessionRecords`."""
        if not key:
            return False
        try:
            content = self._sealer.seal(msgspec.json.encode(record).decode())
            if len(content) > SESSION_BYTES_MAX:
                return False
            self._rows.put(SessionRow(key, content, life_ms=max(1, life_ms)))
        except (ValueError, StateError):
            return False
        self._note(key, content, record)
        return True

    def remove(self, key: str) -> None:
        """See `SessionRecords`."""
        self._opened.pop(key, None)
        if key:
            self._rows.remove(key)

    def lives(self, process: str) -> bool:
        """See `SessionRecords`."""
        return process.rpartition(".")[0] in self._living()

    def has_others(self) -> bool:
        """See `SessionRecords`."""
        return self._several or len(self._living()) > 1

    def _open(self, sealed: bytes) -> SessionRecord | None:
        try:
            text = self._sealer.open_secret(sealed)
            return None if text is None else _decode(text)
        except (msgspec.DecodeError, RecursionError, StateError):
            return None

    def _note(self, key: str, content: bytes, record: SessionRecord) -> None:
        self._opened.pop(key, None)
        while len(self._opened) >= _OPENED_MAX:
            del self._opened[next(iter(self._opened))]
        self._opened[key] = (content, record)
