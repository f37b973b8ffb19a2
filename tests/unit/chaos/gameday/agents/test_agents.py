"""What agents make of what systems say: of serf's log lines, and of our own node's HTTP answers."""

import asyncio
import json
import os
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import IO, Any

import pytest

from smg_chaos.gameday.agents import smg_agent
from smg_chaos.gameday.agents.agent import Announced, Seen
from smg_chaos.gameday.agents.serf_agent import SerfAgent
from smg_chaos.gameday.agents.smg_agent import SmgAgent
from smg_chaos.gameday.lab.http_client import Talk
from smg_chaos.gameday.lab.lab import Program
from support.http.chat_client import becomes
from support.mesh.gameday_fakes import FakeLab, Manners, VirtualClock

WAIT_S = 10.0
LOG = """==> Starting Serf agent...
    2026/11/21 14:42:15 [INFO] serf: EventMemberJoin: n0 10.77.0.1
    2026/11/21 14:42:15 [INFO] serf: EventMemberJoin: n1 10.77.0.2
    2026/11/21 14:42:16 [INFO] agent: Received event: member-join
    2026/11/21 14:42:16 [INFO] serf: EventMemberJoin: n2 10.77.0.3
    2026/11/21 14:42:17 [INFO] memberlist: Suspect n1 has failed, no acks received
    2026/11/21 14:42:19 [INFO] memberlist: Marking n1 as failed, suspect timeout reached (0 peer confirmations)
    2026/11/21 14:42:19 [INFO] serf: EventMemberFailed: n1 10.77.0.2
    2026/11/21 14:42:20 [INFO] serf: EventMemberLeave: n2 10.77.0.3
    2026/11/21 14:42:21 [INFO] serf: EventMemberUpdate: n1
    2026/11/21 14:42:22 [INFO] serf: EventMemberReap: n2
    2026/11/21 14:42:23 [WARN] serf: EventMember
"""


class Spawning(FakeLab):
    """A lab whose programs do nothing but be remembered; `output` is where theirs would go."""

    commands: list[list[str]]
    output: int

    def spawn(
        self,
        place: str,
        command: Sequence[str | Path],
        output: IO[bytes] | int,
        **more: Any,
    ) -> Program:
        self.commands = [*getattr(self, "commands", []), [str(word) for word in command]]
        self.output = os.dup(output if isinstance(output, int) else output.fileno())
        return Program(1, place, self)

    def ask(self, do: str, *given: Any, **more: Any) -> dict[str, Any]:
        return {"code": None}

    def socket(self, place: str, kind: int = socket.SOCK_STREAM) -> socket.socket:
        return socket.socket(socket.AF_INET, kind)


def lab() -> Spawning:
    return Spawning(("n0", "n1", "n2"), VirtualClock(), Manners())


async def until(condition: Callable[[], object]) -> None:
    await becomes(condition, WAIT_S, "as expected")


@pytest.mark.parametrize("piece", [1, 7, 64, 10_000])
async def test_serf_is_understood_however_its_lines_are_torn(piece: int, tmp_path: Path) -> None:
    place = lab()
    agent = SerfAgent(place, "n0", tmp_path, place.clock, program=Path("serf"), key=None)
    assert await agent.view() is None
    agent.start(["10.77.0.2:7946"])
    for start in range(0, len(LOG), piece):
        os.write(place.output, LOG[start : start + piece].encode())
        await asyncio.sleep(0)
    os.close(place.output)
    await until(lambda: agent.log.exists() and agent.log.read_text() == LOG)
    assert await agent.view() == {
        "n0": Seen("alive", "10.77.0.1"),
        "n1": Seen("alive", "10.77.0.2"),
    }
    now_ms = place.clock.now_ms()
    assert agent.announced == [
        Announced(now_ms, "n0", "up", "n1"),
        Announced(now_ms, "n0", "up", "n2"),
        Announced(now_ms, "n0", "suspect", "n1"),
        Announced(now_ms, "n0", "down", "n1"),
        Announced(now_ms, "n0", "left", "n2"),
        Announced(now_ms, "n0", "changed", "n1"),
    ]
    agent.close()


async def test_serf_is_started_with_its_defaults_and_forgets_its_last_life(tmp_path: Path) -> None:
    place = lab()
    agent = SerfAgent(place, "n1", tmp_path, place.clock, program=Path("serf"), key="secret=")
    agent.start(["10.77.0.1:7946"])
    (command,) = place.commands
    assert command[:4] == ["serf", "agent", "-node=n1", "-bind=10.77.0.2:7946"]
    assert command[-2:] == ["-encrypt=secret=", "-retry-join=10.77.0.1:7946"]
    os.write(place.output, LOG.encode())
    os.close(place.output)
    await until(lambda: agent.announced)
    agent.program = None
    agent.start(elsewhere=True)
    os.close(place.output)
    assert "-bind=10.77.1.2:7946" in place.commands[1]
    assert await agent.view() is None
    assert agent.announced
    agent.close()


MEMBERS = {
    "members": [
        {"name": "n0", "state": "alive", "address": "10.77.0.1:7946", "boot": 1, "me": True},
        {"name": "n1", "state": "suspect", "address": "10.77.0.2:7946", "boot": 2},
    ]
}
EVENTS = [
    {"id": 1, "time_ms": 10, "kind": "joined"},
    {"id": 2, "time_ms": 20, "kind": "member_up", "name": "n1", "detail": {"boot": 2}},
    {"id": 3, "time_ms": 30, "kind": "member_changed", "name": "n0"},
    {"id": 4, "time_ms": 40, "kind": "member_down", "name": "n1"},
]


class Node:
    """A server that answers as our node does, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.connections = 0
        self.status = 200

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                line = head.split("\r\n")[0]
                length = int(head.partition("content-length: ")[2].split("\r\n")[0])
                content = (await reader.readexactly(length)).decode()
                self.asked.append(f"{line.rpartition(' ')[0]} {content}".strip())
                body = json.dumps(self._answer(line.split()[1])).encode()
                words = f"HTTP/1.1 {self.status} Any\r\nContent-Length: {len(body)}\r\n\r\n"
                writer.write(words.encode() + body)
        except asyncio.IncompleteReadError:
            return  # the client is gone

    def _answer(self, path: str) -> dict[str, Any]:
        if path == "/v1/cluster/members":
            return MEMBERS
        if path.startswith("/v1/cluster/events?after="):
            after = int(path.rpartition("=")[2])
            return {"events": [event for event in EVENTS if int(str(event["id"])) > after]}
        return {}


@asynccontextmanager
async def listening(
    serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
) -> AsyncIterator[int]:
    """Serve on a port until all clients are gone."""
    open_count = 0

    async def whole(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal open_count
        open_count += 1
        await serve(reader, writer)
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()
        open_count -= 1

    async with await asyncio.start_server(whole, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]
        await until(lambda: not open_count)


@asynccontextmanager
async def serving(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Node]:
    node = Node()
    async with listening(node.serve) as port:
        monkeypatch.setattr(smg_agent, "HTTP_PORT", port)
        yield node


async def test_our_node_is_asked_for_its_table_and_its_events(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    place = lab()
    async with serving(monkeypatch) as node:
        agent = SmgAgent(
            place, "n0", tmp_path, place.clock, key=None, flags=["--worker", "grpc://e:1"]
        )
        agent.start(["10.77.0.2:7946"])
        os.close(place.output)
        assert await agent.view() == {
            "n0": Seen("alive", "10.77.0.1:7946"),
            "n1": Seen("suspect", "10.77.0.2:7946"),
        }
        async with asyncio.TaskGroup() as group:
            watching = group.create_task(agent.watch())
            await until(lambda: "GET /v1/cluster/events?after=4" in node.asked)
            watching.cancel()
        assert agent.announced == [
            Announced(20, "n0", "up", "n1"),
            Announced(40, "n0", "down", "n1"),
        ]
        await agent.join(["10.77.0.3:7946"])
        assert node.asked[-1] == 'POST /v1/cluster/join {"peers": ["10.77.0.3:7946"]}'
        assert node.connections == 2
        node.status = 403
        assert await agent.view() is None
        with pytest.raises(ConnectionError, match="does not join: 403"):
            await agent.join(["10.77.0.3:7946"])
        agent.close()
    assert await agent.view() is None


def test_our_node_is_started_with_what_its_user_would_say(tmp_path: Path) -> None:
    place = lab()
    key = tmp_path / "key"
    agent = SmgAgent(place, "n1", tmp_path, place.clock, key=key, flags=["--worker", "grpc://e:1"])
    agent.start(["10.77.0.1:7946"], elsewhere=True)
    os.close(place.output)
    (command,) = place.commands
    assert command == [
        str(Path(sys.executable).with_name("smg-node")),
        *("--http", "0.0.0.0:30000", "--metrics", "0.0.0.0:29000"),
        *("--name", "n1", "--mesh", "10.77.1.2:7946", "--mesh-key", str(key)),
        *("--join", "10.77.0.1:7946", "--data-dir", str(tmp_path / "data")),
        *("--telemetry.access-log", "false", "--drain.settle-s", "0", "--worker", "grpc://e:1"),
    ]


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nshort",
        b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n",
        b"HTTP/1.1 2x0 OK\r\ncontent-length: 0\r\n\r\n",
        b"x" * 200_000,
    ],
)
async def test_what_is_no_whole_answer_is_a_connection_error(answer: bytes) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)

    async with listening(serve) as port:
        talk = Talk(lambda: socket.socket(), "127.0.0.1", port)
        with pytest.raises(ConnectionError, match="/path: "):
            await talk.ask("GET", "/path")


async def test_who_does_not_answer_in_time_is_given_up() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with listening(serve) as port:
        talk = Talk(lambda: socket.socket(), "127.0.0.1", port)
        with pytest.raises(ConnectionError, match="/path: TimeoutError"):
            await talk.ask("GET", "/path", timeout_s=0.05)
