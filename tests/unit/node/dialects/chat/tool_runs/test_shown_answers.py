"""Answers of Chat in which tools ran on this node's side: what clients see of them, in streams and whole."""

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.types.chat import ChatCompletion, ChatCompletionChunk

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
    RunEnd,
    RunStart,
    TokenLogprob,
    Usage,
)
from smg_node.core.generation.tool_owner import ToolOwner
from smg_node.core.generation.tool_serving import RunError, RunResult
from smg_node.dialects.chat.dialect import ChatDialect
from smg_node.dialects.dialect import Presenter, Unknown
from smg_node.dialects.options import ReaderOptions
from support.answers.run_streams import run_streams
from support.answers.sse_client import assemble_chat, read_frames
from support.tools.example_counts import example_count

DIALECT = ChatDialect(ReaderOptions(tool_servers=True))
DOCS = {"type": "mcp", "server_label": "docs", "server_url": "https://docs.test/mcp"}
FIND = ToolOwner("docs", "find")
HIDDEN = ToolOwner("docs", "audit", hidden=True)


class Somebody(Unknown):
    """A caller who asks for tools, and maybe to be shown what ran."""

    def __init__(self, *, shows: bool) -> None:
        self.headers = {"x-smg-mcp": "enabled"} | ({"x-smg-tool-runs": "show"} if shows else {})


def presenter(*, shows: bool = False, **more: Any) -> Presenter:
    function = {"type": "function", "function": {"name": "look_up"}}
    body = {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
        "tools": [DOCS, function],
        **more,
    }
    caller = Somebody(shows=shows)
    return DIALECT.presenter(DIALECT.read(body, caller), caller)


def whole(events: Sequence[Event], *, shows: bool = False, **more: Any) -> dict[str, Any]:
    collector = Collector(1)
    collector.feed(events)
    found: dict[str, Any] = json.loads(presenter(shows=shows, **more).answer(collector.answer()))
    ChatCompletion.model_validate(found)
    return found


def chunks(events: Sequence[Event], *, shows: bool = False, **more: Any) -> list[dict[str, Any]]:
    one = presenter(shows=shows, stream=True, **more)
    found = read_frames(b"".join(one.frames((event,)) for event in events)).chunks
    for chunk in found:
        ChatCompletionChunk.model_validate(chunk)
    return found


def said(block: int, text: str, kind: BlockKind = "text") -> list[Event]:
    return [
        BlockStart(0, block, kind),
        *(Delta(0, block, part, 1) for part in text),
        BlockEnd(0, block, kind, text),
    ]


def ran(block: int, owner: ToolOwner = FIND, result: RunResult | None = None) -> list[Event]:
    call_id, arguments = f"c{block}", '{"q":1}'
    return [
        BlockStart(0, block, "call", "find", call_id, owner=owner),
        Delta(0, block, arguments, 3),
        BlockEnd(0, block, "call", arguments, "find", call_id, owner=owner),
        RunStart(0, block),
        RunEnd(0, block, result or RunResult("found", duration_ms=7)),
    ]


def answer(*events: Event, reason: FinishReason = "stop") -> list[Event]:
    return [Begin("1", "m", 5, 3), *events, Finish(0, reason), Usage(3, 9, 0), End()]


def test_runs_are_no_calls_of_the_clients() -> None:
    events = answer(*said(0, "Let me see."), *ran(1), *said(2, "Four."))
    body = whole(events)
    assert body["choices"][0]["message"]["content"] == "Let me see.\n\nFour."
    assert "tool_calls" not in body["choices"][0]["message"]
    assert body["choices"][0]["finish_reason"] == "stop"
    assert "smg" not in body
    (told,) = assemble_chat(chunks(events), 1)
    assert told.content == "Let me see.\n\nFour."
    assert not told.calls


@pytest.mark.parametrize(
    ("first", "second", "shown"),
    [
        ("a", "b", "a\n\nb"),
        ("a\n", "b", "a\nb"),
        ("a", "\nb", "a\nb"),
        ("", "b", "b"),
        ("a", "", "a"),
    ],
)
def test_passes_are_set_apart_unless_they_are_already(first: str, second: str, shown: str) -> None:
    events = answer(*said(0, first), *ran(1), *said(2, second))
    assert whole(events)["choices"][0]["message"]["content"] == shown
    (told,) = assemble_chat(chunks(events), 1)
    assert told.content == shown


def test_texts_around_a_call_that_is_not_shown_are_set_apart() -> None:
    def apart(block: int, text: str) -> list[Event]:
        return [
            BlockStart(0, block, "text", apart=True),
            *(Delta(0, block, part, 1) for part in text),
            BlockEnd(0, block, "text", text, apart=True),
        ]

    events = answer(*said(0, "Let me see."), *apart(1, "Four."), *said(2, " Or so."))
    assert whole(events)["choices"][0]["message"]["content"] == "Let me see.\n\nFour. Or so."
    (told,) = assemble_chat(chunks(events), 1)
    assert told.content == "Let me see.\n\nFour. Or so."
    assert whole(answer(*apart(0, "Four.")))["choices"][0]["message"]["content"] == "Four."


def test_the_clients_own_calls_are_counted_without_ours() -> None:
    call: list[Event] = [
        BlockStart(0, 1, "call", "look_up", "own"),
        Delta(0, 1, "{}"),
        BlockEnd(0, 1, "call", "{}", "look_up", "own"),
    ]
    events = answer(*ran(0), *call, reason="tool_calls")
    (shown,) = whole(events)["choices"][0]["message"]["tool_calls"]
    assert shown["id"] == "own"
    (told,) = assemble_chat(chunks(events), 1)
    assert [one["id"] for one in told.calls] == ["own"]
    assert whole(events)["choices"][0]["finish_reason"] == "tool_calls"


def test_an_answer_that_had_its_rounds_ends_by_length() -> None:
    events = answer(*ran(0), reason="pause")
    assert whole(events)["choices"][0]["finish_reason"] == "length"
    last = chunks(events)[-1]
    assert last["choices"][0]["finish_reason"] == "length"


FAILED = RunResult("tool failed: gone", RunError("http_error", 502, "gone"), duration_ms=9)
NO = RunResult(
    "no", RunError("mcp_tool_execution_error", content=({"type": "text", "text": "no"},))
)


@pytest.mark.parametrize("options", [{}, {"stream_options": {"include_usage": True}}])
def test_the_last_chunk_and_the_body_tell_of_runs_to_who_asks(options: dict[str, Any]) -> None:
    events = answer(*ran(0), *ran(1, HIDDEN), *ran(2, FIND, FAILED), *ran(3, FIND, NO))
    base = {"server": "docs", "name": "find", "arguments": '{"q":1}'}
    runs = [
        {**base, "output": "found", "error": None, "ms": 7},
        {
            **base,
            "output": None,
            "error": {"type": "http_error", "code": 502, "message": "gone"},
            "ms": 9,
        },
        {
            **base,
            "output": None,
            "error": {
                "type": "mcp_tool_execution_error",
                "content": [{"type": "text", "text": "no"}],
            },
            "ms": 0,
        },
    ]
    assert whole(events, shows=True)["smg"] == {"tool_runs": runs}
    told = chunks(events, shows=True, **options)
    assert told[-1]["smg"] == {"tool_runs": runs}
    assert all("smg" not in chunk for chunk in told[:-1])
    assert ("usage" in told[-1] and bool(told[-1]["usage"])) is bool(options)


def test_log_probabilities_are_those_of_what_is_shown() -> None:
    def row(token: str) -> tuple[TokenLogprob, ...]:
        return (TokenLogprob(1, token, token.encode(), -1.0, ()),)

    call = ran(1)
    call[1] = Delta(0, 1, '{"q":1}', 1, row("{"))
    events = answer(
        BlockStart(0, 0, "text"),
        Delta(0, 0, "a", 1, row("a")),
        BlockEnd(0, 0, "text", "a"),
        *call,
        BlockStart(0, 2, "text"),
        Delta(0, 2, "b", 1, row("b")),
        BlockEnd(0, 2, "text", "b"),
    )
    body = whole(events, logprobs=True)
    assert [one["token"] for one in body["choices"][0]["logprobs"]["content"]] == ["a", "b"]


def test_citations_count_their_places_in_all_of_the_content() -> None:
    def cited(block: int, text: str, start: int) -> list[Event]:
        annotation = {
            "type": "url_citation",
            "start_index": start,
            "end_index": start + 3,
            "url": "https://a.test",
            "title": "A",
        }
        *events, _ = said(block, text)
        return [*events, BlockEnd(0, block, "text", text, annotations=(annotation,))]

    events = answer(*cited(0, "One [1].", 4), *ran(1), *cited(2, "Two [1]!", 4))
    message = whole(events)["choices"][0]["message"]
    for one in message["annotations"]:
        span = one["url_citation"]
        assert message["content"][span["start_index"] : span["end_index"]] == "[1]"
        assert (span["url"], span["title"]) == ("https://a.test", "A")
    told = [
        one
        for chunk in chunks(events)
        for choice in chunk["choices"]
        for one in choice["delta"].get("annotations", ())
    ]
    assert told == message["annotations"]
    (alone,) = whole(answer(*cited(0, "One [1].", 4)))["choices"]
    assert len(alone["message"]["annotations"]) == 1


@settings(deadline=None, max_examples=example_count(200))
@given(st.data(), run_streams(), st.booleans())
def test_any_stream_is_put_together_to_its_whole_answer(
    data: st.DataObject, events: list[Event], shows: bool
) -> None:
    places = data.draw(st.sets(st.integers(0, len(events)))) | {0, len(events)}
    one = presenter(shows=shows, stream=True)
    raw = b"".join(one.frames(events[low:high]) for low, high in pairwise(sorted(places)))
    told = read_frames(raw).chunks
    (put_together,) = assemble_chat(told, 1)
    body = whole(events, shows=shows)
    message = body["choices"][0]["message"]
    assert put_together.content == (message["content"] or "")
    assert [call["id"] for call in put_together.calls] == [
        call["id"] for call in message.get("tool_calls", ())
    ]
    assert told[-1].get("smg") == body.get("smg")
    cited = [
        one
        for chunk in told
        for choice in chunk["choices"]
        for one in choice["delta"].get("annotations", ())
    ]
    assert cited == message.get("annotations", [])
    for one in cited:
        assert one["url_citation"]["end_index"] <= len(put_together.content)
    assert b"secret" not in raw


@settings(deadline=None, max_examples=example_count(100))
@given(run_streams())
def test_the_template_around_a_text_gives_the_same_frames(events: list[Event]) -> None:
    one, other = presenter(stream=True), presenter(stream=True)
    for event in events:
        around = one.around() if isinstance(event, Delta) else None
        shown = other.frames((event,))
        if around is not None and isinstance(event, Delta) and event.text:
            # As a node does it: what goes the short way is not told to the presenter.
            assert shown == around.head + around.text(event.text) + around.tail
        else:
            assert shown == one.frames((event,))
