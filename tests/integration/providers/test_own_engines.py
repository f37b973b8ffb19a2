"""Own engines beside vendors behind one name: who is asked, who follows after which failure, and what clients see of it."""

import json
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest

from support.processes.node import RunningNode, running_node
from support.processes.simulated_engines import SAYS, running_simulated
from support.providers.stand_ins import KEY, StandIn, running_stand_ins
from support.routes.api_clients import APIS, Said, ask, chat, events_of

pytestmark = pytest.mark.integration

CLAUDE, GPT = "anthropic/claude-sonnet-5", "openai/gpt-4.1-mini"
# Models of the first engine process, by worker; faults are of one worker.
MODELS = ("own", "refusing", "cutting", "silent")
FAULTS = (
    "refuse:status=UNAVAILABLE,worker=2",
    "error:after=3,status=INTERNAL,worker=3",
    "hang:worker=4",
)
OVERFLOW = {"to": CLAUDE, "on": ["full", "rate", "broken", "timed_out"]}
ROUTES: dict[str, list[Any]] = {
    "own": ["engines/own", OVERFLOW],
    "server": ["engines/server", OVERFLOW],
    "narrow-route": ["engines/narrow", OVERFLOW],
    "narrow-alone": ["engines/narrow"],
    "refusing": ["engines/refusing", OVERFLOW],
    "cutting-route": ["engines/cutting", OVERFLOW],
    "silent-route": ["engines/silent", OVERFLOW],
    "absent": ["engines/nobody", OVERFLOW],
    "alone": ["engines/own"],
    "claude": [CLAUDE, {"to": "engines/own", "on": ["full", "rate", "no_money"]}],
    "half": [{"to": "engines/own", "weight": 1}, {"to": GPT, "weight": 1}],
}
TARGETS = sum(len(targets) for targets in ROUTES.values())
WORKERS = len(MODELS) + 2


@dataclass(frozen=True)
class World:
    node: RunningNode
    claude: StandIn

    def ask(self, path: str, body: Any, method: str = "POST") -> Said:
        return ask(self.node, path, body, method)

    def fault(self, *specs: str) -> None:
        self.claude.admin("/faults", {"faults": list(specs)}, "PUT")

    def asked(self) -> int:
        """How many requests Anthropic's stand-in has had."""
        return len(self.claude.admin("/requests?last=1000"))

    def journey(self, said: Said) -> Any:
        found = self.ask(f"/v1/cluster/explain/{said.headers['x-request-id']}", None, "GET")
        assert found.status == 200, found
        return found.json["journeys"][0]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    scratch = tmp_path_factory.mktemp("own")
    for name in ("engines", "server", "narrow", "vendors"):
        (scratch / name).mkdir()
    with ExitStack() as stack:
        engines = stack.enter_context(
            running_simulated(
                scratch / "engines", "--itl-ms", "1", workers=len(MODELS), faults=FAULTS
            )
        )
        narrow = stack.enter_context(
            running_simulated(scratch / "narrow", "--slots", "1", "--itl-ms", "5")
        )
        server = stack.enter_context(
            running_simulated(
                scratch / "server", "--contract", "openai", "--model", "server", "--itl-ms", "1"
            )
        )
        flags = ("--kind", "anthropic", "--kind", "openai", "--model", "*")
        (claude, openai), _ = stack.enter_context(running_stand_ins(scratch / "vendors", *flags))
        file = scratch / "providers.json"
        providers = {
            "anthropic": {"kind": "anthropic", "base": claude.base, "keys": [KEY]},
            "openai": {"kind": "openai", "base": openai.base, "keys": [KEY]},
        }
        routes = {name: {"targets": targets} for name, targets in ROUTES.items()}
        file.write_text(json.dumps({"providers": providers, "routes": routes}))
        urls = [
            f"grpc://{address}?model={model}"
            for address, model in zip(engines.addresses, MODELS, strict=True)
        ]
        urls += [f"grpc://{narrow.address}?model=narrow", f"http://{server.address}"]
        node = stack.enter_context(
            running_node(
                scratch / "node",
                workers=urls,
                flags=(
                    *("--providers", str(file)),
                    *("--engine.first-event-s", "2", "--breaker.enabled", "false"),
                ),
            )
        )
        world = World(node, claude)
        node.process.wait_until(lambda: all_ready(world), "targets are ready", 60)
        yield world


def all_ready(world: World) -> bool:
    found = world.ask("/v1/cluster/routes", None, "GET").json["routes"]
    states = {target["to"]: target["state"] for route in found for target in route["targets"]}
    return states.pop("engines/nobody", "") == "off" and set(states.values()) == {"ready"}


@pytest.fixture
def world(running: World) -> World:
    running.claude.admin("/reset", {}, "POST")
    running.fault()
    # A vendor that refused for its rate is left alone for the time it said.
    running.node.process.wait_until(lambda: all_ready(running), "targets are ready", 60)
    return running


WAYS = [(api, stream) for api in APIS for stream in (False, True)]


@pytest.mark.parametrize(("api", "stream"), WAYS)
@pytest.mark.parametrize("model", ["own", "alone", "server"])
def test_own_engines_answer_under_the_public_name(
    world: World, model: str, api: str, stream: bool
) -> None:
    said, text = APIS[api](world.node, model, stream=stream)
    assert said.status == 200, said
    if (api, stream) == ("interactions", True):
        text = "".join(
            event["delta"].get("text", "")
            for event in events_of(said)
            if isinstance(event, dict) and isinstance(event.get("delta"), dict)
        )
    assert text == SAYS
    assert world.asked() == 0
    assert said.headers["x-smg-attempts"] == "1"


@pytest.mark.parametrize(("api", "stream"), WAYS)
@pytest.mark.parametrize("model", ["refusing", "absent"])
def test_a_vendor_answers_where_own_engines_break_or_are_not_there(
    world: World, model: str, api: str, stream: bool
) -> None:
    said, text = APIS[api](world.node, model, stream=stream)
    assert said.status == 200, said
    assert text
    assert SAYS not in text
    assert world.asked() == 1


@pytest.mark.parametrize(("api", "stream"), WAYS)
def test_own_engines_answer_where_the_vendor_refuses_for_its_rate(
    world: World, api: str, stream: bool
) -> None:
    world.fault("status:reason=rate,retry_after=1")
    said, text = APIS[api](world.node, "claude", stream=stream)
    assert said.status == 200, said
    assert SAYS[:5] in text or '"text":"H"' in text
    steps = [step for step in world.journey(said)["steps"] if "worker" in step]
    assert any(step.get("code") == "upstream_rate_limited" for step in steps) or len(steps) == 2


def test_a_stream_that_breaks_behind_its_first_word_is_not_begun_anew(world: World) -> None:
    said, text = chat(world.node, "cutting-route", stream=True)
    assert said.status == 200
    assert SAYS.startswith(text)
    assert 0 < len(text) < len(SAYS)
    last = events_of(said)[-1]
    assert last["error"]["code"] == "upstream_error"
    assert world.asked() == 0
    journey = world.journey(said)
    assert (journey["model"], journey["kind"]) == ("cutting-route", "failed")


def test_an_answer_that_nobody_has_seen_is_given_by_the_vendor_instead(world: World) -> None:
    said, text = chat(world.node, "cutting-route", stream=False)
    assert said.status == 200, said
    assert SAYS[:5] not in text
    assert world.asked() == 1


def test_silent_engines_cost_their_time_limit_and_then_the_vendor_answers(world: World) -> None:
    said, text = chat(world.node, "silent-route", stream=True)
    assert said.status == 200, said
    assert text
    assert world.asked() == 1


def test_what_full_engines_cannot_take_at_once_goes_to_the_vendor(world: World) -> None:
    answers: list[tuple[Said, str]] = []

    def ask() -> None:
        answers.append(chat(world.node, "narrow-route", stream=True))

    threads = [threading.Thread(target=ask) for _ in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {said.status for said, _ in answers} == {200}
    here = sum(text == SAYS for _, text in answers)
    # One runs, and a few may wait for it at the engine; all others are answered elsewhere.
    assert 0 < here < 24
    assert world.asked() == 24 - here


def test_a_route_to_own_engines_alone_waits_for_them(world: World) -> None:
    answers: list[tuple[Said, str]] = []

    def ask() -> None:
        answers.append(chat(world.node, "narrow-alone", stream=False))

    threads = [threading.Thread(target=ask) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [(said.status, text) for said, text in answers] == [(200, SAYS)] * 12, answers


def test_weights_share_out_and_a_conversation_stays(world: World) -> None:
    where = {
        text: {chat(world.node, "half", stream=False, text=text)[1] == SAYS for _ in range(3)}
        for text in (f"words=3 conversation {n} {'x' * 600}" for n in range(24))
    }
    assert all(len(seen) == 1 for seen in where.values()), where
    assert {next(iter(seen)) for seen in where.values()} == {True, False}


def test_the_name_is_listed_once_and_counts_what_stands_behind_it(world: World) -> None:
    listed = world.ask("/v1/models", None, "GET").json["data"]
    names = [model["id"] for model in listed]
    assert len(names) == len(set(names))
    assert set(ROUTES) <= set(names)
    shown = {model["id"]: model["x_smg"] for model in listed}
    assert shown["absent"]["workers_ready"] == 1
    assert shown["alone"]["workers_ready"] == 1


def test_the_journey_names_the_target_and_the_engine(world: World) -> None:
    said, _ = chat(world.node, "own", stream=False)
    journey = world.journey(said)
    assert (journey["model"], journey["kind"]) == ("own", "ok")
    chosen = [step["worker"] for step in journey["steps"]]
    assert len(chosen) == 2
    assert said.headers["x-smg-routed-worker-id"] == chosen[1]
    workers = {one["id"]: one["url"] for one in world.ask("/workers", None, "GET").json["workers"]}
    assert workers[chosen[0]].startswith("provider://engines/own")
    assert workers[chosen[1]].startswith("grpc://")
    assert journey["usage"]["prompt_tokens"] > 0 if "usage" in journey else journey["prompt_tokens"]


def test_usage_is_counted_once_and_under_the_public_name(world: World) -> None:
    def count(name: str, **labels: str) -> float:
        return world.node.metric(name, **labels)

    requests = "smg_node_generations_total"
    before = count(requests, model="alone"), count(requests, model="own")
    said, _ = chat(world.node, "alone", stream=True)
    assert said.status == 200
    after = count(requests, model="alone"), count(requests, model="own")
    assert (after[0] - before[0], after[1] - before[1]) == (1, 0)


def test_tokens_of_a_route_are_counted_with_the_tokenizer_of_its_engines(world: World) -> None:
    body = {"model": "alone", "messages": [{"role": "user", "content": "hello"}]}
    counted = world.ask("/v1/messages/count_tokens", body)
    assert counted.status == 200, counted
    said, _ = chat(world.node, "alone", stream=False, text="hello")
    assert counted.json["input_tokens"] == said.json["usage"]["prompt_tokens"]
    assert world.ask("/tokenize", {"model": "alone", "prompt": "hello"}).json["count"] > 0


def test_completions_of_a_route_go_to_its_engines(world: World) -> None:
    said = world.ask("/v1/completions", {"model": "claude", "prompt": "Hello", "max_tokens": 3})
    assert said.status == 200, said
    assert said.json["model"] == "claude"
    assert said.json["usage"]["completion_tokens"] == 3
    assert world.asked() == 0


def test_several_answers_and_log_probabilities_come_from_own_engines(world: World) -> None:
    body = {
        "model": "alone",
        "messages": [{"role": "user", "content": "hello"}],
        "n": 2,
        "logprobs": True,
        "top_logprobs": 2,
        "max_tokens": 4,
    }
    said = world.ask("/v1/chat/completions", body)
    assert said.status == 200, said
    assert [choice["index"] for choice in said.json["choices"]] == [0, 1]
    assert len(said.json["choices"][1]["logprobs"]["content"]) == 4


def test_what_own_engines_refuse_is_refused_and_no_vendor_is_asked(world: World) -> None:
    body = {
        "model": "own",
        "messages": [{"role": "user", "content": "hello " * 4000}],
    }
    said = world.ask("/v1/chat/completions", body)
    assert said.status == 400, said
    assert world.asked() == 0
