"""Peer interface: asks and answers other nodes on behalf of history, and knows their state."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

from smg_node.core.errors import ErrorKind, SmgError

STORE: Final = "history.store"
"""What is asked of the node that holds a thread."""
UNWRITTEN: Final = "history.unwritten"
"""What is asked of a node that has turns on its disk."""
FORETOLD: Final = "history.foretold"
"""What is told to every node before a turn of a conversation waits on a disk."""
Answer: TypeAlias = Callable[[bytes, str], Awaitable[bytes]]
"""Answers another node's question: payload and the caller's name in, payload out."""


@dataclass(frozen=True, slots=True)
class PeerContact:
    """Time since another node's last own packet: seconds ago, infinity for never. `state`: alive,
    suspect or dead.
    """

    state: str
    s_ago: float


class Peers(Protocol):
    """The other nodes of the cluster."""

    async def ask(self, node: str, topic: str, payload: bytes, *, deadline_s: float) -> bytes:
        """Return another node's answer; SmgError says why there is none."""
        ...

    def answer(self, topic: str, reply: Answer) -> None:
        """Answer what other nodes ask about `topic`."""
        ...

    def gone(self) -> Mapping[str, int]:
        """Return the names of nodes that are dead or have left, and since when: Unix time in
        milliseconds.
        """
        ...

    def known(self) -> Mapping[str, str]:
        """Return the state of every other node that is known: alive, suspect, dead or left."""
        ...

    def heard(self) -> Mapping[str, PeerContact]:
        """Return the last contact of every other node that has not left."""
        ...

    def spooling(self) -> Mapping[str, str]:
        """Return which other nodes announce spooled turns, and their state."""
        ...

    def say_spooling(self, *, on: bool) -> None:
        """Announce to the others whether this node has spooled turns."""
        ...


class NoPeers:
    """Peers of a node without a cluster."""

    async def ask(self, node: str, topic: str, payload: bytes, *, deadline_s: float) -> bytes:
        """Refuse: there is no other node."""
        raise SmgError(
            ErrorKind.NOT_FOUND, f"there is no node {node[:64]!r}", code="member_not_found"
        )

    def answer(self, topic: str, reply: Answer) -> None:
        """Do nothing: no other node asks."""

    def gone(self) -> Mapping[str, int]:
        """Return none."""
        return {}

    def known(self) -> Mapping[str, str]:
        """Return none."""
        return {}

    def heard(self) -> Mapping[str, PeerContact]:
        """Return none."""
        return {}

    def spooling(self) -> Mapping[str, str]:
        """Return none."""
        return {}

    def say_spooling(self, *, on: bool) -> None:
        """Do nothing: there is no other node."""
