"""Ledgers and treasuries together: a burst at one node gets what stands with the others, and nothing twice."""

import pytest

from smg_mesh.escrow.limit_model import Life, Limit, Roster
from smg_mesh.escrow.messages.messages import GiveRow, Minted, RightsGive
from smg_mesh.escrow.spending.released_slices import RELEASED, ReleasedSlices
from smg_mesh.escrow.spending.spending_ledger import Ledger
from support.rights.rights_world import WALL_MS, Defined, World, rate

KEY = "model=m#requests/60000"


def settled(amount: int = 60, names: str = "abc", *, mode: str = "strict") -> World:
    """A world that has just begun a window, and has lived for some time."""
    world = World(
        Limit(KEY, "requests", amount, 60_000, mode=mode),  # type: ignore[arg-type]  # one of the modes
        names=names,
    )
    world.run(1)
    world.now_ms += 60_000 - (WALL_MS + world.now_ms) % 60_000
    return world


def admitted(world: World) -> int:
    return sum(got for (key, _), got in world.got.items() if key == KEY)


def burst(world: World, name: str, count: int, within_ms: int = 1_000) -> int:
    """Ask for so much at once at one node, again and again while some of it waits; return what was admitted."""
    before, left = admitted(world), count
    share = world.nodes[name].share(KEY)
    assert share is not None
    for _ in range(within_ms // 5):
        while left and world.nodes[name].spend(KEY):
            left -= 1
        share.wanted = left
        share.wants_more = bool(left)
        world.run(5, audits=True)
    share.wanted = 0
    return admitted(world) - before


@pytest.mark.parametrize("names", ["abc", "abcde", "abcdefghij"])
@pytest.mark.parametrize("at_owner", [True, False])
def test_a_burst_at_one_node_gets_the_whole_limit(names: str, *, at_owner: bool) -> None:
    world = settled(60, names)
    world.hand_over("a" if at_owner else "b")
    assert burst(world, "a", 80) == 60


@pytest.mark.parametrize("mode", ["strict", "balanced", "available"])
def test_so_it_is_in_every_mode_and_in_the_middle_of_a_window(mode: str) -> None:
    world = settled(600, mode=mode)
    world.run(34_000, rate(b=2.0))
    world.run(12_000)
    before = admitted(world)
    assert burst(world, "c", 640) == 600 - before


def test_what_another_node_needs_it_keeps() -> None:
    world = settled(6_000)
    world.run(5_000, rate(b=20.0))
    burst(world, "c", 8_000, within_ms=2_000)
    before = world.by_node[KEY, next(iter(world.got))[1], "b"]
    world.run(20_000, rate(b=20.0), audits=True)
    after = world.by_node[KEY, next(iter(world.got))[1], "b"]
    assert after - before >= 350


def test_a_lender_that_restarts_has_nothing_of_what_it_released() -> None:
    world = settled(600)
    assert burst(world, "a", 640) == 600
    for name in "bc":
        world.restart(name)
    world.run(50_000, rate(b=50.0, c=50.0), audits=True)
    assert admitted(world) == 600


def test_a_lender_that_restarts_has_what_it_did_not_release() -> None:
    world = settled(6_000)
    world.run(2_000, rate(a=2_000.0), audits=True)
    released = world.nodes["b"].ledger._footing.released.released(KEY, next(iter(world.got))[1])
    assert 0 < released < 5
    world.restart("b")
    world.hand_over("")
    world.run(30_000, rate(b=1_000.0), audits=True)
    spent = world.by_node[KEY, next(iter(world.got))[1], "b"]
    assert 0 < spent <= 1_000 * (6 - released) // 6


def test_a_lender_whose_disk_is_lost_has_nothing_more_of_the_window() -> None:
    world = settled(600)
    assert burst(world, "a", 640) == 600
    world.lose_disk("b")
    world.restart("b")
    world.run(50_000, rate(b=50.0), audits=True)
    assert admitted(world) == 600


def test_a_call_that_is_lost_or_comes_twice_changes_nothing() -> None:
    world = settled(600, "abcde")
    world.loss, world.repeat, world.jitter_ms = 0.3, 0.5, 30
    assert burst(world, "b", 640, within_ms=8_000) == 600


@pytest.mark.parametrize("amount", [60, 600, 6_000])
def test_what_an_owner_has_left_is_not_lost_when_another_one_takes_over(amount: int) -> None:
    world = settled(amount)
    got = 0
    for owner in "abcab":
        world.run(300)  # What is on its way to the former owner when it ceases to be one is lost.
        world.hand_over(owner)
        got += burst(world, "c", amount // 6, within_ms=1_500)
    assert got == amount // 6 * 5
    rest = amount - got
    assert rest - 5 <= burst(world, "a", amount, within_ms=2_000) <= rest


@pytest.mark.parametrize("when_ms", [0, 3, 5, 8, 10, 20, 40])
@pytest.mark.parametrize("who", ["owner", "lender", "borrower"])
def test_whoever_dies_in_the_middle_of_a_loan_nothing_is_spent_twice(
    who: str, when_ms: int
) -> None:
    world = settled(600)
    world.hand_over("a")
    share = world.nodes["b"].share(KEY)
    assert share is not None
    share.wanted, share.wants_more = 640, True
    world.run(when_ms, rate(b=2_000.0), audits=True)
    name = {"owner": "a", "lender": "c", "borrower": "b"}[who]
    world.restart(name)
    world.hand_over("c")
    world.run(55_000, rate(a=20.0, b=20.0, c=20.0), audits=True)
    # What a borrower got for the requests that waited dies with it.
    assert (60 if who == "borrower" else 380) <= admitted(world) <= 600


# ── What is on disk ──────────────────────────────────────────────────────────


ROSTER = Roster(bytes(16), 3, ("a", "b"), (2, 2))


def released_by(disk: dict[tuple[str, int], int] | None) -> ReleasedSlices:
    made = ReleasedSlices(disk, memory_ms=lambda: 0)
    made.follow(ROSTER, 2, founder=False, wall_ms=1_000_000)
    return made


def write(slices: ReleasedSlices, disk: dict[tuple[str, int], int], now_ms: int = 0) -> None:
    for row in slices.unwritten(now_ms=now_ms):
        disk[row.key, row.window] = max(row.total, disk.get((row.key, row.window), 0))
        slices.written(row)


def test_nothing_stands_before_it_is_on_disk_since_when_a_name_is_in_the_roster() -> None:
    disk: dict[tuple[str, int], int] = {}
    slices = released_by(None)
    assert slices.kept(KEY, 20, 60_000) == -1
    write(slices, disk)
    assert slices.kept(KEY, 16, 60_000) == 0, "it began before that"
    assert slices.kept(KEY, 17, 60_000) == 6
    assert released_by(disk).kept(KEY, 16, 60_000) == 0, "and for the next life too"
    assert released_by(disk).kept(KEY, 17, 60_000) == 6


def test_what_was_released_stays_so_for_the_next_life_and_is_written_once() -> None:
    disk: dict[tuple[str, int], int] = {}
    slices = released_by(None)
    write(slices, disk)
    slices.plan(KEY, 30, 2, now_ms=0)
    slices.plan(KEY, 30, 2, now_ms=5)
    assert slices.kept(KEY, 30, 60_000) == 6, "it is not on disk yet"
    assert [row.total for row in slices.unwritten(now_ms=5)] == [2]
    assert slices.unwritten(now_ms=500) == ()
    slices.plan(KEY, 30, 2, now_ms=1_200)
    assert [row.total for row in slices.unwritten(now_ms=1_200)] == [2], "the disk had failed"
    slices.plan(KEY, 30, 3, now_ms=1_201)
    write(slices, disk, 1_201)
    assert slices.kept(KEY, 30, 60_000) == 3
    assert released_by(disk).kept(KEY, 30, 60_000) == 3
    assert slices.written(Minted("another#requests/1000", 3, 4)) == ""


def test_a_name_that_was_out_of_the_roster_has_nothing_of_windows_that_run() -> None:
    disk: dict[tuple[str, int], int] = {}
    slices = released_by(None)
    write(slices, disk)
    for version, divisor in ((4, 0), (5, 3)):
        names = ("b", "c") if not divisor else ("a", "b", "c")
        roster = Roster(bytes(16), version, names, (len(names),) * len(names))
        slices.follow(roster, divisor, founder=False, wall_ms=1_300_000)
    assert slices.kept(KEY, 30, 60_000) == -1
    write(slices, disk, 2_000)
    assert slices.kept(KEY, 21, 60_000) == 0
    assert slices.kept(KEY, 22, 60_000) == 6


def test_whoever_has_begun_the_roster_has_its_part_of_the_window_that_runs() -> None:
    slices = ReleasedSlices({}, memory_ms=lambda: 0)
    slices.follow(Roster(bytes(16), 1, ("a",), (1,)), 1, founder=True, wall_ms=1_000_000)
    write(slices, {})
    assert slices.kept(KEY, 16, 60_000) == 6


def test_a_disk_that_has_forgotten_something_gives_nothing_of_windows_before() -> None:
    slices = ReleasedSlices({}, memory_ms=lambda: 1_010_000)
    slices.follow(Roster(bytes(16), 1, ("a",), (1,)), 1, founder=True, wall_ms=1_000_000)
    write(slices, {})
    assert slices.kept(KEY, 16, 60_000) == 0
    assert slices.kept(KEY, 17, 60_000) == 6


def test_budgets_are_never_released_and_nothing_of_it_concerns_them() -> None:
    slices = ReleasedSlices(None, memory_ms=lambda: 1 << 60)
    assert slices.kept("k#requests/3600000", 1, 3_600_000) == 360, "nobody has released any"
    assert not slices.may(121_000)
    assert slices.may(120_000)
    assert not slices.may(10_000), "there is nothing to come in it"


def test_of_windows_that_were_released_the_last_are_remembered() -> None:
    slices = released_by(None)
    for window in range(100, 100 + 65_536 + 10):
        slices.written(Minted(RELEASED + KEY, window, 2))
    write(slices, {})
    assert slices.released(KEY, 105) == 0
    assert slices.released(KEY, 110) == 2


def test_what_stands_is_there_as_soon_as_it_is_on_disk_since_when_the_name_is_in_the_roster() -> (
    None
):
    limit, roster = Limit(KEY, "requests", 360, 60_000), Roster(bytes(16), 1, ("a",), (1,))
    wall_ms = WALL_MS - WALL_MS % 60_000
    released = ReleasedSlices({}, memory_ms=lambda: 0)
    ledger = Ledger(
        Life("a", 1), Defined(limit), now_ms=0, wall_ms=wall_ms - 90_000, released=released
    )
    ledger.follow(roster, 1, wall_ms=wall_ms - 90_000, founder=True)
    share = ledger.share(limit, now_ms=90_000, wall_ms=wall_ms)
    ledger.tick(now_ms=90_010, wall_ms=wall_ms + 10, owners=lambda _: "a", majority=True)
    assert share.left == 0
    ledger.written(ledger.unwritten(now_ms=90_020), now_ms=90_020)
    due_ms = ledger.due_ms(90_020)
    assert due_ms is not None
    assert due_ms <= 90_025
    ledger.tick(now_ms=90_030, wall_ms=wall_ms + 30, owners=lambda _: "a", majority=True)
    assert (share.left, share.spent) == (30, 0)
    (row,) = ledger.rows()
    assert (row.standing, row.lapsed) == (30, 0)


def test_what_is_released_before_it_is_known_what_stands_is_only_what_was_written() -> None:
    limit, roster = Limit(KEY, "requests", 360, 60_000), Roster(bytes(16), 1, ("a",), (1,))
    wall_ms = WALL_MS - WALL_MS % 60_000
    window = wall_ms // 60_000
    released = ReleasedSlices({}, memory_ms=lambda: 0)
    ledger = Ledger(
        Life("a", 1), Defined(limit), now_ms=0, wall_ms=wall_ms - 90_000, released=released
    )
    ledger.follow(roster, 1, wall_ms=wall_ms - 90_000, founder=True)
    row = GiveRow(term=1, key=KEY, window=window, given=0, left=0, valid_ms=10_000, called=40)
    ledger.given(RightsGive("b", 1, 0, (row,)), now_ms=90_000, wall_ms=wall_ms)
    rows = ledger.unwritten(now_ms=90_000)
    assert rows[0] == Minted(RELEASED + KEY, window, 2)
    ledger.written(rows, now_ms=90_010)
    ledger.tick(now_ms=90_020, wall_ms=wall_ms + 20, owners=lambda _: "b", majority=True)
    (held,) = ledger.rows()
    assert (held.standing, held.left, held.lapsed) == (30, 30, 0)
    assert released.kept(KEY, window, 60_000) == 4
