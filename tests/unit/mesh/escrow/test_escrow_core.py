"""The facade on a network in memory, on virtual time: what was admitted in each window, against the limit."""

from collections.abc import Mapping, Sequence

import pytest

from smg_mesh.escrow.election.slot_leases import WANTED_MS
from smg_mesh.escrow.limit_model import Limit, Mode
from support.rights.escrow_world import Defined, World, load

KEY = "#requests/1000"
FIVE = ("a", "b", "c", "d", "e")
EVEN_S = 400.0
"""At each of five nodes, of a limit of 1000: twice as much as there is."""


def limit(
    amount: int = 1_000,
    *,
    key: str = KEY,
    window_ms: int = 1_000,
    mode: Mode = "strict",
    standing: float = 0.5,
    volatile: bool = False,
) -> Limit:
    return Limit(key, "requests", amount, window_ms, mode, standing, volatile=volatile)


def settled(world: World, rates: Mapping[str, float], *, key: str = KEY, ms: int = 4_000) -> int:
    """Let load run until all stands as it should; return the first whole window after that."""
    world.run(ms, load(world, key, rates))
    return world.window(1_000) + 1


def shares(world: World, first: int, last: int, amount: int = 1_000) -> list[float]:
    """Return admitted / amount of these windows, and assert that the books are right."""
    assert world.faults() == []
    return [world.tally.admitted.get((KEY, window), 0) / amount for window in range(first, last)]


def five(mode: Mode = "strict", *, loss: float = 0.0, names: Sequence[str] = FIVE) -> World:
    return World(names, Defined(limit(mode=mode)), loss=loss)


# ── Nothing to do ────────────────────────────────────────────────────────────


def test_without_limits_nobody_wakes_and_nothing_is_said() -> None:
    world = World(("a", "b", "c"), Defined())
    world.run(5_000)
    assert [node.packets for node in world.living()] == [0, 0, 0]
    assert [node.ticks for node in world.living()] == [0, 0, 0]
    assert all(node.core.due_ms() is None for node in world.living())
    assert world.nodes["a"].core.share(KEY, now_ms=9, wall_ms=9) is None


def test_limits_that_nobody_uses_cost_a_look_and_a_packet_a_second_at_most() -> None:
    world = five()
    world.run(20_000)
    before = {node.name: (node.packets, node.ticks) for node in world.living()}
    world.run(10_000)
    for node in world.living():
        packets, ticks = before[node.name]
        assert node.packets - packets <= 10
        assert node.ticks - ticks <= 10


def test_after_the_last_request_leases_are_let_go() -> None:
    world = five()
    settled(world, dict.fromkeys(FIVE, 20.0))
    world.run(WANTED_MS + 20_000)
    before = sum(node.packets for node in world.living())
    world.run(10_000)
    assert sum(node.packets for node in world.living()) - before <= 50


@pytest.mark.parametrize("names", [("a",), FIVE])
def test_who_comes_back_after_leases_were_let_go_finds_what_is_left_of_a_long_window(
    names: Sequence[str],
) -> None:
    key, amount = "#tokens/86400000", 864_000
    world = World(names, Defined(limit(amount, key=key, window_ms=86_400_000)))
    world.to_border(86_400_000)
    for _ in range(3):
        world.run(4_000, load(world, key, {"a": 500.0}))
        world.run(WANTED_MS + 20_000)
    assert world.owner(key) is None
    # More than stands with one node in all this time, and more than what is minted at once.
    world.run(6_000, load(world, key, {"a": 20_000.0}))
    assert world.faults() == []
    (spent,) = world.spent(key).values()
    assert spent >= 100_000


# ── One node ─────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("disks", [True, False])
def test_a_node_alone_owns_its_limits_soon_after_its_start_and_admits_exactly_as_much(
    disks: bool,
) -> None:
    world = World(("a",), Defined(limit()), disks=disks)
    each = load(world, KEY, {"a": 5_000.0})
    world.run(1_400, each)
    assert world.owner(KEY) is world.nodes["a"]
    assert world.nodes["a"].packets == 0
    first = world.window(1_000) + 2
    world.run(6_000, each)
    assert shares(world, first, first + 3) == [1.0, 1.0, 1.0]
    report = world.nodes["a"].core.report(KEY, wall_ms=world.nodes["a"].wall_ms)
    assert report is not None
    assert (report.owner, report.roster, report.amount) == ("a", ("a",), 1_000)
    assert report.not_adopted == ()
    assert report.spent <= 1_000


def test_before_anybody_votes_nobody_knows_what_there_is_and_in_a_minority_it_is_nothing() -> None:
    world = five()
    node = world.nodes["d"]
    early = node.core.share(KEY, now_ms=node.now_ms, wall_ms=node.wall_ms)
    assert early is not None
    assert (early.state, early.pool) == ("standing", -1)
    settled(world, dict.fromkeys(FIVE, EVEN_S))
    world.cut_off(("d", "e"))
    world.run(6_000, load(world, KEY, dict.fromkeys(FIVE, EVEN_S)))
    late = node.core.share(KEY, now_ms=node.now_ms, wall_ms=node.wall_ms)
    assert late is not None
    assert (late.state, late.pool) == ("standing", 0)


# ── Five nodes ───────────────────────────────────────────────────────────────


@pytest.mark.parametrize("times", [2, 10])
def test_under_an_even_overload_all_of_the_limit_is_used_and_never_more(times: int) -> None:
    world = five()
    rates = dict.fromkeys(FIVE, 200.0 * times)
    first = settled(world, rates)
    world.run(10_000, load(world, KEY, rates))
    used = shares(world, first, first + 8)
    assert max(used) <= 1.0
    assert min(used) >= 0.99


def test_with_nearly_all_load_at_one_node_nearly_all_of_the_limit_is_used() -> None:
    world = five()
    rates = {"a": 1_900.0, "b": 25.0, "c": 25.0, "d": 25.0, "e": 25.0}
    first = settled(world, rates)
    world.run(10_000, load(world, KEY, rates))
    used = shares(world, first, first + 8)
    assert max(used) <= 1.0
    assert min(used) >= 0.95


def test_below_the_limit_nobody_is_refused_who_would_have_fitted() -> None:
    world = five()
    rates = dict.fromkeys(FIVE, 180.0)
    first = settled(world, rates, ms=8_000)
    world.run(10_000, load(world, KEY, rates))
    assert sum(world.tally.refused.get((KEY, window), 0) for window in range(first, first + 8)) == 0
    world = five()
    rates = {"a": 855.0, "b": 11.0, "c": 11.0, "d": 11.0, "e": 12.0}
    first = settled(world, rates)
    world.run(10_000, load(world, KEY, rates))
    refused = sum(world.tally.refused.get((KEY, window), 0) for window in range(first, first + 8))
    assert refused <= 0.005 * 8 * 900


def test_a_hot_key_costs_each_node_forty_packets_a_second_at_most() -> None:
    world = five()
    rates = dict.fromkeys(FIVE, EVEN_S)
    settled(world, rates)
    before = {node.name: node.packets for node in world.living()}
    world.run(10_000, load(world, KEY, rates))
    per_s = {node.name: (node.packets - before[node.name]) / 10 for node in world.living()}
    assert sum(per_s.values()) / 5 <= 40, per_s


def test_when_the_owner_dies_standing_rights_go_on_and_soon_there_is_another() -> None:
    world = five()
    rates = dict.fromkeys(FIVE, EVEN_S)
    settled(world, rates)
    each = load(world, KEY, rates)
    world.run(world.to_border(1_000) + 400, each)
    owner = world.owner(KEY)
    assert owner is not None
    died_in = world.window(1_000)
    world.kill(owner.name)
    took_ms = 0
    while world.owner(KEY) is None:
        world.run(10, each)
        took_ms += 10
        assert took_ms <= 1_400
    world.run(8_000, each)
    used = shares(world, died_in, died_in + 8)
    assert max(used) <= 1.0
    assert min(used[1:]) >= 0.39
    assert min(used[3:]) >= 0.85


@pytest.mark.parametrize("loss", [0.1, 0.3])
@pytest.mark.parametrize("seed", range(3))
def test_loss_and_repetition_never_let_more_in(loss: float, seed: int) -> None:
    world = World(FIVE, Defined(limit()), loss=loss, seed=seed)
    each = load(world, KEY, {"a": 1_500.0, "b": 100.0, "c": 600.0, "d": 0.0, "e": 30.0})
    for _ in range(40):
        world.run(500, each)
        assert world.faults() == []
    assert max(world.tally.admitted.values()) <= 1_000
    last = world.window(1_000)
    used = [world.tally.admitted.get((KEY, window), 0) for window in range(last - 8, last)]
    assert sum(used) / 8 >= 700


@pytest.mark.parametrize(("mode", "most"), [("strict", 1.0), ("balanced", 1.2)])
def test_a_minority_lives_on_what_its_mode_leaves_it(mode: Mode, most: float) -> None:
    world = five(mode)
    rates = dict.fromkeys(FIVE, EVEN_S)
    each = load(world, KEY, rates)
    settled(world, rates)
    world.cut_off(("d", "e"))
    cut_in = world.window(1_000)
    world.run(12_000, each)
    assert max(world.tally.admitted.values()) <= most * 1_000
    last = world.window(1_000)
    used = [world.tally.admitted.get((KEY, window), 0) / 1_000 for window in range(last - 3, last)]
    assert min(used) >= most - 0.02
    states = {node.name: node.core.report(KEY, wall_ms=node.wall_ms) for node in world.living()}
    shown = {name: report.state for name, report in states.items() if report is not None}
    alone = "standing" if mode == "strict" else "borrowed"
    assert shown == {"a": "exact", "b": "exact", "c": "exact", "d": alone, "e": alone}
    world.heal()
    world.run(6_000, each)
    healed = world.window(1_000)
    used = [world.tally.admitted.get((KEY, window), 0) for window in range(healed - 3, healed)]
    assert max(used) <= 1_000
    assert min(used) >= 980
    assert cut_in < healed
    assert world.overspent() == []


# ── Restarts, disks, changes ─────────────────────────────────────────────────


def test_a_restarted_node_is_given_nothing_twice() -> None:
    world = five()
    rates = dict.fromkeys(FIVE, EVEN_S)
    each = load(world, KEY, rates)
    settled(world, rates)
    for name in ("b", "c", "b", "a", "e"):
        world.run(1_370, each)
        world.restart(name)
    world.run(8_000, each)
    assert max(world.tally.admitted.values()) <= 1_000
    last = world.window(1_000)
    assert min(shares(world, last - 3, last)) >= 0.98


def test_a_budget_outlives_a_restart_of_all() -> None:
    key = "#requests/3600000"
    world = World(("a", "b", "c"), Defined(limit(3_000, key=key, window_ms=3_600_000)))
    each = load(world, key, {"a": 40.0, "b": 40.0, "c": 40.0})
    window = world.window(3_600_000)
    for _ in range(4):
        world.run(12_000, each)
        for name in ("a", "b", "c"):
            world.restart(name)
    world.run(30_000, each)
    assert world.window(3_600_000) == window
    assert sum(world.tally.admitted.values()) <= 3_000
    assert world.overspent() == []


def test_nobody_votes_on_what_a_full_disk_does_not_take() -> None:
    key = "#requests/60000"
    world = World(("a",), Defined(limit(600, key=key, window_ms=60_000)))
    disk = world.disks["a"]
    assert disk is not None
    each = load(world, key, {"a": 100.0})
    world.run(3_000, each)
    assert world.owner(key) is not None
    disk.full = True
    world.run(world.to_border(60_000) + 5_000, each)
    # Of the new window nothing could be minted: what stands is all there is.
    admitted = world.tally.admitted.get((key, world.window(60_000)), 0)
    assert admitted <= 300
    disk.full = False
    world.run(8_000, each)
    assert world.tally.admitted[key, world.window(60_000)] > admitted
    assert world.overspent() == []


def test_a_limit_that_is_lowered_or_raised_is_never_exceeded() -> None:
    world = five()
    rates = dict.fromkeys(FIVE, EVEN_S)
    each = load(world, KEY, rates)
    settled(world, rates)
    lower = Limit(KEY, "requests", 300, 1_000, "strict", 0.5, 2, ((1_000, 0.5),))
    world.redefine(lower)
    changed_in = world.window(1_000)
    world.run(6_000, each)
    used = {
        window: world.tally.admitted.get((KEY, window), 0)
        for window in range(changed_in, world.window(1_000))
    }
    assert max(used.values()) <= 1_000
    assert all(count <= 300 for window, count in used.items() if window > changed_in + 2)
    higher = Limit(KEY, "requests", 900, 1_000, "strict", 0.5, 3, ((1_000, 0.5), (300, 0.5)))
    world.redefine(higher)
    world.run(6_000, each)
    last = world.window(1_000)
    assert max(world.tally.admitted[KEY, window] for window in range(last - 2, last)) <= 900
    assert min(world.tally.admitted[KEY, window] for window in range(last - 2, last)) >= 700


@pytest.mark.parametrize("data", [b"", b"\x90", b"nonsense", bytes(1_200), b"\xdd\xff\xff\xff\xff"])
def test_what_makes_no_sense_has_no_effect(data: bytes) -> None:
    world = World(("a", "b"), Defined(limit()))
    node = world.nodes["a"]
    node.perform(node.core.handle(data, "b", now_ms=node.now_ms, wall_ms=node.wall_ms))
    assert node.notes.keys() <= {"rights_refused/wire"}


def test_nobody_speaks_under_the_name_of_another() -> None:
    world = five()
    settled(world, dict.fromkeys(FIVE, EVEN_S))
    heard: list[bytes] = []
    world.overhear = heard.append
    world.run(500, load(world, KEY, dict.fromkeys(FIVE, EVEN_S)))
    node = world.nodes["c"]
    assert heard
    for data in heard:
        node.perform(node.core.handle(data, "nobody", now_ms=node.now_ms, wall_ms=node.wall_ms))
    assert node.notes["rights_refused/name"] >= len(heard)


def test_who_leaves_lets_another_own_at_once_what_it_owned() -> None:
    world = five()
    rates = dict.fromkeys(FIVE, EVEN_S)
    settled(world, rates)
    owner = world.owner(KEY)
    assert owner is not None
    rest = {name: EVEN_S for name in FIVE if name != owner.name}
    owner.perform(owner.core.leave(now_ms=owner.now_ms, wall_ms=owner.wall_ms))
    nothing = owner.core.share(KEY, now_ms=owner.now_ms, wall_ms=owner.wall_ms)
    assert nothing is not None
    assert (nothing.left, nothing.window) == (0, -1)
    world.dead_rows += owner.core.rows()
    owner.up = False
    world.tell_members(left=[owner.name])
    each = load(world, KEY, rest)
    took_ms = 0
    while world.owner(KEY) is None:
        world.run(10, each)
        took_ms += 10
        assert took_ms <= 400
    world.run(3_000, each)
    assert max(world.tally.admitted.values()) <= 1_000


def test_who_hears_of_a_change_after_its_clock_jumped_back_has_not_adopted_it_in_windows_it_was_in() -> (
    None
):
    world = World(("a",), Defined(limit()))
    each = load(world, KEY, {"a": 100.0})
    world.run(6_000, each)
    node = world.nodes["a"]
    node.skew_ms -= 4_000
    world.run(20, each)
    world.redefine(limit(2_000))
    said = []
    for _ in range(8):
        world.run(1_000, each)
        report = node.core.report(KEY, wall_ms=node.wall_ms)
        assert report is not None
        said.append(report.not_adopted)
    assert said == [("a",)] * 3 + [()] * 5
    assert world.faults() == []
