"""Workers added anywhere are usable everywhere, and belong to nobody."""

from collections.abc import Callable

import pytest

from smg_mesh.crdt.namespace import StateError
from smg_mesh.state.workers.worker_registry import WorkerRegistry, WorkerSpec
from support.state.fake_namespace import FakeNamespace
from support.state.worker_registries import Nodes, W, spec_at


@pytest.fixture
def nodes() -> Nodes:
    return Nodes("a", "b", "c")


def test_a_worker_added_on_one_node_is_known_on_all(nodes: Nodes) -> None:
    record = nodes["a"].add(W, "api", spec_at(1, role="prefill"))
    assert record.id == W
    assert record.spec == spec_at(1, role="prefill")
    assert record.sources == ("api",)
    assert record.registered_by == "a"
    assert not record.draining
    assert nodes["b"].get(W) == nodes["c"].get(W) == record


def test_nobody_knows_a_worker_that_nobody_added(nodes: Nodes) -> None:
    assert nodes["a"].get(W) is None
    assert nodes["a"].records() == ()
    assert len(nodes["a"]) == 0


def test_the_same_worker_from_several_sources_and_nodes_is_one(nodes: Nodes) -> None:
    nodes["a"].add(W, "static", spec_at())
    nodes["b"].add(W, "static", spec_at())
    nodes["b"].add(W, "kubernetes", spec_at())
    nodes["c"].add(W, "api", spec_at())
    for name in "abc":
        [record] = nodes[name].records()
        assert record.sources == ("api", "kubernetes", "static@b", "static@a")
        assert record.registered_by == "c"


def test_the_more_trusted_source_decides_about_what_it_says_and_leaves_the_rest(
    nodes: Nodes,
) -> None:
    nodes["a"].add(W, "api", spec_at(priority=80, labels={"tier": "gold"}))
    nodes["b"].add(W, "file", spec_at(priority=10, contract="vllm"))
    nodes["b"].add(W, "kubernetes", spec_at(contract="sglang", model="m", labels={"pod": "x"}))
    nodes["b"].add(W, "dns", spec_at(cost=3.0, model="n", labels={"tier": "tin"}))
    nodes["b"].add(W, "static", spec_at(cost=4.0, sealed_key=b"sealed", role="decode"))
    record = nodes["c"].get(W)
    assert record is not None
    assert record.spec == WorkerSpec(
        url=spec_at().url,
        contract="vllm",
        role="decode",
        model="m",
        labels={"tier": "gold", "pod": "x"},
        priority=80,
        cost=3.0,
        sealed_key=b"sealed",
    )


def test_of_two_equally_trusted_sources_the_later_decides(nodes: Nodes) -> None:
    nodes["b"].add(W, "static", spec_at(priority=1))
    nodes["a"].add(W, "static", spec_at(priority=2))
    record = nodes["c"].get(W)
    assert record is not None
    assert (record.spec.priority, record.sources) == (2, ("static@a", "static@b"))
    nodes["b"].add(W, "static", spec_at(priority=3))
    record = nodes["c"].get(W)
    assert record is not None
    assert (record.spec.priority, record.sources) == (3, ("static@b", "static@a"))


def test_adding_again_changes_what_that_source_says(nodes: Nodes) -> None:
    first = nodes["a"].add(W, "api", spec_at(priority=1, model="m"))
    second = nodes["b"].add(W, "api", spec_at(priority=2))
    assert second.spec == spec_at(priority=2)
    assert second.registered_by == "b"
    assert second.version > first.version


def test_a_worker_exists_while_one_source_does(nodes: Nodes) -> None:
    nodes["a"].add(W, "dns", spec_at())
    nodes["b"].add(W, "kubernetes", spec_at())
    assert nodes["c"].drop(W, "dns")
    assert nodes.listed("a") == {W: ("kubernetes",)}
    assert nodes["c"].drop(W, "kubernetes")
    assert nodes.listed("a") == nodes.listed("b") == nodes.listed("c") == {}
    assert not nodes["a"].drop(W, "kubernetes")


def test_a_node_drops_only_its_own_listing(nodes: Nodes) -> None:
    nodes["a"].add(W, "static", spec_at())
    assert not nodes["b"].drop(W, "static")
    assert nodes.listed("b") == {W: ("static@a",)}


def test_what_an_operator_changes_counts_more_than_every_source(nodes: Nodes) -> None:
    nodes["a"].add(W, "static", spec_at(priority=10, labels={"a": "1"}, model="m"))
    changed = nodes["b"].change(W, priority=50, labels={"b": "2"}, model=None)
    assert changed.spec == spec_at(labels={"b": "2"})
    assert nodes["c"].add(W, "api", spec_at(priority=70)).spec.priority == 50
    assert nodes["a"].change(W, cost=2.5).spec == spec_at(labels={"b": "2"}, cost=2.5)


@pytest.mark.parametrize(
    "fields",
    [
        {"url": "grpc://x:1"},
        {"colour": "red"},
        {"priority": "high"},
        {"priority": True},
        {"cost": float("nan")},
        {"labels": {"a": 1}},
        {"role": None},
        {"sealed_key": "text"},
    ],
)
def test_a_change_that_cannot_be_is_refused_and_changes_nothing(
    nodes: Nodes, fields: dict[str, object]
) -> None:
    before = nodes["a"].add(W, "api", spec_at())
    with pytest.raises(ValueError):  # noqa: PT011  # each says something else
        nodes["b"].change(W, **fields)
    assert nodes["b"].get(W) == before
    assert nodes.world["b"].writes == 0


@pytest.mark.parametrize("worker_id", ["", "a/b", "w 1", "ü", "x" * 129])
def test_an_id_that_cannot_be_is_refused(nodes: Nodes, worker_id: str) -> None:
    with pytest.raises(ValueError, match="no id"):
        nodes["a"].add(worker_id, "api", spec_at())


def test_a_spec_that_cannot_be_is_refused(nodes: Nodes) -> None:
    for spec in (WorkerSpec(url=""), WorkerSpec(url="x" * 3000), spec_at(cost=float("inf"))):
        with pytest.raises(ValueError):  # noqa: PT011  # each says something else
            nodes["a"].add(W, "api", spec)
    with pytest.raises(StateError, match="bytes"):
        nodes["a"].add(W, "api", spec_at(labels={"long": "x" * 20_000}))
    assert nodes.listed("a") == {}


def test_a_drain_is_known_everywhere_and_can_be_taken_back(nodes: Nodes) -> None:
    nodes["a"].add(W, "static", spec_at())
    assert nodes["b"].drain(W, on=True).draining
    assert nodes["c"].records()[0].draining
    again = nodes["a"].drain(W, on=False)
    assert not again.draining
    assert nodes["c"].get(W) == again


def test_a_drain_holds_whatever_sources_say(nodes: Nodes) -> None:
    nodes["a"].add(W, "static", spec_at())
    nodes["b"].drain(W, on=True)
    assert nodes["c"].add(W, "api", spec_at()).draining
    assert nodes["a"].drop(W, "static")
    assert nodes["b"].records()[0].draining


def test_versions_of_a_record_only_grow(nodes: Nodes) -> None:
    versions = [nodes["a"].add(W, "static", spec_at()).version]
    versions.append(nodes["b"].drain(W, on=True).version)
    versions.append(nodes["c"].change(W, priority=2).version)
    versions.append(nodes["a"].drain(W, on=False).version)
    assert versions == sorted(set(versions))


def test_unknown_workers_cannot_be_changed(nodes: Nodes) -> None:
    with pytest.raises(LookupError):
        nodes["a"].change(W, priority=1)
    with pytest.raises(LookupError):
        nodes["a"].drain(W, on=True)
    with pytest.raises(LookupError):
        nodes["a"].remove(W)
    assert nodes.world["a"].writes == 0


def test_records_are_sorted_by_id(nodes: Nodes) -> None:
    for number in (3, 1, 2):
        nodes["a"].add(f"w-{number}", "api", spec_at(number))
    assert [record.id for record in nodes["b"].records()] == ["w-1", "w-2", "w-3"]
    nodes["b"].remove("w-2")
    assert [record.id for record in nodes["a"].records()] == ["w-1", "w-3"]


def test_who_watches_hears_each_change_once_with_ids(nodes: Nodes) -> None:
    heard: list[list[str]] = []
    nodes["b"].watch(lambda ids: heard.append(list(ids)))
    nodes["a"].add(W, "api", spec_at())
    nodes["b"].drain(W, on=True)
    nodes["c"].change(W, priority=7)
    nodes["a"].remove(W)
    assert heard == [[W]] * 4


def test_who_watches_hears_nothing_of_what_changes_no_record(nodes: Nodes) -> None:
    nodes["a"].add(W, "api", spec_at())
    heard: list[list[str]] = []
    nodes["b"].watch(lambda ids: heard.append(list(ids)))
    nodes.world["a"].put("a key/of nobody", b"x")
    nodes["a"].remove(W)
    heard.clear()
    nodes.tidy()
    nodes.world["c"].remove(W)
    assert heard == []


def test_what_arrives_together_is_told_together(nodes: Nodes) -> None:
    nodes.world.hold()
    for number in range(5):
        nodes["a"].add(f"w-{number}", "api", spec_at(number))
    heard: list[list[str]] = []
    nodes["b"].watch(lambda ids: heard.append(list(ids)))
    nodes.world.sync("a", "b")
    assert heard == [[f"w-{number}" for number in range(5)]]


def test_a_registry_built_late_sees_what_one_built_early_sees(nodes: Nodes) -> None:
    nodes["a"].add("w-1", "api", spec_at())
    nodes["a"].add("w-2", "static", spec_at(2))
    nodes["b"].remove("w-2")
    nodes["a"].drain("w-1", on=True)
    late = WorkerRegistry(nodes.world["c"], "c")
    assert late.records() == nodes["c"].records()
    assert late.records()[0].draining


def test_a_full_document_refuses_new_workers_with_a_reason(nodes: Nodes) -> None:
    nodes["a"].add(W, "api", spec_at())
    nodes.world["a"].full = lambda _: True
    with pytest.raises(StateError) as refused:
        nodes["a"].add("w-2", "api", spec_at(2))
    assert refused.value.reason == "full"
    assert nodes.listed("a") == {W: ("api",)}
    nodes["a"].remove(W)
    assert nodes.listed("b") == {}


def test_an_entry_from_the_future_counts_when_its_time_has_come(nodes: Nodes) -> None:
    nodes.world["a"].skew_ms = 600_000
    nodes["a"].add(W, "api", spec_at())
    assert nodes.listed("b") == {}
    nodes.world.advance(541_000)
    assert nodes.listed("b") == {W: ("api",)}


def test_a_registrar_that_dies_or_leaves_changes_nothing(nodes: Nodes) -> None:
    nodes["a"].add("w-1", "static", spec_at(1))
    nodes["a"].add("w-2", "file", spec_at(2))
    before = nodes["b"].records()
    heard: list[object] = []
    nodes["b"].watch(heard.append)
    nodes.world.cut(("b", "c"))
    for _ in range(3):
        nodes.world.advance(86_400_000)
        nodes.tidy("b", "c")
    nodes.world.adopt("a", "b")
    nodes["b"].forget_node("a", living=["b", "c"])
    nodes["c"].forget_node("a", living=["b", "c"])
    assert nodes["b"].records() == nodes["c"].records() == before
    assert heard == []


class Counting:
    """Counts how often a namespace is read."""

    def __init__(self, namespace: FakeNamespace) -> None:
        self.reads = 0
        for name in ("get", "latest", "items", "conflicts"):
            setattr(namespace, name, self._counted(getattr(namespace, name)))

    def _counted(self, read: Callable[[str], object]) -> Callable[[str], object]:
        def counted(key: str = "") -> object:
            self.reads += 1
            return read(key)

        return counted


def test_a_change_reads_the_entries_of_one_worker_only(nodes: Nodes) -> None:
    for number in range(500):
        nodes["a"].add(f"w-{number}", "api", spec_at(number))
    counting = Counting(nodes.world["b"])
    nodes["a"].drain("w-7", on=True)
    assert counting.reads <= 2
    nodes["b"].records()
    nodes["b"].get("w-3")
    assert counting.reads <= 2
    assert nodes["b"].records() is nodes["b"].records()
