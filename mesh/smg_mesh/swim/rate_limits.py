"""Rate limits: a token bucket, one bucket per origin, and once per span."""

from typing import Final, Generic, TypeVar

ORIGINS_MAX: Final = 1024
"""Origins and addresses remembered; beyond it the longest unseen is forgotten."""

K = TypeVar("K")


class Bucket:
    """Token bucket: lets `rate_per_s` pass on average, and `burst` at once."""

    __slots__ = ("_at_ms", "_burst", "_level", "_rate_per_ms")

    def __init__(self, rate_per_s: float, burst: float, *, now_ms: int) -> None:
        self._rate_per_ms = rate_per_s / 1000
        self._burst = burst
        self._level = burst
        self._at_ms = now_ms

    def take(self, *, now_ms: int) -> bool:
        """Take one token, if there is one."""
        gained = (now_ms - self._at_ms) * self._rate_per_ms
        self._level = min(self._burst, self._level + gained)
        self._at_ms = now_ms
        if self._level < 1:
            return False
        self._level -= 1
        return True


class Buckets:
    """One bucket per origin; a second's worth may come at once."""

    __slots__ = ("_buckets", "_rate_per_s")

    def __init__(self, rate_per_s: float) -> None:
        self._rate_per_s = rate_per_s
        self._buckets: dict[str, Bucket] = {}

    def take(self, origin: str, *, now_ms: int) -> bool:
        """Take one token of `origin`'s, if there is one."""
        bucket = self._buckets.pop(origin, None)
        if bucket is None:
            bucket = Bucket(self._rate_per_s, self._rate_per_s, now_ms=now_ms)
            if len(self._buckets) >= ORIGINS_MAX:
                del self._buckets[next(iter(self._buckets))]
        self._buckets[origin] = bucket
        return bucket.take(now_ms=now_ms)

    def __len__(self) -> int:
        return len(self._buckets)


class OncePer(Generic[K]):
    """Says yes once per span and key."""

    __slots__ = ("_last_ms", "_span_ms")

    def __init__(self, span_ms: int) -> None:
        self._span_ms = span_ms
        self._last_ms: dict[K, int] = {}

    def take(self, key: K, *, now_ms: int) -> bool:
        """Return whether the last yes for `key` is a span ago; if so, this is a yes."""
        last_ms = self._last_ms.get(key)
        if last_ms is not None and now_ms - last_ms < self._span_ms:
            return False
        self._last_ms.pop(key, None)
        if len(self._last_ms) >= ORIGINS_MAX:
            del self._last_ms[next(iter(self._last_ms))]
        self._last_ms[key] = now_ms
        return True

    def __len__(self) -> int:
        return len(self._last_ms)
