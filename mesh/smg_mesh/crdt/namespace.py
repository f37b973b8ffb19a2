"""Namespace: the one way to read and write replicated state: a map of
keys to bytes, whatever keeps it.

Writing never waits: a write counts here at once, on every node that can be reached half a second
later, and everywhere once a partition has healed. Between two writes of one key the one with the
larger (hybrid time, owner) counts. Two writes that did not know of each other are a conflict: the
larger one counts, the other one is shown until some node writes again having seen both.
"""

from collections.abc import Callable, Sequence
from typing import Final, Literal, Protocol, TypeAlias

from smg_mesh.crdt.entry import Held

KEY_BYTES_MAX: Final = 256
VALUE_BYTES_MAX: Final = 16_384
"""A key is one limit, one alias, one worker: small things, so that writes seldom meet."""

Heard: TypeAlias = Callable[[Sequence[str]], None]
"""Hears of keys whose winner changed, sorted, after the change. May read and must not write."""

StateReason: TypeAlias = Literal["full", "too_large", "stale", "closed"]


class StateError(Exception):
    """A write that was refused; nothing has changed. `reason` is a word for programs."""

    def __init__(self, reason: StateReason, message: str, *, current: Held | None = None) -> None:
        super().__init__(message)
        self.reason: Final = reason
        self.current: Final = current
        """With "stale": what is there instead, None if nothing is."""


class Namespace(Protocol):
    """Keys of one kind: `settings`, `workers`, `audit`."""

    @property
    def name(self) -> str:
        """Name of this kind of keys."""
        ...

    def get(self, key: str) -> Held | None:
        """Return the winner, None if there is none or it is a removal."""
        ...

    def latest(self, key: str) -> Held | None:
        """Return the winner even if it is a removal; None if there never
        was a write, or it is forgotten.
        """
        ...

    def items(self, prefix: str = "") -> Sequence[Held]:
        """Return the live winners whose keys begin so, sorted by key."""
        ...

    def conflicts(self, key: str) -> Sequence[Held]:
        """Return what is concurrent with the winner, or comes from the future; newest first."""
        ...

    def put(self, key: str, value: bytes, *, seen: int | None = None) -> Held:
        """Write, and return what counts now.

        `seen` is the version that the writer knows (0: nothing is there) and StateError "stale" follows
        if another one is; None writes over whatever is there. StateError "full" if the document has
        no room, "too_large" for a key or value over its limit.
        """
        ...

    def remove(self, key: str, *, seen: int | None = None) -> Held:
        """Write a removal, also of a key that is not there: it beats every earlier write still on its way."""
        ...

    def retire(self, key: str) -> None:
        """Take this node's own entry away without a trace: for logs, whose keys are never used again."""
        ...

    def watch(self, heard: Heard) -> None:
        """Tell `heard` of every change from now on, of this node and of others."""
        ...

    def digest(self) -> bytes:
        """Return 8 bytes over live keys and winning values: equal where the same counts."""
        ...

    def __len__(self) -> int:
        """How many live keys there are."""
        ...
