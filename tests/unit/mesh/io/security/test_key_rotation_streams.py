"""A rotation over real loopback gRPC, under load, and who comes back after one."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from smg_mesh.io.security.key_rotation import TOPIC, Peer, Rotation
from smg_mesh.io.security.keyring import Keyring
from smg_mesh.io.security.ring_key import RingKey
from smg_mesh.io.security.rotation_report import RotationError
from smg_mesh.io.security.versioned_ring import VersionedRing
from smg_mesh.io.streams import StreamError
from smg_mesh.swim.messages import Address
from support.mesh.mesh_streams import LABEL, Node, derived, key, until, up
from support.state.exchanges import claims

FIRST, SECOND = RingKey(key(1)).fingerprint, RingKey(key(2)).fingerprint


class Member(Node):
    """A node with a keyring of its own, which is certificates and rotation both."""

    def __init__(self, name: str, *numbers: int, folder: Path | None = None) -> None:
        keyring = Keyring([RingKey(key(number)) for number in numbers], LABEL)
        super().__init__(name, derived(name, ring=keyring), claims(50, name))
        self.ring = VersionedRing(keyring, folder)
        self.rotation = Rotation(self.ring, me=name, ask=self.ask, changed=lambda _: None)

    async def ask(self, name: str, address: Address, payload: bytes) -> bytes:
        return await self.client.ask(address, name, TOPIC, payload, deadline_s=10)

    async def answer(self, topic: str, payload: bytes, caller: str) -> bytes:
        assert topic == TOPIC
        return await self.rotation.answer(payload, caller)

    async def meet(self, other: "Member", *, name: str | None = "") -> None:
        """Exchange, and what follows it."""
        self.said["ring_version"] = self.rotation.version
        other.said["ring_version"] = other.rotation.version
        peer = await self.exchange_with(other, name=name)
        await self.rotation.level(peer.name, other.address, peer.ring_version)


def others(me: Member, *members: Member) -> list[Peer]:
    return [(member.name, member.address) for member in members if member is not me]


async def test_a_rotation_under_load_fails_no_exchange() -> None:
    members = [Member(name, 1) for name in "abc"]
    stop = asyncio.Event()
    talks = 0

    async def talked(enough: int) -> None:
        await until(lambda: talks >= enough)

    async def talk(caller: Member, other: Member) -> None:
        nonlocal talks
        while not stop.is_set():
            await caller.exchange_with(other)
            assert await caller.client.ping(other.address, other.name, 1, deadline_ms=10_000)
            talks += 1

    a, b, c = members
    async with up(*members), asyncio.TaskGroup() as group:
        for caller in members:
            for other in members:
                if caller is not other:
                    group.create_task(talk(caller, other))
        steps: list[tuple[Member, Any, str]] = [
            (a, "install", key(2).hex()),
            (b, "use", SECOND),
            (c, "remove", FIRST),
        ]
        for member, operation, what in steps:
            enough = talks + 12
            report = await member.rotation.operate(operation, what, others(member, *members))
            assert report.complete, report
            await talked(enough)
        stop.set()
    assert [member.ring.keys() for member in members] == [(key(2),)] * 3
    failed = [detail for node in members for kind, detail in node.counts if kind == "stream_failed"]
    assert failed == []


async def test_a_member_that_slept_through_install_and_use_learns_the_ring_when_it_comes_back() -> (
    None
):
    a, b, c = members = [Member(name, 1) for name in "abc"]
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(up(a, b))
        sleeper: Peer = ("c", Address("127.0.0.1", 1))
        report = await a.rotation.operate("install", key(2).hex(), [*others(a, a, b), sleeper])
        assert report.members["c"].startswith("nobody: ")
        with pytest.raises(RotationError, match="c does not acknowledge"):
            await a.rotation.operate("use", SECOND, [*others(a, a, b), sleeper])
        await a.rotation.operate("use", SECOND, [*others(a, a, b), sleeper], force=True)
        await stack.enter_async_context(up(c))
        await c.meet(b, name=None)
        assert c.ring.keys() == (key(2), key(1))
        report = await c.rotation.operate("remove", FIRST, others(c, *members))
        assert report.complete


async def test_a_member_that_slept_through_it_is_found_by_others_too() -> None:
    a, b = Member("a", 1), Member("b", 1)
    async with up(a, b):
        await a.rotation.operate("install", key(2).hex(), [])
        await a.rotation.operate("use", SECOND, [])
        await a.meet(b)
        assert b.ring.keys() == (key(2), key(1))
        assert b.rotation.version == 2


async def test_a_member_that_slept_through_the_removal_is_locked_out_with_clear_words() -> None:
    a, b = Member("a", 1), Member("b", 1)
    async with up(a, b):
        for operation, what in (("install", key(2).hex()), ("use", SECOND), ("remove", FIRST)):
            step: Any = operation
            await a.rotation.operate(step, what, [])
        with pytest.raises(StreamError, match="its key file needs the new one") as raised:
            await b.meet(a, name=None)
        assert raised.value.reason == "key"
        assert b.ring.keys() == (key(1),)


async def test_many_members_are_asked_a_few_at_a_time() -> None:
    members = [Member(f"m{number}", 1) for number in range(24)]
    async with up(*members):
        report = await members[0].rotation.operate(
            "install", key(2).hex(), others(members[0], *members)
        )
        assert report.complete
        assert len(report.keys[SECOND]) == 24
