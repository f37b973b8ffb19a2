"""Entry: one write of one owner to one key, as a value and as msgpack bytes.

    bytes = msgpack [hlc, boot, seen, value | nil]

`hlc` is the hybrid time of the write (48 bits of milliseconds, 16 of a counter), `boot` the writer's life,
`seen` the hlc of what the write replaced (0: nothing), and no value means that the key was removed.
"""

from dataclasses import dataclass
from typing import Annotated, Final

import msgspec
from msgspec import Meta

HLC_MAX: Final = (1 << 64) - 1

_U64 = Annotated[int, Meta(ge=0)]


class EntryError(ValueError):
    """Bytes that are no entry."""


class Entry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One write. `value` is None for a removal."""

    hlc: _U64
    boot: _U64
    seen: _U64
    value: bytes | None


@dataclass(frozen=True, slots=True)
class Held:
    """An entry with its owner and its key, as views show it.

    `future`: it was written by a clock that is more than a minute ahead of ours, and does not count yet.
    """

    key: str
    owner: str
    entry: Entry
    future: bool = False

    @property
    def value(self) -> bytes | None:
        """What was written; None for a removal."""
        return self.entry.value

    @property
    def version(self) -> int:
        """The hybrid time of the write: what a compare-and-set names."""
        return self.entry.hlc

    @property
    def order(self) -> tuple[int, str]:
        """What decides between two entries of one key: the larger wins."""
        return (self.entry.hlc, self.owner)


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Entry)


def encode_entry(entry: Entry) -> bytes:
    """Return the bytes of an entry."""
    return _encoder.encode(entry)


def decode_entry(data: bytes) -> Entry:
    """Return the entry; EntryError for any bytes that are none."""
    try:
        return _decoder.decode(data)
    except (msgspec.DecodeError, RecursionError) as error:
        raise EntryError(str(error)) from error
