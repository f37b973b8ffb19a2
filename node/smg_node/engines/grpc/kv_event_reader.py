"""KV event reader: decodes the KV event stream that four contracts share into values. Pure.

What belongs to another worker or cannot be looked up is left out here: blocks of a pool that
many engines share, and groups of a hybrid model that keep only the end of a prompt. Removals name the
group and not its kind, so a reader remembers what was stored in which; there is one for each subscription.
"""

from array import array
from typing import Any, Final

from smg_grpc_proto.generated import common_pb2 as pb

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.engines.contracts.load_reports import pushed_load
from smg_node.engines.contracts.wire import parsed
from smg_node.engines.kv_events import (
    CURSOR_CODE,
    LOST_CODE,
    KvBatch,
    KvBlock,
    KvCleared,
    KvEvent,
    KvRemoved,
    KvSnapshot,
    KvStored,
    Tier,
)
from smg_node.engines.transport.grpc_status import smg_error
from smg_node.engines.transport.transport import StatusCode, TransportError

SUBSCRIPTION_S: Final = 7 * 86_400.0
"""How long one subscription lasts; transports need a deadline, and a new one goes on where the old one was."""
GROUPS_MAX: Final = 256
"""A hybrid model has a handful of groups; an engine that invents them must not fill memory."""

KEYS_MAX: Final = 256
"""What goes into one block: pictures of a few tokens each, at most."""
IDENTITY_MAX_CHARACTERS: Final = 256
"""Ours have 64."""

_WHOLE_PROMPT: Final = frozenset({"", "full_attention", "mla_attention", "sink_full_attention"})
"""Kinds of groups that keep every block of a prompt; others keep a window, or a state instead of blocks."""
_MEDIA: Final = {
    "GPU": Tier.DEVICE,
    "CPU": Tier.HOST,
    "CPU_PINNED": Tier.HOST,
    "STORAGE": Tier.DISK,
    "DISK": Tier.DISK,
    "EXTERNAL": Tier.EXTERNAL,
}


def kv_request(start: int) -> bytes:
    """Return the request for everything from sequence `start` on, with loads from the first moment."""
    assert start >= 0
    message = pb.SubscribeKvEventsRequest(
        start_sequence_number=start, load_records_before_first_batch=True
    )
    data: bytes = message.SerializeToString()
    return data


def kv_error(error: TransportError) -> SmgError:
    """Return why a subscription ended, with the codes that a subscriber goes by."""
    if error.status is StatusCode.OUT_OF_RANGE:
        return SmgError(
            ErrorKind.UPSTREAM_FAILED,
            "the engine does not tell again what came after that sequence",
            code=CURSOR_CODE,
        )
    if error.status is StatusCode.DATA_LOSS:
        return SmgError(
            ErrorKind.UPSTREAM_FAILED, "the engine lost its history of KV events", code=LOST_CODE
        )
    return smg_error(error)


class KvReader:
    """Reads the batches of one subscription."""

    def __init__(self) -> None:
        self._partial: dict[int, bool] = {}
        """Whether a group keeps less than the whole of a prompt."""

    def read(self, data: bytes) -> KvBatch:
        """Return one batch; UPSTREAM_FAILED for bytes that are none."""
        message = parsed(pb.KvEventBatch, data)
        rank = max(0, message.dp_rank)
        load_only = message.HasField("load") and message.load.load_only
        return KvBatch(
            sequence=message.sequence_number,
            events=() if load_only else self._events(message.events),
            rank=rank,
            load=pushed_load(message.load, rank) if message.HasField("load") else None,
            load_only=load_only,
            snapshot=_snapshot(message.snapshot) if message.HasField("snapshot") else None,
        )

    def _events(self, events: Any) -> tuple[KvEvent, ...]:
        read = (self._event(event) for event in events)
        return tuple(event for event in read if event is not None)

    def _event(self, event: Any) -> KvEvent | None:
        which = event.WhichOneof("data")
        if which == "stored":
            return self._stored(event.stored)
        if which == "removed":
            return self._removed(event.removed)
        return KvCleared() if which == "cleared" else None

    def _stored(self, stored: Any) -> KvStored | None:
        self._note_group(stored)
        if not stored.blocks or self._foreign(stored):
            return None
        first = stored.blocks[0]
        names = {stored.lora_name, stored.cache_salt}
        return KvStored(
            parent=stored.parent_block_hash if stored.HasField("parent_block_hash") else None,
            blocks=tuple(_block(block, names) for block in stored.blocks),
            tier=_tier(stored, first),
            # One contract knows adapters by number only, and so do its requests.
            adapter=stored.lora_name or (str(first.lora_id) if first.lora_id > 0 else ""),
            salt=stored.cache_salt,
        )

    def _removed(self, removed: Any) -> KvRemoved | None:
        if not removed.block_hashes or self._foreign(removed):
            return None
        return KvRemoved(tuple(removed.block_hashes), _tier(removed, removed))

    def _note_group(self, stored: Any) -> None:
        if stored.HasField("group_idx") and (
            stored.group_idx in self._partial or len(self._partial) < GROUPS_MAX
        ):
            self._partial[stored.group_idx] = stored.kv_cache_spec_kind not in _WHOLE_PROMPT

    def _foreign(self, event: Any) -> bool:
        """Return whether these blocks are of no use for routing to this worker: held elsewhere, or
        in a partial group.
        """
        if event.locality == pb.KV_CACHE_LOCALITY_REMOTE:
            return True
        return event.HasField("group_idx") and self._partial.get(event.group_idx, False)


def _block(block: Any, names: set[str]) -> KvBlock:
    ids = array("I", block.token_ids)
    whole = len(ids) > 0 and block.block_size in (0, len(ids))
    if not block.extra_keys:
        return KvBlock(block.block_hash, ids, plain=whole)
    media = _pictures(block.extra_keys, names, len(ids)) if whole else None
    return KvBlock(block.block_hash, ids, plain=media is not None, media=media or ())


def _pictures(keys: Any, names: set[str], tokens: int) -> tuple[tuple[str, int], ...] | None:
    """Return the pictures that begin in a block of so many tokens; None where something else went into its hash.

    Beside its ids that may be the namespace, which is told anyway, and pictures. Those that began before it, at an
    offset below 0, follow from its parent.
    """
    found: list[tuple[str, int]] = []
    if len(keys) > KEYS_MAX:
        return None
    for key in keys:
        kind = key.WhichOneof("key")
        if kind == "multimodal":
            name, offset = key.multimodal.identifier, key.multimodal.offset
            if not 0 < len(name) <= IDENTITY_MAX_CHARACTERS or offset >= tokens:
                return None
            if offset >= 0:
                found.append((name, offset))
        elif kind != "text" or key.text not in names:
            return None
    return tuple(found)


def _tier(event: Any, level_of: Any) -> Tier:
    """Return where blocks lie, by the first of three ways of saying so."""
    if event.tier:
        return Tier(min(event.tier - 1, Tier.EXTERNAL)) if event.tier > 0 else Tier.EXTERNAL
    if event.medium:
        return _MEDIA.get(event.medium, Tier.EXTERNAL)
    return Tier(min(max(level_of.cache_level, 0), Tier.EXTERNAL))


def _snapshot(chunk: Any) -> KvSnapshot:
    return KvSnapshot(chunk.index, chunk.count, chunk.unknown_before)
