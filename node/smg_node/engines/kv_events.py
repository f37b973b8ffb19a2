"""KV events: values for an engine's prefix-cache changes: blocks stored, removed, cleared, and
snapshots.

Values only; `kv_event_reader` decodes them from protobuf. A *block* is a run of tokens that the
engine caches as one, full or not at all. Its hash is the engine's own and means nothing to other
engines; what it holds follows from its ids, its pictures, those of its parent, and the namespace (adapter and
salt) they were computed under.
"""

from array import array  # noqa: F401 - needed to resolve the types of these records
from enum import IntEnum
from typing import Final, TypeAlias

import msgspec

from smg_node.core.generation.request import TokenIds
from smg_node.engines.load import Load

CURSOR_CODE: Final = "kv_cursor_unserved"
"""The error code of a subscription from a sequence number that is not served: begin from 0."""
LOST_CODE: Final = "kv_history_lost"
"""The error code of a stream whose publisher lost its history or began anew: what was told is void."""


class Tier(IntEnum):
    """Where a block lies: the further away, the longer it takes to use it."""

    DEVICE = 0
    HOST = 1
    DISK = 2
    EXTERNAL = 3


class KvBlock(msgspec.Struct, frozen=True):
    """One block. `plain` is False where more than its ids and pictures went into it: it cannot be matched.

    `media` are the pictures that begin in it: their identities, and where they begin, in tokens from its start.
    """

    hash: int
    ids: TokenIds
    plain: bool = True
    media: tuple[tuple[str, int], ...] = ()


class KvStored(msgspec.Struct, frozen=True):
    """Blocks are cached, each the parent of the next; `parent` is None at the beginning of a prompt."""

    parent: int | None
    blocks: tuple[KvBlock, ...]
    tier: Tier = Tier.DEVICE
    adapter: str = ""
    salt: str = ""


class KvRemoved(msgspec.Struct, frozen=True):
    """One copy of each of these is gone from that tier. A hash may be held twice, and is then removed twice."""

    hashes: tuple[int, ...]
    tier: Tier = Tier.DEVICE


class KvCleared(msgspec.Struct, frozen=True):
    """Nothing is cached any more."""


KvEvent: TypeAlias = KvStored | KvRemoved | KvCleared


class KvSnapshot(msgspec.Struct, frozen=True):
    """Position of this batch in a whole: `index` of `count`. `unknown_before`: batches it knows
    nothing of.
    """

    index: int
    count: int
    unknown_before: int = 0


class KvBatch(msgspec.Struct, frozen=True):
    """Changes of one rank in one step. Sequences grow by one a batch, for each rank; a hole means
    loss.

    A batch that is `load_only` repeats the last sequence and carries nothing but `load`.
    """

    sequence: int
    events: tuple[KvEvent, ...] = ()
    rank: int = 0
    load: Load | None = None
    load_only: bool = False
    snapshot: KvSnapshot | None = None
