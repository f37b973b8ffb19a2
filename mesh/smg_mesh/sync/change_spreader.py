"""Change spreader: own writes go out as rumors while they are few, by exchanges when they are many.

A rumor reaches all nodes in a few hundred milliseconds and costs its bytes a dozen times over. So
own updates go as rumors up to a rate, and beyond it three members are pushed: they find the
difference by digest, take all of it in one conversation, and pass it on until a conversation
changes nothing.

An update that comes before its predecessor waits a moment for it, then it is fetched.
"""

from collections.abc import Callable
from typing import Final

import msgspec

from smg_mesh.config import NEWS_BYTES_MAX, StateOptions
from smg_mesh.crdt.documents.owned_registers import Written
from smg_mesh.sync.replica_effects import Count, OpenExchanges, SpreadRumor, Wish

DOCUMENT: Final = "d"
"""The kind of news that carries an update; the key is the document and a number."""
PUSH_COUNT: Final = 3
PASS_ON_COUNT: Final = 2
GAPS_MAX: Final = 256
"""Documents that wait for a predecessor; beyond that digests will tell."""
_BURST_S: Final = 1


class UpdateError(ValueError):
    """Bytes that are no update of a document."""


class Update(msgspec.Struct, frozen=True, array_like=True):
    """One transaction of one writer as a rumor carries it."""

    epoch: int
    client: int
    upto: int
    """The writer's clock after it: what a reader without a gap then holds."""
    update: bytes


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Update)


def decode_update(content: bytes) -> Update:
    """Return the update; UpdateError."""
    try:
        found = _decoder.decode(content)
    except (msgspec.DecodeError, RecursionError) as error:
        raise UpdateError(str(error)) from error
    if min(found.epoch, found.client, found.upto) < 0:
        raise UpdateError("a negative number")
    return found


class Gap(msgspec.Struct, frozen=True):
    """A document that lacks a predecessor of what it was told."""

    due_ms: int
    origin: str
    update: Update


class Spreader:
    """Changes still to be spread, pushed or fetched."""

    def __init__(
        self,
        options: StateOptions,
        *,
        now_ms: Callable[[], int],
        tell: Callable[[Wish], None],
        wake: Callable[[int], None],
    ) -> None:
        self._options: Final = options
        self._now_ms: Final = now_ms
        self._tell: Final = tell
        self._wake: Final = wake
        self._allowance = options.rumor_bytes_per_s * _BURST_S
        self._filled_ms = now_ms()
        self._pushed_ms = self._filled_ms - options.push_apart_ms
        self._push_count = 0
        self._said = 0
        self._gaps: dict[str, Gap] = {}
        self.alone = True
        """Nobody is there to hear it; who comes will ask."""

    # ── Own writes ───────────────────────────────────────────────────────────

    def wrote(self, document: str, written: Written) -> None:
        """Let the others have an own write to a document."""
        update = Update(written.epoch, written.client, written.upto, written.update)
        self._said += 1
        self.say(DOCUMENT, f"{document}:{self._said:x}", _encoder.encode(update))

    def say(self, kind: str, key: str, content: bytes) -> None:
        """Spread it as a rumor if there is room, else push."""
        if self.alone:
            return
        if len(content) <= NEWS_BYTES_MAX and self._allowed(len(content)):
            self._tell(SpreadRumor(kind, key, content))
        else:
            self.push(PUSH_COUNT)

    def say_if_easy(self, kind: str, key: str, content: bytes) -> None:
        """Spread it as a rumor if half of the rate stays for what others wait for; else the next exchange has it."""
        if self.alone:
            return
        reserve = self._options.rumor_bytes_per_s * _BURST_S // 2
        if len(content) <= NEWS_BYTES_MAX and self._allowed(len(content), reserve=reserve):
            self._tell(SpreadRumor(kind, key, content))
        else:
            self._tell(Count("rumor_left_out", detail=kind))

    def say_now(self, kind: str, key: str, content: bytes) -> None:
        """Spread what is worth nothing later, whatever the rate: the caller bounds it."""
        if not self.alone:
            self._tell(SpreadRumor(kind, key, content))

    def _allowed(self, size_bytes: int, *, reserve: int = 0) -> bool:
        now_ms, rate = self._now_ms(), self._options.rumor_bytes_per_s
        earned = (now_ms - self._filled_ms) * rate // 1000
        if earned > 0:
            self._allowance = min(rate * _BURST_S, self._allowance + earned)
            self._filled_ms = now_ms
        if self._allowance - reserve < size_bytes:
            return False
        self._allowance -= size_bytes
        return True

    # ── Pushes ───────────────────────────────────────────────────────────────

    def push(self, count: int) -> None:
        """Open exchanges with so many members, soon: what comes until then goes with it."""
        if self.alone:
            return
        self._push_count = max(self._push_count, count)
        self._wake(max(self._now_ms(), self._pushed_ms + self._options.push_apart_ms))

    def tick(self, holds: Callable[[str, Update], bool]) -> None:
        """Push what is due, and fetch what did not come; `holds(document, update)` tells whether it did."""
        now_ms = self._now_ms()
        due_ms = self._pushed_ms + self._options.push_apart_ms
        if self._push_count and now_ms >= due_ms:
            count, self._push_count, self._pushed_ms = self._push_count, 0, now_ms
            self._tell(OpenExchanges("push", count=count))
        elif self._push_count:
            self._wake(due_ms)
        self._look_at_gaps(now_ms, holds)

    # ── Gaps ─────────────────────────────────────────────────────────────────

    def gap(self, document: str, origin: str, update: Update) -> None:
        """Wait a moment for what comes before that update."""
        due_ms = self._now_ms() + self._options.gap_ms
        known = self._gaps.get(document)
        if known is not None:
            due_ms = known.due_ms
        elif len(self._gaps) >= GAPS_MAX:
            return
        self._gaps[document] = Gap(due_ms, origin, update)
        self._wake(due_ms)

    def _look_at_gaps(self, now_ms: int, holds: Callable[[str, Update], bool]) -> None:
        due = [(name, gap) for name, gap in self._gaps.items() if gap.due_ms <= now_ms]
        asked: set[str] = set()
        for document, gap in due:
            del self._gaps[document]
            if holds(document, gap.update) or gap.origin in asked:
                continue
            asked.add(gap.origin)
            self._tell(Count("state_gap"))
            self._tell(OpenExchanges("gap", name=gap.origin))
        for gap in self._gaps.values():
            self._wake(gap.due_ms)

    def clear(self) -> None:
        """Forget what was to be fetched."""
        self._gaps.clear()

    def counts(self) -> tuple[int, bool]:
        """Return how many documents wait for a predecessor, and whether a push is due."""
        return len(self._gaps), self._push_count > 0
