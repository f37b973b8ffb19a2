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
_WORDS: Final[dict[Unit, tuple[str, str]]] = {
    "requests": ("request", "requests"),
    "tokens": ("token", "tokens"),
    "input_tokens": ("input token", "input tokens"),
    "output_tokens": ("output token", "output tokens"),
    "cost": ("unit of cost", "units of cost"),
    "concurrent": ("request at a time", "requests at a time"),
}
"""What is counted: one of it, and any other number."""
_WORDS_OF_RUNS: Final[dict[Unit, tuple[str, str]]] = {
    **_WORDS,
    "requests": ("run", "runs"),
    "concurrent": ("run at a time", "runs at a time"),
}
_EACH_ONE: Final = ("requests", "concurrent")
"""Units of which each request, or run, is one: it can need too much only where there may be none at all."""


class LimitedError(SmgError):
    """A limit refuses a request. With `hopeless`, a retry will not help soon, or ever. `provider` is whose call it refuses,
    "" where it is the request itself.
    """

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
        self.provider = ""

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
    accrues_ms: int = 0,
) -> LimitedError:
    """Return the error for a request that needs `cost` of the limit `refused`, where there is less.

    A little accrues to this node in `accrues_ms`; 0: not before the window ends.
    """
    never = cost > refused.limit
    where = refused.unit if not window_ms else f"{refused.unit}/{window_name(window_ms)}"
    quota = reason == "used_up" and window_ms >= QUOTA_FROM_MS
    return LimitedError(
        _too_large(refused, window_ms, cost)
        if never
        else _message(refused, window_ms, reason, accrues_ms),
        code=QUOTA_CODE if quota else None,
        where=where,
        retry_after_s=retry_after_s,
        limits=limits,
        refused=refused,
        reason="too_large" if never else reason,
        hopeless=quota or never,
    )


def _whose(refused: HeaderValues) -> str:
    scope = refused.name.partition("#")[0]
    return "this cluster" if scope == "global" else scope.replace(",", ", ")


def _of_runs(refused: HeaderValues) -> bool:
    """Whether runs of a tool are limited: its scope names the tool, and names it last."""
    return refused.name.partition("#")[0].rpartition(",")[2].startswith("tool=")


def _counted(refused: HeaderValues, number: int) -> str:
    one, several = (_WORDS_OF_RUNS if _of_runs(refused) else _WORDS)[refused.unit]
    return f"{number} {one if number == 1 else several}"


def _amount(refused: HeaderValues, window_ms: int) -> str:
    words = _counted(refused, refused.limit)
    return f"{words} per {window_name(window_ms)}" if window_ms else words


def _too_large(refused: HeaderValues, window_ms: int, cost: int) -> str:
    limit = f"the limit of {_whose(refused)} is {_amount(refused, window_ms)}"
    what = "run" if _of_runs(refused) else "request"
    if refused.unit in _EACH_ONE:
        return f"no {what} is let in: {limit}"
    return f"the {what} needs {_counted(refused, cost)}; {limit}"


def _message(refused: HeaderValues, window_ms: int, reason: Reason, accrues_ms: int) -> str:
    """Return what is wrong, and when there is more: that is what `retry-after` and the headers say too."""
    whose, amount = _whose(refused), _amount(refused, window_ms)
    little = f"a little more comes in {duration(accrues_ms)}" if accrues_ms else ""
    if not window_ms:
        what = "runs" if _of_runs(refused) else "requests"
        return f"as many {what} are open as the limit of {whose} allows: {amount}"
    if reason == "used_up":
        again = f"there is more in {duration(refused.reset_ms)}"
        if little:
            again = f"{little}, and all of it in {duration(refused.reset_ms)}"
        return f"the limit of {whose} is used up: {amount}; {again}"
    if reason == "no_owner":
        text = (
            f"this node may not give more now of the limit of {whose}: {amount}; "
            "it does not hear the node that shares it out"
        )
    elif little:
        text = f"nothing is left at this moment of the limit of {whose}: {amount}"
    else:
        text = f"other nodes hold what is left now of the limit of {whose}: {amount}"
    return f"{text}; {little}" if little else text
