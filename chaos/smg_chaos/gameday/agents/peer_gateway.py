"""Peer gateway: the reference gateway as an agent, started at its place with given engines, asked
only for chats.
"""

import asyncio
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from smg_chaos.gameday.agents.agent import Agent, AgentError, View
from smg_chaos.gameday.agents.cluster import ClusterError
from smg_chaos.gameday.agents.engine_pool import chat_once
from smg_chaos.gameday.agents.smg_agent import HTTP_PORT, METRICS_PORT
from smg_chaos.gameday.lab.http_client import Talk
from smg_chaos.gameday.lab.lab import Lab, Program
from smg_node.core.ports import Clock

_READY_S: Final = 60.0
_LOOK_S: Final = 0.1
_ADMITTED: Final = 200


class PeerGateway(Agent):
    """An `smg`, which has no peers: its view is empty, and it can only be restarted and hurt."""

    def __init__(self, lab: Lab, name: str, folder: Path, clock: Clock, *, program: Path) -> None:
        super().__init__(lab, name, folder, clock)
        self._path = program
        self._engines: tuple[str, ...] = ()
        self._per_s = 0

    async def restart(self, engines: Sequence[str], *, per_s: int = 0) -> None:
        """Start a life with these engines and so many requests a second, 0 for any number; return
        when it answers.
        """
        self._engines, self._per_s = tuple(engines), per_s
        if self.program is not None and self.program.ended() is None:
            self.program.signal(signal.SIGKILL)
            await self.end_of(self.program)
        self.start()
        talk = Talk(lambda: self._lab.socket(self.name), "127.0.0.1", HTTP_PORT)
        try:
            for _ in range(round(_READY_S / _LOOK_S)):
                if self.ended() is not None:
                    raise ClusterError(f"{self.name} ended; it said:\n{self.last_words()}")
                if await _answers(talk):
                    await asyncio.sleep(
                        1.0
                    )  # what was asked now counts for the second that is over
                    return
                await asyncio.sleep(_LOOK_S)
        finally:
            talk.close()
        raise ClusterError(f"{self.name} does not answer; it said:\n{self.last_words()}")

    def _start(self, seeds: Sequence[str]) -> Program:
        if not self._engines:
            raise AgentError(
                "the reference gateway has no mesh here: it plays `limits` and `availability` only"
            )
        command: list[str | Path] = [
            self._path,
            *("launch", "--host", "0.0.0.0", "--port", str(HTTP_PORT)),
            *("--prometheus-host", "0.0.0.0", "--prometheus-port", str(METRICS_PORT)),
            *("--worker-urls", *self._engines),
        ]
        if self._per_s:
            command += [
                *("--max-concurrent-requests", str(self._per_s), "--queue-size", "0"),
                *("--rate-limit-tokens-per-second", str(self._per_s)),
            ]
        with self.log.open("ab") as output:
            return self._lab.spawn(self.name, command, output, folder=self.folder)

    async def view(self) -> View | None:
        """Return an empty view."""
        return {}

    async def watch(self) -> None:
        """Do nothing: it announces nothing."""

    async def join(self, seeds: Sequence[str]) -> None:
        """Raise AgentError: it has no cluster to join."""
        raise AgentError(
            "the reference gateway has no mesh here: it plays `limits` and `availability` only"
        )

    def close(self) -> None:
        """Do nothing: nothing is open."""


async def _answers(talk: Talk) -> bool:
    try:
        status, _ = await chat_once(talk, tokens=1)
    except ConnectionError:
        return False
    return status == _ADMITTED
