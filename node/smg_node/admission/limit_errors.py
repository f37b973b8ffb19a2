"""Limit error of a refused request: the limit, the reason, `retry-after` and headers. Pure."""

from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

from smg_node.admission.header_values import (
    Family,
    HeaderValues,
    duration,
    limit_headers,
    window_name,
)
from smg_node.admission.ports import Unit
from smg_node.core.errors import ErrorKind, SmgError

Reason: TypeAlias = Literal["used_up", "held_elsewhere", "no_owner", "too_large"]
"""Why: all of it is spent in the cluster; other nodes hold what is left; no owner is known that could give any; the
request needs more than there ever is.
"""
REASON_HEADER: Final = "x-smg-limit-reason"
QUOTA_FROM_MS: Final = 3_600_000
"""Windows from here on are budgets: nobody waits for their end."""
QUOTA_CODE: Final = "insufficient_quota"
_WORDS: Final[dict[Unit, str]] = {
    "requests": "requests",
    "tokens": "tokens",
    "input_tokens": "input tokens",
    "output_tokens": "output tokens",
    "cost": "units of cost",
    "concurrent": "requests at a time",
}


class LimitedError(SmgError):
    """A limit refuses a request. With `hopeless`, a retry will not help soon, or ever."""

    def __init__(
        self,
        message: str,
        *,
        code: str | None,
        where: str,
        retry_after_s: float,
        limits: Sequence[HeaderValues],
        refused: HeaderValues,
        reason: Reason,
        hopeless: bool,
    ) -> None:
        super().__init__(
            ErrorKind.RATE_LIMITED, message, where=where, code=code, retry_after_s=retry_after_s
        )
        self.limits = tuple(limits)
        self.refused = refused
        self.reason: Reason = reason
        self.hopeless = hopeless

    def headers(self, family: Family) -> dict[str, str]:
        """Return the headers of its limits, and of the one that refused, with the reason."""
        headers = limit_headers(self.limits, family, refused=self.refused)
        headers[REASON_HEADER] = self.reason
        return headers


def refusal(
    limits: Sequence[HeaderValues],
    refused: HeaderValues,
    *,
    window_ms: int,
    cost: int,
    retry_after_s: float,
    reason: Reason,
) -> LimitedError:
    """Return the error for a request that needs `cost` of the limit `refused`, where there is less."""
    words = _WORDS[refused.unit]
    scope = refused.name.partition("#")[0]
    whose = "this cluster" if scope == "global" else scope.replace(",", ", ")
    where = refused.unit if not window_ms else f"{refused.unit}/{window_name(window_ms)}"
    amount = f"{refused.limit} {words}" + (f" per {window_name(window_ms)}" if window_ms else "")
    never = cost > refused.limit
    if never:
        message = f"the request needs {cost} {words}; the limit of {whose} is {amount}"
    elif window_ms and reason == "used_up":
        message = f"the limit of {whose} is used up: {amount}; there is more in {duration(refused.reset_ms)}"
    elif window_ms and reason == "no_owner":
        message = f"this node may not give more now of the limit of {whose}: {amount}; it does not hear the node that shares it out"
    elif window_ms:
        message = f"other nodes hold what is left now of the limit of {whose}: {amount}"
    else:
        message = f"as many requests are open as the limit of {whose} allows: {amount}"
    quota = reason == "used_up" and window_ms >= QUOTA_FROM_MS
    return LimitedError(
        message,
        code=QUOTA_CODE if quota else None,
        where=where,
        retry_after_s=retry_after_s,
        limits=limits,
        refused=refused,
        reason="too_large" if never else reason,
        hopeless=quota or never,
    )
