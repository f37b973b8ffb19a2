"""Operators and clients read the same of a limit: what `limits show` has left is what can be got, also after restarts."""

import pytest

from smg_mesh.escrow.limit_model import Limit
from smg_node.cluster.limits.limit_totals import Asked, add_up
from support.rights.escrow_world import Defined, World

KEY = "global#requests/60000"
NAMES = ("a", "b", "c")


def begun(amount: int) -> World:
    """A world whose nodes have lived for two windows, at the beginning of the third."""
    world = World(NAMES, Defined(Limit(KEY, "requests", amount, 60_000, mode="strict")))
    world.run(120_000 + world.to_border(60_000) + 50)
    return world


def remaining(world: World, key: str = KEY) -> int:
    """Return what `limits show` has left."""
    reports = {
        node.name: [report]
        for node in world.living()
        if (report := node.core.report(key, wall_ms=node.wall_ms)) is not None
    }
    (use,) = add_up(reports, Asked(list(reports), list(reports)))
    unavailable = sum(one.amount for one in use.unavailable)
    assert use.spent + use.remaining + unavailable == use.amount + use.over
    return use.remaining


def ask(world: World, name: str, count: int, within_ms: int = 2_000, key: str = KEY) -> int:
    """Ask one node for so much, and go on as long as it may come; return what was admitted."""
    node, got = world.nodes[name], 0
    for _ in range(within_ms // 10):
        while got < count and node.offer(key):
            got += 1
        share = node.core.share(key, now_ms=node.now_ms, wall_ms=node.wall_ms)
        assert share is not None
        if got == count:
            break
        node.core.want(share, count - got)
        node.plan()
        world.run(10)
        share.wanted = 0
    world.run(500)
    return got


def told(world: World, name: str, key: str = KEY) -> int:
    """Return what clients of a node are told to remain, once its owner has answered and knows what all nodes have.

    At the beginning of a window an owner knows of a node that was killed in the one before only what is usual.
    """
    node = world.nodes[name]

    def is_answered() -> bool:
        share = node.core.share(key, now_ms=node.now_ms, wall_ms=node.wall_ms)
        assert share is not None
        node.core.want(share, share.left + 1)
        node.plan()
        return share.pool >= 0

    world.until(is_answered)
    world.run(300)
    world.until(is_answered)
    share = node.core.share(key, now_ms=node.now_ms, wall_ms=node.wall_ms)
    assert share is not None
    share.wanted = 0
    return share.left + share.pool


@pytest.mark.parametrize("killed", ["a", "b", "c"])
@pytest.mark.parametrize("lent", [0, 35])
@pytest.mark.parametrize("at_ms", [3_000, 17_000, 38_000])
def test_what_is_left_after_a_kill_is_what_can_be_got_in_this_window_and_the_next(
    killed: str, lent: int, at_ms: int
) -> None:
    world = begun(60)
    asked = "c" if killed == "a" else "a"
    assert ask(world, asked, lent) == lent
    world.run(at_ms - (60_000 - world.to_border(60_000)))
    world.kill(killed)
    world.run(4_000)
    world.restart(killed)
    world.run(3_000)
    for _ in range(3):
        said = told(world, asked)
        shown = remaining(world)
        assert said == shown
        got = ask(world, asked, 100)
        left = remaining(world)
        assert told(world, asked) == left
        # What an owner that died had released is lost: then some of the rest comes bit by bit, or to nobody.
        lost = shown - got - left
        assert 0 <= lost <= (3 if lent else 0)
        assert ask(world, asked, 100, within_ms=world.to_border(60_000) - 600) == left
        window = world.window(60_000)
        assert [one for one in world.faults() if one.place.window == window] == []
        world.run(world.to_border(60_000) + 50)


@pytest.mark.parametrize("window_ms", [10_000, 60_000])
@pytest.mark.parametrize("after_ms", [50, 4_000])
def test_all_of_the_first_limit_is_there_in_the_window_in_which_it_is_set(
    window_ms: int, after_ms: int
) -> None:
    key = f"global#requests/{window_ms}"
    world = World(NAMES, Defined())
    world.run(120_000 + world.to_border(60_000) + after_ms)
    world.redefine(Limit(key, "requests", 600, window_ms, mode="strict"))
    said = told(world, "a", key)
    assert (said, remaining(world, key)) == (600, 600)
    assert ask(world, "a", 640, key=key) == 600
