"""Rows of prompt caches: small, the later one counts, gone when they are over, in no digest, on no disk."""

from dataclasses import replace

import msgspec
import pytest

from smg_mesh.config import BriefTable
from smg_mesh.crdt.tables.table_rows import encode_row
from smg_mesh.state.prompt_caches import CacheRow, PromptCaches
from smg_mesh.sync.replica_effects import Count
from support.state.replica_world import SMALL, WALL_MS, ReplicaWorld

TABLE = "prompt_caches"
ROW = CacheRow(7, 9, 2, life_ms=300_000)


def view(world: ReplicaWorld, name: str) -> PromptCaches:
    return PromptCaches(world[name].replica.table(TABLE))


def test_a_row_is_at_most_64_bytes_with_the_name_of_a_node() -> None:
    world = ReplicaWorld(1)
    view(world, "a").put(CacheRow(2**64 - 1, 2**32 - 1, 3, life_ms=3_600_000))
    (row,) = world["a"].replica.table(TABLE).items()
    written = msgspec.structs.replace(row, owner="gateway-eu-central-1-07")
    assert len(encode_row(written)) <= 64


def test_what_one_node_writes_all_have_and_the_later_write_counts() -> None:
    world = ReplicaWorld(3)
    a, b, c = (view(world, name) for name in "abc")
    a.put(ROW)
    world.rumors(shuffle=True)
    assert [(one.beginning, one.scope, one.state) for one in b.rows()] == [(7, 9, 2)]
    world.clocks.now_ms += 10
    b.put(CacheRow(7, 9, 3, life_ms=300_000))
    world.rumors(double=1.0)
    assert [one.state for one in c.rows()] == [3]
    c.remove(7, 9)
    world.rumors()
    assert not list(a.rows())


def test_a_row_ends_with_its_life_and_is_held_no_longer() -> None:
    world = ReplicaWorld(2)
    a, b = view(world, "a"), view(world, "b")
    a.put(ROW)
    world.rumors()
    assert [one.until_ms for one in b.rows()] == [WALL_MS + 1_000 + 300_000]
    world.pass_time(300_001, 1_000)
    assert not list(b.rows())
    world.pass_time(60_000, 1_000)
    assert (len(a), len(b)) == (0, 0)


def test_it_changes_no_digest_and_is_on_no_disk_but_a_node_that_comes_is_handed_it() -> None:
    world = ReplicaWorld(2)
    before = world["a"].replica.digest()
    view(world, "a").put(ROW)
    assert world["a"].replica.digest() == before
    assert not [name for name in world["a"].replica.pieces() if name.startswith(TABLE)]
    assert not world["a"].keeps
    world.start("c")
    world.exchange("c", "a", full=True)
    assert [one.scope for one in view(world, "c").rows()] == [9]


def test_it_is_spoken_of_only_where_there_are_rows_and_has_no_digest_of_its_own() -> None:
    world = ReplicaWorld(1)
    assert TABLE not in world["a"].replica.state()
    view(world, "a").put(ROW)
    told = world["a"].replica.state()[TABLE]
    assert (told.entries, told.digest) == (1, "0" * 16)


def test_rows_leave_half_of_the_rate_of_rumors_to_the_rest_and_are_in_the_next_exchange() -> None:
    world = ReplicaWorld(2, options=replace(SMALL, rumor_bytes_per_s=2_000))
    a = view(world, "a")
    for at in range(100):
        a.put(CacheRow(at, 9, 2, life_ms=300_000))
    world["a"].settings.put("knob", b"value")
    kinds = [news.kind for news in world["a"].said]
    assert kinds[-1] == "d"
    assert kinds.count(f"t.{TABLE}") < 100
    assert Count("rumor_left_out", detail=f"t.{TABLE}") in world["a"].counted
    assert not world["a"].conversed
    world.rumors()
    world.exchange("b", "a")
    assert len(list(view(world, "b").rows())) == 100


def test_of_more_rows_than_it_may_have_those_that_end_first_go() -> None:
    options = replace(SMALL, brief_tables={TABLE: BriefTable(shards=1, rows_max=10)})
    world = ReplicaWorld(1, options=options)
    a = view(world, "a")
    for at in range(12):
        world.clocks.now_ms += 1
        a.put(CacheRow(at, 9, 2, life_ms=300_000))
    assert sorted(one.beginning for one in a.rows()) == list(range(2, 12))


@pytest.mark.parametrize(
    "key", ["sticky", "AAAA", "not base64 at al", "AAAAAAAAAAAAAAA=", "A" * 16 + "===", "é" * 16]
)
def test_a_key_of_another_kind_is_passed_over(key: str) -> None:
    world = ReplicaWorld(1)
    world["a"].replica.table(TABLE).put(key, b"x")
    assert not list(view(world, "a").rows())
    assert view(world, "a").get(key) is None


@pytest.mark.parametrize(
    "row", [CacheRow(1, 1, 256, life_ms=1), CacheRow(1, 1, 1), CacheRow(1, 1, 1, life_ms=-5)]
)
def test_a_row_out_of_range_is_refused(row: CacheRow) -> None:
    with pytest.raises(ValueError, match="no state"):
        view(ReplicaWorld(1), "a").put(row)
