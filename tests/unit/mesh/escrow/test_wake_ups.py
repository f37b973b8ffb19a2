"""How often limits wake a node: for what there is to do, at once where a share calls, and not to look whether one is low."""

from collections.abc import Sequence

import pytest

from smg_mesh.escrow.limit_model import Limit
from support.rights.escrow_world import Defined, World, load

DAY = "model=m#requests/86400000"


def of_a_day(amount: int) -> Defined:
    return Defined(Limit(DAY, "requests", amount, 86_400_000, mode="strict"))


def ticks_of(world: World) -> list[int]:
    return [node.ticks for node in world.living()]


@pytest.mark.parametrize("names", [("a",), ("a", "b", "c")])
@pytest.mark.parametrize(("amount", "most"), [(10**9, 30), (20_000, 130)])
def test_a_limit_in_use_wakes_its_nodes_for_what_there_is_to_do(
    amount: int, most: int, names: Sequence[str]
) -> None:
    world = World(names, of_a_day(amount))
    rates = dict.fromkeys(names, 1_000.0 / len(names))
    world.run(4_000, load(world, DAY, rates))
    # Until somebody owns it there is only what stands.
    before, refused = ticks_of(world), dict(world.tally.refused)
    world.run(4_000, load(world, DAY, rates))
    assert all(
        10 <= (now - then) / 4 <= most for then, now in zip(before, ticks_of(world), strict=True)
    )
    assert world.tally.refused == refused


def test_a_limit_that_is_used_seldom_and_has_little_left_here_wakes_its_node_no_more() -> None:
    world = World(("a",), of_a_day(10**9))
    world.run(20_000, load(world, DAY, {"a": 2.0}))
    node = world.nodes["a"]
    share = node.core.share(DAY, now_ms=node.now_ms, wall_ms=node.wall_ms)
    assert share is not None
    share.left = 9
    before = ticks_of(world)
    world.run(4_000, load(world, DAY, {"a": 1.0}))
    assert (ticks_of(world)[0] - before[0]) / 4 <= 30


def test_a_share_that_becomes_low_is_looked_at_within_five_milliseconds() -> None:
    world = World(("a",), of_a_day(10**9))
    world.run(4_000, load(world, DAY, {"a": 1_000.0}))
    node = world.nodes["a"]
    for _ in range(20):
        share = node.core.share(DAY, now_ms=node.now_ms, wall_ms=node.wall_ms)
        assert share is not None
        assert share.low > 1
        share.left = share.low
        assert node.offer(DAY)
        assert share.wants_more
        world.run(5)
        assert not share.wants_more
        world.run(93, load(world, DAY, {"a": 1_000.0}))
