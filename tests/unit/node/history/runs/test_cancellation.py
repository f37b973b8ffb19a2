"""A response that is wanted no more ends once, whoever is told and from wherever; everybody reads the same end."""

import asyncio
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.history.ports import Direct
from smg_node.history.runs.cancellation import TOPIC, WAIT_S, Cancelling
from smg_storage.errors import StoreError, StoreErrorKind
from smg_storage.records import Access, Lease, Status, StoredResponse, Turn
from support.history.orphan_world import FakePeers, NoRuns, OrphanWorld

OTHER = Access(tenant="rival")


class LiveRun:
    """A run of this process, which ends when it is told to, or never."""

    def __init__(self, world: OrphanWorld, row: StoredResponse, *, ends: bool = True) -> None:
        self._world = world
        self._row = row
        self._over = asyncio.Event()
        self._ends = ends
        self.told = 0
        self.forgotten = 0

    def forget(self) -> None:
        self.forgotten += 1

    def body(self) -> bytes:
        return self._row.response

    def cancel(self) -> None:
        self.told += 1

    async def ended(self) -> None:
        if self._ends and self.told and not self._over.is_set():
            await end(self._world, self._row, Status.CANCELLED)
            self._over.set()
        await self._over.wait()


async def end(world: OrphanWorld, row: StoredResponse, status: Status) -> None:
    """Do what an owner does at last."""
    response = row.response.replace(b'"queued"', msgspec.json.encode(status.value))
    final = msgspec.structs.replace(row, status=status, response=response)
    await world.store.commit_turn(world.access, Turn(response=final, token=row.lease_token))


class Office:
    """One node that cancels, with what it knows."""

    def __init__(self, world: OrphanWorld) -> None:
        self.world = world
        self.runs = NoRuns()
        self.peers = FakePeers()
        self.asked: list[tuple[str, str, float]] = []
        self.slept: list[float] = []
        self.meanwhile: Any = None
        self.reply: Any = None
        self.peers.ask = self.ask  # type: ignore[method-assign]  # others answer as the test wants
        self.cancelling = Cancelling(
            Direct(world.store),
            self.runs.find,
            show=self.show,
            peers=self.peers,
            now_s=lambda: world.now_s,
            sleep=self.sleep,
        )

    async def ask(self, node: str, topic: str, payload: bytes, *, deadline_s: float) -> bytes:
        self.asked.append((node, topic, deadline_s))
        if self.reply is None:
            raise SmgError(ErrorKind.UPSTREAM_TIMEOUT, "it is silent")
        return bytes(await self.reply(payload, "me"))

    async def show(self, access: Access, record: StoredResponse) -> bytes:
        return b'{"shown":%s}' % msgspec.json.encode(record.status.value)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.world.pass_s(seconds)
        if self.meanwhile is not None:
            await self.meanwhile()

    async def cancel(self, row: StoredResponse, access: Access | None = None) -> dict[str, Any]:
        body = await self.cancelling.cancel(access or self.world.access, row.id)
        shown: dict[str, Any] = json.loads(body)
        return shown


@pytest.fixture
def world(tmp_path: Path) -> OrphanWorld:
    return OrphanWorld(tmp_path)


@pytest.fixture
def office(world: OrphanWorld) -> Office:
    return Office(world)


async def test_what_is_made_here_is_told_to_end(world: OrphanWorld, office: Office) -> None:
    row = await world.run_of("a/0")
    run = office.runs["acme", row.id] = LiveRun(world, row)
    shown = await office.cancel(row)
    assert shown["status"] == "cancelled"
    assert run.told == 1
    # What is over is what it is, whoever asks for it again.
    assert await office.cancel(row) == shown
    office.runs.clear()
    assert await office.cancel(row) == shown
    assert office.asked == []


async def test_its_owner_is_told_and_the_flag_is_there_for_whoever_comes_after(
    world: OrphanWorld, office: Office
) -> None:
    row = await world.run_of("b/0")
    owner = Office(world)
    run = owner.runs["acme", row.id] = LiveRun(world, row)
    office.reply = owner.peers.answers[TOPIC]
    assert (await office.cancel(row))["status"] == "cancelled"
    assert [(node, topic) for node, topic, _ in office.asked] == [("b", TOPIC)]
    assert run.told == 1
    assert office.slept == []
    assert (await world.row(row)).cancel_requested


async def test_the_flag_is_enough_where_the_owner_cannot_be_told(
    world: OrphanWorld, office: Office
) -> None:
    row = await world.run_of("b/0")
    lease = Lease("acme", row.id, row.owner, 1, row.lease_until_us)

    async def renew() -> None:
        until_us = world.clock.now_us + 15_000_000
        if len(office.slept) < 4:
            return
        held = await world.store.renew_run(world.access, lease, until_us=until_us)
        if held.cancel_requested:
            await end(world, row, Status.CANCELLED)

    office.meanwhile = renew
    assert (await office.cancel(row))["status"] == "cancelled"
    assert office.slept == sorted(office.slept)


async def test_it_is_not_waited_for_for_ever(world: OrphanWorld, office: Office) -> None:
    row = await world.run_of("b/0")
    began_s = world.now_s
    assert await office.cancel(row) == {"shown": "queued"}
    assert WAIT_S - 0.6 < world.now_s - began_s <= WAIT_S
    assert (await world.row(row)).cancel_requested
    # It ends all the same: whoever adopts it knows what was wanted.
    node = world.node("c")
    node.peers.since["b"] = 1
    await node.adopter.look()
    assert (await world.ended(row))["status"] == "cancelled"
    assert (await office.cancel(row))["status"] == "cancelled"


async def test_what_nobody_owns_is_told_to_nobody(world: OrphanWorld, office: Office) -> None:
    row = await world.run_of("")
    await office.cancel(row)
    assert office.asked == []


@pytest.mark.parametrize("here", [True, False])
@pytest.mark.parametrize("status", [Status.COMPLETED, Status.INCOMPLETE, Status.FAILED])
async def test_an_end_that_comes_first_is_the_end(
    world: OrphanWorld, office: Office, status: Status, here: bool
) -> None:
    row = await world.run_of("b/0")
    if here:
        run = office.runs["acme", row.id] = LiveRun(world, row, ends=False)
        run._over.set()
        await end(world, row, status)
    else:
        office.meanwhile = lambda: end(world, row, status)
    first = await office.cancel(row)
    assert first["status"] == status.value
    office.runs.clear()
    assert await office.cancel(row) == await Office(world).cancel(row) == first
    assert (await world.row(row)).status is status


async def test_what_is_not_there_is_not_found(world: OrphanWorld, office: Office) -> None:
    row = await world.run_of("b/0")
    strange = msgspec.structs.replace(row, id="no id at all!")
    gone = msgspec.structs.replace(row, id=row.id[:-1] + "x")
    for one, access in ((strange, None), (gone, None), (row, OTHER)):
        with pytest.raises(SmgError) as refused:
            await office.cancel(one, access)
        assert refused.value.kind is ErrorKind.NOT_FOUND
    office.meanwhile = lambda: world.store.delete_response(world.access, row.id)
    with pytest.raises(SmgError) as refused:
        await office.cancel(row)
    assert refused.value.kind is ErrorKind.NOT_FOUND


@pytest.mark.parametrize("here", [True, False])
async def test_what_was_not_asked_for_in_the_background_cannot_be_cancelled(
    world: OrphanWorld, office: Office, here: bool
) -> None:
    row = await world.run_of("b/0", background=False)
    if here:
        office.runs["acme", row.id] = LiveRun(world, row)
    with pytest.raises(SmgError) as refused:
        await office.cancel(row)
    assert (refused.value.kind, refused.value.code) == (ErrorKind.INVALID_REQUEST, "cannot_cancel")
    assert not (await world.row(row)).cancel_requested


async def test_a_store_that_is_away_is_said_to_be(world: OrphanWorld, office: Office) -> None:
    row = await world.run_of("b/0")

    async def away(*_: object) -> None:
        raise StoreError(StoreErrorKind.UNAVAILABLE, "it is away")

    world.store.get_response = away  # type: ignore[method-assign, assignment]  # from now on
    with pytest.raises(SmgError) as refused:
        await office.cancel(row)
    assert refused.value.code == "store_unavailable"


@pytest.mark.parametrize(
    "payload",
    [b"", b"\xc1", msgspec.msgpack.encode({"tenant": 1}), b"x" * 2_000,
     msgspec.msgpack.encode({"tenant": "acme", "response_id": "resp_x"})],
)  # fmt: skip
async def test_others_may_ask_for_anything(office: Office, payload: bytes) -> None:
    assert await office.peers.answers[TOPIC](payload, "b") == b"no"


async def test_who_told_is_not_kept_waiting_by_a_slow_end(
    world: OrphanWorld, office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("smg_node.history.runs.cancellation.ASKED_WAIT_S", 0.01)
    row = await world.run_of("b/0")
    run = office.runs["acme", row.id] = LiveRun(world, row, ends=False)
    question = msgspec.msgpack.encode({"tenant": "acme", "response_id": row.id})
    assert await office.peers.answers[TOPIC](question, "b") == b"soon"
    assert run.told == 1


@pytest.mark.parametrize("offices", [1, 3])
async def test_many_who_cancel_at_once_hear_the_same(world: OrphanWorld, offices: int) -> None:
    row = await world.run_of("b/0")
    owner = Office(world)
    owner.runs["acme", row.id] = LiveRun(world, row)
    nodes = [Office(world) for _ in range(offices)]
    for node in nodes:
        node.reply = owner.peers.answers[TOPIC]
    answers = await asyncio.gather(
        *(one.cancel(row) for one in [owner, *nodes] for _ in range(5)), return_exceptions=False
    )
    assert all(answer == answers[0] for answer in answers)
    assert answers[0]["status"] == "cancelled"


async def test_of_what_is_deleted_its_owner_is_told(world: OrphanWorld, office: Office) -> None:
    row = await world.run_of("b/0")
    owner = Office(world)
    run = owner.runs["acme", row.id] = LiveRun(world, row)
    office.reply = owner.peers.answers[TOPIC]
    assert await owner.cancelling.maker(world.access, row.id) == ""
    node = await office.cancelling.maker(world.access, row.id)
    assert node == "b"
    await office.cancelling.forget(world.access, row.id, node)
    assert (run.forgotten, run.told) == (1, 0)
    await owner.cancelling.forget(world.access, row.id, "")
    assert run.forgotten == 2
    # Nobody is told of what nobody makes, and who cannot be told notices by himself.
    office.reply = None
    await office.cancelling.forget(world.access, row.id, node)
    await end(world, row, Status.FAILED)
    assert len(office.asked) == 2
    for response_id in (row.id, "no id at all!", row.id[:-1] + "x"):
        assert await office.cancelling.maker(world.access, response_id) == ""
        await office.cancelling.forget(world.access, response_id, "")
    assert len(office.asked) == 2
