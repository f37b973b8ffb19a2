"""Traffic setting: engines, request rate, answer lengths and policy of a world."""

from dataclasses import dataclass
from typing import Final

MODEL: Final = "m"
KEY: Final = "model=m#requests/1000"
"""The limit that every request is charged to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrafficSetting:
    """Engines, and clients that come by a load balancer. Times are of the world."""

    engines: tuple[str, ...]
    requests_per_s: float
    """Of all clients together, in usual times."""
    tokens: tuple[int, int] = (4, 40)
    """An answer has so many, drawn evenly."""
    step_s: float = 0.02
    """Between two tokens of an answer."""
    slots: int = 8
    """Answers that an engine works on at once."""
    policy: str = "cache_aware"
    from_ms: int = 3_000
    until_ms: int = 40_000
