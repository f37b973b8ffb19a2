"""Options of one call of `smg-chaos gameday`."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Options:
    """As `smg-chaos gameday --help` explains them; 0 stands for the scenario's own."""

    scenarios: tuple[str, ...]
    systems: tuple[str, ...]
    nodes: int = 0
    seconds: float = 0.0
    rounds: int = 0
    streams: int = 0
    topology: str = "alone"
    faults: tuple[str, ...] = ()
    store: str = "postgresql"
    engines: int = 3
    trials: tuple[str, ...] = ()
    window_s: int = 0
    mode: str = "strict"
    seed: int = 1
    quick: bool = False
    json: Path | None = None
    out: Path = Path(".cache/gameday")
    peers: Path = Path(".cache/peers")
