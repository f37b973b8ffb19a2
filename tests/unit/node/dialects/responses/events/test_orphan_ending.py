"""Whoever dies in the middle of telling: what is left is closed, and the whole stream is one that the SDK follows."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.events import Event
from smg_node.dialects.responses.events.final_status import FinalStatus
from smg_node.dialects.responses.events.numbered_events import NumberedEvent
from smg_node.dialects.responses.events.orphan_ending import (
    LogReplay,
    OrphanEnding,
    closing,
    ended_object,
    with_output,
)
from smg_node.dialects.responses.events.presenter import ReasoningEvents
from smg_node.dialects.responses.events.stored_replay import replayed
from smg_node.dialects.responses.items.item_document import items_of
from smg_node.dialects.responses.request.output_parameters import LOGPROBS
from smg_node.history.runs.event_codec import terminal
from support.answers.generations import call, text, thought, types, whole
from support.answers.grammatical_streams import streams
from support.answers.responses import ask_of, checked, decoded, items_from, teller_of

CUSTOM = [{"type": "custom", "name": "f"}]
DIED = FinalStatus.failed(SmgError(ErrorKind.UPSTREAM_FAILED, "the node that made it died")).at(9)
ENDS = (DIED, FinalStatus.cancelled().at(9))


def told_and_row(
    events: Sequence[Event], *, queued: bool = False, reasoning: ReasoningEvents = "sdk", **ask: Any
) -> tuple[list[NumberedEvent], bytes]:
    """Return all that a teller says but its last word, and the object as it was before it said anything."""
    teller = teller_of(ask_of(**ask), reasoning_events=reasoning)
    row = teller.response()
    told = teller.begin(queued=queued)
    told += teller.tell(events)
    assert teller.outcome is not None
    return [*told, *teller.close(teller.outcome)][:-1], row


def buried(
    row: bytes,
    log: Sequence[NumberedEvent],
    ended: FinalStatus = DIED,
    reasoning: ReasoningEvents = "sdk",
) -> tuple[OrphanEnding, list[NumberedEvent]]:
    """Close a log as an adopter does; check all that must hold of it."""
    left = closing(row, log, reasoning_events=reasoning)
    final = ended_object(row, left.output, ended)
    stream = [*log, *left.events, terminal(final, left.next)]
    if reasoning == "sdk":
        response = checked(stream)
        assert response.status == ended.status
        assert response.error is None or response.error.message == "the node that made it died"
    # What is accumulated is what is kept: every item as it was told, byte for byte.
    done = [json.loads(one.data)["item"] for one in stream if "item.done" in one.type]
    assert [json.loads(item.document) for item in left.output] == done
    assert json.loads(final)["output"] == done
    kept = items_of(json.dumps(json.loads(final)["output"]).encode())
    assert [item.type for item in kept] == [item.type for item in left.output]
    # Only what was open is cut short, and what was over before is as it was.
    fold = LogReplay()
    fold.feed(log)
    assert left.output[: len(fold.done)] == fold.done
    assert len(left.output) - len(fold.done) in (0, 1)
    assert all(item.status in ("incomplete", "") for item in left.output[len(fold.done) :])
    # Who comes after a second death has nothing left to close.
    again = closing(row, [*log, *left.events], reasoning_events=reasoning)
    assert again == OrphanEnding([], left.output, left.next)
    return left, stream


@settings(max_examples=15, deadline=None)
@given(
    streams(kinds=("text", "reasoning", "call"), logprobs=True, failing=False),
    st.booleans(),
    st.booleans(),
    st.sampled_from(ENDS),
)
def test_a_stream_cut_at_any_event_is_closed(
    events: list[Event], queued: bool, custom: bool, ended: FinalStatus
) -> None:
    asked: dict[str, Any] = {"tools": [{"type": "custom", "name": "look_up"}]} if custom else {}
    told, row = told_and_row(events, queued=queued, include=[LOGPROBS], **asked)
    for cut in range(len(told) + 1):
        buried(row, told[:cut], ended)


@settings(max_examples=10, deadline=None)
@given(streams(kinds=("text", "reasoning", "call"), failing=False))
def test_thoughts_are_told_by_the_names_they_began_with(events: list[Event]) -> None:
    told, row = told_and_row(events, reasoning="open")
    for cut in range(len(told) + 1):
        left, stream = buried(row, told[:cut], reasoning="open")
        assert not [one for one in stream if "reasoning_text" in one.type]
        # Where the log shows how they are called, nobody need say so.
        shown = any(one.type.startswith("response.reasoning.") for one in told[:cut])
        if shown:
            assert closing(row, told[:cut]) == left


PARTS = [
    {"type": "output_text", "text": "ab", "annotations": [{"type": "x"}], "logprobs": []},
    {"type": "refusal", "refusal": "no"},
]
SAID: list[list[dict[str, Any]]] = [
    [{"type": "message", "role": "assistant", "content": PARTS}],
    [
        {
            "type": "reasoning",
            "summary": [{"type": "summary_text", "text": "s"}] * 2,
            "content": [{"type": "reasoning_text", "text": "t"}],
        }
    ],
    [{"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}],
    [{"type": "custom_tool_call", "call_id": "c", "name": "f", "input": "in"}],
    [{"type": "mcp_list_tools", "server_label": "s", "tools": []}],
    [{"type": "web_search_call", "status": "completed", "action": {"type": "search", "query": "q"}}],
]  # fmt: skip


@pytest.mark.parametrize("rows", [*SAID, [row for rows in SAID for row in rows]])
def test_items_that_our_engines_never_say_are_closed_too(rows: list[dict[str, Any]]) -> None:
    items = items_from([{"id": f"x{'yz'[n % 2]}_{n}", **row} for n, row in enumerate(rows)])
    row = teller_of().response()
    told = replayed(with_output(ended_object(row, items, FinalStatus.completed()), items))[:-1]
    for cut in range(len(told) + 1):
        left = closing(row, told[:cut])
        stream = [*told[:cut], *left.events]
        numbers = [one.sequence for one in stream]
        assert numbers == list(range(left.next))
        opened = [name for name in types(stream) if name.endswith(".added")]
        ended = [name for name in types(stream) if name.endswith("item.done")]
        assert len(ended) == len([name for name in opened if name == "output_item.added"])
        parts = [name for name in types(stream) if name.endswith("part.done")]
        assert len(parts) == len([name for name in opened if "part" in name])
        assert closing(row, stream) == OrphanEnding([], left.output, left.next)
        if cut == len(told):
            assert left.output == items


@pytest.mark.parametrize(
    ("events", "cut", "closed"),
    [
        ([], 0, ["created", "in_progress"]),
        ([], 1, []),
        (text("a", "b"), 3, ["output_item.done"]),
        (text("a", "b"), 4, ["output_text.done", "content_part.done", "output_item.done"]),
        (text("a", "b"), 6, ["output_text.done", "content_part.done", "output_item.done"]),
        (text("a", "b"), 7, ["content_part.done", "output_item.done"]),
        (text("a", "b"), 8, ["output_item.done"]),
        (text("a", "b"), 9, []),
        (thought("a"), 4, ["reasoning_text.done", "content_part.done", "output_item.done"]),
        (
            call("{", "}"),
            3,
            [
                "function_call_arguments.delta",
                "function_call_arguments.done",
                "output_item.done",
            ],
        ),
        (call("{", "}"), 4, ["function_call_arguments.done", "output_item.done"]),
        (call("{", "}"), 6, ["output_item.done"]),
    ],
)
def test_what_is_open_is_closed_from_the_inside(
    events: list[Event], cut: int, closed: list[str]
) -> None:
    told, row = told_and_row(whole(events))
    started = json.loads(row)["status"]
    assert started == "queued"
    row = row.replace(b'"status":"queued"', b'"status":"in_progress"')
    left, _ = buried(row, told[:cut])
    assert types(left.events) == closed
    assert left.next == cut + len(closed)


def test_who_died_before_a_word_is_told_to_have_waited() -> None:
    _, row = told_and_row(whole())
    left, stream = buried(row, [])
    assert types(left.events) == ["created", "queued"]
    assert types(stream) == ["created", "queued", "failed"]
    assert decoded(stream)[0]["response"] == json.loads(row)


def test_half_a_text_is_kept_as_what_it_is() -> None:
    told, row = told_and_row(whole(thought("hm"), text("so ", "far", block=1)))
    cut = [one.type for one in told].index("response.output_text.delta") + 1
    left, _ = buried(row, told[:cut], FinalStatus.cancelled())
    reasoning, message = (item.values() for item in left.output)
    assert reasoning["status"] == "completed"
    assert message["status"] == "incomplete"
    assert message["content"][0]["text"] == "so "
    assert (
        json.loads(ended_object(row, left.output, FinalStatus.cancelled()))["status"] == "cancelled"
    )


def test_a_custom_tool_that_heard_nothing_yet_has_an_empty_input() -> None:
    told, row = told_and_row(whole(call('{"input":"x"}')), tools=CUSTOM)
    left, _ = buried(row, told[:3])
    assert left.output[0].values()["input"] == ""


def test_a_log_in_portions_is_the_same_log() -> None:
    told, row = told_and_row(whole(thought("hm"), text("a", block=1), call("{}", block=2)))
    for cut in range(len(told)):
        fold = LogReplay()
        assert not fold.started
        fold.feed(told[:cut])
        assert fold.started == (cut > 1)
        fold.feed(told[cut:])
        assert fold.close(row) == closing(row, told)


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("response.output_item.added", {}),
        ("response.output_item.added", {"output_index": 7, "item": {"type": "message"}}),
        ("response.output_item.done", {"item": 1}),
        ("response.content_part.added", {"part": {}}),
        ("response.content_part.done", {"part": {}}),
        ("response.output_text.delta", {"delta": "a"}),
        ("response.output_text.annotation.added", {"annotation": {}}),
    ],
)
def test_nonsense_is_told_apart(kind: str, fields: dict[str, Any]) -> None:
    row = teller_of().response()
    data = json.dumps({"type": kind, "sequence_number": 0, **fields}).encode()
    with pytest.raises(ValueError, match=r"event 0|begins|is said of|not the document"):
        closing(row, [NumberedEvent(0, kind, data)])
    with pytest.raises(ValueError, match="event 3 stands where 0 should be"):
        closing(row, [NumberedEvent(3, kind, data)])


@pytest.mark.parametrize("document", [b"", b"[]", b"{", b"[1"])
def test_what_is_no_response_has_no_afterlife(document: bytes) -> None:
    with pytest.raises(ValueError, match="no response"):
        closing(document, [])
    with pytest.raises(ValueError, match="no response"):
        ended_object(document, (), DIED)
