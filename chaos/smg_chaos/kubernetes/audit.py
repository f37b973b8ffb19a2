"""Audit of an API server: what was asked and answered, and how many watches were open at once."""

from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Any, Final

KEPT_MAX: Final = 10_000


@dataclass(slots=True)
class Audit:
    """Requests of lists and watches: `asked` by verb, `statuses` by verb and status, `paths` the last ones in order."""

    asked: Counter[str] = field(default_factory=Counter)
    statuses: Counter[str] = field(default_factory=Counter)
    watches: int = 0
    most_watches: int = 0
    paths: deque[str] = field(default_factory=lambda: deque(maxlen=KEPT_MAX))

    def answered(self, verb: str, path: str, status: int) -> None:
        """Count an answer."""
        self.asked[verb] += 1
        self.statuses[f"{verb} {status}"] += 1
        self.paths.append(f"{verb} {status} {path}")

    def opened(self) -> None:
        """Count a watch that is open from now on."""
        self.watches += 1
        self.most_watches = max(self.most_watches, self.watches)

    def closed(self) -> None:
        """Count a watch that is over."""
        self.watches -= 1

    def object(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {
            "asked": dict(sorted(self.asked.items())),
            "statuses": dict(sorted(self.statuses.items())),
            "watches": self.watches,
            "most_watches": self.most_watches,
            "paths": list(self.paths),
        }
