"""Event log of a world: announcements of every node, and what the world did, in order.

Announcements are kept as tuples, in order. Scenarios measure with them and `history_text` prints
them; neither looks into a core.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

HAPPENINGS_MAX: Final = 2_000_000
"""More than the largest scenario makes; a world that says more is broken."""

UP: Final = "up"
SUSPECT: Final = "suspect"
REFUTED: Final = "refuted"
DOWN: Final = "down"
LEFT: Final = "left"
CHANGED: Final = "changed"
NEWS: Final = "news"
SUPERSEDED: Final = "superseded"
ISOLATED: Final = "isolated"
BOOT: Final = "boot"
WORLD: Final = "world"


class Happening(NamedTuple):
    """`observer` (a host's label, or empty: the world) says that `kind` befell `name`."""

    at_us: int
    observer: str
    kind: str
    name: str
    boot: int = 0
    incarnation: int = 0
    detail: str = ""


class Chronicle:
    """All events of a world, in order."""

    def __init__(self) -> None:
        self.happenings: list[Happening] = []
        self.open = True
        """Whether it is being written; a world that only warms up is not worth the memory."""

    def add(self, happening: Happening) -> None:
        """Keep an event."""
        if self.open:
            assert len(self.happenings) < HAPPENINGS_MAX
            self.happenings.append(happening)

    def deed(self, now_us: int, name: str, what: str) -> None:
        """Keep something that the world did to `name`."""
        self.add(Happening(now_us, "", WORLD, name, 0, 0, what))

    def of(self, *kinds: str, since_us: int = 0, name: str = "") -> Iterator[Happening]:
        """Yield announcements of these kinds since then, of one name or of all."""
        for one in self.happenings:
            if one.at_us >= since_us and one.kind in kinds and name in ("", one.name):
                yield one

    def deeds(self) -> Iterator[Happening]:
        """Yield what the world did."""
        return self.of(WORLD)
