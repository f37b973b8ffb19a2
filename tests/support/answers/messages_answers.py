"""Answers of Messages for tests: events of a generation, its presenter, and what that shows."""

import json
from collections.abc import Sequence
from typing import Any

from smg_node.core.generation.answer import Collector
from smg_node.core.generation.events import (
    Begin,
    BlockEnd,
    BlockKind,
    BlockStart,
    Delta,
    End,
    Event,
    Finish,
    FinishReason,
    Usage,
)
from smg_node.core.generation.request import ChatPrompt, GenerateRequest, Sampling, Tool, Turn
from smg_node.dialects.dialect import ParsedBody
from smg_node.dialects.messages.message_object import Signer
from smg_node.dialects.messages.presenter import MessagesPresenter
from smg_node.dialects.messages.view import MessagesView
from smg_node.dialects.thought_seals import PlainVault, ThoughtSeals

ID = "0123456789abcdef" * 2
BEGIN = Begin(ID, "llama", 5, 30)
SEALS = ThoughtSeals(PlainVault())
VIEW = MessagesView("claude-x")


def presenter(
    view: MessagesView = VIEW, *, tools: bool = True, stop: tuple[str, ...] = (), clock: Any = None
) -> MessagesPresenter:
    prompt = ChatPrompt((Turn("user", "Hi"),), (Tool("look_up"), Tool("f")) if tools else ())
    request = GenerateRequest("llama", (prompt,), Sampling(max_tokens=64, stop=stop), True)
    signer = Signer(SEALS, tenant="t", model="llama", omitted=view.display == "omitted")
    return MessagesPresenter(ParsedBody(request, view), "req_1", signer, clock)


def said(*blocks: tuple[BlockKind, str | Sequence[str]], name: str = "f") -> list[Event]:
    """Return the events of these blocks, each cut where it is said, or at every character."""
    events: list[Event] = []
    for at, (kind, texts) in enumerate(blocks):
        called, call_id = (name, f"functions.{name}:{at}") if kind == "call" else ("", "")
        events.append(BlockStart(0, at, kind, called, call_id))
        events += [Delta(0, at, text, 1) for text in texts]
        events.append(BlockEnd(0, at, kind, "".join(texts), called, call_id))
    return events


def whole(
    events: list[Event], reason: FinishReason = "stop", matched: str | int | None = None
) -> list[Event]:
    return [BEGIN, *events, Finish(0, reason, matched), Usage(30, 9, 20, 2), End()]


def streamed(one: MessagesPresenter, events: Sequence[Event]) -> bytes:
    return b"".join(one.frames((event,)) for event in events)


def body(one: MessagesPresenter, events: Sequence[Event]) -> bytes:
    collector = Collector(1)
    collector.feed(events)
    return one.answer(collector.answer())


def frames(raw: bytes) -> list[dict[str, Any]]:
    """Return the data of each frame, whose event line is its type."""
    found = []
    for frame in raw.decode().split("\n\n")[:-1]:
        event, data = frame.split("\n")
        value = json.loads(data.removeprefix("data: "))
        assert event == f"event: {value['type']}"
        found.append(value)
    return found
