"""smg-node as an agent: asked over HTTP on the loopback interface of its place."""

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from smg_chaos.gameday.agents.agent import Agent, AgentError, Announced, Kind, Seen, State, View
from smg_chaos.gameday.lab.http_client import Talk
from smg_chaos.gameday.lab.lab import Lab, Program
from smg_node.core.ports import Clock

HTTP_PORT: Final = 30000
METRICS_PORT: Final = 29000
_WATCH_S: Final = 0.25
_KINDS: Final[dict[str, Kind]] = {
    "member_up": "up",
    "member_suspect": "suspect",
    "member_refuted": "refuted",
    "member_down": "down",
    "member_left": "left",
    "member_changed": "changed",
}


class _Member(msgspec.Struct):
    name: str
    state: State
    address: str


class _Members(msgspec.Struct):
    members: list[_Member]


class _Event(msgspec.Struct):
    id: int
    time_ms: int
    kind: str
    name: str = ""


class _Events(msgspec.Struct):
    events: list[_Event]


_Answer = TypeVar("_Answer", _Members, _Events)


class SmgAgent(Agent):
    """An `smg-node`. Its events carry the time they happened, so the polling interval does not
    matter.
    """

    def __init__(
        self,
        lab: Lab,
        name: str,
        folder: Path,
        clock: Clock,
        *,
        key: Path | None,
        flags: Sequence[str] = (),
    ) -> None:
        super().__init__(lab, name, folder, clock)
        self.flags = tuple(flags)
        self.environment: Mapping[str, str] = {}
        """What its process has in its environment besides."""
        self._secrecy = ["--insecure-mesh"] if key is None else ["--mesh-key", str(key)]
        self._seen_event = 0
        self._views = self._talk()
        self._events = self._talk()

    def _talk(self) -> Talk:
        return Talk(lambda: self._lab.socket(self.name), "127.0.0.1", HTTP_PORT)

    def _start(self, seeds: Sequence[str]) -> Program:
        self._seen_event = 0
        self._views.close()
        self._events.close()
        program = Path(sys.executable).with_name("smg-node")
        # The admin API answers the loopback, and requests may come from anywhere in the lab.
        listen = ("--http", f"0.0.0.0:{HTTP_PORT}", "--metrics", f"0.0.0.0:{METRICS_PORT}")
        mesh = ("--name", self.name, "--mesh", self.mesh_address, *self._secrecy)
        joins = [word for seed in seeds for word in ("--join", seed)]
        # Without its access log, the log tells the members' story and nothing else.
        own = ("--data-dir", str(self.folder / "data"), "--telemetry.access-log", "false")
        drain = ("--drain.settle-s", "0")
        command: list[str | Path] = [program, *listen, *mesh, *joins, *own, *drain, *self.flags]
        with self.log.open("ab") as output:
            return self._lab.spawn(
                self.name, command, output, folder=self.folder, environment=self.environment
            )

    async def view(self) -> View | None:
        """Return its member table; None if it does not answer."""
        try:
            status, body = await self._views.ask("GET", "/v1/cluster/members")
        except ConnectionError:
            return None
        if status != 200:
            return None
        members = self._read(body, _Members).members
        return {member.name: Seen(member.state, member.address) for member in members}

    async def watch(self) -> None:
        """Read its events again and again."""
        while True:
            if self.watched and self.program is not None:
                await self._read_events()
            await asyncio.sleep(_WATCH_S)

    async def _read_events(self) -> None:
        life = self.program
        try:
            status, body = await self._events.ask(
                "GET", f"/v1/cluster/events?after={self._seen_event}"
            )
        except ConnectionError:
            return
        if status != 200 or life is not self.program:
            return
        for event in self._read(body, _Events).events:
            self._seen_event = max(self._seen_event, event.id)
            if event.kind in _KINDS and event.name != self.name:
                kind = _KINDS[event.kind]
                self.announced.append(Announced(event.time_ms, self.name, kind, event.name))

    def _read(self, body: bytes, kind: type[_Answer]) -> _Answer:
        try:
            return msgspec.json.decode(body, type=kind)
        except msgspec.DecodeError as error:
            raise AgentError(f"{self.name} answers {body[:200]!r}: {error}") from error

    async def join(self, seeds: Sequence[str]) -> None:
        """Add seeds over its API; ConnectionError if it refuses."""
        body = json.dumps({"peers": list(seeds)}).encode()
        status, said = await self._views.ask("POST", "/v1/cluster/join", body, timeout_s=10.0)
        if status >= 300:
            raise ConnectionError(f"{self.name} does not join: {status} {said[:200]!r}")

    async def ask(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        *,
        timeout_s: float = 10.0,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, bytes]:
        """Send it one HTTP request, on a connection of its own, from the loopback of its place."""
        talk = self.client()
        try:
            return await talk.ask(method, path, body, timeout_s=timeout_s, headers=headers)
        finally:
            talk.close()

    def client(self) -> Talk:
        """Return a client at its place; the caller closes it."""
        return self._talk()

    def close(self) -> None:
        """Close the connections to it."""
        self._views.close()
        self._events.close()
