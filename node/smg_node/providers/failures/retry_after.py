"""Retry-after: how long a vendor wants its caller to wait, wherever it says so. Pure.

    x-should-retry              true or false, from SDK-made vendors: obeyed before all
    retry-after-ms              milliseconds, a fraction allowed
    retry-after                 seconds, a fraction allowed, or a date
    RetryInfo.retryDelay        Google, in the body only
    the reset headers           of a bucket that is empty

Only with 429, 503 and 529: several vendors send `retry-after` along with good answers.
"""

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

WAITING_STATUSES: Final = frozenset([429, 503, 529])
WAIT_MAX_S: Final = 86_400.0 * 7
"""A longer wait is taken for this one: a quota of a week is the longest there is."""
_NUMBER: Final = re.compile(r"\d{1,12}(?:\.\d{1,12})?", re.ASCII)


def retry_after_s(
    status: int,
    headers: Mapping[str, str],
    *,
    now: float,
    body_s: float | None = None,
    reset_s: float | None = None,
) -> float | None:
    """Return the seconds to wait, None if nothing is said or the status is not one to wait for.

    `now` is in seconds since the epoch. `body_s` is what the body says, `reset_s` when the empty buckets fill.
    """
    if status not in WAITING_STATUSES:
        return None
    told = (
        _milliseconds(headers.get("retry-after-ms", "")),
        _header_s(headers.get("retry-after", ""), now),
        body_s,
        reset_s,
    )
    found = next((value for value in told if value is not None and math.isfinite(value)), None)
    return None if found is None else min(max(found, 0.0), WAIT_MAX_S)


def should_retry(headers: Mapping[str, str]) -> bool | None:
    """Return what `x-should-retry` says; None if it says nothing."""
    return {"true": True, "false": False}.get(headers.get("x-should-retry", "").strip().lower())


def _milliseconds(said: str) -> float | None:
    found = _NUMBER.fullmatch(said.strip())
    return float(found[0]) / 1_000 if found else None


def _header_s(said: str, now: float) -> float | None:
    found = _NUMBER.fullmatch(said.strip())
    if found:
        return float(found[0])
    try:
        date = parsedate_to_datetime(said)
        if date.tzinfo is None:
            date = date.replace(tzinfo=UTC)
        return max(0.0, (date - _EPOCH).total_seconds() - now)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
