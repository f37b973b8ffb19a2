"""Rate limits of one key: its buckets, followed between a vendor's answers and shared with others. Pure.

Between two answers what this process sends is taken off by its own estimates, and each answer corrects them. Other
processes, and other nodes, spend from the same bucket. What they heard of it last, and how much of it they want in a
second, is heard by rumor, a part of a second late. So of what seems to be left a process keeps its hands off what the
others may have spent since the news:

    held back = min(wanted by others x (age of the news + delays), their part of what is left)

Their part is by demand: whoever asks for a third of all gets a third of what is left. Where all keep to their parts,
all together spend no more than there is, however late the news are; where there is plenty, nothing is held back but
what may be under way. `MARGIN` covers what chance adds. A single process holds nothing back.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from smg_node.providers.rates.bucket import Bucket
from smg_node.providers.rates.demand import LIFE_S, Demand
from smg_node.providers.rates.limit_headers import header_buckets

SHOWN_S: Final = 600.0
"""What was told longer ago says nothing any more."""
STALE_S: Final = 60.0
"""News that are older count half: others have spent since, and buckets have filled."""
OPEN_MAX: Final = 65_536
"""So many calls are followed at once for one key; of more the oldest are forgotten."""
DELAY_S: Final = 0.3
"""So long it takes until others know what is sent here: a quarter of a second between news, and their way."""
MARGIN: Final = 0.02
"""So much of a bucket stays in it where several spend it: a minute's rate is spent as well with the rest."""
UNDER_WAY_S: Final = 0.05
"""A call that began so long before another's answer left the vendor may not have been counted in it."""
WAY_MAX_S: Final = 5.0
"""Vendors count a call when it comes, however long its answer takes."""
SOLE: Final = 0.01
"""Less than that in a second is nothing that others want."""


class KeyLimit(NamedTuple):
    """One bucket as an operator sees it: what is left now, when it is full, when that was told, what others want."""

    what: str
    limit: float
    left: float
    full_s: float
    told_s: float
    wanted: float


class RateLimits:
    """The buckets of one key, by what they count: `requests`, `tokens`, `input-tokens`, `output-tokens` …

    `begin` takes a call's estimates off, `learn` puts what an answer's headers say in their place: the vendor has
    counted that call, but perhaps none that this node began after it. `end` forgets a call without headers. `hear`
    takes what others know.
    """

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._told: dict[str, Bucket] = {}
        """The latest news, whoever had them."""
        self._own: dict[str, Bucket] = {}
        """The latest news that came with an answer to this process."""
        self._buckets: dict[str, Bucket] = {}
        """The latest news, less what was sent here since."""
        self._spent: dict[str, float] = {}
        """How much that is."""
        self._wanted: dict[str, Demand] = {}
        self._of_others: dict[str, float] = {}
        """How much of each the others want in a second."""
        self._open: dict[int, tuple[Mapping[str, float], float]] = {}
        self._last = 0
        self._way_s = 0.0
        """So long the vendor's last answer took: its headers may be as old."""
        self._closed_until = 0.0
        self._refused_until = 0.0

    @property
    def buckets(self) -> Mapping[str, Bucket]:
        """The buckets that the vendor has told of, less what was sent since; none before its first answer."""
        return self._buckets

    def told(self, now: float) -> Sequence[KeyLimit]:
        """Return the buckets as they are by now, by what they count; what was told too long ago is left out."""
        return [
            KeyLimit(
                name,
                bucket.limit,
                bucket.holds(now),
                max(0.0, bucket.full_at - now),
                now - self._told[name].seen,
                self._of_others.get(name, 0.0),
            )
            for name, bucket in sorted(self._buckets.items())
            if now - self._told[name].seen <= SHOWN_S
        ]

    @property
    def refused_until(self) -> float:
        """Until when the vendor wants nothing, as it told this process; 0 if it never did."""
        return self._refused_until

    def begin(self, need: Mapping[str, float], now: float) -> int:
        """Count a call in that will spend about `need`; return its number."""
        self._last += 1
        if len(self._open) >= OPEN_MAX:
            del self._open[next(iter(self._open))]
        self._open[self._last] = need, now
        self.ask(need, now)
        for name, amount in need.items():
            self._lower(name, amount, now)
        return self._last

    def ask(self, need: Mapping[str, float], now: float) -> None:
        """Take in that a call is wanted, whether it is made or not."""
        for name, amount in need.items():
            demand = self._wanted.get(name)
            if demand is None:
                demand = self._wanted[name] = Demand()
            demand.ask(amount, now)

    def learn(self, call: int, headers: Mapping[str, str], now: float) -> None:
        """Take over what the headers of the answer to `call` say; their names are in lower case."""
        _, begun_at = self._open.pop(call, (None, now))
        self._way_s = min(max(0.0, now - begun_at), WAY_MAX_S)
        for name, bucket in header_buckets(self._kind, headers, now=now).items():
            self._own[name] = bucket
            later = (need.get(name, 0.0) for begun, (need, _) in self._open.items() if begun > call)
            self._take(name, bucket, sum(later), now)

    def hear(self, name: str, bucket: Bucket | None, wanted: float, now: float) -> None:
        """Take what others know of one bucket, None for nothing, and how much of it they want in a second."""
        self._of_others[name] = wanted
        known = self._told.get(name)
        if bucket is None or bucket.seen > now or (known is not None and known.seen >= bucket.seen):
            return
        since = bucket.seen - UNDER_WAY_S
        later = (need.get(name, 0.0) for need, begun in self._open.values() if begun > since)
        self._take(name, bucket, sum(later), now)

    def news(self, now: float) -> Iterator[tuple[str, float, Bucket | None]]:
        """Yield the name of each bucket that is of interest to others, how much of it is wanted in a second, and what
        this process was told of it.
        """
        for name in self._told:
            demand, own = self._wanted.get(name), self._own.get(name)
            wanted = 0.0 if demand is None else demand.a_second(now)
            if own is not None and now - own.seen > STALE_S:
                own = None
            if wanted >= SOLE or own is not None:
                yield name, wanted, own

    def end(self, call: int) -> None:
        """Forget a call that ended without an answer; what it took off stays off until the next answer."""
        self._open.pop(call, None)

    def close(self, wait_s: float, now: float) -> None:
        """Take in that the vendor wants nothing for so long; a shorter wait opens nothing earlier."""
        self._refused_until = max(self._refused_until, now + wait_s)
        self.close_until(now + wait_s)

    def close_until(self, moment: float) -> None:
        """Leave it alone until then; an earlier moment opens nothing."""
        self._closed_until = max(self._closed_until, moment)

    def wait_s(self, need: Mapping[str, float], now: float) -> float:
        """Return the seconds until all buckets hold `need`, infinite for more than one ever holds."""
        waits = [
            self._bucket_wait_s(name, amount, now) * self._weight(name, now)
            for name, amount in need.items()
            if name in self._buckets
        ]
        return max(0.0, self._closed_until - now, *waits)

    def backlog_s(self, need: Mapping[str, float], now: float) -> float:
        """Return in how many seconds what was asked for just now, and more than comes back, could be had."""
        return max((self._bucket_backlog_s(name, now) for name in need), default=0.0)

    def _bucket_backlog_s(self, name: str, now: float) -> float:
        bucket, demand = self._buckets.get(name), self._wanted.get(name)
        wanted = 0.0 if demand is None else demand.a_second(now)
        if bucket is None or wanted <= 0:
            return 0.0
        rate = bucket.refill() * wanted / (wanted + self._of_others.get(name, 0.0))
        return LIFE_S * max(0.0, wanted / rate - 1) if rate > 0 else 0.0

    def _bucket_wait_s(self, name: str, need: float, now: float) -> float:
        bucket, others = self._buckets[name], self._of_others.get(name, 0.0)
        if others < SOLE or need > bucket.limit:
            return bucket.wait_s(need, now)
        demand = self._wanted.get(name)
        own = max(need, 0.0 if demand is None else demand.a_second(now))
        part = own / (own + others)
        age_s = max(0.0, now - self._told[name].seen)
        spent = self._spent[name] if age_s < STALE_S else 0.0
        left = max(0.0, bucket.holds(now) + spent)
        held_back = min(others * (age_s + self._way_s + DELAY_S), (1 - part) * left)
        margin = MARGIN * bucket.limit
        if bucket.wait_s(min(need + held_back + margin, bucket.limit), now) <= 0:
            return 0.0
        # Time alone gives more: until this process's part of what is there then is enough.
        enough = (need + spent) / part + margin - spent
        return bucket.wait_s(min(max(need, enough), bucket.limit), now)

    def _take(self, name: str, bucket: Bucket, later: float, now: float) -> None:
        self._told[name] = bucket
        self._spent[name] = later
        self._buckets[name] = bucket.lowered(later, now) if later else bucket

    def _lower(self, name: str, amount: float, now: float) -> None:
        if name in self._buckets:
            self._buckets[name] = self._buckets[name].lowered(amount, now)
            self._spent[name] += amount

    def _weight(self, name: str, now: float) -> float:
        return 0.5 if now - self._told[name].seen > STALE_S else 1.0
