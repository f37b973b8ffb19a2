import random
import tracemalloc

import msgspec

from smg_mesh.config import StateOptions
from smg_mesh.crdt.tables.lww_table import Row
from smg_mesh.crdt.tables.table_shard import FLOOR_STEP_MS
from support.state.table_world import TableWorld

HOUR_MS = 3_600_000


def test_a_row_is_over_four_hours_after_it_was_last_used() -> None:
    world = TableWorld("a")
    world["a"].bound.put("k", b"x")
    world.now_ms += 4 * HOUR_MS
    assert world["a"].bound.get("k") is not None
    world.now_ms += 1
    assert world["a"].bound.get("k") is None
    assert world["a"].held() == {}
    assert world["a"].bound.touch("k") is None


def test_a_touch_is_a_write_at_most_every_half_hour() -> None:
    world = TableWorld("a")
    world["a"].bound.put("k", b"x")
    for _ in range(8 * 60):
        world.now_ms += 60_000
        world["a"].bound.touch("k")
    assert len(world["a"].wrote) == 1 + 16
    assert world["a"].held() == {"k": b"x"}
    assert world["a"].bound.touch("never") is None


def test_an_own_time_may_be_given_but_a_row_never_ends_before_the_one_it_replaces() -> None:
    world = TableWorld("a", "b")
    first = world["a"].bound.put("k", b"1", ttl_ms=HOUR_MS)
    world.now_ms += 60_000
    second = world["a"].bound.put("k", b"2", ttl_ms=1_000)
    assert second.ends_ms == first.ends_ms
    world["b"].hear(second)
    world.now_ms += HOUR_MS
    world["b"].hear(first)
    assert world["b"].bound.get("k") is None


def test_rows_leave_a_day_after_their_end_in_steps_and_clocks_seldom_disagree() -> None:
    world = TableWorld("a", "b", shards=1)
    world["b"].skew_ms = 3_000
    for number in range(120):
        world["b"].hear(world["a"].bound.put(f"k{number}", b"x"))
        world.now_ms += 30_000
    world.now_ms += 3 * HOUR_MS
    disagreed = 0
    for minute in range(26 * 60):
        assert minute > 25 * 60 or len(world["a"].table) > 0
        for second in (58, 61, 64, 67, 90):
            at_ms = world.now_ms + second * 1_000
            for node in world.nodes.values():
                node.table.expire(at_ms + node.skew_ms)
            disagreed += bool(world.differing())
        world.now_ms += 60_000
    assert len(world["a"].table) == 0
    assert disagreed <= 8
    assert "k3" in [key for keys in world["a"].changed[120:] for key in keys]
    assert world["a"].table.expire(world.now_ms) == []


def test_what_has_left_does_not_come_back() -> None:
    world = TableWorld("a", "b", shards=1)
    row = world["a"].bound.put("k", b"x")
    world.now_ms += 28 * HOUR_MS + 2 * FLOOR_STEP_MS
    world["b"].bound.put("other", b"x")
    world["b"].table.expire(world.now_ms)
    changes = len(world["b"].changed)
    assert world["b"].hear(row) is None
    assert len(world["b"].changed) == changes


def test_an_exchange_carries_the_floor_so_that_who_expired_first_is_followed() -> None:
    world = TableWorld("a", "b", shards=1)
    for number in range(3):
        world["b"].hear(world["a"].bound.put(f"k{number}", b"x"))
    world.now_ms += 28 * HOUR_MS + 2 * FLOOR_STEP_MS
    assert world["a"].table.expire(world.now_ms) == [0]
    assert world.differing() == [0]
    assert world["b"].table.missing(0, world["a"].table.summary(0)) == b""
    world.exchange("b", "a")
    assert world.differing() == []
    assert len(world["b"].table) == 0


def test_a_floor_alone_is_nothing_to_tell_where_the_same_is_held() -> None:
    world = TableWorld("a", "b", shards=1)
    world["b"].hear(world["a"].bound.put("k", b"x"))
    world.now_ms += FLOOR_STEP_MS
    assert world["a"].table.expire(world.now_ms) == []
    assert world["a"].table.missing(0, world["b"].table.summary(0)) == b""


def test_a_floor_from_the_future_drops_nothing_that_counts_here() -> None:
    world = TableWorld("a", "b", shards=1)
    row = world["a"].bound.put("k", b"x")
    ahead = msgspec.msgpack.encode([row.ends_ms + 1, []])
    assert not world["a"].table.merge(0, ahead, world["a"].wall_ms())
    assert world["a"].held() == {"k": b"x"}


def test_a_row_from_a_clock_far_ahead_is_held_and_counts_when_its_time_has_come() -> None:
    world = TableWorld("a", "b")
    world["b"].skew_ms = 600_000
    first = world["a"].bound.put("k", b"1")
    world["b"].hear(first)
    ahead = world["b"].bound.put("k", b"ahead")
    assert world["a"].hear(ahead) == "k"
    assert world["a"].table.counts()["future"] == 1
    # Digests are equal at once, and here the latest of the others counts meanwhile.
    assert world.differing() == []
    assert world["a"].held() == {"k": b"1"}
    world.now_ms += 1_000
    second = world["a"].bound.put("k", b"2")
    assert second.written_ms == world.now_ms
    assert world["a"].bound.get("k") == second
    assert world["a"].held() == {"k": b"2"}
    assert world["a"].hear(first) is None
    assert world["a"].hear(ahead) is None
    assert world["a"].held() == {"k": b"2"}
    assert world["b"].hear(second) is None
    assert world.differing() == []
    world.now_ms += 530_000
    changes = len(world["a"].changed)
    assert world["a"].table.expire(world.now_ms) == []
    assert len(world["a"].changed) == changes
    world.now_ms += 10_000
    assert world["a"].held() == {"k": b"ahead"}
    assert world["a"].table.expire(world.now_ms) == []
    assert world["a"].changed[changes:] == [("k",)]
    third = world["a"].bound.put("k", b"3")
    assert world["b"].hear(third) == "k"
    assert world["a"].held() == world["b"].held() == {"k": b"3"}


def test_a_key_that_only_a_clock_far_ahead_wrote_is_not_there_yet() -> None:
    world = TableWorld("a", "b", "c")
    world["b"].skew_ms = 600_000
    first, second = world["b"].bound.put("k", b"1"), world["b"].bound.put("k", b"2")
    assert world["a"].hear(second) == "k"
    assert world["a"].hear(first) is None
    world.exchange("a", "c")
    assert world.differing() == []
    assert world["a"].bound.get("k") is None
    assert world["a"].held() == world["c"].held() == {}
    assert world["a"].bound.touch("k") is None
    row = world["c"].bound.put("k", b"c")
    assert world["a"].hear(row) == "k"
    assert world["a"].held() == world["c"].held() == {"k": b"c"}
    world["a"].bound.remove("k")
    assert world["a"].held() == {}
    world.now_ms += 600_000
    assert world["a"].held() == world["c"].held() == {"k": b"2"}


def test_above_its_size_the_least_recently_written_leave_the_same_on_all_nodes() -> None:
    rng = random.Random(3)
    options = StateOptions(table_rows_max=40, tables={"sticky": 4})
    world = TableWorld("a", "b", "c", options=options)
    rows: list[Row] = []
    for number in range(300):
        world.now_ms += 1_000
        rows.append(world[rng.choice("ab")].bound.put(f"k{number % 90}", b"x"))
    for row in rng.sample(rows, len(rows)):
        world["c"].hear(row)
    world.exchange("a", "b")
    world.exchange("a", "c")
    world.exchange("b", "c")
    assert world.differing() == []
    assert len(world["a"].table) == 40
    assert world["a"].held() == world["b"].held() == world["c"].held()
    assert set(world["c"].held()) <= {row.key for row in rows[-90:]}


def test_memory_stays_the_same_over_fifteen_thousand_updates() -> None:
    options = StateOptions(table_rows_max=200, tables={"sticky": 4})
    world = TableWorld("a", "b", options=options)
    rng = random.Random(1)

    def write(count: int) -> None:
        for _ in range(count):
            world.now_ms += rng.randrange(20_000)
            world["a"].wrote.clear()
            world["a"].changed.clear()
            world["b"].changed.clear()
            key = f"k{rng.randrange(400)}"
            if rng.random() < 0.1:
                world["a"].bound.remove(key)
            else:
                world["b"].hear(world["a"].bound.put(key, b"x" * 20))

    write(3_000)
    tracemalloc.start()
    write(3_000)
    before, _ = tracemalloc.get_traced_memory()
    write(15_000)
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert abs(after - before) < 60_000
    assert len(world["a"].table) <= 200
