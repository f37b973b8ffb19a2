import msgspec
import pytest

from smg_mesh.config import StateOptions
from smg_mesh.crdt.tables.lww_table import TableError
from smg_mesh.crdt.tables.table_rows import ROW_BYTES_MAX, UPDATE_BYTES_MAX
from support.state.table_world import TableWorld

HOUR_MS = 3_600_000


def test_a_row_counts_here_at_once_and_elsewhere_when_it_is_heard() -> None:
    world = TableWorld("a", "b")
    row = world["a"].bound.put("k", b"x")
    assert world["a"].bound.get("k") == row
    assert world["a"].wrote == [row]
    assert world["b"].bound.get("k") is None
    assert world["b"].hear(row) == "k"
    assert world["b"].bound.get("k") == row
    assert (row.owner, row.content, row.ttl_ms) == ("a", b"x", 4 * HOUR_MS)
    assert world.differing() == []
    assert (world["a"].changed, world["b"].changed) == ([("k",)], [("k",)])


def test_the_later_write_counts_in_whatever_order_the_two_are_heard() -> None:
    world = TableWorld("a", "b", "c")
    first = world["a"].bound.put("k", b"1")
    world.now_ms += 1
    second = world["b"].bound.put("k", b"2")
    assert world["a"].hear(second) == "k"
    assert world["b"].hear(first) is None
    for row in (second, first, second):
        world["c"].hear(row)
    assert world.differing() == []
    assert [node.held() for node in world.nodes.values()] == [{"k": b"2"}] * 3
    assert world["c"].changed == [("k",)]


def test_of_two_writes_at_the_same_moment_the_larger_name_counts_everywhere() -> None:
    world = TableWorld("a", "b")
    mine, theirs = world["a"].bound.put("k", b"mine"), world["b"].bound.put("k", b"theirs")
    assert mine.hlc == theirs.hlc
    world["a"].hear(theirs)
    world["b"].hear(mine)
    assert world["a"].held() == world["b"].held() == {"k": b"theirs"}


def test_a_write_that_saw_another_is_later_though_its_clock_is_behind() -> None:
    world = TableWorld("a", "b")
    world["b"].skew_ms = -30_000
    world["b"].hear(world["a"].bound.put("k", b"1"))
    second = world["b"].bound.put("k", b"2")
    assert world["a"].hear(second) == "k"
    assert world["a"].held() == {"k": b"2"}


def test_a_removal_is_heard_like_a_write_and_beats_what_came_before() -> None:
    world = TableWorld("a", "b")
    row = world["a"].bound.put("k", b"x")
    world["b"].hear(row)
    world["b"].bound.remove("k")
    (removal,) = world["b"].wrote
    assert removal.content == b""
    assert world["a"].hear(removal) == "k"
    assert world["a"].hear(row) is None
    assert world["a"].bound.get("k") is None
    assert world["a"].held() == world["b"].held() == {}
    world["a"].bound.remove("k")
    world["a"].bound.remove("never")
    assert world["a"].wrote == [row]
    world["a"].bound.put("k", b"again")
    assert world["a"].held() == {"k": b"again"}


def test_a_missed_rumor_is_found_by_digest_and_exchanged() -> None:
    world = TableWorld("a", "b")
    for number in range(100):
        row = world["a"].bound.put(f"k{number}", b"x")
        if number % 10:
            world["b"].hear(row)
    for number in range(5):
        world["b"].bound.put(f"own{number}", b"y")
    assert world.differing()
    took = world.exchange("a", "b")
    assert world.differing() == []
    assert world["a"].held() == world["b"].held()
    assert len(world["a"].held()) == 105
    # Fifteen rows and eight bytes for each of the others.
    assert took < 15 * 80 + 4 * 100 + 2 * 105 * 8
    assert world.exchange("a", "b") == 0


def test_a_summary_of_nothing_gets_everything_and_one_of_everything_nothing() -> None:
    world = TableWorld("a", "b", shards=1)
    for number in range(10):
        world["a"].bound.put(f"k{number}", b"x")
    update = world["a"].table.missing(0, world["b"].table.summary(0))
    assert world["b"].table.merge(0, update, world["b"].wall_ms())
    assert not world["b"].table.merge(0, update, world["b"].wall_ms())
    assert world["a"].table.missing(0, world["b"].table.summary(0)) == b""
    assert world["b"].changed == [tuple(f"k{number}" for number in range(10))]


def test_digests_are_zero_only_where_nothing_is() -> None:
    world = TableWorld("a", shards=2)
    assert [world["a"].table.digest(shard) for shard in (0, 1)] == [bytes(16)] * 2
    assert world["a"].table.pieces() == []
    row = world["a"].bound.put("k", b"x")
    shard = world["a"].table.shard_of("k")
    assert world["a"].table.pieces() == [
        (shard, world["a"].table.digest(shard), len(world["a"].table.pack(row)))
    ]
    world["a"].table.clear()
    assert world["a"].table.pieces() == []
    assert world["a"].held() == {}
    assert world["a"].changed == [("k",), ("k",)]


def test_an_update_is_cut_where_an_exchange_ends_and_the_next_goes_on() -> None:
    options = StateOptions(table_rows_max=5_000, tables={"sticky": 1})
    world = TableWorld("a", "b", options=options)
    for number in range(4_000):
        world["a"].bound.put(f"k{number:04}", bytes(380))
    update = world["a"].table.missing(0, world["b"].table.summary(0))
    assert UPDATE_BYTES_MAX * 0.95 < len(update) < UPDATE_BYTES_MAX + 20
    rounds = 0
    while world.differing():
        world.exchange("b", "a")
        rounds += 1
    assert rounds == 2


def test_what_was_dumped_is_loaded_into_a_later_life() -> None:
    world = TableWorld("a", "later")
    for number in range(50):
        world["a"].bound.put(f"k{number}", b"x")
    world["a"].bound.remove("k7")
    for shard in range(4):
        data = world["a"].table.dump(shard)
        world["later"].table.load(shard, data, world.now_ms)
    assert world.differing() == []
    assert world["later"].held() == world["a"].held()
    empty = TableWorld("e")
    assert [empty["e"].table.dump(shard) for shard in range(4)] == [b""] * 4


def test_prefixes_select_and_keys_sort() -> None:
    world = TableWorld("a")
    for key in ("b2", "a1", "b1", "c"):
        world["a"].bound.put(key, b"x")
    assert [row.key for row in world["a"].bound.items("b")] == ["b1", "b2"]
    assert [row.key for row in world["a"].bound.items()] == ["a1", "b1", "b2", "c"]


@pytest.mark.parametrize(
    ("key", "content", "ttl_ms"),
    [
        ("", b"x", None),
        ("k" * 129, b"x", None),
        ("k", b"", None),
        ("k", bytes(ROW_BYTES_MAX), None),
        ("k", b"x", -1),
    ],
)
def test_a_row_that_no_rumor_could_carry_is_refused(
    key: str, content: bytes, ttl_ms: int | None
) -> None:
    world = TableWorld("a")
    with pytest.raises(TableError):
        world["a"].bound.put(key, content, ttl_ms=ttl_ms)
    assert len(world["a"].table) == 0
    assert world["a"].wrote == []


GARBAGE = (
    b"",
    b"\xc1",
    b"\x91" * 2_000,
    msgspec.msgpack.encode(["k", b"x", 1, "a"]),
    msgspec.msgpack.encode(["", b"x", 1, "a", 1]),
    msgspec.msgpack.encode(["k", b"x", -1, "a", 1]),
    msgspec.msgpack.encode(["k", b"x", 1, "", 1]),
    msgspec.msgpack.encode(["k", b"x", 1, "a", 0]),
    msgspec.msgpack.encode(["k", b"x", 1, "a", 1 << 50]),
    msgspec.msgpack.encode(["k", "x", 1, "a", 1]),
    b"\x95\xa1\xff\xc4\x01x\x01\xa1a\x01",
)


@pytest.mark.parametrize("data", GARBAGE)
def test_a_rumor_without_sense_changes_nothing(data: bytes) -> None:
    world = TableWorld("a")
    assert world["a"].table.hear(data, world.now_ms) is None
    assert world["a"].table.counts() == {"garbage": 1, "future": 0}


@pytest.mark.parametrize("data", [*GARBAGE, msgspec.msgpack.encode([1, [["k", b"x", 1]]])])
def test_an_update_or_summary_without_sense_is_refused_whole(data: bytes) -> None:
    world = TableWorld("a", shards=1)
    world["a"].bound.put("k", b"x")
    with pytest.raises(TableError):
        world["a"].table.merge(0, data, world.now_ms)
    with pytest.raises(TableError):
        world["a"].table.missing(0, data)
    assert world["a"].held() == {"k": b"x"}


def test_half_a_mark_and_a_row_of_another_shard_make_no_sense() -> None:
    world = TableWorld("a", "b", shards=2)
    row = world["a"].bound.put("k", b"x")
    shard = world["a"].table.shard_of("k")
    with pytest.raises(TableError):
        world["a"].table.missing(shard, msgspec.msgpack.encode([0, b"1234567"]))
    update = world["a"].table.dump(shard)
    with pytest.raises(TableError):
        world["b"].table.merge(1 - shard, update, world.now_ms)
    assert world["b"].bound.get("k") is None
    assert world["b"].table.merge(shard, update, world.now_ms)
    assert world["b"].bound.get("k") == row
