"""What became of a request is told by any node, whoever served it: over the real mesh, between real processes."""

import json
import signal
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from http.client import HTTPResponse
from pathlib import Path
from typing import Any

import pytest

from support.processes.mesh_nodes import MeshNode, until
from support.processes.mesh_trio import NAMES, Trio, running_trio
from support.processes.node_api import ROUTED, Answer, call, chat, ready_at
from support.processes.simulated_engines import Simulated, running_simulated

pytestmark = pytest.mark.integration

MODEL = "sim"
SECRET = "the-lighthouse-keeper"
QUICK = ("--workers.probe-interval-s", "0.5")


@dataclass
class Scene:
    """Three nodes, one engine that says something at once, and two that take their time, by URL."""

    trio: Trio
    engines: Mapping[str, Simulated]


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    slow = ("--script", "endless", "--itl-ms", "20")
    with ExitStack() as stack:
        engines = [
            stack.enter_context(running_simulated(tmp_path / str(number), "--model", model, *flags))
            for number, (model, flags) in enumerate(((MODEL, ()), ("slow", slow), ("slow", slow)))
        ]
        trio = stack.enter_context(running_trio(tmp_path, *QUICK))
        urls = [f"grpc://{engine.address}" for engine in engines]
        for url in urls:
            assert trio["a"].admin("workers", "add", url).code == 0
        trio.on_all(lambda node: ready_at(node, urls), "ready")
        yield Scene(trio, dict(zip(urls, engines, strict=True)))


@pytest.fixture
def trio(scene: Scene) -> Trio:
    return scene.trio


def explained(node: MeshNode, request_id: str, /, **query: str) -> Answer:
    asked = "&".join(f"{name}={value}" for name, value in query.items())
    return call(node, "GET", f"/v1/cluster/explain/{request_id}?{asked}")


def journeys(node: MeshNode, request_id: str) -> Sequence[Mapping[str, Any]]:
    """Return what a node tells; nothing where nobody knows."""
    answer = explained(node, request_id)
    found: Sequence[Mapping[str, Any]] = [] if answer.status == 404 else answer.body["journeys"]
    return found


def test_any_node_tells_what_any_node_served(trio: Trio) -> None:
    said = chat(trio["b"], MODEL, key=f"key-{SECRET}", text=f"who is {SECRET}?", tokens=4)
    assert said.status == 200
    request_id = said.headers["x-request-id"]
    for name in NAMES:
        for wanted in (request_id, said.body["id"]):
            answer = explained(trio[name], wanted)
            assert answer.status == 200
            assert answer.body["node"] == name
            (journey,) = answer.body["journeys"]
            assert (journey["node"], journey["dialect"], journey["model"]) == ("b", "chat", MODEL)
            assert (journey["kind"], journey["status"]) == ("ok", 200)
            assert journey["prompt_tokens"] == said.body["usage"]["prompt_tokens"]
            assert journey["completion_tokens"] == said.body["usage"]["completion_tokens"]
            (step,) = journey["steps"]
            assert (step["why"], step["worker"]) == ("first", said.headers[ROUTED])
            assert answer.body["workers"][step["worker"]].startswith("grpc://")
            assert answer.body["members"] == {}
            assert SECRET not in json.dumps(answer.body)
    told = trio["c"].admin("explain", request_id)
    assert (told.code, told.err) == (0, "")
    assert f"chose {said.headers[ROUTED]} (grpc://" in told.out
    assert "complete (200)" in told.out
    assert SECRET not in told.out


def test_one_id_that_went_to_two_nodes_has_two_journeys_and_dies_with_its_node(trio: Trio) -> None:
    asked = {"model": MODEL, "messages": [{"role": "user", "content": "hi"}], "max_tokens": 2}
    for name, model in (("b", "nonesuch"), ("a", MODEL)):
        call(
            trio[name],
            "POST",
            "/v1/chat/completions",
            {**asked, "model": model},
            {"x-request-id": "again-1"},
        )
    both = journeys(trio["c"], "again-1")
    assert [(journey["node"], journey["kind"]) for journey in both] == [
        ("a", "ok"),
        ("b", "refused"),
    ]
    assert (both[1]["code"], both[1]["model"]) == ("model_not_found", "nonesuch")
    only = explained(trio["c"], "again-1", node="b")
    assert [journey["node"] for journey in only.body["journeys"]] == ["b"]
    trio.kill("a")
    assert [journey["node"] for journey in journeys(trio["c"], "again-1")] == ["b"]
    gone = explained(trio["c"], "again-1", node="a")
    assert (gone.status, gone.body["error"]["code"]) == (404, "request_not_found")
    assert "a cannot be asked" in gone.body["error"]["message"]
    unknown = explained(trio["c"], "again-2")
    assert "a cannot be asked: it is dead" in unknown.body["error"]["message"]


def streamed(node: MeshNode, request_id: str, *, tokens: int) -> HTTPResponse:
    """Begin a stream from one of the slow workers."""
    asked = {
        "model": "slow",
        "messages": [{"role": "user", "content": "hi"}],
        "max_tokens": tokens,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    request = urllib.request.Request(
        f"{node.node.url}/v1/chat/completions",
        json.dumps(asked).encode(),
        {"content-type": "application/json", "x-request-id": request_id},
    )
    answer: HTTPResponse = urllib.request.urlopen(request, timeout=30)
    return answer


def test_a_request_under_way_is_told_from_another_node_and_then_its_end(trio: Trio) -> None:
    with streamed(trio["b"], "long-1", tokens=1000) as stream:
        assert stream.headers["x-request-id"] == "long-1"
        stream.readline()
        (journey,) = journeys(trio["a"], "long-1")
        assert (journey["under_way"], journey["kind"], journey["ended_ms"]) == (True, "", None)
        assert journey["steps"][0]["worker"] == stream.headers[ROUTED]
        assert "is under way" in trio["c"].admin("explain", "long-1").out
    until(lambda: not journeys(trio["a"], "long-1")[0]["under_way"], "told as ended")
    (journey,) = journeys(trio["a"], "long-1")
    assert (journey["kind"], journey["status"]) == ("client_gone", 499)
    assert journey["completion_tokens"] > 0


def test_a_worker_killed_in_the_middle_and_who_went_on_are_told(scene: Scene) -> None:
    trio = scene.trio
    with streamed(trio["b"], "moved-1", tokens=60) as stream:
        victim = stream.headers[ROUTED]
        for _ in range(20):
            stream.readline()
        url = explained(trio["a"], "moved-1").body["workers"][victim]
        scene.engines[url].process.signal(signal.SIGKILL)
        rest = stream.read().decode()
    assert rest.rstrip().endswith("data: [DONE]")
    (journey,) = journeys(trio["c"], "moved-1")
    before, broke, after = journey["steps"]
    assert [before["why"], broke["step"], after["why"]] == ["first", "broke", "continue"]
    assert (before["worker"], broke["worker"]) == (victim, victim)
    assert after["worker"] != victim
    assert 0 < broke["emitted"] < 60
    assert after["prompt_tokens"] == before["prompt_tokens"] + broke["emitted"]
    assert (journey["kind"], journey["attempts"], journey["continuations"]) == ("ok", 2, 1)
    assert journey["completion_tokens"] == 60
    told = trio["a"].admin("explain", "moved-1").out
    assert f"{victim} broke off after {broke['emitted']} tokens: " in told
    assert f"continued on {after['worker']} (grpc://" in told
