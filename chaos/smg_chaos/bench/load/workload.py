"""Workload: what one of the benchmark's loads is, and what its options are."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from smg_chaos.bench.load.job import Flow
from smg_chaos.bench.load.script import Spoken
from smg_chaos.bench.options import ToolLoad

STEP_MS: Final = 20
"""From one token of a paced stream to the next, if nothing else is said."""

Unit: TypeAlias = Literal["request", "token", "first token", "gap"]
Behind: TypeAlias = Literal["engine", "halves", "vendor", "tools"]
"""What gateways stand in front of: a simulated engine, one that takes bfloat16 of pictures, the stand-in of a vendor's
API, or engines and a server of tools."""


@dataclass(frozen=True, slots=True)
class Load:
    """Load options of the command line. `spread_s` is the time over which held streams start."""

    clients: int = 32
    rate_per_s: float = 0.0
    held_s: float = 0.0
    round: int = 0
    long_sizes: tuple[int, ...] = ()
    tools: ToolLoad = field(default_factory=ToolLoad)


Flows: TypeAlias = Callable[[Load, Spoken | None], Sequence[Flow]]


@dataclass(frozen=True, slots=True)
class Workload:
    """One workload. `less` is another one whose cost per request is taken off before dividing by
    tokens; `first` is the flow whose time to the first token is reported.
    """

    name: str
    says: str
    unit: Unit
    flows: Flows
    paced: bool = False
    less: str = ""
    first: str = "main"
    longer: int = 1
    """It counts for so many times as long as others: what is rare needs time to be seen often."""
    least_s: float = 0.0
    """It counts for so long at least, however short others are: what has an end of its own has to come to it."""
    added: bool = False
    """Whether the time to the first token is counted without what the engine alone takes."""
    behind: Behind = "engine"
    sees: bool = False
    """Whether the engine has to serve a model that sees pictures."""
    step_ms: int = STEP_MS
    """From one token of a paced stream to the next."""
    beside: str = ""
    """The same workload without what is asked about here, whose gaps between tokens its own are compared with."""
    runs_per_s: float = 0.0
    """Runs of tools a second that are wanted beside its streams."""
    clients_min: int = 1
    """Client processes that it needs: what one reads must not hold up what another measures."""
