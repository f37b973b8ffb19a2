"""The judge has teeth: without any field that the official client needs, it refuses a stream or reads another message."""

import copy
import json
from typing import Any

import anthropic
import pytest

from smg_node.core.generation.answer import Collector
from smg_node.core.generation.events import (
    Begin,
    BlockEnd,
    BlockStart,
    Delta,
    End,
    Event,
    Finish,
    Usage,
)
from smg_node.core.generation.request import ChatPrompt, GenerateRequest, Sampling, Tool, Turn
from smg_node.dialects.dialect import ParsedBody
from smg_node.dialects.messages.message_object import Signer
from smg_node.dialects.messages.presenter import MessagesPresenter
from smg_node.dialects.messages.view import MessagesView
from smg_node.dialects.thought_seals import PlainVault, ThoughtSeals
from support.clients import messages_judge as judge

EVENTS: list[Event] = [
    Begin("0123456789abcdef" * 2, "m", 5, 30),
    BlockStart(0, 0, "reasoning"),
    Delta(0, 0, "I think", 2),
    BlockEnd(0, 0, "reasoning", "I think"),
    BlockStart(0, 1, "text"),
    Delta(0, 1, "So", 1),
    BlockEnd(0, 1, "text", "So"),
    BlockStart(0, 2, "call", "f", "call_1"),
    Delta(0, 2, '{"a":1}', 5),
    BlockEnd(0, 2, "call", '{"a":1}', "f", "call_1"),
    Finish(0, "tool_calls"),
    Usage(30, 9, 20, 2),
    End(),
]


def presenter() -> MessagesPresenter:
    prompt = ChatPrompt((Turn("user", "Hi"),), (Tool("f"),))
    request = GenerateRequest("m", (prompt,), Sampling(), True)
    signer = Signer(ThoughtSeals(PlainVault()), tenant="t", model="m", omitted=False)
    return MessagesPresenter(ParsedBody(request, MessagesView("m")), "req_1", signer)


def collected() -> bytes:
    collector = Collector(1)
    collector.feed(EVENTS)
    return presenter().answer(collector.answer())


WHOLE = json.loads(collected())
FRAMES = [
    json.loads(frame.split(b"data: ")[1])
    for frame in presenter().frames(EVENTS).split(b"\n\n")[:-1]
]


def spelled(frames: list[dict[str, Any]], *, event_lines: bool = True) -> bytes:
    return b"".join(
        (f"event: {frame.get('type', 'none')}\n" if event_lines else "").encode()
        + b"data: "
        + json.dumps(frame).encode()
        + b"\n\n"
        for frame in frames
    )


def without(frames: list[dict[str, Any]], at: int, path: str) -> list[dict[str, Any]]:
    changed = copy.deepcopy(frames)
    *way, last = path.split(".")
    holder: Any = changed[at]
    for key in way:
        holder = holder[key]
    del holder[last]
    return changed


def accepts(raw: bytes, body: dict[str, Any]) -> bool:
    """Whether the client takes stream and whole answer, strictly, and both are one message."""
    try:
        told = [*judge.read_stream(raw), *judge.read_whole(json.dumps(body).encode())]
    except (
        anthropic.AnthropicError,
        AttributeError,
        IndexError,
        TypeError,
        RuntimeError,
        AssertionError,
    ):
        return False
    first = told[0]
    return all(
        (each["content"], each.get("stop_reason"), each["usage"]["output_tokens"])
        == (first["content"], first.get("stop_reason"), first["usage"]["output_tokens"])
        for each in told
    )


def place(kind: str, at: int = 0) -> int:
    return [number for number, frame in enumerate(FRAMES) if frame["type"] == kind][at]


def test_what_is_there_is_accepted() -> None:
    assert accepts(spelled(FRAMES), WHOLE)
    assert accepts(presenter().frames(EVENTS), WHOLE)


@pytest.mark.parametrize(
    ("kind", "at", "path"),
    [
        ("message_start", 0, "message"),
        *(
            ("message_start", 0, f"message.{field}")
            for field in ("id", "type", "role", "model", "content", "usage")
        ),
        ("message_start", 0, "message.usage.input_tokens"),
        ("message_start", 0, "message.usage.output_tokens"),
        *(
            ("content_block_start", at, field)
            for at in range(3)
            for field in ("index", "content_block")
        ),
        *(("content_block_start", at, "content_block.type") for at in range(3)),
        ("content_block_start", 0, "content_block.thinking"),
        ("content_block_start", 0, "content_block.signature"),
        ("content_block_start", 1, "content_block.text"),
        ("content_block_start", 2, "content_block.id"),
        ("content_block_start", 2, "content_block.name"),
        ("content_block_start", 2, "content_block.input"),
        *(
            ("content_block_delta", at, field)
            for at in range(4)
            for field in ("index", "delta", "delta.type")
        ),
        ("content_block_delta", 0, "delta.thinking"),
        ("content_block_delta", 1, "delta.signature"),
        ("content_block_delta", 2, "delta.text"),
        ("content_block_delta", 3, "delta.partial_json"),
        *(("content_block_stop", at, "index") for at in range(3)),
        ("message_delta", 0, "delta"),
        ("message_delta", 0, "delta.stop_reason"),
        ("message_delta", 0, "usage"),
        ("message_delta", 0, "usage.output_tokens"),
        *(
            (kind, 0, "type")
            for kind in (
                "message_start",
                "content_block_start",
                "content_block_delta",
                "message_delta",
            )
        ),
    ],
)
def test_a_stream_without_a_field_is_not(kind: str, at: int, path: str) -> None:
    assert not accepts(spelled(without(FRAMES, place(kind, at), path)), WHOLE)


@pytest.mark.parametrize(
    "path",
    [
        *("id", "type", "role", "model", "content", "usage", "stop_reason"),
        *("usage.input_tokens", "usage.output_tokens"),
    ],
)
def test_a_whole_answer_without_a_field_is_not(path: str) -> None:
    assert not accepts(spelled(FRAMES), without([WHOLE], 0, path)[0])


@pytest.mark.parametrize(
    ("at", "field"),
    [(0, "thinking"), (0, "signature"), (1, "text"), (2, "id"), (2, "name"), (2, "input")],
)
def test_a_block_without_a_field_is_not(at: int, field: str) -> None:
    changed = copy.deepcopy(WHOLE)
    del changed["content"][at][field]
    assert not accepts(spelled(FRAMES), changed)


def test_a_stream_without_event_lines_is_not() -> None:
    assert not accepts(spelled(FRAMES, event_lines=False), WHOLE)


def test_a_gap_between_indices_is_not() -> None:
    changed = copy.deepcopy(FRAMES)
    for frame in changed:
        if frame.get("index", 0) > 0:
            frame["index"] += 1
    assert not accepts(spelled(changed), WHOLE)


def test_a_reason_that_is_no_word_of_the_client_is_not() -> None:
    changed = copy.deepcopy(FRAMES)
    changed[place("message_delta")]["delta"]["stop_reason"] = "tool_calls"
    assert not accepts(spelled(changed), WHOLE)


def test_a_ping_may_come_anywhere() -> None:
    ping = b'event: ping\ndata: {"type":"ping"}\n\n'
    for at in range(len(FRAMES)):
        assert accepts(spelled(FRAMES[:at]) + ping + spelled(FRAMES[at:]), WHOLE)
