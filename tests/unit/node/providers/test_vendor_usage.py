"""What a vendor says that an answer costs is read alike, passed or translated, whole or cut: tokens, tier, own tools."""

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from smg_node.core.errors import SmgError
from smg_node.core.generation.events import Begin, Event, Usage
from smg_node.dialects.converse.aws_frames import FrameReader
from smg_node.providers.provider_dialects import provider_dialect
from support.providers.converse_answers import ROLE, ended, event, text

Told = Mapping[str, Any]
_encode = msgspec.json.encode


def _sse(*events: Told) -> list[bytes]:
    return [b"data: " + _encode(one) + b"\n\n" for one in events]


def _chunk(content: str, **more: object) -> Told:
    return {"choices": [{"index": 0, "delta": {"content": content}}], **more}


def _claude(**usage: object) -> Told:
    return {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage}


def _claude_delta(words: str) -> Told:
    delta = {"type": "text_delta", "text": words}
    return {"type": "content_block_delta", "index": 0, "delta": delta}


def _item_delta(words: str) -> Told:
    return {
        "type": "response.output_text.delta",
        "output_index": 0,
        "content_index": 0,
        "delta": words,
    }


def _candidate(words: str, *, usage: Told, **more: object) -> Told:
    content = {"role": "model", "parts": [{"text": words}]}
    return {"candidates": [{"content": content, **more}], "usageMetadata": usage}


STREAMS: dict[str, tuple[list[bytes], Usage]] = {
    "chat": (
        _sse(
            _chunk("a", service_tier="priority"),
            _chunk("b"),
            {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
            {
                "choices": [],
                "usage": {
                    "prompt_tokens": 40,
                    "completion_tokens": 2,
                    "prompt_tokens_details": {"cached_tokens": 8, "cache_write_tokens": 16},
                    "cost": 0.25,
                },
            },
        ),
        Usage(40, 2, 8, 0, 16, 0, "priority", (), 250_000_000_000),
    ),
    "messages": (
        _sse(
            {
                "type": "message_start",
                "message": {
                    "usage": {
                        "input_tokens": 10,
                        "cache_read_input_tokens": 20,
                        "cache_creation_input_tokens": 12,
                        "cache_creation": {
                            "ephemeral_5m_input_tokens": 4,
                            "ephemeral_1h_input_tokens": 8,
                        },
                        "output_tokens": 1,
                        "service_tier": "standard",
                    }
                },
            },
            {
                "type": "content_block_start",
                "index": 0,
                "content_block": {"type": "text", "text": ""},
            },
            _claude_delta("a"),
            _claude_delta("b"),
            _claude(output_tokens=2, server_tool_use={"web_search_requests": 3}),
            {"type": "message_stop"},
        ),
        Usage(42, 2, 20, 0, 12, 8, "standard", (("web_search", 3),)),
    ),
    "responses": (
        _sse(
            {"type": "response.output_item.added", "output_index": 0, "item": {"type": "message"}},
            _item_delta("a"),
            _item_delta("b"),
            {
                "type": "response.completed",
                "response": {
                    "status": "completed",
                    "service_tier": "flex",
                    "output": [
                        {"type": "message", "content": []},
                        {"type": "web_search_call", "id": "ws_1"},
                        {"type": "web_search_call", "id": "ws_2"},
                        {"type": "code_interpreter_call", "id": "ci_1"},
                    ],
                    "usage": {
                        "input_tokens": 30,
                        "output_tokens": 2,
                        "input_tokens_details": {"cached_tokens": 9, "cache_write_tokens": 5},
                        "cost_in_usd_ticks": 5,
                    },
                },
            },
        ),
        Usage(30, 2, 9, 0, 5, 0, "flex", (("code_interpreter", 1), ("web_search", 2)), 500),
    ),
    "generate_content": (
        _sse(
            _candidate("a", usage={"promptTokenCount": 7, "candidatesTokenCount": 1}),
            _candidate(
                "b",
                usage={
                    "promptTokenCount": 7,
                    "candidatesTokenCount": 2,
                    "cachedContentTokenCount": 3,
                    "trafficType": "ON_DEMAND_PRIORITY",
                },
                finishReason="STOP",
                groundingMetadata={"webSearchQueries": ["x", "y"]},
            ),
        ),
        Usage(7, 2, 3, 0, 0, 0, "ON_DEMAND_PRIORITY", (("web_search", 2),)),
    ),
    "converse": (
        [
            ROLE,
            text(0, "a"),
            text(0, "b"),
            ended("end_turn"),
            event(
                "metadata",
                {
                    "usage": {
                        "inputTokens": 5,
                        "outputTokens": 2,
                        "cacheReadInputTokens": 3,
                        "cacheWriteInputTokens": 4,
                    },
                    "serviceTier": {"type": "flex"},
                },
            ),
        ],
        Usage(12, 2, 3, 0, 4, 0, "flex"),
    ),
}
BY_THE_CUT = {
    "chat": None,
    # It is told at the start, but for the answer.
    "messages": Usage(42, 0, 20, 0, 12, 8, "standard"),
    "responses": None,
    "generate_content": Usage(7, 1, 0),
    "converse": None,
}
"""What was said before the last word, where the connection broke."""


def _judged(name: str, pieces: list[bytes]) -> tuple[Usage | None, int]:
    judge = provider_dialect(name, "m").judge()
    for piece in pieces:
        if name == "converse":
            for frame in FrameReader().feed(piece):
                judge.take(str(frame.headers[":event-type"]).encode(), frame.payload)
        else:
            judge.take(b"", piece.removeprefix(b"data: ").strip())
    return judge.usage, judge.deltas


def _listened(name: str, pieces: list[bytes]) -> tuple[Usage | None, int, list[Event]]:
    begin = Begin("0" * 32, "m", 1, 1)
    listener = provider_dialect(name, "m").listen(begin, prompt_tokens=99)
    out: list[Event] = []
    for piece in pieces:
        listener.feed(piece, out)
    spent, deltas = listener.spent, listener.deltas
    if listener.finished:
        listener.end(out)
    else:
        with pytest.raises(SmgError):
            listener.end([])
    return spent, deltas, out


@pytest.mark.parametrize("name", STREAMS)
def test_a_whole_answer_says_all_of_it(name: str) -> None:
    pieces, used = STREAMS[name]
    assert _judged(name, pieces) == (used, 2)
    spent, deltas, out = _listened(name, pieces)
    assert (spent, deltas) == (used, 2)
    assert used in out


@pytest.mark.parametrize("name", STREAMS)
def test_an_answer_that_is_cut_has_cost_what_was_said_and_what_came_by_then(name: str) -> None:
    pieces, _ = STREAMS[name]
    first = next(at for at, piece in enumerate(pieces) if b'a"' in piece) + 1
    assert _judged(name, pieces[:first]) == (BY_THE_CUT[name], 1)
    spent, deltas, _ = _listened(name, pieces[:first])
    assert (spent, deltas) == (BY_THE_CUT[name], 1)
