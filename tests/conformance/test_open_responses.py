"""The public compliance suite of Open Responses, its cases by their names, in front of a simulated engine.

What the suite asks of a WebSocket comes with the WebSocket. An engine of the tests only says its prompt again, or what
its script says: whether a model is clever is not judged here, but everything around it is.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, Final

import httpx2
import pytest

from support.clients.client_judge import Judge, listened
from support.clients.open_responses_schema import wrong_with
from support.clients.stream_judge import TERMINAL
from support.engines.chat_server import MODEL, ChatServer, running_chat_server
from support.processes.node import RunningNode, running_node
from support.processes.shared_store_nodes import ENGINE
from support.processes.simulated_engines import running_simulated

pytestmark = pytest.mark.conformance

CALLER: Final = "caller"
AT_ONCE: Final = 17
"""So many requests the suite fires without waiting."""
PICTURE: Final = (
    "data:image/png;base64,"
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg=="
)
WEATHER: Final = {
    "type": "function",
    "name": "get_weather",
    "description": "Tell the weather of a place.",
    "parameters": {
        "type": "object",
        "properties": {"location": {"type": "string"}},
        "required": ["location"],
    },
}


def said(role: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": content, **more}


# ── What each case demands of the object ─────────────────────────────────────

Demand = Callable[[dict[str, Any]], bool]


def has_output(body: dict[str, Any]) -> bool:
    return bool(body["output"])


def is_completed(body: dict[str, Any]) -> bool:
    return bool(body["status"] == "completed")


def is_compaction(body: dict[str, Any]) -> bool:
    return bool(body["object"] == "response.compaction")


def has_item(kind: str) -> Demand:
    return lambda body: any(item["type"] == kind for item in body["output"])


@dataclass(frozen=True, slots=True)
class Case:
    """One request, and what is demanded of its answer."""

    input: Any
    demands: tuple[Demand, ...] = (has_output, is_completed)
    more: Mapping[str, Any] | None = None
    path: str = "/v1/responses"
    status: int = 200

    def body(self) -> dict[str, Any]:
        body = {"model": "parrot", "input": self.input, **(self.more or {})}
        return {key: value for key, value in body.items() if value is not None}


CASES: Final[Mapping[str, Case]] = {
    "basic-response": Case([said("user", "Greet me in three words.")]),
    "assistant-phase": Case(
        [
            said("assistant", "The number was noted.", phase="commentary"),
            said("assistant", "It is four.", phase="final_answer"),
            said("user", "Only the number, please."),
        ]
    ),
    "streaming-response": Case(
        [said("user", "Count to five.")], (is_completed,), more={"stream": True}
    ),
    "system-prompt": Case([said("system", "Speak like a pirate."), said("user", "Greet me.")]),
    "multi-turn": Case(
        [
            said("user", "I am called Alice."),
            said("assistant", "Welcome, Alice."),
            said("user", "How am I called?"),
        ]
    ),
    "compact-response": Case(
        [
            said("user", "We start on Tuesday, and tell support first."),
            said("assistant", "Tuesday it is; support will know before."),
        ],
        (has_output, is_compaction, has_item("compaction")),
        more={"prompt_cache_key": "a-key"},
        path="/v1/responses/compact",
    ),
    "compact-missing-model": Case(
        [said("user", "Sum this up.")],
        (),
        more={"model": None},
        path="/v1/responses/compact",
        status=400,
    ),
    "tool-calling": Case(
        [said("user", "How is the weather in San Francisco?")],
        (has_output, has_item("function_call")),
        more={"tools": [WEATHER], "model": CALLER},
    ),
    "image-input": Case(
        [
            said(
                "user",
                [
                    {"type": "input_text", "text": "What is in this picture?"},
                    {"type": "input_image", "image_url": PICTURE},
                ],
            )
        ],
        status=400,
    ),
}
APART: Final = ("image-input",)
"""What engines of ours cannot do: tests of their own say what is answered, and where they pass."""


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningNode]:
    caller = ("--script", "tool-call", "--model", CALLER, "--itl-ms", "0.2", "--ttft-ms", "1")
    with ExitStack() as stack:
        engines = [
            stack.enter_context(running_simulated(tmp_path_factory.mktemp("engine"), *flags))
            for flags in (ENGINE, caller)
        ]
        workers = [f"grpc://{engine.address}" for engine in engines]
        yield stack.enter_context(running_node(tmp_path_factory.mktemp("node"), workers=workers))


@pytest.fixture
def judge() -> Iterator[Judge]:
    judge = Judge()
    yield judge
    judge.check()


@pytest.fixture
def wire(judge: Judge) -> Iterator[httpx2.Client]:
    with listened(judge) as wire:
        yield wire


def answered(node: RunningNode, wire: httpx2.Client, case: Case) -> tuple[int, dict[str, Any]]:
    """Return the status of an answer, and the object it came to."""
    answer = wire.post(node.url + case.path, json=case.body())
    if not case.body().get("stream"):
        return answer.status_code, answer.json()
    frames = [frame for frame in answer.text.split("\n\n") if frame.startswith("event: ")]
    last = json.loads(frames[-1].partition("\ndata: ")[2])
    assert last["type"] in TERMINAL
    return answer.status_code, last["response"]


def unmet(case: Case, body: dict[str, Any]) -> list[Demand]:
    return [demand for demand in case.demands if not demand(body)]


@pytest.mark.parametrize("name", [name for name in CASES if name not in APART])
def test_the_case_passes(node: RunningNode, wire: httpx2.Client, name: str) -> None:
    case = CASES[name]
    status, body = answered(node, wire, case)
    assert status == case.status, body
    assert unmet(case, body) == []


@pytest.mark.parametrize("name", ["response-output-phase-schema"])
def test_the_schema_knows_phases(node: RunningNode, wire: httpx2.Client, name: str) -> None:
    _, body = answered(node, wire, CASES["basic-response"])
    message = body["output"][0]
    for phase in ("commentary", "final_answer"):
        assert wrong_with("Response", {**body, "output": [{**message, "phase": phase}]}) == []
    assert wrong_with("Response", {**body, "output": [{**message, "phase": "afterthought"}]}) != []


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("name", ["tool-calling"])
def test_calls_are_read_out_of_what_an_engine_prints(
    node: RunningNode, wire: httpx2.Client, name: str, *, streamed: bool
) -> None:
    case = CASES[name]
    case = replace(case, more={**(case.more or {}), "stream": streamed})
    status, body = answered(node, wire, case)
    assert (status, body["status"]) == (200, "completed")
    assert body["tools"] == [{**WEATHER, "strict": None}]
    assert unmet(case, body) == []
    (call,) = [item for item in body["output"] if item["type"] == "function_call"]
    assert call["name"] == "get_weather"
    assert call["call_id"].startswith("call_")
    assert isinstance(json.loads(call["arguments"]), dict)


@pytest.mark.parametrize("name", ["image-input"])
def test_a_picture_for_a_model_that_sees_nothing_is_refused_at_its_place(
    node: RunningNode, wire: httpx2.Client, name: str
) -> None:
    status, body = answered(node, wire, CASES[name])
    assert status == 400
    assert body["error"]["param"] == "input[0].content[1]"
    assert body["error"]["code"] == "unsupported_parameter"
    assert body["error"]["message"] == "the model 'parrot' takes no pictures"


@pytest.fixture(scope="module")
def server() -> Iterator[ChatServer]:
    with running_chat_server() as running:
        yield running


@pytest.fixture(scope="module")
def relayed(server: ChatServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningNode]:
    """A node in front of a worker that reads calls out of what its model says, and takes pictures."""
    with running_node(tmp_path_factory.mktemp("relayed"), workers=[server.url]) as running:
        yield running


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("name", ["tool-calling"])
def test_tool_calling_passes_where_the_worker_reads_calls(
    relayed: RunningNode, wire: httpx2.Client, name: str, *, streamed: bool
) -> None:
    asked = [said("user", "weather of San Francisco?")]
    case = replace(CASES[name], input=asked, more={"tools": [WEATHER], "model": MODEL})
    if streamed:
        case = replace(case, more={**(case.more or {}), "stream": True})
    status, body = answered(relayed, wire, case)
    assert (status, body["status"]) == (200, "completed")
    assert unmet(case, body) == []


@pytest.mark.parametrize("name", ["image-input"])
def test_image_input_passes_where_the_worker_takes_pictures(
    relayed: RunningNode, server: ChatServer, wire: httpx2.Client, name: str
) -> None:
    case = replace(CASES[name], more={"model": MODEL}, status=200)
    status, body = answered(relayed, wire, case)
    assert (status, unmet(case, body)) == (200, [])
    text, picture = server.asked[-1]["messages"][0]["content"]
    assert text == {"type": "text", "text": "What is in this picture?"}
    assert picture["image_url"]["url"] == PICTURE


def test_all_of_them_at_once_are_let_in_and_answered_the_same(
    node: RunningNode, wire: httpx2.Client
) -> None:
    cases = [case for case in CASES.values() for _ in range(2)][:AT_ONCE]
    with ThreadPoolExecutor(AT_ONCE) as threads:
        answers = list(threads.map(lambda case: answered(node, wire, case), cases))
    assert [status for status, _ in answers] == [case.status for case in cases]
