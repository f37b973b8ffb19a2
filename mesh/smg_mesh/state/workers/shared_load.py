"""Shared load: what all nodes have open at each worker, so that many nodes balance like one.

    register l/N = msgpack [short ids end to end, [other ids], [requests, tokens, requests, tokens, …]]

The numbers are what is open now, not what changed: a lost rumor heals with the next one, and nothing
can be counted twice. A node that stops saying anything is forgotten after four repeats, and so is what
it had open. Reading is one look into a dict that every rumor keeps up to date.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Final, TypeAlias

import msgspec
from msgspec import Meta

from smg_mesh.state.workers.statement_reader import Statements
from smg_mesh.state.workers.statement_writer import Pace, StatementWriter
from smg_mesh.state.workers.worker_ids import (
    WORKER_ID_CHARS_MAX,
    pack_ids,
    packed_bytes,
    unpack_ids,
)
from smg_mesh.sync.bound_views import BoundRegisters

Load: TypeAlias = tuple[int, int]
"""Open requests, and their prompt tokens that are not processed yet."""
Heard: TypeAlias = Callable[[Sequence[str]], None]
"""Hears of workers whose sums over the others changed, sorted. May read and must not publish."""

PACE: Final = Pace(
    apart_ms=250, apart_max_ms=10_000, repeat_ms=1_000, repeat_last_ms=1_000, bytes_per_s=4_096
)
"""Four times a second where few nodes open requests at few workers: ten nodes and 16 workers say it at 1.6 Hz."""
REQUESTS_MAX: Final = 0xFFFF
TOKENS_MAX: Final = 0xFFFF_FFFF

_KIND: Final = "l"
_ROOM_BYTES: Final = 470
_COUNTS_BYTES: Final = 8
"""At most, of both numbers: a statement never outgrows its place."""
_NOTHING: Final[Load] = (0, 0)


class _Content(msgspec.Struct, frozen=True, array_like=True):
    """What a register says."""

    short: bytes
    others: list[str]
    numbers: list[Annotated[int, Meta(ge=0, le=TOKENS_MAX)]]


_encoder: Final = msgspec.msgpack.Encoder()
_decoder: Final = msgspec.msgpack.Decoder(_Content)


class LoadView:
    """Load of this node as it is said, and load of the others as it is heard."""

    def __init__(self, registers: BoundRegisters, me: str) -> None:
        self._sums: dict[str, Load] = {}
        self._others: Final = MappingProxyType(self._sums)
        self._watchers: list[Heard] = []
        self._heard: Final = Statements(
            registers, _KIND, me, decode=decode_loads, changed=self._count, settled=self._tell
        )
        self._sheets: Final[StatementWriter[Load]] = StatementWriter(
            registers,
            _KIND,
            encode=encode_loads,
            item_bytes=lambda worker_id: packed_bytes(worker_id) + _COUNTS_BYTES,
            room_bytes=_ROOM_BYTES,
            pace=PACE,
            speakers=lambda: self._heard.speakers + 1,
        )

    # ── Saying ───────────────────────────────────────────────────────────────

    def publish(self, loads: Mapping[str, Load]) -> int | None:
        """Let the others know what this node has open, all of it: workers that are not named have nothing.

        May be called as often as it changes: what comes too early waits for `refresh`. Returns when to call that.
        """
        for worker_id in [worker_id for worker_id in self._sheets if worker_id not in loads]:
            self._sheets.drop(worker_id)
        for worker_id, (requests, tokens) in loads.items():
            if requests <= 0 and tokens <= 0:
                self._sheets.drop(worker_id)
            elif 0 < len(worker_id) <= WORKER_ID_CHARS_MAX:
                load = (_clamped(requests, REQUESTS_MAX), _clamped(tokens, TOKENS_MAX))
                self._sheets.put(worker_id, load)
        return self.refresh()

    def refresh(self) -> int | None:
        """Say what waits or would lapse; return when to call again, None while nothing is open."""
        return self._sheets.say()

    # ── Hearing ──────────────────────────────────────────────────────────────

    def others(self) -> Mapping[str, Load]:
        """Return what all other living nodes have open, by worker; kept up to date, never copied."""
        return self._others

    def other(self, worker_id: str) -> Load:
        """Return what all other living nodes have open at a worker."""
        return self._sums.get(worker_id, _NOTHING)

    def watch(self, heard: Heard) -> None:
        """Tell `heard` of every change of `others` from now on."""
        self._watchers.append(heard)

    @property
    def garbage(self) -> int:
        """Registers that made no sense."""
        return self._heard.garbage

    def _count(self, worker_id: str, before: Load | None, after: Load | None) -> None:
        requests, tokens = self._sums.get(worker_id, _NOTHING)
        if before is not None:
            requests, tokens = requests - before[0], tokens - before[1]
        if after is not None:
            requests, tokens = requests + after[0], tokens + after[1]
        assert requests >= 0
        assert tokens >= 0
        if requests or tokens:
            self._sums[worker_id] = (requests, tokens)
        else:
            self._sums.pop(worker_id, None)

    def _tell(self, worker_ids: list[str]) -> None:
        told = sorted(worker_ids)
        for heard in self._watchers:
            heard(told)


def encode_loads(loads: Mapping[str, Load]) -> bytes:
    """Return the content of a register."""
    short, others = pack_ids(loads)
    numbers: list[int] = []
    for worker_id in unpack_ids(short, others):
        numbers += loads[worker_id]
    return _encoder.encode(_Content(short, list(others), numbers))


def decode_loads(content: bytes) -> Mapping[str, Load]:
    """Return what a register says; ValueError for anything else."""
    try:
        found = _decoder.decode(content)
    except RecursionError as error:
        raise ValueError("too deep") from error
    worker_ids, numbers = unpack_ids(found.short, found.others), found.numbers
    if len(numbers) != 2 * len(worker_ids):
        raise ValueError("not two numbers for each worker")
    loads = zip(numbers[::2], numbers[1::2], strict=True)
    return dict(zip(worker_ids, loads, strict=True))


def _clamped(number: int, most: int) -> int:
    return max(0, min(number, most))
