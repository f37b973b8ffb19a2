"""Responses and conversations of one real node with its own store; the official SDK is the judge."""

import json
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest
from openai import OpenAI
from openai.types.responses import Response, ResponseInputItemParam
from openai.types.responses.easy_input_message_param import EasyInputMessageParam

from support.clients.coding_agent import (
    KNOWN_MODEL,
    NEWEST_MODEL,
    NEWEST_SECOND_TURN,
    SECOND_TURN,
    UNKNOWN_MODEL,
)
from support.processes.node import RunningNode, running_node
from support.processes.simulated_engines import Simulated, running_simulated

pytestmark = pytest.mark.integration

CONTEXT = 4_096
WHOLE = {"ignore_eos": True}
"""The engine ends where its prompt's first turn does, unless it is told to go on."""


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Simulated]:
    """An engine that says its prompt again: what the node made of a history can be read in the answer."""
    flags = ("--script", "echo", "--model", "parrot", "--itl-ms", "0.2", "--ttft-ms", "1")
    folder = tmp_path_factory.mktemp("engine")
    with running_simulated(folder, *flags, "--context", str(CONTEXT)) as running:
        yield running


@pytest.fixture(scope="module")
def node(engine: Simulated, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningNode]:
    scratch = tmp_path_factory.mktemp("node")
    with running_node(scratch, workers=[f"grpc://{engine.address}"]) as running:
        yield running


def client_of(node: RunningNode) -> OpenAI:
    return OpenAI(base_url=f"{node.url}/v1", api_key="none", max_retries=0, timeout=60)


@pytest.fixture
def client(node: RunningNode) -> Iterator[OpenAI]:
    with client_of(node) as client:
        yield client


def message(text: str) -> EasyInputMessageParam:
    return {"role": "user", "content": text}


def test_turns_by_predecessor_and_by_conversation_come_from_the_same_prompt(
    client: OpenAI,
) -> None:
    conversation = client.conversations.create(metadata={"topic": "birds"})
    by_chain: list[Response] = []
    by_conversation: list[Response] = []
    for text in ("one", "two", "three"):
        last = by_chain[-1].id if by_chain else None
        by_chain.append(
            client.responses.create(
                model="parrot",
                input=text,
                previous_response_id=last,
                max_output_tokens=300 if text == "three" else 40,
                extra_body=WHOLE,
            )
        )
        by_conversation.append(
            client.responses.create(
                model="parrot",
                input=text,
                conversation=conversation.id,
                max_output_tokens=300 if text == "three" else 40,
                extra_body=WHOLE,
            )
        )
    assert [one.output_text for one in by_chain] == [one.output_text for one in by_conversation]
    assert [one.usage and one.usage.input_tokens for one in by_chain] == [
        one.usage and one.usage.input_tokens for one in by_conversation
    ]
    third = by_chain[2].output_text
    assert third.index("one") < third.index("two") < third.index("three")
    items = client.conversations.items.list(conversation.id, order="asc", limit=4)
    assert [item.type for item in items] == ["message"] * 6
    assert by_conversation[0].conversation is not None
    assert by_conversation[0].conversation.id == conversation.id


def test_what_is_shown_again_is_what_was_streamed(client: OpenAI) -> None:
    with client.responses.stream(model="parrot", input="say it", instructions="be brief") as stream:
        events = list(stream)
        final = stream.get_final_response()
    assert [event.sequence_number for event in events if event.type != "response.output_text.delta"]
    assert events[0].type == "response.created"
    assert events[-1].type == "response.completed"
    kept = client.responses.with_raw_response.retrieve(final.id)
    Response.model_validate(json.loads(kept.text), strict=True)
    shown = kept.parse()
    assert shown.output_text == final.output_text
    assert shown.status == "completed"
    assert shown.usage == final.usage
    assert shown.instructions == "be brief"
    own = client.responses.input_items.list(final.id)
    assert [item.type for item in own] == ["message"]


def test_a_conversation_of_two_thousand_items_keeps_the_newest(client: OpenAI) -> None:
    conversation = client.conversations.create()
    for start in range(0, 2_000, 20):
        rows: list[ResponseInputItemParam] = [
            message(f"number {number}.") for number in range(start, start + 20)
        ]
        client.conversations.items.create(conversation.id, items=rows)
    with pytest.raises(openai.BadRequestError) as found:
        client.responses.create(model="parrot", input="last", conversation=conversation.id)
    assert found.value.code == "context_length_exceeded"
    raw = client.responses.with_raw_response.create(
        model="parrot",
        input="last",
        conversation=conversation.id,
        truncation="auto",
        max_output_tokens=CONTEXT // 2,
        extra_body=WHOLE,
    )
    said = raw.parse().output_text
    used, known = raw.headers["x-smg-history"].partition(";")[0].removeprefix("items=").split("/")
    assert known == "2001"
    assert 10 < int(used) < 1_000
    assert "number 1999." in said
    assert f"number {2_001 - int(used)}." in said
    assert f"number {2_000 - int(used)}." not in said
    tokens = int(raw.headers["x-smg-history"].partition("tokens=")[2])
    # One group more would not have fitted: it has fewer than 40 tokens.
    assert CONTEXT // 2 - 40 < tokens <= CONTEXT // 2
    newest = client.conversations.items.list(conversation.id, limit=3)
    texts = [
        item.content[0].text
        for item in newest.data
        if item.type == "message" and item.content[0].type in ("input_text", "output_text")
    ]
    assert texts == [said, "last", "number 1999."]


def served(client: OpenAI, asked: dict[str, Any], *, streamed: bool) -> tuple[Response, str]:
    """Return a coding agent's response as it ended, and which parameters had no effect."""
    body = {"model": "parrot", **asked, "stream": streamed, "max_output_tokens": 2_000}
    answer = client.post("/responses", cast_to=httpx2.Response, body=body)
    assert answer.status_code == 200
    text = answer.text
    if streamed:
        *_, last, done, _ = text.split("\n\n")
        assert (last.partition(".")[0], done) == ("event: response", "data: [DONE]")
        text = json.dumps(json.loads(last.partition("data: ")[2])["response"])
    made = Response.model_validate(json.loads(text), strict=True)
    assert made.status == ("incomplete" if "ignore_eos" in asked else "completed")
    assert [tool.type for tool in made.tools] == [tool["type"] for tool in asked.get("tools", [])]
    return made, answer.headers["x-smg-ignored-params"]


@pytest.mark.parametrize("streamed", [True, False])
def test_a_coding_agent_is_served_as_it_comes(client: OpenAI, *, streamed: bool) -> None:
    made, ignored = served(client, UNKNOWN_MODEL, streamed=streamed)
    assert ignored == "client_metadata, tools[2].web_search, reasoning.summary"
    assert '"exec_command"' in made.output_text
    assert '"multi_agent_v1__close_agent"' in made.output_text
    assert "multi_agent_v1: Other agents." in made.output_text
    assert "web_search" not in made.output_text


@pytest.mark.parametrize("streamed", [True, False])
def test_a_coding_agents_history_has_the_names_that_its_tools_have(
    client: OpenAI, *, streamed: bool
) -> None:
    # The parrot says the prompt again, so a call in it is called again.
    made, _ = served(client, {**SECOND_TURN, **WHOLE}, streamed=streamed)
    called, *_ = [item for item in made.output if item.type == "function_call"]
    assert (called.namespace, called.name) == ("multi_agent_v1", "close_agent")
    assert called.arguments == '{"target": "worker"}'


@pytest.mark.parametrize("streamed", [True, False])
def test_a_coding_agents_grammar_of_a_patch_is_told_to_the_model(
    client: OpenAI, *, streamed: bool
) -> None:
    made, ignored = served(client, KNOWN_MODEL, streamed=streamed)
    hosted = "tools[2].tool_search, tools[3].web_search"
    assert ignored == f"client_metadata, tools[1].format, {hosted}, reasoning.effort"
    assert "The input must match this grammar (lark)" in made.output_text
    assert "tool_search" not in made.output_text


@pytest.mark.parametrize("streamed", [True, False])
def test_tools_that_a_coding_agent_declares_in_its_input_are_told_and_called(
    client: OpenAI, *, streamed: bool
) -> None:
    made, ignored = served(client, NEWEST_MODEL, streamed=streamed)
    assert ignored == "client_metadata, input[0].tools[0].tools[0].format, reasoning.effort"
    for name in ("functions__exec", "functions__wait", "collaboration__spawn_agent"):
        assert f'"{name}"' in made.output_text
    again = {**NEWEST_SECOND_TURN, **WHOLE, "parallel_tool_calls": True}
    made, _ = served(client, again, streamed=streamed)
    called, *_ = [item for item in made.output if item.type == "custom_tool_call"]
    assert (called.namespace, called.name) == ("functions", "exec")
    assert called.input == "text(1+1)"


def test_what_is_not_stored_or_deleted_cannot_be_continued(client: OpenAI) -> None:
    quiet = client.responses.create(model="parrot", input="a", store=False)
    assert quiet.to_dict()["store"] is False
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(quiet.id)
    first = client.responses.create(model="parrot", input="a")
    second = client.responses.create(model="parrot", input="b", previous_response_id=first.id)
    client.responses.delete(first.id)
    for predecessor, missing in ((quiet.id, quiet.id), (second.id, first.id)):
        with pytest.raises(openai.BadRequestError) as found:
            client.responses.create(model="parrot", input="c", previous_response_id=predecessor)
        assert found.value.code == "previous_response_not_found"
        assert missing in found.value.message
    assert client.responses.retrieve(second.id).status == "completed"


def test_tokens_are_counted_as_a_real_call_reports_them(client: OpenAI) -> None:
    first = client.responses.create(model="parrot", input="a few words", instructions="be brief")
    counted = client.responses.input_tokens.count(
        model="parrot", input="and more", previous_response_id=first.id
    )
    real = client.responses.create(model="parrot", input="and more", previous_response_id=first.id)
    assert real.usage is not None
    assert counted.input_tokens == real.usage.input_tokens


def test_a_history_is_compacted_and_carried_on(client: OpenAI) -> None:
    first = client.responses.create(model="parrot", input="remember the parrot")
    short = client.responses.with_raw_response.compact(
        model="parrot", previous_response_id=first.id
    )
    assert short.parse().object == "response.compaction"
    carried = json.loads(short.text)["output"]
    assert [item["type"] for item in carried] == ["message", "compaction"]
    answer = client.responses.create(
        model="parrot",
        input=[*carried, message("go on")],
        store=False,
        max_output_tokens=60,
        extra_body=WHOLE,
    )
    # The parrot's summary is its prompt again, and stands after the question that was kept.
    assert answer.output_text.count("remember the parrot") >= 2


def test_responses_at_once_on_one_conversation_are_all_kept_and_never_mixed(
    client: OpenAI,
) -> None:
    conversation = client.conversations.create()

    def one(number: int) -> Response:
        return client.responses.create(
            model="parrot",
            input=[message(f"a{number}"), message(f"b{number}")],
            conversation=conversation.id,
            max_output_tokens=8,
        )

    with ThreadPoolExecutor(6) as threads:
        answers = list(threads.map(one, range(12)))
    items = list(client.conversations.items.list(conversation.id, order="asc", limit=7))
    assert len(items) == 36
    outputs = {one.output[0].id: one for one in answers}
    for at in range(0, 36, 3):
        asked = client.responses.input_items.list(outputs[items[at + 2].id].id, order="asc")
        assert [row.id for row in asked] == [items[at].id, items[at + 1].id]


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"model": "nobody", "input": "a"}, 404, "model_not_found"),
        ({"model": "parrot"}, 400, "missing_required_parameter"),
        ({"model": "parrot", "input": "a", "conversation": "conv_none"}, 404, "conversation_not_found"),
        ({"model": "parrot", "input": "a", "background": True, "store": False}, 400, "invalid_value"),
        ({"model": "parrot", "input": "w " * 9_000}, 400, "context_length_exceeded"),
        ({"model": "parrot", "input": [{"type": "function_call_output", "call_id": "c", "output": "1"}]}, 400, "invalid_value"),
    ],
)  # fmt: skip
def test_refusals_have_their_status_and_code(
    client: OpenAI, body: dict[str, object], status: int, code: str
) -> None:
    with pytest.raises(openai.APIStatusError) as found:
        client.post("/responses", body=body, cast_to=object)
    assert (found.value.status_code, found.value.code) == (status, code)


def test_tenants_see_nothing_of_each_other(engine: Simulated, tmp_path: Path) -> None:
    workers = [f"grpc://{engine.address}"]
    with running_node(tmp_path, workers=workers) as node, client_of(node) as anyone:

        def key(client: OpenAI, **wish: str) -> OpenAI:
            made = client.with_options(base_url=node.url).post(
                "/v1/cluster/keys", body=wish, cast_to=dict[str, str]
            )
            return client.with_options(api_key=str(made["key"]))

        admin = key(anyone, role="admin")
        acme, other = key(admin, tenant="acme"), key(admin, tenant="other")
        mine = acme.responses.create(model="parrot", input="mine")
        room = acme.conversations.create(items=[message("mine")])
        with pytest.raises(openai.NotFoundError):
            other.responses.retrieve(mine.id)
        with pytest.raises(openai.NotFoundError):
            other.conversations.items.list(room.id)
        with pytest.raises(openai.BadRequestError):
            other.responses.create(model="parrot", input="x", previous_response_id=mine.id)
        assert acme.responses.retrieve(mine.id).output_text == mine.output_text
        with pytest.raises(openai.AuthenticationError):
            anyone.responses.create(model="parrot", input="x")


def test_what_was_acknowledged_is_there_after_the_node_was_killed(
    engine: Simulated, tmp_path: Path
) -> None:
    workers = [f"grpc://{engine.address}"]
    with running_node(tmp_path, workers=workers) as node, client_of(node) as client:
        made = client.responses.create(model="parrot", input="keep me")
        node.process.signal(signal.SIGKILL)
        node.process.wait(10)
    with running_node(tmp_path, workers=workers) as node, client_of(node) as client:
        assert client.responses.retrieve(made.id) == made
        more = client.responses.create(
            model="parrot",
            input="go on",
            previous_response_id=made.id,
            max_output_tokens=40,
            extra_body=WHOLE,
        )
        assert more.output_text.count("keep me") == 2
