"""Options of one call of `smg-chaos history`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

STORES: Final = ("memory", "sqlite", "postgresql", "redis")


@dataclass(frozen=True, slots=True)
class Options:
    """As `smg-chaos history --help` explains them."""

    stores: tuple[str, ...] = STORES
    clients: tuple[int, ...] = (1, 16)
    rounds: int = 5
    slice_s: float = 2.0
    seconds: float = 60.0
    turns_per_s: float = 1_000.0
    postgresql: str = ""
    redis: str = ""
    json: Path | None = None
    out: Path = Path(".cache/history")
