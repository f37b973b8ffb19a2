"""Goals of the trials: what was measured before, what must be, and what would be better still. Pure."""

from dataclasses import dataclass, replace
from typing import Final

from smg_chaos.statistics import Figure, Unit


@dataclass(frozen=True, slots=True)
class Goal:
    """Target of a figure: `must` and `stretch` are the least it may be with `is_least`, else the most."""

    metric: str
    before: str
    must: float
    stretch: float | None = None
    unit: Unit = ""
    is_least: bool = False

    def figure(self, trial: str, value: float | None, says: str = "") -> Figure:
        """Return the figure that a trial measured."""
        figure = Figure(f"{trial}: {self.metric}", value, self.unit, says=says)
        if self.is_least:
            return replace(figure, least=self.must, stretch=self.stretch, before=self.before)
        return replace(figure, limit=self.must, stretch=self.stretch, before=self.before)


AT_ONCE: Final = Goal("admitted within 2 s of asking / limit", "0.52", 0.95, 1.0, is_least=True)
OF_WINDOW: Final = Goal("admitted in a window / limit", "0.82–0.90", 0.98, 1.0, is_least=True)
OF_TWO: Final = Goal("admitted in a window / limit", "", 0.98, 1.0, is_least=True)
OF_BURST: Final = Goal("640 at once, admitted / 600", "0.58", 0.98, 1.0, is_least=True)
FULLEST: Final = Goal("admitted / limit, fullest run of windows", "1.000", 1.0, 1.0)
RETRIES: Final = Goal("refusals with a wrong Retry-After", "most", 2.0, 0.0, "%")
REMAINING: Final = Goal("answers with a wrong remaining", "most", 0.0, 0.0)
REASONS: Final = Goal("refusals with no reason, or an untrue one", "", 0.0)
REPORTS: Final = Goal("reports of use that do not add up", "", 0.0)
