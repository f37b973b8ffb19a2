"""Sealed packets: the product's keyring around every datagram of a world that asks for it."""

from collections.abc import Callable

from smg_chaos.simulate.base.random_sources import chance
from smg_mesh.io.security.keyring import Keyring
from smg_mesh.io.security.rejected import Rejected
from smg_mesh.io.security.ring_key import KEY_BYTES, RingKey


class Seal:
    """One node's keyring."""

    __slots__ = ("_ring", "seal")

    def __init__(self, ring: Keyring) -> None:
        self._ring = ring
        self.seal: Callable[[bytes], bytes] = ring.seal

    def open(self, datagram: bytes) -> bytes | None:
        """Return the clear packet, or None if the datagram is refused."""
        try:
            return self._ring.open(datagram)
        except Rejected:
            return None


def make_sealing(seed: int) -> Callable[[], Seal]:
    """Return what makes a keyring for each life; all of them hold the key of this seed.

    Counters begin at random, as they do in a real node, so sealed bytes differ from run to run. The
    cores never see them: their histories are the same.
    """
    key = RingKey(chance(seed, "key").randbytes(KEY_BYTES))
    return lambda: Seal(Keyring((key,), "simulated"))
