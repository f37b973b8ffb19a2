"""Usage book: requests, tokens and cost by UTC hour, tenant, key and model, as whole numbers. Pure.

Requests are counted when they are over. Counts only grow until their hour is over, and each hour's
are named by a *part* that no other hour and no other run of this node has. So what is written are
totals: of one part the latest line counts, and one that was written twice, or torn, changes
nothing. Between two looks at the disk a request costs one look-up and six additions.

Only what was worked on has tokens: a request that was refused has none, and neither has one that failed before its
client got anything. Cost is in millionths of the currency, by the prices of the moment the request was over, and is
rounded up for each request, as limits on cost are charged.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Final, TypeAlias

import msgspec

from smg_node.admission.limit_matching import Prices
from smg_node.core.generation.outcome import Outcome

HOUR_MS: Final = 3_600_000
ROWS_MAX: Final = 1_000
"""Of an hour; what does not fit is counted as others'. A day then has at most a few megabytes."""
PAIRS_MAX: Final = 1_000
"""Of a tenant and a model that scrapes see apart."""
HOURS_MAX: Final = 48
"""So long a disk may be full before the oldest of what was not written is lost."""
EARLY_MS: Final = 60_000
"""A clock that is put back by less than this does not begin the hour before it once more."""
OTHER: Final = "(other)"
NONE: Final = "(none)"
"""Neither can be the name of a tenant: those have no brackets."""
AT_ONCE: Final = 64
"""So many requests are counted together."""
_UNSERVED: Final = 501
"""Nobody here can do that: it was nobody's work, and may have been tried in another way."""

Who: TypeAlias = tuple[str, str, str]
"""Tenant, id of the key, model; empty where there was none."""


_alike: Final = attrgetter("tenant", "key_id", "model", "kind")
_prompt_of: Final = attrgetter("prompt_tokens")
_cached_of: Final = attrgetter("cached_tokens")
_answer_of: Final = attrgetter("completion_tokens")


class Counts:
    """Sums of one group. `cached` is a part of `prompt`."""

    __slots__ = ("answer", "cached", "cost", "prompt", "refused", "requests")

    def __init__(self) -> None:
        self.requests = 0
        self.refused = 0
        self.prompt = 0
        self.cached = 0
        self.answer = 0
        self.cost = 0

    def add(self, other: "Counts | Line") -> None:
        """Add these amounts."""
        self.requests += other.requests
        self.refused += other.refused
        self.prompt += other.prompt
        self.cached += other.cached
        self.answer += other.answer
        self.cost += other.cost


class Line(msgspec.Struct, frozen=True, array_like=True):
    """Use of one owner in an hour, counted from the Unix epoch, as far as one part knows."""

    part: str
    hour: int
    tenant: str
    key_id: str
    model: str
    requests: int = 0
    refused: int = 0
    prompt: int = 0
    cached: int = 0
    answer: int = 0
    cost: int = 0

    @property
    def who(self) -> Who:
        """The owner: tenant, key and model."""
        return self.tenant, self.key_id, self.model

    @property
    def events(self) -> int:
        """How often anything was counted: of two lines of one part the one with more is the later one."""
        return self.requests + self.refused


def line(part: str, hour: int, who: Who, counts: Counts) -> Line:
    """Return what is written of these counts."""
    return Line(
        part,
        hour,
        *who,
        counts.requests,
        counts.refused,
        counts.prompt,
        counts.cached,
        counts.answer,
        counts.cost,
    )


class _Hour:
    """One hour's counts, and how much of them is known to be written."""

    __slots__ = ("hour", "part", "rows", "written")

    def __init__(self, hour: int, part: str) -> None:
        self.hour = hour
        self.part = part
        self.rows: dict[Who, Counts] = {}
        self.written: dict[Who, int] = {}

    def lines(self) -> Iterable[Line]:
        """Yield all of it."""
        return (line(self.part, self.hour, who, counts) for who, counts in self.rows.items())

    def unwritten(self) -> Iterable[Line]:
        """Yield what has changed since it was written."""
        return (one for one in self.lines() if one.events != self.written.get(one.who, 0))


class UsageBook:
    """Counts of used requests and tokens. `life` is a name that no other run of this node has."""

    def __init__(self, prices: Prices, *, now_ms: Callable[[], int], life: str) -> None:
        self.life: Final = life
        self.lost = 0
        """Rows of hours that could not be written for so long that they were given up."""
        self._prices = prices
        self._now_ms: Final = now_ms
        self._changed: Callable[[], None] = _nothing
        self._dirty = False
        self._parts = 0
        self._late: list[Outcome] = []
        """Requests of the present hour that are to be counted."""
        self._past: dict[tuple[str, str], Counts] = {}
        self._hours: list[_Hour] = []
        self._hour = self._begun(now_ms())

    def retune(self, prices: Prices) -> None:
        """Use other prices from the next request on; what was used before keeps its cost."""
        self._settle()
        self._prices = prices

    def tell(self, changed: Callable[[], None]) -> None:
        """Set the callback for when there is something to write, after there was nothing."""
        self._changed = changed

    # ── Counting ─────────────────────────────────────────────────────────────

    def record(self, outcome: Outcome) -> None:
        """Count a finished request, however it ended: soon, and before the counts are read."""
        now_ms = outcome.ended_ms or self._now_ms()
        if now_ms >= self._ends_ms or now_ms < self._begins_ms:
            self._hour = self._begun(now_ms)
        late = self._late
        late.append(outcome)
        if len(late) >= AT_ONCE:
            self._settle()
        if not self._dirty:
            self._dirty = True
            self._changed()

    def _settle(self) -> None:
        """Count those that were only put aside, column by column where several are alike; all are of the present hour."""
        late = self._late
        if not late:
            return
        self._late = []
        for (tenant, key_id, model, kind), several in groupby(late, _alike):
            who, over = (tenant, key_id, model), list(several)
            counts = self._rows.get(who)
            if counts is None:
                counts = self._new_row(who)
            if kind == "ok":
                counts.requests += len(over)
                self._charge(counts, model, over)
            elif kind == "refused":
                counts.refused += len(over)
            else:
                served = [one for one in over if one.status != _UNSERVED]
                counts.requests += len(served)
                self._charge(counts, model, [one for one in served if _worked_on(one)])

    def _charge(self, counts: Counts, model: str, over: Sequence[Outcome]) -> None:
        prompts, answers = list(map(_prompt_of, over)), list(map(_answer_of, over))
        cached = list(map(min, map(_cached_of, over), prompts))
        counts.prompt += sum(prompts)
        counts.answer += sum(answers)
        counts.cached += sum(cached)
        price = self._prices.get(model)
        if price is not None:
            for prompt, known, answer in zip(prompts, cached, answers, strict=True):
                counts.cost += math.ceil(
                    (prompt - known) * price.prompt + known * price.cached + answer * price.answer
                )

    def _new_row(self, who: Who) -> Counts:
        rows = self._rows
        if len(rows) >= ROWS_MAX:
            who = (OTHER, OTHER, OTHER)
        return rows.setdefault(who, Counts())

    def _begun(self, now_ms: int) -> _Hour:
        """Begin an hour, and let go of the one before once it is written."""
        if self._hours:
            self._settle()
            _fold(self._past, self._hour)
            self._drop_written()
            if len(self._hours) >= HOURS_MAX:
                self.lost += len(self._hours.pop(0).rows)
        number = now_ms // HOUR_MS
        self._begins_ms = number * HOUR_MS - EARLY_MS
        self._ends_ms = (number + 1) * HOUR_MS
        self._parts += 1
        begun = _Hour(number, f"{self.life}.{self._parts}")
        self._hours.append(begun)
        self._rows = begun.rows
        return begun

    # ── Several processes ────────────────────────────────────────────────────

    def drain(self) -> list[Line]:
        """Return all counts that no other book took, and drop them here: another one takes them."""
        self._dirty = False
        lines = self.lines()
        for hour in self._hours:
            hour.rows.clear()
        self._hours = [self._hour]
        return lines

    def take(self, lines: Iterable[Line]) -> None:
        """Count what another book has drained as used now: it is a tenth of a second old."""
        self._settle()
        now_ms = self._now_ms()
        if now_ms >= self._ends_ms or now_ms < self._begins_ms:
            self._hour = self._begun(now_ms)
        for one in lines:
            counts = self._rows.get(one.who)
            if counts is None:
                counts = self._new_row(one.who)
            counts.add(one)
        if not self._dirty:
            self._dirty = True
            self._changed()

    # ── Writing and reading ──────────────────────────────────────────────────

    def lines(self) -> list[Line]:
        """Return all that is here: the present hour, and those that are not written yet."""
        self._settle()
        return [one for hour in self._hours for one in hour.lines()]

    def unwritten(self) -> list[Line]:
        """Return what is to be written; what is counted from now on is returned again."""
        self._dirty = False
        self._settle()
        return [one for hour in self._hours for one in hour.unwritten()]

    def written(self, lines: Iterable[Line]) -> None:
        """Take note that these are on the disk."""
        hours = {hour.part: hour for hour in self._hours}
        for one in lines:
            if one.part in hours:
                hours[one.part].written[one.who] = one.events
        self._drop_written()

    def _drop_written(self) -> None:
        now = self._hour
        self._hours = [
            hour for hour in self._hours if hour is now or any(True for _ in hour.unwritten())
        ]

    def read(self, value: Callable[[Counts], int]) -> Mapping[tuple[str, ...], float]:
        """Return something of what was used since the start, by tenant and model."""
        return {pair: value(counts) for pair, counts in self.pairs().items()}

    def pairs(self) -> Mapping[tuple[str, str], Counts]:
        """Return what each tenant used of each model since the start; after so many, others together."""
        self._settle()
        pairs: dict[tuple[str, str], Counts] = {}
        for pair, counts in self._past.items():
            pairs[pair] = Counts()
            pairs[pair].add(counts)
        _fold(pairs, self._hour)
        return pairs


def _fold(pairs: dict[tuple[str, str], Counts], hour: _Hour) -> None:
    """Add an hour to the sums by tenant and model; an owner that has a row keeps it."""
    for (tenant, _, model), counts in hour.rows.items():
        pair = (tenant or NONE, model or NONE)
        if pair not in pairs and len(pairs) >= PAIRS_MAX:
            pair = (OTHER, OTHER)
        pairs.setdefault(pair, Counts()).add(counts)


def _worked_on(outcome: Outcome) -> bool:
    """Whether a request that did not end well has cost its client anything."""
    if outcome.completion_tokens:
        return True
    return outcome.kind == "client_gone" and outcome.attempts > 0


def _nothing() -> None:
    return


def merged(*sources: Sequence[Line]) -> dict[tuple[str, int, Who], Line]:
    """Return the latest line of each part, hour and owner."""
    latest: dict[tuple[str, int, Who], Line] = {}
    for source in sources:
        for one in source:
            key = (one.part, one.hour, one.who)
            known = latest.get(key)
            if known is None or one.events >= known.events:
                latest[key] = one
    return latest
