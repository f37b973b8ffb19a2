"""Whose turn it is to change a keyring: an operator waits for rings that are brought level, and is told of another one."""

import asyncio

import pytest

from smg_mesh.io.security.key_rotation import Rotation
from smg_mesh.io.security.keyring import Keyring
from smg_mesh.io.security.ring_key import RingKey
from smg_mesh.io.security.rotation_report import RotationError
from smg_mesh.io.security.versioned_ring import VersionedRing
from smg_mesh.swim.messages import Address
from support.mesh.mesh_streams import key

B = Address("10.0.0.2", 1)


class Pair:
    """Nodes a and b with one ring; what a asks b waits until it may go on."""

    def __init__(self) -> None:
        self.asked, self.go_on = asyncio.Event(), asyncio.Event()
        self.rings = [VersionedRing(Keyring([RingKey(key(1))], "test"), None) for _ in "ab"]
        self.a, self.b = (
            Rotation(ring, me=name, ask=self._ask, changed=lambda _: None)
            for ring, name in zip(self.rings, "ab", strict=True)
        )

    async def _ask(self, name: str, address: Address, payload: bytes) -> bytes:
        assert (name, address) == ("b", B)
        self.asked.set()
        await self.go_on.wait()
        return await self.b.answer(payload, "a")


async def test_a_step_waits_for_rings_that_are_just_brought_level_and_no_second_step_for_it() -> (
    None
):
    pair = Pair()
    async with asyncio.TaskGroup() as group:
        group.create_task(pair.a.level("b", B, 99))
        await pair.asked.wait()
        step = group.create_task(pair.a.operate("install", key(2).hex(), [("b", B)]))
        await asyncio.sleep(0)
        with pytest.raises(RotationError, match="being changed already"):
            await pair.a.operate("install", key(3).hex(), [("b", B)])
        pair.go_on.set()
    assert step.result().complete
    assert [len(ring.keys()) for ring in pair.rings] == [2, 2]
    assert (await pair.a.operate("list", "", [("b", B)])).complete


async def test_a_step_that_is_cancelled_makes_room_for_the_next() -> None:
    pair = Pair()
    async with asyncio.TaskGroup() as group:
        step = group.create_task(pair.a.operate("install", key(2).hex(), [("b", B)]))
        await pair.asked.wait()
        step.cancel()
    pair.go_on.set()
    assert (await pair.a.operate("install", key(3).hex(), [("b", B)])).complete
