"""Limits of MCP calls: how long a server is waited for, and how much of what it says is taken. Pure."""

from dataclasses import dataclass
from typing import Final

_MIB: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class McpLimits:
    """Limits for one server; the defaults are those of a node.

    A call ends after `call_idle_s` without progress and after `call_total_s` in any case. `answer_bytes_max` bounds one
    message of a server, `output_bytes_max` what of a result is shown to a model.
    """

    connect_s: float = 10.0
    list_s: float = 10.0
    call_idle_s: float = 60.0
    call_total_s: float = 300.0
    answer_bytes_max: int = 16 * _MIB
    output_bytes_max: int = 256 * 1024
    verdict_s: float = 3600.0
    """So long is it remembered which protocol a server speaks."""
    list_ttl_s: float = 300.0
    """So long is a list of tools used, where the server does not say how long."""
    session_idle_s: float = 300.0
    connections_max: int = 1000
    """Servers, by credential and tenant, that are connected with at once; beyond it the longest idle one is closed."""


LIST_TTL_MAX_S: Final = 86_400.0
"""No server's word on how long its list is good is taken for longer."""
TOOLS_MAX: Final = 512
PAGES_MAX: Final = 64
"""A list in more pages than this has a server that does not know its own cursors."""
DESCRIPTION_BYTES_MAX: Final = 2048
SCHEMA_BYTES_MAX: Final = 16_384
ROUNDS_MAX: Final = 10
"""A call that wants to be sent again more often than this is not going to end."""
MESSAGE_CHARACTERS_MAX: Final = 2000
"""Of a server's own error message."""
