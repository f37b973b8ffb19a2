"""Limit headers: the buckets of an account, read from the headers of a vendor's answer. Pure.

OpenAI, xAI, Groq   x-ratelimit-{limit,remaining,reset}-{requests,tokens,…}       Go durations: 6ms, 1m3.5s
Azure               the same                                                       a bare number of milliseconds
Anthropic           anthropic-ratelimit-{requests,tokens,…}-{limit,remaining,reset}   RFC 3339
Together            x-ratelimit-{limit,remaining,reset}                            seconds
Hugging Face        ratelimit: "api";r=499;t=56, ratelimit-policy: …;q=500;w=60    seconds, of a fixed window
mantle              x-amzn-usage-reservation-{quota,remaining}                     no time
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from smg_node.providers.rates.bucket import UNTOLD_RESET_S, Bucket

AMOUNT_MAX: Final = 1e15
_RESET_MAX_S: Final = 86_400.0 * 31

_GO_UNITS: Final[Mapping[str, float]] = {
    "ns": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,
    "μs": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "m": 60.0,
    "h": 3_600.0,
    "d": 86_400.0,
}
_GO_PART: Final = re.compile(r"(\d{1,12}(?:\.\d{0,12})?|\.\d{1,12})(ns|us|µs|μs|ms|s|m|h|d)")
_NUMBER: Final = re.compile(r"\d{1,16}(?:\.\d{1,12})?", re.ASCII)
_STRUCTURED: Final = re.compile(r";\s*([a-z]{1,8})\s*=\s*(\d{1,16})(?![\d.])", re.ASCII)
_OPENAI_NAME: Final = re.compile(r"x-ratelimit-(limit|remaining|reset)-([a-z-]{1,40})")
_ANTHROPIC_NAME: Final = re.compile(r"anthropic-ratelimit-([a-z-]{1,40})-(limit|remaining|reset)")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def header_buckets(kind: str, headers: Mapping[str, str], *, now: float) -> Mapping[str, Bucket]:
    """Return the buckets that an answer's headers tell of; what is no number is passed over.

    `kind` is the provider's: Azure spells times its own way. Names of `headers` are in lower case.
    """
    told: dict[str, dict[str, str]] = {}
    for what, part, value in _parts(headers):
        told.setdefault(what, {})[part] = value
    found = {what: _bucket(kind, parts, now) for what, parts in told.items()}
    found["requests"] = found.get("requests") or _window(headers.get("ratelimit", ""), headers, now)
    return {what: bucket for what, bucket in found.items() if bucket is not None}


def reset_s(kind: str, headers: Mapping[str, str], *, now: float) -> float | None:
    """Return the seconds until the buckets that are empty hold something again; None if none is empty."""
    empty = [one for one in header_buckets(kind, headers, now=now).values() if one.remaining < 1]
    return max((one.wait_s(min(1.0, one.limit), now) for one in empty), default=None)


def _parts(headers: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Yield what each header counts, which part of a bucket it is, and its value."""
    for name, value in headers.items():
        if name.startswith("x-ratelimit-"):
            found = _OPENAI_NAME.fullmatch(name)
            if found:
                yield found[2], found[1], value
            elif name in ("x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"):
                yield "requests", name.rpartition("-")[2], value
        elif name.startswith("anthropic-ratelimit-"):
            found = _ANTHROPIC_NAME.fullmatch(name)
            if found:
                yield found[1], found[2], value
        elif name == "x-amzn-usage-reservation-quota":
            yield "tokens", "limit", value
        elif name == "x-amzn-usage-reservation-remaining":
            yield "tokens", "remaining", value


def _bucket(kind: str, parts: Mapping[str, str], now: float) -> Bucket | None:
    limit, remaining = _amount(parts.get("limit", "")), _amount(parts.get("remaining", ""))
    if limit is None or remaining is None or limit <= 0:
        return None
    told = parts.get("reset")
    reset = UNTOLD_RESET_S if told is None else duration_s(kind, told, now=now)
    if reset is None:
        return None
    return Bucket(limit, min(remaining, limit), now + min(max(reset, 0.0), _RESET_MAX_S), now)


def _window(said: str, headers: Mapping[str, str], now: float) -> Bucket | None:
    """Return the bucket of the `ratelimit` header: what remains of a window, and when that ends."""
    told = _fields(said)
    policy = _fields(headers.get("ratelimit-policy", ""))
    if "r" not in told or "t" not in told:
        return None
    remaining = float(told["r"])
    limit = float(policy.get("q", max(told["r"], 1)))
    full_at = now + min(float(told["t"]), _RESET_MAX_S)
    return Bucket(max(limit, 1.0), min(remaining, limit), full_at, now, window=True)


def _fields(said: str) -> Mapping[str, int]:
    first: Sequence[str] = said[:512].split(",")[:1]
    return {name: int(value) for one in first for name, value in _STRUCTURED.findall(one)}


def _amount(said: str) -> float | None:
    found = _NUMBER.fullmatch(said.strip())
    return min(float(found[0]), AMOUNT_MAX) if found else None


def duration_s(kind: str, said: str, *, now: float) -> float | None:
    """Return the seconds of a reset: a Go duration, a bare number, or a time of RFC 3339; None for what is neither.

    A bare number is milliseconds at Azure and seconds elsewhere; one that is as large as a time since the epoch is
    such a time.
    """
    said = said.strip()
    if _NUMBER.fullmatch(said):
        number = float(said)
        if kind.startswith("azure"):
            return number / 1_000
        return number - now if number > 1e9 else number
    if "-" in said or ":" in said:
        return _time_s(said, now)
    at, total = 0, 0.0
    while found := _GO_PART.match(said, at):
        total += float(found[1]) * _GO_UNITS[found[2]]
        at = found.end()
    return total if at == len(said) and at > 0 else None


def _time_s(said: str, now: float) -> float | None:
    try:
        date = datetime.fromisoformat(said)
        date = date if date.tzinfo else date.replace(tzinfo=UTC)
        return (date - _EPOCH).total_seconds() - now
    except (ValueError, OverflowError):
        return None
