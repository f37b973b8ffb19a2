"""Session options: limits of realtime sessions, as plain values; filled from settings."""

from dataclasses import dataclass, field

from smg_node.dialects.options import ReaderOptions


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """Limits of a session; every one is inclusive."""

    reader: ReaderOptions = field(default_factory=ReaderOptions)
    age_max_s: int = 3_600
    idle_max_s: int = 900
    items_max: int = 8_192
    items_bytes_max: int = 16 << 20
    beside_max: int = 8
    """Answers at once that do not write to the conversation."""
    events_per_s: int = 200
    events_over_s: int = 10
