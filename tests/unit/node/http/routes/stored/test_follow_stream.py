"""Streams of responses that belong to no request, over the wire; what is behind it is a script."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from smg_node.core.errors import ErrorKind, SmgError, invalid
from smg_node.core.request_context import RequestContext
from smg_node.dialects.responses.events.numbered_events import NumberedEvent, frame
from smg_node.dialects.responses.request.response_request import ResponseRequest
from smg_node.http.ports.history import History
from smg_node.pipeline.generation.run_interface import Generations
from smg_storage.records import Access
from support.history.history_world import block
from support.history.remote_run import Elsewhere
from support.http.http_node import FakeGenerations, Node, node
from support.http.raw_http import Response, ask, connect, until

PATH = "/v1/responses"
ID = "resp_1"

Events = AsyncIterator[Sequence[NumberedEvent]]
Tell = Callable[[], Events]


FIGURES = {"spooled": False, "known": 3, "used": 2, "complete": True, "prompt_tokens": 0}


@dataclass
class FakeRegistered:
    made: Any

    def body(self) -> bytes:
        return b'{"id":"resp_1","status":"queued"}'


@dataclass
class FakeResponses:
    """Registers what is wanted in the background, and what is streamed if there is a grace."""

    tell: Tell
    grace: bool = False
    asked: list[tuple[Any, ...]] = field(default_factory=list)
    contexts: list[RequestContext] = field(default_factory=list)
    closed: int = 0
    failure: SmgError | None = None
    generations: FakeGenerations | None = None

    def registers(self, ask: ResponseRequest, access: Access) -> bool:
        return ask.background or (ask.stream and self.grace)

    async def register(
        self,
        ask: ResponseRequest,
        context: RequestContext,
        access: Access,
        *,
        routing_key: str = "",
        held: object = None,
    ) -> FakeRegistered:
        assert self.generations is not None
        self.asked.append(("register", access.tenant, routing_key))
        self.contexts.append(context)
        wish: Any = SimpleNamespace(ignored=("seed",))
        run = self.generations.start("responses", wish, context)
        run.worker = ""
        made = SimpleNamespace(id=ID, generation=run, wish=wish, failure=self.failure, **FIGURES)
        return FakeRegistered(made)

    def attend(self, run: FakeRegistered) -> Events:
        self.asked.append(("attend", run.made.id))
        return self._watched()

    async def follow(self, access: Access, response_id: str, after: int | None) -> Events:
        self.asked.append(("follow", response_id, after))
        if response_id != ID:
            raise SmgError(ErrorKind.NOT_FOUND, "there is no such response")
        if after == 99:
            raise invalid("gone", "starting_after", "stream_expired")
        return self._watched()

    async def resume(self, access: Access, response_id: str, after: int) -> Events:
        events = await self.follow(access, response_id, after)
        self.asked[-1] = ("resume", response_id, after)
        return events

    async def retrieve(self, access: Access, response_id: str) -> bytes:
        self.asked.append(("retrieve", response_id))
        return b"{}"

    async def _watched(self) -> Events:
        try:
            async for told in self.tell():
                yield told
        finally:
            self.closed += 1


class Behind:
    """The history behind the surface."""

    def __init__(self, responses: FakeResponses) -> None:
        self.responses = responses
        self.store_timeout_s = 1.0
        self.context_headers: tuple[str, ...] = ()

    def __call__(self, generations: Generations) -> History:
        self.responses.generations = cast("FakeGenerations", generations)
        return cast("History", self)


def behind(tell: Tell, **more: Any) -> tuple[FakeResponses, Behind]:
    responses = FakeResponses(tell, **more)
    return responses, Behind(responses)


TOLD = Elsewhere().told
WHOLE = b"".join(map(frame, TOLD)) + b"data: [DONE]\n\n"


async def all_of_it() -> Events:
    for place in range(0, len(TOLD), 3):
        yield TOLD[place : place + 3]


async def stuck() -> Events:
    yield TOLD[:3]
    await asyncio.Event().wait()


async def silent() -> Events:
    await asyncio.Event().wait()
    yield TOLD


def lost() -> SmgError:
    return SmgError(ErrorKind.OVERLOADED, "the store is away", code="store_unavailable")


async def breaking() -> Events:
    yield TOLD[:3]
    raise lost()


async def post(served: Node, **body: Any) -> Response:
    return await ask(served.port, "POST", PATH, {"model": "m", "input": "hi", **body})


def line_of(served: Node) -> dict[str, Any]:
    line: dict[str, Any] = json.loads(served.access.lines[-1])
    return line


# ── Made ─────────────────────────────────────────────────────────────────────


async def test_in_the_background_the_object_is_answered_at_once() -> None:
    responses, history = behind(all_of_it)
    async with node(history=history) as served:
        headers = {"x-stainless-read-timeout": "5"}
        body = {"model": "m", "input": "hi", "background": True}
        made = await ask(served.port, "POST", PATH, body, headers)
        assert (made.status, made.json()) == (200, {"id": ID, "status": "queued"})
        assert made.headers["x-smg-history"] == "items=2/3"
        assert made.headers["x-smg-ignored-params"] == "seed"
        assert made.headers["x-smg-node"] == "node-a"
        assert responses.asked == [("register", "-", "")]
        # How long the client waits for this answer says nothing about how long the response may take.
        [context] = responses.contexts
        assert context.deadline_s - context.received_s > 60
        line = line_of(served)
        assert (line["status"], line["model"], line["path"]) == (200, "m", PATH)
        assert served.sample("smg_node_ignored_parameters_total", parameter="seed") == 1


async def test_in_the_background_and_streamed_it_is_followed_from_its_first_event() -> None:
    responses, history = behind(all_of_it)
    async with node(history=history) as served:
        made = await post(served, background=True, stream=True)
    assert (made.status, made.body) == (200, WHOLE)
    assert made.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert made.headers["x-smg-history"] == "items=2/3"
    assert responses.asked == [("register", "-", ""), ("follow", ID, None)]
    assert responses.closed == 1


async def test_in_the_foreground_with_grace_its_client_attends() -> None:
    responses, history = behind(all_of_it, grace=True)
    async with node(history=history) as served:
        made = await post(served, stream=True)
    assert made.body == WHOLE
    assert responses.asked == [("register", "-", ""), ("attend", ID)]


async def test_what_fails_before_its_first_event_is_an_error_with_its_own_status() -> None:
    failed = SmgError(ErrorKind.UPSTREAM_FAILED, "the engine died")
    responses, history = behind(all_of_it, grace=True, failure=failed)
    async with node(history=history) as served:
        made = await post(served, stream=True)
    assert (made.status, made.error()["message"]) == (502, "the engine died")
    assert responses.closed == 1


async def test_in_the_background_a_failure_is_told_and_not_answered() -> None:
    failed = SmgError(ErrorKind.UPSTREAM_FAILED, "the engine died")
    _, history = behind(all_of_it, failure=failed)
    async with node(history=history) as served:
        made = await post(served, background=True, stream=True)
    assert (made.status, made.body) == (200, WHOLE)


async def test_a_client_that_leaves_only_lets_go() -> None:
    responses, history = behind(stuck)
    async with node(history=history) as served, connect(served.port) as client:
        body = {"model": "m", "input": "hi", "background": True, "stream": True}
        await client.send("POST", PATH, json.dumps(body).encode())
        await client.head()
        assert await client.chunk() == b"".join(map(frame, TOLD[:3]))
        async with connect(served.port) as other:
            await other.send("GET", f"{PATH}/{ID}?stream=true")
            await other.head()
            await other.chunk()
            client.vanish()
            await until(lambda: responses.closed == 1)
            assert line_of(served)["status"] == 499
        await until(lambda: responses.closed == 2)


# ── Picked up again ──────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("query", "after"),
    [
        ("stream=true", None),
        ("stream=true&starting_after=0", 0),
        ("stream=1&starting_after=17&include_obfuscation=false", 17),
        ("starting_after=7&stream=true&include[]=reasoning.encrypted_content", 7),
    ],
)
async def test_a_stream_is_picked_up_after_any_number(query: str, after: int | None) -> None:
    responses, history = behind(all_of_it)
    async with node(history=history) as served:
        shown = await ask(served.port, "GET", f"{PATH}/{ID}?{query}")
        labels = {"route": f"{PATH}/{{id}}", "method": "GET", "status": "200"}
        assert served.sample("smg_node_http_requests_total", **labels) == 1
        assert "error" not in line_of(served)
    assert (shown.status, shown.body) == (200, WHOLE)
    assert shown.headers["x-smg-node"] == "node-a"
    assert shown.headers["openai-processing-ms"].isdigit()
    assert responses.asked == [("follow" if after is None else "resume", ID, after)]
    assert responses.closed == 1


@pytest.mark.parametrize("spelled", ["-1", "1.0", "", "x", "1e3", "+1", "%201", "0x1", "9" * 19])
async def test_a_number_that_is_none_is_refused(spelled: str) -> None:
    responses, history = behind(all_of_it)
    async with node(history=history) as served:
        refused = await ask(served.port, "GET", f"{PATH}/{ID}?stream=true&starting_after={spelled}")
    assert (refused.status, refused.error()["param"]) == (400, "starting_after")
    assert not responses.asked


@pytest.mark.parametrize("more", ["", "&stream=false"])
async def test_a_number_without_a_stream_has_no_effect_and_is_named(more: str) -> None:
    _, history = behind(all_of_it)
    async with node(history=history) as served:
        shown = await ask(served.port, "GET", f"{PATH}/{ID}?starting_after=3{more}")
    assert (shown.status, shown.headers["x-smg-ignored-params"]) == (200, "starting_after")


async def test_what_cannot_be_followed_has_its_own_status() -> None:
    _, history = behind(all_of_it)
    async with node(history=history) as served:
        gone = await ask(served.port, "GET", f"{PATH}/resp_2?stream=true")
        assert (gone.status, gone.error()["code"]) == (404, "not_found")
        expired = await ask(served.port, "GET", f"{PATH}/{ID}?stream=true&starting_after=99")
        assert (expired.status, expired.error()["code"]) == (400, "stream_expired")


async def test_a_head_request_is_not_answered_with_events() -> None:
    responses, history = behind(silent)
    async with node(history=history) as served:
        assert (await ask(served.port, "HEAD", f"{PATH}/{ID}?stream=true")).status == 200
    assert responses.asked == [("retrieve", ID)]


# ── Broken off ───────────────────────────────────────────────────────────────


async def test_a_stream_that_cannot_go_on_is_broken_off_and_never_ended() -> None:
    responses, history = behind(breaking)
    async with node(history=history) as served, connect(served.port) as client:
        await client.send("GET", f"{PATH}/{ID}?stream=true")
        await client.head()
        assert await client.chunk() == b"".join(map(frame, TOLD[:3]))
        assert await client.at_end()
        await until(lambda: served.access.lines)
        assert line_of(served)["error"] == "store_unavailable"
    assert responses.closed == 1


async def test_a_stream_that_has_not_begun_has_a_status_for_what_goes_wrong() -> None:
    async def at_once() -> Events:
        raise lost()
        yield TOLD

    _, history = behind(at_once)
    async with node(history=history) as served:
        shown = await ask(served.port, "GET", f"{PATH}/{ID}?stream=true")
    assert (shown.status, shown.error()["code"]) == (503, "store_unavailable")


@pytest.mark.parametrize("late", [False, True])
async def test_a_mistake_of_ours_is_an_error_or_breaks_the_stream_off(late: bool) -> None:
    async def mistaken() -> Events:
        if late:
            yield TOLD[:1]
        raise ValueError("oops")

    _, history = behind(mistaken)
    async with node(history=history) as served, connect(served.port) as client:
        await client.send("GET", f"{PATH}/{ID}?stream=true")
        if late:
            assert (await client.head())[0] == 200
            await client.chunk()
            assert await client.at_end()
        else:
            assert (await client.response()).status == 500


@pytest.mark.parametrize("tell", [stuck, silent])
async def test_a_node_that_shuts_down_lets_nobody_take_a_part_for_the_whole(tell: Tell) -> None:
    responses, history = behind(tell)
    async with node(history=history) as served, connect(served.port) as client:
        await client.send("GET", f"{PATH}/{ID}?stream=true")
        if tell is stuck:
            await client.head()
            await client.chunk()
        await until(lambda: responses.asked)
        served.server._app.inflight.cut()
        if tell is stuck:
            assert await client.at_end()
        else:
            answer = await client.response()
            assert (answer.status, answer.error()["code"]) == (503, "server_shutting_down")
        await until(lambda: served.access.lines)
        assert line_of(served)["error"] == "server_shutting_down"
        assert responses.closed == 1


# ── At the client's pace ─────────────────────────────────────────────────────


async def test_nothing_is_asked_for_before_the_client_has_taken_what_came_before() -> None:
    told = [one for one in Elsewhere([*block(0, "text", "x" * 50_000)]).told if "delta" in one.type]
    pulled = 0

    async def flood() -> Events:
        nonlocal pulled
        for _ in range(400):
            pulled += 1
            yield told

    _, history = behind(flood)
    async with (
        node(history=history, slow_client_bytes=100_000) as served,
        connect(served.port, 4096) as client,
    ):
        await client.send("GET", f"{PATH}/{ID}?stream=true")
        await client.head()
        await client.chunk()
        before = -1
        while before != pulled:  # until it stands still
            before = pulled
            await asyncio.sleep(0.2)
        assert pulled < 300
        size = 0
        while part := await client.chunk():
            size += len(part)
        assert size > 400 * 50_000


async def test_who_waits_for_the_next_event_is_kept_awake() -> None:
    _, history = behind(silent)
    async with (
        node(history=history, commit_after_s=0.03, keepalive_s=0.03) as served,
        connect(served.port) as client,
    ):
        await client.send("GET", f"{PATH}/{ID}?stream=true")
        assert (await client.head())[0] == 200
        assert [await client.chunk() for _ in range(3)] == [b": ping\n\n"] * 3
