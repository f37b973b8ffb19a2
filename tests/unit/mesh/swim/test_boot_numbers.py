"""Lives have numbers that grow, and no two lives the same."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from smg_mesh.swim.boot_numbers import BOOT_MAX, boot_after, first_boot

WALLS = st.integers(min_value=-(1 << 41), max_value=1 << 42)
BOOTS = st.integers(min_value=0, max_value=BOOT_MAX - (1 << 17))


@given(WALLS, BOOTS, st.integers(0, 1 << 32))
def test_a_new_life_is_later_than_the_last_one_kept(wall_ms: int, kept: int, seed: int) -> None:
    assert kept < first_boot(wall_ms, Random(seed), kept=kept) <= BOOT_MAX


@given(BOOTS, st.integers(0, 1 << 32))
def test_a_later_boot_is_one_millisecond_later(known: int, seed: int) -> None:
    later = boot_after(known, Random(seed))
    assert later >> 16 == (known >> 16) + 1


def test_two_lives_that_are_told_the_same_take_different_numbers() -> None:
    taken = {boot_after(1 << 56, Random(seed)) for seed in range(100)}
    assert len(taken) == 100


def test_the_last_number_of_all_is_not_passed() -> None:
    assert boot_after(BOOT_MAX - 1, Random(1)) == BOOT_MAX
