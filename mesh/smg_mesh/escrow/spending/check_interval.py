"""Check interval of a key: how long it may go without a look: until it may be low, at most."""

from typing import Final

from smg_mesh.escrow.spendable_share import Share

CALM_MS: Final = 25
"""Looks are on a grid of this. Who may be low before is not looked at for that: its share calls."""
PACE_MIN_MS: Final = 5
_PACE_MS: Final = 100
"""Who needs nothing is looked at so often, and what is asked for measured."""
_SHORT_MS: Final = 1_000
"""Windows up to this are looked at half as often: what they give back, four times a window, measures as well."""
_RISE: Final = 2
"""So many times faster it may be used up than it was so far."""
_CROWD: Final = 16
"""And so much may be wanted at the same moment."""


def pace_ms(window_ms: int) -> int:
    """Return how often a key of such windows is looked at where nothing hurries, in milliseconds."""
    return 2 * _PACE_MS if window_ms <= _SHORT_MS else _PACE_MS


def enough_ms(share: Share, demand: float, most_ms: int) -> int:
    """Return for how long there is surely enough, at so much demand a second; `most_ms` for longer, below 0 for no time."""
    if not demand:
        return most_ms
    return int(min(most_ms, (share.left - share.low - _CROWD) * 1000 / (demand * _RISE)))
