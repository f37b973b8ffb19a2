"""Treasury timing: how often an owner looks at its keys, and how much of the past it keeps."""

from typing import Final

LOOK_MS: Final = 500
"""A key that nothing was heard of is looked at so often, for limits and roster may be others by then."""
SERVE_MS: Final = 10
"""Whoever could not be given enough at once is looked after so soon."""
STEP_MS: Final = 20
"""Clocks run a little apart; more than this, and the wall clock was set: everything is looked at."""
HOT_MS: Final = 3_000
"""A key that nobody asked for in this time, or in two windows, is not minted ahead."""
RECENT_MS: Final = 1_200
"""Who has not been heard of for so long, or one and a half windows, gets nothing at an opening."""
AHEAD_MS: Final = 600
"""So long before it opens, a window is minted."""
KEPT_WINDOWS: Final = 4
KEPT_MS: Final = 60_000
GONE_MAX: Final = 20_000
ALLOWED_FOR_MS: Final = 50
"""What may be minted is worked out anew whenever limit or roster are others, and so often while names may go by an
older version of the limit."""
AUDIT_MS: Final = 500
"""So long after its end a window is reckoned up: what was said in it has arrived by then."""
CALL_MS: Final = 1_000
"""Nodes that have something and give nothing are called so often in the end."""
NEWS_MS: Final = 50
"""What one node has spent is told to the others after this, if it is enough to tell of."""
NEWS_FOR_MS: Final = 2_000
"""To those that were heard of in this time."""
