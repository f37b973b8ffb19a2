"""How much is under way on one worker, by this node and by all nodes together."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

PREFILL_RATE: Final = 8_000.0
"""Prompt tokens a second, where nothing was measured yet."""
CAPACITY: Final = 64
"""Requests at once, where the engine does not say."""


@dataclass(slots=True, eq=False)
class WorkerLoad:
    """Open calls and the tokens of their prompts; what policies look at.

    `inflight` and `tokens` are kept as sums, because they are read for every request and change less often.
    `began` is called when this node's first call there begins.
    """

    worker: str
    weight: float = 1.0
    inflight: int = 0
    tokens: int = 0
    own_inflight: int = 0
    own_tokens: int = 0
    began: Callable[[], None] | None = None
    wait_s: float = 0.0
    pressure_s: float = 0.0
    prefill_rate: float = PREFILL_RATE
    capacity: int = CAPACITY

    def begin(self, tokens: int) -> None:
        """Count one of this node's calls in: the next decision sees it already."""
        if not self.own_inflight and self.began is not None:
            self.began()
        self.own_inflight += 1
        self.own_tokens += tokens
        self.inflight += 1
        self.tokens += tokens

    def end(self, tokens: int) -> None:
        """Count one of this node's calls out."""
        self.own_inflight -= 1
        self.own_tokens -= tokens
        self.inflight -= 1
        self.tokens -= tokens
        assert self.own_inflight >= 0
        assert self.own_tokens >= 0

    def hear(self, requests: int, tokens: int) -> None:
        """Take what all other nodes together have open there, as they last said."""
        self.inflight = self.own_inflight + requests
        self.tokens = self.own_tokens + tokens
