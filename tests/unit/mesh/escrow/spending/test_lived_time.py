"""The wall clock of the lives before: what they may have spent does not stand again, everything else does."""

from hypothesis import given
from hypothesis import strategies as st

from smg_mesh.escrow.limit_model import Limit, Roster
from smg_mesh.escrow.spending.lived_time import (
    LIVED_KEY,
    SLACK_MS,
    WRITE_MS,
    LivedTime,
    without_lived,
)
from smg_mesh.escrow.spending.node_footing import NOTHING, Footing
from support.rights.escrow_world import Defined, World

NOON_MS = 1_700_000_400_000
KEY = "tenant=acme#requests/1000"
LIMIT = Limit(KEY, "requests", 100, 1_000, mode="strict")
ROSTER = Roster(bytes(16), 1, ("a", "b"), (2, 2))


def life(disk: dict[tuple[str, int], int] | None, wall_ms: int = NOON_MS) -> LivedTime:
    return LivedTime(disk, now_ms=0, wall_ms=wall_ms)


def write(lived: LivedTime, disk: dict[tuple[str, int], int], *, spends: bool = True) -> bool:
    rows = lived.unwritten(spends=spends)
    for row in rows:
        place = (row.key, row.window)
        disk[place] = max(disk.get(place, 0), row.total)
    lived.written(rows)
    return bool(rows)


def test_it_is_written_at_the_begin_and_then_every_two_seconds_while_something_is_spent() -> None:
    lived, disk = life({}), dict[tuple[str, int], int]()
    assert not lived.known
    assert write(lived, disk, spends=False)
    assert lived.known
    times = []
    for at_ms in range(5, 10_000, 5):
        lived.see(now_ms=at_ms, wall_ms=NOON_MS + at_ms)
        if write(lived, disk, spends=at_ms < 7_000):
            times.append(at_ms)
    assert times == [2_000, 4_000, 6_000]


def test_after_a_jump_ahead_nothing_is_known_until_it_is_written() -> None:
    lived, disk = life({}), dict[tuple[str, int], int]()
    write(lived, disk)
    lived.see(now_ms=100, wall_ms=NOON_MS + 100)
    assert lived.known
    early = lived.unwritten(spends=True)
    lived.see(now_ms=105, wall_ms=NOON_MS + 60_105)
    assert not lived.known
    lived.written(early)
    assert not lived.known
    assert write(lived, disk)
    assert lived.known
    assert max(disk.values()) == NOON_MS + 60_105


def test_a_write_that_failed_is_tried_again_a_second_later() -> None:
    lived = life({})
    assert lived.unwritten(spends=False)
    lived.see(now_ms=999, wall_ms=NOON_MS + 999)
    assert not lived.unwritten(spends=False)
    lived.see(now_ms=1_000, wall_ms=NOON_MS + 1_000)
    assert lived.unwritten(spends=False)


def test_a_clock_that_was_set_back_is_followed_and_the_life_to_come_knows() -> None:
    lived, disk = life({}), dict[tuple[str, int], int]()
    write(lived, disk)
    lived.see(now_ms=50_000, wall_ms=NOON_MS + 50_000)
    lived.see(now_ms=50_005, wall_ms=NOON_MS + 5)
    assert lived.known
    assert write(lived, disk)
    after = LivedTime(None, now_ms=50_010, wall_ms=NOON_MS + 10, before=lived)
    assert after.until_ms(NOON_MS + 1_000) == NOON_MS + 50_000


def test_a_clock_of_years_to_come_is_no_harm_until_then() -> None:
    years_ms = NOON_MS + 70 * 365 * 86_400_000
    lived, disk = life({}, years_ms), dict[tuple[str, int], int]()
    write(lived, disk)
    after = life(disk)
    assert after.until_ms(NOON_MS) == 0
    assert after.until_ms(years_ms) == years_ms + SLACK_MS


def test_the_voter_does_not_take_it_for_a_memory() -> None:
    assert without_lived(None) is None
    assert without_lived({(LIVED_KEY, 3): 9}) == {}
    assert without_lived({(LIVED_KEY, 3): 9, (KEY, 1): 5}) == {(KEY, 1): 5}


@given(
    st.lists(
        st.tuples(st.integers(-400_000, 400_000), st.lists(st.integers(1, 1_500), max_size=30)),
        min_size=1,
        max_size=6,
    )
)
def test_no_window_stands_with_two_lives_whatever_their_clocks_say(
    lives: list[tuple[int, list[int]]],
) -> None:
    disk: dict[tuple[str, int], int] = {}
    stood: dict[int, int] = {}
    true_ms = NOON_MS
    for number, (wrong_ms, steps_ms) in enumerate(lives):
        lived = LivedTime(disk, now_ms=true_ms, wall_ms=true_ms + wrong_ms)
        footing = Footing(now_ms=true_ms, wall_ms=true_ms + wrong_ms, lived=lived)
        footing.divide(ROSTER, 2, wall_ms=0)
        for step_ms in steps_ms:
            true_ms += step_ms
            if step_ms % 97 == 0:
                wrong_ms += step_ms * 1_000 - 700_000
            footing.clocks(now_ms=true_ms, wall_ms=true_ms + wrong_ms)
            window = (true_ms + wrong_ms) // 1_000
            began_ms = window * 1_000
            if footing.right(LIMIT, began_ms=began_ms, turn_ms=began_ms) != NOTHING:
                assert stood.setdefault(window, number) == number
            write(lived, disk)
        true_ms += 10


def test_a_facade_whose_clock_was_ahead_does_not_spend_twice_what_stands() -> None:
    world = World(["a", "b", "c"], Defined(LIMIT))
    world.until(lambda: world.owner(KEY) is not None or not world.nodes["a"].offer(KEY))
    world.run(3_000)
    ahead = world.nodes["c"]
    ahead.skew_ms = 20_000

    def one_offers() -> None:
        ahead.offer(KEY)

    world.run(3 * WRITE_MS, one_offers)
    world.restart("c")

    def all_offer() -> None:
        for node in world.living():
            node.offer(KEY)

    world.run(22_000, all_offer)
    spent = world.tally.admitted
    assert max(spent.values()) <= 100
    last = world.window(1_000) - 1
    assert spent[KEY, last] >= 90


def test_what_ended_before_the_furthest_moment_that_a_clock_showed_was_over_though_it_jumped_back() -> (
    None
):
    lived, disk = life({}), dict[tuple[str, int], int]()
    write(lived, disk)
    lived.see(now_ms=30_000, wall_ms=NOON_MS + 30_000)
    lived.see(now_ms=30_005, wall_ms=NOON_MS + 900_000)
    lived.see(now_ms=40_005, wall_ms=NOON_MS + 910_000)
    lived.see(now_ms=40_010, wall_ms=NOON_MS + 5_000)
    moments = (-1, 0, 5_000, 30_001, 899_000, 910_000, 910_001)
    assert [lived.has_passed(NOON_MS + at) for at in moments] == [True] * 6 + [False]
    assert not lived.has_passed(NOON_MS - 180_000_000)
    assert lived.latest_ms(NOON_MS + 5_000) == NOON_MS + 910_000
    assert lived.latest_ms(NOON_MS + 911_000) == NOON_MS + 911_000
    assert lived.latest_ms(NOON_MS - 180_000_000) == NOON_MS - 180_000_000
    next_one = LivedTime(None, now_ms=0, wall_ms=NOON_MS + 5_000, before=lived)
    assert next_one.latest_ms(NOON_MS + 5_000) == NOON_MS + 910_000
    assert next_one.has_passed(NOON_MS + 29_000)


def test_a_life_knows_from_its_disk_that_its_clock_was_set_back_and_takes_no_restart_for_that() -> (
    None
):
    disk = dict[tuple[str, int], int]()
    before = life({})
    before.see(now_ms=59_000, wall_ms=NOON_MS + 59_000)
    write(before, disk)
    again = life(disk, NOON_MS + 59_500)
    assert again.latest_ms(NOON_MS + 59_500) == NOON_MS + 59_500
    back = life(disk, NOON_MS + 20_000)
    assert back.latest_ms(NOON_MS + 20_000) == NOON_MS + 59_000 + SLACK_MS
    assert back.has_passed(NOON_MS + 59_000)
    assert not back.has_passed(NOON_MS + 62_000)


def test_a_life_is_a_restart_in_a_window_only_if_one_before_it_was_there() -> None:
    hour_ms = 3_600_000
    first = LivedTime({}, now_ms=0, wall_ms=hour_ms + 900_000)
    fresh = Footing(now_ms=0, wall_ms=hour_ms + 900_000, lived=first)
    assert not fresh.restarted_after(hour_ms)
    rows = {(LIVED_KEY, (hour_ms + 300_000) // 600_000): hour_ms + 300_000}
    second = LivedTime(rows, now_ms=0, wall_ms=hour_ms + 900_000)
    back = Footing(now_ms=0, wall_ms=hour_ms + 900_000, lived=second)
    assert back.restarted_after(hour_ms)
    assert not back.restarted_after(2 * hour_ms)
    old = LivedTime({(LIVED_KEY, 1): 900_000}, now_ms=0, wall_ms=hour_ms + 900_000)
    assert not Footing(now_ms=0, wall_ms=hour_ms + 900_000, lived=old).restarted_after(hour_ms)
    # Without a disk nobody knows what was before.
    assert Footing(now_ms=0, wall_ms=hour_ms + 900_000).restarted_after(hour_ms)
