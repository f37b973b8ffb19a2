"""Rows of relayed completions: as many as usage counts, or an error."""

import json
from pathlib import Path
from typing import Any

import pytest

from smg_node.core.errors import SmgError
from smg_node.engines.http.transport import HttpCall
from support.answers.chat_chunks import DONE, event
from support.engines.relay_bench import Told, relay_bench, streamed, told, worker


def rows(count: int) -> dict[str, Any]:
    return {
        "tokens": ["a"] * count,
        "token_logprobs": [-1.0] * count,
        "top_logprobs": [None] * count,
    }


def says(prompt: int, answer: int, *given: Any) -> Any:
    """Return a worker that counts these tokens and gives these rows, choice by choice."""

    def say(call: HttpCall) -> Told:
        body = json.loads(call.body)
        usage = {"prompt_tokens": prompt, "completion_tokens": answer}
        choices = [
            {"index": at, "text": "a", "logprobs": one, "finish_reason": "stop"}
            for at, one in enumerate(given)
        ]
        if not body.get("stream"):
            return told({"choices": choices, "usage": usage})
        assert body["stream_options"]["include_usage"] is True
        last = [event({"choices": [], "usage": usage})]
        return streamed(*(event({"choices": [one]}) for one in choices), *last, DONE)

    return say


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("counted", "given", "asked", "why"),
    [
        ((5, 3), [rows(3)], {}, ""),
        ((5, 3), [rows(2)], {}, "2 rows of log probabilities for 3 tokens"),
        ((5, 3), [None], {}, "0 rows of log probabilities for 3 tokens"),
        ((5, 3), [rows(3)], {"echo": True}, "3 rows of log probabilities for 8 tokens"),
        ((5, 3), [rows(8)], {"echo": True}, ""),
        ((5, 1), [rows(5)], {"echo": True, "max_tokens": 0}, ""),
        ((5, 1), [rows(4)], {"echo": True, "max_tokens": 0}, "4 rows"),
        ((5, 6), [rows(8), rows(8)], {"echo": True, "n": 2}, ""),
        ((5, 6), [rows(8), rows(7)], {"echo": True, "n": 2}, "15 rows"),
        ((5, 9), [rows(3)], {"best_of": 3}, ""),
        ((0, 0), [rows(3)], {}, ""),
        ((5, 3), [{**rows(3), "token_logprobs": [-1.0]}], {}, "for some of its tokens only"),
        ((5, 3), [{"content": [{"token": "a", "logprob": -1}] * 3}], {}, ""),
        ((5, 3), [{"content": [{"token": "a", "logprob": -1}]}], {}, "1 rows"),
        ((5, 3), [None], {"logprobs": None}, ""),
    ],
)
async def test_there_is_a_row_for_each_token_that_usage_counts(
    tmp_path: Path, counted: Any, given: Any, asked: dict[str, Any], why: str, stream: bool
) -> None:
    async with relay_bench(tmp_path, w=worker(says(*counted, *given))) as b:
        fields = {"prompt": "a", "logprobs": 1, "stream": stream, **asked}
        if asked.get("logprobs", 1) is None:
            fields["stream_options"] = {"include_usage": True}
        if not why:
            _, body = await b.answer("completions", **fields)
            assert body.count(b'"usage"') == (not stream or "stream_options" in fields)
            return
        with pytest.raises(SmgError) as caught:
            await b.answer("completions", **fields)
        assert why in caught.value.message
        assert caught.value.code == "upstream_logprobs_missing"
        assert caught.value.status == 502


async def test_another_worker_is_asked_for_the_rows_that_one_left_out(tmp_path: Path) -> None:
    short, good = worker(says(5, 3, rows(2))), worker(says(5, 3, rows(3)))
    async with relay_bench(tmp_path, a=short, b=good) as b:
        for _ in range(2):
            _, body = await b.answer("completions", prompt="a", logprobs=1)
            assert len(json.loads(body)["choices"][0]["logprobs"]["tokens"]) == 3
    assert len(short.calls) >= 1


async def test_a_stream_keeps_the_usage_that_its_client_asked_for(tmp_path: Path) -> None:
    async with relay_bench(tmp_path, w=worker(says(5, 3, rows(3)))) as b:
        options = {"include_usage": True}
        _, body = await b.answer(
            "completions", prompt="a", logprobs=0, stream=True, stream_options=options
        )
        assert body.count(b'"usage"') == 1
        assert body.endswith(DONE)


async def test_a_worker_that_gives_no_rows_is_not_passed_over_for_that(tmp_path: Path) -> None:
    one = worker(says(5, 3, None))
    async with relay_bench(tmp_path, w=one) as b:
        for _ in range(20):
            with pytest.raises(SmgError, match="0 rows of log probabilities"):
                await b.answer("completions", prompt="a", logprobs=1)
        _, body = await b.answer("completions", prompt="a")
        assert json.loads(body)["choices"][0]["text"] == "a"
