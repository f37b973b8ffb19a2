"""`Idempotency-Key` on `POST /v1/responses`: what a client gets who asks for the same thing twice."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from smg_node.core.generation.events import BlockEnd, BlockStart, Delta, Event
from smg_node.history.ports import HistoryOptions, Quota
from smg_node.history.runs.background_run import Pace
from smg_node.history.service.history_service import HistoryService
from smg_node.pipeline.generation.run_interface import Generations
from smg_storage.errors import StoreError, StoreErrorKind
from support.history.history_world import (
    HistoryWorld,
    begin,
    block,
    counting,
    failing,
    finish,
    history_world,
)
from support.http.http_node import FakeRun, Node, node
from support.http.raw_http import Response, ask, until

PATH = "/v1/responses"


class Here:
    """Builds one history behind the surface, and keeps hold of it."""

    def __init__(self, options: HistoryOptions | None = None) -> None:
        self._options = options
        self.world: HistoryWorld = history_world()

    def __call__(self, generations: Generations) -> HistoryService:
        pace = Pace(flush_s=0, followed_flush_s=0)
        self.world = history_world(generations=generations, options=self._options, pace=pace)
        return self.world.desks

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as group:
            carrying = group.create_task(self.world.runs.run())
            yield
            carrying.cancel()


async def post(served: Node, key: str | None = "k", path: str = PATH, /, **body: Any) -> Response:
    packed = json.dumps({"model": "m", "input": "hi", **body}).encode()
    headers = {"content-type": "application/json"}
    if key is not None:
        headers["idempotency-key"] = key
    return await ask(served.port, "POST", path, packed, headers)


def told(response: Response) -> list[dict[str, Any]]:
    assert response.body.endswith(b"data: [DONE]\n\n")
    lines = [line for line in response.body.decode().split("\n") if line.startswith("data: {")]
    return [json.loads(line.removeprefix("data: ")) for line in lines]


def text_of(events: Sequence[dict[str, Any]]) -> str:
    deltas = [one for one in events if one["type"] == "response.output_text.delta"]
    return "".join(str(one["delta"]) for one in deltas)


async def test_the_same_request_has_the_same_answer_byte_for_byte() -> None:
    async with node(counting, history=Here()) as served:
        first = await post(served)
        second = await post(served)
        assert (first.status, second.status) == (200, 200)
        assert second.body == first.body
        assert "idempotent-replayed" not in first.headers
        assert second.headers["idempotent-replayed"] == "true"
        assert second.headers["x-request-id"] != first.headers["x-request-id"]
        assert len(served.generations.runs) == 1
        other = await post(served, "another")
        assert other.json()["id"] != first.json()["id"]


async def test_the_same_stream_is_told_again() -> None:
    async with node(counting, history=Here()) as served:
        first, second = [await post(served, stream=True) for _ in range(2)]
        before, after = told(first), told(second)
        assert second.headers["content-type"].startswith("text/event-stream")
        assert second.headers["idempotent-replayed"] == "true"
        assert text_of(after) == text_of(before) == "turns 1"
        assert after[-1]["response"] == before[-1]["response"]
        assert [one["sequence_number"] for one in after] == list(range(len(after)))
        assert len(served.generations.runs) == 1


async def test_another_request_under_the_same_key_is_refused_for_good() -> None:
    async with node(counting, history=Here()) as served:
        await post(served)
        for body in ({"input": "ho"}, {"stream": True}):
            refused = await post(served, **body)
            assert (refused.status, refused.error()["code"]) == (409, "idempotency_conflict")
            assert refused.headers["x-should-retry"] == "false"
        assert len(served.generations.runs) == 1


async def test_while_it_is_made_the_client_is_told_when_to_come_again() -> None:
    go_on = asyncio.Event()

    async def slow(run: FakeRun) -> AsyncIterator[Sequence[Event]]:
        yield [begin(), BlockStart(0, 0, "text"), Delta(0, 0, "so", 1)]
        await go_on.wait()
        yield [BlockEnd(0, 0, "text", "so"), *finish()]

    async with node(slow, history=Here()) as served, asyncio.TaskGroup() as group:
        first = group.create_task(post(served))
        await until(lambda: bool(served.generations.runs))
        second = await post(served)
        assert (second.status, second.error()["code"]) == (409, "idempotency_in_progress")
        assert (second.headers["retry-after"], second.headers["x-should-retry"]) == ("2", "true")
        go_on.set()
        await first
        assert (await post(served)).body == first.result().body


async def test_what_failed_may_be_tried_again() -> None:
    async with node(failing, history=Here()) as served:
        assert [(await post(served)).status for _ in range(2)] == [502, 502]
        served.generations.script = counting
        assert (await post(served)).status == 200
        assert (await post(served)).headers["idempotent-replayed"] == "true"


async def test_a_client_who_left_may_ask_again_under_his_key() -> None:
    async def endless(run: FakeRun) -> AsyncIterator[Sequence[Event]]:
        yield [begin(), BlockStart(0, 0, "text"), Delta(0, 0, "so", 1)]
        await asyncio.Event().wait()

    here = Here()
    async with node(endless, history=here) as served:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await post(served)
        # It has let go of everything when it is no longer under way.
        await until(lambda: not here.world.desks.responses._live)
        served.generations.script = counting
        assert (await post(served)).json()["status"] == "completed"
        assert len(here.world.keeper.turns) == 2


@pytest.mark.parametrize("key", ["", "x" * 129, "a\tb", "\xfc"])
async def test_what_is_no_key_is_refused_before_anything_is_done(key: str) -> None:
    async with node(counting, history=Here()) as served:
        for stored in (True, False):
            refused = await post(served, key, store=stored)
            code = refused.error()["code"]
            assert (refused.status, code) == (400, "invalid_idempotency_key")
        assert not served.generations.runs


async def test_what_is_not_kept_is_made_each_time_and_says_so() -> None:
    async with node(counting, history=Here()) as served:
        first, second = [await post(served, store=False) for _ in range(2)]
        assert first.json()["id"] != second.json()["id"]
        assert second.headers["x-smg-ignored-params"] == "idempotency-key"
        plain = await post(served, None, store=False)
        assert "x-smg-ignored-params" not in plain.headers


async def test_without_the_store_a_key_cannot_be_promised_but_what_is_not_kept_is_served() -> None:
    here = Here()

    async def away(*_: object, **__: object) -> None:
        raise StoreError(StoreErrorKind.UNAVAILABLE, "away")

    async with node(counting, history=here) as served:
        await post(served, None)
        here.world.keeper.store.reserve_key = away  # type: ignore[assignment,method-assign] # it is away
        refused = await post(served)
        assert (refused.status, refused.error()["code"]) == (503, "store_unavailable")
        assert refused.headers["retry-after"] == "2"
        assert (await post(served, store=False)).status == 200
        assert (await post(served, None)).status == 200


async def test_a_background_response_is_shown_as_it_is_under_its_key() -> None:
    go_on = asyncio.Event()

    async def slow(run: FakeRun) -> AsyncIterator[Sequence[Event]]:
        await go_on.wait()
        yield [begin(), *block(0, "text", "done"), *finish()]

    here = Here()
    async with node(slow, history=here) as served:
        # With the first request history is built.
        assert (await ask(served.port, "GET", f"{PATH}/resp_none")).status == 404
        async with here.running():
            first = await post(served, background=True)
            assert first.json()["status"] == "queued"
            second = await post(served, background=True)
            assert second.status == 200
            assert second.json()["id"] == first.json()["id"]
            assert second.headers["idempotent-replayed"] == "true"
            go_on.set()
            run = here.world.runs.find("-", first.json()["id"])
            assert run is not None
            await run.ended()
            third = await post(served, background=True)
            assert third.json()["status"] == "completed"
        assert len(served.generations.runs) == 1


async def test_over_a_quota_the_answer_says_so_and_that_trying_again_is_no_use() -> None:
    here = Here(HistoryOptions(quota=Quota(responses=1)))
    async with node(counting, history=here) as served:
        first = await post(served)
        refused = await post(served, "l")
        assert (refused.status, refused.error()["code"]) == (429, "storage_quota")
        assert refused.headers["x-should-retry"] == "false"
        # What was made under a key is there, whatever room is left; and the refused key is free.
        assert (await post(served)).body == first.body
        await ask(served.port, "DELETE", f"{PATH}/{first.json()['id']}")
        assert (await post(served, "l", store=False)).status == 200


async def test_where_no_key_is_remembered_the_answer_says_so() -> None:
    async with node(counting, history=Here()) as served:
        made = await post(served, "k", "/v1/conversations", items=[])
        items = f"/v1/conversations/{made.json()['id']}/items"
        added = await post(served, "k", items, items=[{"role": "user", "content": "a"}])
        compacted = await post(served, "k", f"{PATH}/compact")
        # The model and the input that every body here has mean nothing to a conversation.
        others = "model, input, idempotency-key"
        for answer, ignored in ((made, others), (added, others), (compacted, "idempotency-key")):
            assert answer.status == 200
            assert answer.headers["x-smg-ignored-params"] == ignored
