"""Table rows: rows, updates and summaries of a table, as values and as msgpack bytes.

row     = msgpack [key, content, hlc, owner, ttl_ms]          no content: the row was removed
update  = msgpack [floor_ms, [row, …]]
summary = msgpack [floor_ms, 8 bytes of each row's digest, one after the other]
"""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Annotated, Final, TypeAlias

import msgspec
from msgspec import Meta

from smg_mesh.crdt.hybrid_clock import hlc_ms

ROW_BYTES_MAX: Final = 448
"""With what stands before it, a row fits into one rumor of 512 bytes."""
KEY_CHARS_MAX: Final = 128
TTL_MS_MAX: Final = 30 * 86_400_000
UPDATE_BYTES_MAX: Final = 1_000_000
"""Of one shard; the next exchange goes on where that ends."""
DIGEST_BYTES: Final = 16
MARK_BYTES: Final = 8
"""Of each row's digest, in a summary: a collision hides one row until either is written again."""

_COUNTER_BITS: Final = 16
"""Of a hybrid time, below its milliseconds."""

_Key = Annotated[str, Meta(min_length=1, max_length=KEY_CHARS_MAX)]
_Name = Annotated[str, Meta(min_length=1, max_length=63)]
_Natural = Annotated[int, Meta(ge=0)]
_Content = Annotated[bytes, Meta(max_length=ROW_BYTES_MAX)]
_Span = Annotated[int, Meta(gt=0, le=TTL_MS_MAX)]

Order: TypeAlias = tuple[int, str, bytes, int]


class TableError(ValueError):
    """Bytes that are no row, or a row that cannot be written so; nothing has changed."""


class Row(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A row that `owner` wrote under a key at the hybrid time `hlc`,
    good for `ttl_ms` from then on.
    """

    key: _Key
    content: _Content
    hlc: _Natural
    owner: _Name
    ttl_ms: _Span

    @property
    def order(self) -> Order:
        """Of two rows of one key the larger one counts: (hlc, owner), and whatever else to be total."""
        return (self.hlc, self.owner, self.content, self.ttl_ms)

    @property
    def written_ms(self) -> int:
        """When it was written, by its writer's clock."""
        return hlc_ms(self.hlc)

    @property
    def end(self) -> int:
        """The hybrid time at which it is over."""
        return self.hlc + (self.ttl_ms << _COUNTER_BITS)

    @property
    def ends_ms(self) -> int:
        """When it is over, by the wall clock."""
        return hlc_ms(self.end)


class Update(msgspec.Struct, frozen=True, array_like=True):
    """Rows of one shard; those that ended before the floor are gone there."""

    floor_ms: _Natural
    rows: list[Row]


class Summary(msgspec.Struct, frozen=True, array_like=True):
    """Digests of the rows that one side holds."""

    floor_ms: _Natural
    marks: bytes


_encoder: Final = msgspec.msgpack.Encoder()
_row: Final = msgspec.msgpack.Decoder(Row)
_update: Final = msgspec.msgpack.Decoder(Update)
_summary: Final = msgspec.msgpack.Decoder(Summary)


def encode_row(row: Row) -> bytes:
    """Return the bytes of a row: equal rows have equal bytes."""
    return _encoder.encode(row)


def decode_row(data: bytes) -> Row:
    """Return the row; TableError for any bytes that are none."""
    try:
        return _row.decode(data)
    except (ValueError, RecursionError) as error:
        raise TableError(str(error)) from error


def digest_of(data: bytes) -> bytes:
    """Return the digest of an encoded row."""
    return blake2b(data, digest_size=DIGEST_BYTES).digest()


def encode_update(floor_ms: int, rows: Sequence[Row]) -> bytes:
    """Return the bytes of an update."""
    return _encoder.encode(Update(floor_ms, list(rows)))


def decode_update(data: bytes) -> Update:
    """Return the update; TableError for any bytes that are none."""
    try:
        return _update.decode(data)
    except (ValueError, RecursionError) as error:
        raise TableError(str(error)) from error


def encode_summary(floor_ms: int, marks: bytes) -> bytes:
    """Return the bytes of a summary."""
    return _encoder.encode(Summary(floor_ms, marks))


def decode_summary(data: bytes) -> Summary:
    """Return the summary; TableError for any bytes that are none."""
    try:
        found = _summary.decode(data)
    except (ValueError, RecursionError) as error:
        raise TableError(str(error)) from error
    if len(found.marks) % MARK_BYTES:
        raise TableError("half a mark")
    return found
