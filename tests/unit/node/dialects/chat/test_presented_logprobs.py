"""Log probabilities of a chat, printed: content, thoughts and calls are not mixed."""

import json
from typing import Any

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
    TokenLogprob,
    Usage,
)
from smg_node.dialects.chat.dialect import ChatDialect
from smg_node.dialects.options import ReaderOptions
from support.answers.sse_client import read_frames

BEGIN = Begin("1", "m", 5, 3, "fp_1")
TOKEN = TokenLogprob(9, "é", "é".encode(), -0.25, ())
ROW = {"token": "é", "logprob": -0.25, "bytes": [195, 169], "top_logprobs": []}
THOUGHT_ROW = {"token": "h", "logprob": -0.5, "bytes": [104], "top_logprobs": []}
MIXED: list[Event] = [
    BEGIN,
    BlockStart(0, 0, "reasoning"),
    Delta(0, 0, "h", 1, (TokenLogprob(5, "h", b"h", -0.5, ()),), (5,)),
    BlockEnd(0, 0, "reasoning", "h"),
    BlockStart(0, 1, "text"),
    Delta(0, 1, "é", 1, (TOKEN,), (9,)),
    BlockEnd(0, 1, "text", "é"),
    BlockStart(0, 2, "call", "find", "call_1"),
    Delta(0, 2, "{}", 1, (TokenLogprob(6, "{}", b"{}", -0.5, ()),), (6,)),
    BlockEnd(0, 2, "call", "{}", "find", "call_1"),
    Finish(0, "tool_calls"),
    Usage(3, 3, 0, 1),
    End(),
]


@pytest.mark.parametrize(
    ("parameters", "content", "thought"),
    [
        ({}, [ROW], [THOUGHT_ROW]),
        ({"stream_reasoning": False}, [ROW], [THOUGHT_ROW]),
        ({"separate_reasoning": False}, [THOUGHT_ROW, ROW], None),
    ],
)
def test_tokens_of_content_thoughts_and_calls_are_not_mixed(
    parameters: dict[str, Any], content: list[Any], thought: list[Any] | None
) -> None:
    dialect, collector = ChatDialect(ReaderOptions()), Collector(1)
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "logprobs": True}
    reading = dialect.read({**body, **parameters})
    collector.feed(MIXED)
    answer = json.loads(dialect.presenter(reading).answer(collector.answer()))
    chunks = read_frames(dialect.presenter(reading).frames(MIXED)).chunks
    whole: dict[str, Any] = {"content": [], "refusal": None}
    for chunk in chunks:
        for name, rows in (chunk["choices"][0]["logprobs"] or {}).items():
            if name != "refusal":
                whole[name] = whole.get(name, []) + rows
    assert whole == answer["choices"][0]["logprobs"]
    assert (whole["content"], whole.get("reasoning_content")) == (content, thought)
