"""Load samples: meaning of an engine's load report where it leaves fields out, and sums over its
ranks. Pure.
"""

from collections.abc import Sequence
from typing import Final

from smg_node.engines.load import Load

MEAN_PROMPT_TOKENS: Final = 1_024
"""What a request that waits at an engine is taken for, where the engine does not count its tokens."""
KV_MAX: Final = 0.99
"""Memory is never taken for fuller than that: what it costs grows without end."""
STUCK_S: Final = 3.0
"""An engine that reports steps may be silent for so long beyond the prefill of what it was given."""


def waiting_tokens(load: Load) -> int:
    """Return how many prompt tokens it has not worked off yet, as far as it says."""
    pending, uncached = load.prefill_pending_tokens, load.waiting_uncached_tokens
    if pending is None and uncached is None:
        return load.waiting * MEAN_PROMPT_TOKENS
    return max(pending or 0, uncached or 0)


def is_silent(load: Load, prefill_rate: float) -> bool:
    """Return whether an engine that reports steps has reported none for longer than its work can take."""
    if not load.reports_steps or load.silence_ms is None:
        return False
    due_s = (load.prefill_pending_tokens or 0) / prefill_rate + STUCK_S
    return load.silence_ms / 1000 > due_s


class Summed:
    """Sum over all ranks of one engine: requests and tokens in all, the rest for each rank on
    average.
    """

    __slots__ = ("kv", "requests", "silent", "tokens", "waiting")

    def __init__(self, loads: Sequence[Load], prefill_rate: float) -> None:
        count, waiting = len(loads), sum(load.waiting for load in loads)
        self.requests = sum(load.running for load in loads) + waiting
        self.tokens = sum(waiting_tokens(load) for load in loads)
        self.waiting = waiting / count if count else 0.0
        # Memory that only holds what may be forgotten, on an engine without work, is no pressure.
        used = sum(load.kv_usage or 0.0 for load in loads) if self.requests else 0.0
        self.kv = min(used / count, KV_MAX) if count else 0.0
        self.silent = any(is_silent(load, prefill_rate) for load in loads)
