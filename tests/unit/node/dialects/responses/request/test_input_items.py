"""Items: what comes in goes out again, byte for byte, under an id of its own."""

import json
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.types.responses import ResponseItem
from pydantic import TypeAdapter

from smg_node.core.errors import SmgError
from smg_node.dialects.responses.items.item_document import (
    ITEM_BYTES_MAX,
    ItemDoc,
    assign_ids,
    item_of,
    items_of,
    list_of,
    with_id,
)
from smg_node.dialects.responses.items.item_types import ITEM_REFERENCE, KINDS, kind_named
from support.answers.responses import AUDIO, SAMPLES, THREAD, item_rows, items_from, json_values
from support.tools.example_counts import example_count

_items: TypeAdapter[ResponseItem] = TypeAdapter(ResponseItem)
# The SDK's list of what a conversation returns has no place for these.
_INPUT_ONLY = frozenset({"acme:note", "configuration_update"})


def one(row: dict[str, Any]) -> ItemDoc:
    (item,) = items_from([row])
    return item


def named(items: tuple[ItemDoc, ...], **more: Any) -> tuple[ItemDoc, ...]:
    return assign_ids(items, thread=THREAD, now_ms=1, chance=Random(1), **more)


def refused(row: Any) -> tuple[str | None, str]:
    with pytest.raises(SmgError) as caught:
        items_from([row])
    return caught.value.where, caught.value.code


def test_there_is_a_sample_of_every_type() -> None:
    assert SAMPLES.keys() - {"acme:note"} == KINDS.keys() - {ITEM_REFERENCE}


@pytest.mark.parametrize("kind", SAMPLES)
def test_an_item_is_kept_as_it_came_and_the_sdk_knows_it(kind: str) -> None:
    row = {"type": kind, **SAMPLES[kind]}
    (item,) = named((one(row),))
    values = json.loads(item.document)
    prefix = kind_named(kind)
    assert prefix is not None
    assert values == {**row, "id": item.id}
    assert list(values)[:2] == ["id", "type"]
    assert item.id.startswith(f"{prefix.prefix}_")
    assert (len(item.id) <= 64, THREAD in item.id) == (True, True)
    if kind not in _INPUT_ONLY:
        _items.validate_json(item.document, strict=True)


@settings(max_examples=example_count(100), deadline=None)
@given(st.lists(item_rows(), max_size=6))
def test_any_items_stored_are_read_back_byte_for_byte(rows: list[dict[str, Any]]) -> None:
    items = named(items_from(rows))
    assert items_of(list_of(items)) == items
    assert tuple(item_of(item.document) for item in items) == items
    assert len({item.id for item in items}) == len(items)
    assert items_from([item.values() for item in items]) == items
    for row, item in zip(rows, items, strict=True):
        values = msgspec.json.decode(item.document)
        assert {key: value for key, value in values.items() if key != "id"} == {
            key: value for key, value in row.items() if key != "id"
        }


@settings(max_examples=example_count(100), deadline=None)
@given(st.lists(item_rows(), max_size=4))
def test_a_document_fits_into_one_line_of_a_stream(rows: list[dict[str, Any]]) -> None:
    for item in items_from(rows):
        assert len(item.document.decode().splitlines()) == 1


@settings(max_examples=example_count(100), deadline=None)
@given(st.binary(max_size=40) | json_values.map(msgspec.json.encode))
def test_garbage_is_no_item(garbage: bytes) -> None:
    for read in (item_of, items_of):
        try:
            found = read(garbage)
        except ValueError:
            continue
        assert found == () or isinstance(found, ItemDoc | tuple)


@settings(max_examples=example_count(100), deadline=None)
@given(st.dictionaries(st.sampled_from(["type", "id", "role", "content", "call_id"]), json_values))
def test_any_object_is_read_or_refused(row: dict[str, Any]) -> None:
    try:
        items = items_from([row])
    except SmgError:
        return
    assert all(item_of(item.document) == item for item in items)


@pytest.mark.parametrize("role", [5, None, "r" * 100, "a\0b", ["user"], {"a": 1}])
def test_the_role_of_what_is_no_message_is_one_more_key(role: Any) -> None:
    row = {"type": "function_call_output", "call_id": "c", "output": "o", "role": role}
    item = one(row)
    assert item.values()["role"] == role
    assert item_of(item.document) == item


def test_a_type_of_another_vendor_has_at_most_64_characters() -> None:
    assert one({"type": "acme:" + "n" * 59}).type == "acme:" + "n" * 59
    assert refused({"type": "acme:" + "n" * 60}) == ("input[0].type", "unsupported_item_type")


# ── Ids ──────────────────────────────────────────────────────────────────────


def test_a_clients_own_id_stays_if_it_can_be_one() -> None:
    kept, replaced, long = named(
        items_from(
            [
                {"role": "user", "content": "a", "id": "msg_mine"},
                {"role": "user", "content": "b", "id": "not an id"},
                {"role": "user", "content": "c", "id": "msg_" + "x" * 56},
            ]
        )
    )
    assert kept.id == "msg_mine"
    assert replaced.id.startswith("msg_000000000001")
    assert long.id.startswith("msg_000000000001")
    assert json.loads(replaced.document)["id"] == replaced.id


def test_an_id_that_is_taken_or_comes_twice_is_replaced() -> None:
    row = {"role": "user", "content": "a", "id": "msg_mine"}
    first, second = named(items_from([row, row]))
    assert first.id == "msg_mine"
    assert second.id != "msg_mine"
    (other,) = named(items_from([row]), taken={"msg_mine"})
    assert other.id != "msg_mine"
    assert json.loads(other.document) == {**json.loads(first.document), "id": other.id}


def test_renaming_changes_nothing_but_the_id() -> None:
    item = one({"role": "user", "content": "a", "id": "msg_a"})
    renamed = with_id(item, "msg_b")
    assert renamed.document == item.document.replace(b"msg_a", b"msg_b")
    assert item_of(renamed.document) == renamed


def test_the_output_of_a_local_shell_keeps_its_call_when_it_gets_an_id() -> None:
    row = {"type": "local_shell_call_output", "id": "lsh_1", "output": "x"}
    (item,) = named(items_from([row]), taken={"lsh_1"})
    assert item.values()["call_id"] == "lsh_1"


# ── Shorthand ────────────────────────────────────────────────────────────────


def test_a_message_in_short_is_written_out() -> None:
    asked, answered = items_from(
        [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho", "phase": None}]
    )
    assert json.loads(asked.document) == {
        "type": "message",
        "role": "user",
        "content": [{"type": "input_text", "text": "hi"}],
        "status": "completed",
    }
    assert (asked.type, asked.role, asked.status, asked.id) == ("message", "user", "completed", "")
    assert answered.values()["content"] == [
        {"type": "output_text", "text": "ho", "annotations": [], "logprobs": []}
    ]


def test_defaults_are_written_out_and_unknown_keys_stay() -> None:
    part = {"type": "input_image", "image_url": "data:,", "x": [1]}
    item = one({"role": "user", "content": [part], "status": None, "y": None})
    assert item.values() == {
        "type": "message",
        "role": "user",
        "content": [{**part, "detail": "auto"}],
        "status": "completed",
        "y": None,
    }
    assert one({"type": "reasoning"}).values() == {"type": "reasoning", "summary": []}


def test_a_reference_may_leave_out_its_type() -> None:
    for row in ({"id": "msg_1"}, {"id": "msg_1", "type": "item_reference"}):
        item = one(row)
        assert (item.type, item.id) == ("item_reference", "msg_1")


# ── Refusals ─────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("row", "where", "code"),
    [
        ("hi", "input[0]", "invalid_type"),
        ({}, "input[0].type", "missing_required_parameter"),
        ({"type": ""}, "input[0].type", "invalid_value"),
        ({"type": 5}, "input[0].type", "invalid_type"),
        ({"type": "telepathy"}, "input[0].type", "unsupported_item_type"),
        ({"type": "compaction_trigger"}, "input[0].type", "unsupported_item_type"),
        ({"type": "Acme:x"}, "input[0].type", "unsupported_item_type"),
        ({"type": "message"}, "input[0].role", "missing_required_parameter"),
        ({"role": "tool", "content": "x"}, "input[0].role", "invalid_value"),
        ({"role": "user"}, "input[0].content", "missing_required_parameter"),
        ({"role": "user", "content": 5}, "input[0].content", "invalid_type"),
        ({"role": "user", "content": []}, "input[0].content", "invalid_value"),
        ({"role": "user", "content": ["x"]}, "input[0].content[0]", "invalid_type"),
        (
            {"role": "user", "content": [{"type": ""}]},
            "input[0].content[0].type",
            "invalid_value",
        ),
        (
            {"role": "user", "content": [{"type": "output_text", "text": "x"}]},
            "input[0].content[0].type",
            "invalid_value",
        ),
        (
            {"role": "assistant", "content": [{"type": "input_text", "text": "x"}]},
            "input[0].content[0].type",
            "invalid_value",
        ),
        (
            {"role": "user", "content": [{"type": "input_text"}]},
            "input[0].content[0].text",
            "missing_required_parameter",
        ),
        (
            {"role": "user", "content": [{"type": "input_image", "file_id": "f"}]},
            "input[0].content[0].file_id",
            "unsupported_parameter",
        ),
        (
            {
                "role": "user",
                "content": [{"type": "input_image", "image_url": "u", "detail": "closely"}],
            },
            "input[0].content[0].detail",
            "invalid_value",
        ),
        (
            {
                "type": "function_call_output",
                "call_id": "c",
                "output": [{"type": "input_image", "image_url": "u", "detail": 5}],
            },
            "input[0].output[0].detail",
            "invalid_type",
        ),
        (
            {"role": "user", "content": [{"type": "input_file"}]},
            "input[0].content[0].file_data",
            "missing_required_parameter",
        ),
        (
            {"role": "user", "content": [{**AUDIO, "input_audio": {"data": "A", "format": "w/v"}}]},
            "input[0].content[0].input_audio.format",
            "invalid_value",
        ),
        ({"role": "user", "content": "x", "status": "new"}, "input[0].status", "invalid_value"),
        ({"role": "assistant", "content": "x", "phase": "p"}, "input[0].phase", "invalid_value"),
        (
            {"type": "function_call", "name": "f", "arguments": "{}"},
            "input[0].call_id",
            "missing_required_parameter",
        ),
        (
            {"type": "function_call", "call_id": "c" * 65, "name": "f", "arguments": "{}"},
            "input[0].call_id",
            "invalid_value",
        ),
        (
            {"type": "function_call", "call_id": "c", "name": "f", "arguments": {}},
            "input[0].arguments",
            "invalid_type",
        ),
        (
            {"type": "function_call_output", "call_id": "c"},
            "input[0].output",
            "missing_required_parameter",
        ),
        (
            {"type": "function_call_output", "call_id": "c", "output": [AUDIO]},
            "input[0].output[0].type",
            "invalid_value",
        ),
        (
            {"type": "reasoning", "summary": [{"type": "reasoning_text", "text": "x"}]},
            "input[0].summary[0].type",
            "invalid_value",
        ),
        ({"type": "computer_call_output", "call_id": "c", "output": "x"}, "input[0].output", "invalid_type"),
        ({"type": "item_reference", "id": "a b"}, "input[0].id", "item_not_found"),
        ({"role": "user", "content": "x", "id": 5}, "input[0].id", "invalid_type"),
        ({"type": "item_reference"}, "input[0].id", "missing_required_parameter"),
        ({"role": "user", "content": "x" * ITEM_BYTES_MAX}, "input[0]", "invalid_value"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_an_item_is_named(row: Any, where: str, code: str) -> None:
    assert refused(row) == (where, code)


def test_media_and_parts_are_counted_over_all_items() -> None:
    image = {"type": "input_image", "image_url": "data:,"}
    assert refused({"role": "user", "content": [image] * 65}) == (
        "input[0].content[64]",
        "invalid_value",
    )
    assert refused({"role": "user", "content": [{"type": "input_text", "text": ""}] * 8_193}) == (
        "input[0].content",
        "invalid_value",
    )
