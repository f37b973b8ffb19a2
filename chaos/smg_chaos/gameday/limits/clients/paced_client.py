"""Paced client: sends every node so many requests a second, and writes down the result of each.

Requests are sent when they are due, not when the last answer came, evenly and each at a random
moment of its own slot: a slow or paused cluster is asked as much as a fast one, and no window is
offered more than another.
"""

import asyncio
import os
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Final

import msgspec

from smg_chaos.bench.figures.process_accounting import cpu_s
from smg_chaos.gameday.limits.clients.client_connection import Caller, Heard
from smg_chaos.gameday.limits.clients.client_messages import NUMBERS, Asks, Command, Plan, Reply
from smg_chaos.gameday.limits.clients.trial_records import UNKNOWN, Answer, write_answers
from smg_node.core.ports import Clock

_OPEN_MAX: Final = 1_500
"""Requests that may be open at a node; what is due beyond that is held back, and counted."""
_LOOK_S: Final = 0.5
_LATE_KEPT: Final = 200_000
_REFUSED: Final = 429
_AFTER_S: Final = 0.002
"""So much later than told a client comes back: timers may fire a millisecond early."""


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A request: at which node, until when it is repeated when refused, and which one it repeats.

    `crowd` counts dismissals: it is not repeated after one.
    """

    node: int
    until_us: int = 0
    crowd: int = 0
    follows: int = UNKNOWN


class Client:
    """Sends requests, and keeps the answers."""

    def __init__(self, plan: Plan, clock: Clock) -> None:
        self._plan = plan
        self._rng = Random(plan.seed)
        self._clock = clock
        self._base_us = clock.now_ms() * 1000 - round(clock.monotonic_s() * 1e6)
        self._rates = [0.0 for _ in plan.nodes]
        self._changed = [asyncio.Event() for _ in plan.nodes]
        self._idle: list[list[Caller]] = [[] for _ in plan.nodes]
        self._open: list[dict[Caller, float]] = [{} for _ in plan.nodes]
        self._coming = [0 for _ in plan.nodes]
        """Requests of a burst that are not due yet, and those for which a connection is being made."""
        self._stirred = asyncio.Event()
        self._returning: set[asyncio.Task[None]] = set()
        """Refused requests that wait until they may come again."""
        self._crowd = 0
        self._answers: list[Answer] = []
        self._late_s: list[float] = []
        self._sent = 0
        self._held_back = 0
        self._patience_s = 0.0
        self._fields = b""
        self._use(Asks())

    async def run(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Execute commands, line by line, until the connection closes."""
        async with asyncio.TaskGroup() as group:
            lanes = [
                group.create_task(self._lane(node, group)) for node in range(len(self._plan.nodes))
            ]
            lanes.append(group.create_task(self._look()))
            while line := await reader.readline():
                command = msgspec.json.decode(line, type=Command)
                await self._obey(command, group)
                writer.write(msgspec.json.encode(self._reply(command.do)) + b"\n")
                await writer.drain()
            for task in (*lanes, *self._returning):
                task.cancel()
            self._patience_s = 0.0
            self._give_up("not answered before the end")
            for idle in self._idle:
                for caller in idle:
                    caller.give_up("the end")

    async def _obey(self, command: Command, group: asyncio.TaskGroup) -> None:
        if command.do == "rate":
            self._use(command.asks)
            for node, rate in enumerate(command.per_s):
                self._rates[node] = rate
                self._changed[node].set()
        elif command.do == "burst":
            self._use(command.asks)
            for node, count in enumerate(command.counts):
                self._coming[node] += count
                wanted = _Wanted(node, command.until_us, self._crowd)
                group.create_task(self._burst(wanted, count, command.over_s, group))
        elif command.do == "dismiss":
            self._crowd += 1
            for task in self._returning:
                task.cancel()
        elif command.do == "connect":
            async with asyncio.TaskGroup() as connecting:
                for node, count in enumerate(command.counts):
                    for _ in range(count):
                        connecting.create_task(self._connect_ahead(node))
        elif command.do == "quiet":
            await self._quiet()
        else:
            write_answers(Path(self._plan.record), self._answers)

    def _use(self, asks: Asks | None) -> None:
        if asks is None:
            return
        question = {"role": "user", "content": asks.question}
        asked = msgspec.json.encode({"model": asks.model, "messages": [question]})
        self._fields = asked[:-1] + b"," + asks.fields.encode() + b',"seed":'
        self._patience_s = asks.patience_s

    async def _quiet(self) -> None:
        while any(self._open) or any(self._coming):
            self._stirred.clear()
            await self._stirred.wait()

    def _reply(self, did: str) -> Reply:
        late = sorted(self._late_s)
        p99 = late[int(0.99 * len(late))] if late else 0.0
        return Reply(did, self._sent, self._held_back, p99, cpu_s([os.getpid()]))

    # ── When ────────────────────────────────────────────────────────────────

    async def _lane(self, node: int, group: asyncio.TaskGroup) -> None:
        """Send one node its requests whenever one is due."""
        changed = self._changed[node]
        while True:
            changed.clear()
            rate = self._rates[node]
            if rate <= 0:
                await changed.wait()
                continue
            begun_s, slot = self._clock.monotonic_s(), 0
            while not changed.is_set():
                due_s = begun_s + (slot + self._rng.random()) / rate
                await asyncio.sleep(max(0.0, due_s - self._clock.monotonic_s()))
                if not changed.is_set():
                    self._due(_Wanted(node), due_s, group)
                slot += 1

    async def _burst(
        self, wanted: _Wanted, count: int, over_s: float, group: asyncio.TaskGroup
    ) -> None:
        begun_s = self._clock.monotonic_s()
        for number in range(count):
            due_s = begun_s + over_s * number / count
            if over_s:
                await asyncio.sleep(max(0.0, due_s - self._clock.monotonic_s()))
            self._coming[wanted.node] -= 1
            self._due(wanted, due_s, group)
        self._stirred.set()

    def _come_again(self, wanted: _Wanted, answer: Answer, group: asyncio.TaskGroup) -> None:
        """Repeat a refused request at the moment its answer says, if that is before its end and
        nobody has dismissed it.
        """
        is_over = answer.got_us + answer.retry_ms * 1000 >= wanted.until_us
        if is_over or wanted.crowd != self._crowd:
            return
        due_s = self._clock.monotonic_s() + answer.retry_ms / 1000 + _AFTER_S
        again = replace(wanted, follows=answer.serial)

        async def come() -> None:
            await asyncio.sleep(max(0.0, due_s - self._clock.monotonic_s()))
            self._due(again, due_s, group)

        task = group.create_task(come())
        self._returning.add(task)
        task.add_done_callback(self._returning.discard)

    async def _look(self) -> None:
        """Close requests without an answer in time."""
        while True:
            await asyncio.sleep(_LOOK_S)
            self._give_up("no answer in time")

    def _give_up(self, why: str) -> None:
        before_s = self._clock.monotonic_s() - self._patience_s
        for opened in self._open:
            for caller in [one for one, since_s in opened.items() if since_s <= before_s]:
                caller.give_up(why)

    # ── What ────────────────────────────────────────────────────────────────

    def _due(self, wanted: _Wanted, due_s: float, group: asyncio.TaskGroup) -> None:
        node = wanted.node
        if len(self._late_s) < _LATE_KEPT:
            self._late_s.append(self._clock.monotonic_s() - due_s)
        if len(self._open[node]) + self._coming[node] >= _OPEN_MAX:
            self._held_back += 1
            return
        self._sent += 1
        serial = self._plan.number * NUMBERS + self._sent
        idle = self._idle[node]
        while idle:
            caller = idle.pop()
            if caller.is_open:
                self._ask(caller, wanted, serial, group)
                return
        self._coming[node] += 1
        group.create_task(self._connect_and_ask(wanted, serial, group))

    async def _connect(self, node: int) -> Caller:
        """Return a new connection to a node; OSError, TimeoutError if there is none in time."""
        where = self._plan.nodes[node], self._plan.node_port
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(self._patience_s):
            _, caller = await loop.create_connection(lambda: Caller(self._now_us), *where)
        return caller

    async def _connect_ahead(self, node: int) -> None:
        """Open a connection for later; a node that takes none is found out by the request."""
        with suppress(OSError, TimeoutError):
            self._idle[node].append(await self._connect(node))

    async def _connect_and_ask(
        self, wanted: _Wanted, serial: int, group: asyncio.TaskGroup
    ) -> None:
        begun_us, node = self._now_us(), wanted.node
        try:
            caller = await self._connect(node)
        except (OSError, TimeoutError) as error:
            why = f"no connection: {type(error).__name__}"
            self._answers.append(Answer(serial, node, begun_us, self._now_us(), 0, why))
        else:
            self._ask(caller, wanted, serial, group)
        finally:
            self._coming[node] -= 1
            self._stirred.set()

    def _ask(self, caller: Caller, wanted: _Wanted, serial: int, group: asyncio.TaskGroup) -> None:
        node = wanted.node
        body = self._fields + str(serial).encode() + b"}"
        host, length = self._plan.nodes[node].encode(), str(len(body)).encode()
        head = (
            b"POST /v1/chat/completions HTTP/1.1\r\nhost: %s\r\ncontent-type: application/json\r\n"
            b"content-length: %s\r\n\r\n" % (host, length)
        )
        self._open[node][caller] = self._clock.monotonic_s()
        caller.ask(head + body, partial(self._heard, wanted, serial, self._now_us(), group))

    def _heard(
        self,
        wanted: _Wanted,
        serial: int,
        sent_us: int,
        group: asyncio.TaskGroup,
        caller: Caller,
        heard: Heard,
    ) -> None:
        node = wanted.node
        del self._open[node][caller]
        if caller.is_open:
            self._idle[node].append(caller)
        self._stirred.set()
        answer = self._answer(wanted, serial, sent_us, heard)
        self._answers.append(answer)
        if answer.status == _REFUSED and answer.retry_ms != UNKNOWN:
            self._come_again(wanted, answer, group)

    def _answer(self, wanted: _Wanted, serial: int, sent_us: int, heard: Heard) -> Answer:
        limit, remaining, reset_ms = heard.limit()
        prompt, said = heard.tokens()
        retry_ms, rounded_ms = heard.retry()
        return Answer(
            serial,
            wanted.node,
            sent_us,
            self._now_us(),
            heard.status,
            heard.why,
            limit,
            remaining,
            reset_ms,
            heard.headers.get("x-smg-limit-state", ""),
            prompt,
            said,
            heard.finish(),
            retry_ms,
            rounded_ms,
            heard.reason(),
            wanted.follows,
        )

    def _now_us(self) -> int:
        """Return the wall clock's time, as it was at the start and counted on from there."""
        return self._base_us + round(self._clock.monotonic_s() * 1e6)
