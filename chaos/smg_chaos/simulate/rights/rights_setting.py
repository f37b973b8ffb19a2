"""Rights setting: limits of a world, load on each of them, clocks and disks."""

from dataclasses import dataclass

from smg_chaos.simulate.rights.escrow import RightsFactory
from smg_mesh.escrow.limit_model import Limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """The load on one limit: requests a second, by the number of the node; others are asked
    nothing.

    A request costs something from `cost[0]` to `cost[1]`. With `settles` that is what it reserves: in the end, up
    to three seconds later, it turns out to have used a part of that, from `used[0]` to `used[1]`, which may be
    more than all of it. Between `from_ms` and `until_ms` of the world.
    """

    key: str
    rates_per_s: tuple[float, ...]
    cost: tuple[int, int] = (1, 1)
    settles: bool = False
    used: tuple[float, float] = (0.2, 1.0)
    holds_ms: tuple[int, int] = (0, 0)
    """So long an answer is open, of a limit on what is open at a time."""
    from_ms: int = 0
    until_ms: int = 1 << 40

    def rate_per_s(self, number: int) -> float:
        """Return what the node of that number is asked."""
        return self.rates_per_s[number] if number < len(self.rates_per_s) else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RightsSetting:
    """One world's limits and what happens to them. Wrong clocks and odd paces are by the number of the node."""

    limits: tuple[Limit, ...]
    flows: tuple[Flow, ...]
    expect: int
    """As many nodes make the first roster."""
    phase_ms: int = 0
    """By how much all clocks are ahead of the world's beginning: where in their windows it finds the limits."""
    clock_wrong_ms: tuple[int, ...] = ()
    pace_ppm: tuple[int, ...] = ()
    """How much faster a monotonic clock runs than it should, in millionths."""
    disks: bool = True
    """Whether nodes have a data dir."""
    failing_writes: float = 0.0
    """Part of all writes that the disk refuses."""
    beat_ms: int = 5
    """How often customers come."""
    judged_from_ms: int = 0
    """From then on the use of limits is measured; that they hold is looked at always."""
    watchful: bool = True
    """Whether the books of all nodes are added up after every step."""
    make_core: RightsFactory | None = None
    """None: the rights that real nodes have."""
