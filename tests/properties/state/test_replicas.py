"""Replicas under any order, loss and repetition of rumors, cut exchanges, restarts and epochs: one state in the end."""

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smg_mesh.crdt.entry import Held
from support.state.replica_world import SMALL, ReplicaWorld

TINY = replace(
    SMALL,
    documents={"settings": 1, "workers": 1, "audit": 1, "cluster": 1},
    documents_by_head=(),
    epoch_deletions=25,
    epoch_clients=4,
    union_ms=3_000,
)
"""Epochs come every few changes."""
KEYS = ("one", "two", "three", "four")


Truth = dict[str, Held]


def quiet(world: ReplicaWorld) -> None:
    """Let all converse until nobody reads an old epoch's document any more, and then until nothing changes."""
    world.settle(10)
    world.pass_time(TINY.union_ms + 1_000, 250)
    world.settle(40)


def note(truth: Truth, held: Held) -> None:
    """Remember the last write of its key."""
    known = truth.get(held.key)
    if known is None or held.order > known.order:
        truth[held.key] = held


def lived(seed: int, steps: int, *, nodes: int = 4) -> tuple[ReplicaWorld, Truth]:
    """Let things happen; return the world and, per key, the last write that any node made."""
    rng = Random(seed)
    world = ReplicaWorld(nodes, options=TINY, seed=seed)
    kept: dict[str, dict[str, bytes]] = {}
    truth: Truth = {}
    for number in range(steps):
        name = rng.choice(list(world.peers))
        match rng.randrange(8):
            case 0 | 1 | 2:
                key = rng.choice(KEYS)
                note(truth, world[name].settings.put(key, b"%d" % number))
            case 3:
                note(truth, world[name].settings.remove(rng.choice(KEYS)))
            case 4:
                world.rumors(loss=0.3, double=0.2, shuffle=True)
            case 5:
                other = rng.choice([one for one in world.peers if one != name])
                world.exchange(
                    name, other, full=rng.random() < 0.2, cut_after=rng.choice((-1, 0, 1, 2))
                )
            case 6:
                # What nobody else has heard would be lost with it, rightly: it is told before.
                for other in world.peers:
                    if other != name:
                        world.exchange(name, other)
                kept[name] = world[name].dumps() if rng.random() < 0.7 else {}
                world.stop(name)
                world.clocks.now_ms += 1_000  # no process is back sooner
                world.start(name, kept[name])
            case _:
                world.pass_time(rng.choice((300, 1_000, 4_000)), 250)
    return world, truth


@pytest.mark.parametrize("seed", range(60))
def test_after_a_storm_all_hold_the_last_write_of_every_key(seed: int) -> None:
    world, truth = lived(seed, 120)
    quiet(world)
    assert world.agreed()
    expected = {key: held.value for key, held in truth.items() if held.value is not None}
    for peer in world.peers.values():
        assert peer.values() == expected
    assert len({peer.replica.namespace("settings").digest() for peer in world.peers.values()}) == 1
    assert all(peer.replica.epoch("settings/0") > 0 for peer in world.peers.values())


@settings(deadline=None, max_examples=60)
@given(st.integers(min_value=0, max_value=1 << 32), st.integers(min_value=0, max_value=40))
def test_conflicts_that_are_shown_are_the_same_on_every_node(seed: int, steps: int) -> None:
    world, _ = lived(seed, steps, nodes=3)
    quiet(world)
    assert world.agreed()
    for key in KEYS:
        shown = [
            [(one.version, one.value) for one in peer.settings.conflicts(key)]
            for peer in world.peers.values()
        ]
        assert shown == [shown[0]] * len(shown)
