"""Items of a session: their order, their references, and prompts that are those of Responses for the same items."""

from typing import Any

import msgspec
import pytest

from smg_node.core.generation.request import ChatPrompt, GenerateRequest
from smg_node.dialects.options import ReaderOptions
from smg_node.dialects.realtime.effects import Start
from smg_node.dialects.realtime.session_options import SessionOptions
from smg_node.dialects.responses.request.generate_request import generate_request
from smg_node.dialects.responses.request.reader import ResponsesReader
from support.answers.generations import BEGIN, call, text, thought, whole
from support.answers.realtime_client import MODEL, RealtimeClient, error_of, types, user

TOOL = {
    "type": "function",
    "name": "look_up",
    "description": "Looks.",
    "parameters": {"type": "object", "properties": {"q": {"type": "string"}}},
}
IMAGE = {"type": "input_image", "image_url": "data:image/png;base64,AA==", "detail": "low"}
CALL = {"type": "function_call", "call_id": "c1", "name": "look_up", "arguments": '{"q":"x"}'}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "42"}
SYSTEM = {
    "type": "message",
    "role": "system",
    "content": [{"type": "input_text", "text": "The user is in a hurry."}],
}
ASSISTANT = {
    "type": "message",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "well"}],
}
SEEN = {"type": "message", "role": "user", "content": [IMAGE, {"type": "input_text", "text": "?"}]}


def create(client: RealtimeClient, item: dict[str, Any], **fields: Any) -> list[dict[str, Any]]:
    return client.send("conversation.item.create", item=item, **fields)


def request_of(start: Start) -> GenerateRequest:
    return generate_request(start.ask, (*start.history, *start.ask.items))


def prompt_of(start: Start) -> ChatPrompt:
    prompt = request_of(start).prompts[0]
    assert isinstance(prompt, ChatPrompt)
    return prompt


def responses_request(body: dict[str, Any]) -> GenerateRequest:
    ask = ResponsesReader(ReaderOptions()).read({"model": MODEL, "stream": True, **body})
    return generate_request(ask, ask.items)


def like_responses(request: GenerateRequest) -> GenerateRequest:
    """Return a request as Responses makes it, but for where the client spelled what."""
    prompt = request.prompts[0]
    assert isinstance(prompt, ChatPrompt)
    turns = tuple(
        msgspec.structs.replace(turn, content=tuple(map(_nowhere, turn.content)))
        if isinstance(turn.content, tuple)
        else turn
        for turn in prompt.turns
    )
    bare = msgspec.structs.replace(prompt, turns=turns)
    return msgspec.structs.replace(request, prompts=(bare,), routing_key=None)


def _nowhere(part: Any) -> Any:
    return msgspec.structs.replace(part, where="") if hasattr(part, "where") else part


# ── Order ────────────────────────────────────────────────────────────────────


def test_an_item_goes_behind_the_one_that_is_named() -> None:
    client = RealtimeClient()
    for item_id, fields in (
        ("b", {}),
        ("d", {}),
        ("c", {"previous_item_id": "b"}),
        ("a", {"previous_item_id": "root"}),
        ("e", {"previous_item_id": None}),
    ):
        told = create(client, user(item_id, id=item_id), **fields)
        assert types(told) == ["conversation.item.added", "conversation.item.done"]
        assert told[0]["item"] == told[1]["item"]
    assert client.order == ["a", "b", "c", "d", "e"]
    said = [turn.content for turn in prompt_of(client.ask()).turns]
    assert said == ["a", "b", "c", "d", "e"]


def test_an_unknown_predecessor_adds_nothing() -> None:
    client = RealtimeClient()
    told = create(client, user("hi"), previous_item_id="nope", event_id="e")
    assert error_of(told) == ("item_not_found", "previous_item_id", "e")
    assert client.ask().history == ()


def test_an_id_may_come_again_once_its_item_is_gone() -> None:
    client = RealtimeClient()
    client.say("old", id="same-id_1")
    told = create(client, user("new", id="same-id_1"), event_id="e")
    assert error_of(told) == ("invalid_value", "item.id", "e")
    told = client.send("conversation.item.delete", item_id="same-id_1")
    assert (types(told), told[0]["item_id"]) == (["conversation.item.deleted"], "same-id_1")
    client.say("new", id="same-id_1")
    assert [turn.content for turn in prompt_of(client.ask()).turns] == ["new"]


def test_what_is_being_said_cannot_be_deleted() -> None:
    client = RealtimeClient()
    start = client.ask()
    told = client.feed(start.response_id, [BEGIN, *text("ha")[:2]])
    item_id = told[1]["item"]["id"]
    told = client.send("conversation.item.delete", item_id=item_id, event_id="e")
    assert error_of(told) == ("item_in_use", "item_id", "e")
    told = client.send(
        "response.create",
        response={"conversation": "none", "input": [{"type": "item_reference", "id": item_id}]},
    )
    assert error_of(told) == ("item_in_use", "response.input[0].id", None)
    client.send("response.cancel")
    assert types(client.send("conversation.item.delete", item_id=item_id)) == [
        "conversation.item.deleted"
    ]


def test_an_item_put_before_one_that_is_being_said_is_its_predecessor_when_it_is_done() -> None:
    client = RealtimeClient()
    first = client.say("hi")
    start = client.ask()
    client.feed(start.response_id, [BEGIN, *text("ha")[:2]])
    between = client.say("wait", id="between")
    client.send("conversation.item.delete", item_id="between")
    create(client, user("wait", id="between"), previous_item_id=first)
    told = client.send("response.cancel")
    done = next(one for one in told if one["type"] == "conversation.item.done")
    assert done["previous_item_id"] == between


def test_items_are_retrieved_as_they_are() -> None:
    client = RealtimeClient()
    item_id = client.say("hi")
    told = client.send("conversation.item.retrieve", item_id=item_id)
    assert types(told) == ["conversation.item.retrieved"]
    assert told[0]["item"] == client.events[-2]["item"]
    told = client.send("conversation.item.retrieve", item_id="nope", event_id="e")
    assert error_of(told) == ("item_not_found", "item_id", "e")
    told = client.send("conversation.item.delete", item_id="nope")
    assert error_of(told) == ("item_not_found", "item_id", None)
    told = client.send("conversation.item.retrieve")
    assert error_of(told) == ("missing_required_parameter", "item_id", None)


def test_what_is_being_said_is_retrieved_as_far_as_it_is_said() -> None:
    client = RealtimeClient()
    told = client.feed(client.ask().response_id, [BEGIN, *text("ha", "lf")[:3]])
    item_id = told[1]["item"]["id"]
    item = client.send("conversation.item.retrieve", item_id=item_id)[0]["item"]
    assert item["status"] == "in_progress"
    assert item["content"] == [{"type": "output_text", "text": "half"}]


def test_a_full_conversation_takes_no_more() -> None:
    client = RealtimeClient(SessionOptions(items_max=2))
    client.say("a")
    client.say("b")
    code = "conversation_too_long"
    assert error_of(create(client, user("c")))[0] == code
    assert error_of(client.send("response.create"))[0] == code
    assert isinstance(client.ask(response={"conversation": "none"}), Start)
    heavy = RealtimeClient(SessionOptions(items_bytes_max=400))
    heavy.say("a")
    assert error_of(create(heavy, user("b" * 300)))[0] == code
    heavy.say("b")


# ── What an item may be ──────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("item", "code", "param"),
    [
        ({}, "missing_required_parameter", "item.type"),
        ({"type": "reasoning"}, "unsupported_item_type", "item.type"),
        ({"type": "custom_tool_call"}, "unsupported_item_type", "item.type"),
        ({"type": "mcp_call"}, "unsupported_item_type", "item.type"),
        ({"type": "message", "content": []}, "missing_required_parameter", "item.role"),
        (user("a", role="developer"), "invalid_value", "item.role"),
        (user("a", content=[]), "invalid_value", "item.content"),
        (user("a", content="a"), "invalid_type", "item.content"),
        (user("a", content=["a"]), "invalid_type", "item.content[0]"),
        (user("a", content=[{"type": "text"}]), "invalid_value", "item.content[0].type"),
        (
            user("a", content=[{"type": "input_text"}]),
            "missing_required_parameter",
            "item.content[0].text",
        ),
        (
            user("a", content=[{"type": "input_audio", "audio": "AAAA"}]),
            "invalid_value",
            "item.content[0]",
        ),
        (
            user("a", content=[{**IMAGE, "image_url": "https://a/b.png"}]),
            "invalid_value",
            "item.content[0].image_url",
        ),
        ({**SYSTEM, "content": [IMAGE]}, "invalid_value", "item.content[0].type"),
        (user("a", id="a b"), "invalid_value", "item.id"),
        (user("a", id="root"), "invalid_value", "item.id"),
        (user("a", id="a" * 65), "invalid_value", "item.id"),
        (user("a", status="gone"), "invalid_value", "item.status"),
        ({**CALL, "name": None}, "missing_required_parameter", "item.name"),
        ({**CALL, "arguments": {}}, "invalid_type", "item.arguments"),
        ({**OUTPUT, "output": [IMAGE]}, "invalid_type", "item.output"),
        ({**OUTPUT, "call_id": "other"}, "invalid_value", "item.call_id"),
    ],
)
def test_what_is_wrong_with_an_item_is_named(item: dict[str, Any], code: str, param: str) -> None:
    client = RealtimeClient()
    create(client, CALL)
    assert error_of(create(client, item, event_id="e")) == (code, param, "e")
    assert len(client.order) == 1


def test_a_call_without_an_id_gets_one() -> None:
    client = RealtimeClient()
    told = create(client, {key: CALL[key] for key in ("type", "name", "arguments")})
    call_id = told[0]["item"]["call_id"]
    assert call_id.startswith("call_")
    assert types(create(client, {**OUTPUT, "call_id": call_id}))[0] == "conversation.item.added"


def test_sound_is_known_by_its_words() -> None:
    client = RealtimeClient()
    heard = {"type": "input_audio", "audio": "AAAA", "transcript": "hello"}
    told = create(client, user("", content=[heard]))
    assert told[0]["item"]["content"] == [{"type": "input_audio", "transcript": "hello"}]
    said = {"type": "output_audio", "transcript": "hi"}
    create(client, {**ASSISTANT, "content": [said]})
    assert [turn.content for turn in prompt_of(client.ask()).turns] == ["hello", "hi"]


def test_an_output_stands_behind_its_call() -> None:
    client = RealtimeClient()
    create(client, {**CALL, "id": "call"})
    told = create(client, OUTPUT, previous_item_id="root")
    assert error_of(told) == ("invalid_value", "item.call_id", None)
    create(client, OUTPUT)
    client.send("conversation.item.delete", item_id="call")
    told = client.send("response.create", event_id="e")
    assert error_of(told) == ("invalid_value", None, "e")


# ── Prompts ──────────────────────────────────────────────────────────────────

ALL = [SYSTEM, user("one"), ASSISTANT, user("two"), CALL, OUTPUT, SEEN]


def named(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**item, "id": f"item_{number}"} for number, item in enumerate(items)]


SESSION = {
    "instructions": "Be brief.",
    "tools": [TOOL],
    "tool_choice": {"type": "function", "name": "look_up"},
    "parallel_tool_calls": False,
    "max_output_tokens": 77,
    "temperature": 0.5,
    "top_p": 0.9,
}


def test_a_prompt_is_that_of_responses() -> None:
    client = RealtimeClient()
    client.send("session.update", session={"type": "realtime", **SESSION})
    for item in named(ALL):
        create(client, item)
    made = like_responses(request_of(client.ask()))
    assert made == like_responses(responses_request({**SESSION, "input": named(ALL)}))


def test_what_an_answer_overrides_is_that_of_responses() -> None:
    client = RealtimeClient()
    client.send("session.update", session={"type": "realtime", **SESSION})
    for item in named(ALL):
        create(client, item)
    over = {"instructions": "", "tools": [], "tool_choice": "none", "max_output_tokens": 5}
    wish = {**over, "conversation": "none", "output_modalities": ["text"]}
    made = like_responses(request_of(client.ask(response=wish)))
    body = {**SESSION, **over, "input": named(ALL)}
    assert made == like_responses(responses_request(body))
    # It was for that answer only.
    assert client.ask().ask.instructions == "Be brief."


def test_the_status_that_a_client_gives_has_no_effect() -> None:
    client = RealtimeClient()
    items = named([user("one", status="in_progress"), {**CALL, "status": "incomplete"}, OUTPUT])
    for item in items:
        assert types(create(client, item))[0] == "conversation.item.added"
    made = like_responses(request_of(client.ask()))
    assert made == like_responses(responses_request({"input": items}))


def test_an_input_of_references_and_items_is_that_of_responses() -> None:
    client = RealtimeClient()
    for item in named(ALL):
        create(client, item)
    client.send("conversation.item.delete", item_id="item_2")
    create(client, {**user("again"), "id": "item_2"}, previous_item_id="item_0")
    rows = [{"type": "item_reference", "id": "item_2"}, user("and", id="item_9"), CALL, OUTPUT]
    start = client.ask(response={"input": rows})
    assert start.history == ()
    given = [user("again", id="item_2"), *rows[1:]]
    made = like_responses(request_of(start))
    assert made == like_responses(responses_request({"input": given}))
    assert client.order[:2] == ["item_0", "item_2"]


def test_an_empty_input_leaves_the_instructions_only() -> None:
    client = RealtimeClient()
    client.say("hi")
    start = client.ask(response={"input": [], "instructions": "Greet."})
    assert [(turn.role, turn.content) for turn in prompt_of(start).turns] == [("system", "Greet.")]


def test_an_input_is_not_part_of_the_conversation() -> None:
    client = RealtimeClient()
    start = client.ask(response={"input": [user("beside")]})
    client.feed(start.response_id, whole(text("ok")))
    assert [turn.content for turn in prompt_of(client.ask()).turns] == ["ok"]


@pytest.mark.parametrize(
    ("rows", "code", "param"),
    [
        ([{"type": "item_reference", "id": "x"}], "item_not_found", "response.input[0].id"),
        ([{"type": "item_reference"}], "missing_required_parameter", "response.input[0].id"),
        ([user("a"), 5], "invalid_type", "response.input[1]"),
        ([OUTPUT], "invalid_value", "response.input"),
        ({}, "invalid_type", "response.input"),
    ],
)
def test_what_is_wrong_with_an_input_is_named(rows: Any, code: str, param: str) -> None:
    client = RealtimeClient()
    told = client.send("response.create", response={"input": rows}, event_id="e")
    assert error_of(told) == (code, param, "e")
    assert client.session.running == ()


def test_thoughts_are_rendered_in_their_own_turn_only() -> None:
    client = RealtimeClient()
    client.say("hi")
    start = client.ask()
    events = whole(thought("hm"), call("{}", block=1, call_id="c1"), reason="tool_calls")
    client.feed(start.response_id, events)
    create(client, OUTPUT)
    start = client.ask()
    turns = prompt_of(start).turns
    assert [turn.role for turn in turns] == ["user", "assistant", "tool"]
    assert turns[1].reasoning == "hm"
    client.feed(start.response_id, whole(text("42")))
    client.say("thanks")
    assert all(turn.reasoning is None for turn in prompt_of(client.ask()).turns)


# ── Too long ─────────────────────────────────────────────────────────────────


def test_what_was_left_out_stays_out_of_prompts_and_in_the_conversation() -> None:
    client = RealtimeClient()
    create(client, user("old", id="old"))
    create(client, {**CALL, "id": "call"})
    create(client, user("new", id="new"))
    start = client.ask()
    client.session.left_out(start.response_id, [0, 1])
    client.feed(start.response_id, whole(text("ok")))
    # The output of a call that went comes too late for any prompt.
    create(client, OUTPUT)
    assert [turn.content for turn in prompt_of(client.ask()).turns] == ["new", "ok"]
    assert types(client.send("conversation.item.retrieve", item_id="old")) == [
        "conversation.item.retrieved"
    ]
    client.session.left_out("resp_unknown", [0])
