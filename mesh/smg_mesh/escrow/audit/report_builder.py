"""Report builder: turns a node's books into a report of one limit."""

from collections.abc import Collection

from smg_mesh.escrow.audit.report import Report
from smg_mesh.escrow.limit_model import Limit, Roster, window_of
from smg_mesh.escrow.owning.treasury import Treasury
from smg_mesh.escrow.spending.spending_ledger import Ledger


def report_of(
    limit: Limit,
    *,
    ledger: Ledger,
    treasury: Treasury,
    owner: str,
    term: int,
    roster: Roster | None,
    current: Collection[str],
    wall_ms: int,
) -> Report:
    """Return what the books of a node say; `current` are the names that are known to go by the limits of now."""
    key, share = limit.key, ledger.peek(limit.key)
    window = window_of(wall_ms, limit.window_ms)
    if share is not None and share.window >= 0:
        window = share.window
    held = next((row for row in ledger.rows() if (row.key, row.window) == (key, window)), None)
    names = () if roster is None else roster.names
    return Report(
        key=key,
        window=window,
        amount=limit.amount,
        state="standing" if share is None else share.state,
        owner=owner,
        term=term,
        roster=names,
        roster_version=0 if roster is None else roster.version,
        minted=treasury.minted(key, window) if term else -1,
        pool=treasury.pool(key, window) if term else -1,
        given=_given(treasury, key, window, term),
        standing=0 if held is None else held.standing,
        borrowed=0 if held is None else held.borrowed,
        spent=0 if held is None else held.spent,
        left=0 if held is None else held.left,
        debt=0 if share is None else share.debt,
        not_adopted=tuple(name for name in names if term and name not in current),
    )


def _given(treasury: Treasury, key: str, window: int, term: int) -> tuple[tuple[str, int], ...]:
    sums: dict[str, int] = {}
    for row in treasury.rows():
        if (row.key, row.window, row.term) == (key, window, term):
            for name, _, given, returned in row.given:
                sums[name] = sums.get(name, 0) + given - returned
    return tuple(sorted(sums.items()))
