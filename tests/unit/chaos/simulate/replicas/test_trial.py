"""Whole random histories over the simplest replica: what is reported when it is broken."""

import pytest

from smg_chaos.simulate import batch
from smg_chaos.simulate.batch import real_core
from smg_chaos.simulate.command import Asked, run
from smg_chaos.simulate.plans.replica_plans import random_state_plan
from smg_chaos.simulate.replicas.replica_interface import ReplicaFactory
from smg_chaos.simulate.shorten import shortened
from smg_chaos.simulate.trials.trial import live, try_plan
from support.state.reference_replica import ReferenceReplica


class Raising(ReferenceReplica):
    """Has a mistake in it."""

    def tick(self) -> None:
        raise ZeroDivisionError("by zero")


class Deaf(ReferenceReplica):
    """Takes nothing from a peer that begins with the letters of a worker."""

    def load(self, name: str, content: bytes) -> None:
        if not name.startswith("workers"):
            super().load(name, content)


def test_a_history_over_a_whole_replica_keeps_every_promise_and_gives_figures() -> None:
    plan = random_state_plan(2, nodes=4)
    world, outcome = live(plan, real_core(), ReferenceReplica, traced=True)
    assert outcome.broken == ()
    assert outcome.figures.keys() == {
        "settled_s",
        "alike_s",
        "nodes",
        "writes",
        "calm_s",
        "virtual_s",
    }
    assert outcome.figures["nodes"] == [float(len(world.nodes()))]
    assert (
        outcome.fingerprint == live(plan, real_core(), ReferenceReplica, traced=True)[1].fingerprint
    )


def test_what_a_replica_raises_is_a_broken_promise_of_its_seed() -> None:
    outcome = try_plan(random_state_plan(2, nodes=4), real_core(), Raising)
    assert "raised ZeroDivisionError by zero in tick" in outcome.broken[-1]


def test_what_suffices_to_break_a_promise_is_few_deeds() -> None:
    plan = random_state_plan(2, nodes=3)
    shortest, outcome, _ = shortened(
        plan, lambda fewer: try_plan(fewer, real_core(), Deaf), tries_max=25
    )
    assert outcome.broken
    assert len(shortest.faults) <= len(plan.faults) - 15


def test_a_failing_seed_is_printed_with_what_suffices_and_how_to_see_it_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(scenario: str) -> ReplicaFactory:
        return Deaf

    monkeypatch.setattr(batch, "real_replica", broken)
    monkeypatch.setattr("smg_chaos.simulate.command.real_replica", broken)
    asked = Asked(scenario="state-weather", seeds=1, first=2, nodes=3, jobs=1)
    assert run(asked) == 1
    printed = capsys.readouterr().out
    assert "faults suffice" in printed
    assert "again: smg-chaos simulate --seed 2 --scenario state-weather --nodes 3" in printed
