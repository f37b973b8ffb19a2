"""Views of the mesh: values for routes, commands and metrics, and nothing to change by them."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

import msgspec

from smg_mesh.config import META_BYTES_MAX
from smg_mesh.swim.effects import Member
from smg_mesh.swim.messages import Rank

Meta: TypeAlias = Mapping[str, str | int | bool]
MemberState: TypeAlias = Literal["alive", "suspect", "dead", "left"]
EventKind: TypeAlias = Literal[
    "member_up",
    "member_suspect",
    "member_refuted",
    "member_down",
    "member_left",
    "member_changed",
    "joined",
    "isolated",
    "unisolated",
    "superseded",
    "keyring_changed",
    "state_joined",
    "document_full",
    "seed_failed",
]

STATES: Final[Mapping[Rank, MemberState]] = MappingProxyType(
    {Rank.ALIVE: "alive", Rank.SUSPECT: "suspect", Rank.DEAD: "dead", Rank.LEFT: "left"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberView:
    """One row of the member table."""

    name: str
    state: MemberState
    address: str
    boot: int
    incarnation: int
    rtt_ms: float | None
    """Median of the last round trips; None for this node and for whom it never probed."""
    health: int | None
    """This node's own health score, 0 (well) to 7; None for others, who keep theirs to themselves."""
    heard_ms_ago: int | None
    """Since its last packet arrived here; None for this node, and if none ever did."""
    since_ms: int
    """When it entered this state here, Unix time."""
    meta: Meta
    me: bool
    announced: bool
    """Whether it counts: one that came back too often is held down for a while."""
    accuser: str
    """Who doubts it, or empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedView:
    """One seed, as named, and how it is going."""

    seed: str
    addresses: tuple[str, ...]
    error: str
    """Its last failure since it last answered, or empty."""
    ourselves: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MeshEvent:
    """Something that happened in the mesh, as this node saw it."""

    id: int
    """Counts up from 1 in one life of this node."""
    time_ms: int
    """Unix time."""
    kind: EventKind
    name: str
    """The member (or seed) it is about; this node's own name for what concerns itself."""
    detail: Mapping[str, str | int]


@dataclass(frozen=True, slots=True, kw_only=True)
class MeshStatus:
    """The mesh as this node sees it."""

    label: str
    name: str
    boot: int
    incarnation: int
    address: str
    members: Mapping[MemberState, int]
    """How many rows in each state, this node among the alive."""
    joined: bool
    """Whether it ever exchanged with a peer."""
    isolated: bool
    closed: bool
    """No key file and not insecure: this node neither joins nor can be joined."""
    degraded: tuple[str, ...]
    """Why all is not well, in words; empty when it is."""
    encrypted: bool
    wire_version: int
    digest: str
    health: int
    seeds: tuple[SeedView, ...]
    keys: tuple[str, ...]
    """Fingerprints, the primary key's first."""
    held: bool = True
    """Whether it holds the cluster's shared state; one that is joining does not yet."""
    documents: str = ""
    """Digest of everything shared, 16 hexadecimal digits: equal where the same is held."""


def member_view(member: Member, *, me: str, health: int, now_ms: int, wall_ms: int) -> MemberView:
    """Return the row as it is shown; `now_ms` is the core's clock, `wall_ms` the one on the wall."""
    mine = member.name == me
    heard = None if mine or member.heard_ms is None else max(0, now_ms - member.heard_ms)
    return MemberView(
        name=member.name,
        state=STATES[member.rank],
        address=str(member.address),
        boot=member.boot,
        incarnation=member.incarnation,
        rtt_ms=None if mine else member.rtt_ms,
        health=health if mine else None,
        heard_ms_ago=heard,
        since_ms=wall_ms - max(0, now_ms - member.since_ms),
        meta=unpack_meta(member.meta),
        me=mine,
        announced=member.announced,
        accuser=member.accuser,
    )


def pack_meta(meta: Meta) -> bytes:
    """Return the meta as it travels; ValueError if it is too large or holds what it may not."""
    for key, value in meta.items():
        if not isinstance(value, str | int | bool):
            raise ValueError(f"meta {key!r}: only text, whole numbers and truth values travel")
    try:
        packed = msgspec.msgpack.encode(dict(meta))
    except (OverflowError, UnicodeEncodeError) as error:
        raise ValueError(f"meta cannot be packed: {error}") from error
    if len(packed) > META_BYTES_MAX:
        raise ValueError(f"meta takes {len(packed)} bytes packed, {META_BYTES_MAX} are allowed")
    return packed


def unpack_meta(packed: bytes) -> Meta:
    """Return what a member says of itself; empty if this version cannot read it."""
    if not packed:
        return {}
    try:
        return msgspec.msgpack.decode(packed, type=dict[str, str | int | bool])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
