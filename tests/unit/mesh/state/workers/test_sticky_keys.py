import random

import pytest

from smg_mesh.config import StateOptions
from smg_mesh.state.workers.sticky_keys import Sticky, StickyRow
from support.state.table_world import TableWorld

HOUR_MS = 3_600_000


class Cluster:
    """Nodes with their sticky keys; what one writes all hear, unless it is held back."""

    def __init__(self, *names: str, rows_max: int = 50_000) -> None:
        options = StateOptions(table_rows_max=rows_max)
        self.world = TableWorld(*names, options=options)
        self.views = {name: Sticky(self.world[name].bound) for name in names}

    def __getitem__(self, name: str) -> Sticky:
        return self.views[name]

    def spread(self) -> None:
        for node in self.world.nodes.values():
            rows, node.wrote[:] = list(node.wrote), []
            for row in rows:
                for other in self.world.nodes.values():
                    other.hear(row)


def test_a_key_bound_at_one_node_is_bound_at_all() -> None:
    cluster = Cluster("a", "b", "c")
    cluster["a"].bind("k1", "w1", "manual")
    cluster.spread()
    time_ms = cluster.world.now_ms
    for name in ("a", "b", "c"):
        assert cluster[name].worker_of("k1") == "w1"
        assert cluster[name].worker_of("k2") is None
        assert cluster[name].row("k1") == StickyRow(
            "k1", "w1", "manual", "a", time_ms, time_ms + 4 * HOUR_MS
        )
        assert cluster[name].row("k2") is None
        assert len(cluster[name]) == 1


def test_two_nodes_that_bind_a_key_at_once_agree_on_the_later() -> None:
    cluster = Cluster("a", "b", "c")
    cluster["b"].bind("k1", "w2")
    cluster["a"].bind("k1", "w1")
    cluster.spread()
    assert {view.worker_of("k1") for view in cluster.views.values()} == {"w2"}
    cluster.world.now_ms += 1
    cluster["a"].bind("k1", "w1")
    cluster.spread()
    assert {view.worker_of("k1") for view in cluster.views.values()} == {"w1"}


def test_a_released_key_belongs_to_nobody_anywhere() -> None:
    cluster = Cluster("a", "b")
    cluster["a"].bind("k1", "w1")
    cluster.spread()
    cluster["b"].release("k1")
    cluster["b"].release("never")
    cluster.spread()
    assert [view.worker_of("k1") for view in cluster.views.values()] == [None, None]
    assert [view.of_worker("w1") for view in cluster.views.values()] == [[], []]
    assert [len(view) for view in cluster.views.values()] == [0, 0]


def test_the_keys_of_a_worker_are_known_wherever_they_were_bound() -> None:
    cluster = Cluster("a", "b")
    for number in range(6):
        cluster["ab"[number % 2]].bind(f"k{number}", f"w{number % 3}")
    cluster.spread()
    cluster["a"].bind("k0", "w1", "moved")
    cluster.spread()
    for name in ("a", "b"):
        assert cluster[name].of_worker("w0") == ["k3"]
        assert cluster[name].of_worker("w1") == ["k0", "k1", "k4"]
        assert cluster[name].of_worker("w9") == []
        assert [cluster[name].keys_at(worker) for worker in ("w0", "w1", "w9")] == [1, 3, 0]


def test_a_key_is_forgotten_four_hours_after_its_last_use() -> None:
    cluster = Cluster("a", "b")
    cluster["a"].bind("used", "w1")
    cluster["a"].bind("idle", "w1")
    cluster.spread()
    touches = 0
    for _ in range(5 * 60):
        cluster.world.now_ms += 60_000
        cluster["b"].touch("used")
        touches += len(cluster.world["b"].wrote)
        cluster.spread()
    assert touches == 10
    for name in ("a", "b"):
        assert cluster[name].worker_of("used") == "w1"
        assert cluster[name].worker_of("idle") is None
        assert cluster[name].row("idle") is None
        assert cluster[name].of_worker("w1") == ["used"]


def test_the_index_follows_what_leaves_for_want_of_room() -> None:
    cluster = Cluster("a", rows_max=64)
    for number in range(1_000):
        cluster.world.now_ms += 1
        cluster["a"].bind(f"k{number}", f"w{number % 7}")
    held = cluster.world["a"].held()
    assert len(cluster["a"]) == len(held) <= 64
    found = [key for number in range(7) for key in cluster["a"].of_worker(f"w{number}")]
    assert sorted(found) == sorted(held)


def test_a_view_made_late_knows_what_was_bound_before() -> None:
    cluster = Cluster("a")
    cluster["a"].bind("k1", "w1")
    assert Sticky(cluster.world["a"].bound).of_worker("w1") == ["k1"]


def test_a_row_without_sense_binds_nothing() -> None:
    cluster = Cluster("a", "b")
    for content in (b"\xc1", b"\x92\xa0\xa0", b"\x91" * 200, b"\x91\xa1\xff"):
        cluster["a"].bind("k1", "w1")
        cluster.world["a"].bound.put("k1", content)
        cluster.spread()
        assert cluster["b"].worker_of("k1") is None
        assert cluster["b"].row("k1") is None


def test_what_is_no_worker_is_refused_and_a_long_why_is_cut() -> None:
    cluster = Cluster("a")
    for worker_id in ("", "x" * 65):
        with pytest.raises(ValueError, match="is no worker"):
            cluster["a"].bind("k", worker_id)
    cluster["a"].bind("k" * 128, "ü" * 64, "y" * 1_000)
    row = cluster["a"].row("k" * 128)
    assert row is not None
    assert row.why == "y" * 64


def test_thirty_of_thirty_agree_after_lost_rumors_and_one_round_of_exchanges() -> None:
    rng = random.Random(2)
    cluster = Cluster("a", "b", "c")
    for turn in range(300):
        name = rng.choice("abc")
        cluster[name].bind(f"k{turn % 30}", f"w{rng.randrange(5)}")
        for row in cluster.world[name].wrote:
            for other in cluster.world.nodes.values():
                if rng.random() < 0.5:
                    other.hear(row)
        cluster.world.now_ms += rng.randrange(3)
    for left, right in (("a", "b"), ("b", "c"), ("a", "b")):
        cluster.world.exchange(left, right)
    for number in range(30):
        assert len({view.worker_of(f"k{number}") for view in cluster.views.values()}) == 1
