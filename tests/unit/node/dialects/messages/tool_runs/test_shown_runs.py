"""Runs on this node's side in answers of Messages: to the official client, in any order, and back again."""

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.answer import Collector
from smg_node.core.generation.event_grammar import Grammar
from smg_node.core.generation.events import (
    BlockEnd,
    Delta,
    Event,
    Fail,
    Finish,
    RunEnd,
)
from smg_node.core.generation.request import ChatPrompt, GenerateRequest
from smg_node.dialects.dialect import ParsedBody, Presenter
from smg_node.dialects.messages.dialect import MessagesDialect
from smg_node.dialects.messages.message_object import arguments_of
from smg_node.dialects.messages.view import MessagesView
from smg_node.dialects.options import ReaderOptions
from support.answers.messages_answers import frames
from support.answers.run_blocks import SEALS, SERVERS, Somebody
from support.answers.run_streams import run_streams
from support.clients import messages_judge as judge
from support.tools.example_counts import example_count

DIALECT = MessagesDialect(ReaderOptions(tool_servers=True), SEALS, lambda: 0.0)
BODY: dict[str, Any] = {
    "model": "m",
    "max_tokens": 64,
    "stream": True,
    **SERVERS,
    "tools": [
        *SERVERS["tools"],
        {"type": "code_execution_20250825", "name": "code_execution"},
        {"type": "web_fetch_20250910", "name": "web_fetch"},
        {"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"},
    ],
}
GO = {"role": "user", "content": "go"}


def read(messages: list[Any], **more: Any) -> ParsedBody[MessagesView]:
    return DIALECT.read({**BODY, "messages": messages, **more}, Somebody())


def presenter(**more: Any) -> Presenter:
    return DIALECT.presenter(read([GO], **more), Somebody())


def streamed(one: Presenter, events: Sequence[Event]) -> bytes:
    return b"".join(one.frames((event,)) for event in events)


def whole(one: Presenter, events: Sequence[Event]) -> bytes:
    collector = Collector(1)
    collector.feed(events)
    return one.answer(collector.answer())


@settings(deadline=None, max_examples=example_count(300))
@given(st.data(), run_streams(), st.booleans())
def test_any_stream_is_put_together_to_its_whole_answer(
    data: st.DataObject, events: list[Event], one_at_a_time: bool
) -> None:
    Grammar(1).feed(events)
    choice = {"type": "auto", "disable_parallel_tool_use": one_at_a_time}
    places = data.draw(st.sets(st.integers(0, len(events)))) | {0, len(events)}
    one = presenter(tool_choice=choice)
    raw = b"".join(one.frames(events[low:high]) for low, high in pairwise(sorted(places)))
    assert raw == streamed(presenter(tool_choice=choice), events)
    told = judge.read_beta_stream(raw)
    read_whole = judge.read_beta_whole(whole(presenter(tool_choice=choice), events))
    for message in (told, read_whole):
        for field in ("cache_creation", "inference_geo", "service_tier"):
            message["usage"].pop(field, None)
    assert told == read_whole
    started = [each for each in frames(raw) if each["type"] == "content_block_start"]
    stopped = [each for each in frames(raw) if each["type"] == "content_block_stop"]
    count = len(told["content"])
    assert [each["index"] for each in started] == [*range(count)]
    assert [each["index"] for each in stopped] == [*range(count)]


@settings(deadline=None, max_examples=example_count(300))
@given(run_streams())
def test_results_follow_their_calls_in_order_and_calls_of_the_client_are_last(
    events: list[Event],
) -> None:
    content = json.loads(whole(presenter(), events))["content"]
    kinds = [block["type"] for block in content]
    uses = [
        block["id"] for block in content if block["type"].endswith(("p_tool_use", "r_tool_use"))
    ]
    answered = [block["tool_use_id"] for block in content if "tool_use_id" in block]
    assert answered == [one for one in uses if one in answered]
    places = {block.get("id", block.get("tool_use_id")): at for at, block in enumerate(content)}
    for at, block in enumerate(content):
        assert "id" not in block or at <= places[block["id"]]
    first = kinds.index("tool_use") if "tool_use" in kinds else len(kinds)
    assert set(kinds[first:]) <= {"tool_use"}
    ids = [block["id"] for block in content if "id" in block]
    assert len(ids) == len(set(ids))
    assert "secret" not in json.dumps(content)
    assert "audit" not in json.dumps(content)


def _waits(content: list[Any]) -> bool:
    """Whether the answer ends with calls that are still to be run."""
    answered = {block.get("tool_use_id") for block in content}
    return any(
        block["type"] in ("mcp_tool_use", "server_tool_use") and block["id"] not in answered
        for block in content
    )


@settings(deadline=None, max_examples=example_count(300))
@given(run_streams())
def test_an_answer_that_is_sent_back_has_the_same_calls_and_results(events: list[Event]) -> None:
    content = json.loads(whole(presenter(), events))["content"]
    messages: list[Any] = [GO, {"role": "assistant", "content": content}]
    own = [block["id"] for block in content if block["type"] == "tool_use"]
    if own:
        results = [{"type": "tool_result", "tool_use_id": one, "content": "r"} for one in own]
        messages.append({"role": "user", "content": results})
    elif not _waits(content):
        messages.append({"role": "user", "content": "next"})
    elif content[-1]["type"] == "text":
        return
    request = read(messages).request
    (prompt,) = request.prompts
    assert isinstance(prompt, ChatPrompt)
    owned = {
        call.call_id: call for turn in prompt.turns for call in turn.calls if call.owner is not None
    }
    told = {turn.answers_call: turn for turn in prompt.turns if turn.role == "tool"}
    expected = _expected(events)
    assert len(owned) == len(expected)
    opened = request.serving.open_calls if request.serving is not None else ()
    waiting = {call.call_id for call in opened}
    for call, (block, run) in zip(owned.values(), expected, strict=True):
        assert block.owner is not None
        assert call.owner is not None
        if block.owner.shape in ("mcp", "file_search"):
            assert (call.owner.server, call.owner.tool) == (block.owner.server, block.owner.tool)
        else:
            assert call.owner.shape == block.owner.shape
        assert json.loads(call.arguments) == json.loads(bytes(arguments_of(block)))
        if run is None:
            assert call.call_id in waiting
            continue
        turn, result = told[call.call_id], run.result
        failed = result.error is not None or result.cut
        assert turn.extra == ({"is_error": True} if failed else {})
        if block.owner.shape in ("mcp", "file_search") or (
            not failed and block.owner.shape != "tool_search"
        ):
            assert turn.content == result.text


def _expected(events: list[Event]) -> list[tuple[BlockEnd, RunEnd | None]]:
    """Return the calls that are shown with their results, in their order."""
    runs = {event.block: event for event in events if isinstance(event, RunEnd)}
    (finish,) = (event for event in events if isinstance(event, Finish))
    return [
        (event, runs.get(event.block))
        for event in events
        if isinstance(event, BlockEnd)
        and event.owner is not None
        and not event.owner.hidden
        and (event.block in runs or finish.reason == "pause")
    ]


@settings(deadline=None, max_examples=example_count(150))
@given(st.data(), run_streams())
def test_a_stream_that_fails_ends_its_blocks_and_shows_what_was_run(
    data: st.DataObject, events: list[Event]
) -> None:
    last = next(at for at, event in enumerate(events) if isinstance(event, Finish))
    # A failure comes when everything that was open has been ended.
    Grammar(1).feed(broken := [*events[:last], Fail(SmgError(ErrorKind.UPSTREAM_FAILED, "x"))])
    cut = data.draw(st.integers(0, len(broken)))
    one = presenter()
    raw = one.frames(broken[:cut]) + one.frames(broken[cut:])
    shown = frames(raw)
    kinds = [each["type"] for each in shown]
    assert kinds[-1] == "error"
    assert kinds.count("error") == 1
    assert kinds.count("content_block_start") == kinds.count("content_block_stop")


@settings(deadline=None, max_examples=example_count(100))
@given(run_streams())
def test_the_template_around_a_text_gives_the_same_frames(events: list[Event]) -> None:
    one, other = presenter(), presenter()
    for event in events:
        around = one.around()
        shown = one.frames((event,))
        if isinstance(event, Delta) and around is not None and event.text:
            assert shown == around.head + around.text(event.text) + around.tail
        assert shown == other.frames((event,))


def test_a_request_without_such_tools_has_the_usual_presenter() -> None:
    body = {"model": "m", "max_tokens": 64, "messages": [GO]}
    reading = DIALECT.read(body, Somebody())
    assert isinstance(reading.request, GenerateRequest)
    assert type(DIALECT.presenter(reading)).__name__ == "MessagesPresenter"
