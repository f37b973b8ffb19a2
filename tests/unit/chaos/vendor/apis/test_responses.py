"""Responses of stand-ins: framings, items that belong together, and what is kept."""

from typing import Any

import pytest

from support.providers.stand_ins import Desk, sse

PATH = "/v1/responses"
TOOLS: Any = [{"type": "function", "name": "clock", "parameters": {"type": "object"}}]
CALL: Any = {"type": "function_call", "call_id": "c1", "name": "clock", "arguments": "{}"}
OUTPUT: Any = {"type": "function_call_output", "call_id": "c1", "output": "noon"}
USER: Any = {"role": "user", "content": "q"}


def asked(given: Any = "hello", **fields: Any) -> Any:
    return {"model": "gpt-4.1-mini", "input": given, **fields}


def names(stream: bytes) -> list[str]:
    return [event["type"] for event in sse(stream) if event != "[DONE]"]


def test_a_stream_has_no_done_and_numbers_its_events() -> None:
    stream = Desk("openai").streamed(PATH, asked("words=2", stream=True))
    events = sse(stream)
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert [event["type"].removeprefix("response.") for event in events] == [
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]
    assert stream.startswith(b"event: response.created\ndata: {")


def test_mantle_writes_data_first_and_openrouter_no_names_but_done() -> None:
    body = asked(model="openai.gpt-oss-120b", stream=True)
    mantle = Desk("mantle").streamed("/openai/v1/responses", body)
    assert mantle.startswith(b'data: {"type":"response.created"')
    assert b"\nevent: response.created\n\n" in mantle
    router = Desk("openai_like", quirks=("openrouter",)).streamed(
        PATH, asked(model="model-large", stream=True)
    )
    assert b"event:" not in router
    assert sse(router)[-1] == "[DONE]"


@pytest.mark.parametrize(
    ("text", "most", "status", "why", "last"),
    [
        ("hello", None, "completed", None, "response.completed"),
        ("words=40", 16, "incomplete", "max_output_tokens", "response.incomplete"),
        ("filter", None, "incomplete", "content_filter", "response.incomplete"),
    ],
)
def test_the_end_says_whether_it_is_whole(
    text: str, most: int | None, status: str, why: str | None, last: str
) -> None:
    body = asked(text, max_output_tokens=most)
    whole = Desk("openai").told(PATH, body)
    assert whole["status"] == status
    assert (whole["incomplete_details"] or {}).get("reason") == why
    assert names(Desk("openai").streamed(PATH, {**body, "stream": True}))[-1] == last


def test_a_refusal_is_a_part_of_its_own() -> None:
    [message] = Desk("openai").told(PATH, asked("refuse"))["output"]
    assert message["content"] == [{"type": "refusal", "refusal": "I will not help with that."}]
    stream = names(Desk("openai").streamed(PATH, asked("refuse", stream=True)))
    assert "response.refusal.delta" in stream


def test_azure_tells_filters_in_the_object_and_xai_leaves_reasoning_out_of_the_output() -> None:
    azure = Desk("azure").told("/openai/v1/responses", asked())
    assert azure["content_filters"] == [{"blocked": False, "source": "prompt"}]
    usage = Desk("xai").told(PATH, asked(model="grok-4.5"))["usage"]
    assert (usage["output_tokens"], usage["output_tokens_details"]["reasoning_tokens"]) == (4, 4)
    assert usage["total_tokens"] == usage["input_tokens"] + 8


REFUSED: list[tuple[Any, str]] = [
    ({"input": None}, "Missing required parameter: 'input'"),
    ({"messages": []}, "Unknown parameter: 'messages'"),
    ({"max_output_tokens": 8}, "Expected a value >= 16, but got 8"),
    ({"input": [{"role": "robot", "content": "x"}]}, "Invalid value: 'robot'"),
    ({"input": [USER, OUTPUT]}, "No tool call found for function call output with call_id c1"),
    ({"input": [USER, CALL]}, "No tool output found for function call c1"),
    ({"input": [USER, {**CALL, "arguments": {}}]}, "input[1].arguments"),
    ({"input": [USER, {**CALL, "call_id": ""}]}, "input[1].call_id"),
    ({"tools": [{"type": "lathe"}]}, "Invalid value: 'lathe'"),
    ({"tools": TOOLS, "tool_choice": {"type": "function", "name": "x"}}, "'x' not found"),
    ({"text": {"format": {"type": "json_schema"}}}, "text.format.schema"),
    ({"input": [{"type": "reasoning", "id": "rs_none", "summary": []}, CALL, OUTPUT]}, "'rs_none' not found"),
    ({"previous_response_id": "resp_none"}, "'resp_none' not found"),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "words"), REFUSED)
def test_what_openai_refuses_is_refused(fields: Any, words: str) -> None:
    status, error = Desk("openai").refused(
        PATH, asked(**{"given": "x"} | fields) if "given" in fields else {**asked(), **fields}
    )
    assert status in (400, 404)
    assert words in error["error"]["message"]


def thought_and_call(desk: Desk, model: str, **fields: Any) -> tuple[Any, Any]:
    """Return the reasoning and the call of an answer that has both."""
    body = asked("call clock", model=model, tools=TOOLS, store=False, **fields)
    body["include"] = ["reasoning.encrypted_content"]
    thought, call = desk.told(PATH, body)["output"]
    return thought, call


@pytest.mark.parametrize(("kind", "model"), [("openai", "gpt-5.6"), ("xai", "grok-4.5")])
def test_encrypted_reasoning_is_known_at_its_account_only(kind: str, model: str) -> None:
    thought, call = thought_and_call(Desk(kind), model)
    output = {**OUTPUT, "call_id": call["call_id"]}
    body = asked([USER, thought, call, output], model=model, tools=TOOLS, store=False)
    assert Desk(kind).ask(PATH, body).status == 200
    status, error = Desk(kind, account="another").refused(PATH, body)
    assert status == 400
    assert "could not be verified" in str(error)
    assert Desk(kind, seal_key="another").ask(PATH, body).status == 400


def test_a_call_that_came_without_its_ids_is_let_pass_unless_it_is_strict() -> None:
    body = asked([USER, CALL, OUTPUT], model="gpt-5.6", tools=TOOLS)
    assert Desk("openai").ask(PATH, body).status == 200
    status, error = Desk("openai", strict=True).refused(PATH, body)
    assert (status, error["error"]["code"]) == (400, "invalid_encrypted_content")


def test_nothing_is_kept_of_what_is_not_to_be_stored() -> None:
    desk = Desk("openai")
    kept, gone = (desk.told(PATH, asked(store=store))["id"] for store in (True, False))
    # The same question has the same id: ask another one.
    other = desk.told(PATH, asked("another", store=False))["id"]
    assert kept != gone != other
    assert desk.told(f"{PATH}/{kept}")["id"] == kept
    assert desk.refused(f"{PATH}/{other}")[0] == 404
    assert desk.ask(f"{PATH}/{kept}", method="DELETE").status == 200
    assert desk.refused(f"{PATH}/{kept}")[0] == 404


def test_a_stream_is_kept_as_well_and_gone_on_from() -> None:
    desk = Desk("openai")
    first = sse(desk.streamed(PATH, asked("call clock", tools=TOOLS, stream=True)))[-1]["response"]
    call = first["output"][0]
    answer = {**OUTPUT, "call_id": call["call_id"]}
    second = desk.told(PATH, asked([answer], tools=TOOLS, previous_response_id=first["id"]))
    assert second["output"][0]["content"][0]["text"] == "The results are: noon"
