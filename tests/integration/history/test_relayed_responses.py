"""Responses of a model that only a server of Chat Completions serves: a real node, the official client, its judge."""

import time
from collections.abc import Iterator
from typing import Any

import httpx2
import openai
import pytest
from openai import OpenAI
from openai.types.responses import Response, ResponseFunctionToolCall
from pydantic import BaseModel

from support.clients.agent_session import WEATHER
from support.clients.client_judge import Judge, client_of, listened
from support.engines.chat_server import MODEL, ChatServer, running_chat_server
from support.processes.node import RunningNode, running_node

pytestmark = pytest.mark.integration

_WAIT_S = 60.0


@pytest.fixture(scope="module")
def server() -> Iterator[ChatServer]:
    with running_chat_server() as running:
        yield running


@pytest.fixture(scope="module")
def node(server: ChatServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningNode]:
    with running_node(tmp_path_factory.mktemp("node"), workers=[server.url]) as running:
        yield running


@pytest.fixture
def client(node: RunningNode) -> Iterator[OpenAI]:
    judge = Judge()
    with listened(judge) as wire:
        yield client_of(node.url, wire)
    judge.check()


def text_of(response: Response) -> str:
    return response.output_text.strip()


def ask(client: OpenAI, asked: Any, **more: Any) -> Response:
    response: Response = client.responses.create(model=MODEL, input=asked, **more)
    return response


def test_a_chain_and_a_conversation_bring_the_same_turns_to_mind(client: OpenAI) -> None:
    first = ask(client, "one", instructions="be brief")
    assert text_of(first) == "system: be brief | user: one"
    assert first.usage is not None
    assert (first.usage.input_tokens, first.usage.output_tokens) == (11, 7)
    assert first.usage.input_tokens_details.cached_tokens == 4
    second = ask(client, "two", previous_response_id=first.id)
    room = client.conversations.create()
    ask(client, "one", conversation=room.id)
    said = ask(client, "two", conversation=room.id)
    # The instructions of one response are not those of the next; what it answered then is.
    assert text_of(said) == "user: one | assistant: user: one  | user: two"
    assert text_of(second).endswith("| user: two")
    assert text_of(second).startswith("user: one | assistant: system: be brief")
    assert client.responses.retrieve(second.id).output == second.output
    assert len(client.conversations.items.list(room.id).data) == 4


def test_a_streamed_answer_adds_up_to_the_whole_one(client: OpenAI) -> None:
    with client.responses.stream(model=MODEL, input="hello there") as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_response()
    assert text_of(final) == "user: hello there"
    assert kinds.count("response.output_text.delta") == 3
    assert kinds[-1] == "response.completed"
    assert client.responses.retrieve(final.id).output_text == final.output_text


@pytest.mark.parametrize("streamed", [False, True])
def test_a_function_is_called_and_its_result_told(
    client: OpenAI, server: ChatServer, *, streamed: bool
) -> None:
    tools: list[Any] = [WEATHER]
    if streamed:
        with client.responses.stream(model=MODEL, input="weather", tools=tools) as stream:
            asked: Any = stream.get_final_response()
    else:
        asked = ask(client, "weather", tools=tools)
    thought, called = asked.output
    assert thought.type == "reasoning"
    assert isinstance(called, ResponseFunctionToolCall)
    assert (called.name, called.arguments) == ("weather", '{"city":"Paris"}')
    result = {"type": "function_call_output", "call_id": called.call_id, "output": "raining"}
    told = ask(client, [result], previous_response_id=asked.id, tools=tools)
    assert text_of(told) == "It is raining."
    _, shown, _ = server.asked[-1]["messages"]
    assert shown["reasoning_content"] == "I must look."
    assert shown["tool_calls"][0]["id"] == called.call_id == "call_0"
    again = ask(client, "weather", previous_response_id=told.id, tools=tools)
    [other] = [one for one in again.output if isinstance(one, ResponseFunctionToolCall)]
    assert other.call_id != called.call_id


@pytest.mark.parametrize("streamed", [False, True])
def test_a_function_of_a_namespace_is_called_by_its_two_names(
    client: OpenAI, server: ChatServer, *, streamed: bool
) -> None:
    space = {"type": "namespace", "name": "sky", "description": "Above.", "tools": [WEATHER]}
    tools: list[Any] = [space, {"type": "web_search"}]
    if streamed:
        with client.responses.stream(model=MODEL, input="weather", tools=tools) as stream:
            asked: Any = stream.get_final_response()
    else:
        asked = ask(client, "weather", tools=tools)
    _, called = asked.output
    assert isinstance(called, ResponseFunctionToolCall)
    assert (called.namespace, called.name) == ("sky", "weather")
    assert [tool["function"]["name"] for tool in server.asked[-1]["tools"]] == ["sky__weather"]
    result = {"type": "function_call_output", "call_id": called.call_id, "output": "raining"}
    told = ask(client, [result], previous_response_id=asked.id, tools=tools)
    assert text_of(told) == "It is raining."
    _, shown, _ = server.asked[-1]["messages"]
    assert shown["tool_calls"][0]["function"]["name"] == "sky__weather"


class City(BaseModel):
    name: str


def test_what_is_wished_is_in_the_body(client: OpenAI, server: ChatServer) -> None:
    image = {"type": "input_image", "image_url": "data:image/png;base64,QUJD", "detail": "auto"}
    part = {"type": "input_text", "text": "look"}
    form: Any = {"type": "json_schema", "name": "city", "schema": City.model_json_schema()}
    ask(
        client,
        [{"role": "user", "content": [part, image]}],
        max_output_tokens=9,
        temperature=0.5,
        text={"format": form},
        extra_body={"top_k": 3},
    )
    body = server.asked[-1]
    assert (body["model"], body["max_tokens"], body["temperature"]) == (MODEL, 9, 0.5)
    assert body["top_k"] == 3
    assert body["response_format"]["json_schema"]["schema"] == City.model_json_schema()
    assert body["messages"][0]["content"][1]["image_url"]["url"].startswith("data:image/png")


def final_of(client: OpenAI, response_id: str) -> Response:
    until = time.monotonic() + _WAIT_S
    while (shown := client.responses.retrieve(response_id)).status in ("queued", "in_progress"):
        assert time.monotonic() < until
        time.sleep(0.05)
    return shown


def test_a_response_is_made_in_the_background_and_can_be_cancelled(
    client: OpenAI, server: ChatServer
) -> None:
    made = ask(client, "hello", background=True)
    assert made.status in ("queued", "in_progress")
    final = final_of(client, made.id)
    assert (final.status, text_of(final)) == ("completed", "user: hello")
    slow = ask(client, "slow", background=True)
    while client.responses.retrieve(slow.id).output_text == "":
        time.sleep(0.02)
    ended = client.responses.cancel(slow.id)
    assert (ended.status, ended.output_text.startswith("on ")) == ("cancelled", True)
    until = time.monotonic() + _WAIT_S
    while server.cut == 0 and time.monotonic() < until:
        time.sleep(0.02)
    assert server.cut == 1


def test_what_goes_wrong_there_is_told(client: OpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match="it is not polite") as refused:
        ask(client, "refuse")
    assert refused.value.code == "upstream_refused"
    with pytest.raises(openai.InternalServerError):
        ask(client, "break")
    with client.responses.stream(model=MODEL, input="break") as stream:
        last = list(stream)[-1]
    assert last.type == "response.failed"
    assert [item.status for item in last.response.output if item.type == "message"] == [
        "incomplete"
    ]


def test_whoever_wants_tokens_counted_is_told_that_nobody_can(
    client: OpenAI, node: RunningNode
) -> None:
    with pytest.raises(openai.BadRequestError, match="cannot be counted") as found:
        ask(client, "one", truncation="auto")
    assert found.value.param == "truncation"
    with pytest.raises(openai.BadRequestError, match="cannot be counted") as found:
        client.responses.input_tokens.count(model=MODEL, input="one")
    assert found.value.param == "model"
    assert text_of(ask(client, "one", truncation="disabled")) == "user: one"


def test_a_history_is_summed_up_and_gone_on_from(client: OpenAI) -> None:
    compacted = client.responses.compact(model=MODEL, input="my name is Ada")
    carried: Any = [one.model_dump(exclude_none=True, warnings=False) for one in compacted.output]
    told = ask(client, [*carried, {"role": "user", "content": "go on"}])
    assert "my name is Ada" in text_of(told)


def test_metrics_and_headers_say_who_answered(node: RunningNode) -> None:
    body = {"model": MODEL, "input": "hi"}
    answer = httpx2.post(f"{node.url}/v1/responses", json=body, timeout=_WAIT_S)
    assert answer.headers["x-smg-history"] == "items=1/1"
    assert answer.headers["x-smg-routed-worker-id"]
    assert node.metric("smg_node_generations_total", dialect="responses", outcome="ok") > 0
