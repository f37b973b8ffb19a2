"""What the replicated state asks of who runs it. Nothing of it is urgent enough to fail loudly."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

ConverseReason: TypeAlias = Literal["push", "gap"]


@dataclass(frozen=True, slots=True)
class Say:
    """Spread this as news of this node's own; at most 512 bytes."""

    kind: str
    key: str
    content: bytes


@dataclass(frozen=True, slots=True)
class Converse:
    """Open exchanges with `count` random members, or with the one of that name."""

    why: ConverseReason
    count: int = 1
    name: str = ""


@dataclass(frozen=True, slots=True)
class DigestIs:
    """8 bytes over all pieces, carried by every packet from now on."""

    digest: bytes


@dataclass(frozen=True, slots=True)
class Keep:
    """A piece has changed and belongs on disk; `dump(name)` gives it. Gather a few seconds of these."""

    name: str


@dataclass(frozen=True, slots=True)
class Wake:
    """Call `tick` at `due_ms` (the monotonic clock), or sooner."""

    due_ms: int


@dataclass(frozen=True, slots=True)
class Count:
    """Count `value` under `name`; `detail` is a label or empty."""

    name: str
    value: int = 1
    detail: str = ""


Wish: TypeAlias = Say | Converse | DigestIs | Keep | Wake | Count
