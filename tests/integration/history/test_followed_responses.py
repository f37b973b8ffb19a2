"""Responses that go on without their client, on real nodes: from any node and from any number on, the same bytes."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import cycle
from typing import Any

import httpx2
import openai
import pytest
from openai import OpenAI
from openai.types.responses import Response

from support.answers.event_streams import created, followed, number_of, object_of, whole
from support.processes.node import RunningNode, running_node
from support.processes.shared_store_nodes import STORES
from support.processes.simulated_engines import Simulated, running_simulated

pytestmark = pytest.mark.integration

LONG: dict[str, Any] = {"max_output_tokens": 150, "ignore_eos": True}
"""Three quarters of a second: time to leave, to come back, and to look on from elsewhere."""
SHORT: dict[str, Any] = {"max_output_tokens": 12, "ignore_eos": True}
GRACE_S = 2
_STEP_S = 0.05
_WAIT_S = 60.0


@dataclass(frozen=True)
class Place:
    """Nodes with one store: the first one makes, all of them show."""

    nodes: list[RunningNode]
    clients: list[OpenAI]
    wire: httpx2.Client

    @property
    def maker(self) -> str:
        return self.nodes[0].url

    @property
    def urls(self) -> list[str]:
        return [node.url for node in self.nodes]

    @property
    def elsewhere(self) -> str:
        """Another node than the maker, if there is one."""
        return self.urls[-1]

    def final(self, response_id: str) -> Response:
        """Poll all nodes in turn until it is over."""
        for client in cycle(self.clients):
            shown = client.responses.retrieve(response_id)
            if shown.status not in ("queued", "in_progress"):
                return shown
            time.sleep(_STEP_S)
        raise AssertionError


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Simulated]:
    flags = ("--script", "echo", "--model", "parrot", "--itl-ms", "5", "--ttft-ms", "1")
    with running_simulated(tmp_path_factory.mktemp("engine"), *flags) as running:
        yield running


@pytest.fixture(scope="module", params=["sqlite", *STORES])
def place(
    request: pytest.FixtureRequest, engine: Simulated, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("place")
    with ExitStack() as stack:
        store: tuple[str, ...] = ()
        names = ["one"]
        if request.param != "sqlite":
            (folder / "store").mkdir()
            shared = stack.enter_context(STORES[request.param](folder / "store"))
            store, names = tuple(shared.flags), ["one", "two"]
        with_grace = (*store, "--responses.resume-grace-s", str(GRACE_S))

        def start(name: str) -> RunningNode:
            flags = (*with_grace, "--name", name)
            workers = [f"grpc://{engine.address}"]
            return stack.enter_context(running_node(folder / name, workers=workers, flags=flags))

        # They start at the same time; what a thread has started ends with that thread.
        threads = stack.enter_context(ThreadPoolExecutor())
        nodes = list(threads.map(start, names))
        wire = stack.enter_context(httpx2.Client(timeout=_WAIT_S))
        clients = [stack.enter_context(client_of(node)) for node in nodes]
        yield Place(nodes, clients, wire)


def client_of(node: RunningNode) -> OpenAI:
    return OpenAI(base_url=f"{node.url}/v1", api_key="none", max_retries=0, timeout=60)


def test_what_is_made_in_the_background_is_queued_at_once_and_shown_everywhere(
    place: Place,
) -> None:
    client = place.clients[0]
    made = client.responses.create(model="parrot", input="say it", background=True, extra_body=LONG)
    assert (made.status, made.background, made.output) == ("queued", True, [])
    final = place.final(made.id)
    assert final.incomplete_details is not None
    assert final.incomplete_details.reason == "max_output_tokens"
    assert final.output_text
    for url in place.urls:
        told = whole(place.wire, url, made.id)
        assert Response.model_validate(object_of(told[-1])) == final
    # It can be continued like any other.
    more = client.responses.create(
        model="parrot", input="go on", previous_response_id=made.id, extra_body=SHORT
    )
    assert more.previous_response_id == made.id


def test_what_is_being_made_is_shown_as_it_is_now(place: Place) -> None:
    body = {**LONG, "max_output_tokens": 1_500}
    with created(place.wire, place.maker, input="say it", background=True, **body) as stream:
        stream.until(5)
        response_id = object_of(stream.frames[0])["id"]
        for other in place.clients:
            shown = other.responses.retrieve(response_id)
            assert shown.status == "in_progress"
            assert shown.incomplete_details is None
        # Nobody needs the rest of it.
        assert place.clients[0].responses.cancel(response_id).status == "cancelled"
        assert object_of(stream.to_end()[-1])["status"] == "cancelled"


def test_a_client_that_left_picks_up_from_any_node_what_it_has_not_seen(place: Place) -> None:
    with created(place.wire, place.maker, input="say it", background=True, **LONG) as stream:
        stream.until(6)
        response_id = object_of(stream.frames[0])["id"]
        # Before it is over, and from the beginning: somebody else, somewhere else.
        with followed(place.wire, place.elsewhere, response_id) as other:
            other.until(6)
            seen, seen_elsewhere = list(stream.frames), list(other.frames)
    first, second = (
        _after(place, url, seen, response_id) for url in (place.elsewhere, place.maker)
    )
    assert first == second == whole(place.wire, place.elsewhere, response_id)
    assert first[: len(seen_elsewhere)] == seen_elsewhere
    assert [number_of(frame) for frame in first] == list(range(len(first)))
    assert len(first) > 100
    assert object_of(first[-1]) == object_of(whole(place.wire, place.maker, response_id, 20)[-1])


def _after(place: Place, url: str, seen: list[bytes], response_id: str) -> list[bytes]:
    return seen + whole(place.wire, url, response_id, number_of(seen[-1]))


def test_from_every_number_on_every_node_tells_the_same(place: Place) -> None:
    with created(place.wire, place.maker, input="say it", background=True, **SHORT) as stream:
        told = stream.to_end()
    response_id = object_of(told[0])["id"]
    assert len(told) > 15
    for url in place.urls:
        for after in (*range(len(told) + 2), 10**17):
            assert whole(place.wire, url, response_id, after) == told[after + 1 :]


def test_the_official_client_picks_streams_up(place: Place) -> None:
    maker, other = place.clients[0], place.clients[-1]
    with maker.responses.stream(
        model="parrot", input="say it", background=True, extra_body=LONG
    ) as stream:
        first = next(stream)
        assert first.type == "response.created"
        response_id = first.response.id
        while next(stream).sequence_number < 8:
            pass
    with other.responses.stream(response_id=response_id, starting_after=8) as again:
        events = list(again)
    assert [event.sequence_number for event in events] == list(range(9, 9 + len(events)))
    assert events[-1].type in ("response.completed", "response.incomplete")
    with other.responses.retrieve(response_id, stream=True, starting_after=8) as late:
        rest = list(late)
    assert [event.sequence_number for event in rest] == [one.sequence_number for one in events]
    assert rest[-1].type == events[-1].type


def test_a_client_of_the_foreground_may_come_back_within_its_grace(place: Place) -> None:
    with created(place.wire, place.maker, input="say it", **LONG) as stream:
        stream.until(6)
        seen = list(stream.frames)
    response_id = object_of(seen[0])["id"]
    told = _after(place, place.maker, seen, response_id)
    assert object_of(told[-1])["status"] != "cancelled"
    assert len(told) > 100
    for url in place.urls:
        assert whole(place.wire, url, response_id) == told


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
def test_a_client_of_the_foreground_that_stays_away_ends_its_response(place: Place) -> None:
    body = {**LONG, "max_output_tokens": 1_500}
    with created(place.wire, place.maker, input="say it", **body) as stream:
        stream.until(6)
        seen = list(stream.frames)
    response_id = object_of(seen[0])["id"]
    final = place.final(response_id)
    assert final.status == "cancelled"
    told = whole(place.wire, place.elsewhere, response_id)
    assert told[: len(seen)] == seen
    assert told[-1].startswith(b"event: response.incomplete")


def test_what_was_never_a_stream_is_told_as_one_but_not_from_a_number_on(place: Place) -> None:
    client = place.clients[0]
    made = client.responses.create(model="parrot", input="say it", extra_body=SHORT)
    for other in place.clients:
        with other.responses.stream(response_id=made.id) as stream:
            events = list(stream)
        final = events[-1]
        assert final.type in ("response.completed", "response.incomplete")
        assert final.response.output_text == made.output_text
        with pytest.raises(openai.BadRequestError) as found:
            other.responses.retrieve(made.id, stream=True, starting_after=2)
        assert (found.value.code, found.value.param) == ("stream_expired", "starting_after")


@contextmanager
def settings(place: Place, **values: float) -> Iterator[None]:
    paths = {f"{place.maker}/v1/cluster/settings/{key}": value for key, value in values.items()}
    anyway = {"if-match": "*"}
    for path, value in paths.items():
        assert place.wire.put(path, json={"value": value}, headers=anyway).status_code == 200
    try:
        yield
    finally:
        for path in paths:
            assert place.wire.delete(path, headers=anyway).status_code == 200


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
def test_when_the_events_are_over_what_is_kept_is_told_again(place: Place) -> None:
    soon = {"responses.event_log_ttl_s": 1, "responses.background.deadline_s": 1}
    with (
        settings(place, **soon),
        created(place.wire, place.maker, input="say it", background=True, **SHORT) as stream,
    ):
        told = stream.to_end()
    final = object_of(told[-1])
    path = f"{place.maker}/v1/responses/{final['id']}"
    query = {"stream": "true", "starting_after": "3"}
    late_s = time.monotonic() + _WAIT_S
    # Beyond the last event: whoever is told some while their log goes is reset, which is not what is waited for.
    beyond = {"stream": "true", "starting_after": "1000000"}
    while place.wire.get(path, params=beyond).status_code == 200:
        assert time.monotonic() < late_s
        time.sleep(_STEP_S)
    answer = place.wire.get(path, params=query)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "stream_expired")
    again = whole(place.wire, place.maker, final["id"])
    assert object_of(again[-1]) == final
    # All of its text is one event now.
    assert len(again) < len(told)
    [client] = place.clients
    with client.responses.stream(response_id=final["id"]) as events:
        assert [event.sequence_number for event in events] == list(range(len(again)))


def test_a_follower_does_not_hold_up_others(place: Place) -> None:
    """Two runs with a client each, and one who looks on at both and leaves: nobody notices anybody."""
    with (
        created(place.wire, place.maker, input="one", background=True, **LONG) as one,
        created(place.wire, place.maker, input="two", background=True, **LONG) as two,
    ):
        one.until(2)
        two.until(2)
        ids = [object_of(stream.frames[0])["id"] for stream in (one, two)]
        for response_id in ids:
            with followed(place.wire, place.elsewhere, response_id) as other:
                other.until(4)
        told = [stream.to_end() for stream in (one, two)]
    for response_id, frames in zip(ids, told, strict=True):
        assert whole(place.wire, place.elsewhere, response_id) == frames
