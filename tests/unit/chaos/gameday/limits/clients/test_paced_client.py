"""A process of clients: asks when it is due, keeps what came of everything, and does what it is told."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from smg_chaos.gameday.limits.clients.client_messages import NUMBERS, Asks, Command, Plan, Reply
from smg_chaos.gameday.limits.clients.paced_client import Client
from smg_chaos.gameday.limits.clients.trial_records import UNKNOWN, Answer, read_answers
from smg_node.system_clock import SystemClock
from support.http.chat_client import becomes

LIMITED = b"HTTP/1.1 429 No\r\nx-ratelimit-limit-requests: 3\r\ncontent-length: 2\r\n\r\n{}"
SOON = b"HTTP/1.1 429 No\r\nretry-after-ms: 40\r\nx-smg-limit-reason: used_up\r\ncontent-length: 2\r\n\r\n{}"
FINE = b"HTTP/1.1 200 OK\r\nx-smg-limit-state: exact\r\ncontent-length: 2\r\n\r\n{}"


class Server:
    """Answers with what `says` says of a body; None: not at all."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, object]] = []
        self.connections = 0
        self.open = 0
        self.answers = asyncio.Event()
        """Answers wait for it."""
        self.answers.set()
        self.says: Callable[[dict[str, object]], bytes | None] = lambda body: FINE

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open += 1
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
                body = json.loads(await reader.readexactly(length))
                self.bodies.append(body)
                said = self.says(body)
                await self.answers.wait()
                if said is None:
                    continue
                writer.write(said)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.open -= 1
            writer.close()

    async def over(self) -> None:
        await becomes(lambda: not self.open, 20.0, "no connections")


class Steered:
    """A client that is told what to do; its first node answers, its second does not exist."""

    def __init__(
        self, record: Path, streams: tuple[asyncio.StreamReader, asyncio.StreamWriter]
    ) -> None:
        self._record = record
        self._reader, self._writer = streams

    async def do(self, command: Command) -> Reply:
        self._writer.write(msgspec.json.encode(command) + b"\n")
        return msgspec.json.decode(await self._reader.readline(), type=Reply)

    async def answers(self) -> list[Answer]:
        await self.do(Command("write"))
        return read_answers([self._record])


@asynccontextmanager
async def steered(folder: Path, number: int = 0) -> AsyncIterator[tuple[Steered, Server]]:
    server = Server()
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    port = int(listening.sockets[0].getsockname()[1])
    record = folder / "answers"
    # Nobody ever listens on the same port of another address of the loopback.
    plan = Plan("", 0, ["127.0.0.1", "127.0.0.77"], port, number, 1, str(record))
    ours, theirs = socket.socketpair()
    streams = await asyncio.open_connection(sock=theirs)
    client = Client(plan, SystemClock())
    reader, writer = await asyncio.open_connection(sock=ours)
    async with listening:
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(client.run(reader, writer))
                try:
                    yield Steered(record, streams), server
                finally:
                    streams[1].close()
        finally:
            writer.close()
    await server.over()


async def test_a_burst_is_asked_once_with_numbers_of_its_own(tmp_path: Path) -> None:
    async with steered(tmp_path, number=3) as (client, server):
        asks = Asks("talk", '"max_tokens":8,"stream":false', "Why?")
        reply = await client.do(Command("burst", counts=[5], asks=asks))
        assert reply.did == "burst"
        reply = await client.do(Command("quiet"))
        answers = await client.answers()
    assert (reply.sent, reply.held_back) == (5, 0)
    serials = [3 * NUMBERS + number for number in range(1, 6)]
    assert sorted(answer.serial for answer in answers) == serials
    assert sorted(int(str(body.pop("seed"))) for body in server.bodies) == serials
    question = {"role": "user", "content": "Why?"}
    assert server.bodies[0] == {
        "model": "talk",
        "messages": [question],
        "max_tokens": 8,
        "stream": False,
    }
    assert {(answer.node, answer.status, answer.state) for answer in answers} == {(0, 200, "exact")}
    assert all(answer.sent_us <= answer.got_us for answer in answers)


async def test_a_rate_goes_on_until_another_one_is_set(tmp_path: Path) -> None:
    async with steered(tmp_path) as (client, server):
        server.says = lambda body: LIMITED
        await client.do(Command("rate", per_s=[400.0]))
        await becomes(lambda: len(server.bodies) >= 40, 20.0, "forty requests")
        await client.do(Command("rate", per_s=[0.0]))
        await client.do(Command("quiet"))
        asked = len(server.bodies)
        answers = await client.answers()
        await asyncio.sleep(0.05)
        assert len(server.bodies) == asked
    assert len(answers) == asked
    assert {(answer.status, answer.limit) for answer in answers} == {(429, 3)}
    assert server.connections < asked, "connections are kept"


async def test_a_node_that_is_gone_is_an_answer_of_its_own(tmp_path: Path) -> None:
    async with steered(tmp_path) as (client, _):
        await client.do(Command("burst", counts=[0, 3]))
        await client.do(Command("quiet"))
        answers = await client.answers()
    assert [(answer.node, answer.status) for answer in answers] == [(1, 0)] * 3
    assert all(answer.why.startswith("no connection") for answer in answers)


async def test_who_does_not_answer_is_given_up(tmp_path: Path) -> None:
    async with steered(tmp_path) as (client, server):
        server.says = lambda body: None
        await client.do(Command("burst", counts=[2], asks=Asks(patience_s=0.05)))
        await client.do(Command("quiet"))
        answers = await client.answers()
    assert [answer.why for answer in answers] == ["no answer in time"] * 2


async def test_who_is_refused_comes_back_when_told_and_not_before(tmp_path: Path) -> None:
    async with steered(tmp_path) as (client, server):
        server.says = lambda body: SOON if len(server.bodies) <= 3 else FINE
        until_us = SystemClock().now_ms() * 1000 + 20_000_000
        await client.do(Command("burst", counts=[2], until_us=until_us))
        await becomes(lambda: len(server.bodies) >= 5, 20.0, "both come back until admitted")
        await client.do(Command("quiet"))
        answers = {answer.serial: answer for answer in await client.answers()}
    assert sorted(answer.status for answer in answers.values()) == [200, 200, 429, 429, 429]
    returns = [answer for answer in answers.values() if answer.follows != UNKNOWN]
    assert len(returns) == 3
    for answer in returns:
        refused = answers[answer.follows]
        assert (refused.status, refused.retry_ms, refused.reason) == (429, 40, "used_up")
        assert answer.node == refused.node
        assert answer.sent_us >= refused.got_us + 40_000


async def test_who_is_told_to_come_after_the_end_does_not(tmp_path: Path) -> None:
    async with steered(tmp_path) as (client, server):
        server.says = lambda body: SOON
        until_us = SystemClock().now_ms() * 1000
        await client.do(Command("burst", counts=[2], until_us=until_us))
        await client.do(Command("quiet"))
        answers = await client.answers()
        await asyncio.sleep(0.06)
        assert len(server.bodies) == 2
    assert [(answer.status, answer.follows) for answer in answers] == [(429, UNKNOWN)] * 2


async def test_who_waits_to_come_back_does_not_hold_up_the_end(tmp_path: Path) -> None:
    later = SOON.replace(b"40", b"99999")
    async with steered(tmp_path) as (client, server):
        server.says = lambda body: later
        until_us = SystemClock().now_ms() * 1000 + 1_000_000_000
        await client.do(Command("burst", counts=[2], until_us=until_us))
        await client.do(Command("quiet"))
    assert len(server.bodies) == 2


async def test_who_is_dismissed_while_it_waits_does_not_come_back(tmp_path: Path) -> None:
    async with steered(tmp_path) as (client, server):
        server.says = lambda body: SOON
        until_us = SystemClock().now_ms() * 1000 + 20_000_000
        await client.do(Command("burst", counts=[2], until_us=until_us))
        await becomes(lambda: len(server.bodies) >= 4, 20.0, "both come back")
        await client.do(Command("dismiss"))
        await client.do(Command("quiet"))
        asked = len(server.bodies)
        await asyncio.sleep(0.06)
        assert len(server.bodies) == asked
        server.says = lambda body: SOON if len(server.bodies) <= asked + 1 else FINE
        await client.do(Command("burst", counts=[1], until_us=until_us))
        await becomes(lambda: len(server.bodies) == asked + 2, 20.0, "who asks later comes back")
        await client.do(Command("quiet"))
        answers = await client.answers()
    assert sorted(answer.status for answer in answers) == [200, *[429] * (asked + 1)]


async def test_who_is_dismissed_before_its_answer_does_not_come_back(tmp_path: Path) -> None:
    async with steered(tmp_path) as (client, server):
        server.says = lambda body: SOON
        server.answers.clear()
        until_us = SystemClock().now_ms() * 1000 + 20_000_000
        await client.do(Command("burst", counts=[2], until_us=until_us))
        await becomes(lambda: len(server.bodies) == 2, 20.0, "both are asked")
        await client.do(Command("dismiss"))
        server.answers.set()
        await client.do(Command("quiet"))
        answers = await client.answers()
        await asyncio.sleep(0.06)
        assert len(server.bodies) == 2
    assert [answer.status for answer in answers] == [429, 429]


async def test_connections_are_made_ahead_and_used_by_the_burst(tmp_path: Path) -> None:
    async with steered(tmp_path) as (client, server):
        await client.do(Command("connect", counts=[4, 1]))
        await becomes(lambda: server.connections == 4, 20.0, "four connections")
        assert server.bodies == []
        await client.do(Command("burst", counts=[4]))
        await client.do(Command("quiet"))
        answers = await client.answers()
    assert server.connections == 4
    assert [answer.status for answer in answers] == [200] * 4


async def test_it_ends_when_nobody_commands_any_more_whatever_is_open(tmp_path: Path) -> None:
    async with steered(tmp_path) as (client, server):
        server.says = lambda body: None
        await client.do(Command("burst", counts=[2]))
        await client.do(Command("rate", per_s=[1.0]))
        await becomes(lambda: len(server.bodies) >= 2, 20.0, "two requests")
