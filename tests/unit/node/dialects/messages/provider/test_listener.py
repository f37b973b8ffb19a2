"""Listener of a vendor's Messages: streams as they really come, and bodies that say the same."""

from typing import Any

import pytest

from smg_node.core.generation.events import (
    BlockEnd,
    BlockStart,
    Delta,
    End,
    Event,
    Finish,
    Usage,
)
from smg_node.core.generation.opaque import Opaque
from support.providers import messages_answers as vendor
from support.providers.heard_messages import (
    BEGIN,
    USAGE,
    ends,
    heard,
    listener,
    reason,
    signature,
    usage,
    whole,
)

# ── A stream ─────────────────────────────────────────────────────────────────


def test_a_stream_is_told_event_by_event() -> None:
    raw = [
        vendor.start(),
        vendor.PING,
        vendor.block_start(0, {"type": "thinking", "thinking": "", "signature": ""}),
        vendor.PING,
        vendor.delta(0, "thinking_delta", thinking="I "),
        vendor.delta(0, "thinking_delta", thinking="think"),
        vendor.delta(0, "signature_delta", signature="c2ln"),
        vendor.block_stop(0),
        vendor.block_start(1, {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}}),
        vendor.delta(1, "input_json_delta", partial_json=""),
        vendor.delta(1, "input_json_delta", partial_json='{"a":'),
        vendor.delta(1, "input_json_delta", partial_json="1}"),
        vendor.block_stop(1),
        vendor.stop("tool_use"),
    ]
    assert heard(raw) == [
        BEGIN,
        BlockStart(0, 0, "reasoning"),
        Delta(0, 0, "I ", 1),
        Delta(0, 0, "think", 1),
        BlockEnd(0, 0, "reasoning", "I think", opaque=(signature("c2ln"),)),
        BlockStart(0, 1, "call", "f", "toolu_1"),
        Delta(0, 1, '{"a":', 1),
        Delta(0, 1, "1}", 1),
        BlockEnd(0, 1, "call", '{"a":1}', "f", "toolu_1"),
        Finish(0, "tool_calls"),
        USAGE,
        End(),
    ]


def test_nothing_is_told_before_the_first_output() -> None:
    out: list[Event] = []
    one = listener()
    one.feed(vendor.start() + vendor.PING, out)
    one.feed(vendor.block_start(0, {"type": "text", "text": ""}), out)
    one.feed(vendor.delta(0, "text_delta", text=""), out)
    assert out == []
    one.feed(vendor.delta(0, "text_delta", text="H"), out)
    assert out == [BEGIN, BlockStart(0, 0, "text"), Delta(0, 0, "H", 1)]


def test_an_answer_of_nothing_is_one() -> None:
    assert heard([vendor.stream([])]) == [BEGIN, Finish(0, "stop"), USAGE, End()]
    assert whole(vendor.message()) == [BEGIN, Finish(0, "stop"), USAGE, End()]


def test_thoughts_that_are_only_signed_or_not_shown_are_blocks_without_text() -> None:
    blocks: list[vendor.Block] = [
        {"type": "thinking", "thinking": "", "signature": "one"},
        {"type": "redacted_thinking", "data": "two"},
        {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "thinking", "thinking": "x", "signature": "three"},
        {"type": "thinking", "thinking": "y", "signature": ""},
        {"type": "text", "text": "So"},
    ]
    found = ends(heard([vendor.stream(blocks)]))
    assert found == [
        ("reasoning", "", (signature("one"),)),
        ("reasoning", "", (Opaque("anthropic", "redacted", "two"),)),
        ("reasoning", "x", (signature("three"),)),
        ("reasoning", "y", ()),
        ("text", "So", ()),
    ]
    assert ends(whole(vendor.message(*blocks))) == found


def test_a_block_may_begin_with_what_it_says() -> None:
    raw = [
        vendor.start(),
        vendor.block_start(0, {"type": "thinking", "thinking": "I", "signature": "early"}),
        vendor.block_stop(0),
        vendor.block_start(1, {"type": "text", "text": "So"}),
        vendor.block_stop(1),
        vendor.block_start(2, {"type": "tool_use", "id": "a", "name": "f", "input": {"b": 1}}),
        vendor.block_stop(2),
        vendor.stop("tool_use"),
    ]
    assert ends(heard(raw)) == [
        ("reasoning", "I", (signature("early"),)),
        ("text", "So", ()),
        ("call", '{"b":1}', ()),
    ]


@pytest.mark.parametrize("printed", [[], [""], ["", "{}"], ["{", "}"], [" "]])
def test_a_call_without_arguments_has_an_empty_object_or_what_was_printed(
    printed: list[str],
) -> None:
    raw = [
        vendor.start(),
        vendor.block_start(0, {"type": "tool_use", "id": "a", "name": "f", "input": {}}),
        *(vendor.delta(0, "input_json_delta", partial_json=piece) for piece in printed),
        vendor.block_stop(0),
        vendor.stop("tool_use"),
    ]
    [(kind, text, _)] = ends(heard(raw))
    assert (kind, text.strip()) == ("call", "{}")


def test_ids_of_earlier_calls_are_not_used_again() -> None:
    call = {"type": "tool_use", "id": "taken", "name": "f", "input": {}}
    [start] = [one for one in whole(vendor.message(call)) if isinstance(one, BlockStart)]
    assert (start.name, start.call_id) == ("f", "")


def test_texts_that_a_citation_parts_are_one_and_those_around_a_foreign_block_are_two() -> None:
    search = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "x"}}
    blocks: list[vendor.Block] = [
        {"type": "text", "text": "The sky"},
        {"type": "text", "text": " is blue"},
        search,
        {"type": "web_search_tool_result", "tool_use_id": "s", "content": []},
        {"type": "text", "text": "So"},
    ]
    expected = [("text", "The sky is blue", ()), ("text", "So", ())]
    assert ends(heard([vendor.stream(blocks)])) == expected
    assert ends(whole(vendor.message(*blocks))) == expected


@pytest.mark.parametrize(
    ("word", "blocks", "finish"),
    [
        ("end_turn", [], Finish(0, "stop")),
        ("end_turn", ["call"], Finish(0, "tool_calls")),
        ("max_tokens", ["call"], Finish(0, "length")),
        ("tool_use", ["call"], Finish(0, "tool_calls")),
        ("pause_turn", [], Finish(0, "pause")),
        ("refusal", [], Finish(0, "refusal")),
        ("model_context_window_exceeded", [], Finish(0, "context_window")),
        ("unheard_of", [], Finish(0, "stop")),
    ],
)
def test_reasons(word: str, blocks: list[str], finish: Finish) -> None:
    said = [{"type": "tool_use", "id": "a", "name": "f", "input": {}} for _ in blocks]
    assert reason(heard([vendor.stream(said, reason=word)])) == finish
    assert reason(whole(vendor.message(*said, reason=word))) == finish


def test_the_text_that_ended_an_answer_is_told() -> None:
    raw = [vendor.start(), vendor.stop("stop_sequence", stop_sequence="END")]
    assert reason(heard(raw)) == Finish(0, "stop", "END")
    ended = vendor.message(reason="stop_sequence", stop_sequence="END")
    assert reason(whole(ended)) == Finish(0, "stop", "END")


# ── Usage ────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("first", "last", "used"),
    [
        ({"input_tokens": 10}, {"output_tokens": 3}, Usage(10, 3, 0)),
        ({"input_tokens": 0}, {"input_tokens": 8, "output_tokens": 3}, Usage(8, 3, 0)),
        (
            {"input_tokens": 10, "cache_read_input_tokens": 5},
            {"input_tokens": 12, "cache_read_input_tokens": None, "output_tokens": 3},
            Usage(17, 3, 5),
        ),
        (
            {"input_tokens": 1, "cache_creation_input_tokens": 9},
            {"output_tokens": 3},
            Usage(10, 3, 0, 0, 9),
        ),
        (
            {
                "input_tokens": 1,
                "cache_creation": {
                    "ephemeral_5m_input_tokens": 4,
                    "ephemeral_1h_input_tokens": 2,
                },
            },
            {"output_tokens": 3},
            Usage(7, 3, 0, 0, 6, 2),
        ),
        (
            {
                "input_tokens": 1,
                "cache_creation_input_tokens": 3,
                "cache_creation": {"ephemeral_1h_input_tokens": 9},
            },
            {"output_tokens": 3},
            Usage(4, 3, 0, 0, 3, 3),
        ),
        (
            {"input_tokens": 5},
            {
                "output_tokens": 3,
                "iterations": [
                    {"type": "compaction", "input_tokens": 90, "output_tokens": 7},
                    {"type": "message", "input_tokens": 5, "output_tokens": 3},
                ],
            },
            Usage(95, 10, 0),
        ),
        ({}, {}, Usage(30, 1, 0)),
        ({}, {"output_tokens": 3}, Usage(30, 3, 0)),
        ({"input_tokens": 9}, {}, Usage(9, 1, 0)),
        ({"input_tokens": -1}, {"output_tokens": "3"}, Usage(30, 1, 0)),
        (
            {"input_tokens": 9},
            {"output_tokens": 3, "output_tokens_details": {"thinking_tokens": 8}},
            Usage(9, 3, 0, 3),
        ),
    ],
)
def test_usage_is_what_both_ends_of_a_stream_say(
    first: dict[str, Any], last: dict[str, Any], used: Usage
) -> None:
    raw = [
        vendor.start(first),
        vendor.block_start(0, {"type": "text", "text": "Hi"}),
        vendor.block_stop(0),
        vendor.stop(usage=last),
    ]
    assert usage(heard(raw)) == used
