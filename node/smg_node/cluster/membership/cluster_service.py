"""Cluster service: answers the HTTP surface about members and events, applies operators' changes.

What concerns one member is asked of that member, over the mesh: each member drains itself, and all
see it in the metadata it gossips. What concerns all is asked of all living members.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from smg_mesh.mesh import AskError, MemberView, MeshError, MeshEvent
from smg_node.cluster.membership.errors import no_member
from smg_node.cluster.membership.member_query import query_member
from smg_node.cluster.membership.mesh_port import KeyringOperation, MeshPort
from smg_node.cluster.membership.shutdown import Shutdown
from smg_node.core.errors import ErrorKind, SmgError, invalid
from smg_node.http.ports.node import ClusterCard, ClusterEvent, KeyringView, MemberRow

ASIDE: Final = "node.aside"
FORGET: Final = "node.forget"
DRAINING: Final = "draining"
LEAVING: Final = "leaving"
_ON: Final = b"on"
_OFF: Final = b"off"
_ASKED_AT_ONCE_MAX: Final = 16
_LIVING: Final = ("alive", "suspect")
_OPERATIONS: Final[Mapping[str, KeyringOperation]] = {
    "list": "list",
    "install": "install",
    "use": "use",
    "remove": "remove",
}

_log = logging.getLogger("smg_node.cluster")


class ClusterService:
    """This node's view of the cluster, and an operator's actions on it."""

    def __init__(self, mesh: MeshPort, farewell: Shutdown) -> None:
        self._mesh = mesh
        self._farewell = farewell
        mesh.answer(ASIDE, self._aside_asked)
        mesh.answer(FORGET, self._forget_asked)

    # ── Seeing ───────────────────────────────────────────────────────────────

    def card(self) -> ClusterCard:
        """Return the cluster as this node sees it."""
        status = self._mesh.status()
        return ClusterCard(
            label=status.label,
            node=status.name,
            address=status.address,
            boot=status.boot,
            incarnation=status.incarnation,
            security="encrypted" if status.encrypted else "insecure",
            joined=status.joined,
            isolated=status.isolated,
            drained=self._farewell.aside,
            leaving=self._farewell.leaving,
            members={state: status.members.get(state, 0) for state in (*_LIVING, "dead", "left")},
            degraded=status.degraded,
            wire_version=status.wire_version,
            digest=status.digest,
            seeds=[
                {"peer": seed.seed, **({"error": seed.error} if seed.error else {})}
                for seed in status.seeds
            ],
            keys=status.keys,
        )

    def members(self) -> Sequence[MemberRow]:
        """Return every member, sorted by name."""
        return sorted(map(_row, self._mesh.members()), key=lambda row: row.name)

    def member(self, name: str) -> MemberRow:
        """Return one member; NOT_FOUND `member_not_found` otherwise."""
        for view in self._mesh.members():
            if view.name == name:
                return _row(view)
        raise no_member(name)

    def events(self, after: int) -> Sequence[ClusterEvent]:
        """Return the events with a larger id; all of them where `after` is of an earlier life."""
        return [_event(event) for event in self._mesh.events(self._in_this_life(after))]

    async def watch(self, after: int) -> AsyncIterator[ClusterEvent]:
        """Yield the events with a larger id, and every later one as it happens."""
        async for event in self._mesh.watch(self._in_this_life(after)):
            yield _event(event)

    def _in_this_life(self, after: int) -> int:
        """`after`, or 0 where no event of this life can have that id."""
        return after if after == 0 or self._mesh.events(after - 1) else 0

    # ── Changing ─────────────────────────────────────────────────────────────

    def join(self, peers: Sequence[str]) -> None:
        """Try to find these nodes from now on, without end; INVALID_REQUEST for what cannot be an
        address.
        """
        try:
            self._mesh.join(peers)
        except ValueError as error:
            raise invalid(str(error), "peers") from error

    def leave(self) -> None:
        """Begin to drain, leave, and stop; returns at once."""
        self._farewell.leave("asked to leave")

    async def set_aside(self, name: str, *, on: bool) -> MemberRow:
        """Let that member take no new work, or take it again; return its own report afterwards."""
        row = self.member(name)
        if row.me:
            self._set_aside(on=on)
            return self.member(name)
        if row.state not in _LIVING:
            gone = "has left the cluster" if row.state == "left" else "is dead"
            raise SmgError(ErrorKind.CONFLICT, f"{name} {gone}", where="name", code="member_gone")
        await query_member(self._mesh, name, ASIDE, _ON if on else _OFF)
        # Its own word of this is on its way here by gossip.
        return replace(row, meta={**row.meta, DRAINING: on})

    def _set_aside(self, *, on: bool) -> None:
        self._farewell.set_aside(on=on)
        self._mesh.set_meta(**{DRAINING: on})

    async def forget(self, name: str) -> Mapping[str, str]:
        """Drop a gone member's row on every living node; return member to `ok` or why not."""
        row = self.member(name)
        if row.state in _LIVING:
            raise SmgError(
                ErrorKind.CONFLICT,
                f"{name} is {row.state}; only the dead and those who left are forgotten",
                where="name",
                code="member_not_gone",
            )
        living = [view for view in self._mesh.members() if view.state in _LIVING]
        others = [view.name for view in living if not view.me]
        turns = asyncio.Semaphore(_ASKED_AT_ONCE_MAX)

        async def tell(other: str) -> str:
            async with turns:
                try:
                    await query_member(self._mesh, other, FORGET, name.encode())
                except SmgError as error:
                    return error.message
            return "ok"

        # The others first: a node that still has the row would send it to this node again.
        said = await asyncio.gather(*map(tell, others))
        mine = {view.name: self._forget(name) for view in living if view.me}
        return dict(sorted({**dict(zip(others, said, strict=True)), **mine}.items()))

    def _forget(self, name: str) -> str:
        try:
            self._mesh.forget(name)
        except LookupError:
            return "ok"
        except ValueError as error:
            return str(error)
        _log.info("member %s is forgotten", name)
        return "ok"

    async def keyring(self, operation: str, key: str, *, force: bool) -> KeyringView:
        """List the keyring of every member, or change it everywhere."""
        try:
            report = await self._mesh.keyring(_OPERATIONS[operation], key, force=force)
        except MeshError as error:
            if isinstance(error.__cause__, ValueError):
                raise invalid(str(error), "key", "invalid_key") from error
            raise SmgError(ErrorKind.CONFLICT, str(error), code="keyring_refused") from error
        return KeyringView(
            primary=report.primary,
            keys={key: list(holders) for key, holders in report.keys.items()},
            members=dict(report.members),
        )

    # ── Between members ──────────────────────────────────────────────────────

    async def _aside_asked(self, payload: bytes, caller: str) -> bytes:
        """Answer a peer whose operator drains or undrains this node."""
        if payload not in (_ON, _OFF):
            raise AskError("invalid", "it says neither on nor off")
        _log.info("%s asks to %s this node", caller, "drain" if payload == _ON else "undrain")
        try:
            self._set_aside(on=payload == _ON)
        except SmgError as error:
            raise AskError(error.code, error.message) from error
        return b""

    async def _forget_asked(self, payload: bytes, caller: str) -> bytes:
        """Answer a peer whose operator wants a gone member forgotten."""
        name = payload.decode("utf-8", "replace")
        _log.info("%s asks to forget %.64r", caller, name)
        said = self._forget(name)
        if said != "ok":
            raise AskError("member_not_gone", said)
        return b""


def _row(view: MemberView) -> MemberRow:
    return MemberRow(
        name=view.name,
        state=view.state,
        address=view.address,
        boot=view.boot,
        incarnation=view.incarnation,
        rtt_ms=view.rtt_ms,
        health=view.health,
        lag_ms=view.heard_ms_ago,
        since_ms=view.since_ms,
        meta=view.meta,
        me=view.me,
        announced=view.announced,
        accuser=view.accuser,
    )


def _event(event: MeshEvent) -> ClusterEvent:
    return ClusterEvent(
        id=event.id, time_ms=event.time_ms, kind=event.kind, name=event.name, detail=event.detail
    )
