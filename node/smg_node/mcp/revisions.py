"""Revisions of the Model Context Protocol: the era of each, and which methods and parameters belong to it. Pure.

Two protocols share one name. In the handshake era a session is opened by `initialize`, and what was agreed then holds
for all of it. In the modern era there is no session: each request says the revision and what the client can do.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final


class Era(Enum):
    """Which of the two protocols a revision belongs to."""

    HANDSHAKE = "handshake"
    MODERN = "modern"


@dataclass(frozen=True, slots=True)
class Revision:
    """One revision by its date. `version_header`: requests by HTTP name it in `mcp-protocol-version`."""

    name: str
    era: Era
    version_header: bool = True

    @property
    def modern(self) -> bool:
        """Whether it has no sessions."""
        return self.era is Era.MODERN

    def holds(self, method: str) -> bool:
        """Whether a client may send this method or notification in this revision."""
        return method in _METHODS[self.era]


REVISIONS: Final = (
    Revision("2024-11-05", Era.HANDSHAKE, version_header=False),
    Revision("2025-03-26", Era.HANDSHAKE, version_header=False),
    Revision("2025-06-18", Era.HANDSHAKE),
    Revision("2025-11-25", Era.HANDSHAKE),
    Revision("2026-07-28", Era.MODERN),
)
"""All that are known, oldest first."""
NEWEST_HANDSHAKE: Final = REVISIONS[-2]
NEWEST_MODERN: Final = REVISIONS[-1]

_BOTH: Final = ("tools/list", "tools/call", "notifications/cancelled")
_METHODS: Final[Mapping[Era, frozenset[str]]] = {
    Era.HANDSHAKE: frozenset((*_BOTH, "initialize", "notifications/initialized", "ping")),
    Era.MODERN: frozenset((*_BOTH, "server/discover", "tasks/get", "tasks/update", "tasks/cancel")),
}
NAME_PARAMETERS: Final[Mapping[str, str]] = {
    "tools/call": "name",
    "tasks/get": "taskId",
    "tasks/update": "taskId",
    "tasks/cancel": "taskId",
}
"""Methods whose object is named in a header of the modern era, and the parameter that holds the name."""


def revision_named(name: object) -> Revision | None:
    """Return the revision of that name, None for one that is not known."""
    return next((one for one in REVISIONS if one.name == name), None)


def newest_modern(supported: Iterable[object]) -> Revision | None:
    """Return the newest modern revision among the names that a server supports, None if there is none."""
    names = list(supported)
    return next((one for one in reversed(REVISIONS) if one.modern and one.name in names), None)
