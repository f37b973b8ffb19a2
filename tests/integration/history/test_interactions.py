"""Interactions on real nodes, judged by Google's own client: every call, every object strictly, every break."""

import asyncio
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from random import Random
from typing import Any

import httpx2
import pytest
from google.genai._gaos.types import interactions as shapes
from google.genai._interactions_errors import NotFoundError

from support.answers.interactions import accumulated
from support.clients.genai_client import client_of, heard
from support.processes.cutting_proxy import Ending, cutting_proxy
from support.processes.node import RunningNode, running_node
from support.processes.shared_store_nodes import STORES
from support.processes.simulated_engines import SAYS, running_simulated

pytestmark = pytest.mark.integration

VERSIONS = ("v1", "v1beta", "v1alpha")
SCRIPTS = {"told": "fixed", "thinker": "reasoning", "caller": "tool-call"}
TOOLS = [
    {
        "type": "function",
        "name": "get_weather",
        "description": "Look",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    }
]
EVENTS: dict[str, Any] = {
    "interaction.created": shapes.InteractionCreatedEvent,
    "interaction.status_update": shapes.InteractionStatusUpdate,
    "interaction.completed": shapes.InteractionCompletedEvent,
    "step.start": shapes.StepStart,
    "step.delta": shapes.StepDelta,
    "step.stop": shapes.StepStop,
    "error": shapes.ErrorEvent,
}


@dataclass(frozen=True)
class Place:
    """Two nodes with one store."""

    nodes: list[RunningNode]
    wire: httpx2.Client

    @property
    def url(self) -> str:
        return self.nodes[0].url

    def created(self, **body: Any) -> dict[str, Any]:
        answer = self.wire.post(f"{self.url}/v1/interactions", json=body)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def streamed(self, **body: Any) -> list[dict[str, Any]]:
        asked = {**body, "stream": True}
        answer = self.wire.post(f"{self.url}/v1/interactions", json=asked)
        assert answer.status_code == 200, answer.text
        return events_of(answer.text)

    def followed(self, url: str, interaction_id: str, after: str = "") -> list[dict[str, Any]]:
        query = {"stream": "true", "last_event_id": after}
        answer = self.wire.get(f"{url}/v1/interactions/{interaction_id}", params=query)
        assert answer.status_code == 200, answer.text
        return events_of(answer.text)


def events_of(text: str) -> list[dict[str, Any]]:
    frames = [frame for frame in text.split("\n\n") if frame and not frame.startswith(":")]
    assert frames.pop() == "data: [DONE]"
    events = []
    for frame in frames:
        kind, _, data = frame.partition("\ndata: ")
        events.append(json.loads(data))
        assert kind == f"event: {events[-1]['event_type']}"
    return events


def logged(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the events without checkpoints, which are no part of the log."""
    return [event for event in events if "continuation_token" not in event]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("place")
    with ExitStack() as stack:
        workers = []
        for model, script in SCRIPTS.items():
            flags = ("--script", script, "--model", model, "--itl-ms", "3", "--ttft-ms", "1")
            (folder / model).mkdir()
            engine = stack.enter_context(running_simulated(folder / model, *flags))
            workers.append(f"grpc://{engine.address}")
        (folder / "store").mkdir()
        shared = stack.enter_context(STORES["redis"](folder / "store"))

        def start(name: str) -> RunningNode:
            flags = (*shared.flags, "--name", name, "--interactions.checkpoint-ms", "0")
            flags += ("--models.thinker.reasoning-parser", "qwen3")
            return stack.enter_context(running_node(folder / name, workers=workers, flags=flags))

        threads = stack.enter_context(ThreadPoolExecutor())
        nodes = list(threads.map(start, ["one", "two"]))
        wire = stack.enter_context(httpx2.Client(timeout=60))
        yield Place(nodes, wire)


@pytest.mark.parametrize("version", VERSIONS)
def test_every_call_of_the_official_client_is_served(
    request: pytest.FixtureRequest, place: Place, version: str
) -> None:
    client = client_of(place.url, version)
    request.addfinalizer(client.close)
    made = client.interactions.create(model="told", input="Hi", labels={"a": "b"})
    assert (made.status, made.output_text, made.labels) == ("completed", SAYS, {"a": "b"})
    shown = client.interactions.get(made.id, include_input=True)
    assert shown.steps == made.steps
    assert [step.content[0].text for step in shown.input] == ["Hi"]
    said = [
        event.delta.text
        for event in client.interactions.create(
            model="told", input="Hi", stream=True, previous_interaction_id=made.id
        )
        if event.event_type == "step.delta"
    ]
    assert "".join(said) == SAYS
    again = [event.event_type for event in client.interactions.get(made.id, stream=True)]
    assert (again[0], again[-1]) == ("interaction.created", "interaction.completed")
    beside = client.interactions.create(model="told", input="Hi", background=True)
    assert beside.status in ("queued", "in_progress")
    assert client.interactions.cancel(beside.id).status in ("cancelled", "completed")
    assert client.interactions.delete(made.id) is None
    with pytest.raises(NotFoundError):
        client.interactions.get(made.id)


@pytest.mark.parametrize("version", VERSIONS)
async def test_the_asynchronous_client_is_served_too(place: Place, version: str) -> None:
    async with client_of(place.url, version).aio as client:
        made = await client.interactions.create(model="told", input="Hi")
        assert made.output_text == SAYS
        stream = await client.interactions.create(model="told", input="Hi", stream=True)
        said = [event.delta.text async for event in stream if event.event_type == "step.delta"]
        assert "".join(said) == SAYS
        assert (await client.interactions.get(made.id)).steps == made.steps
        assert (await client.interactions.cancel(made.id)).status == "completed"
        assert await client.interactions.delete(made.id) is None


@pytest.mark.parametrize("model", SCRIPTS)
@pytest.mark.parametrize("store", [True, False])
def test_all_that_is_said_passes_the_clients_types_strictly(
    place: Place, model: str, store: bool
) -> None:
    body: dict[str, Any] = {"model": model, "input": "Hi", "store": store, "tools": TOOLS}
    body |= {"generation_config": {"max_output_tokens": 200}, "labels": {"a": "b"}}
    made = place.created(**body)
    events = place.streamed(**body)
    for shown in (made, events[0]["interaction"], events[-1]["interaction"]):
        assert shown["id"].startswith("int_")
    # Its strict types know no other models than the vendor's.
    checked = shapes.Interaction.model_validate({**made, "model": "gemini-2.5-pro"}, strict=True)
    assert "Unknown" not in repr(checked)
    for event in events:
        if "interaction" in event:
            event["interaction"]["model"] = "gemini-2.5-pro"
        found = EVENTS[event["event_type"]].model_validate(event, strict=True)
        assert "Unknown" not in repr(found)
        assert found.event_id is not None
    expected = {"told": 1, "thinker": 2, "caller": 2}[model]
    assert len(made["steps"]) == expected
    unsigned = [{**step, "id": ""} for step in accumulated(events)]
    assert unsigned == [{**step, "id": ""} for step in made["steps"]]
    assert made["status"] == ("requires_action" if model == "caller" else "completed")
    kept = place.wire.get(f"{place.url}/v1/interactions/{made['id']}?stream=false")
    assert (kept.status_code, kept.json() == made) == ((200, True) if store else (404, False))
    tokens = ["continuation_token" in event for event in events]
    assert any(tokens) is store


def test_from_every_event_on_the_same_events_follow_on_every_node(place: Place) -> None:
    events = logged(place.streamed(model="thinker", input="Hi"))
    interaction_id = events[0]["interaction"]["id"]
    for node in place.nodes:
        assert place.followed(node.url, interaction_id) == events
        for place_of in range(len(events)):
            after = events[place_of]["event_id"]
            assert place.followed(node.url, interaction_id, after) == events[place_of + 1 :]


@pytest.mark.parametrize("after", ["-1", "x", "1.5", "²"])
def test_an_event_that_no_stream_has_is_refused(place: Place, after: str) -> None:
    made = place.created(model="told", input="Hi")
    path = f"{place.url}/v1/interactions/{made['id']}"
    answer = place.wire.get(path, params={"stream": "true", "last_event_id": after})
    assert (answer.status_code, answer.json()["error"]["status"]) == (400, "INVALID_ARGUMENT")


def test_a_token_goes_on_with_the_same_interaction_on_any_node(place: Place) -> None:
    events = place.streamed(model="thinker", input="Hi")
    interaction_id = events[0]["interaction"]["id"]
    marks = [at for at, event in enumerate(events) if "continuation_token" in event]
    assert len(marks) >= 4
    for at in marks:
        mark = events[at]
        assert mark["event_id"] == events[at - 1]["event_id"]
        body = {
            "model": "other",
            "stream": True,
            "continuation_token": mark["continuation_token"],
            "previous_interaction_id": interaction_id,
        }
        for node in place.nodes:
            answer = place.wire.post(f"{node.url}/v1beta/interactions", json=body)
            assert answer.status_code == 200, answer.text
            assert logged(events_of(answer.text)) == logged(events[at:])


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"continuation_token": "nonsense"}, 400),
        ({"stream": False}, 400),
        ({"previous_interaction_id": "int_1"}, 400),
    ],
)
def test_a_token_that_does_not_fit_is_refused(
    place: Place, change: dict[str, Any], code: int
) -> None:
    events = place.streamed(model="told", input="Hi")
    token = next(e["continuation_token"] for e in events if "continuation_token" in e)
    body = {"model": "told", "stream": True, "continuation_token": token, **change}
    answer = place.wire.post(f"{place.url}/v1/interactions", json=body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (code, code)


def cut_streams(place: Place, streams: int, endings: Sequence[Ending], seed: int) -> Counter[str]:
    """Return how many streams came whole and how many raised; none may pass a part for the whole.

    Their first cuts are spread over all bytes; of every third, the connections that go on are cut as well.
    """
    counts: Counter[str] = Counter()
    chance = Random(seed)
    body = {"model": "told", "input": "Hi", "stream": True}
    size = len(place.wire.post(f"{place.url}/v1/interactions", json=body).content)
    with cutting_proxy(*(int(node.url.rpartition(":")[2]) for node in place.nodes)) as proxy:
        for number in range(streams):
            more = [chance.randrange(1, size // 2) for _ in range(chance.randrange(1, 4))]
            proxy.ending = endings[number % len(endings)]
            proxy.cuts = [int((number + chance.random()) * size / streams) + 1]
            proxy.cuts += more if number % 3 == 0 else []
            with client_of(proxy.url) as client:
                told = heard(client, model="told", input="Hi")
            assert told.errors == []
            if told.broke is None:
                assert (told.text, told.status) == (SAYS, "completed"), (number, proxy.ending)
            counts["whole" if told.broke is None else "raised"] += 1
        # A stream may have been written in fewer pieces, with fewer checkpoints, and end before its cut.
        assert proxy.broken >= streams - 1 - streams // 20
    sys.stdout.write(f"{streams} streams cut: {dict(counts)}\n")
    return counts


MANY_CUTS = 500


@pytest.mark.timeout(1500)
@pytest.mark.parametrize("streams", [9, pytest.param(MANY_CUTS, marks=pytest.mark.long)])
def test_a_stream_that_is_cut_at_any_byte_ends_whole_or_raises(place: Place, streams: int) -> None:
    counts = cut_streams(place, streams, ["reset", "close", "between writes"], seed=streams)
    assert counts.total() == streams
    assert counts["whole"] >= streams // 3


@pytest.mark.timeout(120)
def test_a_stream_that_ends_behind_a_checkpoint_goes_on_by_itself(place: Place) -> None:
    assert cut_streams(place, 5, ["between writes"], seed=1) == {"whole": 5}


def test_ids_of_one_api_are_none_of_the_other(place: Place) -> None:
    made = place.created(model="told", input="Hi")
    response = place.wire.post(
        f"{place.url}/v1/responses", json={"model": "told", "input": "Hi"}
    ).json()
    for method in ("GET", "DELETE"):
        foreign = place.wire.request(method, f"{place.url}/v1/responses/{made['id']}")
        assert foreign.status_code == 404
        foreign = place.wire.request(method, f"{place.url}/v1/interactions/{response['id']}")
        assert foreign.status_code == 404
    body = {"model": "told", "input": "Hi", "previous_response_id": made["id"]}
    said = place.wire.post(f"{place.url}/v1/responses", json=body)
    assert (said.status_code, "Interactions API" in said.text) == (400, True)
    body = {"model": "told", "input": "Hi", "previous_interaction_id": response["id"]}
    said = place.wire.post(f"{place.url}/v1/interactions", json=body)
    assert (said.status_code, "Responses API" in said.text) == (400, True)


@pytest.mark.parametrize(
    "body",
    [
        {"model": "told", "input": "Hi", "agent": "deep-research"},
        {"model": "told", "input": "Hi", "tools": [{"type": "google_search"}]},
        {"model": "told", "input": "Hi", "previous_interaction_id": "int_none"},
        {"model": "nobody", "input": "Hi"},
    ],
)
def test_what_is_refused_is_not_tried_again(place: Place, body: dict[str, Any]) -> None:
    answer = place.wire.post(f"{place.url}/v1/interactions", json=body)
    assert answer.status_code in (400, 404)
    assert answer.json()["error"]["code"] == answer.status_code


def test_a_foreground_stream_can_be_cancelled(place: Place) -> None:
    path = f"{place.url}/v1/interactions"
    asked = {"model": "told", "input": "Hi", "stream": True}
    with place.wire.stream("POST", path, json=asked) as answer:
        lines = answer.iter_lines()
        created = next(line for line in lines if line.startswith("data: "))
        interaction_id = json.loads(created[6:])["interaction"]["id"]
        cancelled = place.wire.post(f"{path}/{interaction_id}/cancel")
        assert cancelled.json()["status"] in ("cancelled", "completed")
        assert "[DONE]" in "".join(lines)


def test_clients_do_not_disturb_each_other(place: Place) -> None:
    async def one(number: int) -> str:
        async with client_of(place.nodes[number % 2].url).aio as client:
            stream = await client.interactions.create(model="told", input=f"{number}", stream=True)
            return "".join([e.delta.text async for e in stream if e.event_type == "step.delta"])

    async def all_of() -> list[str]:
        return await asyncio.gather(*(one(number) for number in range(8)))

    assert asyncio.run(all_of()) == [SAYS] * 8
