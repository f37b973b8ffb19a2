"""Rate buckets: requests and tokens a minute for each key, refilled all the time, as vendors count them."""

from typing import Final

from smg_chaos.vendor.errors.vendor_error import Reason, VendorError

_MINUTE_S: Final = 60.0


class Bucket:
    """One bucket of `limit` a minute, of which the part `filled` is there at first. It may be overdrawn by what was not
    known before.
    """

    def __init__(self, limit: int, now_s: float, filled: float = 1.0) -> None:
        self.limit = limit
        self._level = limit * filled
        self._seen_s = now_s

    def _refill(self, now_s: float) -> None:
        elapsed_s = max(0.0, now_s - self._seen_s)
        self._level = min(float(self.limit), self._level + elapsed_s * self.limit / _MINUTE_S)
        self._seen_s = max(now_s, self._seen_s)

    def remaining(self, now_s: float) -> int:
        """Return how much is left."""
        self._refill(now_s)
        return max(0, int(self._level))

    def wait_s(self, amount: float, now_s: float) -> float:
        """Return how long until it holds `amount`, or as much as it ever holds."""
        self._refill(now_s)
        missing = min(amount, float(self.limit)) - self._level
        return max(0.0, missing * _MINUTE_S / self.limit)

    def reset_s(self, now_s: float) -> float:
        """Return how long until it is full."""
        return self.wait_s(float(self.limit), now_s)

    def take(self, amount: float, now_s: float) -> None:
        """Take that much out, or put it back if it is negative."""
        self._refill(now_s)
        self._level = min(float(self.limit), self._level - amount)


class KeyBuckets:
    """The buckets of one key; a limit of 0 is none."""

    def __init__(self, requests: int, tokens: int, now_s: float, filled: float = 1.0) -> None:
        self.requests = Bucket(requests, now_s, filled) if requests else None
        self.tokens = Bucket(tokens, now_s, filled) if tokens else None


class RateBuckets:
    """The buckets of all keys, and how many requests they let in and refused."""

    def __init__(self, requests_per_minute: int, tokens_per_minute: int) -> None:
        self._requests = requests_per_minute
        self._tokens = tokens_per_minute
        self._filled = 1.0
        self._keys: dict[str, KeyBuckets] = {}
        self.let_in = 0
        self.refused = 0

    def set(self, requests_per_minute: int, tokens_per_minute: int, filled: float = 1.0) -> None:
        """Give every key other limits, and new buckets that are filled to that part; count anew."""
        self._requests, self._tokens = requests_per_minute, tokens_per_minute
        self._filled = filled
        self._keys.clear()
        self.let_in = self.refused = 0

    def of(self, key: str, now_s: float) -> KeyBuckets:
        """Return the buckets of a key."""
        found = self._keys.get(key)
        if found is None:
            limits = self._requests, self._tokens
            found = self._keys[key] = KeyBuckets(*limits, now_s, self._filled)
        return found

    def admit(self, key: str, tokens: int, now_s: float) -> KeyBuckets:
        """Count a request with its expected tokens; VendorError, and nothing counted, if a bucket lacks it."""
        buckets = self.of(key, now_s)
        for what, bucket, amount in (
            ("requests", buckets.requests, 1),
            ("tokens", buckets.tokens, tokens),
        ):
            if bucket is None:
                continue
            wait_s = bucket.wait_s(amount, now_s)
            if wait_s > 0:
                self.refused += 1
                raise VendorError(
                    Reason.RATE,
                    f"Rate limit reached on {what} per min: Limit {bucket.limit}, Requested {amount}. "
                    f"Please try again in {wait_s:.3f}s.",
                    path=what,
                    retry_after_s=wait_s,
                    gate=True,
                )
        self.let_in += 1
        if buckets.requests is not None:
            buckets.requests.take(1, now_s)
        if buckets.tokens is not None:
            buckets.tokens.take(tokens, now_s)
        return buckets
