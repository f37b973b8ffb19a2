"""Total usage: what all passes of an answer cost together. Pure."""

from collections import Counter

from smg_node.core.generation.events import Usage


class TotalUsage:
    """Sum of the usage of passes. A prompt that is sent again counts again: that is what it costs."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._server_tools: Counter[str] = Counter()
        self._tier = ""
        self._cost_pico: int | None = None

    @property
    def completion_tokens(self) -> int:
        """Tokens that were generated so far."""
        return self._counts["completion_tokens"]

    def add(self, usage: Usage) -> None:
        """Add one pass's."""
        for name in _COUNTS:
            self._counts[name] += getattr(usage, name)
        self._server_tools.update(dict(usage.server_tools))
        self._tier = usage.service_tier or self._tier
        if usage.cost_pico is not None:
            self._cost_pico = (self._cost_pico or 0) + usage.cost_pico

    def total(self) -> Usage:
        """Return the sum."""
        counts = {name: self._counts[name] for name in _COUNTS}
        tools = tuple(sorted(self._server_tools.items()))
        return Usage(
            **counts, service_tier=self._tier, server_tools=tools, cost_pico=self._cost_pico
        )


_COUNTS = (
    "prompt_tokens",
    "completion_tokens",
    "cached_tokens",
    "reasoning_tokens",
    "cache_write_tokens",
    "cache_write_long_tokens",
    "image_tokens",
)
