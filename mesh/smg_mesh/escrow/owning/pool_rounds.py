"""Pool rounds: what an owner tells nodes of one pool without being asked. Pure but for the pool.

While it owns the slot it gives to those that wait, calls for what is missing, greets those it has to hear of,
and tells those at work that less is left. When its lease is over, what it had minted and not given is nobody's but
its own: no later owner mints it, so it takes that as a node, and gives it back as any node does.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence

from msgspec.structs import replace

from smg_mesh.escrow.limit_model import Life, Limit
from smg_mesh.escrow.messages.messages import UNKNOWN, GiveRow
from smg_mesh.escrow.owning.key_book import Book
from smg_mesh.escrow.owning.pool_customer import Customer
from smg_mesh.escrow.owning.treasury_timing import CALL_MS, NEWS_FOR_MS, RECENT_MS
from smg_mesh.escrow.owning.window_pool import Pool
from smg_mesh.escrow.spending.released_slices import RELEASED_MAX_MS
from smg_mesh.escrow.spending.standing_rights import SLICE_MS


def due_rows(
    pool: Pool,
    demands: Mapping[Life, Customer],
    alive: Sequence[Life],
    young: Collection[Life],
    *,
    now_ms: int,
    wall_ms: int,
) -> Iterator[tuple[Life, GiveRow]]:
    """Yield what to tell whom now; `demands` are those of the window before.

    `young` lives have begun in this window, or in the one before: they may have less than is usual.
    """
    fed = _opened(pool, demands, now_ms=now_ms)
    fed += pool.feed(now_ms=now_ms, wall_ms=wall_ms)
    called = dict(_called(pool, alive, now_ms=now_ms))
    told = [*fed, *called]
    if tells_news(pool.limit):
        told += _greeted(pool, alive if pool.is_taken_over else young, now_ms=now_ms)
        if len(pool.customers) > 1:
            told += pool.behind(pool.free(alive), since_ms=now_ms - NEWS_FOR_MS)
    for life in dict.fromkeys(told):
        yield life, pool.row_for(life, alive, called=called.get(life, 0))


def kept_rows(book: Book, me: Life, *, wall_ms: int) -> Iterator[GiveRow]:
    """Yield what this node gives itself of windows that run, of terms that are over."""
    for pool in book.pools.values():
        if pool.term and pool.began_ms <= wall_ms < pool.ends_ms and pool.give_all(me):
            yield replace(pool.row_for(me), free=UNKNOWN)


def tells_news(limit: Limit) -> bool:
    """Return whether a window is long enough for what was spent elsewhere to be told while it lasts."""
    return limit.window_ms >= SLICE_MS


def _opened(pool: Pool, demands: Mapping[Life, Customer], *, now_ms: int) -> list[Life]:
    if pool.opened or not pool.short or not pool.made:
        return []
    old_ms = max(RECENT_MS, pool.limit.window_ms * 3 // 2)
    return pool.open({life: c for life, c in demands.items() if now_ms - c.heard_ms <= old_ms})


def _greeted(pool: Pool, lives: Collection[Life], *, now_ms: int) -> list[Life]:
    """Return which of these have not said what they have of this window: who hears of its owner, says it.

    Each is greeted again, ever more seldom.
    """
    greeted = []
    for life in lives if pool.limit.window_ms <= RELEASED_MAX_MS else ():
        if life.name not in pool.names:
            continue
        customer = pool.customers.setdefault(life, Customer())
        if not customer.spoke and customer.call(now_ms=now_ms, every_ms=SLICE_MS):
            greeted.append(life)
    return greeted


def _called(pool: Pool, alive: Sequence[Life], *, now_ms: int) -> list[tuple[Life, int]]:
    if pool.missing() <= 0:
        return []
    every_ms = min(max(CALL_MS, pool.limit.window_ms), SLICE_MS)
    return pool.calls(alive, now_ms=now_ms, every_ms=every_ms)
