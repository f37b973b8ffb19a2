"""Standalone node, without a mesh: a cluster of one, whose refusals say how to become more.

It keeps shared state on disk as mesh members do, for its own next start, and for the day it joins a
mesh.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Final, NoReturn

from smg_mesh.shared import Shared
from smg_node.cluster.membership.cluster_interface import SOCKET, ReadinessReasons
from smg_node.cluster.membership.errors import no_member
from smg_node.cluster.membership.shutdown import Shutdown
from smg_node.config.address import Address
from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.ports import Clock
from smg_node.http.ports.node import ClusterCard, ClusterEvent, KeyringView, MemberRow

ALONE: Final = "alone"
_TEACH: Final = (
    "this node runs alone: start it with --mesh-key FILE (`smg-admin cluster keyring generate` makes one),"
    " or with --insecure-mesh, and --join another node"
)


class StandaloneNode:
    """A cluster of this node only, and the service that describes it."""

    mesh: Final = None
    """There is none."""

    def __init__(self, name: str, farewell: Shutdown, clock: Clock, shared: Shared) -> None:
        self.desk = self
        self._shared = shared
        self._name = name
        self._farewell = farewell
        self._since_ms = clock.now_ms()
        self._meta: dict[str, str | int | bool] = {}

    # ── What the HTTP surface asks ───────────────────────────────────────────

    def card(self) -> ClusterCard:
        """Return a cluster of one."""
        return ClusterCard(
            label="",
            node=self._name,
            address="",
            boot=0,
            incarnation=0,
            security=ALONE,
            joined=False,
            isolated=False,
            drained=self._farewell.aside,
            leaving=self._farewell.leaving,
            members={"alive": 1, "suspect": 0, "dead": 0, "left": 0},
            degraded=(),
            wire_version=0,
            digest="",
            seeds=(),
            keys=(),
        )

    def members(self) -> Sequence[MemberRow]:
        """Return this node."""
        drained = {"draining": True} if self._farewell.aside else {}
        row = MemberRow(
            name=self._name,
            state="alive",
            address="",
            boot=0,
            incarnation=0,
            rtt_ms=None,
            health=0,
            lag_ms=None,
            since_ms=self._since_ms,
            meta={**self._meta, **drained},
            me=True,
            announced=True,
            accuser="",
        )
        return [row]

    def member(self, name: str) -> MemberRow:
        """Return this node; NOT_FOUND for any other name."""
        if name != self._name:
            raise no_member(name)
        return self.members()[0]

    def join(self, peers: Sequence[str]) -> None:
        """Refuse: without keys no node can join."""
        self._refuse()

    def leave(self) -> None:
        """Begin to drain, and stop."""
        self._farewell.leave("asked to leave")

    async def set_aside(self, name: str, *, on: bool) -> MemberRow:
        """Set this node aside, or take it back."""
        self.member(name)
        self._farewell.set_aside(on=on)
        return self.member(name)

    async def forget(self, name: str) -> Mapping[str, str]:
        """Refuse: there are no dead members."""
        self.member(name)
        raise SmgError(ErrorKind.CONFLICT, f"{name} is this node", code="member_not_gone")

    async def keyring(self, operation: str, key: str, *, force: bool) -> KeyringView:
        """Refuse: there is no keyring."""
        self._refuse()

    def events(self, after: int) -> Sequence[ClusterEvent]:
        """Return nothing: a standalone node has no events."""
        return ()

    async def watch(self, after: int) -> AsyncIterator[ClusterEvent]:
        """Wait for ever: no event will come."""
        await asyncio.Event().wait()
        yield ClusterEvent(0, 0, "", "", {})

    def _refuse(self) -> NoReturn:
        raise SmgError(ErrorKind.CONFLICT, _TEACH, code="no_mesh")

    # ── What the wiring does ─────────────────────────────────────────────────

    def doubts(self) -> ReadinessReasons:
        """Return none."""
        return ReadinessReasons()

    async def start(self) -> None:
        """Read the state that an earlier run kept; no port is opened."""
        await self._shared.open()

    async def run(self) -> None:
        """Write changes down until cancelled."""
        await self._shared.run()

    def publish(self, http: Address, metrics: Address | None, operators: str = "") -> None:
        """Keep the addresses for the one row there is."""
        self._meta = {"http": str(http), **({"metrics": str(metrics)} if metrics else {})}
        if operators:
            self._meta["admin"] = SOCKET if operators.startswith(SOCKET) else operators

    def say_spooling(self, *, on: bool) -> None:
        """Do nothing: there are no others."""

    def say_leaving(self) -> None:
        """Do nothing: there are no others."""

    async def say_goodbye(self) -> None:
        """Do nothing: there are no others."""

    async def stop(self) -> None:
        """Write down what is not on disk yet."""
        await self._shared.close()
