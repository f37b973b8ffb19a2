"""Replica setting: options of all replicas of a world, and how closely they are checked."""

from dataclasses import dataclass

from smg_mesh.config import StateOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class StateSetting:
    """Options of all replicas, and how closely they are watched.

    `wild`: clocks may be wrong by more than the future that nodes put up with, so what counts where is a
    matter of clocks until they are right again. `watchful`: every step is looked at.
    """

    options: StateOptions
    wild: bool = False
    watchful: bool = True
