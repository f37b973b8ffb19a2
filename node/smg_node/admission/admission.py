"""Admission of requests: matches the limits, waits briefly for rights, and builds the refusal.

A share that is empty here may be filled again in a few milliseconds, as long as rights are left
anywhere in the cluster. So a request waits for them: up to 1.4 s where the owner said that there are
some, with it or with other nodes, and not longer than a round trip takes where nobody knows.
Where there is nothing left, it is refused at once. None of it costs a right.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from smg_node.admission.header_values import Family, limit_headers
from smg_node.admission.limit_counters import Tallies
from smg_node.admission.limit_errors import QUOTA_FROM_MS, LimitedError, Reason, refusal
from smg_node.admission.limit_matching import Matched, Matcher
from smg_node.admission.ports import Rights, Rules, Share
from smg_node.admission.ticket import Attempt, Ticket
from smg_node.admission.token_reservation import Short
from smg_node.core.generation.run_name import run_name
from smg_node.core.ports import Clock, Rng
from smg_node.core.prices.price import day_of
from smg_node.core.prices.price_list import PriceList
from smg_node.core.request_context import RequestContext

if TYPE_CHECKING:
    # Loaded with the first run of a tool that a limit applies to.
    from smg_node.admission.tool_ticket import ToolTicket

WAIT_S: Final = 0.06
"""A round trip between nodes and the time between two packets, with some room."""
KNOWN_WAIT_S: Final = 1.4
"""The same where the owner said that there is enough, with it or with other nodes: what those do not need is called back,
and what of it is still to come is on their disks before it is here. A refusal before that would be a lie."""
OWNER_WAIT_S: Final = 1.3
"""How long it takes at most until a limit has an owner: it was just set, was not used for a while, or its owner died."""
STREAM_WAIT_S: Final = 0.5
"""An answer that has begun may wait longer: a token that comes late is better than none."""
JITTER: Final = 0.1
"""Clients come back within this part of the next window, not all at its first moment."""
JITTER_MAX_S: Final = 1.0
"""And within so long of it: a client is not sent away for longer than it has to be."""
CONCURRENT_RETRY_S: Final = 1.0
"""When to come again where nobody knows when an answer ends."""
OWNER_RETRY_S: Final = 1.0
"""When to come again where somebody should have rights, and has not said so: he is followed within so long."""


@dataclass(frozen=True, slots=True)
class AdmissionOptions:
    """How long a request waits for rights that are on their way, and what becomes of one without a price."""

    wait_max_s: float = WAIT_S
    unpriced: Literal["refuse", "allow"] = "refuse"
    """What limits on cost do with requests whose cost nobody can know."""


class Admission:
    """Admits requests: issues tickets that charge the matched limits."""

    def __init__(
        self,
        rules: Rules,
        rights: Rights,
        *,
        clock: Clock,
        rng: Rng,
        options: AdmissionOptions | None = None,
        prices: PriceList | None = None,
    ) -> None:
        self.tallies = Tallies()
        self._rights = rights
        self._clock = clock
        self._rng = rng
        self._options = AdmissionOptions() if options is None else options
        self._matcher = Matcher(rules, rights, self.tallies, prices=prices or PriceList())

    @property
    def options(self) -> AdmissionOptions:
        """What counts now."""
        return self._options

    def retune(self, options: AdmissionOptions) -> None:
        """Use other options from the next request on."""
        self._options = options

    def reprice(self, prices: PriceList) -> None:
        """Use other prices from the next request on."""
        self._matcher.reprice(prices)

    def ticket(self, context: RequestContext, model: str) -> Ticket | None:
        """Return the ticket of a request, None if nothing limits it. Its holder settles or voids
        it.
        """
        matched = self._matcher.find(context.tenant, context.key_id, model)
        if matched is None:
            return None
        self.tallies.begun += 1
        ticket = Ticket(self, matched)
        ticket.goes_on = context.goes_on
        return ticket

    def provider_ticket(self, provider: str, model: str) -> Ticket | None:
        """Return the ticket of one call of a provider, None if nothing limits its calls. `model` is what clients call it
        by: what its tokens cost is said by that name.
        """
        matched = self._matcher.find("", "", model, provider)
        if matched is None:
            return None
        self.tallies.begun += 1
        return Ticket(self, matched)

    def tool_ticket(
        self, context: RequestContext, model: str, server: str, tool: str, *, price: str = ""
    ) -> "ToolTicket | None":
        """Return the ticket of one run of a tool that `model` calls, None if nothing limits it. Its holder settles or
        voids it.

        `server` is the name of a definition, "" for a server that a client gave; `price` is what a run costs by it. A run
        is no request: limits of those do not apply to it.
        """
        name = run_name(server, tool)
        matched = self._matcher.find(context.tenant, context.key_id, model, tool=name)
        if matched is None:
            return None
        from smg_node.admission.tool_ticket import ToolTicket

        ticket = ToolTicket(self, matched, self._options, name, price)
        self.tallies.begun += 1
        return ticket

    # ── For tickets ──────────────────────────────────────────────────────────

    def day(self) -> int:
        """See `ticket.Door`."""
        return day_of(self._clock.now_ms())

    async def insist(
        self, matched: Matched, attempt: Attempt, *, asking: bool = True
    ) -> tuple[Matched, Short | None]:
        """See `ticket.Door`."""
        clock, waited = self._clock, False
        matched = self._matcher.renew(matched)
        short = attempt(matched)
        wait_s = self._options.wait_max_s if asking else STREAM_WAIT_S
        begun_s = clock.monotonic_s()
        owner_s = begun_s + (OWNER_WAIT_S if wait_s else 0.0)
        known_s = begun_s + (max(wait_s, KNOWN_WAIT_S) if wait_s else 0.0)
        until_s: float | None = None
        while short is not None:
            share, now_s = short.measure.share, clock.monotonic_s()
            if until_s is None and not (_is_sought(share) and now_s < owner_s):
                until_s = now_s + wait_s
            left_s = (owner_s if until_s is None else until_s) - now_s
            if share.window_ms and share.pool + share.left >= short.cost:
                left_s = known_s - now_s
            hopeless = share.pool == 0 or short.cost > share.amount or left_s <= 0
            if hopeless or not await self._rights.refilled(share, short.cost, left_s):
                break
            if asking and not waited:
                waited = True
                short.measure.tally.waited += 1
            matched = self._matcher.renew(matched)
            short = attempt(matched)
        if asking and short is not None:
            short.measure.share.offered += short.cost
            short.measure.tally.refused += 1
        return matched, short

    def refuse(self, matched: Matched, short: Short) -> LimitedError:
        """See `ticket.Door`."""
        now_ms, measure = self._clock.now_ms(), short.measure
        share = measure.share
        reason = _reason(share)
        # What others hold is left, as what is too little for this request is: it is told, and comes back perhaps.
        nothing = short.cost <= share.amount and reason != "held_elsewhere"
        told = [
            one.told(now_ms, most=0 if one is measure and nothing else None)
            for one in matched.measures
        ]
        refused = told[matched.measures.index(measure)]
        accrues = measure.window_ms and share.next_ms and share.pool == 0
        accrues_ms = max(1, min(refused.reset_ms, share.next_ms - now_ms)) if accrues else 0
        return refusal(
            told,
            refused,
            window_ms=measure.window_ms,
            cost=short.cost,
            reason=reason,
            retry_after_s=self._again_s(share, reason, refused.reset_ms / 1000, accrues_ms / 1000),
            accrues_ms=accrues_ms,
        )

    def _again_s(self, share: Share, reason: Reason, reset_s: float, accrues_s: float) -> float:
        """Return in how long there may be more: with the next window; sooner where a little accrues before, or where
        others hold what is left.
        """
        chance = self._rng.random()
        if not share.window_ms:
            return CONCURRENT_RETRY_S * (1 + chance)
        if accrues_s and reason != "used_up":
            return accrues_s + JITTER * chance
        if reason != "used_up" and share.state == "exact":
            return min(reset_s, OWNER_RETRY_S) * (1 + chance)
        return reset_s + chance * min(JITTER_MAX_S, JITTER * share.window_ms / 1000)

    def wake(self, matched: Matched) -> None:
        """See `ticket.Door`."""
        self._matcher.renew(matched)

    def headers(self, matched: Matched, family: Family) -> Mapping[str, str]:
        """See `ticket.Door`."""
        now_ms = self._clock.now_ms()
        headers = matched.headers[family].as_of(now_ms)
        if headers is not None:
            return headers
        matched = self._matcher.renew(matched)
        return limit_headers([one.told(now_ms) for one in matched.measures], family)


def _is_sought(share: Share) -> bool:
    """Whether there is, or soon will be, an owner of the limit that this node has not learned of
    yet.
    """
    return share.pool < 0 and share.state in ("exact", "standing")


def _reason(share: Share) -> Reason:
    """Return why there is nothing here now, as far as this node knows."""
    accrues = share.next_ms and share.window_ms < QUOTA_FROM_MS
    if share.pool == 0 and share.state in ("exact", "alone"):
        # Where a little comes to this node yet, it does to others too, and they may hold some.
        return "held_elsewhere" if accrues else "used_up"
    if share.pool < 0 or share.state in ("standing", "borrowed"):
        return "no_owner"
    return "held_elsewhere"
