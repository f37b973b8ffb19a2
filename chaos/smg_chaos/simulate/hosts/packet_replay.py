"""Packet replay: a wiretap that keeps a sample of datagrams, to send them again later."""

from random import Random
from typing import Final

from smg_mesh.swim.messages import Address

_KEPT: Final = 256


class Wiretap:
    """A sample of all datagrams so far, each as likely kept as any other."""

    def __init__(self, chance: Random) -> None:
        self._random = chance.random
        self._seen = 0
        self._kept: list[bytes] = []
        self.sender = Address("192.0.2.1", 4)

    def hear(self, packet: bytes) -> None:
        """Perhaps keep a datagram."""
        self._seen += 1
        if len(self._kept) < _KEPT:
            self._kept.append(packet)
            return
        place = int(self._random() * self._seen)
        if place < _KEPT:
            self._kept[place] = packet

    def one(self, chance: Random) -> bytes:
        """Return one of those kept; empty if there is none."""
        return self._kept[chance.randrange(len(self._kept))] if self._kept else b""
