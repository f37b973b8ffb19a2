"""Records of one session in the memory of a test, as each process has them, with a clock that a test moves."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from smg_node.mcp.revisions import NEWEST_HANDSHAKE
from smg_node.mcp.session.session import RequestIds, Session
from smg_node.mcp.session.session_record import KeptRecord, SessionRecord
from smg_node.mcp.session.shared_session import SharedSession

IDLE_MS: Final = 300_000


@dataclass
class Records:
    """Records that all processes of a test have."""

    me: str
    world: "RecordWorld"

    def now_ms(self) -> int:
        return self.world.now_ms

    def key(self, parts: Sequence[str | bool]) -> str:
        return "/".join(map(str, parts))

    def get(self, key: str) -> KeptRecord | None:
        kept = self.world.kept.get(key)
        return kept if kept is not None and kept.until_ms > self.world.now_ms else None

    def put(self, key: str, record: SessionRecord, life_ms: int) -> bool:
        held = self.get(key)
        until_ms = max(self.world.now_ms + life_ms, 0 if held is None else held.until_ms)
        self.world.kept[key] = KeptRecord(record, until_ms)
        self.world.writes += 1
        return True

    def remove(self, key: str) -> None:
        self.world.kept.pop(key, None)

    def lives(self, process: str) -> bool:
        return process in self.world.alive

    def has_others(self) -> bool:
        return len(self.world.alive) > 1


@dataclass
class RecordWorld:
    """What processes a and b share, or as many as a test wants."""

    now_ms: int = 1_000_000
    kept: dict[str, KeptRecord] = field(default_factory=dict)
    alive: set[str] = field(default_factory=lambda: {"a", "b"})
    writes: int = 0

    def shared(self, me: str) -> SharedSession:
        return SharedSession(Records(me, self), "k", IDLE_MS)

    @property
    def record(self) -> SessionRecord:
        return self.kept["k"].record


def opened(id_: str) -> Session:
    session = Session(NEWEST_HANDSHAKE, RequestIds("a.1"), by_http=True)
    session.session_id = id_
    session.known = True
    return session
