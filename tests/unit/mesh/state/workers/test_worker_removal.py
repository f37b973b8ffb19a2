"""A removal holds everywhere, against everything earlier, and for good."""

import pytest

from smg_mesh.state.workers.worker_registry import Source, WorkerRegistry
from support.state.fake_namespace import DAY_MS
from support.state.worker_registries import Nodes, W, spec_at

ALL: tuple[Source, ...] = ("api", "file", "kubernetes", "dns", "static")


@pytest.fixture
def nodes() -> Nodes:
    return Nodes("a", "b", "c")


def settle(nodes: Nodes, *names: str) -> None:
    """Let eight days pass, with everybody of `names`, or all, tending what they hold."""
    for _ in range(16):
        nodes.world.advance(DAY_MS // 2)
        nodes.tidy(*names)
        for name in names or nodes.world.owners:
            nodes.world[name].tend()


@pytest.mark.parametrize("source", ALL)
def test_a_removed_worker_is_gone_everywhere(nodes: Nodes, source: Source) -> None:
    before = nodes["a"].add(W, source, spec_at())
    assert nodes["b"].remove(W) == before
    for name in "abc":
        assert nodes.listed(name) == {}
    with pytest.raises(LookupError):
        nodes["c"].remove(W)


def test_a_removal_beats_all_sources_of_all_nodes(nodes: Nodes) -> None:
    for name in "abc":
        for source in ALL:
            nodes[name].add(W, source, spec_at())
    nodes["b"].remove(W)
    assert nodes.listed("a") == nodes.listed("b") == nodes.listed("c") == {}


def test_an_earlier_entry_that_arrives_later_does_not_bring_it_back(nodes: Nodes) -> None:
    nodes["a"].add(W, "api", spec_at())
    nodes.world.cut(("a",), ("b", "c"))
    for source in ALL:
        nodes["a"].add(W, source, spec_at(priority=3))
    nodes["a"].drain(W, on=True)
    nodes.world.advance(1000)
    nodes["b"].remove(W)
    nodes.world.heal()
    for name in "abc":
        assert nodes.listed(name) == {}


@pytest.mark.parametrize("source", ALL)
def test_adding_it_again_makes_a_new_worker(nodes: Nodes, source: Source) -> None:
    nodes["a"].add(W, "api", spec_at(priority=1))
    nodes["b"].remove(W)
    added = nodes["c"].add(W, source, spec_at(priority=2))
    assert added.spec.priority == 2
    assert nodes["a"].get(W) == nodes["b"].get(W) == added
    assert len(added.sources) == 1


def test_a_worker_added_again_starts_undrained_and_unpatched(nodes: Nodes) -> None:
    nodes["a"].add(W, "api", spec_at())
    nodes["b"].drain(W, on=True)
    nodes["b"].change(W, priority=99, labels={"x": "y"})
    nodes["c"].remove(W)
    added = nodes["a"].add(W, "api", spec_at())
    assert not added.draining
    assert added.spec == spec_at()
    assert nodes["b"].change(W, cost=2.0).spec == spec_at(cost=2.0)
    settle(nodes)
    assert nodes["c"].get(W) == nodes["a"].get(W)
    assert nodes["a"].records()[0].spec == spec_at(cost=2.0)


def test_a_removal_on_one_side_and_an_addition_on_the_other_agree_by_the_clock(
    nodes: Nodes,
) -> None:
    nodes["a"].add(W, "api", spec_at())
    nodes.world.cut(("a",), ("b", "c"))
    nodes["a"].remove(W)
    nodes.world.advance(10)
    nodes["b"].add(W, "api", spec_at(priority=7))
    nodes.world.advance(10)
    nodes.tidy("a")
    nodes.tidy("b", "c")
    nodes.world.heal()
    nodes.tidy()
    for name in "abc":
        [record] = nodes[name].records()
        assert record.spec.priority == 7


def test_it_stays_gone_when_the_removal_itself_is_forgotten(nodes: Nodes) -> None:
    nodes["a"].add(W, "static", spec_at())
    nodes["b"].add(W, "file", spec_at())
    nodes["b"].add(W, "api", spec_at())
    nodes["c"].add(W, "dns", spec_at())
    nodes["c"].drain(W, on=True)
    nodes["b"].change(W, priority=3)
    nodes["a"].remove(W)
    settle(nodes)
    for name in "abc":
        assert nodes.world[name].latest(W) is None
        assert nodes.listed(name) == {}
        assert WorkerRegistry(nodes.world[name], name).records() == ()
    left = [held.key for held in nodes.world["a"].items()]
    assert left == [f"{W}/file@b", f"{W}/static@a"]


def test_it_stays_gone_though_who_added_it_never_comes_back(nodes: Nodes) -> None:
    for source in ALL:
        nodes["a"].add(W, source, spec_at())
    nodes["a"].drain(W, on=True)
    nodes.world.cut(("b", "c"))
    nodes["b"].remove(W)
    settle(nodes, "b", "c")
    assert nodes.world["b"].latest(W) is not None
    nodes.world.adopt("a", "c")
    settle(nodes, "b", "c")
    for name in "bc":
        assert nodes.world[name].latest(W) is None
        assert nodes.listed(name) == {}
    nodes.world.heal()
    assert nodes.listed("a") == {}


def test_it_stays_gone_though_who_removed_it_never_comes_back(nodes: Nodes) -> None:
    for source in ALL:
        nodes["c"].add(W, source, spec_at())
    nodes["a"].remove(W)
    nodes.world.cut(("b",))
    settle(nodes, "b")
    nodes.world.adopt("a", "b")
    nodes.world.adopt("c", "b")
    settle(nodes, "b")
    assert nodes.world["b"].latest(W) is None
    assert nodes.listed("b") == {}


def test_clearing_away_is_done_once_and_then_there_is_nothing_to_do(nodes: Nodes) -> None:
    for name in "abc":
        for source in ALL:
            nodes[name].add(W, source, spec_at())
    nodes["b"].drain(W, on=True)
    for name in "abc":
        nodes.world[name].tend()
    nodes["b"].remove(W)
    assert nodes.tidy() > 0
    assert nodes.tidy() == 0
    settle(nodes)
    assert nodes.tidy() == 0


def test_clearing_away_is_bounded_each_time(nodes: Nodes) -> None:
    for number in range(20):
        nodes["a"].add(f"w-{number}", "api", spec_at(number))
        nodes["b"].remove(f"w-{number}")
    done = [nodes["a"].tidy(nodes.world.wall_ms, writes_max=8) for _ in range(4)]
    assert done == [8, 8, 4, 0]


def test_clearing_away_changes_no_record_and_tells_nobody(nodes: Nodes) -> None:
    nodes["a"].add("w-1", "static", spec_at())
    nodes["a"].add("w-2", "static", spec_at(2))
    nodes["b"].add("w-2", "api", spec_at(2))
    nodes["c"].remove("w-1")
    before = nodes["b"].records()
    heard: list[object] = []
    nodes["b"].watch(heard.append)
    settle(nodes)
    assert heard == []
    assert nodes["b"].records() == before


def test_a_full_document_delays_clearing_away_and_breaks_nothing(nodes: Nodes) -> None:
    nodes["a"].add(W, "static", spec_at())
    nodes.world.cut(("b", "c"))
    nodes["b"].remove(W)
    nodes.world["b"].full = lambda _: True
    nodes.world.advance(5 * DAY_MS)
    assert nodes.tidy("b", "c") == 0
    nodes.world["b"].full = lambda _: False
    assert nodes.tidy("b", "c") == 1
    assert nodes.listed("b") == {}


def test_the_last_source_that_goes_takes_drain_and_patch_with_it(nodes: Nodes) -> None:
    nodes["a"].add(W, "kubernetes", spec_at())
    nodes["b"].drain(W, on=True)
    nodes["b"].change(W, priority=9)
    nodes["c"].drop(W, "kubernetes")
    added = nodes["a"].add(W, "kubernetes", spec_at())
    assert not added.draining
    assert added.spec == spec_at()


def test_a_drain_left_over_by_a_race_does_not_meet_the_next_worker(nodes: Nodes) -> None:
    nodes["a"].add(W, "kubernetes", spec_at())
    nodes["b"].add(W, "static", spec_at())
    nodes["c"].drain(W, on=True)
    nodes.world.cut(("a",), ("b",), ("c",))
    nodes["a"].drop(W, "kubernetes")
    nodes["b"].drop(W, "static")
    nodes.world.heal()
    assert nodes.listed("a") == {}
    assert nodes.world["a"].get(f"{W}/drain") is not None
    nodes.world.advance(61_000)
    assert not nodes["a"].add(W, "api", spec_at()).draining
    assert not nodes["c"].records()[0].draining


def test_a_drain_without_a_worker_is_cleared_away_after_a_minute(nodes: Nodes) -> None:
    nodes["a"].add(W, "kubernetes", spec_at())
    nodes["b"].add(W, "static", spec_at())
    nodes["c"].drain(W, on=True)
    nodes.world.cut(("a",), ("b",), ("c",))
    nodes["a"].drop(W, "kubernetes")
    nodes["b"].drop(W, "static")
    nodes.world.heal()
    assert nodes.tidy() == 0
    nodes.world.advance(61_000)
    assert nodes.tidy() == 1
    assert nodes.tidy() == 0
    assert nodes.world["a"].get(f"{W}/drain") is None


def test_a_drain_that_arrives_before_its_worker_is_kept(nodes: Nodes) -> None:
    nodes.world.hold()
    nodes["a"].add(W, "static", spec_at())
    nodes["a"].drain(W, on=True)
    drain = [cell for cell in nodes.world["a"].everything() if cell[0].endswith("/drain")]
    nodes.world["b"].merge(drain)
    assert nodes.listed("b") == {}
    nodes["b"].add(W, "api", spec_at())
    nodes.world.heal()
    for name in "abc":
        assert nodes[name].records()[0].draining
