"""Workers are of use alone or with a partner, and partners have something in common."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from smg_node.engines.disaggregation import Pairing, Role
from smg_node.engines.engine import Contract, MediaCard, ModelCard
from smg_node.fleet.fleet import Fleet
from smg_node.fleet.workers.pair_eligibility import fit, useful
from smg_node.fleet.workers.worker import Status
from support.engines.fake_engine import FakeEngine, card
from support.fleet.fleet_builder import declare, fleet_of, running, set_aside

ROOM = Pairing("room", group="nixl", bootstrap_port=9001)


def half(role: Role, pairing: Pairing | None = ROOM, **changes: object) -> ModelCard:
    known = card(contract=Contract.SGLANG, role=role, pairing=pairing)
    return replace(known, **changes)  # type: ignore[arg-type]  # tests name fields freely


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 - a test looks from outside
            await asyncio.sleep(0.005)


@asynccontextmanager
async def fleet_with(
    folder: Path, cards: Mapping[str, ModelCard], *urls: str
) -> AsyncIterator[Fleet]:
    """Run a fleet of engines with these cards, until all of them were asked who they are."""
    engines = {host: FakeEngine() for host in cards}
    for host, known in cards.items():
        engines[host].model_card = known
    async with running(fleet_of(engines, folder), urls or list(cards)) as fleet:
        await until(lambda: all(one.status is not Status.PENDING for one in fleet.workers()))
        yield fleet


def hosts(fleet: Fleet) -> set[str]:
    return {worker.url.host for worker in useful(fleet.workers())}


async def test_a_half_is_of_use_with_the_other_half_and_not_without(tmp_path: Path) -> None:
    cards = {"p": half("prefill"), "d": half("decode")}
    async with fleet_with(tmp_path, cards) as fleet:
        assert hosts(fleet) == {"p", "d"}
        p, d = fleet.get("grpc://p:1"), fleet.get("grpc://d:1")
        assert fit(p, d)
        assert not fit(d, p)
        assert not fit(p, p)
        set_aside(fleet, d.id, on=True)
        assert hosts(fleet) == set()
        assert fit(p, d), "who fits whom is no question of who is ready"


async def test_a_regular_worker_needs_nobody(tmp_path: Path) -> None:
    async with fleet_with(tmp_path, {"p": half("prefill"), "r": card()}) as fleet:
        assert hosts(fleet) == {"r"}


@pytest.mark.parametrize(
    "other",
    [
        half("decode", Pairing("room", group="mooncake")),
        half("decode", Pairing("nixl", group="nixl")),
        half("decode", contract=Contract.TOKENSPEED),
        half("decode", model="another"),
        half("prefill"),
    ],
)
async def test_engines_without_something_in_common_are_no_partners(
    tmp_path: Path, other: ModelCard
) -> None:
    async with fleet_with(tmp_path, {"p": half("prefill"), "x": other}) as fleet:
        assert all(worker.routable for worker in fleet.workers())
        assert hosts(fleet) == set()
        assert not fit(fleet.get("grpc://p:1"), fleet.get("grpc://x:1"))


async def test_an_operator_may_say_what_engines_have_in_common(tmp_path: Path) -> None:
    cards = {"p": half("prefill"), "d": half("decode", Pairing("room", group="other"))}
    urls = [f"{host}?label.kv_connector=rack7" for host in cards]
    async with fleet_with(tmp_path, cards, *urls) as fleet:
        assert hosts(fleet) == {"p", "d"}


async def test_a_regular_engine_that_may_do_both_takes_the_part_its_operator_gives_it(
    tmp_path: Path,
) -> None:
    both = half("regular", Pairing("nixl", group="g"), contract=Contract.VLLM)
    cards = {"p": both, "d": both, "r": both}
    async with fleet_with(tmp_path, cards, "p?role=prefill", "d?role=decode", "r") as fleet:
        assert {one.url.host: one.role for one in fleet.workers()} == {
            "p": "prefill",
            "d": "decode",
            "r": "regular",
        }
        assert hosts(fleet) == {"p", "d", "r"}


async def test_one_that_cannot_play_its_part_failed_and_says_why(tmp_path: Path) -> None:
    cards = {"p": half("decode"), "d": half("regular", None)}
    async with fleet_with(tmp_path, cards, "p?role=prefill", "d?role=decode") as fleet:
        d, p = sorted(fleet.workers(), key=lambda one: one.url.host)
        assert (d.status, p.status) == (Status.FAILED, Status.FAILED)
        assert "was not started to share requests" in d.reason
        assert p.reason == "it was started for decode, and is registered as prefill"
        assert useful(fleet.workers()) == []


async def test_another_way_of_pairing_is_another_registration_and_other_labels_are_not(
    tmp_path: Path,
) -> None:
    async with fleet_with(tmp_path, {"p": half("prefill")}) as fleet:
        (before,) = fleet.workers()
        assert before.meeting == ("p", 9001)
        declare(fleet, "p?label.zone=a")
        assert fleet.workers() == [before]
        declare(fleet, "p?label.zone=a&bootstrap_port=7000")
        (after,) = fleet.workers()
        assert after is not before
        await until(lambda: after.routable)
        assert after.meeting == ("p", 7000)


async def test_an_engine_that_comes_back_in_another_part_is_registered_anew(
    tmp_path: Path,
) -> None:
    async with fleet_with(tmp_path, {"p": half("prefill")}) as fleet:
        (worker,) = fleet.workers()
        engine = worker.engine
        assert isinstance(engine, FakeEngine)
        for again in (half("decode"), half("decode", ranks=4), half("decode", Pairing("store"))):
            engine.model_card = again
            await until(lambda again=again: worker.card == again and worker.routable)  # type: ignore[misc]  # a lambda with a default


async def test_who_encodes_pictures_is_of_use_with_those_it_does_that_for(tmp_path: Path) -> None:
    sees = MediaCard(ways=frozenset({"tensors"}))
    cards = {
        host: card(contract=Contract.TOKENSPEED, role=role, pairing=ROOM, media=sees)
        for host, role in (("p", "prefill"), ("d", "decode"), ("e", "encode"))
    }
    async with fleet_with(tmp_path, cards) as fleet:
        assert hosts(fleet) == {"p", "d", "e"}
        assert not fit(fleet.get("grpc://e:1"), fleet.get("grpc://d:1"))
        set_aside(fleet, fleet.get("grpc://d:1").id, on=True)
        assert hosts(fleet) == set()
