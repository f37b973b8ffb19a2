"""Worker usage: what an answer of an OpenAI-compatible server cost, wherever that server says it. Pure.

    prompt     prompt_tokens
    answer     completion_tokens; where the total says more, what the prompt leaves of it: xAI's completion_tokens are
               without the thought, and Gemini's OpenAI door has neither the thought nor a name for it
    thought    completion_tokens_details.reasoning_tokens, or reasoning_tokens; never more than the answer
    cached     prompt_tokens_details.cached_tokens; num_cached_tokens (Mistral); prompt_cache_hit_tokens (DeepSeek);
               cached_tokens (Moonshot); never more than the prompt
    written    prompt_tokens_details.cache_write_tokens, those for 12 hours in cache_write_tokens_details
    tools      server_tool_use.web_search_requests and its like
    bill       cost in dollars (OpenRouter; with what the client's own account elsewhere is billed), cost.total_cost
               (Perplexity), cost_in_usd_ticks (xAI), of which a dollar has 10,000,000,000

Groq says all of it in `x_groq.usage` of a stream's last chunk. The tier stands beside the usage, as `service_tier`.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

TOKENS_MAX: Final = 2**40
_CACHED: Final = ("num_cached_tokens", "prompt_cache_hit_tokens", "cached_tokens")
"""Names beside the details, where they say nothing of it."""
_LONG: Final = "ttl_12h_tokens"
_TOOL_COUNT: Final = "_requests"
_TOOLS_MAX: Final = 16
_TIER_CHARACTERS_MAX: Final = 64
_PICO: Final = 1_000_000_000_000
_PICO_PER_TICK: Final = 100
_DOLLARS_MAX: Final = 1_000_000.0
"""A call that costs more was not told in dollars."""


class WorkerUsage(NamedTuple):
    """Tokens of one answer. `tells_cached`: it says how much of the prompt was cached, perhaps nothing.

    `written` of the prompt were put into the cache, `written_long` of them for hours. `tools` the vendor ran by itself,
    each with how often. `cost_pico` is its bill in millionths of a millionth of a dollar, None where it says none.
    """

    prompt: int
    answer: int
    cached: int
    thought: int
    tells_cached: bool
    written: int = 0
    written_long: int = 0
    tools: tuple[tuple[str, int], ...] = ()
    cost_pico: int | None = None


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
        prompt,
        answer,
        min(cached, prompt),
        min(thought, answer),
        bool(found),
        written,
        long,
        tools_in(told),
        own_bill(told),
    )


def cache_writes(details: object, prompt: int) -> tuple[int, int]:
    """Return what the details of a prompt say was written into the cache: all of it, and for hours."""
    written = min(_count(details, "cache_write_tokens"), prompt)
    if not written or not isinstance(details, dict):
        return 0, 0
    return written, min(_count(details.get("cache_write_tokens_details"), _LONG), written)


def tools_in(told: Mapping[str, Any]) -> tuple[tuple[str, int], ...]:
    """Return how often a vendor ran which of its own tools, sorted: `web_search_requests` is of `web_search`."""
    counts = told.get("server_tool_use")
    if not isinstance(counts, dict) or len(counts) > _TOOLS_MAX:
        return ()
    found = (
        (name.removesuffix(_TOOL_COUNT), _tokens(value))
        for name, value in counts.items()
        if isinstance(name, str) and name.endswith(_TOOL_COUNT)
    )
    return tuple(sorted((name, times) for name, times in found if times))


def own_bill(told: Mapping[str, Any]) -> int | None:
    """Return what a vendor says that it takes for a call, in pico-dollars; None if it does not say."""
    ticks = told.get("cost_in_usd_ticks")
    if isinstance(ticks, int) and not isinstance(ticks, bool) and ticks >= 0:
        return ticks * _PICO_PER_TICK
    cost = told.get("cost")
    if isinstance(cost, dict):
        return _dollars(cost.get("total_cost"))
    bill = _dollars(cost)
    details = told.get("cost_details")
    if bill is not None and told.get("is_byok") is True and isinstance(details, dict):
        # Its fee only: the model's vendor bills the account whose key it has.
        bill += _dollars(details.get("upstream_inference_cost")) or 0
    return bill


def tier_in(told: object, name: str = "service_tier") -> str:
    """Return the service tier that an answer names, "" for none."""
    tier = told.get(name) if isinstance(told, dict) else None
    return tier if isinstance(tier, str) and len(tier) <= _TIER_CHARACTERS_MAX else ""


def usage_in(chunk: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the usage that an answer or a chunk of it holds, None if it holds none."""
    told = chunk.get("usage")
    if told is None:
        own = chunk.get("x_groq")
        told = own.get("usage") if isinstance(own, dict) else None
    return told if isinstance(told, dict) else None


def _count(told: object, name: str) -> int:
    return _tokens(told.get(name)) if isinstance(told, dict) else 0


def _dollars(value: object) -> int | None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return round(value * _PICO) if 0 <= value <= _DOLLARS_MAX else None


def _tokens(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        return 0
    return value if 0 <= value <= TOKENS_MAX else 0
