"""Answer objects: parts, usage and log probabilities as this API's answers have them."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from smg_node.core.generation.call_arguments import UNREADABLE_KEY, read_arguments
from smg_node.core.generation.events import FinishReason, TokenLogprob, TopLogprob, Usage
from smg_node.dialects.openai.logprobs import finite

FINISH: Final[Mapping[FinishReason, str]] = {
    "stop": "STOP",
    "tool_calls": "STOP",
    "length": "MAX_TOKENS",
    "content_filter": "SAFETY",
    "refusal": "SAFETY",
    "pause": "STOP",
    "context_window": "MAX_TOKENS",
}
"""A model that refuses is told as one whose words were held back: clients know of no other way."""


def call_part(name: str, call_id: str, arguments: str, signature: str = "") -> dict[str, Any]:
    """Return the part of a call, with the signature of the thought that led to it."""
    args = read_arguments(arguments)
    call = {
        "id": call_id,
        "name": name,
        "args": {UNREADABLE_KEY: arguments} if args is None else args,
    }
    return (
        {"functionCall": call, "thoughtSignature": signature}
        if signature
        else {"functionCall": call}
    )


def usage_object(usage: Usage) -> dict[str, Any]:
    """Return `usageMetadata`; thoughts are not among the candidates' tokens here."""
    thoughts = usage.reasoning_tokens
    told = {
        "promptTokenCount": usage.prompt_tokens,
        "candidatesTokenCount": usage.completion_tokens - thoughts,
        "totalTokenCount": usage.prompt_tokens + usage.completion_tokens,
        "promptTokensDetails": text_tokens(usage.prompt_tokens),
    }
    if usage.cached_tokens:
        told["cachedContentTokenCount"] = usage.cached_tokens
    if thoughts:
        told["thoughtsTokenCount"] = thoughts
    return told


def text_tokens(count: int) -> list[dict[str, Any]]:
    """Return the tokens of a prompt by modality; all of ours is text."""
    return [{"modality": "TEXT", "tokenCount": count}]


def logprobs_object(rows: Sequence[TokenLogprob]) -> dict[str, Any]:
    """Return `logprobsResult`: the tokens drawn, and the best alternatives at each place."""
    return {
        "chosenCandidates": [_row(row) for row in rows],
        "topCandidates": [{"candidates": [_row(top) for top in row.top]} for row in rows],
    }


def average(rows: Sequence[TokenLogprob]) -> float:
    """Return the mean log probability of these tokens; there is one at least."""
    return sum(finite(row.logprob) for row in rows) / len(rows)


def _row(token: TokenLogprob | TopLogprob) -> dict[str, Any]:
    return {
        "token": token.token,
        "tokenId": token.token_id,
        "logProbability": finite(token.logprob),
    }
