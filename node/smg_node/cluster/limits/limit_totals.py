"""Limit totals: what is spent of limits in the whole cluster, added up from every node's report.

Only what belongs to the same window is added: a node whose clock lags by a little is shown, and not
counted. The owner's report of its pool and of what it gave to each node counts once; if two nodes
take themselves for the owner, the later term counts. What may be missing in the sums is said.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from smg_mesh.shared import Report
from smg_node.admission.header_values import window_name
from smg_node.cluster.limits.limit_balance import Sight, balance_of
from smg_node.http.ports.limits import LimitUse, NodeUse

_WORST: Final = ("exact", "standing", "borrowed", "alone")
"""From the best to the worst that a share can be worth."""
_NOT_COUNTED: Final[Mapping[str, str]] = {
    "dead": "node {node} is dead or cut off: what it spent is not counted",
    "restarted": "node {node} restarted: what it spent before is not counted",
    "no_owner": "no owner of {name} is heard here: what is spent elsewhere is not counted",
}


@dataclass(frozen=True, slots=True)
class Asked:
    """Who was asked for the sums. `behind` are those that go by other definitions than the node that asks."""

    answered: Collection[str]
    living: Collection[str]
    behind: Sequence[str] = ()


def add_up(reports: Mapping[str, Sequence[Report]], asked: Asked) -> list[LimitUse]:
    """Return one row for each key that any node reports, sorted by key."""
    by_key: dict[str, dict[str, Report]] = {}
    for name in sorted(reports):
        for report in reports[name]:
            by_key.setdefault(report.key, {})[name] = report
    return [_use(key, by_key[key], asked) for key in sorted(by_key)]


def inexact_reasons(uses: Iterable[LimitUse], *, silent: Mapping[str, str], cut: int) -> list[str]:
    """Return why these sums may be incomplete, each reason once; nothing if they are exact."""
    told = {f"node {name} does not answer: {why}": None for name, why in sorted(silent.items())}
    told |= {text: None for use in uses for text in _reasons(use)}
    if cut:
        told[f"{cut} more are in use and not shown"] = None
    return list(told)


def _reasons(use: LimitUse) -> Iterator[str]:
    for one in use.unavailable:
        if one.reason in _NOT_COUNTED:
            yield _NOT_COUNTED[one.reason].format(node=one.node, name=use.name)
    for name in use.not_adopted:
        yield f"node {name} is not known to go by the present definitions"
    for name, told in sorted(use.nodes.items()):
        if told.window != use.window:
            yield f"the clock of node {name} is in another window of {use.name}: not counted"
    if use.window_ms and use.spent and not use.term:
        yield f"{use.name} has no owner now: what one before had left is not known"


def _use(key: str, said: Mapping[str, Report], asked: Asked) -> LimitUse:
    number = max(report.window for report in said.values())
    counted = {name: report for name, report in said.items() if report.window == number}
    owning = [report for report in counted.values() if report.term]
    owner = max(owning, key=lambda report: report.term, default=None)
    given = {} if owner is None else dict(owner.given)
    scope, _, rest = key.rpartition("#")
    unit, _, window = rest.partition("/")
    window_ms = int(window)
    latest = max(counted.values(), key=lambda report: (report.term, report.amount))
    left = balance_of(
        Sight(latest.amount, not window_ms, counted, owner, asked.answered, asked.living)
    )
    return LimitUse(
        key=key,
        name=_name(scope, unit, window_ms),
        unit=unit,
        window_ms=window_ms,
        window=number,
        ends_ms=(number + 1) * window_ms,
        amount=latest.amount,
        spent=sum(report.spent for report in counted.values()),
        left=sum(report.left for report in counted.values()),
        standing=sum(report.standing for report in counted.values()),
        borrowed=sum(report.borrowed for report in counted.values()),
        debt=sum(report.debt for report in said.values()),
        given=sum(given.values()),
        minted=None if owner is None else owner.minted,
        pool=None if owner is None else owner.pool,
        owner=latest.owner if owner is None else owner.owner,
        term=0 if owner is None else owner.term,
        state=_state(said.values()),
        not_adopted=sorted({*asked.behind, *(() if owner is None else owner.not_adopted)}),
        nodes={
            name: NodeUse(
                window=report.window,
                state=report.state,
                spent=report.spent,
                left=report.left,
                standing=report.standing,
                borrowed=report.borrowed,
                debt=report.debt,
                given=given.get(name, 0) if owner is not None else None,
            )
            for name, report in said.items()
        },
        remaining=left.remaining,
        over=left.over,
        unavailable=left.unavailable,
    )


def _name(scope: str, unit: str, window_ms: int) -> str:
    """What a limit is called, with its window in words, as in `x-smg-limit`."""
    return f"{scope or 'global'}#{unit}" + (f"/{window_name(window_ms)}" if window_ms else "")


def _state(reports: Collection[Report]) -> str:
    """Return the worst state of those that have something of the limit; of all if none has."""
    using = [one for one in reports if one.spent or one.left or one.term or one.borrowed]
    return max((report.state for report in using or reports), key=_badness)


def _badness(state: str) -> int:
    return _WORST.index(state) if state in _WORST else len(_WORST)
