"""Keyed packets: hostile packet bodies from a sender that holds the key, malformed ones and valid
ones.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import msgspec

from smg_chaos.fuzz.lawful_packets import Liar
from smg_chaos.fuzz.small_cluster import Neighbours
from smg_mesh.swim import wire
from smg_mesh.swim.wire import BODY_BYTES_MAX, HEADER_BYTES

_FLIPS_MAX: Final = 4
_DEPTH_MAX: Final = 6
_ODD: Final[tuple[Any, ...]] = (
    None,
    True,
    0,
    -1,
    1 << 32,
    (1 << 64) - 1,
    -(1 << 63),
    1.5,
    "",
    "a",
    "x" * 64,
    "A b",
    "\x00",
    "é" * 32,
    b"",
    bytes(16),
    bytes(513),
    [],
    [[]],
    [0] * 65,
    {},
    {"a": 1},
)
_HUGE: Final = (
    b"\xdd\xff\xff\xff\xff",
    b"\xdf\xff\xff\xff\xff",
    b"\xc6\xff\xff\xff\xff",
    b"\xdb\xff\xff\xff\xff",
    b"\xc9\xff\xff\xff\xff\x01",
    b"\xdc\xff\xff",
    b"\x91" * 200,
    b"\x81\xa1a" * 100,
)


class Insider:
    """Sender that holds the key: mutates genuine clear packets, and makes valid but false ones, at
    random.
    """

    def __init__(self, cluster: Neighbours, rng: random.Random) -> None:
        self.rng = rng
        self.liar = Liar(rng)
        self.clear: Sequence[bytes] = tuple(
            item.clear for item in (*cluster.heard, *cluster.overheard)
        )

    def any(self) -> bytes:
        """Return a clear packet: a genuine one or a false one."""
        if self.rng.random() < 0.5:
            return self.rng.choice(self.clear)
        return wire.encode(self.liar.packet())


def _lie(insider: Insider) -> bytes:
    return wire.encode(insider.liar.packet())


def _repeated(insider: Insider) -> bytes:
    """Genuine messages of another member, sent once more under a new number."""
    return insider.rng.choice(insider.clear)


def _flipped(insider: Insider) -> bytes:
    packet = bytearray(insider.any())
    bits = range(8 * HEADER_BYTES, 8 * len(packet))
    for bit in insider.rng.sample(bits, insider.rng.randrange(1, _FLIPS_MAX + 1)):
        packet[bit // 8] ^= 1 << bit % 8
    return bytes(packet)


def _truncated(insider: Insider) -> bytes:
    packet = insider.any()
    return packet[: insider.rng.randrange(HEADER_BYTES + 1, len(packet))]


def _spliced(insider: Insider) -> bytes:
    one, other = insider.any(), insider.any()
    rng = insider.rng
    cut, rest = rng.randrange(HEADER_BYTES, len(one)), rng.randrange(HEADER_BYTES, len(other))
    return _fit(one[:cut] + other[rest:])


def _random_body(insider: Insider) -> bytes:
    size = insider.rng.randrange(1, BODY_BYTES_MAX + 1)
    return insider.any()[:HEADER_BYTES] + insider.rng.randbytes(size)


def _huge_length(insider: Insider) -> bytes:
    """A length, or a depth, that exceeds any memory."""
    packet = insider.any()
    at = insider.rng.randrange(HEADER_BYTES, len(packet))
    return _fit(packet[:at] + insider.rng.choice(_HUGE) + packet[at:])


def _reshaped(insider: Insider) -> bytes:
    """Well-formed msgpack with one value replaced by another somewhere."""
    packet = insider.any()
    body = msgspec.msgpack.decode(packet[HEADER_BYTES:])
    for _ in range(insider.rng.randrange(1, 3)):
        _change(body, insider.rng)
    return _fit(packet[:HEADER_BYTES] + msgspec.msgpack.encode(body))


def _change(body: list[Any], rng: random.Random) -> None:
    """Replace one value at some depth, in place."""
    inner = body
    for _ in range(rng.randrange(_DEPTH_MAX)):
        lists = [item for item in inner if isinstance(item, list) and item]
        if not lists:
            break
        inner = rng.choice(lists)
    at = rng.randrange(len(inner))
    match rng.randrange(5):
        case 0:
            del inner[at]
        case 1:
            inner.insert(at, deepcopy(rng.choice(_ODD)))
        case 2:
            inner.append(inner[at])
        case 3:
            other = rng.randrange(len(inner))
            inner[at], inner[other] = inner[other], inner[at]
        case _:
            inner[at] = deepcopy(rng.choice(_ODD))
    if not body:
        body.append(None)


def _fit(packet: bytes) -> bytes:
    return packet[: wire.CLEAR_BYTES_MAX]


Maker: TypeAlias = Callable[[Insider], bytes]

MAKERS: Final[Mapping[str, Maker]] = MappingProxyType(
    {
        "lies": _lie,
        "repeated": _repeated,
        "bits flipped": _flipped,
        "truncated": _truncated,
        "spliced": _spliced,
        "random body": _random_body,
        "huge length": _huge_length,
        "reshaped": _reshaped,
    }
)
