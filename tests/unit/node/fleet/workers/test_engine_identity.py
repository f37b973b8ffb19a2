"""Two rows of one engine: the one with the smaller id has it, and the other one says so."""

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from smg_node.config.worker_url import parse_worker_url
from smg_node.core.errors import ErrorKind, SmgError
from smg_node.engines.contracts.engine_metadata import drawn_instance, named_instance
from smg_node.engines.engine import Contract, MediaCard, ModelCard
from smg_node.fleet.load.worker_load import WorkerLoad
from smg_node.fleet.workers.engine_identity import (
    EngineClaims,
    mark_of,
    resolved,
    unresolved,
)
from smg_node.fleet.workers.worker import Status, Worker
from smg_node.fleet.workers.worker_spec import DeclaredWorker
from support.engines.fake_engine import FakeEngine
from support.fleet.breakers import breaker
from support.fleet.fleet_builder import declare, fleet_of, running

NAMES = {
    "one": ("10.0.0.7",),
    "alias": ("10.0.0.7",),
    "both": ("10.0.0.7", "2001:db8::7"),
    "many": ("10.0.0.7", "10.0.0.8"),
    "other": ("10.0.0.9",),
}
CARD = ModelCard(Contract.SGLANG, "m", "", None, None, None, ())


async def looked_up(host: str, port: int) -> Iterable[str]:
    if host not in NAMES:
        raise OSError("no such name")
    return NAMES[host]


def worker(text: str, worker_id: str) -> Worker:
    url = parse_worker_url(text)
    return Worker(DeclaredWorker(url), WorkerLoad(worker_id), breaker())


def test_a_mark_has_what_is_said_of_pictures_and_is_the_same_everywhere() -> None:
    ways = [
        MediaCard(frozenset(one)) for one in (["tensors", "references"], ["references", "tensors"])
    ]
    marks = {mark_of(replace(CARD, media=media)) for media in ways}
    assert len(marks) == 1
    changed = MediaCard(ways[0].ways, device_normalizes=True)
    others = [
        None,
        changed,
        MediaCard(ways[0].ways, dtype="bfloat16"),
        MediaCard(frozenset({"tensors"})),
    ]
    assert len(marks | {mark_of(replace(CARD, media=media)) for media in others}) == 5
    assert mark_of(replace(CARD, media=MediaCard(frozenset({"encoded"})))) == mark_of(CARD)


def refused(other: Worker) -> str:
    return (
        f"it is the same engine as worker {other.url.endpoint} ({other.id}), which gets its"
        " requests; remove one of the two"
    )


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("grpc://one:1", "grpc://alias:1", True),
        ("grpc://one:1", "http://10.0.0.7:1", True),
        ("one:1", "grpc://[2001:db8::7]:1", False),
        ("both:1", "grpc://[2001:db8::7]:1", True),
        ("both:1", "one:1", True),
        ("grpc://one:1", "grpc://alias:2", False),
        ("grpc://one:1", "grpc://other:1", False),
        ("grpc://one:1", "grpc://many:1", False),
        ("grpc://unknown:1", "grpc://strange:1", False),
    ],
)
async def test_an_address_under_two_names_is_one_engine(
    first: str, second: str, *, same: bool
) -> None:
    claims, a, b = EngineClaims(looked_up), worker(first, "w-a"), worker(second, "w-b")
    await claims.claim(a, CARD)
    if not same:
        await claims.claim(b, CARD)
        return
    with pytest.raises(SmgError) as caught:
        await claims.claim(b, CARD)
    assert caught.value.kind is ErrorKind.CONFLICT
    assert caught.value.message == refused(a)
    claims.check(a)
    claims.release(a)
    await claims.claim(b, CARD)


async def test_what_only_one_process_has_tells_that_it_is_one() -> None:
    claims, a, b = EngineClaims(unresolved), worker("h:1", "w-a"), worker("i:2", "w-b")
    await claims.claim(a, replace(CARD, instance="17.5 991827"))
    await claims.claim(b, replace(CARD, instance="17.5 991828"))
    with pytest.raises(SmgError):
        await claims.claim(b, replace(CARD, instance="17.5 991827"))


async def test_the_smaller_id_takes_over_whoever_came_first() -> None:
    claims, a, b = EngineClaims(looked_up), worker("one:1", "w-a"), worker("alias:1", "w-b")
    await claims.claim(b, CARD)
    await claims.claim(a, CARD)
    assert b.wake.is_set()
    claims.check(a)
    with pytest.raises(SmgError) as caught:
        claims.check(b)
    assert caught.value.message == refused(a)
    claims.release(b)
    claims.release(b)
    claims.release(a)
    claims.check(b)


async def test_a_row_too_many_says_so_and_takes_over_when_the_other_is_down(
    tmp_path: Path,
) -> None:
    one, alias = FakeEngine(), FakeEngine()
    fleet = fleet_of({"one": one, "alias": alias}, tmp_path, resolve=looked_up)
    async with running(fleet):
        rows = sorted(declare(fleet, "one", "alias"), key=lambda row: row.id)
        async with asyncio.timeout(5):
            while rows[0].status is not Status.READY or rows[1].status is not Status.FAILED:  # noqa: ASYNC110 - from outside
                await asyncio.sleep(0.005)
        assert rows[1].reason == refused(rows[0])
        assert fleet.serving(rows[0].model or pytest.fail("it serves"))[0].routable
        assert [row.routable for row in rows] == [True, False]
        assert alias.tokenizers + one.tokenizers <= 2, "a row too many fetches nothing again"
        first = {"one": one, "alias": alias}[rows[0].url.host]
        first.up = False
        rows[1].suspect()
        async with asyncio.timeout(5):
            while not rows[1].routable:
                rows[1].suspect()
                await asyncio.sleep(0.005)
        first.up = True
        async with asyncio.timeout(5):
            while not rows[0].routable or rows[1].routable:  # noqa: ASYNC110 - as above
                await asyncio.sleep(0.005)
        assert rows[1].reason == refused(rows[0])


@pytest.mark.parametrize(
    ("seconds", "seed", "told"),
    [
        (17, 991_827.0, "17.5 991827"),
        (17, 42.0, ""),
        (17, None, ""),
        (17, "x", ""),
        (0, 991_827.0, ""),
    ],
)
def test_a_start_and_a_drawn_seed_are_a_process(seconds: int, seed: object, told: str) -> None:
    assert drawn_instance(SimpleNamespace(seconds=seconds, nanos=5), seed) == told


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("3f2b8c1e-9d4a-4c6b-8e1f-0a1b2c3d4e5f", True),
        ("3f2b8c1e9d4a4c6b8e1f0a1b2c3d4e5f_dp0", True),
        ("decode-0", False),
        ("", False),
    ],
)
def test_a_drawn_name_is_a_process(name: str, *, told: bool) -> None:
    assert named_instance(name) == (name if told else "")


async def test_a_literal_address_is_found_as_it_is() -> None:
    assert list(await resolved("127.0.0.1", 1)) == ["127.0.0.1"]
    assert list(await unresolved("127.0.0.1", 1)) == []
