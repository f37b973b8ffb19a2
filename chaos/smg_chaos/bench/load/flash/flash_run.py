"""Flash run: all connections of a flow ask in one instant; the next crowd comes when the last answer has ended.

Times are counted from that instant, so what the client needs to connect and to ask is in them; how
long that took is told beside them. Strangers connect in the instant as well; clients of a `kept`
flow have been connected before. A crowd counts if it began inside the borders, however long its
answers take, or its slowest would be missing.
"""

import asyncio
import socket
from collections.abc import Coroutine, Sequence
from time import perf_counter
from typing import Any, Final

from smg_chaos.bench.load.connection import Connection, Exchange
from smg_chaos.bench.load.job import Flow, Job, Tally
from smg_chaos.bench.load.load_flows import FlowRun, Samples
from smg_chaos.bench.load.requests import Requests

PAUSE_S: Final = 0.25
"""Between the last answer of a crowd and the next crowd: a gateway has gone to sleep by then."""


class FlashRun(FlowRun):
    """One running flow of crowds."""

    def __init__(self, job: Job, flow: Flow, requests: Requests, *, seed: int) -> None:
        super().__init__(job, flow, requests, seed=seed)
        self._asking = Samples(self._rng)
        self._from_s = self._until_s = float("inf")
        self._crowds = 0
        self._all_ended = asyncio.Event()
        self._open_answers = 0

    def work(self) -> Sequence[Coroutine[Any, Any, None]]:
        """Return the coroutines that make the load."""
        lanes = range(self.flow.connections) if self.flow.kept else ()
        return [self._crowds_until_the_end(), *map(self.lane, lanes)]

    def open(self) -> None:
        """Begin counting crowds that begin from now on."""
        super().open()
        self._from_s = perf_counter()

    def close(self) -> Tally:
        """Stop counting new crowds; return what came since `open`."""
        self._until_s = perf_counter()
        return super().close()

    def tally(self) -> Tally:
        """Return what was counted, with the times the client took to ask."""
        tally = super().tally()
        tally.asking, tally.crowds = sorted(self._asking.kept), self._crowds
        return tally

    # ── Crowds ───────────────────────────────────────────────────────────────

    async def _crowds_until_the_end(self) -> None:
        while not self._stopping:
            await self._rest(PAUSE_S)
            if self._stopping:
                return
            due_s = perf_counter()
            self._crowds += self._in_borders(due_s)
            if self.flow.kept:
                self._regulars(due_s)
            else:
                await self._strangers(due_s)
            while self._open_answers:
                self._all_ended.clear()
                await self._all_ended.wait()

    def _regulars(self, due_s: float) -> None:
        for connection in [one for one in self._connections.values() if one.is_open]:
            self._open_answers += 1
            self._ask(connection, due_s)
            self._left_the_client(due_s)

    async def _strangers(self, due_s: float) -> None:
        """Connect and ask; only when all have asked is any connection handed to the event loop."""
        made = [self._stranger(number, due_s) for number in range(self.flow.connections)]
        async with asyncio.TaskGroup() as group:
            for number, raw in enumerate(made):
                group.create_task(self._adopted(number, raw, due_s))

    def _stranger(self, number: int, due_s: float) -> tuple[socket.socket, bytes]:
        """Return a socket that has been told to connect, and what of its request is not sent yet."""
        raw = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        raw.setblocking(False)
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        request = self._requests.next(number)
        raw.connect_ex((self._job.host, self._job.port))
        try:
            # On the loopback interface it is connected by now.
            sent = raw.send(request)
        except OSError:
            sent = 0
        if sent == len(request):
            self._left_the_client(due_s)
        return raw, request[sent:]

    async def _adopted(self, number: int, made: tuple[socket.socket, bytes], due_s: float) -> None:
        raw, rest = made
        loop = asyncio.get_running_loop()
        connection = self._protocol(number)
        connection.expect(due_s)
        self._connections[number], self._left[number] = connection, asyncio.Event()
        self._busy += 1
        self._open_answers += 1
        try:
            if rest:
                async with asyncio.timeout(self.CONNECT_S):
                    await loop.sock_sendall(raw, rest)
                self._left_the_client(due_s)
            await loop.create_connection(lambda: connection, sock=raw)
        except OSError as error:
            raw.close()
            del self._connections[number]
            self._busy -= 1
            self._answer_over()
            self._wrong(f"no connection: {str(error) or type(error).__name__}")

    def _left_the_client(self, due_s: float) -> None:
        if self._in_borders(due_s):
            self._asking.add(perf_counter() - due_s)

    def _in_borders(self, due_s: float) -> bool:
        return self._from_s <= due_s < self._until_s

    # ── What a flow decides ──────────────────────────────────────────────────

    def _free(self, connection: Connection) -> None:
        """Let a free connection wait for the next crowd."""

    def _counts(self, exchange: Exchange) -> bool:
        return self._in_borders(exchange.asked_s)

    def _ended(self, connection: Connection, exchange: Exchange, problem: str) -> None:
        super()._ended(connection, exchange, problem)
        if not self.flow.kept:
            connection.close()
        self._answer_over()

    def _answer_over(self) -> None:
        self._open_answers -= 1
        if not self._open_answers:
            self._all_ended.set()
