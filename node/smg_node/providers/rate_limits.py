"""Rate limits: what vendors tell of an account's buckets, followed between their answers. Pure.

    OpenAI, xAI, Groq   x-ratelimit-{limit,remaining,reset}-{requests,tokens,…}       Go durations: 6ms, 1m3.5s
    Azure               the same                                                       a bare number of milliseconds
    Anthropic           anthropic-ratelimit-{requests,tokens,…}-{limit,remaining,reset}   RFC 3339
    Together            x-ratelimit-{limit,remaining,reset}                            seconds
    Hugging Face        ratelimit: "api";r=499;t=56, ratelimit-policy: …;q=500;w=60    seconds, of a fixed window
    mantle              x-amzn-usage-reservation-{quota,remaining}                     no time

A reset is when a bucket is full again, and it fills evenly until then; a fixed window fills at its end. Between two
answers what this node sends is taken off by its own estimates, and each answer corrects them.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

import msgspec

STALE_S: Final = 60.0
"""News that are older count half: others have spent since, and buckets have filled."""
OPEN_MAX: Final = 65_536
"""So many calls are followed at once for one key; of more the oldest are forgotten."""
AMOUNT_MAX: Final = 1e15
_RESET_MAX_S: Final = 86_400.0 * 31
_UNTOLD_RESET_S: Final = 60.0
"""Where nobody says when a bucket fills: its limits are told by the minute."""

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


class Bucket(msgspec.Struct, frozen=True):
    """What is left of one thing that an account may spend, as of `seen`, in seconds since the epoch.

    `full_at` is when it holds `limit` again. `window`: it fills at once then, and not before.
    """

    limit: float
    remaining: float
    full_at: float
    seen: float
    window: bool = False

    def holds(self, now: float) -> float:
        """Return what is in it by now."""
        if now >= self.full_at:
            return self.limit
        if self.window or now <= self.seen:
            return self.remaining
        return min(self.limit, self.remaining + self._rate() * (now - self.seen))

    def wait_s(self, need: float, now: float) -> float:
        """Return the seconds until it holds `need`; infinite for more than it ever holds."""
        left = self.holds(now)
        if need <= left:
            return 0.0
        if need > self.limit:
            return math.inf
        until_full = self.full_at - now
        if self.window:
            return max(0.0, until_full)
        rate = self._rate()
        return max(0.0, min((need - left) / rate, until_full) if rate > 0 else until_full)

    def lowered(self, amount: float, now: float) -> "Bucket":
        """Return it with `amount` taken out now; it fills as fast as before, and may owe."""
        rate, left = self._rate(), self.holds(now) - amount
        if self.window:
            full_at = self.full_at if now < self.full_at else now + _UNTOLD_RESET_S
            return msgspec.structs.replace(self, remaining=left, full_at=full_at, seen=now)
        full_at = now + (self.limit - left) / rate if rate > 0 else self.full_at
        return msgspec.structs.replace(self, remaining=left, full_at=full_at, seen=now)

    def _rate(self) -> float:
        """How much comes back in a second: what is missing until it is full, over that time."""
        span = self.full_at - self.seen
        missing = self.limit - self.remaining
        if span > 0 and missing > 0:
            return missing / span
        # A bucket that was full says nothing of it, and limits are told by the minute.
        return self.limit / _UNTOLD_RESET_S


class RateLimits:
    """The buckets of one key, by what they count: `requests`, `tokens`, `input-tokens`, `output-tokens` …

    `begin` takes a call's estimates off, `learn` puts what an answer's headers say in their place: the vendor has
    counted that call, but perhaps none that this node began after it. `end` forgets a call without headers.
    """

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._buckets: dict[str, Bucket] = {}
        self._open: dict[int, Mapping[str, float]] = {}
        self._last = 0
        self._closed_until = 0.0

    @property
    def buckets(self) -> Mapping[str, Bucket]:
        """The buckets that the vendor has told of; none before its first answer."""
        return self._buckets

    def begin(self, need: Mapping[str, float], now: float) -> int:
        """Count a call in that will spend about `need`; return its number."""
        self._last += 1
        if len(self._open) >= OPEN_MAX:
            del self._open[next(iter(self._open))]
        self._open[self._last] = need
        for name, amount in need.items():
            if name in self._buckets:
                self._buckets[name] = self._buckets[name].lowered(amount, now)
        return self._last

    def learn(self, call: int, headers: Mapping[str, str], now: float) -> None:
        """Take over what the headers of the answer to `call` say; their names are in lower case."""
        self._open.pop(call, None)
        for name, bucket in header_buckets(self._kind, headers, now=now).items():
            later = sum(need.get(name, 0.0) for begun, need in self._open.items() if begun > call)
            self._buckets[name] = bucket.lowered(later, now) if later else bucket

    def end(self, call: int) -> None:
        """Forget a call that ended without an answer; what it took off stays off until the next answer."""
        self._open.pop(call, None)

    def close(self, wait_s: float, now: float) -> None:
        """Take in that the vendor wants nothing for so long; a shorter wait opens nothing earlier."""
        self._closed_until = max(self._closed_until, now + wait_s)

    def wait_s(self, need: Mapping[str, float], now: float) -> float:
        """Return the seconds until all buckets hold `need`, infinite for more than one ever holds."""
        waits = [
            self._buckets[name].wait_s(amount, now) * self._weight(self._buckets[name], now)
            for name, amount in need.items()
            if name in self._buckets
        ]
        return max(0.0, self._closed_until - now, *waits)

    def _weight(self, bucket: Bucket, now: float) -> float:
        return 0.5 if now - bucket.seen > STALE_S else 1.0


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
    reset = _UNTOLD_RESET_S if told is None else duration_s(kind, told, now=now)
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
