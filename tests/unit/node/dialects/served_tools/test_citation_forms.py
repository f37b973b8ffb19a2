"""Citations as each API has them; the official types are the judges."""

import json
from typing import Any

import pytest
from anthropic.types import TextBlock
from openai.types.chat.chat_completion_message import ChatCompletionMessage

from smg_node.core.generation.citations import Citation, citations_in
from smg_node.core.generation.events import BlockEnd
from smg_node.core.generation.tool_serving import Source
from smg_node.dialects.chat.tool_runs.client_events import annotations_of
from smg_node.dialects.messages.tool_runs.cited_text import citations_of
from smg_node.dialects.served_tools.citation_forms import responses_annotation
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


def cited(*citations: Citation) -> BlockEnd:
    """Return the end of a text with these citations."""
    shown = [responses_annotation(one) for one in citations]
    return BlockEnd(0, 0, "text", TEXT, annotations=tuple(one for one in shown if one))


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
    [annotation] = annotations_of(cited(FIRST))
    answer = {"role": "assistant", "content": TEXT, "annotations": [annotation]}
    read = ChatCompletionMessage.model_validate_json(json.dumps(answer), strict=True)
    assert read.annotations is not None
    assert read.annotations[0].url_citation.end_index == 12
    assert read.to_dict()["annotations"] == [annotation]
    assert annotations_of(cited(FILE)) == []


def test_citations_of_messages_are_those_of_the_sdk() -> None:
    [citation] = citations_of(cited(FIRST), {FIRST.source.url: FIRST.source.text})
    block = {"type": "text", "text": TEXT, "citations": [citation]}
    read = TextBlock.model_validate_json(json.dumps(block), strict=True)
    assert read.to_dict() == block
    assert len(citation["cited_text"]) == 150


@pytest.mark.parametrize("citation", [FILE, BARE])
def test_what_has_no_address_is_no_citation_of_messages(citation: Citation) -> None:
    assert citations_of(cited(citation), {}) == []
