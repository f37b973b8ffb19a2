"""Journey search: finds what became of a request, in this node's journal and in all others'.

A request id does not tell which node served it, and a client that tried again elsewhere under the
same id has a journey on several. So all living members are asked at once, over the mesh, and what
they have is put together; a member that is silent costs two seconds and is named. With the node's
name, which every answer carries as a header, only that one is asked.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeAlias

import msgspec

from smg_node.cluster.membership.member_query import MemberQueries, query_member
from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.journey import Journey
from smg_node.http.ports.node import Explained, MemberRow
from smg_node.pipeline.observability.journey_log import SAME_ID_MAX, Journal, pack, unpack

EXPLAIN: Final = "node.explain"
ASK_S: Final = 2.0
_ASKED_AT_ONCE_MAX: Final = 64
"""So that a hundred nodes, all of them silent, take four seconds."""
_ID_CHARACTERS_MAX: Final = 256
_LIVING: Final = ("alive", "suspect")
_MISUNDERSTOOD: Final = "it says nothing that is understood here"

Siblings: TypeAlias = Callable[[str], Awaitable[Sequence[Journey]]]
"""Asks the other processes of this node for the journeys of a request."""
_Said: TypeAlias = tuple[Sequence[Journey], str]
"""What a member tells, and why that is nothing."""


class Explanations:
    """Finds journeys, here and elsewhere. `members` are all members; without a mesh this node is
    alone.

    `siblings` asks the other processes of this node, if there are any.
    """

    def __init__(
        self,
        node: str,
        journal: Journal,
        members: Callable[[], Sequence[MemberRow]],
        mesh: MemberQueries | None,
        siblings: Siblings | None = None,
    ) -> None:
        self._siblings = siblings
        self._node = node
        self._journal = journal
        self._members = members
        self._mesh = mesh
        if mesh is not None:
            mesh.answer(EXPLAIN, self._asked)

    async def explain(self, wanted: str, *, node: str = "") -> Explained:
        """Return every journey of that request; NOT_FOUND `request_not_found` if no node has any.

        `wanted` is the id of a request, or the one that its answer carries.
        """
        wanted = wanted[:_ID_CHARACTERS_MAX]
        rows = {row.name: row for row in self._members()}
        others = [name for name, row in rows.items() if row.state in _LIVING and not row.me]
        here = self._here if node in ("", self._node) else _nothing
        journeys, said = await asyncio.gather(
            here(wanted), self._ask([node] if node else others, wanted)
        )
        journeys += [journey for told, _ in said.values() for journey in told]
        silent = {name: why for name, (_, why) in said.items() if why}
        if not journeys:
            gone = [row for row in rows.values() if row.state not in _LIVING and not node]
            raise _unknown(wanted, silent | {row.name: f"it is {row.state}" for row in gone})
        journeys.sort(key=lambda journey: (-journey.began_ms, journey.node))
        return Explained(wanted, self._node, tuple(journeys[:SAME_ID_MAX]), silent)

    async def _here(self, wanted: str) -> list[Journey]:
        """Return the journeys this node has, all its processes together: newest first, and at most
        16.
        """
        journeys = list(self._journal.get(wanted))
        if self._siblings is not None:
            journeys += await self._siblings(wanted)
            journeys.sort(key=lambda journey: -journey.began_ms)
        return journeys[:SAME_ID_MAX]

    async def _ask(self, names: Sequence[str], wanted: str) -> dict[str, _Said]:
        turns = asyncio.Semaphore(_ASKED_AT_ONCE_MAX)

        async def ask(name: str) -> _Said:
            async with turns:
                return await self._ask_one(name, wanted)

        others = [name for name in sorted(names) if name != self._node]
        said = await asyncio.gather(*map(ask, others))
        return dict(zip(others, said, strict=True))

    async def _ask_one(self, name: str, wanted: str) -> _Said:
        if self._mesh is None:
            return (), "this node is alone"
        payload = wanted.encode("utf-8", "replace")
        try:
            told = await query_member(self._mesh, name, EXPLAIN, payload, deadline_s=ASK_S)
        except SmgError as error:
            return (), error.message.removeprefix(f"{name}: ")
        try:
            packed = msgspec.msgpack.decode(told, type=list[bytes])[:SAME_ID_MAX]
            return [unpack(one) for one in packed], ""
        except (msgspec.DecodeError, ValueError, RecursionError):
            return (), _MISUNDERSTOOD

    async def _asked(self, payload: bytes, caller: str) -> bytes:
        """Answer a peer that asks for a request."""
        wanted = payload[:_ID_CHARACTERS_MAX].decode("utf-8", "replace")
        return msgspec.msgpack.encode([pack(journey) for journey in await self._here(wanted)])


async def _nothing(wanted: str) -> list[Journey]:
    """Return the empty result of this node where only another one was asked for."""
    return []


def _unknown(wanted: str, silent: dict[str, str]) -> SmgError:
    told = [f"{name} cannot be asked: {why}" for name, why in sorted(silent.items())]
    return SmgError(
        ErrorKind.NOT_FOUND,
        "; ".join([f"no node that answers knows the request {wanted!r}", *told]),
        where="id",
        code="request_not_found",
    )
