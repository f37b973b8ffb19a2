"""Agent: one process of a system under test, started and hurt at its place, and asked for its
member view.

Its announcements (a member joined, is suspected, died, left) are kept with their times, for all of
its lives: that is what users of such a system act upon. Its view, the table it holds now, may know
more.
"""

import asyncio
import signal
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias

from smg_chaos.gameday.lab.lab import Lab, Program
from smg_node.core.ports import Clock

State: TypeAlias = Literal["alive", "suspect", "dead", "left"]
Kind: TypeAlias = Literal["up", "suspect", "refuted", "down", "left", "changed"]
MESH_PORT: Final = 7946
_LOOK_S: Final = 0.02


@dataclass(frozen=True, slots=True)
class Seen:
    """A member as another one sees it. `address` is host:port, or the host alone."""

    state: State
    address: str

    def is_at(self, host: str) -> bool:
        """Return whether it is seen at this host."""
        return self.address.partition(":")[0] == host


@dataclass(frozen=True, slots=True)
class Announced:
    """One announcement of a member about another, and its time (milliseconds since the epoch)."""

    at_ms: int
    observer: str
    kind: Kind
    name: str


class AgentError(Exception):
    """An agent does or answers what its system never should, so that nothing can be measured."""


View: TypeAlias = Mapping[str, Seen]


class Agent(ABC):
    """One member of a cluster, across its lives. Its name is that of its place."""

    def __init__(self, lab: Lab, name: str, folder: Path, clock: Clock) -> None:
        self.name = name
        self.folder = folder
        self.address = lab.address(name)
        self.announced: list[Announced] = []
        self.program: Program | None = None
        self.watched = True
        self._lab = lab
        self._clock = clock
        folder.mkdir(parents=True, exist_ok=True)

    @property
    def log(self) -> Path:
        """File of its output, of all its lives."""
        return self.folder / "output.log"

    @property
    def mesh_address(self) -> str:
        """Address at which its peers reach it."""
        return f"{self.address}:{MESH_PORT}"

    def start(self, seeds: Sequence[str] = (), *, elsewhere: bool = False) -> None:
        """Start a life that joins through `seeds` (host:port), at the place's other address if
        `elsewhere`.
        """
        assert self.program is None or self.program.ended() is not None
        self.address = self._lab.address(self.name, other=elsewhere)
        self.program = self._start(seeds)

    def signal(self, number: signal.Signals) -> None:
        """Send its process a signal."""
        assert self.program is not None
        self.program.signal(number)

    def ended(self) -> int | None:
        """Return its exit status, or None while it runs."""
        return None if self.program is None else self.program.ended()

    async def end_of(self, program: Program, limit_s: float = 60.0) -> int | None:
        """Return the exit status of a program, or None if it still runs after `limit_s`."""
        for _ in range(round(limit_s / _LOOK_S)):
            if (code := program.ended()) is not None:
                return code
            await asyncio.sleep(_LOOK_S)
        return None

    @abstractmethod
    def _start(self, seeds: Sequence[str]) -> Program: ...

    @abstractmethod
    async def view(self) -> View | None:
        """Return its view of all members it knows; None if it does not answer."""

    @abstractmethod
    async def watch(self) -> None:
        """Keep `announced` current while `watched`, until cancelled."""

    @abstractmethod
    async def join(self, seeds: Sequence[str]) -> None:
        """Make it join through `seeds` while it runs."""

    @abstractmethod
    def close(self) -> None:
        """Close the connections and files of this side."""

    def last_words(self, lines: int = 15) -> str:
        """Return the end of its output."""
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return "\n".join(text.splitlines()[-lines:])
