"""What real nodes report of a limit, summed up while they live, die and restart: it is what is there."""

import pytest

from smg_mesh.escrow.book_rows import Held, Minting
from smg_mesh.escrow.limit_model import Limit
from smg_node.cluster.limits.limit_totals import Asked, add_up, inexact_reasons
from smg_node.http.ports.limits import LimitUse
from support.rights.escrow_world import Defined, World, load

KEY = "#requests/60000"
FIVE = ("a", "b", "c", "d", "e")


def started(*, minutes: int = 1) -> World:
    """A cluster some minutes old, a second into one in which nobody asked for anything yet."""
    world = World(FIVE, Defined(Limit(KEY, "requests", 6_000, 60_000, "strict", 0.5)))
    world.run(4_000, load(world, KEY, dict.fromkeys(FIVE, 5.0)))
    world.run(world.to_border(60_000) + 60_000 * minutes + 1_000)
    return world


def summed(world: World, *, at: str = "a") -> tuple[LimitUse, list[str]]:
    """What `limits show` says at one node: it asks those that it hears."""
    heard = [node for node in world.living() if not world.cut(at, node.name)]
    reports = {node.name: node.core.report(KEY, wall_ms=node.wall_ms) for node in heard}
    said = {name: [report] for name, report in reports.items() if report is not None}
    names = [node.name for node in heard]
    (use,) = add_up(said, Asked(names, names))
    lost = sum(one.amount for one in use.unavailable)
    assert use.spent + use.remaining + lost == use.amount + use.over
    return use, inexact_reasons([use], silent={}, cut=0)


def lost(use: LimitUse) -> dict[tuple[str, str], int]:
    return {(one.reason, one.node): one.amount for one in use.unavailable}


def left_behind(world: World, use: LimitUse) -> int:
    """What those have in their pools that owned the limit before in this window."""
    pools = [row for row in world.rows() if isinstance(row, Minting) and row.window == use.window]
    return sum(pool.left for pool in pools if pool.term != use.term)


@pytest.mark.parametrize("rates", [{"a": 40.0}, dict.fromkeys(FIVE, 8.0), {"c": 90.0, "d": 2.0}])
def test_among_nodes_that_hear_each_other_all_that_is_not_spent_is_left(
    rates: dict[str, float],
) -> None:
    world = started()
    each = load(world, KEY, rates)
    for _ in range(11):
        world.run(4_900, each)
        use, reasons = summed(world)
        assert use.spent == world.spent(KEY)[use.window]
        behind = left_behind(world, use)
        assert lost(use) == ({("owner_lost", ""): behind} if behind else {})
        assert (use.remaining, use.over, reasons) == (6_000 - use.spent - behind, 0, [])


def test_in_the_first_minute_of_a_cluster_nothing_is_kept_back() -> None:
    world = started(minutes=0)
    world.run(4_000, load(world, KEY, dict.fromkeys(FIVE, 5.0)))
    use, reasons = summed(world)
    assert (lost(use), use.remaining, reasons) == ({}, 6_000 - use.spent, [])


def test_what_a_dead_node_has_is_with_it_and_the_rest_can_be_had() -> None:
    world = started()
    each = load(world, KEY, dict.fromkeys(FIVE, 20.0))
    world.run(15_000, each)
    owner = world.owner(KEY)
    assert owner is not None
    victim = "b" if owner.name != "b" else "c"
    world.kill(victim)
    world.run(6_000, load(world, KEY, {owner.name: 20.0}))
    use, reasons = summed(world, at=owner.name)
    assert set(lost(use)) == {("dead", victim)}
    assert lost(use)["dead", victim] >= 600, "what stands with it, and what it was given"
    assert reasons == [f"node {victim} is dead or cut off: what it spent is not counted"]
    spent = use.spent
    world.run(36_000, load(world, KEY, {owner.name: 2_000.0}))
    after, _ = summed(world, at=owner.name)
    assert after.spent > spent
    assert after.remaining <= use.remaining
    assert world.overspent() == []


def test_with_a_dead_owner_goes_what_it_had_minted_and_not_given() -> None:
    world = started()
    rates = dict.fromkeys(FIVE, 20.0)
    world.run(15_000, load(world, KEY, rates))
    owner = world.owner(KEY)
    assert owner is not None
    world.kill(owner.name)
    rest = {name: rate for name, rate in rates.items() if name != owner.name}
    world.run(8_000, load(world, KEY, rest))
    heir = world.owner(KEY)
    assert heir is not None
    use, _ = summed(world, at=heir.name)
    assert set(lost(use)) <= {("dead", owner.name), ("owner_lost", "")}
    assert lost(use)["dead", owner.name] == 600
    assert lost(use)["owner_lost", ""] >= left_behind(world, use)


def test_a_restart_takes_what_the_life_before_had() -> None:
    world = started()
    rates = dict.fromkeys(FIVE, 20.0)
    world.run(15_000, load(world, KEY, rates))
    owner = world.owner(KEY)
    assert owner is not None
    again = "b" if owner.name != "b" else "c"
    world.restart(again)
    world.run(6_000, load(world, KEY, rates))
    use, reasons = summed(world, at=owner.name)
    assert set(lost(use)) == {("restarted", again)}
    assert reasons == [f"node {again} restarted: what it spent before is not counted"]
    before = [row for row in world.dead_rows if isinstance(row, Held)]
    spent = [row.spent for row in before if row.window == use.window]
    assert lost(use)["restarted", again] >= sum(spent) > 0


def test_a_minority_can_have_what_stands_with_it_and_says_what_is_missing() -> None:
    world = started()
    rates = dict.fromkeys(FIVE, 2.0)
    world.run(5_000, load(world, KEY, rates))
    world.cut_off(("d", "e"))
    world.run(8_000, load(world, KEY, rates))
    use, reasons = summed(world, at="d")
    assert set(lost(use)) == {("dead", "a"), ("dead", "b"), ("dead", "c"), ("no_owner", "")}
    assert use.spent + use.remaining <= 2 * 600 + 100, "what stands with both, and was given before"
    assert reasons[-1].startswith("global#requests/minute has no owner now")
    majority, _ = summed(world, at="a")
    assert set(lost(majority)) <= {("dead", "d"), ("dead", "e"), ("owner_lost", "")}
    assert majority.remaining >= 4_000
