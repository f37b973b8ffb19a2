"""Matched limits of a request: found once per tenant, key and model, then cached. Pure.

MatchedLimit   one limit, as this node meets it: its share, and what clients were told of it
TokenWeights   how the tokens of one model count for one of them
Matched        all that requests of one kind meet, in the order in which they are charged
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from smg_node.admission.header_values import HeaderValues, limit_name
from smg_node.admission.headers import HEARD, UNKNOWN, HeadersByFamily, Least
from smg_node.admission.length_estimate import Answers, Estimates
from smg_node.admission.limit_counters import Tallies, Tally
from smg_node.admission.ports import Match, Rights, Rules, Share, Unit

KINDS_MAX: Final = 4_096
"""Combinations of tenant, key and model that are kept."""
STEP_TOKENS: Final = 256
LEAST_TOKENS: Final = 16
EARLY_TOKENS: Final = 64


@dataclass(frozen=True, slots=True)
class Price:
    """What a million tokens cost. A token so costs as many millionths, the unit that limits on cost are set in."""

    prompt: float = 0.0
    cached: float = 0.0
    answer: float = 0.0


_ASLEEP: Final = -1
"""In place of the window of a share that nobody used for a while."""
_LENT_MS: Final = 120_000
"""In windows up to here all that nobody has spent can be got at any node."""
_SHORT_MS: Final = 10_000
"""In windows up to here whatever was told stands until the next one."""
FREE: Final = Price()
Prices: TypeAlias = Mapping[str, Price]
"""By model; others cost nothing."""
Kind: TypeAlias = tuple[str, str, str, str]
"""Tenant, id of the key, model, and provider: empty, but for calls of one, which are nobody's."""


class MatchedLimit:
    """One limit on this node; all requests that meet it share the object."""

    __slots__ = (
        "_amount",
        "_window",
        "key",
        "least",
        "name",
        "open",
        "share",
        "tally",
        "unit",
        "window_ms",
    )

    def __init__(self, match: Match, share: Share, tally: Tally) -> None:
        self.key = match.key
        self.unit: Unit = match.unit
        self.window_ms = match.window_ms
        self.name = limit_name(match.key.partition("#")[0], match.unit, match.window_ms)
        self.share = share
        self.tally = tally
        self.open = 0
        """Answers under way that are charged to it."""
        self._window = -1
        self._amount = 0
        self.least = Least()
        """Of the window that was told of last."""

    def told(self, now_ms: int, *, most: int | None = None) -> HeaderValues:
        """Return what is reported to a client now; what remains is at most `most`.

        In a window it does not rise; in a long one, not from what an owner reported. What only this
        node knows is reported there, and forgotten: it may be nothing while most of a day's budget
        is there.
        """
        share = self.share
        remaining = self.remains(most=most)
        reset_ms = max(0, share.ends_ms - now_ms) if self.window_ms else 0
        return HeaderValues(
            self.name,
            self.unit,
            share.state,
            share.amount,
            remaining,
            reset_ms,
            now_ms + reset_ms,
        )

    def remains(self, *, most: int | None = None) -> int:
        """Return what is reported to a client as remaining now; as `told`."""
        share = self.share
        heard = share.pool >= 0 and share.state in HEARD
        remaining = share.left + share.pool if heard else share.left
        if 0 < self.window_ms <= _LENT_MS and share.pool < 0 and share.state == "exact":
            # Its owner has not spoken yet of this window, or there is none yet: others may have spent nothing of it.
            remaining = share.amount - share.spent
        if share.debt > 0:
            # Paid from what its owner has left, or from the windows to come. Had it been reported as nothing, nothing would
            # be reported until the window ends, though a day's budget may be there.
            remaining = remaining - share.debt if heard and share.pool else 0
        if most is not None:
            remaining = min(remaining, most)
        remaining = max(0, min(remaining, share.amount))
        if not self.window_ms:
            return remaining
        return self._fallen(remaining, heard=heard, refused=most is not None)

    def _fallen(self, remaining: int, *, heard: bool, refused: bool) -> int:
        """Return what remains of this window: no more than was reported before, unless the limit
        was raised.
        """
        share, short = self.share, self.window_ms <= _SHORT_MS
        # One that sleeps says nothing of windows: it may wake up in the same one.
        if share.window not in (self._window, _ASLEEP) or share.amount > self._amount:
            self._window = share.window
            # Code that still holds the former one finds nothing in it.
            self.least.units = UNKNOWN
            self.least = Least()
        self._amount = share.amount
        least = self.least
        least.units = min(least.units, share.amount)
        if least.units != UNKNOWN:
            waits = share.pool < 0 and not refused and not short
            remaining = least.units if waits else min(remaining, least.units)
        if short or (heard and share.window >= 0 and (share.pool == 0 or not refused)):
            least.units = remaining
        return remaining


@dataclass(frozen=True, slots=True)
class TokenWeights:
    """How tokens count for a limit. `worst_case` reserves as much as an answer may have at most.

    `finish` ends an answer for which nothing is left; otherwise it goes on, and is owed.
    """

    measure: MatchedLimit
    prompt: float
    cached: float
    answer: float
    worst_case: bool
    finish: bool
    step: int
    """So many units are reserved at a time for an answer that goes on."""
    least: int
    """Where little is left for all that go on, it is taken in steps not smaller than this."""
    early: int
    """More is reserved while so many units are left: where there are none here, some may come in the meantime."""
    plain: bool = field(init=False)
    """Whether each token is a unit, unless it was cached: then there is nothing to weigh."""

    def __post_init__(self) -> None:
        """Work out what follows."""
        object.__setattr__(self, "plain", self.prompt == self.answer == 1)

    def weigh(self, prompt: int, cached: int, answer: int) -> int:
        """Return what so many tokens count; `cached` are some of the prompt's."""
        if not cached:
            return math.ceil(prompt * self.prompt + answer * self.answer)
        exact = (prompt - cached) * self.prompt + cached * self.cached + answer * self.answer
        return math.ceil(exact)


class Matched:
    """The limits of requests of one kind: charged on entry, and once their tokens are known."""

    __slots__ = (
        "all_worst",
        "answers",
        "entry",
        "entry_shares",
        "finish",
        "headers",
        "measures",
        "over",
        "places",
        "tariffs",
        "who",
        "worst_case",
    )

    def __init__(
        self,
        who: Kind,
        entry: Sequence[MatchedLimit],
        tariffs: Sequence[TokenWeights],
        answers: Answers,
    ) -> None:
        self.who = who
        self.entry = tuple(entry)
        self.tariffs = tuple(tariffs)
        self.answers = answers
        self.measures = (*self.entry, *(tariff.measure for tariff in self.tariffs))
        """All of them, in the order in which they are charged."""
        self.worst_case = any(tariff.worst_case for tariff in self.tariffs)
        """Whether it matters how long an answer may be at most."""
        self.all_worst = all(tariff.worst_case for tariff in self.tariffs)
        """Whether as much as an answer may have is reserved of all of them."""
        self.places = tuple(at for at, measure in enumerate(self.entry) if not measure.window_ms)
        """Which of `entry` are of what is open at a time."""
        self.over = 0
        """Requests that met these limits and are over, as many as `tell` has not counted yet."""
        self.finish = any(tariff.finish for tariff in self.tariffs)
        """Whether one of them ends answers."""
        self.headers = HeadersByFamily(self.measures)
        """What tells clients of all of them."""
        self.entry_shares: tuple[Share, ...] = ()
        """What requests are charged to when they enter; whoever was charged may keep it."""
        self.look()

    def look(self) -> None:
        """Charge what the limits hold now."""
        self.entry_shares = tuple(measure.share for measure in self.entry)

    def tell(self) -> int:
        """Count the finished requests, and return their number; see `limit_counters.Ended`."""
        over, self.over = self.over, 0
        for measure in self.measures:
            measure.tally.admitted += over
        for measure in self.entry:
            if measure.window_ms:
                measure.tally.charged += over
        return over


class Matcher:
    """Finds the limits of requests, and caches them."""

    def __init__(
        self,
        rules: Rules,
        rights: Rights,
        tallies: Tallies,
        *,
        prices: Prices,
        kinds_max: int = KINDS_MAX,
    ) -> None:
        self._rules = rules
        self._rights = rights
        self._tallies = tallies
        self._prices = prices
        self._kinds_max = kinds_max
        self._version = rules.version
        self._kinds: dict[Kind, Matched | None] = {}
        self._measures: dict[str, MatchedLimit] = {}
        self._former: dict[str, MatchedLimit] = {}
        """Those of before the definitions changed: what clients were told counts on."""
        self._estimates = Estimates()

    def __len__(self) -> int:
        """Return the number of kinds of requests that are cached."""
        return len(self._kinds)

    def find(self, tenant: str, key_id: str, model: str, provider: str = "") -> Matched | None:
        """Return what such requests, or calls of a provider, meet; None if nothing limits them."""
        if self._rules.version != self._version:
            self.drop()
        try:
            return self._kinds[tenant, key_id, model, provider]
        except KeyError:
            return self._found((tenant, key_id, model, provider))

    def renew(self, matched: Matched) -> Matched:
        """Look all shares up again: what sleeps wakes up, what is retired is exchanged.

        Where one of these limits is gone, return what such requests meet instead, perhaps nothing.
        """
        for measure in matched.measures:
            share = self._rights.share(measure.key)
            if share is None:
                self.drop()
                return self.find(*matched.who) or Matched(matched.who, (), (), matched.answers)
            measure.share = share
        matched.look()
        return matched

    def reprice(self, prices: Prices) -> None:
        """Use other prices from the next request on."""
        self._prices = prices
        self.drop()

    def drop(self) -> None:
        """Forget all that was found; the definitions have changed. What is known of answers stays."""
        self._tallies.count()
        self._version = self._rules.version
        self._kinds.clear()
        if self._measures:
            self._former, self._measures = self._measures, {}

    def _found(self, who: Kind) -> Matched | None:
        # What is over is counted by the names that its limits had.
        self._tallies.count()
        tenant, key_id, model, provider = who
        price = self._prices.get(model, FREE)
        rules = self._rules
        matches = rules.of_provider(provider) if provider else rules.matching(tenant, key_id, model)
        entry: list[MatchedLimit] = []
        tariffs: list[TokenWeights] = []
        for match in matches:
            measure = self._measure(match)
            if measure is None:
                continue
            if match.unit in ("requests", "concurrent"):
                entry.append(measure)
            else:
                tariffs.append(_tariff(match, measure, price))
        matched = None
        if entry or tariffs:
            # What is counted is refused before what is open at a time: it says when to come again.
            entry.sort(key=lambda measure: not measure.window_ms)
            answers = self._estimates.of(tenant, key_id or provider, model)
            matched = Matched(who, entry, tariffs, answers)
        self._keep(who, matched)
        return matched

    def _keep(self, who: Kind, matched: Matched | None) -> None:
        if len(self._kinds) >= self._kinds_max:
            del self._kinds[next(iter(self._kinds))]
            used = {
                measure.key: measure
                for kind in self._kinds.values()
                if kind is not None
                for measure in kind.measures
            }
            if len(self._measures) > 2 * len(used):
                self._measures = used
        self._kinds[who] = matched

    def _measure(self, match: Match) -> MatchedLimit | None:
        known = self._measures.get(match.key)
        if known is None:
            share = self._rights.share(match.key)
            if share is None:
                return None
            tally = self._tallies.of(limit_name(match.scope, match.unit, match.window_ms))
            known = self._former.pop(match.key, None) or MatchedLimit(match, share, tally)
            known.share, known.tally = share, tally
            self._measures[match.key] = known
        return known


def _tariff(match: Match, measure: MatchedLimit, price: Price) -> TokenWeights:
    prompt, cached, answer = {
        "tokens": (1, match.cached_weight, 1),
        "input_tokens": (1, match.cached_weight, 0),
        "output_tokens": (0, 0, 1),
        "cost": (
            price.prompt,
            price.cached,
            price.answer,
        ),
    }[match.unit]
    return TokenWeights(
        measure,
        prompt,
        cached,
        answer,
        worst_case=match.reserve == "worst_case",
        finish=match.on_exhausted == "finish",
        step=math.ceil(STEP_TOKENS * answer),
        least=math.ceil(LEAST_TOKENS * answer),
        early=math.ceil(EARLY_TOKENS * answer),
    )
