"""Stored responses told again, with everything in them that our own engines never say."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.dialects.responses.events.response_object import ResponseObject
from smg_node.dialects.responses.events.stored_replay import replayed
from support.answers.responses import (
    RESPONSE_ID,
    SAID,
    SAMPLES,
    ask_of,
    checked,
    decoded,
    items_from,
    json_values,
)
from support.tools.example_counts import example_count

CITED = {"type": "url_citation", "start_index": 0, "end_index": 1, "title": "t", "url": "u"}
# The SDK's list of what an answer may hold has no place for these.
_NO_OUTPUT = frozenset({"acme:note", "configuration_update"})


def stored(rows: list[dict[str, Any]], status: str = "completed") -> bytes:
    named = [{"id": f"x{'yz'[n % 2]}_{n}", **row} for n, row in enumerate(rows)]
    shown = ResponseObject(ask_of(), response_id=RESPONSE_ID, created_s=5)
    return shown.body(status, items_from(named))


def steps(rows: list[dict[str, Any]]) -> list[str]:
    told = replayed(stored(rows))
    checked(told)
    assert [one.type for one in told[:2]] == ["response.created", "response.in_progress"]
    return [one.type.removeprefix("response.") for one in told[2:-1]]


def test_a_refusal_has_events_of_its_own() -> None:
    part = {"type": "refusal", "refusal": "no"}
    assert steps([{"role": "assistant", "content": [part]}]) == [
        "output_item.added",
        "content_part.added",
        "refusal.delta",
        "refusal.done",
        "content_part.done",
        "output_item.done",
    ]


def test_annotations_and_further_parts_are_told() -> None:
    part = {"type": "output_text", "text": "ab", "annotations": [CITED, CITED], "logprobs": []}
    told = replayed(stored([{"role": "assistant", "content": [part, part]}]))
    checked(told)
    rows = [row for row in decoded(told) if "annotation" in row]
    assert [(row["content_index"], row["annotation_index"]) for row in rows] == [
        (0, 0), (0, 1), (1, 0), (1, 1),
    ]  # fmt: skip
    assert all(row["annotation"] == CITED for row in rows)


def test_a_summary_is_told_before_the_thought() -> None:
    row = {"type": "reasoning", **SAMPLES["reasoning"]}
    assert steps([row]) == [
        "output_item.added",
        "reasoning_summary_part.added",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.done",
        "reasoning_summary_part.done",
        "content_part.added",
        "reasoning_text.delta",
        "reasoning_text.done",
        "content_part.done",
        "output_item.done",
    ]


def test_thoughts_can_have_the_names_of_the_open_schema() -> None:
    document = stored([{"type": "reasoning", **SAMPLES["reasoning"]}])
    kinds = [one.type for one in replayed(document, reasoning_events="open")]
    assert kinds[8:10] == ["response.reasoning.delta", "response.reasoning.done"]


@pytest.mark.parametrize("kind", sorted(SAMPLES.keys() - _NO_OUTPUT - {"message"}))
def test_every_type_of_item_can_be_told_again(kind: str) -> None:
    told = replayed(stored([{"type": kind, **SAMPLES[kind]}]))
    response = checked(told)
    assert [item.type for item in response.output] == [kind]
    added = decoded(told)[2]["item"]
    assert (added["type"], added["id"]) == (kind, "xy_0")


@pytest.mark.parametrize(
    ("status", "last"),
    [
        ("completed", "response.completed"),
        ("incomplete", "response.incomplete"),
        ("cancelled", "response.incomplete"),
        ("failed", "response.failed"),
        ("in_progress", "response.in_progress"),
        ("queued", "response.in_progress"),
    ],
)
def test_only_what_has_ended_has_an_end(status: str, last: str) -> None:
    told = replayed(stored([], status))
    assert told[-1].type == last
    assert decoded(told)[0]["response"]["status"] == "in_progress"
    assert [one.sequence for one in told] == list(range(len(told)))


def test_the_end_is_the_stored_document_byte_for_byte() -> None:
    document = stored([{"type": "acme:note", "x": [1.0, 1e22, "\u2028"]}])
    assert replayed(document)[-1].data.endswith(b'"response":' + document + b"}")


@settings(max_examples=example_count(100), deadline=None)
@given(
    st.binary(max_size=30)
    | json_values.map(lambda value: json.dumps(value).encode())
    | st.builds(
        lambda status, output: json.dumps({"status": status, "output": output}).encode(),
        json_values.filter(lambda value: not isinstance(value, str)),
        st.just([]),
    )
)
def test_garbage_is_no_response(garbage: bytes) -> None:
    with pytest.raises(ValueError, match="not"):
        replayed(garbage)


@settings(max_examples=example_count(100), deadline=None)
@given(st.dictionaries(st.sampled_from(["content", "summary", "arguments", "input"]), json_values))
def test_an_item_of_any_shape_is_told(values: dict[str, Any]) -> None:
    for kind in ("message", "reasoning", "function_call", "custom_tool_call"):
        document = {"status": "completed", "output": [{"id": "a_1", "type": kind, **values}]}
        told = replayed(json.dumps(document).encode())
        assert [one.sequence for one in told] == list(range(len(told)))


def test_an_item_with_a_number_that_is_none_is_no_item() -> None:
    document = b'{"status":"completed","output":[{"id":"a_1","type":"acme:x","n":1e999}]}'
    with pytest.raises(ValueError, match="not"):
        replayed(document)


_kinds = st.lists(st.sampled_from(sorted(SAMPLES.keys() - _NO_OUTPUT)), max_size=6)


TEXTS = {
    "message": 2, "reasoning": 2, "function_call": 1, "custom_tool_call": 1, "mcp_call": 1,
    "code_interpreter_call": 1,
}  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(_kinds, st.sampled_from(["completed", "incomplete", "failed", "cancelled"]))
def test_items_of_all_kinds_in_any_order_add_up_to_what_is_stored(
    kinds: list[str], status: str
) -> None:
    rows = [{"type": kind, **SAMPLES[kind]} for kind in kinds]
    for number, row in enumerate(rows):
        if "call_id" in row:
            row["call_id"] = f"call_{number}"
        if row["type"] == "message":
            row |= {"role": "assistant", "content": [SAID, {"type": "refusal", "refusal": "no"}]}
    document = stored(rows, status)
    told = replayed(document)
    checked(told)
    assert decoded(told)[-1]["response"] == json.loads(document)
    for index, row in enumerate(json.loads(document)["output"]):
        of_item = [event for event in decoded(told) if event.get("output_index") == index]
        assert of_item[0]["type"] == "response.output_item.added"
        assert (of_item[-1]["type"], of_item[-1]["item"]) == ("response.output_item.done", row)
        texts = [event["delta"] for event in of_item if "delta" in event]
        assert len(texts) == TEXTS.get(row["type"], 0)
