"""Worker usage: what an answer of an OpenAI-compatible server cost, wherever that server says it. Pure.

    prompt     prompt_tokens
    answer     completion_tokens; where the total says more, what the prompt leaves of it: xAI's completion_tokens are
               without the thought, and Gemini's OpenAI door has neither the thought nor a name for it
    thought    completion_tokens_details.reasoning_tokens, or reasoning_tokens; never more than the answer
    cached     prompt_tokens_details.cached_tokens; num_cached_tokens (Mistral); prompt_cache_hit_tokens (DeepSeek);
               cached_tokens (Moonshot); never more than the prompt
    written    prompt_tokens_details.cache_write_tokens, those for 12 hours in cache_write_tokens_details

Groq says all of it in `x_groq.usage` of a stream's last chunk.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

TOKENS_MAX: Final = 2**40
_CACHED: Final = ("num_cached_tokens", "prompt_cache_hit_tokens", "cached_tokens")
"""Names beside the details, where they say nothing of it."""
_LONG: Final = "ttl_12h_tokens"


class WorkerUsage(NamedTuple):
    """Tokens of one answer. `tells_cached`: it says how much of the prompt was cached, perhaps nothing.

    `written` of the prompt were put into the cache, `written_long` of them for hours.
    """

    prompt: int
    answer: int
    cached: int
    thought: int
    tells_cached: bool
    written: int = 0
    written_long: int = 0


def worker_usage(told: Mapping[str, Any]) -> WorkerUsage:
    """Return what a `usage` says; 0 for what is missing or no number of tokens."""
    prompt, total = _count(told, "prompt_tokens"), _count(told, "total_tokens")
    answer = max(_count(told, "completion_tokens"), total - prompt if prompt else 0)
    details, made = told.get("prompt_tokens_details"), told.get("completion_tokens_details")
    thought = _count(made, "reasoning_tokens") or _count(told, "reasoning_tokens")
    found = [details.get("cached_tokens")] if isinstance(details, dict) else []
    found = [value for value in (*found, *map(told.get, _CACHED)) if value is not None]
    cached = max((_tokens(value) for value in found), default=0)
    written, long = cache_writes(details, prompt)
    return WorkerUsage(
        prompt, answer, min(cached, prompt), min(thought, answer), bool(found), written, long
    )


def cache_writes(details: object, prompt: int) -> tuple[int, int]:
    """Return what the details of a prompt say was written into the cache: all of it, and for hours."""
    written = min(_count(details, "cache_write_tokens"), prompt)
    if not written or not isinstance(details, dict):
        return 0, 0
    return written, min(_count(details.get("cache_write_tokens_details"), _LONG), written)


def usage_in(chunk: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the usage that an answer or a chunk of it holds, None if it holds none."""
    told = chunk.get("usage")
    if told is None:
        own = chunk.get("x_groq")
        told = own.get("usage") if isinstance(own, dict) else None
    return told if isinstance(told, dict) else None


def _count(told: object, name: str) -> int:
    return _tokens(told.get(name)) if isinstance(told, dict) else 0


def _tokens(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        return 0
    return value if 0 <= value <= TOKENS_MAX else 0
