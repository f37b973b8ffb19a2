"""A mesh for the node's own parts: three members, and whatever a test lets happen to them."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from smg_mesh.mesh import KeyringReport, MemberView, MeshEvent, MeshStatus, SeedView

Reply = Callable[[bytes, str], Awaitable[bytes]]


def member_view(name: str, state: Any = "alive", **changes: Any) -> MemberView:
    """Return a row of the table."""
    view = MemberView(
        name=name,
        state=state,
        address="10.0.0.1:7946",
        boot=7,
        incarnation=1,
        rtt_ms=0.5,
        health=None,
        heard_ms_ago=120,
        since_ms=1_700_000_000_000,
        meta={"version": "1.2.3"},
        me=False,
        announced=True,
        accuser="",
    )
    return replace(view, **changes)


STATUS = MeshStatus(
    label="blue",
    name="a",
    boot=7,
    incarnation=1,
    address="10.0.0.1:7946",
    members={"alive": 2, "dead": 1},
    joined=True,
    isolated=False,
    closed=False,
    degraded=(),
    encrypted=True,
    wire_version=1,
    digest="00ff",
    health=2,
    seeds=(
        SeedView(seed="b:7946", addresses=("10.0.0.2:7946",), error="", ourselves=False),
        SeedView(seed="nowhere", addresses=(), error="no such host", ourselves=False),
    ),
    keys=("aabbccdd",),
)


class FakeMesh:
    """Members a (this node), b and the dead c. `wrong` is raised by whatever can fail."""

    def __init__(self) -> None:
        self.state = STATUS
        self.rows = [
            member_view("a", me=True, rtt_ms=None, heard_ms_ago=None, health=2),
            member_view("b"),
            member_view("c", "dead"),
        ]
        self.superseded = asyncio.Event()
        self.why_not_ready: str | None = None
        self.wrong: dict[str, Exception] = {}
        self.calls: list[tuple[Any, ...]] = []
        self.replies: dict[str, Reply] = {}
        self.meta: dict[str, str | int | bool] = {}
        self.happened: list[MeshEvent] = []
        self.counted: dict[tuple[str, str], int] = {}
        self.report: KeyringReport | None = None

    def _do(self, *call: Any) -> None:
        self.calls.append(call)
        if call[0] in self.wrong:
            raise self.wrong[call[0]]

    async def start(self) -> None:
        self._do("start")

    async def run(self) -> None:
        self._do("run")
        await asyncio.Event().wait()

    async def leave(self) -> None:
        self._do("leave")

    async def stop(self) -> None:
        self._do("stop")

    def join(self, peers: Sequence[str]) -> None:
        self._do("join", *peers)

    def members(self) -> Sequence[MemberView]:
        return self.rows

    def status(self) -> MeshStatus:
        return self.state

    def ready(self) -> str | None:
        return self.why_not_ready

    def happen(self, kind: Any, name: str = "b") -> None:
        """Let something happen."""
        number = len(self.happened) + 1
        self.happened.append(MeshEvent(id=number, time_ms=number, kind=kind, name=name, detail={}))

    def events(self, after: int = 0) -> Sequence[MeshEvent]:
        return [event for event in self.happened if event.id > after]

    async def watch(self, after: int = 0) -> AsyncIterator[MeshEvent]:
        for event in self.events(after):
            yield event

    def counters(self) -> Mapping[tuple[str, str], int]:
        return self.counted

    def set_meta(self, **values: str | int | bool) -> None:
        self.meta.update(values)
        mine = self.rows[0]
        self.rows[0] = replace(mine, meta={**mine.meta, **values})

    async def ask(self, name: str, topic: str, payload: bytes, *, deadline_s: float = 5.0) -> bytes:
        self._do("ask", name, topic, payload)
        return b""

    def answer(self, topic: str, reply: Reply) -> None:
        self.replies[topic] = reply

    def forget(self, name: str) -> None:
        self._do("forget", name)

    async def keyring(self, operation: Any, key: str = "", *, force: bool = False) -> KeyringReport:
        self._do("keyring", operation, key, force)
        assert self.report is not None
        return self.report
