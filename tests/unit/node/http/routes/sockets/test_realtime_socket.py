"""Realtime sessions over a socket, with generations that follow a script."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed, InvalidStatus

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.events import Event, Fail
from smg_node.core.generation.request import ChatPrompt
from smg_node.http.routes.sockets import realtime_socket
from smg_node.http.routes.sockets.rate_limits import rate_limits_of
from smg_node.http.routes.sockets.realtime_socket import RealtimeRules
from support.http import http_node
from support.http.http_node import FakeRun, for_ever, hello, node
from support.http.raw_http import ask, until
from support.http.socket_client import heard, say, socket

pytestmark = pytest.mark.usefixtures("either_server")

PATH = "/v1/realtime?model=m"
KEYS = "/v1/cluster/keys"


async def opened(client: ClientConnection) -> dict[str, Any]:
    """Return the session that a new socket is told of."""
    first, second = await heard(client), await heard(client)
    assert (first["type"], second["type"]) == ("session.created", "conversation.created")
    session: dict[str, Any] = first["session"]
    return session


async def asked(client: ClientConnection, text: str = "hi", **response: Any) -> None:
    """Say something and ask for an answer, in one breath."""
    part = {"type": "input_text", "text": text}
    item = {"type": "message", "role": "user", "content": [part]}
    await say(client, type="conversation.item.create", item=item)
    await say(client, type="response.create", response=response)


async def until_done(client: ClientConnection) -> list[dict[str, Any]]:
    """Return the events up to the end of an answer, or an error."""
    events = [await heard(client)]
    while events[-1]["type"] not in ("response.done", "error"):
        events.append(await heard(client))
    return events


def ruled(monkeypatch: pytest.MonkeyPatch, **rules: Any) -> None:
    """Have sessions live by these rules."""
    usual = realtime_socket.RealtimeSocketRoutes.__init__
    monkeypatch.setattr(usual, "__defaults__", (RealtimeRules(**rules),))


async def test_a_session_is_talked_with_turn_by_turn() -> None:
    async with node() as served, socket(served.port, PATH) as client:
        # Before anything was read.
        await say(
            client, type="session.update", session={"type": "realtime", "instructions": "Be."}
        )
        await asked(client)
        session = await opened(client)
        assert (session["model"], session["output_modalities"]) == ("m", ["text"])
        assert (await heard(client))["session"]["instructions"] == "Be."
        events = await until_done(client)
        deltas = [e["delta"] for e in events if e["type"] == "response.output_text.delta"]
        assert "".join(deltas) == "Hello world"
        response = events[-1]["response"]
        assert (response["status"], response["usage"]["output_tokens"]) == ("completed", 2)
        await asked(client, "more")
        await until_done(client)
        first, second = served.generations.runs
        assert first.dialect == "realtime"
        assert first.request.routing_key == session["id"]
        [prompt] = second.request.prompts
        assert isinstance(prompt, ChatPrompt)
        assert [turn.role for turn in prompt.turns] == ["system", "user", "assistant", "user"]
        # Each answer is a request of its own, and goes by its id to whoever asks what became of it.
        assert first.context.request_id == response["id"] != second.context.request_id
        assert len({run.context.token for run in served.generations.runs}) == 2
    assert [run.left for run in served.generations.runs] == [1, 1]


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/v1/realtime", 400, "missing_required_parameter"),
        ("/v1/realtime?model=", 400, "missing_required_parameter"),
        ("/v1/realtime?model=other", 404, "model_not_found"),
        ("/v1/realtime?call_id=rtc_1", 501, "not_implemented"),
        ("/v1/realtime?intent=transcription", 501, "not_implemented"),
        ("/v1/realtime?model=m&session_id=sess_1", 404, "session_not_found"),
    ],
)
async def test_what_cannot_be_is_refused_before_there_is_a_socket(
    path: str, status: int, code: str
) -> None:
    async with node() as served:
        with pytest.raises(InvalidStatus) as refused:
            async with socket(served.port, path):
                pass
        assert refused.value.response.status_code == status
        assert refused.value.response.headers["x-smg-error-code"] == code


async def test_without_an_upgrade_it_says_what_it_is() -> None:
    async with node() as served:
        answer = await ask(served.port, "GET", PATH)
        assert (answer.status, answer.headers["upgrade"]) == (426, "websocket")


async def test_there_are_not_more_sessions_than_there_may_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ruled(monkeypatch, sessions_max=1)
    async with node() as served:
        async with socket(served.port, PATH):
            assert served.sample("smg_node_http_sockets", route="/v1/realtime") == 1
            with pytest.raises(InvalidStatus) as refused:
                async with socket(served.port, PATH):
                    pass
            assert refused.value.response.status_code == 429
        await until(lambda: len(served.access.lines) == 2)
        assert served.sample("smg_node_http_sockets", route="/v1/realtime") == 0
        async with socket(served.port, PATH) as client:
            await opened(client)


async def test_an_answer_that_is_cancelled_at_once_leaves_room_for_the_next() -> None:
    async with node(for_ever) as served, socket(served.port, PATH) as client:
        await opened(client)
        await say(client, type="response.cancel", event_id="nothing")
        idle = await heard(client)
        assert idle["error"]["code"] == "response_cancel_not_active"
        assert idle["error"]["event_id"] == "nothing"
        await asked(client)
        await say(client, type="response.create", event_id="busy")
        await say(client, type="response.cancel")
        told = await until_done(client)
        assert told[-1]["error"]["code"] == "conversation_already_has_active_response"
        assert told[-1]["error"]["event_id"] == "busy"
        assert (await until_done(client))[-1]["response"]["status"] == "cancelled"
        for run in served.generations.runs:
            await run.closed.wait()
        served.generations.script = hello
        await asked(client)
        assert (await until_done(client))[-1]["response"]["status"] == "completed"


async def test_answers_beside_the_conversation_do_not_wait_for_it() -> None:
    async with node(for_ever) as served, socket(served.port, PATH) as client:
        await opened(client)
        await asked(client)
        await until(lambda: served.generations.runs)
        served.generations.script = hello
        for name in ("a", "b"):
            await say(
                client,
                type="response.create",
                response={"conversation": "none", "metadata": {"name": name}, "input": []},
            )
        done = [(await until_done(client))[-1]["response"] for _ in range(2)]
        assert sorted(response["metadata"]["name"] for response in done) == ["a", "b"]
        assert {response["conversation_id"] for response in done} == {None}


async def test_what_refuses_a_generation_is_an_error_that_names_its_event() -> None:
    async def refused(run: FakeRun) -> AsyncIterator[Sequence[Event]]:
        yield [Fail(SmgError(ErrorKind.RATE_LIMITED, "no more", code="rate_limit_exceeded"))]

    async with node(refused) as served, socket(served.port, PATH) as client:
        await opened(client)
        await say(client, type="response.create", event_id="e-1")
        told = await until_done(client)
        # The script says it after the run was admitted, so there is a response that failed.
        assert told[-1]["response"]["status"] == "failed"
        assert told[-1]["response"]["status_details"]["error"]["code"] == "rate_limit_exceeded"


async def test_limits_refuse_before_there_is_a_response(monkeypatch: pytest.MonkeyPatch) -> None:
    async def enter(_run: FakeRun) -> None:
        raise SmgError(ErrorKind.RATE_LIMITED, "no more", code="rate_limit_exceeded")

    monkeypatch.setattr(FakeRun, "enter", enter)
    async with node() as served, socket(served.port, PATH) as client:
        await opened(client)
        await say(client, type="response.create", event_id="e-1")
        told = await heard(client)
        assert (told["error"]["code"], told["error"]["event_id"]) == ("rate_limit_exceeded", "e-1")


async def test_a_mistake_of_ours_fails_one_answer_only() -> None:
    async def breaks(run: FakeRun) -> AsyncIterator[Sequence[Event]]:
        raise ValueError("a mistake")
        yield ()

    async with node(breaks) as served, socket(served.port, PATH) as client:
        await opened(client)
        await asked(client)
        told = await until_done(client)
        assert "a mistake" not in json.dumps(told)
        assert told[-1]["response"]["status"] == "failed"
        served.generations.script = hello
        await asked(client)
        assert (await until_done(client))[-1]["response"]["status"] == "completed"


async def test_what_is_no_text_is_told_and_the_session_goes_on() -> None:
    async with node() as served, socket(served.port, PATH) as client:
        await opened(client)
        for said in (b"sound", "no json", "[]", '{"type":"other"}'):
            await client.send(said)
            assert (await heard(client))["type"] == "error"
        await asked(client)
        assert (await until_done(client))[-1]["response"]["status"] == "completed"


async def test_a_client_that_leaves_ends_its_answers() -> None:
    async with node(for_ever) as served:
        async with socket(served.port, PATH) as client:
            await asked(client)
            await until(lambda: served.generations.runs)
            client.transport.abort()
        [run] = served.generations.runs
        await run.closed.wait()
        await until(lambda: served.access.lines)
        line = json.loads(served.access.lines[-1])
        assert (line["status"], line["model"]) == (101, "m")


async def test_a_node_that_leaves_ends_sessions_after_their_answers() -> None:
    go_on = asyncio.Event()

    async def waits(run: FakeRun) -> AsyncIterator[Sequence[Event]]:
        await go_on.wait()
        async for batch in hello(run):
            yield batch

    async with (
        node(waits) as served,
        socket(served.port, PATH) as idle,
        socket(served.port, PATH) as client,
        asyncio.TaskGroup() as group,
    ):
        await opened(client)
        await asked(client)
        await until(lambda: served.generations.runs)
        draining = group.create_task(served.server.drain())
        await opened(idle)
        with pytest.raises(ConnectionClosed):
            await idle.recv()
        assert idle.close_code == 1012
        assert not draining.done(), "it waits for the answer"
        await say(
            client, type="response.create", event_id="late", response={"conversation": "none"}
        )
        events = await until_done(client)
        assert events[-1]["error"]["event_id"] == "late"
        go_on.set()
        assert (await until_done(client))[-1]["response"]["status"] == "completed"
        with pytest.raises(ConnectionClosed):
            await client.recv()
        assert client.close_code == 1012


async def test_a_node_that_waits_no_longer_says_so() -> None:
    async with node(for_ever, grace_s=0.1) as served, socket(served.port, PATH) as client:
        await asked(client)
        await until(lambda: served.generations.runs)
        await served.server.drain()
        await served.server.stop()
        with pytest.raises(ConnectionClosed):
            await until_done(client)
        # The framework closes its connections without leaving room for a word.
        assert client.close_code == (1006 if str(http_node.SERVER) == "aiohttp" else 1012)
        await served.generations.runs[0].closed.wait()


async def test_a_session_ends_when_it_is_idle_for_too_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ruled(monkeypatch, idle_max_s=0)
    async with node() as served, socket(served.port, PATH) as client:
        await opened(client)
        assert (await heard(client))["error"]["code"] == "session_expired"
        with pytest.raises(ConnectionClosed):
            await client.recv()
        assert client.close_code == 1001


async def test_a_revoked_key_ends_its_session_at_the_next_answer() -> None:
    async with node() as served:
        admin = (await ask(served.port, "POST", KEYS, {"role": "admin"})).json()["key"]
        bearer = {"authorization": f"Bearer {admin}"}
        made = (await ask(served.port, "POST", KEYS, {"tenant": "acme"}, bearer)).json()
        offers = ["realtime", f"openai-insecure-api-key.{made['key']}"]
        async with socket(served.port, PATH, subprotocols=offers) as client:
            await opened(client)
            await asked(client)
            assert (await until_done(client))[-1]["response"]["status"] == "completed"
            assert served.generations.runs[0].context.tenant == "acme"
            gone = await ask(served.port, "DELETE", f"{KEYS}/{made['id']}", {}, bearer)
            assert gone.status == 200
            await say(client, type="response.create", event_id="e-1")
            told = await heard(client)
            assert told["error"]["event_id"] == "e-1"
            with pytest.raises(ConnectionClosed):
                await client.recv()
            assert client.close_code == 1008
        assert len(served.generations.runs) == 1


def test_limits_are_told_by_their_headers() -> None:
    told = rate_limits_of(
        {
            "x-ratelimit-limit-requests": "10",
            "x-ratelimit-remaining-requests": "9",
            "x-ratelimit-reset-requests": "1m30s",
            "x-ratelimit-limit-tokens": "100",
            "x-ratelimit-remaining-tokens": "0",
            "x-ratelimit-reset-tokens": "250ms",
        }
    )
    shown = [limit.shown() for limit in told]
    assert [
        (row["name"], row["limit"], row["remaining"], row["reset_seconds"]) for row in shown
    ] == [
        ("requests", 10, 9, 90.0),
        ("tokens", 100, 0, 0.25),
    ]
    assert rate_limits_of({}) == []
