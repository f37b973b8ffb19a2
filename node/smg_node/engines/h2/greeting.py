"""What a client says first on a connection: what it takes, and how much may be under way to it."""

from typing import Final

from smg_node.engines.h2 import frames
from smg_node.engines.h2.flow import STREAM_WINDOW
from smg_node.engines.h2.hpack import HEADERS_MAX_BYTES

CONNECTION_WINDOW: Final = 16 * 1024 * 1024
"""What all calls together may have under way to us; each flow has its own, which holds it back."""

GREETING: Final = (
    frames.PREFACE
    + frames.settings(
        (frames.TABLE_SIZE, 0),
        (frames.ENABLE_PUSH, 0),
        (frames.INITIAL_WINDOW, STREAM_WINDOW),
        (frames.MAX_HEADER_LIST, HEADERS_MAX_BYTES),
    )
    + frames.window_update(0, CONNECTION_WINDOW - frames.DEFAULT_WINDOW)
)
