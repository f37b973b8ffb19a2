"""A fault as it was: when it began and ended, and for how long it could be noticed after that."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Happened:
    """Times are seconds on the cluster's clock. `heals_s` None: it could be noticed for longer than it was given."""

    name: str
    told: str
    lane: str
    begun_s: float
    ended_s: float
    heals_s: float | None
