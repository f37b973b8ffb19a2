"""Lives have numbers that grow, and no two lives the same."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_mesh.swim.boot_numbers import (
    BOOT_MAX,
    CLOCK_MS_MIN,
    FIRST_LIVES_MS,
    OUTLIVED_MS,
    boot_after,
    first_boot,
)

WALLS = st.integers(min_value=-(1 << 41), max_value=1 << 42)
BOOTS = st.integers(min_value=0, max_value=BOOT_MAX - (1 << 37))
CLOCKS = st.integers(min_value=CLOCK_MS_MIN, max_value=FIRST_LIVES_MS - 1)
NOW_MS = 1_795_000_000_000


@given(WALLS, BOOTS, st.integers(0, 1 << 32))
def test_a_new_life_is_later_than_the_last_one_kept(wall_ms: int, kept: int, seed: int) -> None:
    assert kept < first_boot(wall_ms, Random(seed), kept=kept) <= BOOT_MAX


@given(CLOCKS, st.integers(1, 1 << 40), st.integers(0, 1 << 32))
def test_of_two_first_lives_the_one_that_started_earlier_is_larger(
    wall_ms: int, after_ms: int, seed: int
) -> None:
    rng = Random(seed)
    elder = first_boot(wall_ms, rng, kept=0)
    assert first_boot(min(wall_ms + after_ms, FIRST_LIVES_MS), rng, kept=0) < elder


@given(WALLS, st.integers(0, 1 << 32))
def test_a_first_life_is_below_all_numbers_that_clocks_gave(wall_ms: int, seed: int) -> None:
    boot = first_boot(wall_ms, Random(seed), kept=0)
    assert 1 <= boot < NOW_MS << 16


@pytest.mark.parametrize("wall_ms", [-1, 0, 86_400_000, CLOCK_MS_MIN - 1, FIRST_LIVES_MS])
def test_a_clock_that_was_never_set_makes_nobody_senior(wall_ms: int) -> None:
    assert first_boot(wall_ms, Random(1), kept=0) < 1 << 16


@given(BOOTS.filter(bool), st.integers(0, 1 << 32))
def test_a_restart_stays_behind_who_took_the_name_meanwhile(kept: int, seed: int) -> None:
    rng = Random(seed)
    outlived = boot_after(kept, rng, by_ms=OUTLIVED_MS)
    assert kept < first_boot(NOW_MS, rng, kept=kept) < outlived


def test_restarts_that_find_the_same_on_their_disk_take_different_numbers() -> None:
    taken = {first_boot(NOW_MS, Random(seed), kept=1 << 56) for seed in range(1000)}
    assert len(taken) == 1000


@given(BOOTS, st.integers(0, 1 << 32))
def test_a_later_boot_is_one_millisecond_later(known: int, seed: int) -> None:
    later = boot_after(known, Random(seed))
    assert later >> 16 == (known >> 16) + 1


def test_two_lives_that_are_told_the_same_take_different_numbers() -> None:
    taken = {boot_after(1 << 56, Random(seed)) for seed in range(100)}
    assert len(taken) == 100


def test_the_last_number_of_all_is_not_passed() -> None:
    assert boot_after(BOOT_MAX - 1, Random(1)) == BOOT_MAX
