"""A stand-in of Google that refuses what Google refuses: what is written is taken, and signatures survive tool loops."""

from collections.abc import Callable
from typing import Any, Final

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.core.generation.answer import Collector
from smg_node.core.generation.events import BlockEnd, Event
from smg_node.core.generation.request import GenerateRequest, Tool, ToolCall, Turn, TurnBlock
from support.answers.gemini_bodies import HI, parsed, presenter_of, turns_of
from support.providers.generate_content import API, BEGIN, PROMPT
from support.providers.generate_content_wishes import wish, wishes, written
from support.providers.stand_ins import Desk
from support.tools.example_counts import example_count

NEW: Final = "gemini-3-pro-preview"
TOOLS: Final = (
    Tool("f", "Does.", {"type": "object", "properties": {"a": {"type": "integer"}}}),
    Tool("g"),
)


def path_of(model: str, *, streamed: bool) -> str:
    method = "streamGenerateContent?alt=sse" if streamed else "generateContent"
    return f"/v1beta/models/{model}:{method}"


@settings(max_examples=example_count(150), deadline=None)
@given(wishes(), st.sampled_from([NEW, "gemini-2.5-flash"]))
def test_whatever_is_asked_is_taken(asked: GenerateRequest, model: str) -> None:
    # Its signatures are drawn, so none of them is good; those that are needed are stood in for.
    fields = written(asked, model, issuer="nobody").fields
    reply = Desk("gemini").ask(path_of(model, streamed=False), fields)
    assert reply.status == 200, reply.body


def answered(desk: Desk, asked: GenerateRequest, *, streamed: bool) -> list[Event]:
    """Return the events of the stand-in's answer, if it takes the request."""
    fields = written(asked, NEW).fields
    listener, out = API.listen(BEGIN, prompt_tokens=PROMPT), list[Event]()
    if streamed:
        listener.feed(desk.streamed(path_of(NEW, streamed=True), fields), out)
    else:
        body = desk.told(path_of(NEW, streamed=False), fields)
        listener.feed_whole(msgspec.json.encode(body), out)
    listener.end(out)
    return out


def kept(events: list[Event]) -> Turn:
    """Return the turn that an answer is to a client that keeps all of it."""
    ends = [event for event in events if isinstance(event, BlockEnd)]
    calls = tuple(ToolCall(one.call_id, one.name, one.text) for one in ends if one.kind == "call")
    blocks = tuple(
        TurnBlock(one.kind, one.text, one.name, one.call_id, one.opaque)
        for one in ends
        if one.kind != "refusal"
    )
    text = "".join(one.text for one in ends if one.kind == "text")
    return Turn("assistant", text or None, calls=calls, blocks=blocks)


def told(events: list[Event]) -> Turn:
    """Return the turn that an answer is to a client of our own generateContent, which is not shown thoughts."""
    presenter = presenter_of(parsed({"contents": [HI]}, "streamGenerateContent"))
    frames: list[Any] = msgspec.json.decode(b"".join(presenter.frames([event]) for event in events))
    contents = [frame["candidates"][0]["content"] for frame in frames]
    return turns_of(HI, *contents)[1]


def told_whole(events: list[Event]) -> Turn:
    """Return the same of an answer that is not streamed."""
    collector = Collector(1)
    collector.feed(events)
    body = presenter_of(parsed({"contents": [HI]})).answer(collector.answer())
    return turns_of(HI, msgspec.json.decode(body)["candidates"][0]["content"])[1]


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("client", [kept, told, told_whole])
def test_signatures_come_back_unchanged_in_every_round_of_a_tool_loop(
    client: Callable[[list[Event]], Turn], streamed: bool
) -> None:
    desk = Desk("gemini", strict=True)
    turns = [Turn("user", "call all a=1 rounds=3")]
    for _ in range(3):
        turn = client(answered(desk, wish(*turns, tools=TOOLS), streamed=streamed))
        assert [call.name for call in turn.calls] == ["f", "g"]
        assert sum(len(block.opaque) for block in turn.blocks if block.kind == "call") == 1
        results = [Turn("tool", "7", name=call.name, answers_call=call.call_id) for call in turn.calls]  # fmt: skip
        turns += [turn, *results]
    last = client(answered(desk, wish(*turns, tools=TOOLS), streamed=streamed))
    assert not last.calls
    assert last.content
    answered(desk, wish(*turns, last, Turn("user", "so?"), tools=TOOLS), streamed=streamed)


@pytest.mark.parametrize("streamed", [False, True])
def test_a_conversation_that_lost_its_signatures_goes_on(streamed: bool) -> None:
    desk = Desk("gemini")
    calls = (ToolCall("1", "f", "{}"), ToolCall("2", "g", "{}"))
    results = [Turn("tool", "7", answers_call=call.call_id) for call in calls]
    turns = [Turn("user", "call all rounds=1"), Turn("assistant", None, calls=calls), *results]
    assert kept(answered(desk, wish(*turns, tools=TOOLS), streamed=streamed)).content
