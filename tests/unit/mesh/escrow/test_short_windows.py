"""Ledgers and treasuries together: windows up to ten seconds."""

import pytest

from smg_mesh.escrow.limit_model import Limit
from support.rights.rights_world import World, rate

KEY = "model=m#requests/1000"
FIRST = 1_700_000_000
EVEN = {"a": 400.0, "b": 400.0, "c": 400.0, "d": 400.0, "e": 400.0}


def limit(amount: int = 1_000, mode: str = "strict", window_ms: int = 1_000) -> Limit:
    key = f"model=m#requests/{window_ms}"
    return Limit(key, "requests", amount, window_ms, mode=mode)  # type: ignore[arg-type]  # the mode is drawn by the test


def got(world: World, window: int, key: str = KEY) -> int:
    return world.got.get((key, FIRST + window), 0)


def test_the_window_of_the_boot_has_no_standing_right_and_the_next_has() -> None:
    world = World(limit(), names="a")
    world.hand_over("")
    world.run(2_000, rate(a=5_000.0), audits=True)
    assert got(world, 0) == 0
    assert got(world, 1) == 500


def test_an_even_overload_gets_all_of_it_and_not_one_more() -> None:
    world = World(limit())
    world.run(5_000, rate(**EVEN), audits=True)
    assert [got(world, window) for window in range(1, 5)] == [1_000] * 4


def test_an_overload_of_ten_times_is_shared_evenly() -> None:
    world = World(limit())
    world.run(3_000, rate(**dict.fromkeys(EVEN, 2000.0)), audits=True)
    assert got(world, 2) == 1_000
    assert {world.by_node[KEY, FIRST + 2, name] for name in EVEN} == {200}


@pytest.mark.parametrize("busy", ["a", "b"])
def test_what_idle_nodes_do_not_need_comes_to_the_busy_one(busy: str) -> None:
    """Worked out by hand: 976 of 1000, of which the busy one 876; what is kept back here and there is void."""
    world = World(limit())
    load = {**dict.fromkeys("abcde", 25.0), busy: 1_900.0}
    world.run(5_000, rate(**load), audits=True)
    for window in range(1, 5):
        assert 970 <= got(world, window) <= 1_000
        assert world.by_node[KEY, FIRST + window, busy] >= 870


def test_who_asks_for_less_than_the_fair_part_gets_all_of_it() -> None:
    world = World(limit())
    load = {"a": 9_500.0, "b": 150.0, "c": 150.0, "d": 180.0, "e": 180.0}
    world.run(5_000, rate(**load), audits=True)
    for window in range(2, 5):
        for name in "bcde":
            assert world.by_node[KEY, FIRST + window, name] >= 0.95 * load[name]
        assert got(world, window) >= 990


def test_a_node_alone_in_using_a_limit_calls_in_what_stands_with_the_others() -> None:
    world = World(limit())
    world.run(5_000, rate(b=2_000.0), audits=True)
    assert got(world, 4) >= 950


def test_nothing_is_refused_below_the_limit() -> None:
    world = World(limit())
    world.run(1_000, rate(**dict.fromkeys(EVEN, 180.0)))
    asked = {name: world.nodes[name].share(KEY) for name in EVEN}
    world.run(4_000, rate(**dict.fromkeys(EVEN, 180.0)), audits=True)
    for window in range(1, 5):
        assert got(world, window) >= 897
    assert all(share is not None and share.offered == share.spent for share in asked.values())


def test_windows_of_ten_seconds_are_minted_in_parts() -> None:
    world = World(limit(2_000, window_ms=10_000))
    world.run(10_000)
    world.run(10_000, rate(**EVEN), audits=True)
    assert world.got["model=m#requests/10000", FIRST // 10 + 1] == 2_000
    world.run(10_000, rate(b=400.0), audits=True)
    assert world.got["model=m#requests/10000", FIRST // 10 + 2] >= 1_900


def test_short_windows_open_one_after_the_other() -> None:
    world = World(limit(100, window_ms=100))
    world.run(200)
    world.run(1_800, rate(**EVEN), audits=True)
    windows = [world.got["model=m#requests/100", FIRST * 10 + at] for at in range(5, 19)]
    assert max(windows) <= 100
    assert sum(windows) >= 14 * 90


def test_a_burst_at_two_nodes_gets_a_small_limit_whole_and_not_once_more() -> None:
    world = World(limit(10), names="abc")
    world.run(4_500)
    waiting = {"b": 20, "c": 20}

    def load(world: World) -> None:
        for name in waiting:
            share = world.nodes[name].share(KEY)
            assert share is not None
            while waiting[name] and world.nodes[name].spend(KEY):
                waiting[name] -= 1
            share.wanted = waiting[name]

    world.run(450, load, audits=True)
    assert 9 <= got(world, 4) <= 10


def test_without_an_owner_what_stands_is_there_and_after_it_the_rest_again() -> None:
    world = World(limit())
    load = rate(**EVEN)
    world.run(3_400, load)
    world.hand_over("")
    world.nodes["a"].paused = True
    world.run(1_300, load, audits=True)
    world.hand_over("b")
    world.run(2_300, load, audits=True)
    assert got(world, 4) >= 400
    assert got(world, 5) >= 850


def test_a_new_owner_in_mid_window_mints_only_what_the_former_did_not() -> None:
    world = World(limit())
    load = rate(**EVEN)
    world.run(2_300, load)
    for name in "bcdea":
        world.hand_over(name)
        world.run(130, load, audits=True)
    assert got(world, 2) <= 1_000
    world.run(3_000, load, audits=True)
    assert got(world, 4) == 1_000


def test_a_restarted_node_has_no_rights_of_the_life_before() -> None:
    world = World(limit())
    world.hand_over("")
    load = rate(b=5_000.0)
    world.run(2_500, load)
    assert got(world, 2) == 100
    world.restart("b")
    world.run(400, load, audits=True)
    assert got(world, 2) == 100
    world.run(2_000, load, audits=True)
    assert [got(world, 3), got(world, 4)] == [95, 100]


@pytest.mark.parametrize(
    ("mode", "state", "most"),
    [("strict", "standing", 1_000), ("balanced", "borrowed", 1_200), ("available", "alone", 1_500)],
)
def test_a_cut_lets_a_minority_have_what_its_mode_says(mode: str, state: str, most: int) -> None:
    world = World(limit(mode=mode))
    load = rate(**EVEN)
    world.run(3_000, load)
    for name in "de":
        world.cut(name, off=True)
    world.nodes["d"].alone = mode == "available"
    world.nodes["e"].owner = lambda _: "d" if mode == "available" else ""  # type: ignore[method-assign]  # a node's own view of who owns
    world.run(5_000, load, audits=mode != "available")
    share = world.nodes["d"].share(KEY)
    assert share is not None
    assert share.state == state
    assert all(got(world, window) <= most for window in range(8))
    assert 0.98 * most <= got(world, 7) <= most
    for name in "de":
        world.cut(name, off=False)
        world.nodes[name].alone = False
    world.nodes["e"].owner = lambda _: world.known_owner  # type: ignore[method-assign]  # it sees the owner again
    world.run(4_000, load)
    assert share.state == "exact"
    assert got(world, 10) == 1_000


def test_debt_is_paid_before_anything_else() -> None:
    world = World(limit(), names="a")
    world.hand_over("")
    world.run(2_100)
    share = world.nodes["a"].share(KEY)
    assert share is not None
    share.left -= 500
    share.spent += 500
    share.debt += 700
    world.run(1_000, audits=True)
    assert (share.left, share.debt, share.spent) == (0, 200, 500)
    world.run(1_000, audits=True)
    assert (share.left, share.debt, share.spent) == (300, 0, 200)


def test_an_owner_pays_the_debt_of_a_node_too() -> None:
    world = World(limit())
    world.run(2_100)
    share = world.nodes["b"].share(KEY)
    assert share is not None
    share.debt += 300
    world.run(100, audits=True)
    assert share.debt == 0
    assert share.spent == 300


def test_what_the_owner_says_it_has_left_falls_to_nothing() -> None:
    world = World(limit())
    world.run(2_950, rate(**EVEN))
    share = world.nodes["b"].share(KEY)
    assert share is not None
    assert share.pool == 0
    assert share.state == "exact"


def test_an_idle_key_sleeps_and_costs_nothing_until_it_is_used() -> None:
    world = World(limit())
    ledger = world.nodes["b"].ledger
    world.run(1_500, rate(b=100.0))
    share = world.nodes["b"].share(KEY)
    assert share is not None
    assert ledger.due_ms(world.now_ms) is not None
    world.run(7_000)
    assert (share.left, share.window) == (0, -1)
    assert ledger.due_ms(world.now_ms) is None
    assert ledger.slots() == []
    before = world.packets
    world.run(2_000)
    assert world.packets == before
    assert world.nodes["b"].spend(KEY)
    assert share.window == FIRST + 10


def test_a_key_that_was_forgotten_has_nothing_in_windows_it_was_in() -> None:
    world = World(limit(), names="a")
    world.hand_over("")
    load = rate(a=5_000.0)
    world.run(3_000, load)
    assert got(world, 2) == 500
    world.run(90_000)
    node = world.nodes["a"]
    assert (
        node.ledger.tick(
            now_ms=world.now_ms, wall_ms=node.wall_ms, owners=node.owner, majority=True
        )
        == []
    )
    assert node.ledger.peek(KEY) is None
    node.offset_ms = 2_000 - world.now_ms
    world.run(900, load)
    assert got(world, 2) == 500


def test_a_clock_that_goes_back_a_little_stays_in_its_window() -> None:
    world = World(limit())
    load = rate(**EVEN)
    world.run(3_020, load)
    world.nodes["b"].offset_ms = -60
    share = world.nodes["b"].share(KEY)
    assert share is not None
    for _ in range(60):
        world.run(1, load)
        assert share.window == FIRST + 3
    world.run(2_000, load, audits=True)
    assert got(world, 3) <= 1_000
    assert got(world, 4) <= 1_000


def test_a_limit_that_is_lowered_counts_from_the_next_window_and_one_that_is_gone_is_gone() -> None:
    world = World(limit())
    load = rate(**EVEN)
    world.run(3_950, load)
    lower = Limit(KEY, "requests", 100, 1_000, mode="strict", version=1, older=((1_000, 0.5),))
    world.limits.limits[KEY] = lower
    world.run(2_500, load)
    assert got(world, 4) <= 100
    assert 98 <= got(world, 5) <= 100
    del world.limits.limits[KEY]
    world.run(1_500)
    share = world.nodes["b"].ledger.peek(KEY)
    assert share is not None
    assert (share.left, share.window) == (0, -1)


def test_a_retired_ledger_lets_nothing_be_charged_any_more() -> None:
    world = World(limit())
    world.run(1_500, rate(b=100.0))
    node = world.nodes["b"]
    share = node.share(KEY)
    assert share is not None
    assert share.left > 0
    node.ledger.retire()
    assert not node.spend(KEY)
    assert (share.left, share.window) == (0, -1)
    assert node.ledger.due_ms(world.now_ms) is None


def test_packets_to_one_owner_stay_few() -> None:
    world = World(limit())
    world.run(5_000, rate(**EVEN))
    assert world.packets / 5 / 5 <= 40


def test_nodes_that_do_not_use_a_limit_are_called_in_every_window_also_when_they_fall_asleep() -> (
    None
):
    world = World(limit())
    world.run(16_000, rate(b=3_000.0))
    assert [window for window in range(4, 16) if got(world, window) < 950] == []


def test_two_busy_nodes_are_not_kept_from_what_idle_ones_returned() -> None:
    world = World(limit())
    world.run(14_000, rate(b=1_100.0, c=1_000.0))
    assert [window for window in range(4, 14) if got(world, window) < 950] == []


def test_a_page_goes_on_when_the_clock_comes_back_to_its_window() -> None:
    world = World(limit())
    load = rate(**EVEN)
    world.run(3_500, load)
    node = world.nodes["b"]
    place = (KEY, FIRST + 3)
    before = next(row for row in node.ledger.rows() if (row.key, row.window) == place)
    assert before.spent > 0
    node.offset_ms = -1_400
    world.run(900, load, audits=True)
    after = [row for row in node.ledger.rows() if (row.key, row.window) == place]
    assert len(after) == 1
    assert after[0].given >= before.given
    assert after[0].spent >= before.spent
