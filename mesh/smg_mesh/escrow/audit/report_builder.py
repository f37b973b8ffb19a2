"""Report builder: turns a node's books into a report of one limit."""

from collections.abc import Collection, Iterable, Sequence
from typing import TypeVar

from smg_mesh.escrow.audit.report import Report
from smg_mesh.escrow.book_rows import Held, Minting
from smg_mesh.escrow.limit_model import Limit, Roster, window_of
from smg_mesh.escrow.owning.treasury import Treasury
from smg_mesh.escrow.spending.spending_ledger import Ledger
from smg_mesh.escrow.spending.standing_forecast import NOTHING_COMES

_Named = TypeVar("_Named", str, int)


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
    began_ms = window * limit.window_ms
    right = limit.standing_right(len(names), began_ms=began_ms) if limit.window_ms else 0
    coming, lost, kept = NOTHING_COMES
    if right:
        coming, lost, kept = ledger.forecast(limit, window, right=right, wall_ms=wall_ms)
    minting = _mintings(treasury, key, window, term)
    state = "exact" if owner else "standing"
    return Report(
        key=key,
        window=window,
        amount=limit.amount,
        state=state if share is None else share.state,
        owner=owner,
        term=term,
        roster=names,
        roster_version=0 if roster is None else roster.version,
        minted=treasury.minted(key, window) if term else -1,
        pool=treasury.pool(key, window) if term else -1,
        given=_given(minting),
        standing=0 if held is None else held.standing,
        borrowed=0 if held is None else held.borrowed,
        spent=0 if held is None else held.spent,
        left=0 if held is None else held.left,
        debt=0 if share is None else share.debt,
        not_adopted=tuple(name for name in names if term and name not in current),
        right=right,
        newcomers=() if roster is None else _newcomers(roster),
        coming=coming,
        missing=lost,
        received=() if held is None else _received(held),
        made=sum(row.minted for row in minting) if term else -1,
        withheld=kept + (_withheld(limit, right, roster, current, window) if term else 0),
        stranded=_stranded(minting),
    )


def _mintings(treasury: Treasury, key: str, window: int, term: int) -> Sequence[Minting]:
    """Return what this node did with a window as its owner of now."""
    place = (key, window, term)
    return [row for row in treasury.rows() if term and (row.key, row.window, row.term) == place]


def _given(mintings: Sequence[Minting]) -> tuple[tuple[str, int], ...]:
    """Return by name what was given to it and not returned."""
    return _sums((name, given - back) for one in mintings for name, _, given, back in one.given)


def _stranded(mintings: Sequence[Minting]) -> tuple[tuple[str, int], ...]:
    """Return by name what was given to earlier lives of it and not returned."""
    rows = [row for one in mintings for row in one.given]
    latest: dict[str, int] = {}
    for name, boot, _, _ in rows:
        latest[name] = max(boot, latest.get(name, boot))
    return _sums((name, given - back) for name, boot, given, back in rows if boot < latest[name])


def _newcomers(roster: Roster) -> tuple[str, ...]:
    names = zip(roster.names, roster.divisors, strict=True)
    return tuple(name for name, divisor in names if not divisor)


def _received(held: Held) -> tuple[tuple[int, int], ...]:
    """Return by term what was given and not returned, as the node itself says."""
    return _sums((*held.given, *((term, -total) for term, total in held.returned)))


def _sums(rows: Iterable[tuple[_Named, int]]) -> tuple[tuple[_Named, int], ...]:
    sums: dict[_Named, int] = {}
    for name, amount in rows:
        sums[name] = sums.get(name, 0) + amount
    return tuple(sorted(sums.items()))


def _withheld(
    limit: Limit, right: int, roster: Roster | None, current: Collection[str], window: int
) -> int:
    """Return what of a window neither stands with a name nor may be minted."""
    if roster is None or not limit.window_ms:
        return 0
    mintable = limit.mintable(roster, current, began_ms=window * limit.window_ms)
    standing = right * sum(1 for divisor in roster.divisors if divisor)
    return max(0, limit.amount - standing - mintable)
