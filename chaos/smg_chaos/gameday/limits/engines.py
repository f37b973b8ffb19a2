"""Engines behind the limits: at a place of their own, which no cut between nodes isolates, with
call ledgers.
"""

import asyncio
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from smg_chaos.gameday.agents.cluster import Cluster, ClusterError
from smg_chaos.gameday.lab.lab import Program

_FIRST_PORT: Final = 61000
_START_S: Final = 60.0
_LOOK_S: Final = 0.02


@dataclass(frozen=True, slots=True)
class Speech:
    """Output and pace of engines: a token every `step_ms`, so many of them to a message."""

    script: str
    step_ms: float
    chunk_tokens: int = 1


class Engines:
    """One process with one or more workers of a model, which records every call."""

    def __init__(
        self,
        cluster: Cluster,
        place: str,
        model: str,
        *,
        workers: int,
        speech: Speech,
        first_port: int = _FIRST_PORT,
    ) -> None:
        self._cluster = cluster
        self._place = place
        self.model = model
        self._folder = cluster.agents[0].folder.parent
        self._log = self._folder / f"engines-{model}.log"
        self.account = self._folder / f"engines-{model}.account"
        host = cluster.lab.address(place)
        self.urls = tuple(f"grpc://{host}:{first_port + number}" for number in range(workers))
        self._command: list[str | Path] = [
            Path(sys.executable).with_name("smg-chaos"),
            *("engine", "--host", host, "--port", str(first_port), "--workers", str(workers)),
            *("--contract", "vllm", "--model", model, "--script", speech.script),
            *("--itl-ms", str(speech.step_ms), "--coalesce", str(speech.chunk_tokens)),
            *("--pace", "each", "--prefill-tokens-per-s", "0"),
            *("--slots", "4096", "--blocks", "131072", "--no-cache", "--events", "none"),
            *("--account", str(self.account)),
        ]
        self._program: Program | None = None

    def start(self) -> None:
        """Start the process; it listens some time later."""
        with self._log.open("wb") as output:
            self._program = self._cluster.lab.spawn(
                self._place, self._command, output, folder=self._folder
            )

    async def listening(self) -> None:
        """Return when all workers listen; ClusterError if they do not."""
        assert self._program is not None
        for _ in range(round(_START_S / _LOOK_S)):
            said = self._log.read_text(errors="replace")
            if said.count("listening on") == len(self.urls):
                return
            if self._program.ended() is not None:
                break
            await asyncio.sleep(_LOOK_S)
        said = self._log.read_text(errors="replace")[-2000:]
        raise ClusterError(f"the engines do not start:\n{said}")
