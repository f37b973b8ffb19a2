"""Realtime sessions by the official client, in front of simulated engines: one process of a node, several, engines that die."""

import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest
from openai import AsyncOpenAI, OpenAI
from openai.types.realtime import RealtimeServerEvent
from pydantic import TypeAdapter

from support.http.chat_client import chat, content_of, port_of, say
from support.http.raw_http import ask
from support.processes.node import RunningNode, running_node
from support.processes.simulated_engines import SAYS, Simulated, running_simulated

pytestmark = pytest.mark.conformance

READ: Final = TypeAdapter[Any](RealtimeServerEvent)
"""How the client's own types read events, without its leniency."""
QUICK: Final = (
    *("--workers.probe-interval-s", "0.5", "--workers.retry-s", "0.2"),
    *("--routing.policy", "round_robin"),
)
WAIT_S: Final = 60.0
BREAKS: Final = "error:after=5,status=INTERNAL,worker=1,request=1"


@pytest.fixture(scope="module", params=[1, 2], ids=["one process", "several processes"])
def node(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningNode]:
    scratch = tmp_path_factory.mktemp("realtime")
    flags = ("--processes", str(request.param), *QUICK)
    with running_simulated(scratch, "--model", "sim", workers=2, faults=[BREAKS]) as engine:
        workers = [f"grpc://{address}" for address in engine.addresses]
        with running_node(scratch, workers=workers, flags=flags) as running:
            running.process.wait_until(lambda: ready_everywhere(running), "ready", WAIT_S)
            yield running
            assert "Traceback" not in running.process.said()


def ready_everywhere(node: RunningNode) -> bool:
    """Return whether the node is ready, whichever of its processes is asked."""
    return all(node.status("/readiness") == 200 for _ in range(12))


def message(text: str) -> Any:
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


async def asked(connection: Any, text: str = "Say it.", **response: Any) -> None:
    await connection.conversation.item.create(item=message(text))
    await connection.response.create(response=response)


async def told(connection: Any, last: str) -> list[Any]:
    """Return the events up to one of this type; every one is as the client's types have it."""
    events: list[Any] = []
    while not events or events[-1].type != last:
        event = await connection.recv()
        READ.validate_json(event.to_json())
        events.append(event)
    return events


def text_in(events: list[Any]) -> str:
    return "".join(e.delta for e in events if e.type == "response.output_text.delta")


async def test_a_session_is_talked_with_and_an_engine_that_breaks_is_not_noticed(
    async_client: AsyncOpenAI,
) -> None:
    async with async_client.realtime.connect(model="sim") as connection:
        await connection.session.update(session={"type": "realtime", "instructions": "Be brief."})
        await asked(connection)
        events = await told(connection, "response.done")
        assert [event.type for event in events[:3]] == [
            "session.created",
            "conversation.created",
            "session.updated",
        ]
        assert text_in(events) == SAYS
        for _ in range(3):
            await asked(connection)
            events = await told(connection, "response.done")
            kinds = [event.type for event in events]
            assert "error" not in kinds
            assert kinds.count("response.created") == 1
            assert text_in(events) == SAYS
            done = events[-1].response
            assert done.status == "completed"
            assert done.output[0].content[0].text == SAYS


# The client's own way of connecting, which the library beneath it gives up.
@pytest.mark.filterwarnings("ignore:connect:DeprecationWarning")
def test_the_synchronous_client_does_the_same(client: OpenAI) -> None:
    connection: Any
    with client.realtime.connect(model="sim") as connection:
        connection.conversation.item.create(item=message("hi"))
        connection.response.create()
        text = ""
        for event in connection:
            if event.type == "response.output_text.delta":
                text += event.delta
            if event.type == "response.done":
                break
        assert text == SAYS


async def test_a_refused_update_stops_answers_until_an_accepted_one(
    async_client: AsyncOpenAI,
) -> None:
    connection: Any
    async with async_client.realtime.connect(model="sim") as connection:
        await told(connection, "conversation.created")
        voice = {"type": "realtime", "output_modalities": ["audio"], "instructions": "Talk."}
        await connection.send({"type": "session.update", "event_id": "u-1", "session": voice})
        [refused] = await told(connection, "error")
        assert refused.error.event_id == "u-1"
        assert refused.error.param == "session.output_modalities"
        await connection.send({"type": "response.create", "event_id": "c-1"})
        [stopped] = await told(connection, "error")
        assert (stopped.error.code, stopped.error.event_id) == ("session_update_refused", "c-1")
        other = {"type": "realtime", "model": "gpt-realtime", "output_modalities": ["text"]}
        await connection.session.update(session={**other, "instructions": "Write."})
        [updated] = await told(connection, "session.updated")
        assert updated.session.model == "sim"
        await asked(connection)
        assert text_in(await told(connection, "response.done")) == SAYS


async def test_a_response_is_cancelled_in_one_packet_and_the_next_works(
    async_client: AsyncOpenAI,
) -> None:
    connection: Any
    async with async_client.realtime.connect(model="sim") as connection:
        await told(connection, "conversation.created")
        await connection.send({"type": "response.cancel", "event_id": "idle"})
        [idle] = await told(connection, "error")
        assert (idle.error.code, idle.error.event_id) == ("response_cancel_not_active", "idle")
        await asked(connection)
        await connection.response.cancel()
        done = (await told(connection, "response.done"))[-1].response
        assert (done.status, done.status_details.reason) == ("cancelled", "client_cancelled")
        await asked(connection)
        assert text_in(await told(connection, "response.done")) == SAYS


async def test_eight_answers_beside_the_conversation_are_told_apart(
    async_client: AsyncOpenAI,
) -> None:
    connection: Any
    async with async_client.realtime.connect(model="sim") as connection:
        await told(connection, "conversation.created")
        await asked(connection)
        for at in range(8):
            wish = {"conversation": "none", "metadata": {"at": str(at)}, "input": [message("x")]}
            await connection.response.create(response=wish)
        done = [(await told(connection, "response.done"))[-1].response for _ in range(9)]
        beside = [one for one in done if one.metadata]
        assert sorted(one.metadata["at"] for one in beside) == [str(at) for at in range(8)]
        assert {one.conversation_id for one in beside} == {None}
        assert {one.output[0].content[0].text for one in done} == {SAYS}


@pytest.fixture(scope="module")
def pair(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[RunningNode, list[Simulated]]]:
    """Two engines that talk for long, and a node in front of them."""
    with ExitStack() as stack:
        engines = [
            stack.enter_context(running_simulated(folder, *LONG))
            for folder in (tmp_path_factory.mktemp("one"), tmp_path_factory.mktemp("two"))
        ]
        urls = [f"grpc://{engine.address}" for engine in engines]
        folder: Path = tmp_path_factory.mktemp("node")
        yield stack.enter_context(running_node(folder, workers=urls, flags=QUICK)), engines


LONG: Final = ("--model", "sim", "--script", "endless", "--itl-ms", "20")
TOKENS: Final = 150


async def test_an_engine_is_killed_and_its_answer_is_the_one_it_would_have_been(
    pair: tuple[RunningNode, list[Simulated]],
) -> None:
    node, engines = pair
    port = port_of(node.url)
    right = content_of(await say(port, chat("sim", max_tokens=TOKENS)))

    async def busy() -> list[str]:
        listed = (await ask(port, "GET", "/workers")).json()["workers"]
        return [one["url"] for one in listed if one["inflight"]]

    connection: Any
    async with (
        AsyncOpenAI(base_url=f"{node.url}/v1", api_key="none", max_retries=0) as client,
        client.realtime.connect(model="sim") as connection,
    ):
        await asked(connection, max_output_tokens=TOKENS)
        events = await told(connection, "response.output_text.delta")
        [url] = await busy()
        victim = next(engine for engine in engines if engine.address in url)
        victim.process.signal(signal.SIGKILL)
        events += await told(connection, "response.done")
    kinds = [event.type for event in events]
    assert "error" not in kinds
    assert kinds.count("response.created") == 1
    assert text_in(events) == right
    done = events[-1].response
    assert (done.status, done.status_details.reason) == ("incomplete", "max_output_tokens")
    assert done.usage.output_tokens == TOKENS
    explained = (await ask(port, "GET", f"/v1/cluster/explain/{done.id}")).json()
    steps = explained["journeys"][0]["steps"]
    assert [step.get("why") or "broke" for step in steps] == ["first", "broke", "continue"]
