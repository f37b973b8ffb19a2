"""Messages of members: claims, rumors and the eight kinds of packet.

Everything here is a value; `wire` turns it into bytes and back. One order decides every merge of
claims, `Claim.order`, and the larger one wins: merging is a join, so any order of arrival and any
number of repetitions lead to the same table.
"""

from enum import IntEnum
from typing import Annotated, Final, NamedTuple, TypeAlias

import msgspec
from msgspec import Meta

from smg_mesh.config import META_BYTES_MAX, NEWS_BYTES_MAX

# Ranges are declared where the fields are, so that decoding checks them at no cost; they bind nobody
# who builds a value by hand. What they cannot say, patterns and numeric hosts, `wire` checks.
NAME_CHARS_MAX: Final = 63
HOST_CHARS_MAX: Final = 45
"""A numeric IPv6 host at its longest."""
KIND_CHARS_MAX: Final = 32
KEY_CHARS_MAX: Final = 128
DIGEST_BYTES: Final = 16

Name: TypeAlias = Annotated[str, Meta(min_length=1, max_length=NAME_CHARS_MAX)]
U64: TypeAlias = Annotated[int, Meta(ge=0)]
"""The wire has nothing above 64 bits."""
U32: TypeAlias = Annotated[int, Meta(ge=0, lt=1 << 32)]


class Address(NamedTuple):
    """Address of a member, UDP and TCP; `host` is numeric, never a name."""

    host: Annotated[str, Meta(min_length=2, max_length=HOST_CHARS_MAX)]
    port: Annotated[int, Meta(ge=1, le=65_535)]

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
    """Claim of `accuser` (empty: the member itself) about the member `name`.

    `address` and `meta` are None where they were not said: packets carry them with ALIVE only,
    exchanges with every rank.
    """

    name: Name
    boot: U64
    incarnation: U32
    rank: Rank
    address: Address | None = None
    meta: Annotated[bytes, Meta(max_length=META_BYTES_MAX)] | None = None
    accuser: Annotated[str, Meta(max_length=NAME_CHARS_MAX)] = ""

    @property
    def order(self) -> tuple[int, int, int]:
        """What decides between two claims about one name: the larger wins."""
        return (self.boot, self.incarnation, self.rank)


class News(msgspec.Struct, frozen=True, array_like=True):
    """A small rumor that is not about membership; the newest `seq` per (origin, kind, key) wins."""

    origin: Name
    kind: Annotated[str, Meta(min_length=1, max_length=KIND_CHARS_MAX)]
    key: Annotated[str, Meta(max_length=KEY_CHARS_MAX)]
    seq: U64
    content: Annotated[bytes, Meta(max_length=NEWS_BYTES_MAX)]


class Ping(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """Asks for an ACK. `claim` is held against the target by the sender, so that it can refute."""

    nonce: U64
    target: Name
    target_boot: U64
    claim: Claim | None = None


class Ack(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """Answers a ping: the sender, or (from a relay) the target, is there."""

    nonce: U64


class PingRequest(msgspec.Struct, frozen=True, array_like=True, tag=3):
    """Asks a relay to ping a member."""

    nonce: U64
    target: Name
    target_boot: U64
    address: Address


class Nack(msgspec.Struct, frozen=True, array_like=True, tag=4):
    """Tells that the relay asked and heard nothing; its asker is at least heard by the relay."""

    nonce: U64


class Gossip(msgspec.Struct, frozen=True, array_like=True, tag=5):
    """Carries nothing but rumors."""


class Accusation(msgspec.Struct, frozen=True, array_like=True, tag=6):
    """Tells a member what the sender holds against it."""

    claim: Claim


class Hello(msgspec.Struct, frozen=True, array_like=True, tag=7):
    """Introduces the sender as `claim` to addresses that may not know its name.
    Answered by a Hello if `answer`.
    """

    claim: Claim
    answer: bool


Message: TypeAlias = Ping | Ack | PingRequest | Nack | Gossip | Accusation | Hello

NO_DIGEST: Final = bytes(16)


class Packet(msgspec.Struct, frozen=True):
    """One datagram: its sender, its message, and the rumors that ride along.

    `sender` is the tag of the sender's name (8 bytes), `digest` 8 bytes over its member table and its
    documents together, and 8 that are not used yet. Sender, boot and incarnation together are a claim at first hand: it is alive.
    """

    sender: bytes
    boot: int
    incarnation: int
    digest: bytes
    message: Message
    rumors: tuple[Claim, ...] = ()
    news: tuple[News, ...] = ()
