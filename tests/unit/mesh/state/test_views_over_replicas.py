"""Workers, settings and the audit log over real documents: what holds in memory holds there."""

from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest

from smg_mesh.crdt.namespace import StateError
from smg_mesh.state.audit_log import Audit
from smg_mesh.state.settings import SettingsView
from smg_mesh.state.workers.worker_registry import Source, WorkerRegistry
from support.state.fake_namespace import DAY_MS
from support.state.replica_world import SMALL, WALL_MS, ReplicaWorld
from support.state.worker_registries import W, spec_at

IDS = ("w-1", "w-2", "w-3")


class Views:
    """What three nodes see through their views."""

    def __init__(self, *, document_bytes_max: int = 262_144, seed: int = 1) -> None:
        options = replace(SMALL, document_bytes_max=document_bytes_max)
        self.world = ReplicaWorld(3, options=options, seed=seed)
        self.workers: dict[str, WorkerRegistry] = {}
        self.settings: dict[str, SettingsView] = {}
        self.audit: dict[str, Audit] = {}
        for name in "abc":
            self.open(name)

    def open(self, name: str) -> None:
        replica = self.world[name].replica
        self.workers[name] = WorkerRegistry(replica.namespace("workers"), name)
        self.settings[name] = SettingsView(replica.namespace("settings"), name)
        self.audit[name] = Audit(replica.namespace("audit"), name, bytes_max=60_000)

    def restart(self, name: str) -> None:
        dumps = self.world.stop(name).dumps()
        self.world.start(name, dumps)
        self.open(name)

    def tidy(self) -> int:
        wall_ms = WALL_MS + self.world.clocks.now_ms
        workers = sum(self.workers[name].tidy(wall_ms, living=list("abc")) for name in "abc")
        return workers + sum(self.audit[name].tidy(living=list("abc")) for name in "abc")

    def pass_days(self, count: int) -> None:
        for _ in range(2 * count):
            self.world.pass_time(DAY_MS // 2, DAY_MS // 2)
            self.tidy()
            self.world.settle()

    def listed(self, name: str) -> dict[str, tuple[str, ...]]:
        return {record.id: record.sources for record in self.workers[name].records()}


@pytest.fixture
def views() -> Views:
    return Views()


def test_a_worker_comes_and_goes_by_rumor(views: Views) -> None:
    heard: list[list[str]] = []
    views.workers["b"].watch(lambda ids: heard.append(list(ids)))
    views.workers["a"].add(W, "static", spec_at(priority=9))
    views.workers["a"].drain(W, on=True)
    views.world.rumors()
    assert views.workers["b"].get(W) == views.workers["a"].get(W)
    assert views.workers["b"].records()[0].draining
    views.workers["c"].remove(W)
    views.world.rumors()
    assert views.listed("a") == views.listed("b") == {}
    assert heard[0] == heard[-1] == [W]


def test_a_removal_beats_what_arrives_later(views: Views) -> None:
    views.workers["a"].add(W, "api", spec_at())
    views.world.rumors()
    views.workers["a"].add(W, "kubernetes", spec_at())
    late = views.world["a"].said
    views.world["a"].said = []
    views.world.pass_time(50)
    views.workers["b"].remove(W)
    views.world.rumors()
    views.world["a"].said = late
    views.world.settle()
    for name in "abc":
        assert views.listed(name) == {}


def test_a_removed_worker_stays_gone_when_its_removal_is_forgotten(views: Views) -> None:
    for name in "abc":
        views.workers[name].list_own("static", {W: spec_at()})
    views.workers["a"].add(W, "api", spec_at())
    views.world.settle()
    views.workers["c"].drain(W, on=True)
    views.workers["b"].remove(W)
    views.world.settle()
    views.pass_days(9)
    for name in "abc":
        assert views.world[name].workers.latest(W) is None
        assert views.listed(name) == {}
    views.restart("a")
    views.world.settle()
    assert views.workers["a"].list_own("static", {W: spec_at()}).held_back == (W,)
    added = views.workers["a"].add(W, "api", spec_at())
    views.world.settle()
    assert not added.draining
    assert views.workers["c"].get(W) == added


def test_a_setting_written_on_both_sides_is_shown_on_all(views: Views) -> None:
    views.settings["a"].set("k", 1, version=0)
    views.settings["b"].set("k", 2, version=0)
    views.world.settle()
    shown = [views.settings[name].get("k") for name in "abc"]
    assert shown[0] is not None
    assert shown[0] == shown[1] == shown[2]
    values = [shown[0].value, *(one.value for one in shown[0].conflicts)]
    assert sorted(map(str, values)) == ["1", "2"]
    with pytest.raises(StateError):
        views.settings["c"].set("k", 3, version=0)
    views.settings["c"].set("k", 3, version=shown[0].version)
    views.world.settle()
    after = views.settings["a"].get("k")
    assert after is not None
    assert (after.value, after.conflicts) == (3, ())
    assert views.settings["a"].digest() == views.settings["b"].digest()


def test_the_audit_log_takes_new_rows_however_full_its_document_is() -> None:
    views = Views(document_bytes_max=24_000)
    for number in range(120):
        for name in "ab":
            views.world.pass_time(10, 10)
            row = views.audit[name].append(
                who="ops", action="worker.add", subject=f"{name}{number}", before="x" * 300
            )
            assert views.audit[name].rows(limit=1) == [row]
        if number % 10 == 0:
            views.world.settle(2)
    views.world.settle()
    for name in "abc":
        newest = {row.subject for row in views.audit[name].rows(limit=6)}
        assert newest == {f"{node}{number}" for node in "ab" for number in (117, 118, 119)}
    assert views.audit["a"].rows() == views.audit["b"].rows() == views.audit["c"].rows()
    row = views.audit["c"].append(who="ops", action="x", before="y" * 3_000, after="kept")
    assert isinstance(row.before, dict)
    assert list(row.before) == ["cut"]
    assert row.after == "kept"


def test_rows_over_the_bound_leave_the_documents(views: Views) -> None:
    for number in range(100):
        views.world.pass_time(10, 10)
        views.audit["a"].append(who="ops", action="x", subject=str(number), before="x" * 2_000)
    views.world.settle()
    assert 20 < len(views.audit["b"]) < 30
    assert views.audit["b"].rows() == views.audit["a"].rows()
    assert len(views.world["c"].replica.namespace("audit")) == len(views.audit["a"])


@pytest.mark.parametrize("seed", range(12))
def test_any_history_ends_alike_on_all_nodes(seed: int) -> None:
    views, rng = Views(seed=seed), Random(seed)

    def add(name: str) -> None:
        kinds: list[Source] = ["api", "static", "dns"]
        kind = rng.choice(kinds)
        views.workers[name].add(rng.choice(IDS), kind, spec_at(rng.randint(1, 3)))

    def remove(name: str) -> None:
        for record in views.workers[name].records()[:1]:
            views.workers[name].remove(record.id)

    def drain(name: str) -> None:
        for record in views.workers[name].records()[-1:]:
            views.workers[name].drain(record.id, on=rng.random() < 0.7)

    deeds: list[Callable[[str], None]] = [add, add, remove, drain]
    for _ in range(60):
        rng.choice(deeds)(rng.choice("abc"))
        views.world.pass_time(rng.choice([10, 500]), 10)
        if rng.random() < 0.3:
            views.world.rumors(loss=0.3, double=0.2, shuffle=True)
        if rng.random() < 0.1:
            views.tidy()
        if rng.random() < 0.05:
            views.restart(rng.choice("abc"))
    views.world.settle()
    records = views.workers["a"].records()
    for name in "abc":
        assert views.workers[name].records() == records
        namespace = views.world[name].workers
        assert WorkerRegistry(namespace, name).records() == records
        for record in records:
            removal = namespace.latest(record.id)
            assert removal is None or removal.version < record.version
    kept = [(record.id, record.spec, record.draining) for record in records]
    views.pass_days(9)
    after = [(one.id, one.spec, one.draining) for one in views.workers["b"].records()]
    assert after == kept
