"""What members say: claims, rumors and the eight kinds of packet.

Everything here is a value; `wire` turns it into bytes and back. One order decides every merge of
claims, `Claim.order`, and the larger one wins: merging is a join, so any order of arrival and any
number of repetitions lead to the same table.
"""

from enum import IntEnum
from typing import Final, NamedTuple, TypeAlias

import msgspec


class Address(NamedTuple):
    """Where a member listens, UDP and TCP; `host` is numeric, never a name."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Rank(IntEnum):
    """State of a member. The order is part of the protocol."""

    ALIVE = 0
    SUSPECT = 1
    DEAD = 2
    LEFT = 3

    @property
    def gone(self) -> bool:
        """Whether it is no longer a member."""
        return self >= Rank.DEAD


class Claim(msgspec.Struct, frozen=True, array_like=True):
    """What `accuser` (empty: the member itself) says about the member `name`.

    `address` and `meta` are None where they were not said: packets carry them with ALIVE only,
    exchanges with every rank.
    """

    name: str
    boot: int
    incarnation: int
    rank: Rank
    address: Address | None = None
    meta: bytes | None = None
    accuser: str = ""

    @property
    def order(self) -> tuple[int, int, int]:
        """What decides between two claims about one name: the larger wins."""
        return (self.boot, self.incarnation, self.rank)


class News(msgspec.Struct, frozen=True, array_like=True):
    """A small rumor that is not about membership; the newest `seq` per (origin, kind, key) wins."""

    origin: str
    kind: str
    key: str
    seq: int
    content: bytes


class Ping(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """Are you there? `claim` is what the sender holds against the target, so that it can refute."""

    nonce: int
    target: str
    target_boot: int
    claim: Claim | None = None


class Ack(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """I am, or (from a relay) the target is."""

    nonce: int


class PingRequest(msgspec.Struct, frozen=True, array_like=True, tag=3):
    """Ping that member for me."""

    nonce: int
    target: str
    target_boot: int
    address: Address


class Nack(msgspec.Struct, frozen=True, array_like=True, tag=4):
    """I asked and heard nothing: you still hear me, at least."""

    nonce: int


class Gossip(msgspec.Struct, frozen=True, array_like=True, tag=5):
    """Nothing but rumors."""


class Told(msgspec.Struct, frozen=True, array_like=True, tag=6):
    """This is what I hold against you."""

    claim: Claim


class Hello(msgspec.Struct, frozen=True, array_like=True, tag=7):
    """I am `claim`; to addresses that may not know my name. Answered by a Hello if `answer`."""

    claim: Claim
    answer: bool


Message: TypeAlias = Ping | Ack | PingRequest | Nack | Gossip | Told | Hello

NO_DIGEST: Final = bytes(16)


class Packet(msgspec.Struct, frozen=True):
    """One datagram: who says it, what, and the rumors that ride along.

    `sender` is the tag of the sender's name (8 bytes), `digest` 8 bytes over its member table and 8
    over its documents. Sender, boot and incarnation together are a claim at first hand: it is alive.
    """

    sender: bytes
    boot: int
    incarnation: int
    digest: bytes
    message: Message
    rumors: tuple[Claim, ...] = ()
    news: tuple[News, ...] = ()
