"""Hints between members over real sockets, sealed: spread, join, crash, return, and calls that fail."""

import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from smg_mesh.io.gossip_bridge import GossipBridge
from smg_mesh.io.shared_state.hint_transport import NotDeliveredError
from support.mesh.mesh_cluster import Cluster, agree, cluster, key_file, make_mesh, until
from support.mesh.shared_state_members import Node, make_shared
from support.state.hint_world import DictStore

HASHES = 100_000
SUBJECTS = 10


class Hinting(Node):
    """A member, what it has, and what it holds of the others."""

    store: DictStore
    own: dict[str, dict[int, None]]

    def add(self, subject: str, hashes: Sequence[int]) -> None:
        own = self.own.setdefault(subject, {})
        for block_hash in hashes:
            own[block_hash] = None
            self.shared.hints.add(subject, block_hash)

    def all(self) -> dict[str, set[int]]:
        return {subject: set(own) for subject, own in self.own.items() if own}


async def add_node(nodes: Cluster, name: str, key: Path, *join: Node) -> Hinting:
    shared = make_shared(name)
    store, own = DictStore(), dict[str, dict[int, None]]()
    shared.hints.connect(
        store, contents=lambda subject: own.get(subject, ()), wanted=lambda *_: True
    )
    mesh = make_mesh(name, *map(str, join), shared=shared, key_file=key)
    await mesh.start()
    node = Hinting(nodes.run(mesh), shared)
    node.store, node.own = store, own
    return node


def hashes_of(subject: int, count: int) -> list[int]:
    draw = random.Random(subject)
    return [draw.getrandbits(60) for _ in range(count)]


def hold(nodes: Sequence[Hinting]) -> bool:
    """Return whether each holds what each other one has."""
    return all(
        node.store.of(other.mesh.name) == other.all()
        for node in nodes
        for other in nodes
        if other is not node
    )


async def test_a_hundred_thousand_hints_reach_all_and_those_who_come_later(tmp_path: Path) -> None:
    key = key_file(tmp_path)
    async with cluster() as nodes:
        a = await add_node(nodes, "a", key)
        for subject in range(SUBJECTS):
            a.add(f"w{subject}", hashes_of(subject, HASHES // SUBJECTS))
        b = await add_node(nodes, "b", key, a)
        await until(lambda: agree([a.mesh, b.mesh]) and hold([a, b]))
        assert not b.shared.hints.missing()
        assert b.shared.hints.figures()["fetched"] == SUBJECTS
        c = await add_node(nodes, "c", key, a)
        await until(lambda: hold([a, b, c]))
        a.add("w0", [1, 2, 3])
        b.add("w0", [4])
        await until(lambda: hold([a, b, c]))
        assert c.shared.hints.figures()["fetched"] == SUBJECTS, "changes came as changes"
        for node in (a, b, c):
            counted = node.shared.counters()
            assert ("hint_fault", "") not in counted
            assert node.shared.hints.figures()["refused"] <= 4, "calls that came too early"


async def test_who_crashes_is_forgotten_and_who_returns_has_its_say_again(tmp_path: Path) -> None:
    key = key_file(tmp_path)
    async with cluster() as nodes:
        a = await add_node(nodes, "a", key)
        b = await add_node(nodes, "b", key, a)
        c = await add_node(nodes, "c", key, a)
        a.add("w1", [1, 2])
        b.add("w1", [2, 3])
        c.add("w2", hashes_of(2, 5_000))
        await until(lambda: hold([a, b, c]))
        await nodes.crash(c.mesh)
        await until(lambda: a.store.of("c") == b.store.of("c") == {})
        assert hold([a, b])
        again = await add_node(nodes, "c", key, a)
        again.add("w2", [7])
        await until(lambda: hold([a, b, again]))
        await nodes.leave(b.mesh)
        await until(lambda: a.store.of("b") == again.store.of("b") == {})
        assert hold([a, again])


async def test_when_every_other_call_fails_all_of_it_arrives_in_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, draw, whole = key_file(tmp_path), random.Random(1), GossipBridge.take_hints
    lost = 0

    async def lossy(self: GossipBridge, name: str, letter: bytes, *, deadline_s: float) -> bytes:
        nonlocal lost
        fate = draw.random()
        if fate < 0.25:
            lost += 1
            raise NotDeliveredError("lost on the way")
        answer = await whole(self, name, letter, deadline_s=deadline_s)
        if fate < 0.5:
            lost += 1
            raise NotDeliveredError("the answer was lost")
        return answer

    monkeypatch.setattr(GossipBridge, "take_hints", lossy)
    async with cluster() as nodes:
        a = await add_node(nodes, "a", key)
        b = await add_node(nodes, "b", key, a)
        c = await add_node(nodes, "c", key, a)
        await until(lambda: agree([a.mesh, b.mesh, c.mesh]))
        for number in range(40):
            a.add("w1", hashes_of(number, 100))
            b.add("w2", hashes_of(number, 50))
        await until(lambda: hold([a, b, c]), patience_s=90)
        assert lost > 3
