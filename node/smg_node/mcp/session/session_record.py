"""Session record: what processes of all nodes know of one session of the handshake era, and the port to such records.

A session id belongs to the server and to whoever has the credential, not to a connection: any process that has both
goes on with it. Pure.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import msgspec


class SessionRecord(msgspec.Struct, frozen=True, array_like=True):
    """One session. `user` is the process that used it last; `holder` has its stream by GET until `held_until_ms`.

    `lists`: the server says when its list of tools changes. `changes` counts how often it did. `scattered`: replicas of
    the server know only their own sessions. Processes are named `NODE.LIFE`.
    """

    id: str
    revision: str
    user: str
    lists: bool = False
    scattered: bool = False
    holder: str = ""
    held_until_ms: int = 0
    changes: int = 0


class KeptRecord(NamedTuple):
    """A record, and when it is over by the wall clock."""

    record: SessionRecord
    until_ms: int


class SessionRecords(Protocol):
    """Port to the records of all processes. What one writes counts in it at once, and in the others a moment later."""

    me: str
    """This process."""

    def now_ms(self) -> int:
        """Return the wall clock."""
        ...

    def key(self, parts: Sequence[str | bool]) -> str:
        """Return the key of a session, which says nothing of its parts to others."""
        ...

    def get(self, key: str) -> KeptRecord | None:
        """Return the record that counts, None if there is none, it is over, or it cannot be read here."""
        ...

    def put(self, key: str, record: SessionRecord, life_ms: int) -> bool:
        """Write a record, which is over after `life_ms`, but not before the one in its place; False if it cannot travel."""
        ...

    def remove(self, key: str) -> None:
        """Take a record away."""
        ...

    def lives(self, process: str) -> bool:
        """Whether the node of a process is a living member."""
        ...

    def has_others(self) -> bool:
        """Whether there are other processes that may go on with a session."""
        ...
