"""Pages, small bodies, and what is read for conversations."""

import json
from typing import Any

import pytest
from openai.types.conversations import Conversation, ConversationDeletedResource
from openai.types.responses import CompactedResponse
from openai.types.responses.input_token_count_response import InputTokenCountResponse

from smg_node.core.errors import SmgError
from smg_node.core.generation.events import Usage
from smg_node.dialects.options import ReaderOptions
from smg_node.dialects.responses.events import list_bodies as lists
from smg_node.dialects.responses.items.item_document import item_of
from smg_node.dialects.responses.request.conversations import ConversationsReader, references_in
from smg_storage.records import PageAsk
from support.answers.responses import items_from

READER = ConversationsReader(ReaderOptions())
HI = {"role": "user", "content": "hi"}


def refused(act: Any, *arguments: Any) -> tuple[str | None, str]:
    with pytest.raises(SmgError) as caught:
        act(*arguments)
    assert caught.value.status == 400
    return caught.value.where, caught.value.code


def test_a_page_is_twenty_of_the_newest_unless_said_otherwise() -> None:
    assert lists.page_of({}) == PageAsk(limit=20, after="", newest_first=True)
    query = {"limit": "100", "order": "asc", "after": "msg_1", "include[]": "x"}
    assert lists.page_of(query) == PageAsk(limit=100, after="msg_1", newest_first=False)


@pytest.mark.parametrize(
    ("query", "where"),
    [
        ({"limit": "0"}, "limit"),
        ({"limit": "101"}, "limit"),
        ({"limit": "-1"}, "limit"),
        ({"limit": ""}, "limit"),
        ({"limit": "1.0"}, "limit"),
        ({"limit": "٣"}, "limit"),
        ({"limit": "9" * 5_000}, "limit"),
        ({"order": "up"}, "order"),
        ({"after": "a b"}, "after"),
    ],
)
def test_a_page_that_is_none_is_refused(query: dict[str, str], where: str) -> None:
    assert refused(lists.page_of, query) == (where, "invalid_value")


def test_where_a_stream_goes_on_is_a_number() -> None:
    assert lists.starting_after_of({}) is None
    assert lists.starting_after_of({"starting_after": "0"}) == 0
    assert lists.starting_after_of({"starting_after": "17"}) == 17
    for spelled in ("-1", "x", "", "1.5", "9" * 30):
        query = {"starting_after": spelled}
        assert refused(lists.starting_after_of, query) == ("starting_after", "invalid_value")


def test_what_is_included_must_exist() -> None:
    assert lists.include_of([]) == ()
    assert lists.include_of(["message.output_text.logprobs"]) == ("message.output_text.logprobs",)
    assert refused(lists.include_of, ["x"]) == ("include[0]", "invalid_value")


def test_a_list_names_its_first_and_last_and_keeps_every_byte() -> None:
    documents = [b'{"id":"a_1","type":"acme:x","n":1.0}', b'{"id":"a_2","type":"acme:x","n":1e2}']
    body = lists.list_body(documents, has_more=True)
    assert documents[0] + b"," + documents[1] in body
    decoded = json.loads(body)
    assert {key: decoded[key] for key in decoded if key != "data"} == {
        "object": "list",
        "first_id": "a_1",
        "last_id": "a_2",
        "has_more": True,
    }
    assert json.loads(lists.list_body([], has_more=False)) == {
        "object": "list",
        "data": [],
        "first_id": None,
        "last_id": None,
        "has_more": False,
    }


def test_small_bodies_are_what_the_sdk_expects() -> None:
    assert json.loads(lists.deleted_response("resp_1")) == {
        "id": "resp_1",
        "object": "response",
        "deleted": True,
    }
    ConversationDeletedResource.model_validate_json(
        lists.deleted_conversation("conv_1"), strict=True
    )
    body = lists.conversation_body("conv_1", created_s=5, metadata=b'{"a":"b"}')
    conversation = Conversation.model_validate_json(body, strict=True)
    assert conversation.metadata == {"a": "b"}
    InputTokenCountResponse.model_validate_json(lists.input_tokens_body(7), strict=True)
    item = lists.compaction_item("cmp_1", "blob")
    assert item_of(item.document) == item
    compacted = CompactedResponse.model_validate_json(
        lists.compaction_body("resp_1", created_s=5, output=[item], usage=Usage(3, 2, 1, 1)),
        strict=True,
    )
    assert [part.type for part in compacted.output] == ["compaction"]
    assert compacted.usage.total_tokens == 5


# ── Conversations ────────────────────────────────────────────────────────────


def test_a_conversation_begins_with_items_and_metadata_or_without() -> None:
    assert READER.new({}) == ((), b"{}")
    items, metadata = READER.new({"items": [HI], "metadata": {"a": "b"}})
    assert (items, metadata) == (items_from([HI]), b'{"a":"b"}')
    assert READER.new({"items": [], "metadata": None}) == ((), b"{}")


def test_items_may_be_references() -> None:
    items = READER.items({"items": [HI, {"id": "msg_1"}, {"id": "msg_2"}]})
    assert references_in(items) == ("msg_1", "msg_2")


def test_metadata_is_replaced_or_cleared() -> None:
    assert READER.metadata({"metadata": {"a": "b"}}) == b'{"a":"b"}'
    assert READER.metadata({"metadata": {}}) == b"{}"
    assert READER.metadata({"metadata": None}) == b"{}"


@pytest.mark.parametrize(
    ("read", "body", "where", "code"),
    [
        (READER.new, {"items": [HI] * 21}, "items", "invalid_value"),
        (READER.new, {"items": {}}, "items", "invalid_type"),
        (READER.new, {"metadata": {"k": 5}}, "metadata.k", "invalid_type"),
        (READER.items, {}, "items", "missing_required_parameter"),
        (READER.items, {"items": []}, "items", "invalid_value"),
        (READER.items, {"items": [HI] * 21}, "items", "invalid_value"),
        (READER.items, {"items": [{"type": "x"}]}, "items[0].type", "unsupported_item_type"),
        (READER.metadata, {}, "metadata", "missing_required_parameter"),
        (READER.metadata, {"metadata": "x"}, "metadata", "invalid_type"),
    ],
)
def test_what_is_wrong_is_named(read: Any, body: Any, where: str, code: str) -> None:
    assert refused(read, body) == (where, code)


def test_what_has_no_effect_in_a_conversation_is_named() -> None:
    reader = ConversationsReader(ReaderOptions())
    part = {"type": "input_text", "text": "hi", "prompt_cache_breakpoint": {"mode": "explicit"}}
    reader.new({"items": [{"role": "user", "content": [part]}], "colour": "red"})
    assert reader.ignored == ("colour", "items[0].content[0].prompt_cache_breakpoint")
    other = ConversationsReader(ReaderOptions())
    other.metadata({"metadata": {"a": "b"}, "items": None})
    assert other.ignored == ()
    with pytest.raises(SmgError, match="there is no parameter of this name"):
        ConversationsReader(ReaderOptions(unknown_parameters="reject")).items(
            {"items": [{"role": "user", "content": "hi"}], "colour": "red"}
        )
