"""Rows of tool sessions: the later one counts, they outlive who wrote them, in no digest, on no disk, and are not left out."""

from dataclasses import replace

import pytest

from smg_mesh.crdt.tables.table_rows import ROW_BYTES_MAX, encode_row
from smg_mesh.state.tool_sessions import SESSION_BYTES_MAX, SessionRow, ToolSessions
from support.state.replica_world import SMALL, WALL_MS, ReplicaWorld

TABLE = "tool_sessions"
KEY = "0" * 32
ROW = SessionRow(KEY, b"sealed", life_ms=300_000)


def view(world: ReplicaWorld, name: str) -> ToolSessions:
    return ToolSessions(world[name].replica.table(TABLE))


def test_the_largest_row_fits_into_one_rumor() -> None:
    world = ReplicaWorld(1)
    view(world, "a").put(SessionRow(KEY, b"x" * SESSION_BYTES_MAX, life_ms=86_400_000))
    (row,) = world["a"].replica.table(TABLE).items()
    assert len(encode_row(row)) + 63 <= ROW_BYTES_MAX
    with pytest.raises(ValueError, match="too much"):
        view(world, "a").put(SessionRow(KEY, b"x" * (SESSION_BYTES_MAX + 1), life_ms=1))


def test_what_one_node_writes_all_have_and_the_later_write_counts() -> None:
    world = ReplicaWorld(3)
    a, b, c = (view(world, name) for name in "abc")
    heard: list[SessionRow] = []
    c.watch(heard.extend)
    written = a.put(ROW)
    world.rumors(shuffle=True)
    assert b.get(KEY) == written
    world.clocks.now_ms += 10
    b.put(SessionRow(KEY, b"another", life_ms=300_000))
    world.rumors(double=1.0)
    assert [one.content for one in c.rows()] == [b"another"]
    c.remove(KEY)
    world.rumors()
    assert a.get(KEY) is None
    assert [one.content for one in heard] == [b"sealed", b"another", b""]


def test_a_row_stays_when_its_node_is_dead_and_ends_with_its_life() -> None:
    world = ReplicaWorld(2)
    view(world, "a").put(ROW)
    world.rumors()
    b = view(world, "b")
    world["b"].replica.set_members([("b", 1)])
    world.pass_time(200_000, 1_000)
    assert b.get(KEY) is not None
    world.pass_time(101_000, 1_000)
    assert b.get(KEY) is None


def test_a_later_write_never_ends_sooner() -> None:
    world = ReplicaWorld(1)
    a = view(world, "a")
    first = a.put(ROW)
    assert first.until_ms == WALL_MS + 1_000 + 300_000
    assert a.put(SessionRow(KEY, b"held", life_ms=1)).until_ms >= first.until_ms


def test_it_changes_no_digest_and_is_on_no_disk_but_a_node_that_comes_is_handed_it() -> None:
    world = ReplicaWorld(2)
    before = world["a"].replica.digest()
    view(world, "a").put(ROW)
    assert world["a"].replica.digest() == before
    assert not world["a"].keeps
    world.start("c")
    world.exchange("c", "a", full=True)
    assert [one.key for one in view(world, "c").rows()] == [KEY]


def test_rows_beyond_the_rate_of_rumors_are_pushed_and_not_left_out() -> None:
    world = ReplicaWorld(2, options=replace(SMALL, rumor_bytes_per_s=2_000))
    a = view(world, "a")
    for at in range(100):
        a.put(SessionRow(f"{at:032}", b"x" * 200, life_ms=300_000))
    world.pass_time(1_000, 100)
    assert world["a"].conversed, "what is too much for rumors goes by an exchange soon"
