"""Citations as each API has them; the official types are the judges."""

import json
from typing import Any

import pytest
from anthropic.types import TextBlock
from openai.types.chat.chat_completion_message import ChatCompletionMessage

from smg_node.core.generation.citations import Citation, citations_in
from smg_node.core.generation.tool_serving import Source
from smg_node.dialects.served_tools.citation_forms import (
    chat_annotation,
    messages_citation,
    responses_annotation,
)
from support.clients.sdk_validation import opinion_of_item

SOURCES = (
    Source(url="https://a.org/1", title="First", text="about one " * 100),
    Source(url="https://b.org/2"),
    Source(title="plan.pdf", file_id="file_1"),
    Source(text="nothing but text"),
)
TEXT = "So it is [1], or so [2][3]. Or not [4]."
CITATIONS = citations_in(TEXT, SOURCES)
FIRST, _, FILE, BARE = CITATIONS


def message(annotations: list[Any]) -> bytes:
    part = {"type": "output_text", "text": TEXT, "annotations": annotations, "logprobs": []}
    item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed"}
    return json.dumps(item | {"content": [part]}).encode()


def test_annotations_of_responses_are_those_of_the_sdk() -> None:
    shown = [responses_annotation(one) for one in CITATIONS]
    assert shown == [
        {
            "type": "url_citation",
            "start_index": 9,
            "end_index": 12,
            "url": "https://a.org/1",
            "title": "First",
        },
        {
            "type": "url_citation",
            "start_index": 20,
            "end_index": 23,
            "url": "https://b.org/2",
            "title": "https://b.org/2",
        },
        {"type": "file_citation", "file_id": "file_1", "filename": "plan.pdf", "index": 23},
        None,
    ]
    assert opinion_of_item(message([one for one in shown if one])) == []
    assert TEXT[9:12] == "[1]"


def test_annotations_of_chat_are_those_of_the_sdk() -> None:
    annotation = chat_annotation(FIRST)
    answer = {"role": "assistant", "content": TEXT, "annotations": [annotation]}
    read = ChatCompletionMessage.model_validate_json(json.dumps(answer), strict=True)
    assert read.annotations is not None
    assert read.annotations[0].url_citation.end_index == 12
    assert read.to_dict()["annotations"] == [annotation]
    assert chat_annotation(FILE) is None


def test_citations_of_messages_are_those_of_the_sdk() -> None:
    citation = messages_citation(FIRST, encrypted_index="aQ==")
    block = {"type": "text", "text": TEXT, "citations": [citation]}
    read = TextBlock.model_validate_json(json.dumps(block), strict=True)
    assert read.to_dict() == block
    assert citation is not None
    assert len(citation["cited_text"]) == 150


@pytest.mark.parametrize("citation", [FILE, BARE])
def test_what_has_no_address_is_no_citation_of_messages(citation: Citation) -> None:
    assert messages_citation(citation, encrypted_index="") is None
