"""What a voter keeps, forgets, and remembers to have forgotten."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from smg_mesh.escrow.election.forgotten_windows import Forgotten
from smg_mesh.escrow.election.minted_records import (
    FORGOTTEN_KEPT_MS,
    KEPT_MIN_MS,
    LEVEL_MARK,
    Records,
)
from smg_mesh.escrow.messages.messages import Minted

KEY = "tenant=a#requests/1000"
MINUTE = "tenant=a#requests/60000"
LEVEL = f"tenant=a#concurrent/0{LEVEL_MARK}n1"
SECOND_MS = 1_000


def stored(records: Records, key: str, window: int, *, now_ms: int) -> bool:
    return records.store(Minted(key, window, 5), 1, now_ms=now_ms) is not None


# ── What is forgotten, window by window ──────────────────────────────────────


LATE_MS = 1 << 50
"""The wall clock is past all of it."""


def test_the_first_window_that_is_forgotten_takes_all_before_it_along() -> None:
    forgotten = Forgotten()
    forgotten.add(40, window_ms=SECOND_MS, now_ms=0, wall_ms=LATE_MS)
    assert [window in forgotten for window in (0, 17, 40, 41)] == [True, True, True, False]


def test_what_nobody_wanted_while_time_passed_is_closed_too() -> None:
    forgotten = Forgotten()
    forgotten.add(40, window_ms=SECOND_MS, now_ms=0, wall_ms=LATE_MS)
    forgotten.add(100, window_ms=SECOND_MS, now_ms=60_000, wall_ms=LATE_MS)
    assert [window in forgotten for window in (41, 70, 100, 101)] == [True, True, True, False]


def test_a_clock_that_was_ahead_closes_its_own_windows_and_none_between() -> None:
    forgotten = Forgotten()
    forgotten.add(40, window_ms=SECOND_MS, now_ms=0, wall_ms=LATE_MS)
    for step in range(3):
        forgotten.add(540 + step, window_ms=SECOND_MS, now_ms=1_000 * (1 + step), wall_ms=LATE_MS)
    forgotten.add(44, window_ms=SECOND_MS, now_ms=4_000, wall_ms=LATE_MS)
    assert [window in forgotten for window in (44, 45, 539, 540, 542, 543)] == [
        True,
        False,
        False,
        True,
        True,
        False,
    ]


def test_time_that_reaches_the_windows_of_a_clock_that_was_ahead_makes_one_of_both() -> None:
    forgotten = Forgotten()
    forgotten.add(40, window_ms=SECOND_MS, now_ms=0, wall_ms=LATE_MS)
    forgotten.add(60, window_ms=SECOND_MS, now_ms=0, wall_ms=LATE_MS)
    for window in range(41, 60):
        assert window not in forgotten
        forgotten.add(
            window, window_ms=SECOND_MS, now_ms=(window - 40) * SECOND_MS, wall_ms=LATE_MS
        )
    assert all(window in forgotten for window in range(61))
    assert 61 not in forgotten


@given(st.lists(st.tuples(st.integers(0, 3_000), st.integers(0, 5_000)), max_size=60))
def test_whatever_clocks_do_what_was_forgotten_stays_so(steps: list[tuple[int, int]]) -> None:
    forgotten = Forgotten()
    now_ms = 0
    for index, (window, passed_ms) in enumerate(steps):
        now_ms += passed_ms
        forgotten.add(window, window_ms=SECOND_MS, now_ms=now_ms, wall_ms=LATE_MS)
        assert all(before in forgotten for before, _ in steps[: index + 1])
        ranges = [(first, last) for last, first in forgotten._ranges]
        assert len(ranges) <= 8
        assert ranges[0][0] == 0
        assert all(first <= last for first, last in ranges)
        assert all(one[1] + 1 < other[0] for one, other in pairwise(ranges))
    assert (max((window for window, _ in steps), default=0) + 1) not in forgotten


# ── Records ──────────────────────────────────────────────────────────────────


def test_a_record_is_kept_as_long_as_it_is_touched_and_some_windows_more() -> None:
    records = Records()
    assert stored(records, KEY, 7, now_ms=0)
    assert stored(records, KEY, 7, now_ms=9_000)
    records.tidy(now_ms=9_000 + KEPT_MIN_MS, wall_ms=LATE_MS)
    assert records.get(KEY, 7) is not None
    records.tidy(now_ms=9_001 + KEPT_MIN_MS, wall_ms=LATE_MS)
    assert records.get(KEY, 7) is None
    assert not stored(records, KEY, 7, now_ms=20_000)
    assert not stored(records, KEY, 6, now_ms=20_000)
    assert stored(records, KEY, 8, now_ms=20_000)


def test_each_key_waits_for_its_own_time() -> None:
    records = Records()
    assert stored(records, MINUTE, 1, now_ms=0)
    assert stored(records, KEY, 60, now_ms=5_000)
    records.tidy(now_ms=100_000, wall_ms=LATE_MS)
    assert records.get(MINUTE, 1) is not None
    assert records.get(KEY, 60) is None
    records.tidy(now_ms=180_001, wall_ms=LATE_MS)
    assert records.get(MINUTE, 1) is None


def test_after_a_clock_that_was_ahead_for_a_while_windows_of_now_are_stored_again() -> None:
    records = Records()
    assert stored(records, KEY, 100, now_ms=0)
    assert stored(records, KEY, 600, now_ms=1_000)
    for now_ms in range(1_000, 20_000, 1_000):
        records.tidy(now_ms=now_ms, wall_ms=LATE_MS)
    assert len(records) == 0
    assert not stored(records, KEY, 600, now_ms=20_000)
    assert stored(records, KEY, 120, now_ms=20_000)


def test_what_was_forgotten_is_forgotten_itself_in_the_end() -> None:
    records = Records()
    assert stored(records, KEY, 7, now_ms=0)
    records.tidy(now_ms=KEPT_MIN_MS + 1, wall_ms=LATE_MS)
    assert records.has_forgotten(KEY, 7)
    records.tidy(now_ms=2 * KEPT_MIN_MS + 1 + FORGOTTEN_KEPT_MS, wall_ms=LATE_MS)
    assert records.has_forgotten(KEY, 7)
    records.tidy(now_ms=2 * KEPT_MIN_MS + 2 + FORGOTTEN_KEPT_MS, wall_ms=LATE_MS)
    assert not records.has_forgotten(KEY, 7)


def test_a_level_stands_in_line_once_however_often_it_is_written() -> None:
    records = Records()
    for write in range(1, 50):
        assert stored(records, LEVEL, write, now_ms=1_000 * write)
    assert len(records._line) == len(records) == 1
    records.tidy(now_ms=49_000 + FORGOTTEN_KEPT_MS, wall_ms=LATE_MS)
    assert records.level(LEVEL) == 49
    records.tidy(now_ms=49_001 + FORGOTTEN_KEPT_MS, wall_ms=LATE_MS)
    assert records.level(LEVEL) == -1
    assert len(records) == 0
    assert stored(records, LEVEL, 3, now_ms=90_000_000)


@given(
    st.lists(
        st.tuples(
            st.sampled_from([KEY, MINUTE, LEVEL]), st.integers(0, 30), st.integers(0, 15_000)
        ),
        max_size=80,
    )
)
def test_the_line_forgets_what_looking_at_everything_would(
    steps: list[tuple[str, int, int]],
) -> None:
    records = Records()
    touched: dict[tuple[str, int], int] = {}
    now_ms = 0
    for key, window, passed_ms in steps:
        now_ms += passed_ms
        records.tidy(now_ms=now_ms, wall_ms=LATE_MS)
        kept_ms = {KEY: KEPT_MIN_MS, MINUTE: 180_000, LEVEL: FORGOTTEN_KEPT_MS}
        touched = {place: at for place, at in touched.items() if now_ms - at <= kept_ms[place[0]]}
        if stored(records, key, window, now_ms=now_ms):
            if key == LEVEL:
                touched = {place: at for place, at in touched.items() if place[0] != LEVEL}
            touched[key, window] = now_ms
        assert len(records) == len(touched) == len(records._line)
        assert all(records.get(*place) is not None for place in touched)


def test_a_window_far_ahead_that_is_forgotten_first_says_nothing_of_those_up_to_it() -> None:
    forgotten = Forgotten()
    forgotten.add(165, window_ms=SECOND_MS, now_ms=9_000_000, wall_ms=17_900)
    assert [window for window in range(200) if window in forgotten] == [*range(18), 165]
