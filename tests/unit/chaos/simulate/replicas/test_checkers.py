"""Would the checkers notice? Worlds over a simple replica, whole and broken in one place."""

from collections.abc import Callable

import msgspec
import pytest

from smg_chaos.simulate.base.virtual_clock import MS, SECOND
from smg_chaos.simulate.replicas.agreement import concurrent, differences, registers_differ
from smg_chaos.simulate.replicas.state_events import (
    AddWorker,
    Away,
    DrainWorker,
    Publish,
    RemoveWorker,
    SetSetting,
    do_now,
)
from smg_chaos.simulate.scenarios.measure import cut
from smg_mesh.crdt.entry import Entry
from smg_mesh.sync.exchange.piece_interface import PieceError
from support.state.reference_replica import ReferenceReplica, ReferenceSpace
from support.state.shared_world import calm, commons_of, life_of, put, shared_world, value_of


def test_what_one_node_writes_all_nodes_have() -> None:
    world = shared_world(3)
    put(world, "n0", "k", "v")
    calm(world)
    assert [value_of(world, label, "k") for label in ("n0", "n1", "n2")] == ["v"] * 3
    assert differences(commons_of(world)) == []
    assert world.broken_promises == []


def test_sides_of_a_cut_write_on_and_show_the_conflict_until_somebody_settles_it() -> None:
    world = shared_world(4)
    rule = cut(world, [world.hosts["n0"]])
    put(world, "n0", "k", "zero")
    calm(world, 1.0)
    put(world, "n1", "k", "one")
    assert value_of(world, "n0", "k") == "zero"
    world.network.drop(rule)
    calm(world, 10.0)
    assert value_of(world, "n0", "k") == "one"
    assert len(concurrent(commons_of(world), ("settings", "k"))) == 1
    assert differences(commons_of(world)) == []
    put(world, "n3", "k", "three")
    calm(world)
    assert concurrent(commons_of(world), ("settings", "k")) == []
    assert differences(commons_of(world)) == []


def test_a_write_that_dies_with_its_only_holder_is_not_missed_and_one_on_a_disk_is() -> None:
    world = shared_world(3)
    put(world, "n0", "k", "old")
    calm(world)
    cut(world, [world.hosts["n0"]])
    put(world, "n0", "k", "young")
    world.kill(world.hosts["n0"])
    assert commons_of(world).ledger.lost == {("settings", "k"): 1}
    world.network.heal()
    world.boot(world.hosts["n0"])
    calm(world, 10.0)
    assert value_of(world, "n0", "k") == value_of(world, "n1", "k") == "old"
    assert differences(commons_of(world)) == []


def test_an_orderly_end_leaves_everything_on_the_disk() -> None:
    world = shared_world(3)
    cut(world, [world.hosts["n0"]])
    put(world, "n0", "k", "v")
    world.leave(world.hosts["n0"])
    calm(world)
    assert world.hosts["n0"].node is None
    world.network.heal()
    world.boot(world.hosts["n0"])
    assert value_of(world, "n0", "k") == "v"
    calm(world, 10.0)
    assert value_of(world, "n1", "k") == "v"


def test_an_old_disk_gives_back_what_was_on_it_then() -> None:
    world = shared_world(2)
    put(world, "n0", "k", "old")
    calm(world, 20.0)
    since_us = world.agenda.now_us
    cut(world, [world.hosts["n0"]])
    put(world, "n0", "k", "young")
    calm(world, 8.0)
    old_ms = (world.agenda.now_us - since_us) // MS
    deed = Away(at_ms=0, who="n0", for_ms=100, disk="old", old_ms=old_ms)
    assert do_now(world, deed)
    calm(world, 1.0)
    assert value_of(world, "n0", "k") == "old"
    assert world.broken_promises == []


def test_workers_are_there_until_they_are_removed_and_draining_is_known() -> None:
    world = shared_world(3)
    add = AddWorker(at_ms=0, who="n0", worker="w", source="api", priority=5)
    assert not do_now(world, DrainWorker(at_ms=0, who="n1", worker="w", on=True))
    assert do_now(world, add)
    calm(world)
    assert do_now(world, DrainWorker(at_ms=0, who="n1", worker="w", on=True))
    calm(world)
    assert [one.draining for one in life_of(world, "n2").views.workers.records()] == [True]
    assert do_now(world, RemoveWorker(at_ms=0, who="n2", worker="w"))
    calm(world)
    assert differences(commons_of(world)) == []
    assert list(life_of(world, "n0").views.workers.records()) == []


def test_a_setting_written_for_an_old_version_is_refused() -> None:
    world = shared_world(2)
    checked = SetSetting(at_ms=1, who="n0", key="k", size=10, checked=True)
    assert do_now(world, checked)
    calm(world)
    put(world, "n1", "k", "other")
    calm(world)
    assert not do_now(world, checked)
    assert do_now(world, checked)
    assert world.broken_promises == []


def test_registers_of_all_are_known_to_all_and_missed_if_not() -> None:
    world = shared_world(3)
    since_us = world.agenda.now_us
    for label in ("n0", "n1", "n2"):
        do_now(world, Publish(at_ms=0, who=label, key="p"))
    assert "n0 lacks register ('n1', 'p')" in registers_differ(commons_of(world), since_us=since_us)
    calm(world)
    assert registers_differ(commons_of(world), since_us=since_us) == []


def test_an_exchange_that_is_cut_leaves_whole_pieces_and_goes_on_later() -> None:
    world = shared_world(2)
    rule = cut(world, [world.hosts["n0"]])
    put(world, "n0", "k", "v")
    calm(world, 4.0)
    failed = world.streams.failed
    world.network.drop(rule)
    world.run_for(30 * MS)
    world.kill(world.hosts["n1"])
    world.boot(world.hosts["n1"])
    calm(world, 10.0)
    assert value_of(world, "n1", "k") == "v"
    assert world.streams.failed >= failed
    assert world.broken_promises == []


def test_two_worlds_of_one_seed_have_one_history() -> None:
    def fingerprint() -> str:
        world = shared_world(3, traced=True)
        put(world, "n1", "k", "v" * 600)
        calm(world)
        assert world.trace is not None
        return world.trace.fingerprint()

    assert fingerprint() == fingerprint()


# ── Broken replicas ──────────────────────────────────────────────────────────


class Inventive(ReferenceReplica):
    """Changes what it is told."""

    def load(self, name: str, content: bytes) -> None:
        super().load(name, content.replace(b"told", b"tale"))


class Forgetful(ReferenceReplica):
    """Drops a key now and then."""

    def tick(self) -> None:
        super().tick()
        space = self.spaces["settings"]
        if space.roots:
            key = min(space.roots)
            del space.roots[key]
            self.changed(space, [key])


class Backward(ReferenceReplica):
    """Lets the one who comes last win."""

    def load(self, name: str, content: bytes) -> None:
        space = self.spaces[name.partition("/")[0]]
        theirs = msgspec.msgpack.decode(content, type=dict[str, dict[str, Entry]])
        space.roots.update(theirs)
        self.changed(space, sorted(theirs))


class Ashamed(ReferenceReplica):
    """Loses what was on its disk."""

    def loaded(self, absent_ms: int) -> None:
        for space in self.spaces.values():
            space.roots.clear()
        super().loaded(absent_ms)


class Secretive(ReferenceReplica):
    """Tells nobody anything, and says that all is alike."""

    def wrote(self, space: ReferenceSpace, key: str, entry: Entry) -> None:
        pass

    def digest(self) -> bytes:
        return bytes(8)

    def missing(self, name: str, epoch: int, summary: bytes) -> bytes:
        return b""


class Choosy(ReferenceReplica):
    """Cannot load what it kept itself."""

    def load(self, name: str, content: bytes) -> None:
        raise PieceError("disk", "no")


def _write_and_restart(make_replica: Callable[..., ReferenceReplica]) -> list[str]:
    world = shared_world(2, make_replica=make_replica)
    put(world, "n0", "k", "told")
    calm(world, 5.0)
    rule = cut(world, [world.hosts["n0"]])
    put(world, "n0", "k", "told again")
    put(world, "n1", "k", "told otherwise")
    calm(world, 5.0)
    world.network.drop(rule)
    calm(world, 5.0)
    world.kill(world.hosts["n0"])
    world.boot(world.hosts["n0"])
    calm(world, 5.0)
    return world.broken_promises + differences(commons_of(world))


@pytest.mark.parametrize(
    ("make_replica", "why"),
    [
        (Inventive, "which nobody wrote"),
        (Forgetful, "does not have settings/k any more"),
        (Backward, "went back from"),
        (Ashamed, "does not have settings/k any more"),
        (Secretive, "differ in settings/0"),
        (Choosy, "cannot load what it kept"),
    ],
)
def test_a_broken_replica_is_noticed(
    make_replica: Callable[..., ReferenceReplica], why: str
) -> None:
    assert why in "\n".join(_write_and_restart(make_replica))


def test_a_whole_replica_passes_the_same_test() -> None:
    assert _write_and_restart(ReferenceReplica) == []


def test_a_node_that_stands_still_saves_and_says_nothing_until_it_goes_on() -> None:
    world = shared_world(2)
    put(world, "n0", "k", "v")
    node = world.hosts["n0"].node
    assert node is not None
    world.stop(node)
    world.run_for(3 * SECOND)
    assert world.hosts["n0"].disk.archive.files == {}
    world.go_on(node, timers_first=False)
    world.run_for(2 * SECOND)
    assert "settings/0" in world.hosts["n0"].disk.archive.files
