"""Fault record: when a fault began and ended, and how long its effects lasted after that."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Happened:
    """A fault that was played.

    Times are seconds on the cluster's clock. `heals_s` None: it could be noticed for longer than it
    was given.
    """

    name: str
    told: str
    lane: str
    begun_s: float
    ended_s: float
    heals_s: float | None
