"""Mesh port: the part of the mesh that this room uses; `smg_mesh.mesh.Mesh` has all of it, tests
less.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

if TYPE_CHECKING:
    # Not imported by a node alone, which has no transport for peers.
    from smg_mesh.mesh import KeyringReport, MemberView, MeshEvent, MeshStatus

KeyringOperation: TypeAlias = Literal["list", "install", "use", "remove"]
Answer: TypeAlias = Callable[[bytes, str], Awaitable[bytes]]
"""Answers a peer's question: payload and the caller's name in, payload out."""


class MeshPort(Protocol):
    """One member of the mesh: this node."""

    async def start(self) -> None:
        """Bind both ports; MeshError if that cannot be."""
        ...

    async def run(self) -> None:
        """Take part until cancelled, or until it left."""
        ...

    async def leave(self) -> None:
        """Announce the leave, at most a second, and stop."""
        ...

    async def stop(self) -> None:
        """Close everything."""
        ...

    @property
    def superseded(self) -> asyncio.Event:
        """Event, set once another process is known to live that keeps this name."""
        ...

    def join(self, peers: Sequence[str]) -> None:
        """Add seeds, tried without end; ValueError for what is none."""
        ...

    def members(self) -> "Sequence[MemberView]":
        """Return every row, this node's own too, sorted by name."""
        ...

    def status(self) -> "MeshStatus":
        """Return the mesh as this node sees it."""
        ...

    def ready(self) -> str | None:
        """Return why this node is not ready, or None."""
        ...

    def events(self, after: int = 0) -> "Sequence[MeshEvent]":
        """Return the events kept with a larger id."""
        ...

    def watch(self, after: int = 0) -> "AsyncIterator[MeshEvent]":
        """Yield the events with a larger id as they come."""
        ...

    def counters(self) -> Mapping[tuple[str, str], int]:
        """Return the counters, by name and detail."""
        ...

    def set_meta(self, **values: str | int | bool) -> None:
        """Set these fields of the metadata that this node gossips."""
        ...

    async def ask(self, name: str, topic: str, payload: bytes, *, deadline_s: float = 5.0) -> bytes:
        """Ask a member; AskError if it refuses or does not answer."""
        ...

    def answer(self, topic: str, reply: Answer) -> None:
        """Register the answerer of members' questions about `topic`."""
        ...

    def forget(self, name: str) -> None:
        """Drop a row; LookupError for an unknown name, ValueError for a member that is not gone."""
        ...

    async def keyring(
        self, operation: KeyringOperation, key: str = "", *, force: bool = False
    ) -> "KeyringReport":
        """List or change the keyring everywhere; MeshError if not all took part and not `force`."""
        ...
