"""Index figures: counts of the prefix index for metrics."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class IndexFigures:
    """Entries that the index holds now, and those it gave up since the start."""

    entries: int
    sets: int
    evicted: int
    narrowed: int
    """Blocks whose other holders were forgotten because there were too many different sets."""
