"""Matched limits of a request: found once per tenant, key and model, then cached. Pure.

`Matched` is all that requests of one kind meet, in the order in which they are charged.
"""

from collections.abc import Sequence
from typing import Final, TypeAlias

from smg_node.admission.header_values import limit_name
from smg_node.admission.headers import HeadersByFamily
from smg_node.admission.length_estimate import Answers, Estimates
from smg_node.admission.limit_counters import Tallies
from smg_node.admission.matched_limit import MatchedLimit
from smg_node.admission.ports import Match, Rights, Rules, Share
from smg_node.admission.token_weights import TokenWeights, weights_of
from smg_node.core.generation.events import Usage
from smg_node.core.prices.cost import cost_pico, dearest, micro_up, rates_of
from smg_node.core.prices.price import Price, Rates
from smg_node.core.prices.price_list import PriceList

KINDS_MAX: Final = 4_096
"""Combinations of tenant, key and model that are kept."""
FREE: Final = Rates()
"""Of models of which nobody has said what they cost."""
Kind: TypeAlias = tuple[str, str, str, str, str]
"""Tenant, id of the key, model; provider: empty, but for calls of one, which are nobody's; tool: empty, but for runs."""


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
        "price",
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
        price: Price | None = None,
    ) -> None:
        self.who = who
        self.price = price
        """What calls cost, where that is limited and depends on the call; None where the tariffs say all of it."""
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

    @property
    def costs(self) -> bool:
        """Whether one of them is a limit on cost."""
        return any(tariff.rates is not None for tariff in self.tariffs)

    def dearest(self, prompt_max: int, day: int) -> Rates:
        """Return rates that no call of at most so long a prompt exceeds that day."""
        assert self.price is not None, "it was asked before"
        return dearest(self.price, prompt_max=prompt_max, day=day) or FREE

    def cost_micro(self, prompt: int, cached: int, answer: int, day: int) -> int:
        """Return what a call cost that day, rounded up."""
        assert self.price is not None, "it was asked before"
        rates = rates_of(self.price, prompt=prompt, day=day) or FREE
        return micro_up(cost_pico(rates, Usage(prompt, answer, cached)))

    @property
    def open_shares(self) -> Sequence[Share]:
        """The last of `entry_shares`: those of what is open at a time."""
        return self.entry_shares[len(self.entry) - len(self.places) :]

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
        prices: PriceList,
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

    def find(
        self, tenant: str, key_id: str, model: str, provider: str = "", tool: str = ""
    ) -> Matched | None:
        """Return what such requests, calls of a provider, or runs of a tool meet; None if nothing limits them."""
        if self._rules.version != self._version:
            self.drop()
        try:
            return self._kinds[tenant, key_id, model, provider, tool]
        except KeyError:
            return self._found((tenant, key_id, model, provider, tool))

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

    def reprice(self, prices: PriceList) -> None:
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
        tenant, key_id, model, provider, tool = who
        # What a run costs is said by its tool.
        price = None if tool else self._prices.of(model)
        rates = FREE if price is None else price.periods[0].steps[0].rates
        matches = _matches(self._rules, who)
        entry: list[MatchedLimit] = []
        tariffs: list[TokenWeights] = []
        for match in matches:
            measure = self._measure(match)
            if measure is None:
                continue
            if match.unit in ("requests", "concurrent"):
                entry.append(measure)
            else:
                tariffs.append(weights_of(match, measure, rates))
        matched = None
        if entry or tariffs:
            # What is counted is refused before what is open at a time: it says when to come again.
            entry.sort(key=lambda measure: not measure.window_ms)
            answers = self._estimates.of(tenant, key_id or provider, model)
            varies = None if price is None or price.plain else price
            limited = any(tariff.rates is not None for tariff in tariffs)
            matched = Matched(who, entry, tariffs, answers, varies if limited else None)
        if matched is not None or not tool:
            # Names of tools that nothing limits may be any number, and must not push others out.
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


def _matches(rules: Rules, who: Kind) -> Sequence[Match]:
    tenant, key_id, model, provider, tool = who
    if tool:
        return rules.of_tool(tenant, key_id, model, tool)
    return rules.of_provider(provider) if provider else rules.matching(tenant, key_id, model)
