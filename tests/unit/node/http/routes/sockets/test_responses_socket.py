import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
from websockets.exceptions import ConnectionClosed

from smg_node.core.generation.events import Event
from smg_node.http.forwarding.control_proxy import Forwarding, Trusting
from support.history.history_world import calling, counting, failing, failing_late
from support.http.history_routes import Here, get
from support.http.http_node import FakeRun, for_ever, hello, node
from support.http.raw_http import ask, until
from support.http.socket_client import create, heard, say, socket, text_of, turn

KEYS = "/v1/cluster/keys"
pytestmark = pytest.mark.usefixtures("either_server")


async def test_responses_are_made_one_after_the_other_and_continued() -> None:
    async with node(counting, history=Here()) as served:
        async with socket(served.port) as client:
            # As one official client does, with fields that mean nothing here.
            await create(client, input="hi", stream=True, background=False, metadata=None)
            first = await turn(client)
            assert first[0]["type"] == "response.created"
            assert first[-1]["type"] == "response.completed"
            assert [event["sequence_number"] for event in first] == list(range(len(first)))
            assert not any("stream_id" in event for event in first)
            assert text_of(first) == "turns 1"
            made = first[-1]["response"]
            assert (await get(served, f"/v1/responses/{made['id']}")).json() == made
            await create(client, input="more", previous_response_id=made["id"])
            assert text_of(await turn(client)) == "turns 3"
        asked = [json.loads(line) for line in served.access.lines]
        posts = [line for line in asked if line["method"] == "POST"]
        # Each is a request like any other, by an id of its own.
        assert [line["status"] for line in posts] == [200, 200]
        assert len({line["request_id"] for line in asked}) == len(asked)
        await until(lambda: len(served.access.lines) == 4)
        assert json.loads(served.access.lines[-1])["status"] == 101


async def test_lanes_do_not_wait_for_each_other_and_each_event_names_its_own() -> None:
    go_on = asyncio.Event()

    async def waits(run: FakeRun) -> AsyncIterator[Sequence[Event]]:
        if run.request.routing_key != "x" and len(served.generations.runs) == 1:
            await go_on.wait()
        async for batch in hello(run):
            yield batch

    async with node(waits, history=Here()) as served, socket(served.port) as client:
        await create(client, input="slow", stream_id="a.1")
        await until(lambda: served.generations.runs)
        await create(client, input="next", stream_id="a.1")
        await create(client, input="quick", stream_id="b")
        await create(client, input="quick")
        others = [*(await turn(client)), *(await turn(client))]
        ended = [event.get("stream_id") for event in others if ends_well(event)]
        assert sorted(ended, key=str) == [None, "b"]
        go_on.set()
        late = [*(await turn(client)), *(await turn(client))]
        assert {event["stream_id"] for event in late} == {"a.1"}
        assert [event["type"] for event in late if ends_well(event)] == ["response.completed"] * 2


def ends_well(event: dict[str, object]) -> bool:
    return event["type"] == "response.completed"


@pytest.mark.parametrize(
    ("said", "code", "param", "lane"),
    [
        ("[1]", "invalid_payload", None, None),
        ("{", "invalid_payload", None, None),
        (b"{}", "invalid_payload", None, None),
        ("{}", "missing_required_parameter", "type", None),
        ('{"type":"response.make","stream_id":"x"}', "unknown_event", "type", "x"),
        ('{"type":"response.create","stream_id":"a b"}', "invalid_value", "stream_id", None),
        ('{"type":"response.create","stream_id":"x","stream":false}', None, "stream", "x"),
        ('{"type":"response.create","background":true}', None, "background", None),
        ('{"type":"response.create","generate":1}', "invalid_type", "generate", None),
        # Numbers that are none, and what nests deeper than can be read.
        ('{"type":1e999}', "missing_required_parameter", "type", None),
        ('{"type":"response.create","stream_id":1e999}', "invalid_value", "stream_id", None),
        ('{"type":"response.create","stream":1e999}', "invalid_type", "stream", None),
        ('{"type":"x","a":' + "[" * 5_000 + "]" * 5_000 + "}", "invalid_payload", None, None),
        ('{"type":"response.create","stream_id":"x","model":"m"}', None, "input", "x"),
    ],
)
async def test_what_cannot_be_is_told_and_the_socket_goes_on(
    said: str | bytes, code: str | None, param: str | None, lane: str | None
) -> None:
    async with node(history=Here()) as served, socket(served.port) as client:
        await client.send(said)
        told = await heard(client)
        assert (told["type"], told["status"], told.get("stream_id")) == ("error", 400, lane)
        assert told["error"]["param"] == param
        assert code is None or told["error"]["code"] == code
        await create(client, input="hi", stream_id="x")
        assert text_of(await turn(client)) == "Hello world"


async def test_an_answer_that_fails_early_is_an_error_with_the_headers_of_its_status() -> None:
    async with node(failing, history=Here()) as served, socket(served.port) as client:
        await create(client, input="hi", stream_id="x")
        [told] = await turn(client)
        assert (told["status"], told["stream_id"]) == (502, "x")
        assert told["error"]["message"] == "the engine died"
        assert told["error"]["headers"]["x-request-id"].startswith("req_")


async def test_an_answer_that_fails_late_is_a_failed_response() -> None:
    async with node(failing_late, history=Here()) as served, socket(served.port) as client:
        await create(client, input="hi")
        assert (await turn(client))[-1]["type"] == "response.failed"


async def test_a_response_that_is_not_stored_is_continued_on_its_socket_only() -> None:
    async with node(counting, history=Here()) as served:
        async with socket(served.port) as client:
            await create(client, input="hi", store=False)
            first = (await turn(client))[-1]["response"]
            await create(client, input="more", store=False, previous_response_id=first["id"])
            events = await turn(client)
            assert text_of(events) == "turns 3"
            for event in (events[0], events[-1]):
                assert event["response"]["previous_response_id"] == first["id"]
            second = events[-1]["response"]
            # The lane's last one is another now.
            await create(client, input="again", previous_response_id=first["id"])
            [gone] = await turn(client)
            assert gone["error"]["code"] == "previous_response_not_found"
            await create(client, input="x", store=False, previous_response_id=second["id"])
            third = await turn(client)
            assert text_of(third) == "turns 5"
        async with socket(served.port) as client:
            known = third[-1]["response"]["id"]
            await create(client, input="again", previous_response_id=known)
            [gone] = await turn(client)
            assert gone["error"]["code"] == "previous_response_not_found"


async def test_a_continuation_that_fails_forgets_what_it_went_on_with() -> None:
    async with node(counting, history=Here()) as served, socket(served.port) as client:
        await create(client, input="hi", store=False)
        first = (await turn(client))[-1]["response"]
        await create(client, input="x", previous_response_id=first["id"], temperature=9)
        [told] = await turn(client)
        assert told["error"]["param"] == "temperature"
        await create(client, input="x", previous_response_id=first["id"])
        [told] = await turn(client)
        assert told["error"]["code"] == "previous_response_not_found"


async def test_calls_of_tools_and_thoughts_are_continued_without_a_store() -> None:
    async with node(calling, history=Here()) as served, socket(served.port) as client:
        await create(client, input="Weather?", store=False)
        first = (await turn(client))[-1]["response"]
        call = next(item for item in first["output"] if item["type"] == "function_call")
        done = {"type": "function_call_output", "call_id": call["call_id"], "output": "sun"}
        await create(client, input=[done], store=False, previous_response_id=first["id"])
        assert (await turn(client))[-1]["type"] == "response.completed"


@pytest.mark.parametrize("how", [{"generate": False}, {"prompt_cache_options": {"prewarm": True}}])
async def test_a_prompt_is_prepared_without_an_answer_and_continued(
    how: dict[str, object],
) -> None:
    async with node(counting, history=Here()) as served, socket(served.port) as client:
        await create(client, input="hi", instructions="Be.", max_output_tokens=99, **how)
        events = await turn(client)
        assert [event["type"] for event in events] == ["response.created", "response.completed"]
        ready = events[-1]["response"]
        assert (ready["status"], ready["output"], ready["max_output_tokens"]) == (
            *("completed", []),
            99,
        )
        [run] = served.generations.runs
        assert run.request.sampling.max_tokens == 1
        await create(client, input="more", previous_response_id=ready["id"])
        assert text_of(await turn(client)) == "turns 2"


async def test_what_cannot_be_steered_is_told_as_a_failed_steering() -> None:
    async with node(for_ever, history=Here()) as served, socket(served.port) as client:
        await create(client, input="hi", stream_id="x")
        made = (await heard(client))["response"]["id"]
        await say(
            client,
            type="response.steer",
            previous_response_id=made,
            input=[{"role": "user", "content": "stop"}],
        )
        while (told := await heard(client))["type"] != "response.steer.failed":
            assert told["type"] != "error"
        assert told["stream_id"] == "x"
        assert told["steer"]["previous_response_id"] == made
        assert told["error"]["code"] == "steering_not_supported"


async def test_a_client_that_leaves_ends_what_is_made_for_it() -> None:
    async with node(for_ever, history=Here()) as served:
        async with socket(served.port) as client:
            await create(client, input="hi", stream_id="a", store=False)
            await create(client, input="hi", stream_id="b", store=False)
            await heard(client)
            await until(lambda: len(served.generations.runs) == 2)
            # Without a close, as a process that dies.
            client.transport.abort()
        for run in served.generations.runs:
            await run.closed.wait()
        await until(lambda: len(served.access.lines) == 3)
        lines = [json.loads(line) for line in served.access.lines]
        assert sorted(line["status"] for line in lines) == [101, 499, 499]


async def test_a_client_that_closes_is_answered_with_its_code() -> None:
    async with node(for_ever, history=Here()) as served:
        async with socket(served.port) as client:
            await create(client, input="hi", store=False)
            await heard(client)
            await client.close(4_321, "enough")
        assert client.close_code == 4_321
        [run] = served.generations.runs
        await run.closed.wait()


async def test_a_node_that_leaves_finishes_what_it_makes_and_says_so() -> None:
    go_on = asyncio.Event()

    async def waits(run: FakeRun) -> AsyncIterator[Sequence[Event]]:
        await go_on.wait()
        async for batch in hello(run):
            yield batch

    async with (
        node(waits, history=Here()) as served,
        socket(served.port) as client,
        asyncio.TaskGroup() as group,
    ):
        await create(client, input="hi")
        await until(lambda: served.generations.runs)
        draining = group.create_task(served.server.drain())
        await until(lambda: served.server.phase.name == "CLOSING")
        assert not draining.done()
        go_on.set()
        assert text_of(await turn(client)) == "Hello world"
        with pytest.raises(ConnectionClosed):
            await client.recv()
        assert client.close_code == 1012


async def test_a_node_that_waits_no_longer_says_what_became_of_a_response() -> None:
    async with (
        node(for_ever, history=Here(), grace_s=0.1) as served,
        socket(served.port) as client,
    ):
        await create(client, input="hi", store=False)
        await until(lambda: served.generations.runs)
        assert served.sample("smg_node_http_sockets", route="/v1/responses") == 1
        await served.server.drain()
        assert (await turn(client))[-1]["type"] == "response.failed"
        with pytest.raises(ConnectionClosed):
            await client.recv()
        assert client.close_code == 1012


async def test_an_idle_socket_does_not_hold_up_a_node_that_leaves() -> None:
    async with node(history=Here()) as served, socket(served.port) as client:
        await served.server.drain()
        with pytest.raises(ConnectionClosed):
            await client.recv()
        assert client.close_code == 1012


async def test_a_key_that_is_revoked_ends_its_socket() -> None:
    async with node(history=Here()) as served:
        admin = (await ask(served.port, "POST", KEYS, {"role": "admin"})).json()["key"]
        bearer = {"authorization": f"Bearer {admin}"}
        made = (await ask(served.port, "POST", KEYS, {"tenant": "acme"}, bearer)).json()
        async with socket(served.port, additional_headers={"x-api-key": made["key"]}) as client:
            await create(client, input="hi")
            assert text_of(await turn(client)) == "Hello world"
            gone = await ask(served.port, "DELETE", f"{KEYS}/{made['id']}", {}, bearer)
            assert gone.status == 200
            await create(client, input="hi", stream_id="x")
            [told] = await turn(client)
            assert (told["status"], told["stream_id"]) == (401, "x")
            with pytest.raises(ConnectionClosed):
                await client.recv()
            assert client.close_code == 1008


async def test_other_processes_of_the_node_make_the_responses(tmp_path: Path) -> None:
    path = str(tmp_path / "http")
    async with (
        node(counting, elsewhere=Trusting(), listen=f"unix:{path}", history=Here()) as control,
        node(elsewhere=Forwarding(path, lambda: True)) as data,
        socket(data.port) as client,
    ):
        await create(client, input="hi", stream_id="x", store=False)
        first = await turn(client)
        assert text_of(first) == "turns 1"
        made = first[-1]["response"]["id"]
        await create(client, input="more", previous_response_id=made, stream_id="x")
        assert text_of(await turn(client)) == "turns 3"
        assert len(control.generations.runs) == 2
        assert not data.generations.runs


async def test_without_the_process_that_remembers_the_error_says_so() -> None:
    forwarding = Forwarding("/nowhere", lambda: False)
    async with node(elsewhere=forwarding) as data, socket(data.port) as client:
        await create(client, input="hi")
        [told] = await turn(client)
        assert (told["status"], told["error"]["code"]) == (503, "control_away")
        assert told["error"]["headers"]["retry-after"] == "1"
