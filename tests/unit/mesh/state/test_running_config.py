import msgspec
import pytest

from smg_mesh.crdt.registers.register_codec import RegisterError
from smg_mesh.state.running_config import Running
from support.state.register_world import RegisterWorld


class Cluster:
    """Nodes that say what they run."""

    def __init__(self, *names: str) -> None:
        self.world = RegisterWorld(*names)
        self.views = {name: Running(self.world[name].bound, name) for name in names}

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
    assert 28 <= len(cluster.world["a"].said) <= 31
    cluster.world.kill("a")
    cluster.pass_time(10_500)
    assert cluster["b"].all() == {}


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
