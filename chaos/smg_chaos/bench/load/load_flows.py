"""Load flows on a gateway: connections that ask in a closed loop, at a rate, or once for a long
stream.
"""

import asyncio
import random
from collections import deque
from collections.abc import Coroutine, Sequence
from time import perf_counter
from typing import Any, Final

from smg_chaos.bench.load.answer_check import Judge
from smg_chaos.bench.load.answer_forms import WrongAnswerError
from smg_chaos.bench.load.connection import Connection, Exchange
from smg_chaos.bench.load.job import Flow, Job, Tally
from smg_chaos.bench.load.requests import Requests
from smg_chaos.bench.load.tools.tool_runs import RunJudge

_SAMPLES_MAX: Final = 20_000
_PROBLEMS_MAX: Final = 3
_WAITING_MAX: Final = 10_000
_RETRY_S: Final = 0.2


class Samples:
    """Values of which a uniform random sample is kept when there are too many."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._seen = 0
        self.kept: list[float] = []

    def add(self, value: float) -> None:
        """Add a value."""
        self._seen += 1
        if len(self.kept) < _SAMPLES_MAX:
            self.kept.append(value)
        else:
            place = int(self._rng.random() * self._seen)
            if place < _SAMPLES_MAX:
                self.kept[place] = value


def judge_of(flow: Flow) -> Judge | RunJudge:
    """Return the judge of a flow's answers."""
    if flow.prompt.kind == "tool run":
        return RunJudge(text=flow.text, result_bytes=flow.prompt.sizes[0])
    return Judge(tokens=flow.tokens, stream=flow.stream, text=flow.text, api=flow.api)


class FlowRun:
    """One running flow. It owns its connections; the tasks belong to the job's group."""

    CONNECT_S: Final = 10.0
    """How long making a connection may take."""

    def __init__(self, job: Job, flow: Flow, requests: Requests, *, seed: int) -> None:
        self.flow = flow
        self._job = job
        self._requests = requests
        self._rng = random.Random(seed)
        self._judge = judge_of(flow)
        self._connections: dict[int, Connection] = {}
        self._left: dict[int, asyncio.Event] = {}
        self._idle: list[Connection] = []
        self._waiting: deque[float] = deque()
        self._busy = 0
        self._quiet = asyncio.Event()
        self._stopping = False
        self._asked = 0
        self._recording = self._whole = flow.shape == "held" or flow.most > 0
        self._seen_gone = 0
        self._seen_at_open = 0
        self._tally = Tally()
        self._between = False
        """Whether it is between the borders."""
        self._ttft, self._tpot, self._latency, self._gaps = (Samples(self._rng) for _ in range(4))

    def work(self) -> Sequence[Coroutine[Any, Any, None]]:
        """Return the coroutines that make the load: each is to be a task until the flow ends."""
        lanes = [self.lane(number) for number in range(self.flow.connections)]
        return [*lanes, self.arrivals()] if self.flow.shape == "open" else lanes

    # ── Borders ──────────────────────────────────────────────────────────────

    def open(self) -> None:
        """Begin counting."""
        self._recording = self._between = True
        self._seen_at_open = self._seen()

    def close(self) -> Tally:
        """Stop counting; return what came since `open`."""
        held = self.flow.shape in ("held", "flash")
        self._recording, self._between = self._whole, False
        tokens = self._tally.requests * self.flow.tokens
        self._tally.tokens = self._seen() - self._seen_at_open if held else tokens
        return self.tally()

    def tally(self) -> Tally:
        """Return what was counted, and the errors of the whole job."""
        tally = self._tally
        tally.careful = self._judge.careful
        tally.ttft, tally.tpot, tally.latency, tally.gaps = (
            sorted(samples.kept) for samples in (self._ttft, self._tpot, self._latency, self._gaps)
        )
        return tally

    def _seen(self) -> int:
        return self._seen_gone + sum(one.seen for one in self._connections.values())

    # ── Connections ──────────────────────────────────────────────────────────

    async def lane(self, number: int) -> None:
        """Keep one connection open and send requests on it until the flow ends."""
        await self._rest(self._job.spread_s * number / self.flow.connections)
        loop = asyncio.get_running_loop()
        while not self._stopping:
            self._left[number] = asyncio.Event()
            try:
                async with asyncio.timeout(self.CONNECT_S):
                    _, connection = await loop.create_connection(
                        lambda: self._protocol(number), self._job.host, self._job.port
                    )
            except OSError as error:
                self._wrong(f"no connection: {str(error) or type(error).__name__}")
                await self._rest(_RETRY_S)
                continue
            if not connection.is_open:
                self._wrong("a connection was closed as soon as it was made")
                await self._rest(_RETRY_S)
                continue
            self._connections[number] = connection
            if self._stopping:
                connection.close()
            else:
                self._free(connection)
            await self._left[number].wait()
            if self.flow.shape == "held":
                return

    def _protocol(self, number: int) -> Connection:
        gap = self._paused if self.flow.gaps else None
        return Connection(number, ended=self._ended, lost=self._lost, api=self.flow.api, gap=gap)

    async def _rest(self, seconds: float) -> None:
        """Sleep, in short naps while the flow runs."""
        while seconds > 0 and not self._stopping:
            await asyncio.sleep(min(seconds, 0.5))
            seconds -= 0.5

    def _lost(self, connection: Connection) -> None:
        self._connections.pop(connection.lane, None)
        self._seen_gone += connection.seen
        if connection in self._idle:
            self._idle.remove(connection)
        self._left[connection.lane].set()

    async def arrivals(self) -> None:
        """Send requests of an open loop, at random times, until the flow ends."""
        due_s = perf_counter()
        while not self._stopping:
            due_s += self._rng.expovariate(self.flow.rate_per_s)
            await self._rest(due_s - perf_counter())
            if len(self._waiting) >= _WAITING_MAX:
                self._tally.unsent += 1
            else:
                self._waiting.append(due_s)
            self._serve()

    def _serve(self) -> None:
        while self._waiting and self._idle:
            self._ask(self._idle.pop(), self._waiting.popleft())

    def _free(self, connection: Connection) -> None:
        """Give a free connection the next waiting request."""
        if self.flow.shape == "open":
            self._idle.append(connection)
            self._serve()
        elif not self.flow.most or self._asked < self.flow.most:
            self._ask(connection, perf_counter())

    def _ask(self, connection: Connection, due_s: float) -> None:
        self._busy += 1
        self._asked += 1
        connection.ask(self._requests.next(connection.lane), due_s)

    # ── Answers ──────────────────────────────────────────────────────────────

    def _ended(self, connection: Connection, exchange: Exchange, problem: str) -> None:
        self._busy -= 1
        if problem and not self._stopping:
            self._wrong(problem)
        elif not problem:
            self._count(exchange)
        if self._stopping:
            connection.close()
            if not self._busy:
                self._quiet.set()
        elif self.flow.shape == "held":
            connection.close()
        elif connection.is_open:
            self._free(connection)

    def _paused(self, gap_s: float) -> None:
        if self._between:
            self._gaps.add(gap_s)

    def _count(self, exchange: Exchange) -> None:
        if exchange.status != 200:
            self._wrong(f"status {exchange.status}: {exchange.body[:300]!r}")
            return
        try:
            prompt = self._judge.prompt_tokens(exchange.body, chunked=exchange.chunked)
        except WrongAnswerError as error:
            self._wrong(str(error))
            return
        if not self._counts(exchange):
            return
        tally = self._tally
        tally.requests += 1
        tally.prompt_tokens += prompt
        self._latency.add(exchange.ended_s - exchange.asked_s)
        if self.flow.stream and exchange.tokens:
            self._ttft.add(exchange.first_s - exchange.asked_s)
            if exchange.tokens > 1:
                tally.gap = max(tally.gap, exchange.gap_s)
                self._tpot.add((exchange.last_s - exchange.first_s) / (exchange.tokens - 1))

    def _counts(self, _exchange: Exchange) -> bool:
        """Return whether an answer that has ended is one of those that count."""
        return self._recording

    def _wrong(self, problem: str) -> None:
        self._tally.errors += 1
        if len(self._tally.problems) < _PROBLEMS_MAX:
            self._tally.problems.append(problem)

    # ── The end ──────────────────────────────────────────────────────────────

    async def stop(self, wait_s: float) -> None:
        """Send nothing more, let open answers end for so long, and close every connection."""
        self._stopping = True
        if self._busy:
            try:
                async with asyncio.timeout(wait_s):
                    await self._quiet.wait()
            except TimeoutError:
                self._wrong(f"{self._busy} answers did not end within {wait_s:.0f} s")
        for connection in list(self._connections.values()):
            connection.close()
