"""Responses over WebSocket, by the official client: one node of one process, and one of several."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from openai import AsyncOpenAI, OpenAI
from openai.lib.responses_websocket import (
    AsyncResponsesWebSocketSession,
    ResponsesWebSocketError,
    ResponsesWebSocketLimits,
)

from support.processes.node import RunningNode, running_node
from support.processes.simulated_engines import SAYS, running_simulated

pytestmark = pytest.mark.conformance

LANES = 16
LIMITS = ResponsesWebSocketLimits(
    max_lanes=LANES + 1,
    max_events_per_lane=1_000,
    max_events=10_000,
    max_bytes_per_lane=2**22,
    max_bytes=2**25,
)
PLACES = [{"type": "message", "role": "user", "content": "Say it."}]


@pytest.fixture(scope="module", params=[1, 2], ids=["one process", "several processes"])
def node(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningNode]:
    scratch = tmp_path_factory.mktemp("sockets")
    flags = ("--processes", str(request.param))
    with running_simulated(scratch, "--model", "sim") as engine:
        workers = [f"grpc://{engine.address}"]
        with running_node(scratch, workers=workers, flags=flags) as running:
            yield running
            assert "Traceback" not in running.process.said()


def asked(**more: Any) -> Any:
    return {"type": "response.create", "model": "sim", "input": PLACES, **more}


async def test_responses_are_chained_on_one_connection(async_client: AsyncOpenAI) -> None:
    connection: Any
    async with async_client.responses.connect() as connection:
        previous = None
        for store in (True, False, False):
            await connection.response.create(
                model="sim", input="Say it.", store=store, previous_response_id=previous
            )
            text = ""
            async for event in connection:
                if event.type == "response.output_text.delta":
                    text += event.delta
                if event.type == "response.completed":
                    break
                assert event.type != "error", event
            assert text == event.response.output_text == SAYS
            assert event.response.previous_response_id == previous
            previous = event.response.id


# The client's own way of connecting, which the library beneath it gives up.
@pytest.mark.filterwarnings("ignore:connect:DeprecationWarning")
def test_the_synchronous_client_does_the_same(client: OpenAI) -> None:
    connection: Any
    with client.responses.connect() as connection:
        connection.response.create(model="sim", input="Say it.")
        kinds = []
        for event in connection:
            kinds.append(event.type)
            if event.type == "response.completed":
                break
        assert kinds[0] == "response.created"
        assert event.response.output_text == SAYS


async def test_lanes_answer_beside_each_other_and_an_error_is_of_one(
    async_client: AsyncOpenAI,
) -> None:
    async with (
        async_client.responses.connect() as connection,
        AsyncResponsesWebSocketSession(connection, limits=LIMITS) as session,
    ):
        lanes = [session.lane(f"lane-{at}") for at in range(LANES)]
        for at, lane in enumerate(lanes):
            await lane.send(asked(temperature=9 if at == 3 else 0))
        told = await asyncio.gather(
            *(lane.get_final_response() for lane in lanes), return_exceptions=True
        )
        error = told.pop(3)
        assert isinstance(error, ResponsesWebSocketError)
        assert "temperature" in str(error.event)
        for response in told:
            assert not isinstance(response, BaseException)
            assert response.output_text == SAYS
        # The lane goes on.
        await lanes[3].send(asked())
        assert (await lanes[3].get_final_response()).output_text == SAYS


async def test_steering_is_refused_in_the_lane_it_is_for(async_client: AsyncOpenAI) -> None:
    async with (
        async_client.responses.connect() as connection,
        AsyncResponsesWebSocketSession(connection, limits=LIMITS) as session,
    ):
        lane = session.lane("a")
        await lane.send(asked())
        made = await lane.recv()
        assert made.type == "response.created"
        steer: Any = {
            "type": "response.steer",
            "previous_response_id": made.response.id,
            "input": [{"type": "message", "role": "user", "content": "No."}],
        }
        await lane.send(steer)
        kinds = []
        while "response.completed" not in kinds:
            kinds.append((await lane.recv()).type)
        if "response.steer.failed" not in kinds:
            # It was over before the node heard of it.
            assert (await session.default.recv()).type == "response.steer.failed"


async def test_a_prompt_is_prepared_and_continued(async_client: AsyncOpenAI) -> None:
    connection: Any
    async with async_client.responses.connect() as connection:
        await connection.send({**asked(), "generate": False})
        assert (await connection.recv()).type == "response.created"
        ready = await connection.recv()
        assert ready.type == "response.completed"
        assert ready.response.output == []
        await connection.response.create(
            model="sim", input="Go on.", previous_response_id=ready.response.id
        )
        async for event in connection:
            if event.type == "response.completed":
                break
        assert event.response.output_text == SAYS
