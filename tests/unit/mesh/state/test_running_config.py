import msgspec
import pytest

from smg_mesh.crdt.registers.register_codec import RegisterError
from smg_mesh.state.running_config import LAST_MS, LAST_PER_NODE_MS, REPEAT_MS, Running
from support.state.register_world import RegisterWorld


class Cluster:
    """Nodes that say what they run."""

    def __init__(self, *names: str) -> None:
        self.world = RegisterWorld(*names)
        self.refuted = dict.fromkeys(names, 0)
        self.living = list(names)
        self.views = {name: self._view(name) for name in names}

    def _view(self, name: str) -> Running:
        return Running(
            self.world[name].bound,
            name,
            living=lambda: self.living,
            refuted=lambda: self.refuted[name],
        )

    def __getitem__(self, name: str) -> Running:
        return self.views[name]

    def pass_time(self, span_ms: int) -> None:
        for _ in range(0, span_ms, 500):
            self.world.pass_time(500, step_ms=500)
            for name in self.world.nodes:
                self.views[name].refresh()


def test_every_node_knows_what_every_node_runs() -> None:
    cluster = Cluster("b", "a")
    cluster["a"].publish(settings="1111")
    cluster["b"].publish(settings="2222", version="1.2.3")
    for name in ("a", "b"):
        assert cluster[name].all() == {
            "a": {"settings": "1111"},
            "b": {"settings": "2222", "version": "1.2.3"},
        }
        assert list(cluster[name].all()) == ["a", "b"]


def test_facts_are_added_replaced_and_taken_back() -> None:
    cluster = Cluster("a", "b")
    cluster["a"].publish(settings="1", version="x")
    cluster["a"].publish(settings="2")
    cluster["a"].publish(version="")
    cluster.pass_time(1_000)
    assert cluster["b"].all() == {"a": {"settings": "2"}}
    assert cluster["a"].all() == {"a": {"settings": "2"}}


def test_it_is_said_again_while_the_node_lives_and_seldom() -> None:
    cluster = Cluster("a", "b")
    assert cluster["a"].refresh() is None
    cluster["a"].publish(settings="1")
    for _ in range(100):
        cluster["a"].publish(settings="1")
        cluster.pass_time(3_000)
        assert cluster["b"].all() == {"a": {"settings": "1"}}
    assert said_after_s(cluster, "a") == [0, 10, 50, 210]
    cluster.world.kill("a")
    cluster.pass_time(10_500)
    assert cluster["b"].all() == {}


def said_after_s(cluster: Cluster, name: str) -> list[int]:
    """Return when it spoke, in seconds after the first time, less what steps of half a second make of it."""
    times = [rumor.at_ms for rumor in cluster.world[name].said]
    return [round((at_ms - times[0]) / 10_000) * 10 for at_ms in times]


@pytest.mark.parametrize(("nodes", "last_ms"), [(3, LAST_MS), (100, 100 * LAST_PER_NODE_MS)])
def test_at_rest_all_nodes_together_say_next_to_nothing(nodes: int, last_ms: int) -> None:
    cluster = Cluster("a", "b")
    cluster.living = [""] * nodes
    cluster["a"].publish(settings="1")
    cluster.pass_time(4 * last_ms)
    said = cluster.world["a"].said
    assert said[-1].at_ms - said[-2].at_ms == last_ms
    before = len(said)
    cluster.pass_time(4 * last_ms)
    assert len(said) - before == 4
    assert cluster["b"].all() == {"a": {"settings": "1"}}


def test_three_repeats_in_a_row_may_be_lost() -> None:
    cluster = Cluster("a", "b")
    cluster["a"].publish(settings="1")
    cluster.pass_time(2 * LAST_MS)
    cluster.world.deliver = lambda rumor, to: False
    cluster.pass_time(3 * LAST_MS)
    assert cluster["b"].all() == {"a": {"settings": "1"}}
    cluster.world.deliver = lambda rumor, to: True
    cluster.pass_time(LAST_MS)
    assert cluster["b"].all() == {"a": {"settings": "1"}}


def test_who_had_to_refute_its_death_says_it_again_soon() -> None:
    cluster = Cluster("a", "b")
    cluster["a"].publish(settings="1")
    cluster.pass_time(4 * LAST_MS)
    a, b = cluster.world["a"], cluster.world["b"]
    b.registers.member_gone("a", cluster.world.now_ms())
    cluster.pass_time(11_000)
    assert cluster["b"].all() == {}
    b.registers.member_up("a", a.boot)
    before = len(a.said)
    cluster.refuted["a"] += 1
    cluster.pass_time(REPEAT_MS + 1_000)
    assert cluster["b"].all() == {"a": {"settings": "1"}}
    cluster.pass_time(60_000)
    assert len(a.said) - before == 3


def test_a_change_begins_the_repeats_anew() -> None:
    cluster = Cluster("a", "b")
    cluster["a"].publish(settings="1")
    cluster.pass_time(4 * LAST_MS)
    before = len(cluster.world["a"].said)
    cluster["a"].publish(settings="2")
    cluster.pass_time(60_000)
    assert len(cluster.world["a"].said) - before == 3


def test_a_node_alone_knows_what_it_runs_however_long() -> None:
    cluster = Cluster("a")
    cluster["a"].publish(settings="1")
    cluster.world.pass_time(600_000, step_ms=10_000)
    assert cluster["a"].all() == {"a": {"settings": "1"}}


def test_what_makes_no_sense_is_shown_as_nothing() -> None:
    cluster = Cluster("a", "b")
    for content in (b"\xc1", msgspec.msgpack.encode({"a": 1}), b"\x81" * 400, b"\x81\xa1\xff\xa0"):
        cluster["a"].publish(settings="1")
        cluster.world["a"].bound.set("r", "", content, ttl_ms=1_000)
        cluster.world.pass_time(200)
        assert cluster["b"].all() == {"a": {}}


def test_more_facts_than_a_register_holds_are_refused() -> None:
    cluster = Cluster("a", "b")
    cluster["a"].publish(settings="1")
    with pytest.raises(RegisterError):
        cluster["a"].publish(version="x" * 480)
    cluster.pass_time(20_000)
    assert cluster["b"].all() == {"a": {"settings": "1"}}
