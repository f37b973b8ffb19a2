"""What is counted of an index."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class IndexFigures:
    """What the index holds now, and what it gave up since the start."""

    entries: int
    sets: int
    evicted: int
    narrowed: int
    """Blocks whose other holders were forgotten because there were too many different sets."""
