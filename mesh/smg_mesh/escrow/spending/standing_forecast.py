"""Standing forecast: what will come to one node yet of its standing right in a window, and what never will.

It is what the node will tell its owner, which tells clients what remains: so operators read the same.
"""

from typing import Final, NamedTuple

from smg_mesh.escrow.limit_model import Limit
from smg_mesh.escrow.spendable_share import Share
from smg_mesh.escrow.spending.node_footing import Footing
from smg_mesh.escrow.spending.window_page import Page


class Forecast(NamedTuple):
    """Forecast of a window. All of it and what stood so far are the node's right."""

    coming: int
    lost: int
    """Will not come, since a life before this one was there in the window."""
    kept: int
    """Will not come, since the life or its part of the roster is too young for all of it."""


NOTHING_COMES: Final = Forecast(0, 0, 0)


def forecast_of(
    limit: Limit, window: int, page: Page | None, footing: Footing, *, right: int, wall_ms: int
) -> Forecast:
    """Return the forecast of a window; `page` is this node's of it, if it has one, and `right` what is anybody's."""
    if not footing.has_part:
        return NOTHING_COMES
    stood = 0 if page is None else page.standing
    if page is None:
        page = Page(window, limit.window_ms)
        page.accrue(Share(limit), footing, limit, wall_ms=wall_ms)
    mine = footing.right(limit, began_ms=page.began_ms, turn_ms=page.next_turn_ms)
    coming = page.standing - stood + page.coming(mine)
    missing = max(0, right - stood - coming)
    if footing.restarted_after(page.began_ms):
        return Forecast(coming, missing, 0)
    return Forecast(coming, 0, missing)
