"""`10.0` is the integer 10 wherever an integer is taken, and 10.5 is none."""

from collections.abc import Callable
from typing import Any

import pytest

from smg_mesh.state.limits.limit_parser import LimitError, read_rule
from smg_mesh.state.limits.limit_scope import Scope
from smg_node.core.errors import SmgError
from smg_node.dialects.chat.reader import ChatReader
from smg_node.dialects.completions.reader import CompletionsReader
from smg_node.dialects.embeddings.reader import read_embeddings
from smg_node.dialects.options import ReaderOptions
from smg_node.dialects.responses.request.reader import ResponsesReader
from smg_node.dialects.tokenize.reader import read_detokenize
from support.answers.plain_values import plain

OPTIONS = ReaderOptions()
CHAT = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
TEXT = {"model": "m", "prompt": "hi"}
INPUT = {"model": "m", "input": "hi"}
Read = Callable[[dict[str, Any]], Any]


def chat(body: dict[str, Any]) -> Any:
    return ChatReader(OPTIONS).read(body).request


def completion(body: dict[str, Any]) -> Any:
    return CompletionsReader(OPTIONS).read(body).request


CASES: list[tuple[Read, dict[str, Any], str, Any]] = [
    *(
        (read, {**base, **more}, key, 10)
        for read, base in ((chat, CHAT), (completion, TEXT))
        for key, more in (
            ("max_tokens", {}),
            ("max_completion_tokens", {}),
            ("top_k", {}),
            ("seed", {}),
            ("n", {}),
            ("min_tokens", {"max_tokens": 20.0}),
            ("prompt_logprobs", {}),
            ("truncate_prompt_tokens", {}),
            ("priority", {}),
            ("best_of", {"n": 10.0}),
        )
    ),
    (chat, {**CHAT, "logprobs": True}, "top_logprobs", 10),
    (completion, TEXT, "logprobs", 5),
    (chat, CHAT, "stop_token_ids", [1, 10]),
    (completion, TEXT, "prompt", [1, 10]),
    (completion, TEXT, "prompt", [[1, 10], [2]]),
    (lambda body: read_embeddings(body, OPTIONS), INPUT, "input", [1, 10]),
    (lambda body: read_detokenize(body, OPTIONS), {"model": "m"}, "tokens", [1, 10]),
    *(
        (ResponsesReader(OPTIONS).read, INPUT, key, 10)
        for key in ("max_output_tokens", "max_tool_calls", "top_k", "seed")
    ),
    (
        lambda body: read_rule(Scope(tenant="a"), body, durable=True),
        {"mode": "strict"},
        "concurrency",
        10,
    ),
    (
        lambda amount: read_rule(
            Scope(tenant="a"),
            {"amounts": [{"unit": "requests", "window": "minute", **amount}]},
            durable=True,
        ),
        {},
        "amount",
        10,
    ),
]


def as_float(value: Any, more: float = 0.0) -> Any:
    return [as_float(each, more) for each in value] if isinstance(value, list) else value + more


@pytest.mark.parametrize(("read", "base", "key", "value"), CASES)
def test_a_number_without_a_fraction_is_an_integer(
    read: Read, base: dict[str, Any], key: str, value: Any
) -> None:
    assert plain(read({**base, key: as_float(value)})) == plain(read({**base, key: value}))


@pytest.mark.parametrize(("read", "base", "key", "value"), CASES)
def test_a_number_with_a_fraction_is_none(
    read: Read, base: dict[str, Any], key: str, value: Any
) -> None:
    with pytest.raises((SmgError, LimitError)):
        read({**base, key: as_float(value, 0.5)})
