"""Rights trial: one history of limits: traffic from the start, faults, healing, final checks.

That limits hold is looked at all the time. In the end all is healed; then the members have to agree, and some
seconds later every limit that is asked for too much has to be used again: what living nodes may spend of it.
"""

from collections.abc import Iterator
from typing import Final

from smg_chaos.simulate.base.virtual_clock import MS, SECOND
from smg_chaos.simulate.cluster import put_up, settle
from smg_chaos.simulate.faults import plan_fault
from smg_chaos.simulate.outcome import Figures
from smg_chaos.simulate.random_faults import Plan
from smg_chaos.simulate.rights.admission_books import Page
from smg_chaos.simulate.rights.rights_faults import KillOwner, Ruled, plan_ruled
from smg_chaos.simulate.rights.rights_world import Market
from smg_chaos.simulate.rights.takeover import Takeovers
from smg_chaos.simulate.world.world import World

OVERLOADED: Final = 1.3
"""Asked for that many times the amount, a limit should be used up."""
RECOVERED_S: Final = 10.0
"""From when the members agree until every limit is used again as far as it can be."""
MEASURED_S: Final = 3.0
_USED_LEAST: Final = 0.85
"""Of what living nodes may spend, in the end, whatever the weather was."""
_CRUMBS: Final = 2
"""At each node so many rights may be left that came too late."""
_GROWN_US: Final = 1_500 * MS
_LONG_MS: Final = 1_500
_RIGHT_MS: Final = 150
"""Clocks that are off by less stay so when all is healed."""


def limited(world: World, plan: Plan) -> Figures:
    """Let it all happen; return what was used, refused and sent."""
    assert world.market is not None
    assert plan.rights is not None
    put_up(world, plan.nodes)
    takeovers = Takeovers(world, world.market)
    for fault in plan.faults:
        if isinstance(fault, Ruled):
            if isinstance(fault, KillOwner):
                takeovers.expect(fault)
            plan_ruled(world, fault)
        else:
            plan_fault(world, fault)  # type: ignore[arg-type]  # plans of limits have no deeds of replicas
    world.run(plan.heal_ms * MS)
    figures: Figures = {}
    if plan.settle_ms:
        figures |= _healed(world, world.market, plan)
    world.run(max(plan.end_ms * MS, world.agenda.now_us))
    for teller in world.market.tellers():
        teller.end()
    world.market.books.close()
    return figures | _figures(world, world.market, plan) | takeovers.figures()


def _healed(world: World, market: Market, plan: Plan) -> Figures:
    """Heal everything; once members agree, limits have to be used again."""
    world.network.heal()
    market.failing_writes = 0.0
    for host in world.hosts.values():
        right_ms = market.wrong_ms(host.number)
        wrong_ms = abs(host.clock_wrong_ms - right_ms)
        if wrong_ms > _RIGHT_MS:
            host.clock_wrong_ms = right_ms
        if wrong_ms > _LONG_MS and host.node is not None:
            # Nothing stands with a life in windows that it may have been in: a new one may begin sooner.
            world.chronicle.deed(world.agenda.now_us, host.label, "starts again with a right clock")
            world.kill(host)
            world.boot(host)
    world.chronicle.deed(
        world.agenda.now_us, "weather", "is over: links, clocks and disks are well"
    )
    settled_s = settle(world, limit_s=plan.settle_ms / 1_000, announced=False)
    if settled_s is None:
        return {}
    world.run_for(int(RECOVERED_S * SECOND))
    since_us = world.agenda.now_us
    world.run_for(int((MEASURED_S + 1.0) * SECOND))
    return {
        "settled_s": [settled_s],
        "unused_in_the_end": list(_in_the_end(world, market, since_us)),
    }


def _in_the_end(world: World, market: Market, since_us: int) -> Iterator[float]:
    until_us = since_us + int(MEASURED_S * SECOND)
    # Requests that cost much do not fit into every rest, and what is settled late is lost.
    whole = [flow.key for flow in market.setting.flows if flow.cost == (1, 1)]
    for page in market.books.pages():
        if page.length_us > SECOND or not since_us <= page.begins_us < until_us:
            continue
        if page.begins_us < market.roster_us + _GROWN_US:
            continue  # A part that grows with a roster counts from the second window on.
        limit = market.books.limit(page)
        if page.key not in whole or page.offered < OVERLOADED * limit.amount:
            continue
        may = _may(market, page)
        if page.admitted < _USED_LEAST * may - _CRUMBS * len(market.tellers()):
            world.broken(
                f"long after all was well only {page.admitted} of {may} were admitted in window "
                f"{page.window} of {page.key}, {page.offered} were asked for ({page.states})"
            )
        yield max(0.0, 1.0 - page.admitted / may) if may else 0.0


def _may(market: Market, page: Page) -> int:
    """Return what living nodes may spend of a window: all but what stands with names that are gone."""
    limit = market.books.limit(page)
    living = [teller.me.name for teller in market.tellers()]
    rosters = [roster for teller in market.tellers() if (roster := teller.core.roster) is not None]
    if not rosters:
        return 0  # Nobody remembers who votes, and fewer are here than make a first roster.
    if not any(roster.proven for roster in rosters) and len(living) < market.setting.expect:
        return 0  # Some left while they began it, and fewer are here than may prove it.
    roster = max(rosters, key=lambda one: one.version)
    if sum(name in roster.names for name in living) < roster.majority:
        return 0  # More than half are gone, and nobody can say so.
    # A node without memory of the roster has standing rights only after more than half confirmed it, and what
    # a name may go by that has not heard of a lower amount, dead or not, is not minted.
    tellers = [teller for teller in market.tellers() if teller.me.name in roster.names]
    began_ms = page.window * limit.window_ms
    stand = [
        one.me.name
        for one in tellers
        if not market.is_forgetful(one.node.host.label)
        and one.core.lived.until_ms(began_ms) <= began_ms
    ]
    current = [one.me.name for one in tellers if one.heard.get(limit.key) == limit]
    # What stands is less while an owner that has not heard might still mint by an older version, and newcomers
    # have nothing as long as a name of before has not heard of them, dead or not. Nor has a life of which one before,
    # with a clock that was ahead, may have spent it.
    return limit.mintable(roster, current, began_ms=began_ms) + sum(
        limit.standing_right(roster.divisor(name), began_ms=began_ms) for name in stand
    )


# ── Figures ──────────────────────────────────────────────────────────────────


def _figures(world: World, market: Market, plan: Plan) -> Figures:
    setting = market.setting
    figures: Figures = {"used_ratio": [], "over_ratio": [], "unused": [], "refused_share": []}
    owed = 0
    for page in market.books.pages():
        allowed = market.books.allowed(page)
        if page.admitted <= allowed or not market.books.is_smeared(page):
            figures["over_ratio"].append(page.admitted / allowed if allowed else 0.0)
        owed += page.owed
        if page.begins_us < setting.judged_from_ms * MS or page.ends_us > plan.end_ms * MS:
            continue
        amount = market.books.amount(page)
        figures["used_ratio"].append(page.admitted / amount)
        if page.offered >= OVERLOADED * amount:
            figures["unused"].append(max(0.0, 1.0 - page.admitted / amount))
        elif 0 < page.offered <= amount:
            figures["refused_share"].append(page.refused / page.offered)
    seconds = world.agenda.now_us / SECOND
    figures["places_unused"] = [
        max(0.0, 1.0 - used)
        for used in market.openings.used(setting.judged_from_ms * MS, world.agenda.now_us)
    ]
    figures["packets_per_s"] = [count / seconds for count in market.packets.values()]
    figures["owed"] = [float(owed)]
    return figures
