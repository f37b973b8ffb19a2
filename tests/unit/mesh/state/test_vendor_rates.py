"""Rows of vendors' limits travel small and seldom, the latest news count, and nothing that cannot be true is taken."""

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from smg_mesh.state.vendor_rates import (
    AGE_MAX_MS,
    AMOUNT_MAX,
    SPAN_MAX_MS,
    SharedBucket,
    SharedPause,
    VendorRates,
    VendorRow,
    decode_rows,
    encode_rows,
    merged,
    merged_rows,
    row_name,
)
from support.state.register_world import RegisterWorld

NOW = 1_790_000_000_000
A, B = row_name(b"account1", "requests"), row_name(b"account1", "tokens")
OFF = row_name(b"account1", "!denied")


class Cluster:
    """Nodes with a view each, whose wall clocks differ by a minute each."""

    def __init__(self, *names: str) -> None:
        self.world = RegisterWorld(*names)
        self.views = {
            name: VendorRates(
                self.world[name].bound,
                name,
                wall_ms=lambda at=at: self.wall_ms(at),  # type: ignore[misc]  # bound now
            )
            for at, name in enumerate(names)
        }

    def wall_ms(self, at: int) -> int:
        return NOW + 60_000 * at + self.world.now_ms()

    def pass_time(self, span_ms: int, *, step_ms: int = 50) -> None:
        for _ in range(0, span_ms, step_ms):
            self.world.pass_time(step_ms, step_ms=step_ms)
            for view in self.views.values():
                view.refresh()


def test_news_are_heard_with_their_age_whatever_the_clocks_say() -> None:
    cluster = Cluster("a", "b")
    a_ms, b_ms = cluster.wall_ms(0), cluster.wall_ms(1)
    bucket = SharedBucket(7, 600, 20, a_ms + 58_000, a_ms - 40)
    cluster.views["a"].publish({A: bucket, OFF: SharedPause(a_ms + 60_000)})
    assert dict(cluster.views["b"].others()) == {
        A: SharedBucket(7, 600, 20, b_ms + 58_000, b_ms - 40),
        OFF: SharedPause(b_ms + 60_000),
    }
    assert dict(cluster.views["a"].others()) == {}


def test_what_is_not_said_any_more_is_forgotten() -> None:
    cluster = Cluster("a", "b")
    cluster.views["a"].publish({A: SharedBucket(7)})
    heard: list[str] = []
    cluster.views["b"].watch(heard.extend)
    cluster.pass_time(1_000)
    assert A in cluster.views["b"].others()
    cluster.views["a"].publish({})
    cluster.pass_time(1_000)
    assert dict(cluster.views["b"].others()) == {}
    assert heard == [A]
    cluster.pass_time(20_000)
    said = len(cluster.world["a"].said)
    cluster.pass_time(20_000)
    assert len(cluster.world["a"].said) == said, "an account that nobody uses costs nothing"


def test_it_is_said_at_most_four_times_a_second() -> None:
    cluster = Cluster("a", "b")
    for number in range(400):
        now_ms = cluster.wall_ms(0)
        cluster.views["a"].publish({A: SharedBucket(9, 600, number, now_ms + 1_000, now_ms)})
        cluster.pass_time(10, step_ms=10)
    rumors = cluster.world["a"].said
    assert 14 <= len(rumors) <= 18
    assert max(rumor.size_bytes for rumor in rumors) < 100
    row = cluster.views["b"].others()[A]
    assert isinstance(row, SharedBucket)
    assert row.remaining >= 374


def test_a_row_has_about_forty_bytes() -> None:
    row = SharedBucket(40, 2_000_000, 1_999_000, NOW + 59_000, NOW - 120)
    assert len(encode_rows({A: row}, NOW)) <= 44
    assert len(encode_rows({B: row}, NOW)) <= 44
    assert len(encode_rows({OFF: SharedPause(NOW + 60_000)}, NOW)) <= 32


def test_many_rows_take_many_registers_and_all_are_heard() -> None:
    cluster = Cluster("a", "b")
    now_ms = cluster.wall_ms(0)
    rows: dict[str, VendorRow] = {
        row_name(number.to_bytes(8, "big"), "input-tokens"): SharedBucket(
            number, AMOUNT_MAX, AMOUNT_MAX, now_ms + SPAN_MAX_MS, now_ms
        )
        for number in range(200)
    }
    cluster.views["a"].publish(rows)
    assert set(cluster.views["b"].others()) == set(rows)


def test_what_has_no_proper_name_is_not_said_and_takes_nothing_else_along() -> None:
    cluster = Cluster("a", "b")
    strange = ("-images", "a" * 40, "A", "a b", "", "!")
    rows: dict[str, VendorRow] = {row_name(b"account1", name): SharedBucket(1) for name in strange}
    cluster.views["a"].publish({**rows, A: SharedBucket(3), "short/requests": SharedBucket(1)})
    assert dict(cluster.views["b"].others()) == {A: SharedBucket(3)}
    assert cluster.views["b"].garbage == 0


def test_the_latest_news_and_the_sum_of_what_is_wanted_count() -> None:
    early, late = SharedBucket(3, 600, 50, NOW, NOW - 500), SharedBucket(4, 600, 10, NOW, NOW - 100)
    silent = SharedBucket(5)
    for rows in ([early, late, silent], [silent, late, early], [late, silent, early]):
        assert merged(rows) == SharedBucket(12, 600, 10, NOW, NOW - 100)
    assert merged([SharedPause(NOW), SharedPause(NOW + 5), SharedPause(NOW + 2)]) == SharedPause(
        NOW + 5
    )
    assert merged([]) is None
    assert merged([early, SharedPause(NOW)]) == early
    assert merged_rows([{A: early}, {A: late, B: silent}]) == {
        A: SharedBucket(7, 600, 10, NOW, NOW - 100),
        B: silent,
    }


def test_a_node_that_dies_wants_nothing_any_more() -> None:
    cluster = Cluster("a", "b", "c")
    cluster.views["a"].publish({A: SharedBucket(3)})
    cluster.views["b"].publish({A: SharedBucket(4)})
    assert cluster.views["c"].others()[A] == SharedBucket(7)
    cluster.world["c"].registers.member_gone("a", cluster.world.now_ms())
    for _ in range(30):
        cluster.world.pass_time(500, step_ms=500)
        cluster.views["b"].refresh()
    assert cluster.views["c"].others()[A] == SharedBucket(4)


def row(*numbers: object, what: str = "requests", account: bytes = b"account1") -> bytes:
    return msgspec.msgpack.encode([[account, what, list(numbers)]])


ABSURD = {
    "more left than ever": row(0, 1, 10, 11, 0, 0, False),
    "a negative limit": row(0, 1, -1, 0, 0, 0, False),
    "too much": row(0, 1, AMOUNT_MAX + 1, 0, 0, 0, False),
    "wants too much": row(0, AMOUNT_MAX + 1, 1, 0, 0, 0, False),
    "full in a year": row(0, 1, 10, 1, 365 * 86_400_000, 0, False),
    "of tomorrow": row(0, 1, 10, 1, 0, -5, False),
    "too old": row(0, 1, 10, 1, 0, AGE_MAX_MS + 1, False),
    "closed for a year": row(1, 365 * 86_400_000, what="!closed"),
    "closed in the past": row(1, -1, what="!closed"),
    "a pause called as a bucket": row(1, 5),
    "a bucket called as a pause": row(0, 1, 10, 1, 0, 0, False, what="!closed"),
    "an unknown kind": row(7, 5),
    "a short id": row(1, 5, what="!closed", account=b"short"),
    "a long id": row(1, 5, what="!closed", account=b"far too long"),
    "no name": row(0, 1, 10, 1, 0, 0, False, what=""),
    "a strange name": row(0, 1, 10, 1, 0, 0, False, what="a/b"),
    "a long name": row(0, 1, 10, 1, 0, 0, False, what="a" * 41),
    "a fraction": row(0, 1.5, 10, 1, 0, 0, False),
    "too few": row(0, 1, 10),
    "no list": b"\x01",
    "nothing": b"",
    "deep": b"\x91" * 5_000,
}


@pytest.mark.parametrize("content", ABSURD.values(), ids=ABSURD)
def test_what_cannot_be_true_is_not_taken(content: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  # any of msgspec's
        decode_rows(content, NOW)
    cluster = Cluster("a", "b")
    cluster.views["a"].publish({A: SharedBucket(3)})
    cluster.pass_time(500)
    if content:
        cluster.world["a"].bound.set("v", "0", content[:480], ttl_ms=5_000)
        cluster.pass_time(300)
        assert cluster.views["b"].garbage > 0
        assert dict(cluster.views["b"].others()) in ({}, {A: SharedBucket(3)})


buckets = st.builds(
    SharedBucket,
    st.integers(-5, 10**16),
    st.integers(-5, 10**16),
    st.integers(-5, 10**16),
    st.integers(NOW - 10**9, NOW + 10**12),
    st.integers(NOW - 10**9, NOW + 10**9),
    st.booleans(),
)
pauses = st.builds(SharedPause, st.integers(NOW - 10**9, NOW + 10**12))


@given(buckets, pauses, st.integers(-(10**9), 10**9))
@example(SharedBucket(0, AMOUNT_MAX + 1, AMOUNT_MAX + 1, NOW, NOW), SharedPause(NOW), 0)
def test_whatever_is_said_is_heard_as_something_that_can_be_true(
    bucket: SharedBucket, pause: SharedPause, clocks_ms: int
) -> None:
    content = encode_rows({A: bucket, OFF: pause}, NOW)
    heard = decode_rows(content, NOW + clocks_ms)
    assert list(heard) == [A, OFF]
    told, off = heard[A], heard[OFF]
    assert isinstance(told, SharedBucket)
    assert isinstance(off, SharedPause)
    assert 0 <= told.remaining <= told.limit <= AMOUNT_MAX
    assert told.limit == 0 or told.seen_ms <= NOW + clocks_ms <= told.full_at_ms
    assert 0 <= off.until_ms - (NOW + clocks_ms) <= SPAN_MAX_MS


@given(st.binary(max_size=300))
def test_garbage_is_refused_or_read(content: bytes) -> None:
    try:
        rows = decode_rows(content, NOW)
    except ValueError:
        return
    assert all(isinstance(one, SharedBucket | SharedPause) for one in rows.values())
