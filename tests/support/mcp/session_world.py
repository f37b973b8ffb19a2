"""Processes of several nodes that share sessions with servers of tools: real pools and sealing, rows in one memory."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from smg_mesh.io.security.carried_secrets import CarriedSecrets
from smg_mesh.shared import SESSION_BYTES_MAX, SessionRow
from smg_node.cluster.definition_ports import DefinitionStore
from smg_node.cluster.mcp.session_records import ClusterSessions
from smg_node.mcp.limits import McpLimits
from smg_node.mcp.pool import ServerPool, server_pool
from smg_node.system_clock import SystemClock

KEY = bytes(range(36))


@dataclass
class SessionWorld:
    """What the nodes share: rows that all hear of at once, the names of those that live, a clock that may be put forward."""

    key: bytes = KEY
    rows: dict[str, SessionRow] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    writes: int = 0
    ahead_ms: int = 0
    clock: SystemClock = field(default_factory=SystemClock)

    def now_ms(self) -> int:
        return self.clock.now_ms() + self.ahead_ms

    # ── As `ToolSessions` ────────────────────────────────────────────────────

    def get(self, key: str) -> SessionRow | None:
        row = self.rows.get(key)
        return row if row is not None and row.until_ms >= self.now_ms() else None

    def put(self, row: SessionRow) -> SessionRow:
        assert len(row.content) <= SESSION_BYTES_MAX
        held = self.get(row.key)
        until_ms = max(self.now_ms() + row.life_ms, 0 if held is None else held.until_ms)
        self.writes += 1
        self.rows[row.key] = SessionRow(row.key, row.content, until_ms, row.life_ms)
        return self.rows[row.key]

    def remove(self, key: str) -> None:
        self.writes += 1
        self.rows.pop(key, None)

    # ── As shared state ──────────────────────────────────────────────────────

    @property
    def tool_sessions(self) -> "SessionWorld":
        return self

    @property
    def carried(self) -> CarriedSecrets:
        return CarriedSecrets(lambda: [self.key] if self.key else [])

    @property
    def providers(self) -> DefinitionStore:
        raise AssertionError("no definition is looked for")

    def open_secret(self, sealed: bytes) -> str | None:
        return None

    def living(self) -> Sequence[str]:
        return self.names

    def records(self, name: str, *, several: bool = False) -> ClusterSessions:
        """Return the records as a process of that node has them."""
        if name not in self.names:
            self.names.append(name)
        return ClusterSessions(f"{name}.7f3c", self, self.now_ms, several=several)

    @asynccontextmanager
    async def pool(self, name: str, limits: McpLimits | None = None) -> AsyncIterator[ServerPool]:
        """Yield the pool of a node's process."""
        records = self.records(name)
        limits = limits or McpLimits()
        async with server_pool(id_prefix=records.me, limits=limits, records=records) as pool:
            yield pool


@asynccontextmanager
async def sharing(
    *names: str, limits: McpLimits | None = None
) -> AsyncIterator[tuple[SessionWorld, list[ServerPool]]]:
    """Yield a world, and the pools of these nodes."""
    world = SessionWorld()
    async with AsyncExitStack() as stack:
        pools = [await stack.enter_async_context(world.pool(name, limits)) for name in names]
        yield world, pools
