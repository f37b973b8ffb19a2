"""Options of `smg-chaos bench`."""

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ToolLoad:
    """Options of the load of tools: streams at a pace, and runs a second beside them."""

    streams: tuple[int, ...] = (500,)
    step_ms: int = 100
    runs_per_s: float = 50.0
    result_bytes: int = 64 * 1024


@dataclass(frozen=True, slots=True)
class FlashLoad:
    """Options of flash crowds: how many begin in one instant, connected before it if `kept`."""

    sizes: tuple[int, ...] = ()
    """Of none: 256 streams that go on, 1,000 of one token."""
    kept: bool = False


@dataclass(frozen=True, slots=True)
class Options:
    """The command line, checked for types and ranges only."""

    gateways: tuple[str, ...] = ()
    workloads: tuple[str, ...] = ()
    rounds: int = 3
    laps: int = 1
    duration_s: float = 4.0
    warmup_s: float = 1.0
    clients: int = 32
    rate_per_s: float = 0.0
    tools: ToolLoad = field(default_factory=ToolLoad)
    crowds: FlashLoad = field(default_factory=FlashLoad)
    streams: tuple[int, ...] = (64, 256)
    client_processes: int = 1
    tokenizer: Path | None = None
    contract: str = "vllm"
    engine_server: str = "h2"
    pace: str = "each"
    peers: Path = Path(".cache/peers")
    url: str | None = None
    model: str = "simulated"
    pid: int = 0
    json: Path | None = None
    again: Path | None = None
    out: Path = Path(".cache/bench")
