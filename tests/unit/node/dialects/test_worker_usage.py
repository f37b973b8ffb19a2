"""Worker usage: the places in which servers say what an answer cost, and values that are none."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_node.core.generation.events import Begin, Event, Usage
from smg_node.dialects.chat.listener import ChunkReader
from smg_node.dialects.worker_usage import WorkerUsage, usage_in, worker_usage
from smg_node.pipeline.relay.response_filter import UsageReader

CASES: dict[str, tuple[dict[str, Any], WorkerUsage]] = {
    "openai": (
        {
            "prompt_tokens": 100,
            "completion_tokens": 40,
            "total_tokens": 140,
            "prompt_tokens_details": {"cached_tokens": 64},
            "completion_tokens_details": {"reasoning_tokens": 30},
        },
        WorkerUsage(100, 40, 64, 30, True),
    ),
    "xai, whose answer is told without its thought": (
        {
            "prompt_tokens": 213,
            "completion_tokens": 3,
            "total_tokens": 252,
            "completion_tokens_details": {"reasoning_tokens": 36},
        },
        WorkerUsage(213, 39, 0, 36, False),
    ),
    "gemini's openai door, which does not say that there was a thought": (
        {"prompt_tokens": 35, "completion_tokens": 12, "total_tokens": 109},
        WorkerUsage(35, 74, 0, 0, False),
    ),
    "mistral": (
        {
            "prompt_tokens": 50,
            "completion_tokens": 5,
            "total_tokens": 55,
            "num_cached_tokens": 48,
        },
        WorkerUsage(50, 5, 48, 0, True),
    ),
    "deepseek": (
        {
            "prompt_tokens": 50,
            "completion_tokens": 5,
            "total_tokens": 55,
            "prompt_cache_hit_tokens": 32,
            "prompt_cache_miss_tokens": 18,
        },
        WorkerUsage(50, 5, 32, 0, True),
    ),
    "moonshot": (
        {"prompt_tokens": 50, "completion_tokens": 5, "cached_tokens": 20},
        WorkerUsage(50, 5, 20, 0, True),
    ),
    "a server that says that nothing was cached": (
        {
            "prompt_tokens": 50,
            "completion_tokens": 5,
            "prompt_tokens_details": {"cached_tokens": 0},
        },
        WorkerUsage(50, 5, 0, 0, True),
    ),
    "a server without details": (
        {"prompt_tokens": 50, "completion_tokens": 5, "prompt_tokens_details": None},
        WorkerUsage(50, 5, 0, 0, False),
    ),
    "more cached than there was, more thought than answer": (
        {
            "prompt_tokens": 5,
            "completion_tokens": 2,
            "num_cached_tokens": 9,
            "reasoning_tokens": 8,
        },
        WorkerUsage(5, 2, 5, 2, True),
    ),
    "a total that is less than its parts": (
        {"prompt_tokens": 5, "completion_tokens": 9, "total_tokens": 3},
        WorkerUsage(5, 9, 0, 0, False),
    ),
    "openrouter, which says what it takes, and what a client's own account is billed": (
        {
            "prompt_tokens": 50,
            "completion_tokens": 5,
            "cost": 0.000125,
            "is_byok": True,
            "cost_details": {"upstream_inference_cost": 0.0025},
            "server_tool_use": {"web_search_requests": 2, "web_fetch_requests": 0, "tokens": 9},
        },
        WorkerUsage(50, 5, 0, 0, False, 0, 0, (("web_search", 2),), 2_625_000_000),
    ),
    "xai's ticks, ten billion of which are a dollar": (
        {"prompt_tokens": 50, "completion_tokens": 5, "cost_in_usd_ticks": 37_756_000},
        WorkerUsage(50, 5, 0, 0, False, cost_pico=3_775_600_000),
    ),
    "perplexity, which takes its bill apart": (
        {"prompt_tokens": 50, "completion_tokens": 5, "cost": {"total_cost": 0.006}},
        WorkerUsage(50, 5, 0, 0, False, cost_pico=6_000_000_000),
    ),
    "bills that are none": (
        {"prompt_tokens": 5, "completion_tokens": 2, "cost": "0.1", "cost_in_usd_ticks": -3},
        WorkerUsage(5, 2, 0, 0, False),
    ),
    "a total without a prompt": ({"total_tokens": 9}, WorkerUsage(0, 0, 0, 0, False)),
    "no numbers of tokens": (
        {"prompt_tokens": True, "completion_tokens": -1, "total_tokens": 2.5},
        WorkerUsage(0, 0, 0, 0, False),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_an_answer_cost_is_read_wherever_it_is_told(name: str) -> None:
    told, used = CASES[name]
    assert worker_usage(told) == used


@pytest.mark.parametrize("name", [name for name in CASES if CASES[name][1].prompt])
def test_relayed_and_translated_answers_are_counted_alike(name: str) -> None:
    told, used = CASES[name]
    body = msgspec.json.encode(
        {
            "choices": [{"finish_reason": "stop", "message": {"content": "hi"}}],
            "usage": told,
        }
    )
    for cut in range(len(body)):
        reader = UsageReader()
        reader.feed(body[:cut])
        reader.feed(body[cut:])
        counted = (reader.prompt_tokens, reader.completion_tokens, reader.cached_tokens)
        assert counted == (used.prompt, used.answer, used.cached)
        assert reader.tells_cached == used.tells_cached
    events: list[Event] = []
    chunks = ChunkReader(Begin("0" * 32, "m", 1, 1), prompt_tokens=1)
    chunks.feed_whole(body, events)
    chunks.end(events)
    tools, cost = used.tools, used.cost_pico
    expected = Usage(used.prompt, used.answer, used.cached, used.thought)
    expected = msgspec.structs.replace(expected, server_tools=tools, cost_pico=cost)
    assert expected in events


def test_the_usage_of_a_stream_is_found_in_the_vendors_own_field() -> None:
    own = {"prompt_tokens": 1}
    assert usage_in({"x_groq": {"id": "r", "usage": own}}) is own
    assert usage_in({"usage": own, "x_groq": {"usage": {}}}) is own
    assert usage_in({"usage": None, "x_groq": None}) is None
    assert usage_in({"usage": [], "x_groq": "r"}) is None


junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda one: (
        st.lists(one, max_size=2)
        | st.dictionaries(st.sampled_from(("cached_tokens", "reasoning_tokens")), one)
    ),
    max_leaves=4,
)
fields = st.sampled_from(
    (
        "prompt_tokens",
        "completion_tokens",
        "total_tokens",
        "prompt_tokens_details",
        "completion_tokens_details",
        "num_cached_tokens",
        "reasoning_tokens",
    )
)


@given(st.dictionaries(fields, junk))
def test_any_values_give_counts_that_fit_together(told: dict[str, Any]) -> None:
    used = worker_usage(told)
    assert 0 <= used.cached <= used.prompt
    assert 0 <= used.thought <= used.answer
