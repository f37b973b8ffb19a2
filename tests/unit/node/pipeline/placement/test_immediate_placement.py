"""A call that is placed at once goes where one that might have waited goes, and its journey is told the same."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from smg_node.core.generation.request import token_ids
from smg_node.core.journey import Chosen, Journey
from smg_node.fleet.fleet import Fleet
from smg_node.fleet.models.served_model import ServedModel
from smg_node.pipeline.placement.placer import PlacementRequest, Placer, PlacerOptions
from smg_node.pipeline.placement.prefix_caches import Prefixes
from smg_node.pipeline.reservation import Reservation
from smg_node.pipeline.retry import Avoid
from smg_node.routing.kv_index.prefix_index import PrefixIndex
from smg_node.routing.policy_registry import OwnBindings, Policies, known_policies
from smg_node.system_clock import SystemClock
from support.engines.fake_engine import FakeEngine
from support.fleet.fleet_builder import fleet_of, running

IDS = {length: token_ids(list(range(length))) for length in (3, 300)}


@asynccontextmanager
async def fleet(folder: Path, hosts: str) -> AsyncIterator[Fleet]:
    async with running(fleet_of({host: FakeEngine() for host in hosts}, folder), [*hosts]) as it:
        async with asyncio.timeout(10):
            while not all(worker.routable for worker in it.workers()):  # noqa: ASYNC110 - from outside
                await asyncio.sleep(0.005)
        yield it


def placer_of(fleet: Fleet, options: PlacerOptions) -> Placer:
    index = Prefixes(PrefixIndex(), cluster="one")
    policies, clock = Policies(OwnBindings()), SystemClock()
    return Placer(fleet, policies, options, clock=clock, rng=random.Random(1), beginnings=index)


def wish_of(length: int, key: str) -> PlacementRequest:
    return PlacementRequest(
        float("inf"), IDS[length], key=key, journey=Journey("r", "n", "chat", "tiny", 0)
    )


def told(hold: Reservation, wish: PlacementRequest) -> object:
    """What is known of a placed call, but for the moment; it is over then."""
    assert wish.journey is not None
    (step,) = wish.journey.steps
    assert isinstance(step, Chosen)
    rated = [msgspec.structs.astuple(one) for one in step.rated]
    held = hold.worker.id, hold.prompt_tokens, hold.tokens, hold.ahead, hold.probe, hold.alone
    hold.release(hold.began_s)
    return msgspec.structs.replace(step, at_ms=0, rated=()), rated, held


async def model_of(placer: Placer) -> ServedModel:
    return await placer.model("tiny", deadline_s=float("inf"))


@pytest.mark.parametrize("hosts", ["a", "abc"])
@pytest.mark.parametrize("policy", [*known_policies()])
async def test_it_goes_where_it_would_have_gone(tmp_path: Path, policy: str, hosts: str) -> None:
    async with fleet(tmp_path, hosts) as it:
        options = PlacerOptions(policy)
        quick, slow = placer_of(it, options), placer_of(it, options)
        model = await model_of(quick)
        for turn in range(12):
            length, key = (3, 300)[turn % 2], ("", "k")[turn % 3 == 0]
            ours, theirs = wish_of(length, key), wish_of(length, key)
            soon = quick.soon(model, ours)
            assert soon is not None
            found = told(soon, ours)
            hold = await slow.hold(model, theirs)
            assert found == told(hold, theirs)
            for placer, one in ((quick, soon), (slow, hold)):
                placer.confirmed(one, one.began_s)


async def test_what_is_not_as_usual_is_left_to_those_who_may_wait(tmp_path: Path) -> None:
    async with fleet(tmp_path, "ab") as it:
        placer = placer_of(it, PlacerOptions("round_robin"))
        model, (one, other) = await model_of(placer), it.workers()
        usual = wish_of(3, "")
        for unusual in (
            msgspec.structs.replace(usual, target=one.id),
            msgspec.structs.replace(usual, fits=lambda worker: worker is one),
            msgspec.structs.replace(usual, avoid=Avoid(frozenset({one.id}), frozenset())),
        ):
            assert placer.soon(model, unusual) is None
        # What all workers fit is nothing special.
        hold = placer.soon(model, msgspec.structs.replace(usual, fits=lambda worker: True))
        assert hold is not None
        hold.release(0.0)
        # What it stands on changes with the fleet.
        one.load.stick(stuck=True)
        for _ in range(3):
            hold = placer.soon(model, usual)
            assert hold is not None
            assert hold.worker is other
            hold.release(0.0)
        other.load.stick(stuck=True)
        assert placer.soon(model, usual) is None
        one.load.stick(stuck=False)
        other.load.stick(stuck=False)
        placer.retune(policy="random", policies={}, wait_for_worker_s=1.0)
        hold = placer.soon(model, wish := wish_of(3, ""))
        assert hold is not None
        assert wish.journey is not None
        (step,) = wish.journey.steps
        assert isinstance(step, Chosen)
        assert step.policy == "random"
        hold.release(0.0)


async def test_nobody_passes_those_who_wait_in_line(tmp_path: Path) -> None:
    async with fleet(tmp_path, "a") as it:
        placer = placer_of(it, PlacerOptions("cache_aware"))
        model, (worker,) = await model_of(placer), it.workers()
        worker.load.sized(1)
        holds = []
        while (hold := placer.soon(model, wish_of(3, ""))) is not None:
            holds.append(hold)
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(placer.hold(model, wish_of(3, "")))
            await asyncio.sleep(0)
            for hold in holds:
                hold.release(0.0)
            assert placer.soon(model, wish_of(3, "")) is None
        waiting.result().release(0.0)
        hold = placer.soon(model, wish_of(3, ""))
        assert hold is not None
        hold.release(0.0)


async def test_where_all_are_overloaded_and_some_are_turned_away_it_is_not_decided_at_once(
    tmp_path: Path,
) -> None:
    async with fleet(tmp_path, "a") as it:
        placer = placer_of(it, PlacerOptions("cache_aware", shed=True))
        model, (worker,) = await model_of(placer), it.workers()
        hold = placer.soon(model, wish_of(3, ""))
        assert hold is not None
        hold.release(0.0)
        worker.load.overloaded = True
        it._note_turn()
        assert placer.soon(model, wish_of(3, "")) is None
