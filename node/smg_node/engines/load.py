"""Load of an engine: what one data-parallel rank reports about how busy it is."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Load:
    """How busy one data-parallel rank of an engine is. None: the engine does not say."""

    rank: int
    running: int
    waiting: int
    running_max: int | None
    waiting_uncached_tokens: int | None
    kv_usage: float | None
    """Share of KV memory in use, 0..1."""
    tokens_per_s: float | None
    cache_hit_rate: float | None
    age_ms: int = 0
    """How old it was when it was sent."""
    silence_ms: int | None = None
    """How long the engine has said nothing while it had work; None: it has none, or cannot tell."""
    reports_steps: bool = False
    """Whether it says something with every step, so that silence means that it is stuck."""
    prefill_pending_tokens: int | None = None
    """Prompt tokens it was given and has not answered yet."""
