"""Serf agent (memberlist, as HashiCorp ships it): its events are read from its log.

Its log goes through a pipe, so every line is timed when it is written. An event of serf's is one
line; its member table is computed from these lines, which costs the agent nothing.
"""

import asyncio
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from smg_chaos.gameday.agents.agent import MESH_PORT, Agent, Announced, Kind, Seen, State, View
from smg_chaos.gameday.lab.lab import Lab, Program
from smg_node.core.ports import Clock

_RPC: Final = "127.0.0.1:7373"
_READ_BYTES: Final = 1 << 16
_EVENT: Final = re.compile(rb"serf: EventMember(Join|Failed|Leave|Update|Reap): (\S+)(?: (\S+))?")
_DOUBT: Final = re.compile(rb"memberlist: Suspect (\S+) has failed")
_KINDS: Final[dict[str, tuple[Kind, State]]] = {
    "Join": ("up", "alive"),
    "Failed": ("down", "dead"),
    "Leave": ("left", "left"),
    "Update": ("changed", "alive"),
}


class SerfAgent(Agent):
    """A `serf agent` with its profile for local networks, which is its default, encrypted with `key`."""

    def __init__(
        self, lab: Lab, name: str, folder: Path, clock: Clock, *, program: Path, key: str | None
    ) -> None:
        super().__init__(lab, name, folder, clock)
        self._serf = program
        self._key = key
        self._table: dict[str, Seen] = {}
        self._pipe: int | None = None
        self._rest = b""

    def _start(self, seeds: Sequence[str]) -> Program:
        self.close()
        self._table.clear()
        config = self.folder / "serf.json"
        config.write_text('{"leave_on_terminate": true}')  # as our nodes do
        command: list[str | Path] = [
            self._serf,
            "agent",
            f"-node={self.name}",
            f"-bind={self.mesh_address}",
        ]
        command += [f"-rpc-addr={_RPC}", f"-config-file={config}"]
        command += [f"-encrypt={self._key}"] if self._key is not None else []
        command += [f"-retry-join={seed}" for seed in seeds]
        self._pipe, write_end = os.pipe()
        os.set_blocking(self._pipe, False)
        try:
            program = self._lab.spawn(self.name, command, write_end, folder=self.folder)
        finally:
            os.close(write_end)
        asyncio.get_running_loop().add_reader(self._pipe, self._read)
        return program

    def _read(self) -> None:
        assert self._pipe is not None
        try:
            content = os.read(self._pipe, _READ_BYTES)
        except BlockingIOError:
            return
        if not content:
            self.close()
            return
        with self.log.open("ab") as log:
            log.write(content)
        *lines, self._rest = (self._rest + content).split(b"\n")
        now_ms = self._clock.now_ms()
        for line in lines:
            self._understand(line, now_ms)

    def _understand(self, line: bytes, now_ms: int) -> None:
        if doubt := _DOUBT.search(line):
            self.announced.append(Announced(now_ms, self.name, "suspect", doubt[1].decode()))
        if event := _EVENT.search(line):
            what, name, host = (word.decode() if word else "" for word in event.groups())
            if what == "Reap":
                self._table.pop(name, None)
                return
            kind, state = _KINDS[what]
            known = self._table.get(name)
            self._table[name] = Seen(state, host or (known.address if known else ""))
            if name != self.name:
                self.announced.append(Announced(now_ms, self.name, kind, name))

    async def view(self) -> View | None:
        """Return the member table computed from its events; None if there is none yet, or it has
        ended.
        """
        return dict(self._table) if self._table and self.ended() is None else None

    async def watch(self) -> None:
        """Do nothing: the log is read as it comes."""

    async def join(self, seeds: Sequence[str]) -> None:
        """Run serf's own `join` command."""
        hosts = [f"{seed.partition(':')[0]}:{MESH_PORT}" for seed in seeds]
        command: list[str | Path] = [self._serf, "join", f"-rpc-addr={_RPC}", *hosts]
        with self.log.open("ab") as output:
            told = self._lab.spawn(self.name, command, output, folder=self.folder)
        if await self.end_of(told) != 0:
            raise ConnectionError(f"{self.name} does not join: see {self.log}")

    def close(self) -> None:
        """Close the pipe."""
        if self._pipe is not None:
            asyncio.get_running_loop().remove_reader(self._pipe)
            os.close(self._pipe)
            self._pipe, self._rest = None, b""
