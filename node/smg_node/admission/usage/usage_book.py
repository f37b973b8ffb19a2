"""Usage book: requests, tokens and cost by UTC hour, tenant, key, model and provider, as whole numbers. Pure.

Requests are counted when they are over. Counts only grow until their hour is over, and each hour's
are named by a *part* that no other hour and no other run of this node has. So what is written are
totals: of one part the latest line counts, and one that was written twice, or torn, changes
nothing. Between two looks at the disk a request costs one look-up and six additions.

Only what was worked on has tokens: a request that was refused has none, and neither has one that failed before its
client got anything. What a vendor has begun to answer has tokens and a cost in any case, in a row of its provider.
Cost is by the prices of the moment the request was over. It is kept exact, in millionths of the currency and, of the
next one, millionths of that: so sums of any number of requests are exact as well.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Final

from smg_node.admission.usage.usage_lines import (
    AT_PROVIDER,
    HOUR_MS,
    NONE,
    OTHER,
    Counts,
    Line,
    Who,
    line,
)
from smg_node.core.generation.events import Usage
from smg_node.core.generation.outcome import Outcome
from smg_node.core.prices.cost import call_pico
from smg_node.core.prices.price import day_of
from smg_node.core.prices.price_list import PriceList

ROWS_MAX: Final = 1_000
"""Of an hour; what does not fit is counted as others'. A day then has at most a few megabytes."""
TOOL_ROWS_MAX: Final = 1_000
"""The same of rows of tools, which take no room from the others."""
PAIRS_MAX: Final = 1_000
"""Of a tenant and a model, and of a provider and a model, that scrapes see apart."""
HOURS_MAX: Final = 48
"""So long a disk may be full before the oldest of what was not written is lost."""
EARLY_MS: Final = 60_000
"""A clock that is put back by less than this does not begin the hour before it once more."""
AT_ONCE: Final = 64
"""So many requests are counted together."""
_OTHERS_TOOLS: Final[Who] = (OTHER, OTHER, OTHER, "", OTHER)
_UNSERVED: Final = 501
"""Nobody here can do that: it was nobody's work, and may have been tried in another way."""


_alike: Final = attrgetter("tenant", "key_id", "model", "kind")
_prompt_of: Final = attrgetter("prompt_tokens")
_cached_of: Final = attrgetter("cached_tokens")
_answer_of: Final = attrgetter("completion_tokens")
_passes_of: Final = attrgetter("pass_tokens")


class _Hour:
    """One hour's counts, and how much of them is known to be written."""

    __slots__ = ("hour", "part", "rows", "tools", "written")

    def __init__(self, hour: int, part: str) -> None:
        self.hour = hour
        self.part = part
        self.rows: dict[Who, Counts] = {}
        self.tools = 0
        """How many of them are of tools."""
        self.written: dict[Who, int] = {}

    def lines(self) -> Iterable[Line]:
        """Yield all of it."""
        return (line(self.part, self.hour, who, counts) for who, counts in self.rows.items())

    def unwritten(self) -> Iterable[Line]:
        """Yield what has changed since it was written."""
        return (one for one in self.lines() if one.events != self.written.get(one.who, 0))


class UsageBook:
    """Counts of used requests and tokens. `life` is a name that no other run of this node has."""

    def __init__(self, prices: PriceList, *, now_ms: Callable[[], int], life: str) -> None:
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
        self._past_of_providers: dict[tuple[str, str], Counts] = {}
        self._hours: list[_Hour] = []
        self._hour = self._begun(now_ms())

    def retune(self, prices: PriceList) -> None:
        """Use other prices from the next request on; what was used before keeps its cost."""
        self._settle()
        self._prices = prices

    def tell(self, changed: Callable[[], None]) -> None:
        """Set the callback for when there is something to write, after there was nothing."""
        self._changed = changed

    # ── Counting ─────────────────────────────────────────────────────────────

    def record(self, outcome: Outcome) -> None:
        """Count a finished request, however it ended: soon, and before the counts are read."""
        self._turn(outcome.ended_ms or self._now_ms())
        late = self._late
        late.append(outcome)
        if len(late) >= AT_ONCE:
            self._settle()
        if not self._dirty:
            self._dirty = True
            self._changed()

    def record_run(self, who: Who, *, failed: bool, run_ms: int, run_bytes: int, pico: int) -> None:
        """Count the run of a tool that is over, and what it cost."""
        self._turn(self._now_ms())
        counts = self._row(who)
        counts.runs += 1
        counts.failed += failed
        counts.run_ms += run_ms
        counts.run_bytes += run_bytes
        counts.pay(pico)
        if not self._dirty:
            self._dirty = True
            self._changed()

    def _turn(self, now_ms: int) -> None:
        """Begin another hour where this moment is of one."""
        if now_ms >= self._ends_ms or now_ms < self._begins_ms:
            self._hour = self._begun(now_ms)

    def _settle(self) -> None:
        """Count those that were only put aside, column by column where several are alike; all are of the present hour."""
        late = self._late
        if not late:
            return
        self._late = []
        for (tenant, key_id, model, kind), several in groupby(late, _alike):
            over = []
            for one in several:
                if one.bills:
                    self._bill(one)
                else:
                    over.append(one)
            if not over:
                continue
            counts = self._row((tenant, key_id, model, "", ""))
            if kind == "ok":
                counts.requests += len(over)
                self._charge(counts, model, over)
            elif kind == "refused":
                counts.refused += len(over)
                self._charge(counts, model, [one for one in over if one.pass_tokens])
            else:
                served = [one for one in over if one.status != _UNSERVED]
                counts.requests += len(served)
                self._charge(
                    counts, model, [one for one in served if one.pass_tokens or one.is_paid]
                )

    def _bill(self, outcome: Outcome) -> None:
        """Count a request that vendors have worked on: as one of the last of them, its calls with each."""
        owner = (outcome.tenant, outcome.key_id, outcome.model)
        last = self._row((*owner, outcome.bills[-1].provider, ""))
        if outcome.kind == "refused":
            last.refused += 1
        else:
            last.requests += 1
        for bill in outcome.bills:
            self._row((*owner, bill.provider, "")).charge(bill)
        if outcome.pass_tokens:
            # Some of its passes were those of engines.
            self._charge(self._row((*owner, "", "")), outcome.model, [outcome])

    def _charge(self, counts: Counts, model: str, over: Sequence[Outcome]) -> None:
        prompts, answers = list(map(_prompt_of, over)), list(map(_answer_of, over))
        cached = list(map(min, map(_cached_of, over), prompts))
        if any(map(_passes_of, over)):
            prompts, cached, answers = _pass_by_pass(over)
        counts.prompt += sum(prompts)
        counts.answer += sum(answers)
        counts.cached += sum(cached)
        price = self._prices.of(model)
        if price is None:
            return
        day = day_of(self._hour.hour * HOUR_MS)
        for used in map(Usage, prompts, answers, cached):
            pico = call_pico(price, used, day=day)
            if pico is not None:
                counts.pay(pico)

    def _row(self, who: Who) -> Counts:
        rows = self._rows
        found = rows.get(who)
        if found is not None:
            return found
        hour, of_tool = self._hour, bool(who[-1])
        full = hour.tools >= TOOL_ROWS_MAX if of_tool else len(rows) - hour.tools >= ROWS_MAX
        if full:
            who = _OTHERS_TOOLS if of_tool else (OTHER, OTHER, OTHER, OTHER if who[3] else "", "")
            if who in rows:
                return rows[who]
        hour.tools += of_tool
        return rows.setdefault(who, Counts())

    def _begun(self, now_ms: int) -> _Hour:
        """Begin an hour, and let go of the one before once it is written."""
        if self._hours:
            self._settle()
            _fold(self._past, self._hour)
            _fold(self._past_of_providers, self._hour, of_providers=True)
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
            hour.tools = 0
        self._hours = [self._hour]
        return lines

    def take(self, lines: Iterable[Line]) -> None:
        """Count what another book has drained as used now: it is a tenth of a second old."""
        self._settle()
        self._turn(self._now_ms())
        for one in lines:
            self._row(one.who).add(one)
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
            hour = hours.get(one.part.partition(AT_PROVIDER)[0])
            if hour is not None:
                hour.written[one.who] = one.events
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
        return self._sums(self._past, of_providers=False)

    def of_providers(self) -> Mapping[tuple[str, str], Counts]:
        """Return what providers have billed of each model since the start; after so many, others together."""
        return self._sums(self._past_of_providers, of_providers=True)

    def _sums(
        self, past: Mapping[tuple[str, str], Counts], *, of_providers: bool
    ) -> Mapping[tuple[str, str], Counts]:
        self._settle()
        pairs: dict[tuple[str, str], Counts] = {}
        for pair, counts in past.items():
            pairs[pair] = Counts()
            pairs[pair].add(counts)
        _fold(pairs, self._hour, of_providers=of_providers)
        return pairs


def _fold(pairs: dict[tuple[str, str], Counts], hour: _Hour, *, of_providers: bool = False) -> None:
    """Add an hour to the sums by tenant, or provider, and model; an owner that has a row keeps it."""
    for (tenant, _, model, provider, _), counts in hour.rows.items():
        if of_providers and not provider:
            continue
        pair = (provider if of_providers else tenant or NONE, model or NONE)
        if pair not in pairs and len(pairs) >= PAIRS_MAX:
            pair = (OTHER, OTHER)
        pairs.setdefault(pair, Counts()).add(counts)


def _pass_by_pass(over: Iterable[Outcome]) -> tuple[list[int], list[int], list[int]]:
    """Return tokens of prompts, of their cached parts, and of answers: of each pass for what has several."""
    prompts, cached, answers = list[int](), list[int](), list[int]()
    for one in over:
        whole = (one.prompt_tokens, one.cached_tokens, one.completion_tokens)
        for prompt, known, answer in one.pass_tokens or (whole,):
            prompts.append(prompt)
            cached.append(min(known, prompt))
            answers.append(answer)
    return prompts, cached, answers


def _nothing() -> None:
    return
