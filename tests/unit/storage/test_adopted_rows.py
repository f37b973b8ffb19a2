"""What SMG keeps of a row, said in our documents."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_migrations.adopted import item_row, metadata_text, response_rows

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


def item(content: str | None, **more: Any) -> Any:
    row = {"id": "msg_1", "response_id": None, "item_type": "message", "role": "user"}
    return item_row({**row, "content": content, "status": "completed", "created_at": 1, **more})


def response(**more: Any) -> Any:
    row = dict.fromkeys(
        ("conversation_id", "previous_response_id", "safety_identifier", "model", "input"), None
    )
    return response_rows({**row, "id": "resp_1", "created_at": 7, "raw_response": None, **more})


@pytest.mark.parametrize(
    ("row", "document"),
    [
        (
            {"content": '[{"type":"input_text","text":"é"}]'},
            '{"id":"msg_1","type":"message","role":"user",'
            '"content":[{"type":"input_text","text":"\\u00e9"}],"status":"completed"}',
        ),
        (
            {"content": '{"content":[],"phase":"final"}', "role": None, "status": None},
            '{"id":"msg_1","type":"message","content":[],"phase":"final"}',
        ),
        (
            {
                "content": '{"id":"x","type":"function_call","call_id":"c","name":"f"}',
                "item_type": "function_call",
                "role": None,
            },
            '{"id":"msg_1","type":"function_call","call_id":"c","name":"f","status":"completed"}',
        ),
        (
            {"content": None},
            '{"id":"msg_1","type":"message","role":"user","content":[],"status":"completed"}',
        ),
        (
            {"content": '"just text"', "status": ""},
            '{"id":"msg_1","type":"message","role":"user","content":"just text"}',
        ),
    ],
)
def test_an_item_is_put_together_again(row: dict[str, Any], document: str) -> None:
    found = item(**{"content": None, **row})
    assert found["doc"] == document
    assert found["document_bytes"] == len(document.encode())


def test_a_long_role_is_cut_to_what_a_column_takes() -> None:
    found = item("[]", role="r" * 32, status="s" * 32)
    assert (len(found["role"]), len(found["status"])) == (16, 16)
    assert json.loads(found["doc"])["role"] == "r" * 32


@pytest.mark.parametrize(
    ("said", "kept"),
    [('{"a":  1}', '{"a":  1}'), (None, "{}"), ("null", "{}"), ("[]", "{}"), ("{}", "{}")],
)
def test_metadata_are_an_object(said: str | None, kept: str) -> None:
    assert metadata_text(said) == kept


def test_a_response_that_needs_nothing_stays_byte_for_byte() -> None:
    raw = '{"id":"resp_1", "status":"incomplete","output":[ ],"n":1e2,"s":"\\u0000"}'
    asked = '[ {"id":"msg_9","type":"message","n":1.0} ]'
    row, located = response(raw_response=raw, input=asked)
    assert (row["raw_response"], row["input"]) == (raw, asked)
    assert row["document_bytes"] == len(raw) + len(asked)
    assert (row["status"], row["completed_at"]) == ("incomplete", 7)
    assert located == [{"item_id": "msg_9", "response_id": "resp_1", "side": 0, "idx": 0}]


@pytest.mark.parametrize("status", ["queued", "in_progress", "strange", None, 1])
def test_what_had_not_ended_has_failed(status: object) -> None:
    row, _ = response(raw_response=json.dumps({"id": "resp_1", "status": status}))
    assert row["status"] == json.loads(row["raw_response"])["status"] == "failed"


def test_a_row_without_an_answer_is_an_empty_response() -> None:
    row, located = response()
    assert json.loads(row["raw_response"]) == {
        "id": "resp_1",
        "object": "response",
        "status": "completed",
        "output": [],
    }
    assert (row["input"], located, row["model"]) == ("[]", [], None)


def test_the_model_is_taken_from_the_answer_where_the_column_is_empty() -> None:
    assert response(raw_response='{"model":"m"}')[0]["model"] == "m"
    assert response(raw_response='{"model":"m"}', model="n")[0]["model"] == "n"


def test_items_without_an_id_get_the_same_one_each_time() -> None:
    asked = (
        '[{"role":"user","content":"a"},{"type":"function_call_output","call_id":"c"},"nonsense"]'
    )
    once, located = response(input=asked)
    again, _ = response(input=asked)
    other, _ = response(input=asked, id="resp_2")
    first, second = json.loads(once["input"])
    assert once["input"] == again["input"] != other["input"]
    assert first["id"].startswith("msg_")
    assert first["type"] == "message"
    assert second["id"].startswith("fco_")
    assert list(first)[:2] == list(second)[:2] == ["id", "type"]
    assert [each["item_id"] for each in located] == [first["id"], second["id"]]


def test_a_text_is_a_message_and_output_is_located() -> None:
    raw = '{"id":"resp_1","status":"completed","output":[{"id":"a"},{},{"id":7},{"id":"b"}]}'
    row, located = response(input='"hello"', raw_response=raw)
    (asked,) = json.loads(row["input"])
    assert asked["content"] == [{"type": "input_text", "text": "hello"}]
    assert [(each["item_id"], each["side"], each["idx"]) for each in located[1:]] == [
        *(("a", 1, 0), ("b", 1, 3))
    ]


@given(said=JSON, answer=JSON)
def test_whatever_is_there_becomes_a_response_with_items_that_have_ids(
    said: Any, answer: Any
) -> None:
    row, located = response(input=json.dumps(said), raw_response=json.dumps(answer))
    items = json.loads(row["input"])
    assert all(len(each["id"]) > 0 and isinstance(each["type"], str) for each in items)
    assert isinstance(json.loads(row["raw_response"])["output"], list)
    assert all(0 < len(each["item_id"]) <= 64 for each in located)


@given(content=JSON)
def test_whatever_is_there_becomes_an_item_of_its_own_id_and_type(content: Any) -> None:
    document = json.loads(item(json.dumps(content))["doc"])
    assert (document["id"], document["type"]) == ("msg_1", "message")
