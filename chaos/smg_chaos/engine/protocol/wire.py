"""Wire format of protobuf, encoded by hand where it is hot: a streamed token is four
concatenations.

Fields may stand in any order and a submessage is its fields one after the other, so a chunk is put
together from a head (the ids and the count, remembered per position of an answer) and a tail (what
is the same for all chunks of a request). Field numbers come from the contract's own descriptors.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

_LENGTH_DELIMITED: Final = 2
_SMALL: Final = tuple(
    bytes((value,)) if value < 0x80 else bytes((value & 0x7F | 0x80, value >> 7))
    for value in range(0x4000)
)


def varint(value: int) -> bytes:
    """Return a non-negative integer as a varint."""
    if value < 0x4000:
        return _SMALL[value]
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


class Field:
    """A numbered field; `of` writes nothing for zero, as proto3 does."""

    __slots__ = ("_bytes_tag", "_tag")

    def __init__(self, number: int) -> None:
        self._tag = varint(number << 3)
        self._bytes_tag = varint(number << 3 | _LENGTH_DELIMITED)

    def of(self, value: int) -> bytes:
        """Return the field with an integer in it, nothing for zero."""
        return self._tag + varint(value) if value else b""

    def present(self, value: int) -> bytes:
        """Return the field with an integer in it, zero too: for optional fields and oneofs."""
        return self._tag + varint(value)

    def packed(self, values: Sequence[int]) -> bytes:
        """Return the field with a packed list in it, nothing for an empty one."""
        if not values:
            return b""
        if len(values) == 1:
            body = varint(values[0])
        else:
            body = b"".join([varint(value) for value in values])
        return self._bytes_tag + varint(len(body)) + body

    def holding(self, body: bytes) -> bytes:
        """Return the field with bytes, text or a submessage in it, also when that is empty."""
        return self._bytes_tag + varint(len(body)) + body

    def text(self, value: str) -> bytes:
        """Return the field with text in it, nothing for the empty string."""
        return self.holding(value.encode()) if value else b""


class Absent(Field):
    """A field the contract does not have: writes nothing."""

    def __init__(self) -> None:
        super().__init__(1)

    def of(self, value: int) -> bytes:
        """Return nothing."""
        return b""

    def present(self, value: int) -> bytes:
        """Return nothing."""
        return b""

    def packed(self, values: Sequence[int]) -> bytes:
        """Return nothing."""
        return b""

    def holding(self, body: bytes) -> bytes:
        """Return nothing."""
        return b""

    def text(self, value: str) -> bytes:
        """Return nothing."""
        return b""


def field_of(descriptor: Any, *names: str) -> Field:
    """Return the first field of a message descriptor that has one of these names, else `Absent`."""
    for name in names:
        found = descriptor.fields_by_name.get(name)
        if found is not None:
            return Field(found.number)
    return Absent()


def require(descriptor: Any, *names: str) -> Field:
    """Return the first field that has one of these names; the contract must have one of them."""
    found = field_of(descriptor, *names)
    assert not isinstance(found, Absent), f"{descriptor.full_name} has none of {names}"
    return found


def joined(parts: Iterable[bytes]) -> bytes:
    """Return the parts as one."""
    return b"".join(parts)


def string_field(body: bytes, number: int) -> str:
    """Return string field `number` of a message that holds only strings; ValueError for garbage."""
    at, found = 0, ""
    while at < len(body):
        key, at = _read_varint(body, at)
        length, at = _read_varint(body, at)
        if key & 7 != _LENGTH_DELIMITED or at + length > len(body):
            raise ValueError("not a message of strings")
        if key >> 3 == number:
            found = body[at : at + length].decode()
        at += length
    return found


def _read_varint(body: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(body) and shift < 64:
        byte = body[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise ValueError("a varint that does not end")
