"""Found workers: what a shared source shows, what an operator says of it, and who sees which of both."""

import msgspec
import pytest

from smg_mesh.state.workers.worker_registry import WorkerSpec
from support.state.fake_namespace import DAY_MS
from support.state.worker_registries import Nodes, W, spec_at


@pytest.fixture
def nodes() -> Nodes:
    return Nodes("a", "b", "c")


def settle(nodes: Nodes) -> None:
    """Let days pass, with everybody tending what they hold."""
    for _ in range(16):
        nodes.world.advance(DAY_MS // 2)
        nodes.tidy()
        for name in nodes.world.owners:
            nodes.world[name].tend()


def _find(nodes: Nodes, node: str, state: str = "ready", instance: str = "u1") -> None:
    nodes[node].find(W, "kubernetes", spec_at(), name="chat", state=state, instance=instance)


def test_what_one_node_finds_all_know_with_its_state_and_instance(nodes: Nodes) -> None:
    _find(nodes, "a", "unready")
    settle(nodes)

    for name in "abc":
        record, found = nodes[name].get(W), nodes[name].found(W, "kubernetes")
        assert record is not None
        assert found is not None
        assert (record.state, record.instance, record.sources) == (
            "unready",
            "u1",
            ("kubernetes",),
        )
        assert (found.name, found.counts, found.exists, found.by) == ("chat", True, True, "a")
        assert nodes[name].shared() == [W]
        assert nodes[name].found(W, "dns") is None


def test_one_source_that_says_ready_or_nothing_is_enough(nodes: Nodes) -> None:
    _find(nodes, "a", "leaving")
    assert nodes["a"].get(W).state == "leaving"  # type: ignore[union-attr]  # it is there
    nodes["b"].find(W, "dns", spec_at(), name="metal", state="unready")
    settle(nodes)
    assert nodes["c"].get(W).state == "unready"  # type: ignore[union-attr]  # it is there
    nodes["c"].add(W, "api", spec_at())
    settle(nodes)
    assert nodes["b"].get(W).state == "ready"  # type: ignore[union-attr]  # it is there
    assert nodes["b"].get(W).instance == "u1"  # type: ignore[union-attr]  # it is there


def test_a_removal_withholds_what_was_found_for_as_long_as_it_is_the_same(nodes: Nodes) -> None:
    _find(nodes, "a")
    settle(nodes)
    nodes["b"].remove(W)
    settle(nodes)
    settle(nodes)

    for name in "abc":
        found = nodes[name].found(W, "kubernetes")
        assert nodes[name].get(W) is None
        assert found is not None
        assert (found.counts, found.exists, found.instance) == (False, False, "u1")

    _find(nodes, "c", instance="u2")
    settle(nodes)
    assert nodes["a"].get(W).instance == "u2"  # type: ignore[union-attr]  # it is there


def test_another_source_may_remember_what_was_removed(nodes: Nodes) -> None:
    assert not nodes["c"].inherit(W, "kubernetes", name="blue")
    _find(nodes, "a")
    settle(nodes)
    assert not nodes["c"].inherit(W, "kubernetes", name="blue")
    nodes["b"].remove(W)
    settle(nodes)

    assert nodes["c"].inherit(W, "kubernetes", name="blue")
    assert not nodes["c"].inherit(W, "kubernetes", name="blue")
    settle(nodes)
    for name in "abc":
        found = nodes[name].found(W, "kubernetes")
        assert nodes[name].get(W) is None
        assert found is not None
        assert (found.name, found.by, found.instance) == ("blue", "c", "u1")
        assert not found.counts


def test_who_adds_by_hand_what_was_removed_has_it_by_hand_alone(nodes: Nodes) -> None:
    _find(nodes, "a")
    nodes["a"].remove(W)
    nodes["a"].add(W, "api", spec_at())
    found = nodes["a"].found(W, "kubernetes")
    assert found is not None
    assert (found.counts, found.exists) == (False, True)
    assert nodes["a"].get(W).sources == ("api",)  # type: ignore[union-attr]  # it is there


def test_what_is_gone_leaves_nothing_behind(nodes: Nodes) -> None:
    _find(nodes, "a")
    settle(nodes)
    nodes["b"].remove(W)
    settle(nodes)
    assert nodes["c"].drop(W, "kubernetes")
    settle(nodes)
    assert nodes["a"].found(W, "kubernetes") is None
    assert nodes["a"].shared() == []
    assert list(nodes.world["a"].items()) == []


def test_a_state_of_a_newer_version_is_not_ready(nodes: Nodes) -> None:
    _find(nodes, "a")
    key = f"{W}/kubernetes"
    held = nodes.world["a"].get(key)
    assert held is not None
    assert held.value is not None
    newer = msgspec.msgpack.decode(held.value) | {"state": "warming", "more": 1}
    nodes.world["a"].put(key, msgspec.msgpack.encode(newer))
    settle(nodes)
    assert nodes["b"].get(W).state == "unready"  # type: ignore[union-attr]  # it is there
    _find(nodes, "b")
    again = nodes.world["b"].get(key)
    assert again is not None
    assert again.value is not None
    assert msgspec.msgpack.decode(again.value)["more"] == 1


@pytest.mark.parametrize(("state", "instance"), [("gone", ""), ("ready", "x" * 129)])
def test_what_cannot_be_said_is_refused(nodes: Nodes, state: str, instance: str) -> None:
    with pytest.raises(ValueError, match="cannot be said"):
        _find(nodes, "a", state, instance)
    with pytest.raises(ValueError, match="url"):
        nodes["a"].find(W, "dns", WorkerSpec(url=""), name="metal")


def test_what_becomes_of_it_without_its_source_is_said_and_changed(nodes: Nodes) -> None:
    nodes["a"].find(W, "kubernetes", spec_at(), name="blue", keep=True, released=True)
    found = nodes["b"].found(W, "kubernetes")
    assert found is not None
    assert (found.keep, found.released) == (True, True)
    nodes["b"].find(W, "kubernetes", spec_at(), name="green")
    found = nodes["a"].found(W, "kubernetes")
    assert found is not None
    assert (found.name, found.keep, found.released) == ("green", False, False)


def test_what_one_source_let_go_of_is_nothing_of_another(nodes: Nodes) -> None:
    """An older release takes it over, and passes on what it does not know."""
    nodes["a"].find(W, "kubernetes", spec_at(), name="blue", released=True)
    key = f"{W}/kubernetes"
    held = nodes.world["a"].get(key)
    assert held is not None
    assert held.value is not None
    taken = msgspec.msgpack.decode(held.value) | {"name": "green"}
    nodes.world["a"].put(key, msgspec.msgpack.encode(taken))
    found = nodes["a"].found(W, "kubernetes")
    assert found is not None
    assert (found.name, found.released) == ("green", False)


@pytest.mark.parametrize("word", [1, "true", None, [], {"a": 1}])
def test_any_other_word_for_it_means_nothing(nodes: Nodes, word: object) -> None:
    _find(nodes, "a")
    key = f"{W}/kubernetes"
    held = nodes.world["a"].get(key)
    assert held is not None
    assert held.value is not None
    strange = msgspec.msgpack.decode(held.value) | {"keep": word, "released": word}
    nodes.world["a"].put(key, msgspec.msgpack.encode(strange))
    found = nodes["a"].found(W, "kubernetes")
    assert found is not None
    assert (found.keep, found.released) == (False, False)
