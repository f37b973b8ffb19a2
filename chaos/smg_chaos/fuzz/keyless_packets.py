"""Keyless packets: hostile datagrams from a sender that has seen a node's traffic but holds no key.

Every maker returns a datagram that differs from those it was made from, except `replayed`.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, TypeAlias

from smg_chaos.fuzz.small_cluster import LABEL, Neighbours, Sealed
from smg_mesh.io.security.keyring import Keyring
from smg_mesh.io.security.ring_key import KEY_BYTES, RingKey
from smg_mesh.swim.wire import HEADER_BYTES

_RANDOM_BYTES_MAX: Final = 1600
_FLIPS_MAX: Final = 8


class Listener:
    """Sender on the network path: it has genuine traffic, foreign keys, and a random source."""

    def __init__(self, cluster: Neighbours, rng: random.Random) -> None:
        self.rng = rng
        self.sealed = bool(cluster.keys)
        self.heard: Sequence[Sealed] = tuple(cluster.heard)
        self.traffic: Sequence[Sealed] = (*cluster.heard, *cluster.overheard)
        foreign = RingKey(rng.randbytes(KEY_BYTES))
        self.own_ids = tuple(key.id for key in cluster.keys) or (bytes(4),)
        self.foreign_ring = Keyring((foreign,), LABEL, first_counter=1 << 40)
        self.other_label = Keyring(cluster.keys, "another", first_counter=1 << 40)
        other_kind = () if cluster.keys else (foreign,)
        self.other_kind = Keyring(other_kind, LABEL, first_counter=1 << 40)

    def any(self) -> Sealed:
        """Return one datagram of genuine traffic."""
        return self.rng.choice(self.traffic)


def _random(listener: Listener) -> bytes:
    return listener.rng.randbytes(listener.rng.randrange(_RANDOM_BYTES_MAX))


def _random_body(listener: Listener) -> bytes:
    """A genuine header, or one with the next counters, before anything."""
    header = listener.any().datagram[:HEADER_BYTES]
    return header + listener.rng.randbytes(listener.rng.randrange(1, _RANDOM_BYTES_MAX))


def _truncated(listener: Listener) -> bytes:
    datagram = listener.any().datagram
    return datagram[: listener.rng.randrange(len(datagram))]


def _extended(listener: Listener) -> bytes:
    more = listener.rng.randrange(1, 64)
    return listener.any().datagram + listener.rng.randbytes(more)


def _flipped(listener: Listener) -> bytes:
    datagram = bytearray(listener.any().datagram)
    flips = listener.rng.randrange(1, _FLIPS_MAX + 1)
    for bit in listener.rng.sample(range(8 * len(datagram)), flips):
        datagram[bit // 8] ^= 1 << bit % 8
    return bytes(datagram)


def _spliced(listener: Listener) -> bytes:
    """The start of one and the end of another: the part cut out is never only what both share."""
    one, other = listener.any().datagram, listener.any().datagram
    cut = listener.rng.randrange(1, min(len(one), len(other)))
    spliced = one[:cut] + other[cut:]
    return spliced if spliced not in (one, other) else spliced[:-1]


def _replayed(listener: Listener) -> bytes:
    return listener.rng.choice(listener.heard).datagram


def _relabelled(listener: Listener) -> bytes:
    """The same seal under another sender, boot, counter or key id."""
    datagram = listener.any().datagram
    start, end = listener.rng.choice(((4, 8), (8, 16), (16, 24), (24, 32), (8, 24), (8, 32)))
    field = listener.any().datagram[start:end]
    if field == datagram[start:end]:
        number = int.from_bytes(field, "big") + listener.rng.randrange(1, 5000)
        field = (number % (1 << 8 * (end - start))).to_bytes(end - start, "big")
    return datagram[:start] + field + datagram[end:]


def _wrong_key(listener: Listener) -> bytes:
    """A lawful packet, sealed with another key; half of them claim to be of a key that is known."""
    datagram = listener.foreign_ring.seal(listener.any().clear)
    if listener.rng.random() < 0.5:
        return datagram
    return datagram[:4] + listener.rng.choice(listener.own_ids) + datagram[8:]


def _wrong_label(listener: Listener) -> bytes:
    return listener.other_label.seal(listener.any().clear)


def _wrong_version(listener: Listener) -> bytes:
    datagram = bytearray(listener.any().datagram)
    datagram[listener.rng.randrange(4)] ^= listener.rng.randrange(1, 256)
    return bytes(datagram)


def _wrong_kind(listener: Listener) -> bytes:
    """Plain where packets are sealed, sealed where they are plain."""
    return listener.other_kind.seal(listener.any().clear)


Maker: TypeAlias = Callable[[Listener], bytes]

MAKERS: Final[Mapping[str, Maker]] = MappingProxyType(
    {
        "random bytes": _random,
        "random body": _random_body,
        "truncated": _truncated,
        "extended": _extended,
        "bits flipped": _flipped,
        "spliced": _spliced,
        "replayed": _replayed,
        "relabelled": _relabelled,
        "wrong key": _wrong_key,
        "wrong label": _wrong_label,
        "wrong version": _wrong_version,
        "plain or sealed": _wrong_kind,
    }
)
