"""Ids: their shape, their order, and that no two are the same."""

import random
import re

from smg_node.core.ids import IdSource


class ManualClock:
    """A clock that stands still until told."""

    def __init__(self, now_ms: int) -> None:
        self.now = now_ms

    def now_ms(self) -> int:
        return self.now

    def monotonic_s(self) -> float:
        return self.now / 1_000


def test_an_id_is_a_prefix_and_32_hex_digits() -> None:
    source = IdSource(ManualClock(1_700_000_000_000), random.Random(1))
    assert re.fullmatch(r"chatcmpl-[0-9a-f]{32}", source.new("chatcmpl-"))


def test_ids_of_one_source_are_never_the_same() -> None:
    source = IdSource(ManualClock(5), random.Random(1))
    ids = [source.new("") for _ in range(70_000)]
    assert len(set(ids)) == len(ids)


def test_later_ids_sort_after_earlier_ones() -> None:
    clock = ManualClock(1_700_000_000_000)
    source = IdSource(clock, random.Random(1))
    ids = []
    for _ in range(1_000):
        ids.append(source.new("id-"))
        clock.now += 1
    assert ids == sorted(ids)


def test_ids_of_one_millisecond_sort_in_the_order_they_were_made() -> None:
    source = IdSource(ManualClock(5), random.Random(2))
    ids = [source.new("") for _ in range(1_000)]
    assert ids == sorted(ids)
    assert len({one[16:] for one in ids}) == len(ids), "each has its own chance"


def test_one_seed_gives_one_history() -> None:
    first, second = (IdSource(ManualClock(7), random.Random(3)) for _ in range(2))
    assert [first.new("a") for _ in range(5)] == [second.new("a") for _ in range(5)]


def test_a_wild_clock_does_not_change_the_shape() -> None:
    for now_ms in (0, 2**48 - 1, 2**60):
        assert len(IdSource(ManualClock(now_ms), random.Random(1)).new("")) == 32
