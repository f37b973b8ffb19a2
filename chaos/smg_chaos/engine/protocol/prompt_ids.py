"""Prompt ids kept as packed varints (protobuf wire format), and decoded only where they are needed.

A list of 8,000 Python integers costs more than everything else a request does. A long prompt
therefore stays packed (varints, as protobuf wrote them): how many ids there are, and whether all of
them are below the vocabulary's size, can be told from the bytes, and a prompt that was seen before
is not even decoded for its block keys.
"""

from array import array
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import product
from typing import Final, Generic, TypeVar, overload

import xxhash

FoundT = TypeVar("FoundT")
PACKED_FROM_BYTES: Final = 2048
_SEEN_MAX: Final = 256
_CONTINUED: Final = bytes(range(0x80, 0x100))
_LENGTH_DELIMITED: Final = 2


class PackedIds(Sequence[int]):
    """Ids behind their packed bytes; `decode` turns those into integers."""

    __slots__ = ("_decode", "_ids", "_length", "digest", "raw")

    def __init__(self, raw: bytes, decode: Callable[[bytes], Sequence[int]]) -> None:
        self.raw = raw
        self.digest: int = xxhash.xxh3_128_intdigest(raw)
        self._decode = decode
        self._ids: array[int] | None = None
        # Every id ends in the one byte of it that is below 0x80.
        self._length = len(raw.translate(None, _CONTINUED))

    def decoded(self) -> "array[int]":
        """Return the ids, decoded once."""
        if self._ids is None:
            self._ids = array("I", self._decode(self.raw))
        return self._ids

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> int: ...

    @overload
    def __getitem__(self, index: slice) -> "array[int]": ...

    def __getitem__(self, index: int | slice) -> "int | array[int]":
        if index == -1 and self._ids is None and self.raw:
            return self._last()
        return self.decoded()[index]

    def _last(self) -> int:
        """Return the last id, decoded from its own bytes alone: the end of a prompt can be read
        without the rest.
        """
        raw, at = self.raw, len(self.raw) - 1
        while at and raw[at - 1] >= 0x80:
            at -= 1
        return _varint(raw, at)[0]

    def __iter__(self) -> Iterator[int]:
        return iter(self.decoded())

    def surely_below(self, limit: int) -> bool:
        """Return whether no id can reach `limit`, from the bytes alone; False means: decode them to
        know.
        """
        return not any(
            pattern in sorted_raw
            for table, patterns in _too_large(limit)
            for sorted_raw in [self.raw.translate(table)]
            for pattern in patterns
        )


@lru_cache(maxsize=16)
def _too_large(limit: int) -> tuple[tuple[bytes, tuple[bytes, ...]], ...]:
    """Return tables that sort bytes into classes, each with the patterns of ids that may reach
    `limit`.

    In base 128, lowest digit first and every digit but the last marked, an id is too large if it
    has more digits than `limit`, or as many and a larger last one, or the same last one and a
    second to last that is not smaller. (What is left are ids that share both: looked at one by
    one.)
    """
    digits = []
    while limit >= 0x80:
        digits.append(limit & 0x7F)
        limit >>= 7
    longer = b"c" * (len(digits) + 1)
    if not digits:
        return ((b"l" * limit + b"h" * (0x80 - limit) + b"c" * 0x80, (b"h", longer)),)
    larger = b"l" * (limit + 1) + b"h" * (0x7F - limit) + b"c" * 0x80
    equal = b"l" * limit + b"e" + b"l" * (0x7F - limit)
    equal += b"c" * digits[-1] + b"C" * (0x80 - digits[-1])
    lower = product((b"c", b"C"), repeat=len(digits) - 1)
    return (
        (larger, (b"c" * len(digits) + b"h", longer)),
        (equal, tuple(b"".join(some) + b"Ce" for some in lower)),
    )


class Lately(Generic[FoundT]):
    """Cache of what was computed from recent long prompts, by their bytes."""

    def __init__(self) -> None:
        self._found: OrderedDict[int, FoundT] = OrderedDict()

    def of(self, ids: Sequence[int], look: Callable[[Sequence[int]], FoundT]) -> FoundT:
        """Return the result of `look` for a prompt, cached for the same one."""
        if not isinstance(ids, PackedIds):
            return look(ids)
        found = self._found
        if ids.digest in found:
            found.move_to_end(ids.digest)
        else:
            found[ids.digest] = look(ids)
            if len(found) > _SEEN_MAX:
                found.popitem(last=False)
        return found[ids.digest]


class Greatest:
    """Greatest ids of prompts for which the check of the bytes is not enough."""

    def __init__(self) -> None:
        self._known: Lately[int] = Lately()

    def all_below(self, ids: Sequence[int], limit: int) -> bool:
        """Return whether every id is below `limit`."""
        if isinstance(ids, PackedIds) and ids.surely_below(limit):
            return True
        return self._known.of(ids, _greatest) < limit


def _greatest(ids: Sequence[int]) -> int:
    return max(ids, default=-1)


def fields(body: bytes) -> Iterator[tuple[int, int, int, int]]:
    """Yield (number, wire type, start of the field, start of its value) of a message's fields.

    A length-delimited value ends where the next field starts; the last item is (0, 0, end, end).
    ValueError for bytes that are no message.
    """
    at = 0
    while at < len(body):
        begun = at
        key, at = _varint(body, at)
        kind = key & 7
        if kind == _LENGTH_DELIMITED:
            length, at = _varint(body, at)
            yield key >> 3, kind, begun, at
            at += length
        elif kind == 0:
            yield key >> 3, kind, begun, at
            _, at = _varint(body, at)
        elif kind in (1, 5):
            yield key >> 3, kind, begun, at
            at += 8 if kind == 1 else 4
        else:
            raise ValueError("not a message")
    if at > len(body):
        raise ValueError("a field is cut off")
    yield 0, 0, at, at


def _varint(body: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(body) and shift < 64:
        byte = body[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise ValueError("a varint that does not end")


def cut_out(body: bytes, outer: int, inner: int) -> tuple[bytes, bytes] | None:
    """Return (the body without it, the value) of packed field `inner` inside message field `outer`.

    None where the field is not there exactly once: then the generated message must read it.
    """
    found = _only(body, outer)
    if found is None:
        return None
    start, value, end = found
    message = body[value:end]
    packed = _only(message, inner)
    if packed is None:
        return None
    return body[:start] + body[end:], message[packed[1] : packed[2]]


def _only(body: bytes, number: int) -> tuple[int, int, int] | None:
    found: tuple[int, int, int] | None = None
    pending: tuple[int, int] | None = None
    for field, kind, start, value in fields(body):
        if pending is not None:
            found = (*pending, start)
            pending = None
        if field == number:
            if found is not None or kind != _LENGTH_DELIMITED:
                return None
            pending = (start, value)
    return found
