"""A table of many writers: whatever is heard, in any order and however often, the same is held."""

from contextlib import suppress

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from smg_mesh.config import StateOptions
from smg_mesh.crdt.tables.lww_table import Row, TableError
from smg_mesh.crdt.tables.table_rows import encode_row
from support.state.table_world import TableWorld
from support.tools.example_counts import example_count

NAMES = ("a", "b", "c")
HOUR_MS = 3_600_000
NO_MS = 1_700_000_000_000

ACTS = st.lists(
    st.tuples(
        st.sampled_from(["put", "put", "touch", "remove", "pause", "hear", "exchange", "expire"]),
        st.integers(0, 2),
        st.integers(0, 30),
        st.integers(0, 5),
    ),
    max_size=60,
)


@settings(deadline=None, max_examples=example_count(200))
@given(acts=ACTS, skews=st.tuples(*[st.integers(-20_000, 20_000)] * 3), rows_max=st.integers(1, 40))
def test_after_exchanges_all_tables_are_equal(
    acts: list[tuple[str, int, int, int]], skews: tuple[int, int, int], rows_max: int
) -> None:
    options = StateOptions(table_rows_max=rows_max, tables={"sticky": 2})
    world = TableWorld(*NAMES, options=options)
    for name, skew_ms in zip(NAMES, skews, strict=True):
        world[name].skew_ms = skew_ms
    for act, who, key, amount in acts:
        node = world[NAMES[who]]
        if act == "put":
            node.bound.put(f"k{key}", bytes([amount + 1]))
        elif act == "touch":
            node.bound.touch(f"k{key}")
        elif act == "remove":
            node.bound.remove(f"k{key}")
        elif act == "pause":
            world.now_ms += amount * HOUR_MS // 2 + key
        elif act == "hear":
            wrote = [row for other in world.nodes.values() for row in other.wrote]
            if wrote:
                node.hear(wrote[(key * 7 + amount) % len(wrote)])
        elif act == "exchange":
            world.exchange(NAMES[who], NAMES[(who + 1 + amount % 2) % 3])
        else:
            node.table.expire(node.wall_ms())
    for _ in range(2):
        for one, other in (("a", "b"), ("b", "c"), ("a", "c")):
            world.exchange(one, other)
    assert world.differing() == []
    assert all(len(node.table) <= 2 * -(-rows_max // 2) for node in world.nodes.values())
    held = [{row.key: row for row in node.table.items("", NO_MS)} for node in world.nodes.values()]
    assert held[0] == held[1] == held[2]


ROWS = st.builds(
    Row,
    key=st.sampled_from(["k1", "k2", "k3", "k4"]),
    content=st.binary(max_size=2),
    hlc=st.integers(0, 40).map(lambda at: NO_MS + at * HOUR_MS // 4 << 16),
    owner=st.sampled_from(["a", "b"]),
    ttl_ms=st.just(4 * HOUR_MS),
)


@settings(deadline=None, max_examples=example_count(300))
@given(rows=st.lists(ROWS, max_size=14), data=st.data())
def test_the_order_and_the_number_of_arrivals_do_not_matter(
    rows: list[Row], data: st.DataObject
) -> None:
    options = StateOptions(table_rows_max=3, tables={"sticky": 1})
    world = TableWorld("x", "y", options=options)
    world.now_ms = NO_MS + 20 * HOUR_MS
    for row in rows:
        world["x"].hear(row)
    for row in data.draw(st.permutations(rows)):
        world["y"].hear(row)
        world["y"].hear(data.draw(st.sampled_from(rows)))
    assert world.differing() == []
    assert world["x"].table.dump(0) == world["y"].table.dump(0) or world["x"].held() == {}


@settings(deadline=None, max_examples=example_count(300))
@given(rumor=st.binary(max_size=500), update=st.binary(max_size=500), cut=st.integers(0, 60))
def test_garbage_makes_sense_or_is_refused_and_changes_nothing(
    rumor: bytes, update: bytes, cut: int
) -> None:
    world = TableWorld("a", shards=1)
    row = world["a"].bound.put("k", b"x")
    before = world["a"].table.dump(0)
    for data in (rumor, encode_row(row)[:cut], encode_row(row)[: cut % 10] + rumor):
        world["a"].table.hear(data, world.now_ms)
    for data in (update, before[:cut], rumor):
        try:
            world["a"].table.merge(0, data, world.now_ms)
        except TableError:
            continue
        msgspec.msgpack.decode(data)
    with suppress(TableError):
        world["a"].table.missing(0, update)
    assert world["a"].bound.get("k") == row
