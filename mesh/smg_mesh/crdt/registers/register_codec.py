"""Register codec: writes and dumps of ephemeral registers, as values and as msgpack bytes.

    rumor = msgpack [ttl_ms, boot, seq, content]          a ttl of 0: the register is no more
    dump  = msgpack [[owner, kind, key, boot, seq, ttl_ms, age_ms, content], …]

The order of two writes, (boot, seq), is the owner's own and travels with the content: so what came
by a rumor and what came out of a peer's dump can be compared.
"""

from collections.abc import Iterable, Sequence
from typing import Annotated, Final

import msgspec
from msgspec import Meta

REGISTER_BYTES_MAX: Final = 480
"""With what stands before it, a register fits into one rumor of 512 bytes."""
KIND_CHARS_MAX: Final = 24
KEY_CHARS_MAX: Final = 128
TTL_MS_MAX: Final = 86_400_000
DUMP_BYTES_MAX: Final = 1_000_000
"""A dump is one piece of an exchange. What does not fit is heard when its owner says it again."""

_NAME_CHARS_MAX: Final = 63
_HEAD_BYTES: Final = 40
"""At most what a dump adds to the strings and the content of one register."""

_Natural = Annotated[int, Meta(ge=0)]
_Span = Annotated[int, Meta(ge=0, le=TTL_MS_MAX)]
_Content = Annotated[bytes, Meta(max_length=REGISTER_BYTES_MAX)]


class RegisterError(ValueError):
    """Bytes that are no register, or a register of this node's own that cannot be written so."""


class Register(msgspec.Struct, frozen=True, gc=False):
    """A register of `owner` under (kind, key), heard at `heard_ms` and
    good for `ttl_ms` from then on.
    """

    owner: str
    kind: str
    key: str
    boot: int
    seq: int
    content: bytes
    heard_ms: int
    ttl_ms: int

    @property
    def order(self) -> tuple[int, int]:
        """Of two writes of one register the larger one counts."""
        return (self.boot, self.seq)

    @property
    def until_ms(self) -> int:
        """When it vanishes, unless it is heard again."""
        return self.heard_ms + self.ttl_ms


class RegisterWrite(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One write as it travels by rumor."""

    ttl_ms: _Span
    boot: _Natural
    seq: _Natural
    content: _Content


class DumpedRegister(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One register as it travels in a dump; its age stays with it."""

    owner: Annotated[str, Meta(min_length=1, max_length=_NAME_CHARS_MAX)]
    kind: Annotated[str, Meta(min_length=1, max_length=KIND_CHARS_MAX)]
    key: Annotated[str, Meta(max_length=KEY_CHARS_MAX)]
    boot: _Natural
    seq: _Natural
    ttl_ms: _Span
    age_ms: _Natural
    content: _Content


_encoder: Final = msgspec.msgpack.Encoder()
_saying: Final = msgspec.msgpack.Decoder(RegisterWrite)
_dump: Final = msgspec.msgpack.Decoder(list[DumpedRegister])


def encode_write(register: Register) -> bytes:
    """Return the content of the rumor that tells of this write."""
    return _encoder.encode((register.ttl_ms, register.boot, register.seq, register.content))


def decode_write(content: bytes) -> RegisterWrite:
    """Return what a rumor says; RegisterError for anything else."""
    try:
        return _saying.decode(content)
    except (ValueError, RecursionError) as error:
        raise RegisterError(str(error)) from error


def encode_dump(registers: Iterable[Register], *, now_ms: int) -> bytes:
    """Return the first of them, as many as `DUMP_BYTES_MAX` has room for."""
    rows: list[DumpedRegister] = []
    left_bytes = DUMP_BYTES_MAX
    for item in registers:
        strings = len(item.owner.encode()) + len(item.kind.encode()) + len(item.key.encode())
        left_bytes -= strings + len(item.content) + _HEAD_BYTES
        if left_bytes < 0:
            break
        age_ms = max(0, now_ms - item.heard_ms)
        rows.append(
            DumpedRegister(
                item.owner,
                item.kind,
                item.key,
                item.boot,
                item.seq,
                item.ttl_ms,
                age_ms,
                item.content,
            )
        )
    return _encoder.encode(rows)


def decode_dump(data: bytes, *, now_ms: int) -> Sequence[Register]:
    """Return the registers of a dump that are not over yet; RegisterError for bytes that are none."""
    try:
        rows = _dump.decode(data)
    except (ValueError, RecursionError) as error:
        raise RegisterError(str(error)) from error
    return [
        Register(
            row.owner,
            row.kind,
            row.key,
            row.boot,
            row.seq,
            row.content,
            now_ms - row.age_ms,
            row.ttl_ms,
        )
        for row in rows
        if row.age_ms < row.ttl_ms
    ]
