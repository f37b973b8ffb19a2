"""Replica effects: what replicated state asks of its driver. None is urgent enough to fail loudly."""

from typing import Literal, TypeAlias

import msgspec

ConverseReason: TypeAlias = Literal["push", "gap"]


class SpreadRumor(msgspec.Struct, frozen=True):
    """Spread this as news of this node's own; at most 512 bytes."""

    kind: str
    key: str
    content: bytes


class OpenExchanges(msgspec.Struct, frozen=True):
    """Open exchanges with `count` random members, or with the one of that name."""

    why: ConverseReason
    count: int = 1
    name: str = ""


class DigestIs(msgspec.Struct, frozen=True):
    """8 bytes over all pieces, carried by every packet from now on."""

    digest: bytes


class Keep(msgspec.Struct, frozen=True):
    """A piece has changed and belongs on disk; `dump(name)` gives it. Gather a few seconds of these."""

    name: str


class Wake(msgspec.Struct, frozen=True):
    """Call `tick` at `due_ms` (the monotonic clock), or sooner."""

    due_ms: int


class Count(msgspec.Struct, frozen=True):
    """Count `value` under `name`; `detail` is a label or empty."""

    name: str
    value: int = 1
    detail: str = ""


Wish: TypeAlias = SpreadRumor | OpenExchanges | DigestIs | Keep | Wake | Count
