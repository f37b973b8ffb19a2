from smg_mesh.crdt.hybrid_clock import HybridClock, hlc_ms

MINUTE_MS = 60_000


def test_ticks_only_grow_whatever_the_wall_clock_does() -> None:
    clock = HybridClock(future_ms=MINUTE_MS)
    ticks = [clock.tick(wall_ms) for wall_ms in (1_000, 1_000, 5, 0, 1_001, 1_000)]
    assert ticks == sorted(set(ticks))
    assert hlc_ms(ticks[0]) == 1_000


def test_a_tick_is_the_wall_clock_where_that_is_ahead() -> None:
    clock = HybridClock(future_ms=MINUTE_MS)
    assert clock.tick(1_000) == 1_000 << 16
    assert clock.tick(1_000) == (1_000 << 16) + 1
    assert clock.tick(2_000) == 2_000 << 16


def test_the_counter_runs_over_into_the_milliseconds() -> None:
    clock = HybridClock(future_ms=MINUTE_MS)
    assert clock.witness((1_000 << 16) + 0xFFFF, 1_000)
    assert clock.tick(1_000) == 1_001 << 16


def test_a_tick_is_later_than_what_was_witnessed() -> None:
    clock = HybridClock(future_ms=MINUTE_MS)
    ahead = (1_000 + MINUTE_MS) << 16
    assert clock.witness(ahead, 1_000)
    assert clock.tick(1_000) == ahead + 1


def test_a_clock_far_ahead_moves_nothing() -> None:
    clock = HybridClock(future_ms=MINUTE_MS)
    ahead = (1_001 + MINUTE_MS) << 16
    assert clock.is_future(ahead, 1_000)
    assert not clock.witness(ahead, 1_000)
    assert clock.tick(1_000) == 1_000 << 16
    assert not clock.is_future(ahead, 1_001)


def test_what_was_seen_once_stays_past_though_the_wall_clock_is_set_back() -> None:
    clock = HybridClock(future_ms=MINUTE_MS)
    hour_ms = 3_600_000
    last = clock.tick(10 * hour_ms)
    assert not clock.is_future(last, 9 * hour_ms)
    assert clock.is_future(last + 1, 9 * hour_ms)
    assert clock.witness(last, 9 * hour_ms)


def test_a_tick_is_later_than_what_an_earlier_life_gave_and_that_may_still_fall_back() -> None:
    clock = HybridClock(future_ms=MINUTE_MS)
    clock.recall((1_000 + MINUTE_MS) << 16, 1_000)
    assert clock.tick(1_000) == ((1_000 + MINUTE_MS) << 16) + 1
    clock.recall((3_000 + MINUTE_MS) << 16, 1_000)
    assert clock.tick(1_000) == ((1_000 + MINUTE_MS) << 16) + 2
    assert clock.fall_back(0)
    assert clock.tick(0) == 1
