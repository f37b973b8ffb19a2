"""Rate limits of a session: what its limits leave when an answer begins, from the headers of other answers. Pure."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from smg_node.dialects.realtime.effects import RateLimit

_LENGTH: Final = re.compile(r"(\d+)(ms|h|m|s)")
_SECONDS: Final[Mapping[str, float]] = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3_600.0}


def rate_limits_of(headers: Mapping[str, str]) -> Sequence[RateLimit]:
    """Return the limits that OpenAI's headers tell of; none where there are none."""
    found: list[RateLimit] = []
    for name in ("requests", "tokens"):
        limit = headers.get(f"x-ratelimit-limit-{name}")
        if limit is None:
            continue
        reset = headers.get(f"x-ratelimit-reset-{name}", "")
        seconds = sum(int(count) * _SECONDS[unit] for count, unit in _LENGTH.findall(reset))
        remaining = int(headers.get(f"x-ratelimit-remaining-{name}", "0"))
        found.append(
            RateLimit(
                "requests" if name == "requests" else "tokens", int(limit), remaining, seconds
            )
        )
    return found
