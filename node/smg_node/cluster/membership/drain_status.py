"""Drain status of a member, served by any node: what is open there, and its duties for others.

It is queried from the member itself, not gossiped: it changes with every request, and only an
operator who waits for the drain reads it. A member that is told to stop goes on to answer until it
leaves the mesh, so that the waiting operator sees the end.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import msgspec

from smg_node.cluster.membership.errors import no_member
from smg_node.cluster.membership.member_query import MemberQueries, query_member
from smg_node.cluster.membership.shutdown import Shutdown
from smg_node.core.errors import ErrorKind, SmgError
from smg_node.http.ports.drain import DrainView, Duties, OpenWork, Stage
from smg_node.http.ports.node import MemberRow

DRAIN: Final = "node.drain"
ASK_S: Final = 2.0
"""Asked twice a second: who is silent for longer is asked again."""


class Draining:
    """Reports this node's drain status, and queries the others'. `members` are all members; without
    a mesh this node is alone.

    `work` reads what is open in all of this node's processes, `duties` what it does for the others.
    """

    def __init__(
        self,
        name: str,
        members: Callable[[], Sequence[MemberRow]],
        mesh: MemberQueries | None,
        farewell: Shutdown,
        *,
        work: Callable[[], Awaitable[OpenWork]],
        duties: Callable[[], Duties],
    ) -> None:
        self._name = name
        self._members = members
        self._mesh = mesh
        self._farewell = farewell
        self._work = work
        self._duties = duties
        if mesh is not None:
            mesh.answer(DRAIN, self._asked)

    async def draining(self, name: str) -> DrainView:
        """See `DrainService`."""
        row = next((row for row in self._members() if row.name == name), None)
        if row is None:
            raise no_member(name)
        if row.me or self._mesh is None:
            return msgspec.structs.replace(await self.here(), boot=row.boot)
        if row.state == "left":
            return DrainView(name, row.boot, "left")
        if row.state == "dead":
            return DrainView(name, row.boot, "dead")
        answer = await query_member(self._mesh, name, DRAIN, deadline_s=ASK_S)
        try:
            return msgspec.structs.replace(
                msgspec.msgpack.decode(answer, type=DrainView), name=name, boot=row.boot
            )
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise SmgError(
                ErrorKind.UPSTREAM_FAILED,
                f"{name} says nothing that is understood here",
                code="member_refused",
            ) from error

    async def here(self) -> DrainView:
        """Return this node's own status."""
        work, server = await self._work(), self._farewell.server
        return DrainView(
            name=self._name,
            boot=0,
            stage=self._stage(work),
            work=work,
            duties=self._duties(),
            patience_s=0.0 if server is None else server.farewell_times().patience_s,
        )

    def _stage(self, work: OpenWork) -> Stage:
        if self._farewell.leaving:
            return "leaving"
        if not self._farewell.aside:
            return "serving"
        if work.taking:
            return "settling"
        return "draining" if work.left or work.silent else "drained"

    async def _asked(self, payload: bytes, caller: str) -> bytes:
        """Answer a peer's query."""
        return msgspec.msgpack.encode(await self.here())
