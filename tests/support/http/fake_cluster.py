"""A cluster of three for the HTTP surface, whose members do what a test wants."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from smg_node.core.errors import ErrorKind, SmgError, invalid
from smg_node.http.ports.node import ClusterCard, ClusterEvent, KeyringView, MemberRow


def member_row(name: str, state: str = "alive", **changes: Any) -> MemberRow:
    """Return a member that one hears of."""
    row = MemberRow(
        name=name,
        state=state,
        address="10.0.0.1:7946",
        boot=7,
        incarnation=0,
        rtt_ms=0.5,
        health=None,
        lag_ms=120,
        since_ms=1_700_000_000_000,
        meta={"version": "1.2.3"},
        me=False,
        announced=True,
        accuser="",
    )
    return replace(row, **changes)


CARD = ClusterCard(
    label="default",
    node="node-a",
    address="10.0.0.1:7946",
    boot=7,
    incarnation=0,
    security="encrypted",
    joined=True,
    isolated=False,
    drained=False,
    leaving=False,
    members={"alive": 2, "suspect": 0, "dead": 1, "left": 0},
    degraded=(),
    wire_version=1,
    digest="00ff",
    seeds=({"peer": "b:7946"}, {"peer": "nowhere:7946", "error": "no such host"}),
    keys=("aabbccdd",),
)


class FakeCluster:
    """Members a (this node), b and the dead c; remembers what it was asked for."""

    def __init__(self) -> None:
        self.state = CARD
        self.rows = {
            "node-a": member_row("node-a", me=True, rtt_ms=None, lag_ms=None, health=0),
            "b": member_row("b"),
            "c": member_row("c", "dead"),
        }
        self.calls: list[tuple[Any, ...]] = []
        self.told: list[ClusterEvent] = []
        self.more = asyncio.Event()
        self.watching = 0

    def card(self) -> ClusterCard:
        return self.state

    def members(self) -> Sequence[MemberRow]:
        return [self.rows[name] for name in sorted(self.rows)]

    def member(self, name: str) -> MemberRow:
        if name not in self.rows:
            raise SmgError(ErrorKind.NOT_FOUND, "nobody", where="name", code="member_not_found")
        return self.rows[name]

    def join(self, peers: Sequence[str]) -> None:
        if "nonsense" in peers:
            raise invalid("that is no address", "peers")
        self.calls.append(("join", list(peers)))

    def leave(self) -> None:
        self.calls.append(("leave",))

    async def set_aside(self, name: str, *, on: bool) -> MemberRow:
        row = self.member(name)
        if row.state == "dead":
            raise SmgError(ErrorKind.CONFLICT, f"{name} is dead", code="member_gone")
        return replace(row, meta={"draining": on})

    async def forget(self, name: str) -> Mapping[str, str]:
        if self.member(name).state != "dead":
            raise SmgError(ErrorKind.CONFLICT, f"{name} lives", code="member_not_gone")
        del self.rows[name]
        return {"b": "no answer", "node-a": "ok"}

    async def keyring(self, operation: str, key: str, *, force: bool) -> KeyringView:
        self.calls.append((operation, key, force))
        if key == "short":
            raise invalid("neither base64 nor hexadecimal", "key", "invalid_key")
        if operation == "remove" and not force:
            raise SmgError(ErrorKind.CONFLICT, "b did not answer", code="keyring_refused")
        return KeyringView("aabbccdd", {"aabbccdd": ["b", "node-a"]}, {"b": "ok", "node-a": "ok"})

    def tell(self, event: ClusterEvent) -> None:
        """Let something happen."""
        self.told.append(event)
        self.more.set()
        self.more = asyncio.Event()

    def events(self, after: int) -> Sequence[ClusterEvent]:
        return [event for event in self.told if event.id > after]

    async def watch(self, after: int) -> AsyncIterator[ClusterEvent]:
        self.watching += 1
        try:
            while True:
                more = self.more
                for event in self.events(after):
                    after = event.id
                    yield event
                await more.wait()
        finally:
            self.watching -= 1
