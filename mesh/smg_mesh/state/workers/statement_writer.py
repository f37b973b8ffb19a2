"""Statement writer: puts thousands of small statements about workers into a few registers.

Each statement has its place on a *sheet*, and a sheet is one register. A statement stays on its sheet as
long as it is made, so that what changes is one sheet. When a sheet is said:

    after a change     at once, unless it was said less than `apart` ago: then as soon as that is over
    without a change   after `repeat`, then 4 times that, … up to `repeat_last`: a lost rumor heals soon,
                       and quiet sheets cost little

What all nodes say by this together has a budget of bytes per second. Where it is too small for
that, every node says each sheet less often, and what was said is good for longer.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Final, Generic, TypeVar

from smg_mesh.crdt.deadline_heap import Deadlines
from smg_mesh.sync.bound_views import BoundRegisters

V = TypeVar("V")

TTL_REPEATS: Final = 4
"""What was said is good for that many repeats: three rumors in a row may be lost."""
_BACK_OFF: Final = 4
_SOONEST: Final = 16
"""The first repeat comes after that part of the last one at the soonest: or thousands of first repeats are a flood."""
_HEAD_BYTES: Final = 48
"""What a rumor needs besides the sheet: who says it, which one, its order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Intervals at which a sheet is said."""

    apart_ms: int
    apart_max_ms: int
    """However much there is to say, a change is said after that time."""
    repeat_ms: int
    repeat_last_ms: int
    bytes_per_s: int
    """Of all nodes together."""


class _Sheet(Generic[V]):
    """One register's worth of statements."""

    __slots__ = ("changed", "open", "repeat_ms", "said_bytes", "said_ms", "used_bytes", "values")

    def __init__(self) -> None:
        self.values: dict[str, V] = {}
        self.used_bytes = 0
        self.said_ms: int | None = None
        self.said_bytes = 0
        self.changed = False
        self.open = False
        """It is among those that may have room."""
        self.repeat_ms = 0


class StatementWriter(Generic[V]):
    """Statements of this node about workers, under one kind of register."""

    def __init__(
        self,
        registers: BoundRegisters,
        kind: str,
        *,
        encode: Callable[[Mapping[str, V]], bytes],
        item_bytes: Callable[[str], int],
        room_bytes: int,
        pace: Pace,
        speakers: Callable[[], int],
    ) -> None:
        self._registers: Final = registers
        self._kind: Final = kind
        self._encode: Final = encode
        self._item_bytes: Final = item_bytes
        self._room_bytes: Final = room_bytes
        self._pace: Final = pace
        self._speakers: Final = speakers
        self._sheets: dict[int, _Sheet[V]] = {}
        self._sheet_of: dict[str, int] = {}
        self._open: list[int] = []
        """Numbers of sheets that may have room, the lowest on top; of dropped ones too."""
        self._due: Final[Deadlines[int, int]] = Deadlines()
        self._said_bytes = 0

    def __len__(self) -> int:
        return len(self._sheet_of)

    def __iter__(self) -> Iterator[str]:
        return iter(self._sheet_of)

    @property
    def count(self) -> int:
        """How many registers it takes."""
        return len(self._sheets)

    def get(self, worker_id: str) -> V | None:
        """Return what is stated about a worker."""
        number = self._sheet_of.get(worker_id)
        return None if number is None else self._sheets[number].values[worker_id]

    def put(self, worker_id: str, value: V) -> bool:
        """State it from now on; return whether that is another statement than before."""
        number = self._sheet_of.get(worker_id)
        if number is None:
            number = self._place(worker_id)
        sheet = self._sheets[number]
        if sheet.values.get(worker_id) == value:
            return False
        sheet.values[worker_id] = value
        self._change(number, sheet)
        return True

    def drop(self, worker_id: str) -> bool:
        """State nothing about a worker any more; return whether anything was."""
        number = self._sheet_of.pop(worker_id, None)
        if number is None:
            return False
        sheet = self._sheets[number]
        del sheet.values[worker_id]
        sheet.used_bytes -= self._item_bytes(worker_id)
        if not sheet.open:
            sheet.open = True
            heappush(self._open, number)
        self._change(number, sheet)
        return True

    def say(self) -> int | None:
        """Say what is due; return when there will be something to say, None without any statement."""
        now_ms = self._registers.now_ms()
        while (first := self._due.first()) is not None and first[0] <= now_ms:
            self._speak(first[1], now_ms)
        if first is None:
            return None
        self._registers.wake(first[0])
        return first[0]

    # ── Places ───────────────────────────────────────────────────────────────

    def _place(self, worker_id: str) -> int:
        """Put a worker onto the first sheet with room, and return its number."""
        needed_bytes = self._item_bytes(worker_id)
        assert needed_bytes <= self._room_bytes
        number = self._with_room(needed_bytes)
        sheet = self._sheets.get(number)
        if sheet is None:
            sheet = self._sheets[number] = _Sheet()
            sheet.open = True
        sheet.used_bytes += needed_bytes
        self._sheet_of[worker_id] = number
        return number

    def _with_room(self, needed_bytes: int) -> int:
        while self._open:
            number = self._open[0]
            sheet = self._sheets.get(number)
            if sheet is None or sheet.used_bytes + needed_bytes <= self._room_bytes:
                return number
            sheet.open = False
            heappop(self._open)
        # Numbers that are free again would be in the heap: all lower ones are taken.
        number = len(self._sheets)
        heappush(self._open, number)
        return number

    # ── Saying ───────────────────────────────────────────────────────────────

    def _change(self, number: int, sheet: _Sheet[V]) -> None:
        if sheet.changed:
            return
        sheet.changed = True
        now_ms = self._registers.now_ms()
        due_ms = now_ms if sheet.said_ms is None else max(now_ms, sheet.said_ms + self._apart_ms())
        self._due.put(number, due_ms)

    def _speak(self, number: int, now_ms: int) -> None:
        sheet = self._sheets[number]
        if not (sheet.values or sheet.changed):
            # It was said that there is nothing; long enough ago for the number to be used again.
            self._due.forget(number)
            del self._sheets[number]
            return
        if sheet.changed:
            sheet.repeat_ms = self._pace.repeat_ms
        key = str(number)
        content = self._encode(sheet.values) if sheet.values else b""
        self._said_bytes += len(content) - sheet.said_bytes
        sheet.said_bytes = len(content)
        last_ms = self._stretched(self._pace.repeat_last_ms)
        if content:
            self._registers.set(self._kind, key, content, ttl_ms=TTL_REPEATS * last_ms)
        else:
            self._registers.clear(self._kind, key)
        sheet.said_ms = now_ms
        sheet.changed = False
        soonest_ms = max(self._apart_ms(), last_ms // _SOONEST)
        wait_ms = min(max(sheet.repeat_ms, soonest_ms), last_ms)
        sheet.repeat_ms *= _BACK_OFF
        self._due.put(number, now_ms + wait_ms)

    def _apart_ms(self) -> int:
        return min(self._pace.apart_max_ms, self._stretched(self._pace.apart_ms))

    def _stretched(self, span_ms: int) -> int:
        """Return the span, or a longer one if all nodes saying
        everything in it is beyond the budget.
        """
        own_bytes = self._said_bytes + _HEAD_BYTES * len(self._sheets)
        needed_ms = own_bytes * max(1, self._speakers()) * 1000 // self._pace.bytes_per_s
        return max(span_ms, needed_ms)
