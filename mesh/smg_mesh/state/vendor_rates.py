"""Vendor rates: what nodes know of limits that vendors keep for accounts, so that all nodes spend them together.

    register v/N = msgpack [[id, what, row], …]     row = [0, wanted, limit, remaining, full_in, age, window]   a bucket
                                                        | [1, left]                                             a pause

An account is known by 8 bytes that tell nothing of its key. Times travel as spans, so clocks of nodes need not agree:
a bucket that comes late looks younger by the way it came. A node says its own news only, at most four times a second
per register, and what is not said again is forgotten. Rows that cannot be true are not taken, nor is the register that
has one. Accounts that nobody uses cost nothing.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from types import MappingProxyType
from typing import Annotated, Final, TypeAlias

import msgspec
from msgspec import Meta

from smg_mesh.crdt.registers.register_codec import Register
from smg_mesh.state.workers.statement_writer import Pace, StatementWriter
from smg_mesh.sync.bound_views import BoundRegisters

AMOUNT_MAX: Final = 10**15
SPAN_MAX_MS: Final = 31 * 86_400_000
"""Vendors close accounts for hours, and for the rest of a month."""
AGE_MAX_MS: Final = 600_000
"""Older news of a bucket say nothing of it."""
WHAT_MAX_CHARS: Final = 40
ID_BYTES: Final = 8
ROWS_MAX: Final = 4_096
"""So many rows a node says; of more those of the first ids."""
PACE: Final = Pace(
    apart_ms=250, apart_max_ms=10_000, repeat_ms=1_000, repeat_last_ms=2_000, bytes_per_s=8_192
)

_KIND: Final = "v"
_WHAT: Final = r"!?[a-z][a-z-]{0,38}"
_NAME: Final = re.compile(f"[0-9a-f]{{16}}/{_WHAT}")
_ROOM_BYTES: Final = 470
_ROW_BYTES: Final = 38
"""At most, of all numbers of a row with what stands between them."""

_Amount = Annotated[int, Meta(ge=0, le=AMOUNT_MAX)]
_Span = Annotated[int, Meta(ge=0, le=SPAN_MAX_MS)]
_Age = Annotated[int, Meta(ge=0, le=AGE_MAX_MS)]
Moment: TypeAlias = int
"""Milliseconds of this machine's wall clock."""


class SharedBucket(msgspec.Struct, frozen=True, array_like=True, tag=0):
    """One bucket of one key: what its vendor told last, and how much of it is wanted in a second.

    `limit` is 0 where who says it was told nothing by the vendor itself.
    """

    wanted: int
    limit: int = 0
    remaining: int = 0
    full_at_ms: Moment = 0
    seen_ms: Moment = 0
    window: bool = False


class SharedPause(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """A key, or a model, that is left alone until then."""

    until_ms: Moment


VendorRow: TypeAlias = SharedBucket | SharedPause
Rows: TypeAlias = Mapping[str, VendorRow]
"""By `ID/WHAT`: 16 hexadecimal digits, and the name of a bucket or of a reason."""
Heard: TypeAlias = Callable[[Sequence[str]], None]
"""Hears the names of rows of others that changed, sorted. May read and must not publish."""


class _Bucket(msgspec.Struct, frozen=True, array_like=True, tag=0):
    wanted: _Amount
    limit: _Amount
    remaining: _Amount
    full_in_ms: _Span
    age_ms: _Age
    window: bool


class _Pause(msgspec.Struct, frozen=True, array_like=True, tag=1):
    left_ms: _Span


class _Said(msgspec.Struct, frozen=True, array_like=True):
    account: Annotated[bytes, Meta(min_length=ID_BYTES, max_length=ID_BYTES)]
    what: Annotated[str, Meta(pattern=f"^{_WHAT}$", max_length=WHAT_MAX_CHARS)]
    row: _Bucket | _Pause


_encoder: Final = msgspec.msgpack.Encoder()
_decoder: Final = msgspec.msgpack.Decoder(list[_Said])


def row_name(account: bytes, what: str) -> str:
    """Return the name of a row."""
    return f"{account.hex()}/{what}"


def merged(rows: Iterable[VendorRow]) -> VendorRow | None:
    """Return what several say of one thing: the latest news, all that is wanted, the longest pause; None of nothing."""
    found: VendorRow | None = None
    for row in rows:
        match found, row:
            case SharedBucket(), SharedBucket():
                later = row if row.seen_ms > found.seen_ms and row.limit else found
                wanted = min(found.wanted + row.wanted, AMOUNT_MAX)
                found = msgspec.structs.replace(later, wanted=wanted)
            case SharedPause(), SharedPause():
                found = row if row.until_ms > found.until_ms else found
            case None, _:
                found = row
            case _:
                # Names of buckets and of reasons differ: one of the two is a mistake of who said it.
                continue
    return found


def merged_rows(parts: Iterable[Rows]) -> dict[str, VendorRow]:
    """Return what several say of many things."""
    by_name: dict[str, list[VendorRow]] = {}
    for part in parts:
        for name, row in part.items():
            by_name.setdefault(name, []).append(row)
    merged_all = ((name, merged(rows)) for name, rows in by_name.items())
    return {name: row for name, row in merged_all if row is not None}


class VendorRates:
    """Rows of this node as they are said, and rows of the others as they are heard."""

    def __init__(
        self, registers: BoundRegisters, me: str, *, wall_ms: Callable[[], Moment]
    ) -> None:
        self._registers: Final = registers
        self._me: Final = me
        self._wall_ms: Final = wall_ms
        self._said: dict[tuple[str, str], Rows] = {}
        self._others: dict[str, VendorRow] = {}
        self._watchers: list[Heard] = []
        self.garbage = 0
        """Registers that made no sense."""
        self._sheets: Final[StatementWriter[VendorRow]] = StatementWriter(
            registers,
            _KIND,
            encode=lambda rows: encode_rows(rows, wall_ms()),
            item_bytes=lambda name: ID_BYTES + len(name.partition("/")[2]) + _ROW_BYTES,
            room_bytes=_ROOM_BYTES,
            pace=PACE,
            speakers=lambda: len({owner for owner, _ in self._said}) + 1,
        )
        for register in registers.items(_KIND):
            self._hear(register, False)
        registers.watch(_KIND, self._hear)

    # ── Saying ───────────────────────────────────────────────────────────────

    def publish(self, rows: Rows) -> int | None:
        """Let the others know these, and nothing else; returns when to call `refresh`, None for never.

        What a vendor calls by no proper name is left out.
        """
        named = (item for item in sorted(rows.items()) if _NAME.fullmatch(item[0]))
        told = dict(islice(named, ROWS_MAX))
        for name in [name for name in self._sheets if name not in told]:
            self._sheets.drop(name)
        for name, row in told.items():
            self._sheets.put(name, row)
        return self.refresh()

    def refresh(self) -> int | None:
        """Say what waits or would lapse; return when to call again, None while there is nothing to say."""
        return self._sheets.say()

    # ── Hearing ──────────────────────────────────────────────────────────────

    def others(self) -> Rows:
        """Return what all other living nodes say, as one."""
        return MappingProxyType(self._others)

    def watch(self, heard: Heard) -> None:
        """Tell `heard` of every change of `others` from now on."""
        self._watchers.append(heard)

    def _hear(self, register: Register, gone: bool) -> None:
        if register.owner == self._me:
            return
        place = (register.owner, register.key)
        before = self._said.pop(place, {})
        if not gone and register.content:
            late_ms = self._registers.now_ms() - register.heard_ms
            try:
                self._said[place] = decode_rows(register.content, self._wall_ms() - late_ms)
            except ValueError:
                self.garbage += 1
        changed = [
            name for name in sorted({**before, **self._said.get(place, {})}) if self._count(name)
        ]
        if changed:
            for heard in self._watchers:
                heard(changed)

    def _count(self, name: str) -> bool:
        """Put what is said of one thing together anew; return whether that is something else than before."""
        row = merged(rows[name] for rows in self._said.values() if name in rows)
        if row == self._others.get(name):
            return False
        if row is None:
            del self._others[name]
        else:
            self._others[name] = row
        return True


def encode_rows(rows: Rows, now_ms: Moment) -> bytes:
    """Return the content of a register that is said now."""
    said = []
    for name, row in rows.items():
        account, _, what = name.partition("/")
        said.append(_Said(bytes.fromhex(account), what, _spans(row, now_ms)))
    return _encoder.encode(said)


def decode_rows(content: bytes, now_ms: Moment) -> Rows:
    """Return what a register that was said at `now_ms` says; ValueError for anything that cannot be true."""
    try:
        found = _decoder.decode(content)
    except RecursionError as error:
        raise ValueError("too deep") from error
    return {row_name(one.account, one.what): _moments(one, now_ms) for one in found}


def _spans(row: VendorRow, now_ms: Moment) -> _Bucket | _Pause:
    if isinstance(row, SharedPause):
        return _Pause(_within(row.until_ms - now_ms, SPAN_MAX_MS))
    age_ms = now_ms - row.seen_ms
    told = row.limit > 0 and age_ms <= AGE_MAX_MS
    limit = _within(row.limit, AMOUNT_MAX) if told else 0
    return _Bucket(
        _within(row.wanted, AMOUNT_MAX),
        limit,
        _within(row.remaining, limit),
        _within(row.full_at_ms - now_ms, SPAN_MAX_MS) if told else 0,
        _within(age_ms, AGE_MAX_MS) if told else 0,
        told and row.window,
    )


def _moments(one: _Said, now_ms: Moment) -> VendorRow:
    row = one.row
    if isinstance(row, _Pause) != one.what.startswith("!"):
        raise ValueError("a bucket with the name of a reason, or a reason with that of a bucket")
    if isinstance(row, _Pause):
        return SharedPause(now_ms + row.left_ms)
    if row.remaining > row.limit:
        raise ValueError("more is left than there ever is")
    if not row.limit:
        return SharedBucket(row.wanted)
    full_at_ms, seen_ms = now_ms + row.full_in_ms, now_ms - row.age_ms
    return SharedBucket(row.wanted, row.limit, row.remaining, full_at_ms, seen_ms, row.window)


def _within(number: int, most: int) -> int:
    return max(0, min(number, most))
