"""Host of many simulated engines in one process, each on its own port."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import IO, Any, Protocol

import msgspec
import uvloop

from smg_chaos.engine.cache.shared_store import FolderStore, MemoryStore, Store
from smg_chaos.engine.plans import Plan
from smg_chaos.engine.settings import EngineSettings
from smg_chaos.engine.simulator.call_ledger import Account
from smg_chaos.engine.simulator.engine import Engine
from smg_node.core.ports import Clock


class Face(Protocol):
    """A server in front of one engine."""

    engine: Engine

    async def listen(self, host: str, port: int) -> int:
        """Listen; return the port."""
        ...

    async def close(self) -> None:
        """Close the port and every connection."""
        ...


class Host:
    """Starts the workers of a plan; ends on request, or when the last of them has died.

    `exit_now` ends the process on the spot, as a real engine's death does; without it a death only
    ends `run`.
    """

    def __init__(
        self,
        plan: Plan,
        clock: Clock,
        say: Callable[[str], None],
        *,
        exit_now: Callable[[int], object] | None = None,
    ) -> None:
        self._plan = plan
        self._clock = clock
        self._say = say
        self._exit_now = exit_now
        self._faces: list[Face] = []
        self._buried: list[Face] = []
        self._stirred = asyncio.Event()
        self._told_to_end = False
        self._book: IO[str] | None = None
        self._store: Store = FolderStore(plan.kv_store) if plan.kv_store else MemoryStore()
        self.code = 0

    @property
    def engines(self) -> list[Engine]:
        """Return the engines, in the order of their workers."""
        return [face.engine for face in self._faces]

    def end(self) -> None:
        """Let `run` return."""
        self._told_to_end = True
        self._stirred.set()

    async def run(self) -> int:
        """Serve until `end` is called (0), or until every worker died (the last one's exit
        code).
        """
        try:
            await self.start()
            while not self._told_to_end and len(self._buried) < self._plan.workers:
                await self._stirred.wait()
                self._stirred.clear()
                for face in self._faces:
                    if face.engine.died is not None and face not in self._buried:
                        self._buried.append(face)
                        await face.close()
        finally:
            await self.stop()
        return self.code

    async def start(self) -> list[int]:
        """Start every worker, print its line, and return the ports."""
        plan = self._plan
        ports = []
        for number in range(1, plan.workers + 1):
            face = self._face(self._engine(number))
            self._faces.append(face)
            port = await face.listen(plan.host, plan.port and plan.port + number - 1)
            contract = "openai" if plan.server == "openai" else plan.settings.contract
            pair = _pair(face.engine)
            self._say(
                f"listening on {plan.host}:{port} contract={contract} "
                f"model={plan.settings.model}{pair}"
            )
            ports.append(port)
        return ports

    def _engine(self, number: int) -> Engine:
        plan, now_s = self._plan, self._clock.monotonic_s()
        faults = [fault for fault in plan.faults if fault.worker in (None, number)]
        engine = Engine(
            _numbered(plan.settings, number),
            plan.bundle,
            plan.script,
            faults,
            now_s=now_s,
            epoch_s=self._clock.now_ms() / 1000,
            on_death=self._died,
            account=self._account(number),
        )
        engine.pairs.store = self._store
        return engine

    def _account(self, number: int) -> Account | None:
        if self._plan.account is None:
            return None
        if self._book is None:
            # Line by line: whoever reads it while the engine runs, or after it was killed, misses nothing.
            self._book = self._plan.account.open("w", buffering=1, encoding="utf-8")
        return Account(self._book.write, number)

    def _face(self, engine: Engine) -> Face:
        if self._plan.server == "h2":
            from smg_chaos.engine.servers.h2_server import H2Face

            return H2Face(engine, self._clock)
        if self._plan.server == "openai":
            from smg_chaos.engine.servers.http_server import HttpFace

            return HttpFace(engine, self._clock, api_key=self._plan.api_key)
        from smg_chaos.engine.servers.call_gate import Door
        from smg_chaos.engine.servers.grpcio_server import GrpcFace

        door = Door(self._plan.api_key, self._say if self._plan.tell_calls else None)
        return GrpcFace(engine, self._clock, door)

    def _died(self, code: int) -> None:
        self.code = code
        self._stirred.set()
        if self._exit_now is not None and all(engine.died is not None for engine in self.engines):
            self._write_report()
            self._exit_now(code)

    async def stop(self) -> None:
        """Close everything and write the report."""
        for face in self._faces:
            await face.close()
        self._write_report()
        if self._book is not None:
            self._book.close()
            self._book = None

    def _write_report(self) -> None:
        if self._plan.report is not None:
            tallies = [_told(face.engine) for face in self._faces]
            self._plan.report.write_bytes(msgspec.json.encode(tallies))


def _numbered(settings: EngineSettings, number: int) -> EngineSettings:
    """Return the settings of the `number`-th worker, which has a bootstrap port and a name of its own."""
    first, name = settings.bootstrap_port, settings.engine_id
    return replace(
        settings,
        bootstrap_port=first and first + number - 1,
        engine_id=f"{name}-{number}" if name and number > 1 else name,
    )


def _pair(engine: Engine) -> str:
    """Return the part of the printed line about an engine that works in pairs."""
    settings = engine.settings
    if settings.role == "regular" and settings.kv_connector == "contract":
        return ""
    port = f" bootstrap={engine.pairs.where[1]}" if engine.pairs.serves else ""
    return f" role={settings.role}{port}"


def _told(engine: Engine) -> dict[str, Any]:
    """Return an engine's counters, its own and those of the prompts it was given."""
    prompts = {
        "prompt_tokens": sum(meter.prompt_tokens for meter in engine.meters),
        "cached_tokens": sum(meter.cached_tokens for meter in engine.meters),
    }
    return {**asdict(engine.tally), **prompts}


def serve(plan: Plan, clock: Clock, say: Callable[[str], None]) -> int:
    """Run a plan on a loop of its own until SIGTERM or SIGINT; return the exit code."""

    async def run() -> int:
        host = Host(plan, clock, say, exit_now=os._exit)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, host.end)
        if plan.until_input_ends:
            loop.add_reader(sys.stdin, _read_on, loop, host)
        return await host.run()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(run())


def _read_on(loop: asyncio.AbstractEventLoop, host: Host) -> None:
    """Discard stdin; end the process at its end."""
    if not os.read(sys.stdin.fileno(), 4096):
        loop.remove_reader(sys.stdin)
        host.end()
