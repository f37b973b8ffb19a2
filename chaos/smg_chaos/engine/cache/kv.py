"""KV events: numbered batches of what changed in the block table, and the subscriptions they go to.

A live publisher serves from now on and refuses any other cursor. One with a memory keeps a bounded
history: it replays from a cursor, or from the beginning while it still has that, and otherwise
hands out a snapshot of the live blocks first. Each subscription numbers its events itself.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from smg_grpc_proto.generated import common_pb2

from smg_chaos.engine.cache.blocks import Blocks, Change, Cleared, Content, Removed, Stored
from smg_chaos.engine.cache.loads import Load, load_record
from smg_chaos.engine.protocol.rpc_call import Call, Code, End, refused
from smg_chaos.engine.protocol.servicer_behaviours import KvEvents, LoadRecords, Manners

HISTORY_BATCHES: Final = 1024
SNAPSHOT_BLOCKS: Final = 256  # live blocks in one chunk of a snapshot
_WAITING_MAX: Final = 10_000  # messages a subscriber may leave unread
HEARTBEAT_TICK_S: Final = 0.1
_HEARTBEAT_S: Final = 1.0
_HEARTBEAT_IDLE_S: Final = 5.0

_TIER: Final = common_pb2.KV_CACHE_TIER_DEVICE
_LOCAL: Final = common_pb2.KV_CACHE_LOCALITY_LOCAL
_SIGN: Final = 1 << 63


@dataclass(frozen=True, slots=True)
class Batch:
    """Changes of one scheduler step; `time_s` is wall-clock."""

    sequence: int
    time_s: float
    changes: tuple[Change, ...]
    rank: int = 0


def _signed(key: int) -> int:
    return key - (1 << 64) if key >= _SIGN else key


def _stored(contents: Sequence[Content], manners: Manners, size: int) -> Any:
    stored = common_pb2.KvBlocksStored(
        blocks=[
            common_pb2.KvBlock(
                block_hash=_signed(content.key),
                token_ids=content.tokens,
                block_size=size,
                extra_keys=[_picture(*one) for one in content.media] if manners.kv_group else (),
            )
            for content in contents
        ]
    )
    parent = contents[0].parent
    if parent is not None:
        stored.parent_block_hash = _signed(parent)
    if manners.kv_tiers:
        stored.tier, stored.medium, stored.locality = _TIER, "GPU", _LOCAL
    if manners.kv_group:
        stored.group_idx, stored.kv_cache_spec_kind = 0, "full_attention"
    return stored


def _picture(name: str, offset: int) -> Any:
    key = common_pb2.KvMultimodalKey(identifier=name, offset=offset)
    return common_pb2.KvBlockExtraKey(multimodal=key)


def _event(change: Change, number: int, manners: Manners, size: int) -> Any:
    event = common_pb2.KvCacheEvent(event_id=number)
    if isinstance(change, Stored):
        event.stored.CopyFrom(_stored(change.contents, manners, size))
    elif isinstance(change, Removed):
        event.removed.block_hashes.extend(_signed(key) for key in change.keys)
        if manners.kv_tiers:
            event.removed.tier, event.removed.medium = _TIER, "GPU"
            event.removed.locality = _LOCAL
        if manners.kv_group:
            event.removed.group_idx = 0
    else:
        event.cleared.SetInParent()
    return event


class _Told:
    """State of one subscriber for one rank: what it was sent last."""

    __slots__ = ("at_s", "idle", "load", "sample", "sequence")

    def __init__(self, now_s: float, sequence: int | None) -> None:
        self.at_s = now_s
        self.sequence = sequence
        self.load: Load | None = None
        self.sample = 0
        self.idle = 0


class Subscription(Call):
    """One SubscribeKvEvents in progress: batches of all ranks, each numbered by its rank."""

    __slots__ = ("_events", "_manners", "_size", "_told", "leave")

    def __init__(
        self, manners: Manners, size: int, now_s: float, *, ranks: int, early_load: bool
    ) -> None:
        super().__init__()
        self._manners = manners
        self._size = size
        self._events = 0
        starts = manners.load_records is LoadRecords.FROM_START and early_load
        self._told = [_Told(now_s, 0 if starts else None) for _ in range(ranks)]
        self.leave: Callable[[Subscription], None] | None = None

    def deliver(self, batch: Batch, load: Load, now_s: float) -> None:
        """Add a batch, with the load beside it where this servicer sends it."""
        message = common_pb2.KvEventBatch(sequence_number=batch.sequence)
        if not self._manners.kv_split:
            message.timestamp = batch.time_s
        self._add(message, batch.rank, batch.changes, load, now_s)

    def snapshot(
        self, rank: int, contents: Sequence[Content], last: Batch, load: Load, now_s: float
    ) -> None:
        """Add a rank's live blocks, in chunks numbered up to `last`, which itself is not sent."""
        parts = [
            contents[at : at + SNAPSHOT_BLOCKS] for at in range(0, len(contents), SNAPSHOT_BLOCKS)
        ]
        parts = parts[-(last.sequence + 1) :] or [()]
        for index, part in enumerate(parts):
            message = common_pb2.KvEventBatch(
                sequence_number=last.sequence - len(parts) + 1 + index, timestamp=last.time_s
            )
            message.snapshot.index, message.snapshot.count = index, len(parts)
            message.snapshot.blocks = len(contents)
            changes: tuple[Change, ...] = tuple(Stored((content,)) for content in part)
            if index == 0:
                changes = (Cleared(), *changes)
            self._add(message, rank, changes, load, now_s, made_up=True)

    def _add(
        self,
        message: Any,
        rank: int,
        changes: Sequence[Change],
        load: Load,
        now_s: float,
        *,
        made_up: bool = False,
    ) -> None:
        told = self._told[rank]
        if self._manners.kv_rank:
            message.dp_rank = rank
        for change in changes:
            self._events += 1
            number = 0 if made_up else self._events
            message.events.append(_event(change, number, self._manners, self._size))
        if self._manners.load_records is not LoadRecords.NONE:
            told.sample += 1
            record = load_record(
                common_pb2, load, self._manners, sample=told.sample, load_only=False
            )
            message.load.CopyFrom(record)
            told.load = load
        told.sequence, told.at_s, told.idle = message.sequence_number, now_s, 0
        self._push(message)

    def heartbeat(self, rank: int, load: Load, time_s: float, now_s: float) -> bool:
        """Add a load-only batch of a rank if one is due; return whether one was."""
        told = self._told[rank]
        if self._manners.load_records is LoadRecords.NONE or told.sequence is None:
            return False
        moved = told.load is None or told.load.moved(load)
        patience_s = _HEARTBEAT_IDLE_S if told.idle >= 2 else _HEARTBEAT_S
        if not moved and now_s - told.at_s < patience_s:
            return False
        told.sample += 1
        message = common_pb2.KvEventBatch(sequence_number=told.sequence, timestamp=time_s)
        if self._manners.kv_rank:
            message.dp_rank = rank
        message.load.CopyFrom(
            load_record(common_pb2, load, self._manners, sample=told.sample, load_only=True)
        )
        told.load, told.at_s = load, now_s
        told.idle = 0 if moved else told.idle + 1
        self._push(message)
        return True

    def _push(self, message: Any) -> None:
        if self.waits >= _WAITING_MAX:
            self.cut(End(Code.DATA_LOSS, "the subscriber reads too slowly"))
            return
        self.say(message.SerializeToString())

    def cancel(self, now_s: float) -> None:
        """End the subscription."""
        super().cancel(now_s)
        if self.leave is not None:
            leave, self.leave = self.leave, None
            leave(self)


class _Line:
    """One rank's batches: the next number, the first one, and those that are remembered."""

    __slots__ = ("first", "history", "next", "table")

    def __init__(self, table: Blocks, first: int) -> None:
        self.table = table
        self.next = self.first = first
        self.history: deque[Batch] = deque(maxlen=HISTORY_BATCHES)


class Publisher:
    """Numbers the batches of each rank and hands them to subscriptions; `tables` are those of the ranks."""

    def __init__(
        self,
        manners: Manners,
        tables: Sequence[Blocks],
        *,
        wall_s: Callable[[float], float],
        load: Callable[[int, float], Load],
    ) -> None:
        self._manners = manners
        self._lines = [_Line(table, manners.kv_first_sequence) for table in tables]
        self._wall_s = wall_s
        self._load = load
        self._remembers = manners.kv_events is KvEvents.WITH_MEMORY
        self.subscriptions: list[Subscription] = []

    @property
    def published(self) -> int:
        """How many batches were numbered since the publisher started."""
        return sum(line.next - line.first for line in self._lines)

    def batches(self, now_s: float) -> list[Batch]:
        """Return the changes since the last call, numbered."""
        made: list[Batch] = []
        for rank, line in enumerate(self._lines):
            changes = line.table.changes()
            if not changes or self._manners.kv_events is KvEvents.NONE:
                continue
            split = self._manners.kv_split
            for group in [(change,) for change in changes] if split else [tuple(changes)]:
                batch = Batch(line.next, self._wall_s(now_s), group, rank)
                line.next += 1
                made.append(batch)
                if self._remembers:
                    line.history.append(batch)
        return made

    def deliver(self, batch: Batch, now_s: float) -> list[Subscription]:
        """Add a batch to every subscription; return those that have something to read."""
        load = self._load(batch.rank, now_s)
        for subscription in self.subscriptions:
            subscription.deliver(batch, load, now_s)
        return list(self.subscriptions)

    def heartbeats(self, now_s: float) -> list[Subscription]:
        """Add load-only batches to the subscriptions for which one is due; return these."""
        loads, time_s = self._loads(now_s), self._wall_s(now_s)
        return [one for one in self.subscriptions if _beaten(one, loads, time_s, now_s)]

    def _loads(self, now_s: float) -> list[Load]:
        return [self._load(rank, now_s) for rank in range(len(self._lines))]

    def subscribe(self, start: int, now_s: float, *, early_load: bool) -> Call:
        """Return a subscription from `start`, or the refusal this servicer answers with."""
        if self._manners.kv_events is KvEvents.NONE:
            return refused(Code.UNIMPLEMENTED, "KV cache events are not enabled")
        if start and not self._remembers:
            return refused(
                Code.OUT_OF_RANGE, "no replay from a cursor; subscribe from zero and rebuild"
            )
        lines = self._lines
        made = Subscription(
            self._manners, lines[0].table.size, now_s, ranks=len(lines), early_load=early_load
        )
        made.leave = self.subscriptions.remove
        if self._remembers:
            for rank, line in enumerate(lines):
                self._catch_up(made, rank, line, start, now_s)
        self.subscriptions.append(made)
        return made

    def _catch_up(
        self, made: Subscription, rank: int, line: _Line, start: int, now_s: float
    ) -> None:
        load = self._load(rank, now_s)
        complete = not line.history or line.history[0].sequence == line.first
        if start or complete:
            for batch in line.history:
                if batch.sequence >= start:
                    made.deliver(batch, load, now_s)
        else:
            last = Batch(line.next - 1, self._wall_s(now_s), (), rank)
            made.snapshot(rank, line.table.live(), last, load, now_s)

    def restart(self) -> list[Subscription]:
        """Reset all numbers and the history; return the subscriptions that ended."""
        for line in self._lines:
            line.next = line.first = 0
            line.history.clear()
        return self.cut_all(End(Code.DATA_LOSS, "the publisher restarted its sequence"))

    def cut_all(self, end: End) -> list[Subscription]:
        """End every subscription; return them."""
        lost, self.subscriptions = self.subscriptions, []
        for subscription in lost:
            subscription.leave = None
            subscription.cut(end)
        return lost


def _beaten(one: Subscription, loads: Sequence[Load], time_s: float, now_s: float) -> bool:
    """Add the loads that are due to a subscription; return whether one was."""
    beats = [one.heartbeat(rank, load, time_s, now_s) for rank, load in enumerate(loads)]
    return any(beats)
