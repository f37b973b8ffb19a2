"""Limit headers: what is left of a key's rates, in each vendor's names and units."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from math import ceil
from typing import Final

from smg_chaos.vendor.hostings.hosting import LimitStyle
from smg_chaos.vendor.limits.rate_buckets import Bucket, KeyBuckets

_THOUSAND: Final = 1_000
_HOUR_S: Final = 3_600
_MINUTE_S: Final = 60


def headers_of(
    style: LimitStyle, buckets: KeyBuckets, now_s: float, wall_s: float
) -> dict[str, str]:
    """Return the headers; a limit that there is not is not told. `wall_s` is the time of day."""
    rows = [("requests", buckets.requests), ("tokens", buckets.tokens)]
    told = [(what, bucket) for what, bucket in rows if bucket is not None]
    headers: dict[str, str] = {}
    for what, bucket in told:
        _STYLES[style](headers, what, bucket, now_s, wall_s)
    return headers


def go_duration(seconds: float) -> str:
    """Return a duration as Go prints it: `6ms`, `1.182s`, `2m59.56s`, `0s`."""
    if seconds <= 0:
        return "0s"
    if seconds < 1:
        milliseconds = ceil(seconds * 1000)
        return f"{milliseconds}ms" if milliseconds < _THOUSAND else "1s"
    hours, rest_s = divmod(round(seconds, 3), _HOUR_S)
    minutes, rest_s = divmod(rest_s, _MINUTE_S)
    text = f"{hours:.0f}h" if hours else ""
    text += f"{minutes:.0f}m" if hours or minutes else ""
    return text + f"{rest_s:.3f}".rstrip("0").rstrip(".") + "s"


def _openai(
    headers: dict[str, str], what: str, bucket: Bucket, now_s: float, wall_s: float
) -> None:
    headers[f"x-ratelimit-limit-{what}"] = str(bucket.limit)
    headers[f"x-ratelimit-remaining-{what}"] = str(bucket.remaining(now_s))
    headers[f"x-ratelimit-reset-{what}"] = go_duration(bucket.reset_s(now_s))


def _azure(headers: dict[str, str], what: str, bucket: Bucket, now_s: float, wall_s: float) -> None:
    _openai(headers, what, bucket, now_s, wall_s)
    headers[f"x-ratelimit-reset-{what}"] = str(ceil(bucket.reset_s(now_s) * 1000))
    headers[f"x-ratelimit-renewalperiod-{what}"] = str(_MINUTE_S)


def _anthropic(
    headers: dict[str, str], what: str, bucket: Bucket, now_s: float, wall_s: float
) -> None:
    reset = datetime.fromtimestamp(ceil(wall_s + bucket.reset_s(now_s)), UTC)
    left = bucket.remaining(now_s)
    names = [what] if what == "requests" else ["tokens", "input-tokens", "output-tokens"]
    for name in names:
        told = left if name == "requests" else round(left / _THOUSAND) * _THOUSAND
        head = f"anthropic-ratelimit-{name}"
        headers[f"{head}-limit"] = str(bucket.limit)
        headers[f"{head}-remaining"] = str(told)
        headers[f"{head}-reset"] = reset.strftime("%Y-%m-%dT%H:%M:%SZ")


def _together(
    headers: dict[str, str], what: str, bucket: Bucket, now_s: float, wall_s: float
) -> None:
    if what == "requests":
        headers["x-ratelimit-limit"] = str(bucket.limit)
        headers["x-ratelimit-remaining"] = str(bucket.remaining(now_s))
        headers["x-ratelimit-reset"] = str(ceil(bucket.reset_s(now_s)))


def _huggingface(
    headers: dict[str, str], what: str, bucket: Bucket, now_s: float, wall_s: float
) -> None:
    if what == "requests":
        left, reset_s = bucket.remaining(now_s), ceil(bucket.reset_s(now_s))
        headers["ratelimit"] = f'"api";r={left};t={reset_s}'
        headers["ratelimit-policy"] = f'"fixed window";"api";q={bucket.limit};w={_MINUTE_S}'


def _silent(
    headers: dict[str, str], what: str, bucket: Bucket, now_s: float, wall_s: float
) -> None:
    """Tell nothing, as Gemini and Converse do."""


_STYLES: Final[Mapping[LimitStyle, Callable[[dict[str, str], str, Bucket, float, float], None]]] = {
    "openai": _openai,
    "azure": _azure,
    "anthropic": _anthropic,
    "together": _together,
    "huggingface": _huggingface,
    "none": _silent,
}
