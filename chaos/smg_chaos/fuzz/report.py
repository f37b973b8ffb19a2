"""Report of an attack: outcomes by kind of datagram, and the properties that were violated."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

BROKEN_SHOWN: Final = 10


@dataclass(slots=True)
class Report:
    """Counted so far."""

    seed: int
    outcomes: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """(part, kind, outcome) → datagrams."""
    broken: list[str] = field(default_factory=list)
    """The first promises that were broken, in words."""
    broken_count: int = 0
    facts: dict[str, str] = field(default_factory=dict)

    def count(self, part: str, kind: str, outcome: str) -> None:
        """Count one datagram."""
        self.outcomes[part, kind, outcome] += 1

    def breaks(self, promise: str) -> None:
        """Record a violated property; only the first ones are kept in words."""
        self.broken_count += 1
        if len(self.broken) < BROKEN_SHOWN:
            self.broken.append(promise)

    def datagrams(self) -> int:
        """Return how many datagrams were sent."""
        return self.outcomes.total()

    def lines(self) -> list[str]:
        """Return the summary: a table per part, the facts, and the verdict."""
        lines = []
        for part in dict.fromkeys(part for part, _, _ in self.outcomes):
            lines += [*self._table(part), ""]
        width = max(map(len, self.facts), default=0)
        lines += [f"{name:<{width}}  {value}" for name, value in self.facts.items()]
        lines += [f"BROKEN: {promise}" for promise in self.broken]
        if self.broken_count > len(self.broken):
            lines.append(f"BROKEN: and {self.broken_count - len(self.broken)} times more")
        verdict = (
            f"{self.broken_count} promises broken" if self.broken_count else "all promises kept"
        )
        lines.append(f"seed {self.seed}: {self.datagrams():,} datagrams, {verdict}")
        return lines

    def _table(self, part: str) -> list[str]:
        rows = {(k, o): n for (p, k, o), n in self.outcomes.items() if p == part}
        kinds = sorted({kind for kind, _ in rows})
        outcomes = sorted({outcome for _, outcome in rows})
        lines = [f"{part:<18}" + "".join(f"{outcome:>10}" for outcome in outcomes)]
        for kind in kinds:
            cells = [rows.get((kind, outcome), 0) for outcome in outcomes]
            lines.append(f"  {kind:<16}" + "".join(f"{n or '·':>10}" for n in cells))
        return lines
