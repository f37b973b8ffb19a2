"""Would the simulator notice? Real replicas that are broken on purpose, each in one place."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import pytest

from smg_chaos.simulate.batch import Task, run_task
from smg_chaos.simulate.hosts.link_faults import Rough
from smg_mesh.crdt.documents.document_slot import Slot
from smg_mesh.crdt.documents.document_upkeep import DocumentUpkeep
from smg_mesh.crdt.documents.epoch_leftovers import EpochLeftovers
from smg_mesh.crdt.hybrid_clock import HybridClock
from smg_mesh.crdt.registers.ephemeral_registers import Registers
from smg_mesh.swim.dissemination.exchange_schedule import Exchanges
from smg_mesh.sync.change_spreader import Spreader
from smg_mesh.sync.exchange.piece_interface import PieceState
from smg_mesh.sync.piece_store import PieceStore
from smg_mesh.sync.replica import Replica
from support.state.shared_world import calm, put, shared_world, value_of

SEEDS = 30
"""Within so many seeds each of them is caught; most in the first few."""
Mutation = Callable[[pytest.MonkeyPatch], None]


def _nothing(*_: object, **__: object) -> None:
    return None


def _forgets_removals_at_once(broken: pytest.MonkeyPatch) -> None:
    broken.setattr(DocumentUpkeep, "_forgettable", lambda self, slot: slot.said.value is None)


def _ignores_boots(broken: pytest.MonkeyPatch) -> None:
    broken.setattr(Registers, "member_up", _nothing)


def _forgets_to_adopt(broken: pytest.MonkeyPatch) -> None:
    due_roots = EpochLeftovers.due_roots

    def only_own(self: EpochLeftovers, subject: str, me: str, *args: Any, **named: Any) -> Any:
        return [root for root in due_roots(self, subject, me, *args, **named) if root == me]

    broken.setattr(EpochLeftovers, "due_roots", only_own)


def _resurrects_after_an_epoch(broken: pytest.MonkeyPatch) -> None:
    lacked = DocumentUpkeep._lacked

    def values_only(self: DocumentUpkeep, slot: Slot) -> bool:
        return slot.said.value is not None and lacked(self, slot)

    broken.setattr(DocumentUpkeep, "_lacked", values_only)


def _loses_what_an_epoch_did_not_carry(broken: pytest.MonkeyPatch) -> None:
    broken.setattr(DocumentUpkeep, "_lacked", lambda self, slot: slot.root == self._holding.me)


def _loses_its_disk(broken: pytest.MonkeyPatch) -> None:
    broken.setattr(Replica, "load", _nothing)


def _sends_half_of_what_it_holds(broken: pytest.MonkeyPatch) -> None:
    holdings = PieceStore.holdings

    def first(self: PieceStore) -> list[PieceState]:
        return holdings(self)[:1]

    broken.setattr(PieceStore, "holdings", first)


def _never_says_that_it_changed(broken: pytest.MonkeyPatch) -> None:
    broken.setattr(PieceStore, "digest", lambda self: bytes(8))


def _does_not_witness_other_clocks(broken: pytest.MonkeyPatch) -> None:
    broken.setattr(HybridClock, "witness", lambda self, hlc, wall_ms: True)


MUTATIONS: Mapping[Mutation, int] = {
    _forgets_removals_at_once: 0,
    _ignores_boots: 0,
    _forgets_to_adopt: 8,
    _resurrects_after_an_epoch: 1,
    _loses_what_an_epoch_did_not_carry: 1,
    _loses_its_disk: 0,
    _sends_half_of_what_it_holds: 0,
    _never_says_that_it_changed: 0,
    _does_not_witness_other_clocks: 4,
}
"""Each with a seed that has caught it, which is tried first."""


def broken_promises(seeds: Iterable[int]) -> Iterator[tuple[int, str]]:
    """Yield seeds of small clusters that broke a promise, and the first one each broke."""
    for seed in seeds:
        task = Task(seed=seed, nodes=5, profile="lan", scenario="state-weather")
        outcome = run_task(task)
        if outcome.broken:
            yield seed, outcome.broken[0]


@pytest.mark.parametrize("mutate", MUTATIONS, ids=lambda mutate: mutate.__name__.strip("_"))
def test_a_broken_replica_is_noticed(mutate: Mutation, monkeypatch: pytest.MonkeyPatch) -> None:
    mutate(monkeypatch)
    seeds = [MUTATIONS[mutate], *range(SEEDS)]
    assert next(broken_promises(seeds), None) is not None


def test_a_replica_that_repairs_no_gap_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    # Digests would repair it a little later: without them a gap is all that tells.
    monkeypatch.setattr(Exchanges, "compare", _nothing)
    assert _after_a_gap() == ["first", "second"]
    monkeypatch.setattr(Spreader, "gap", _nothing)
    assert _after_a_gap() == [None, None]


def _after_a_gap() -> list[object]:
    """Return what a node has of two settings, the first of which it could not hear."""
    world = shared_world(3, make_replica=Replica)
    deaf = world.network.add(Rough(sources=("n0", "n1"), targets=("n2",), block=True))
    put(world, "n0", "a", "first")
    calm(world, 1.2)
    world.network.drop(deaf)
    put(world, "n0", "a2", "second")
    calm(world, 4.0)
    return [value_of(world, "n2", key) for key in ("a", "a2")]


def test_a_replica_that_tells_nobody_is_late(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _late_s(monkeypatch, "wrote") > 0.5 >= _late_s(monkeypatch)


def _late_s(monkeypatch: pytest.MonkeyPatch, without: str = "") -> float:
    """Return the longest that a write took to be everywhere, with a part of the spreading left out."""
    with monkeypatch.context() as broken:
        if without:
            broken.setattr(Spreader, without, _nothing)
        tasks = [Task(seed=seed, nodes=10, profile="lan", scenario="state-calm") for seed in (1, 2)]
        figures = [run_task(task).figures["everywhere_s"] for task in tasks]
    return max(max(values) for values in figures)
