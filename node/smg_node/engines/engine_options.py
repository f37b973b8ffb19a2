"""Engine options: timeouts, size limits and connections of this node's calls to its engines, from
the `engine` settings.
"""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from smg_node.engines.tokenizer_archive import ARCHIVE_MAX_BYTES
from smg_node.engines.transport.tls_trust import Trust
from smg_node.engines.transport.transport import (
    MESSAGE_MAX_BYTES,
    PIECES_MAX_BYTES,
    TransportOptions,
)

if TYPE_CHECKING:
    from smg_node.engines.shared_memory import SharedMemory

Observe: TypeAlias = Callable[[str, Mapping[str, str]], None]
"""Told of what should be counted: an event's name and its labels. Must not raise or block.

`engine_error` (contract, status) · `engine_timeout` (contract, limit) ·
`engine_unknown_finish` (contract, reason) · `engine_abort` (contract, sent)
"""


def unobserved(name: str, labels: Mapping[str, str]) -> None:
    """Count nothing."""


class SharedMemoryOpener:
    """Opens the process's shared memory, once, with the first engine that could read it; blocks for a moment."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        """Engines are met by several threads."""
        self._opened: SharedMemory | None = None

    def __call__(self) -> "SharedMemory":
        """Return it; what earlier processes left there is gone."""
        from smg_node.engines.shared_memory import SharedMemory

        with self._guard:
            if self._opened is None:
                self._opened = SharedMemory()
                self._opened.sweep()
            return self._opened


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """Limits are seconds and bytes. A stall is silence between two messages of one stream.

    Without `open_memory` all tensors go in messages.
    """

    transport: str = "h2"
    connect_s: float = 5.0
    first_event_s: float = 600.0
    stall_s: float = 300.0
    ping_interval_s: float = 30.0
    message_max_bytes: int = MESSAGE_MAX_BYTES
    media_message_max_bytes: int = PIECES_MAX_BYTES
    bundle_max_bytes: int = ARCHIVE_MAX_BYTES
    detect_s: float = 5.0
    connections: int = 1
    open_memory: SharedMemoryOpener | None = None
    trust: Trust = field(default_factory=Trust)
    tls_name: str = ""
    """Of one worker: the name that its certificate must be for; "" for the host that it is called at."""

    def transport_options(
        self, *, secure: bool = False, ping_interval_min_s: float = 0.0
    ) -> TransportOptions:
        """Return what the transport needs; pings never come oftener than an engine bears."""
        return TransportOptions(
            connect_s=self.connect_s,
            ping_interval_s=max(self.ping_interval_s, ping_interval_min_s),
            message_max_bytes=self.message_max_bytes,
            pieces_max_bytes=self.media_message_max_bytes,
            connections=self.connections,
            trust=self.trust if secure else None,
            tls_name=self.tls_name,
        )
