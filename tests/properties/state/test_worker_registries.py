"""Three nodes, any order of additions, removals, listings and meetings: they end up with the same workers.

What the nodes end up with is also what the clocks say: a worker exists if and only if one of its sources was
last said later than its last removal, and it still does when the removals themselves are forgotten.
"""

from collections import defaultdict
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from smg_mesh.state.workers.worker_registry import Source, WorkerRegistry
from support.state.fake_namespace import DAY_MS
from support.state.worker_registries import Nodes, spec_at
from support.tools.example_counts import example_count

NODES = ("a", "b", "c")
IDS = ("w-1", "w-2", "w-3")

node = st.sampled_from(NODES)
worker = st.sampled_from(IDS)
source = st.sampled_from(["api", "static", "file", "kubernetes", "dns"])
priority = st.integers(1, 3)
step = st.one_of(
    st.tuples(st.just("add"), node, worker, source, priority),
    st.tuples(st.just("drop"), node, worker, source),
    st.tuples(st.just("remove"), node, worker),
    st.tuples(st.just("remove"), node, worker),
    st.tuples(st.just("drain"), node, worker, st.booleans()),
    st.tuples(st.just("change"), node, worker, priority),
    st.tuples(st.just("listing"), node, st.sets(worker), priority),
    st.tuples(st.just("meet"), node, node),
    st.tuples(st.just("wait"), st.sampled_from([1, 5_000, 61_000, 3_600_000])),
    st.tuples(st.just("tidy"), node),
    st.tuples(st.just("restart"), node),
)
skews = st.tuples(*(st.integers(-20_000, 20_000) for _ in NODES))
histories = st.lists(step, max_size=50)


class History:
    """Does the steps, and remembers by the clocks what was said."""

    def __init__(self, skew_ms: tuple[int, ...]) -> None:
        self.nodes = Nodes(*NODES)
        self.nodes.world.hold()
        for name, by_ms in zip(NODES, skew_ms, strict=True):
            self.nodes.world[name].skew_ms = by_ms
        self.removed: dict[str, int] = defaultdict(int)
        self.said: dict[tuple[str, str], tuple[int, str, bool]] = {}
        """By worker and part: clock, node, whether it is there."""
        self.changed: dict[tuple[str, str], int] = defaultdict(int)

    def do(self, what: str, *rest: Any) -> None:
        getattr(self, f"do_{what}")(*rest)

    def do_add(self, name: str, worker_id: str, kind: Source, value: int) -> None:
        self.nodes[name].add(worker_id, kind, spec_at(priority=value))
        self._said(name, worker_id, kind, there=True)

    def do_drop(self, name: str, worker_id: str, kind: Source) -> None:
        if self.nodes[name].drop(worker_id, kind):
            self._said(name, worker_id, kind, there=False)

    def do_listing(self, name: str, worker_ids: set[str], value: int) -> None:
        specs = {worker_id: spec_at(priority=value) for worker_id in sorted(worker_ids)}
        listed = self.nodes[name].list_own("static", specs)
        for worker_id in listed.added:
            self._said(name, worker_id, "static", there=True)
        for worker_id in listed.removed:
            self._said(name, worker_id, "static", there=False)
        for worker_id in listed.held_back:
            assert self.nodes[name].get(worker_id) is None

    def do_remove(self, name: str, worker_id: str) -> None:
        if self.nodes[name].get(worker_id) is None:
            return
        self.nodes[name].remove(worker_id)
        assert self.nodes[name].get(worker_id) is None
        held = self.nodes.world[name].latest(worker_id)
        assert held is not None
        self.removed[worker_id] = max(self.removed[worker_id], held.version)

    def do_drain(self, name: str, worker_id: str, on: bool) -> None:
        if self.nodes[name].get(worker_id) is not None:
            self.nodes[name].drain(worker_id, on=on)
            self._changed(name, worker_id, "drain")

    def do_change(self, name: str, worker_id: str, value: int) -> None:
        if self.nodes[name].get(worker_id) is not None:
            self.nodes[name].change(worker_id, priority=100 + value)
            self._changed(name, worker_id, "patch")

    def do_meet(self, one: str, other: str) -> None:
        self.nodes.world.sync(one, other)

    def do_wait(self, span_ms: int) -> None:
        self.nodes.world.advance(span_ms)

    def do_tidy(self, name: str) -> None:
        self.nodes[name].tidy(self.nodes.world[name].wall_ms, living=NODES)
        self.nodes.world[name].tend()

    def do_restart(self, name: str) -> None:
        self.nodes.world.advance(1)
        self.nodes.restart(name)

    def _said(self, name: str, worker_id: str, kind: str, *, there: bool) -> None:
        part = f"{kind}@{name}" if kind in ("static", "file") else kind
        held = self.nodes.world[name].latest(f"{worker_id}/{part}")
        assert held is not None
        before = self.said.get((worker_id, part), (0, "", False))
        self.said[worker_id, part] = max(before, (held.version, name, there))

    def _changed(self, name: str, worker_id: str, part: str) -> None:
        held = self.nodes.world[name].get(f"{worker_id}/{part}")
        assert held is not None
        newest = max(self.changed[worker_id, part], held.version)
        self.changed[worker_id, part] = newest

    def expected(self) -> dict[str, set[str]]:
        """Return the workers that have to exist, with their sources, by the clocks."""
        found: dict[str, set[str]] = defaultdict(set)
        for (worker_id, part), (version, _, there) in self.said.items():
            if there and version > self.removed[worker_id]:
                found[worker_id].add(part)
        return dict(found)

    def forgot(self, worker_id: str) -> bool:
        """Return whether the removal of a worker is forgotten, or keeps something older down."""
        world = self.nodes.world["c"]
        held = world.latest(worker_id)
        keys = [key for key, _, _ in world.everything() if key.startswith(f"{worker_id}/")]
        entries = [entry for key in keys for entry in world.roots(key).values()]
        return held is None or any(
            entry.value is not None and entry.hlc < held.version for entry in entries
        )

    def agreed(self) -> None:
        """Check that everybody sees the same, and that it is what was expected."""
        first, *others = (self.nodes[name].records() for name in NODES)
        assert all(records == first for records in others)
        for name in NODES:
            assert WorkerRegistry(self.nodes.world[name], name).records() == first
            assert self.nodes[name].unreadable() == []
        assert {record.id: set(record.sources) for record in first} == self.expected()
        for record in first:
            removed = self.removed[record.id]
            assert not record.draining or self.changed[record.id, "drain"] > removed
            assert record.spec.priority < 100 or self.changed[record.id, "patch"] > removed


@settings(max_examples=example_count(300))
@given(skews, histories)
def test_any_history_converges_to_what_the_clocks_say(
    skew_ms: tuple[int, ...], steps: list[tuple[Any, ...]]
) -> None:
    history = History(skew_ms)
    for one in steps:
        history.do(*one)
    history.nodes.world.heal()
    history.agreed()
    before = history.nodes["a"].records()
    for _ in range(20):
        history.nodes.world.advance(DAY_MS // 2)
        for name in NODES:
            history.do_tidy(name)
    history.agreed()
    kept = {record.id: (record.spec, record.draining) for record in before}
    assert {one.id: (one.spec, one.draining) for one in history.nodes["b"].records()} == kept
    for worker_id in IDS:
        assert history.forgot(worker_id)
    assert history.nodes.tidy() == 0


@settings(max_examples=example_count(150))
@given(skews, histories, st.sampled_from(NODES))
def test_what_a_dead_node_said_or_removed_stays_said_or_removed(
    skew_ms: tuple[int, ...], steps: list[tuple[Any, ...]], dead: str
) -> None:
    history = History(skew_ms)
    for one in steps:
        history.do(*one)
    history.nodes.world.heal()
    living = [name for name in NODES if name != dead]
    history.nodes.world.cut(living)
    expected = history.expected()
    for days in range(10):
        history.nodes.world.advance(DAY_MS)
        if days == 6:
            history.nodes.world.adopt(dead, living[0])
        for name in living:
            history.nodes[name].tidy(history.nodes.world[name].wall_ms, living=living)
            history.nodes.world[name].tend()
    for name in living:
        records = history.nodes[name].records()
        assert {record.id: set(record.sources) for record in records} == expected


@settings(max_examples=example_count(150))
@given(histories, st.lists(st.tuples(node, st.integers(0, 50)), max_size=4))
def test_nodes_agree_though_disks_were_lost(
    steps: list[tuple[Any, ...]], losses: list[tuple[str, int]]
) -> None:
    history = History((0, 0, 0))
    for place, one in enumerate(steps):
        history.do(*one)
        for name, at in losses:
            if at == place:
                history.nodes.world.advance(1)
                history.nodes.restart(name, keeps_disk=False)
    history.nodes.world.heal()
    first, *others = (history.nodes[name].records() for name in NODES)
    assert all(records == first for records in others)
    for name in NODES:
        assert WorkerRegistry(history.nodes.world[name], name).records() == first
