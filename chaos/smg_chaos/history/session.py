"""Session of `smg-chaos history`: starts servers, nodes and an engine, measures all cases in turn,
stops everything.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from smg_chaos.bench.figures import machine
from smg_chaos.bench.gateways.engines import listening
from smg_chaos.bench.gateways.gateways import Gateway
from smg_chaos.history import commits, node, servers
from smg_chaos.history import measurement as cells
from smg_chaos.history import store_calls as calls
from smg_chaos.history.measurement import Case, Cell
from smg_chaos.history.options import STORES, Options
from smg_chaos.history.response_clients import Callers
from smg_chaos.history.servers import StoreServer
from smg_chaos.history.table import told
from smg_node.core.ports import Clock
from smg_node.system_clock import SystemClock

_SERVED: Final = ("postgresql", "redis")
_WARMUP_S: Final = 0.7


class Session:
    """Measures what the options ask for; `figures` has the results so far."""

    def __init__(self, options: Options, folder: Path, say: Callable[[str], None]) -> None:
        unknown = [one for one in options.stores if one not in STORES]
        if unknown:
            raise ValueError(f"no store is called {unknown[0]!r}; there are {', '.join(STORES)}")
        self._options = options
        self._folder = folder
        self._say = say
        self._clock: Clock = SystemClock()
        self.figures: dict[str, Any] = {
            "machine": machine.describe(),
            "cells": [],
            "calls": [],
            "rate": None,
        }

    async def run(self) -> None:
        """Measure everything; BenchError if something cannot be started, dies or gives a wrong
        answer.
        """
        options = self._options
        if options.seconds and "sqlite" in options.stores:
            self._say(f"SQLite: {options.turns_per_s:.0f} turns a second, {options.seconds:.0f} s")
            measured = await commits.rate(
                self._folder,
                per_s=options.turns_per_s,
                seconds=options.seconds,
                clock_s=self._clock.monotonic_s,
                now_us=self._now_us,
            )
            self.figures["rate"] = measured.row()
        async with AsyncExitStack() as stack:
            urls: dict[str, StoreServer] = {}
            for store in options.stores:
                urls[store] = await self._server(stack, store)
            for store in options.stores:
                self._say(f"{store}: operation by operation")
                self.figures["calls"] += await calls.calls(
                    store,
                    self._own_url(store) or urls[store].url,
                    clock_s=self._clock.monotonic_s,
                    now_us=self._now_us,
                )
            await self._cells(stack, urls)

    async def _server(self, stack: AsyncExitStack, store: str) -> StoreServer:
        if store not in _SERVED:
            path = self._folder / "node.db"
            return StoreServer("memory:" if store == "memory" else f"sqlite:///{path}")
        given = self._options.postgresql if store == "postgresql" else self._options.redis
        self._say(f"{store}: {'the one that is given' if given else 'starting one'}")
        starting = servers.running(store, given, self._folder, self._clock.monotonic_s)
        return await stack.enter_async_context(starting)

    def _own_url(self, store: str) -> str:
        return f"sqlite:///{self._folder / 'calls.db'}" if store == "sqlite" else ""

    async def _cells(self, stack: AsyncExitStack, urls: dict[str, StoreServer]) -> None:
        """Start an engine and a node for each store; go round all cases."""
        options = self._options
        if not options.rounds or not options.clients:
            return
        engine = node.start_engine(self._folder)
        stack.push_async_callback(engine[0].stop)
        await listening(engine[0], self._clock.monotonic_s)
        nodes: dict[str, Gateway] = {}
        for store in options.stores:
            flags = ("--store", urls[store].url, "--storage.auto-migrate", "on")
            nodes[store] = await node.start_node(
                store, flags, engine, self._folder, self._clock.monotonic_s
            )
            child = nodes[store].child
            assert child is not None
            stack.push_async_callback(child.stop)
        found = [
            Cell(Case(store, streamed, clients))
            for store in options.stores
            for streamed in (False, True)
            for clients in options.clients
        ]
        for number in range(-1, options.rounds):
            for cell in found[number % len(found) :] + found[: number % len(found)]:
                case = cell.case
                async with self._callers(nodes[case.store], case.clients) as callers:
                    await cells.measure(
                        cell if number >= 0 else Cell(case),
                        nodes[case.store],
                        urls[case.store].pid,
                        callers,
                        seconds=options.slice_s if number >= 0 else _WARMUP_S,
                    )
            self._say(f"round {number + 1} of {options.rounds}")
            self.figures["cells"] = [cell.row() for cell in found if cell.stored]

    @asynccontextmanager
    async def _callers(self, gateway: Gateway, count: int) -> AsyncIterator[Callers]:
        callers = Callers(gateway.port, count, self._clock.monotonic_s)
        try:
            await callers.connect()
            yield callers
        finally:
            callers.close()

    def _now_us(self) -> int:
        return self._clock.now_ms() * 1_000


def run(options: Options, say: Callable[[str], None]) -> str:
    """Measure, write the figures, and return the tables; ValueError and BenchError as `Session` has them."""
    clock: Clock = SystemClock()
    stamp = datetime.fromtimestamp(clock.now_ms() / 1000, UTC).strftime("%Y%m%d-%H%M%S")
    folder = (options.out / stamp).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    session = Session(options, folder, say)
    try:
        asyncio.run(session.run())
    finally:
        text = json.dumps(session.figures, indent=1)
        (folder / "figures.json").write_text(text)
        if options.json is not None:
            options.json.write_text(text)
    return told(session.figures)
