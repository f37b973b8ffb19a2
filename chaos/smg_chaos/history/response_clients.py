"""Response clients of one node: each asks for one response after the other, and every answer is
checked.
"""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from smg_chaos.bench.children import BenchError, fetch
from smg_chaos.bench.load.connection import Connection, Exchange

MODEL: Final = "simulated"
PATH: Final = "/v1/responses"
_COMPLETED: Final = (b'"status":"completed"', b'"status": "completed"')
_ID: Final = b'"id":"resp_'
_ID_LENGTH: Final = 48
_LOOKED_UP: Final = 3
_PROBLEMS: Final = 5
_END_S: Final = 30.0


@dataclass(slots=True)
class Heard:
    """Results of a while of asking: seconds of each answer, ids of some, and what was wrong."""

    took_s: list[float] = field(default_factory=list)
    seconds: float = 0.0
    ids: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def note(self, exchange: Exchange, problem: str) -> None:
        """Note an answer that has ended."""
        body = exchange.body
        if problem or exchange.status != 200 or not any(word in body for word in _COMPLETED):
            if len(self.problems) < _PROBLEMS:
                said = problem or f"status {exchange.status}: {body[:200]!r}"
                self.problems.append(said)
            return
        self.took_s.append(exchange.ended_s - exchange.asked_s)
        if len(self.ids) < _LOOKED_UP:
            at = body.find(_ID) + len(_ID)
            self.ids.append(f"resp_{body[at : at + _ID_LENGTH].decode()}")


def request_of(port: int, number: int, *, stored: bool, streamed: bool) -> bytes:
    """Return the bytes of a request; no two ask the same."""
    asked = {
        "model": MODEL,
        "input": f"{number}: what does it cost to remember this?",
        "store": stored,
        "stream": streamed,
    }
    body = json.dumps(asked).encode()
    head = f"POST {PATH} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-type: application/json\r\n"
    return f"{head}content-length: {len(body)}\r\n\r\n".encode() + body


class Callers:
    """Connections to one node, kept open for as long as it is measured."""

    def __init__(self, port: int, count: int, clock_s: Callable[[], float]) -> None:
        self._port = port
        self._count = count
        self._clock_s = clock_s
        self._asked = 0
        self._ended: dict[Connection, asyncio.Future[tuple[Exchange, str]]] = {}
        self._connections: list[Connection] = []

    async def connect(self) -> None:
        """Connect; OSError if nothing listens there."""
        loop = asyncio.get_running_loop()
        for lane in range(self._count):
            make = partial(Connection, lane, ended=self._heard, lost=self._lost)
            _, connection = await loop.create_connection(make, "127.0.0.1", self._port)
            self._connections.append(connection)

    def close(self) -> None:
        """Close all connections."""
        for connection in self._connections:
            connection.close()

    async def ask(self, seconds: float, *, stored: bool, streamed: bool) -> Heard:
        """Ask on all connections for so long, and return when the last answer has ended."""
        heard = Heard()
        begun_s = self._clock_s()
        async with asyncio.timeout(seconds + _END_S), asyncio.TaskGroup() as group:
            for connection in self._connections:
                group.create_task(
                    self._lane(connection, heard, begun_s + seconds, stored, streamed)
                )
        heard.seconds = self._clock_s() - begun_s
        return heard

    async def _lane(
        self, connection: Connection, heard: Heard, end_s: float, stored: bool, streamed: bool
    ) -> None:
        loop = asyncio.get_running_loop()
        while self._clock_s() < end_s and connection.is_open:
            self._asked += 1
            request = request_of(self._port, self._asked, stored=stored, streamed=streamed)
            ended = self._ended[connection] = loop.create_future()
            connection.ask(request, self._clock_s())
            heard.note(*await ended)

    def _heard(self, connection: Connection, exchange: Exchange, problem: str) -> None:
        self._ended.pop(connection).set_result((exchange, problem))

    def _lost(self, connection: Connection) -> None:
        """Do nothing: an open request has been ended already, and the sender checks whether it is
        open.
        """


async def check_kept(port: int, heard: Heard, *, stored: bool) -> None:
    """BenchError unless these responses are there, or, if they were not to be, are not."""
    for one in heard.ids:
        status, body = await fetch("127.0.0.1", port, "GET", f"{PATH}/{one}")
        if status != (200 if stored else 404):
            raise BenchError(f"GET {PATH}/{one} answers {status}: {body[:200]!r}")
