"""State messages between control and data processes: snapshot, changes, reports. Values only.

A link begins with a `Snapshot`, and then what changed follows, each number one more than the one
before: a gap is a mistake, and a process that finds one asks for all of it again by linking anew.
"""

from typing import Final, TypeVar

import msgspec

from smg_mesh.shared import CacheRow, SessionRow

SNAPSHOT: Final = "state.snapshot"
CHANGES: Final = "state.changes"
OPEN_CALLS: Final = "calls.open"
STICK: Final = "sticky.write"
CACHE_ROWS: Final = "caches.rows"
"""Goes both ways, as the next does."""
SESSION_ROWS: Final = "sessions.rows"
SERVING: Final = "process.serving"
DRAIN: Final = "process.drain"
DRAINED: Final = "process.drained"
REPLACED: Final = "process.replaced"
"""Says that it ends because another one has its place."""

NAMESPACES: Final = ("workers", "settings", "limits", "keys", "providers", "access")
"""What of the replicated state data processes hold."""


class Row(msgspec.Struct, frozen=True, array_like=True):
    """One entry of a namespace: the winner, a removal where there is no value."""

    key: str
    owner: str
    version: int
    boot: int
    seen: int
    value: bytes | None


class Sight(msgspec.Struct, frozen=True, array_like=True):
    """One node's verdict on a worker."""

    node: str
    up: bool
    reason: str
    age_ms: int


class Binding(msgspec.Struct, frozen=True, array_like=True):
    """Binding of a routing key. An empty worker: the key is not bound any more."""

    key: str
    worker: str
    why: str = ""
    node: str = ""
    time_ms: int = 0
    expires_ms: int = 0


class Node(msgspec.Struct, frozen=True, array_like=True):
    """Report on the node as a whole."""

    held: bool = False
    living: tuple[str, ...] = ()
    aside: bool = False
    """Whether an operator set it aside."""
    reasons: tuple[str, ...] = ()
    degraded: tuple[str, ...] = ()


class Changes(msgspec.Struct, frozen=True, array_like=True):
    """Changes since the number before. A key whose row is None is forgotten."""

    number: int
    rows: dict[str, dict[str, Row | None]] = {}
    """By namespace, then by key."""
    sights: dict[str, tuple[Sight, ...]] = {}
    """By worker: all that is said of it."""
    calls: dict[str, tuple[int, int]] = {}
    """By worker: requests and tokens that all others have open, other processes of this node included."""
    bindings: tuple[Binding, ...] = ()
    secrets: dict[bytes, str | None] = {}
    """Sealed API keys of workers, and what they are; None for one that this node cannot open."""
    node: Node | None = None
    carried: tuple[bytes, ...] | None = None
    """Keys for what clients carry, the one that seals first; None where they are what they were."""


class OpenCalls(msgspec.Struct, frozen=True, array_like=True):
    """All that a process has open, by worker: requests and prompt tokens."""

    loads: dict[str, tuple[int, int]]


class CacheRows(msgspec.Struct, frozen=True, array_like=True):
    """Rows of prompt caches as they are now; one without a life was taken away."""

    rows: tuple[CacheRow, ...]


class SessionRows(msgspec.Struct, frozen=True, array_like=True):
    """Rows of tool sessions as they are now; one without content was taken away, or is over."""

    rows: tuple[SessionRow, ...]


class Serving(msgspec.Struct, frozen=True, array_like=True):
    """Report that a data process listens now, at this address."""

    host: str
    port: int
    scheme: str = "http"


Word = TypeVar("Word")
_encode: Final = msgspec.msgpack.Encoder().encode


def write(word: msgspec.Struct) -> bytes:
    """Return it as it travels."""
    return _encode(word)


def read(content: bytes, kind: type[Word]) -> Word:
    """Return what was written; ValueError for anything else."""
    try:
        return msgspec.msgpack.decode(content, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"no {kind.__name__}: {error}") from error
