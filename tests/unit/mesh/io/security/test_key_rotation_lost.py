"""Questions about rings whose connection ends under them: asked once more, and no others."""

import pytest

from smg_mesh.io.security.key_rotation import Operation, Rotation
from smg_mesh.io.security.keyring import Keyring
from smg_mesh.io.security.ring_key import RingKey
from smg_mesh.io.security.rotation_report import KeyringReport
from smg_mesh.io.security.versioned_ring import VersionedRing
from smg_mesh.io.streams import AskError
from smg_mesh.swim.messages import Address
from support.mesh.mesh_streams import key

B = Address("10.0.0.2", 1)
NEW = RingKey(key(2)).fingerprint


class Pair:
    """Nodes a and b with one ring. Of what a asks, the next `losses` are lost as `how` says; `after` b has heard them."""

    def __init__(self, how: str, *, after: bool = False) -> None:
        self.losses = self.asked = 0
        self._how, self._after = how, after
        self.rings = [VersionedRing(Keyring([RingKey(key(1))], "test"), None) for _ in "ab"]
        self._a, self._b = (
            Rotation(ring, me=name, ask=self._ask, changed=lambda _: None)
            for ring, name in zip(self.rings, "ab", strict=True)
        )

    async def _ask(self, _name: str, _address: Address, payload: bytes) -> bytes:
        self.asked += 1
        if not self.losses:
            return await self._b.answer(payload, "a")
        self.losses -= 1
        if self._after:
            await self._b.answer(payload, "a")
        raise AskError(self._how, "the connection has ended")

    async def operate(self, operation: Operation, what: str = "") -> KeyringReport:
        return await self._a.operate(operation, what, [("b", B)])


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("how", ["unreachable", "hung_up"])
async def test_what_a_dying_connection_took_with_it_is_asked_once_more(
    how: str, after: bool
) -> None:
    pair = Pair(how, after=after)
    steps: tuple[tuple[Operation, str], ...] = (
        *(("list", ""), ("install", key(2).hex())),
        *(("use", NEW), ("remove", RingKey(key(1)).fingerprint)),
    )
    for operation, what in steps:
        pair.losses = 1
        assert (await pair.operate(operation, what)).complete
    assert [ring.fingerprints().all for ring in pair.rings] == [(NEW,)] * 2
    assert [ring.version for ring in pair.rings] == [3, 3], "no step was taken twice"


@pytest.mark.parametrize(
    ("how", "losses", "asked"),
    [
        *(("unreachable", 2, 2), ("busy", 1, 1), ("timeout", 1, 1)),
        *(("refused", 1, 1), ("key", 1, 1), ("nobody", 1, 1)),
    ],
)
async def test_who_cannot_be_reached_twice_or_answers_no_or_is_slow_is_in_the_report(
    how: str, losses: int, asked: int
) -> None:
    pair = Pair(how)
    pair.losses = losses
    report = await pair.operate("list")
    assert report.members["b"] == f"{how}: the connection has ended"
    assert pair.asked == asked
