"""Engine processes that can be hurt one by one, each at the place of the first node."""

import asyncio
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from smg_chaos.gameday.agents.cluster import Cluster, ClusterError
from smg_chaos.gameday.agents.engine_pool import MODEL
from smg_chaos.gameday.lab.lab import Program

_FIRST_PORT: Final = 61100
_START_S: Final = 60.0
_LOOK_S: Final = 0.02


class EngineProcess:
    """One simulated engine at one address, across its lives. `flags` are those of `smg-chaos engine`.

    It lives at the place of the first node, or at `place`.
    """

    def __init__(
        self,
        cluster: Cluster,
        number: int,
        flags: Sequence[str],
        *,
        place: str = "",
        model: str = MODEL,
    ) -> None:
        self._cluster = cluster
        self._place = place or cluster.names[0]
        self._folder = cluster.agents[0].folder
        self._host = cluster.lab.address(self._place)
        self._port = _FIRST_PORT + number
        self._flags = tuple(flags)
        self._log = self._folder / f"engine-{number}.log"
        self._program: Program | None = None
        self.url = f"grpc://{self._host}:{self._port}"
        self.name = f"engine {number}"
        self.model = model
        self.is_killed = False
        """Whether its life was ended, and no new one has begun."""

    def start(self) -> None:
        """Start a life; it listens some time later."""
        assert self._program is None or self._program.ended() is not None
        self.is_killed = False
        command: list[str | Path] = [
            Path(sys.executable).with_name("smg-chaos"),
            *("engine", "--host", self._host, "--port", str(self._port), "--model", self.model),
            *self._flags,
        ]
        with self._log.open("wb") as output:
            self._program = self._cluster.lab.spawn(
                self._place, command, output, folder=self._folder
            )

    async def listening(self) -> None:
        """Return when it listens; ClusterError if it ends instead, or takes far too long."""
        assert self._program is not None
        for _ in range(round(_START_S / _LOOK_S)):
            if "listening on" in self._log.read_text(errors="replace"):
                return
            if self._program.ended() is not None:
                break
            await asyncio.sleep(_LOOK_S)
        said = self._log.read_text(errors="replace")[-2000:]
        raise ClusterError(f"{self.name} does not start:\n{said}")

    def kill(self) -> None:
        """Kill it (SIGKILL)."""
        self.is_killed = True
        self._signal(signal.SIGKILL)

    def stop(self) -> None:
        """Stop it (SIGSTOP): its connections stay, and nothing comes."""
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Continue it (SIGCONT)."""
        self._signal(signal.SIGCONT)

    async def ended(self) -> None:
        """Return when its life is over; ClusterError if it does not end."""
        assert self._program is not None
        for _ in range(round(_START_S / _LOOK_S)):
            if self._program.ended() is not None:
                return
            await asyncio.sleep(_LOOK_S)
        raise ClusterError(f"{self.name} does not end")

    def _signal(self, number: signal.Signals) -> None:
        assert self._program is not None
        self._program.signal(number)
