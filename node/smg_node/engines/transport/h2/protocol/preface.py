"""Connection preface: the first bytes a client sends: SETTINGS, and the flow-control window it
grants. Pure.
"""

from typing import Final

from smg_node.engines.transport.h2.protocol import frames
from smg_node.engines.transport.h2.protocol.hpack import HEADERS_MAX_BYTES
from smg_node.engines.transport.h2.protocol.stream_state import STREAM_WINDOW

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
