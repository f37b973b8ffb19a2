"""Limit totals: what is spent of limits in the whole cluster, added up from every node's report.

Only what belongs to the same window is added: a node whose clock lags by a little is shown, and not
counted. The owner's report of its pool and of what it gave to each node counts once; if two nodes
take themselves for the owner, the later term counts.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from smg_mesh.shared import Report
from smg_node.http.ports.limits import LimitUse, NodeUse

_WORST: Final = ("exact", "standing", "borrowed", "alone")
"""From the best to the worst that a share can be worth."""


def add_up(reports: Mapping[str, Sequence[Report]], behind: Sequence[str]) -> list[LimitUse]:
    """Return one row for each key that any node reports, sorted by key.

    `behind` are nodes that use other definitions than the querying one.
    """
    by_key: dict[str, dict[str, Report]] = {}
    for name in sorted(reports):
        for report in reports[name]:
            by_key.setdefault(report.key, {})[name] = report
    return [_use(key, by_key[key], behind) for key in sorted(by_key)]


def is_complete(use: LimitUse, names: Sequence[str]) -> bool:
    """Whether all nodes with a part in it are among `names` and follow the owner's definition."""
    return use.state == "exact" and bool(use.term) and set(use.nodes) >= set(names)


def _use(key: str, said: Mapping[str, Report], behind: Sequence[str]) -> LimitUse:
    window = max(report.window for report in said.values())
    counted = {name: report for name, report in said.items() if report.window == window}
    owning = [report for report in said.values() if report.term and report.window == window]
    owner = max(owning, key=lambda report: report.term, default=None)
    given = {} if owner is None else dict(owner.given)
    _, _, rest = key.rpartition("#")
    unit, _, window_ms = rest.partition("/")
    latest = max(counted.values(), key=lambda report: (report.term, report.amount))
    return LimitUse(
        key=key,
        unit=unit,
        window_ms=int(window_ms),
        window=window,
        ends_ms=(window + 1) * int(window_ms),
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
        state=max((report.state for report in said.values()), key=_badness),
        not_adopted=sorted({*behind, *(() if owner is None else owner.not_adopted)}),
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
    )


def _badness(state: str) -> int:
    return _WORST.index(state) if state in _WORST else len(_WORST)
