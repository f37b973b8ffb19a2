"""Who may be given a call that was checked for somebody else."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

from smg_node.core.generation.request import Sampling, token_ids
from smg_node.fleet.fleet import Fleet
from smg_node.pipeline.generation.call_plan import Leg
from smg_node.pipeline.generation.leg_compatibility import can_take
from smg_node.pipeline.reservation import Reservation
from support.engines.fake_engine import FakeEngine, abilities, card
from support.fleet.fleet_builder import fleet_of, running

WISH = Sampling(max_tokens=20, temperature=0.0, seed=3, logit_bias={1: 1.0}, logprobs=3)


def leg(*, count: int = 1, prompt: int = 30, sampling: Sampling = WISH) -> Leg:
    return Leg(0, count, token_ids([97] * prompt), structs.replace(sampling, n=count))


def change(engine: FakeEngine, **changed: object) -> None:
    engine.abilities = replace(abilities(), **changed)  # type: ignore[arg-type]  # its own fields


@asynccontextmanager
async def pair(folder: Path, first: FakeEngine, other: FakeEngine) -> AsyncIterator[Fleet]:
    async with running(fleet_of({"a": first, "b": other}, folder), ["a", "b"]) as fleet:
        async with asyncio.timeout(10):
            while not all(worker.routable for worker in fleet.workers()):  # noqa: ASYNC110 - from outside
                await asyncio.sleep(0.005)
        yield fleet


@pytest.mark.parametrize(
    ("how", "what", "taken"),
    [
        (lambda it: None, leg(), True),
        (lambda it: change(it, stop_strings=True, native_n=True), leg(), True),
        (lambda it: change(it, logit_bias=False), leg(), False),
        (lambda it: change(it, logit_bias=False), leg(sampling=Sampling(max_tokens=1)), True),
        (lambda it: change(it, logprobs_max=2), leg(), False),
        (lambda it: change(it, seed=False), leg(), False),
        (lambda it: change(it, seed=True), leg(count=2), True),
        (lambda it: change(it, stop_strings=True), leg(count=2), False),
        (lambda it: setattr(it, "model_card", card(vocabulary=300)), leg(), True),
        (lambda it: setattr(it, "model_card", card(vocabulary=200)), leg(), False),
        (lambda it: setattr(it, "model_card", card(context=49)), leg(), False),
        (lambda it: setattr(it, "model_card", card(context=50)), leg(), True),
        (lambda it: setattr(it, "model_card", card(prompt_max=29)), leg(), False),
        (lambda it: setattr(it, "model_card", card(prompt_max=30)), leg(), True),
    ],
)
async def test_a_worker_takes_what_it_can_do_at_least_as_well(
    tmp_path: Path, how: Callable[[FakeEngine], None], what: Leg, taken: bool
) -> None:
    first, other = FakeEngine(), FakeEngine()
    if what.count > 1:
        change(first, native_n=True)
        other.abilities = first.abilities
        if taken:
            how = lambda it: change(it, native_n=True)  # noqa: E731 - the table names the rest
    how(other)
    async with pair(tmp_path, first, other) as fleet:
        a, b = fleet.get("grpc://a:1"), fleet.get("grpc://b:1")
        assert a.engine is not None
        assert a.card is not None
        assert a.model is not None
        checked = Reservation(a, a.engine, a.card)
        assert can_take(a, what, a.model, checked)
        assert can_take(b, what, a.model, checked) is taken


async def test_a_worker_of_another_model_takes_nothing(tmp_path: Path) -> None:
    async with pair(tmp_path, FakeEngine(), FakeEngine(model="other")) as fleet:
        a, b = fleet.get("grpc://a:1"), fleet.get("grpc://b:1")
        assert a.engine is not None
        assert a.card is not None
        assert a.model is not None
        assert not can_take(b, leg(), a.model, Reservation(a, a.engine, a.card))
        b.model = None
        assert not can_take(b, leg(), a.model, Reservation(a, a.engine, a.card))
