"""Bench: starts engines and gateways, measures workloads in interleaved rounds, and stops
everything.

Groups, one after the other: workloads at full speed, then those with paced streams, for an engine
has one pace; then the same in front of a vendor. Inside a group all gateways run at once and idle except for the one that is
measured, and every workload goes round all gateways before the next one: A B A B, in an order that
turns from round to round. A round may have several laps, between which the other rounds have
theirs: where a machine is slow for minutes, all rounds have a part of that. Whatever happens, all
that was started is stopped.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from smg_chaos.bench.children import BenchError, Child
from smg_chaos.bench.figures.engine_alone import first_tokens
from smg_chaos.bench.figures.measurement import Lengths, measure
from smg_chaos.bench.figures.progress import Progress
from smg_chaos.bench.figures.rows import Row
from smg_chaos.bench.gateways import engines, gateways
from smg_chaos.bench.gateways.engines import EngineChoice
from smg_chaos.bench.gateways.gateways import Gateway, Wanted
from smg_chaos.bench.gateways.pinning import Pins, pin
from smg_chaos.bench.gateways.tool_engines import Beside, start_beside, start_seer_beside
from smg_chaos.bench.load.corpus import standard_library
from smg_chaos.bench.load.remote_client import Clients
from smg_chaos.bench.load.script import Script, VendorScript, long_sizes
from smg_chaos.bench.load.tools.tool_workloads import first_runs
from smg_chaos.bench.load.workload import Behind, Load, Workload
from smg_chaos.bench.load.workloads import BURST_TOKENS, WORKLOADS
from smg_chaos.engine.scripts.bundle import Bundle
from smg_node.engines.engine import Contract

_FIRST_RUN: Final = Lengths(warmup_s=0.5, duration_s=1.0)
_FIRST_ROUND: Final = 900
_FIRST_WORKLOADS: Final[Mapping[Behind, Sequence[str]]] = {
    "engine": ("short", "stream1"),
    "halves": ("short", "stream1"),
    "vendor": tuple(
        f"vendor-{way}{form}" for way in ("native", "translated") for form in ("", "-stream1")
    ),
}


_GROUPS: Final[Sequence[tuple[Behind, bool]]] = (
    ("engine", False),
    ("engine", True),
    ("halves", False),
    ("pair", True),
    ("vendor", False),
    ("vendor", True),
    ("tools", True),
)


@dataclass(frozen=True, slots=True)
class Plan:
    """Plan of a benchmark. With `target` that gateway is loaded and nothing is started."""

    workloads: Sequence[Workload]
    gateways: Sequence[Wanted]
    folder: Path
    peers: Path
    bundle: Bundle
    engine: EngineChoice = field(default_factory=EngineChoice)
    rounds: int = 3
    laps: int = 1
    """Of every round; what counts of a workload is divided among them."""
    lengths: Lengths = field(default_factory=Lengths)
    load: Load = field(default_factory=Load)
    client_processes: int = 1
    target: Gateway | None = None
    first_run: bool = True
    """Whether every gateway is loaded a little with short chats before anything counts."""
    pins: Pins = field(default_factory=dict)
    """Which cores who may use."""


@dataclass(slots=True)
class Bench:
    """Runs a plan; `rows` has what was measured so far, also after an interruption."""

    plan: Plan
    progress: Progress
    clock_s: Callable[[], float]
    on_row: Callable[[Row], None] = lambda _row: None
    """Called with every row as soon as it is measured."""
    rows: list[Row] = field(default_factory=list)
    _clients: Clients = field(default_factory=Clients)
    _started: list[Child] = field(default_factory=list)
    _tokens_max: int = 0
    _script: Script | VendorScript | None = None
    """What the engine of the group says, or its vendor."""
    _engine_port: int | None = None
    """Where the engine of gateways that speak gRPC listens."""
    _load: Load = field(default_factory=Load)

    def measurements(self) -> int:
        """Return how many rows there will be."""
        gateways_count = 1 if self.plan.target else len(self.plan.gateways)
        return len(self.plan.workloads) * self.plan.rounds * self.plan.laps * gateways_count

    def kill_rest(self) -> None:
        """End what `run` started and was interrupted before it had stopped."""
        for child in (*self._started, *self._clients.children):
            if not child.died():
                child.kill()

    async def run(self) -> None:
        """Measure everything; BenchError if something cannot be started or dies."""
        plan = self.plan
        held_s = max(plan.lengths.held_s(one) for one in plan.workloads)
        step_ms = min(one.step_ms for one in plan.workloads)
        self._load = plan.load
        self._tokens_max = max(BURST_TOKENS, int(held_s * 1000 / step_ms)) + 1
        if any(one.name in ("cycled", "tail") for one in plan.workloads):
            self.progress.doing("cutting documents to 8,000 tokens")
            sizes = await asyncio.to_thread(long_sizes, plan.bundle, standard_library())
            self._load = replace(self._load, long_sizes=sizes)
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._clients.end)
            await self._clients.start(plan.client_processes, plan.folder)
            for pid in self._clients.pids:
                pin(pid, "client", plan.pins)
            if plan.target is not None:
                await self._rounds(plan.workloads, [plan.target])
                return
            for behind, paced in _GROUPS:
                group = [
                    one for one in plan.workloads if (one.behind, one.paced) == (behind, paced)
                ]
                if group:
                    await self._group(group, behind, group[0].step_ms if paced else 0)

    async def _group(self, workloads: Sequence[Workload], behind: Behind, step_ms: int) -> None:
        async with AsyncExitStack() as stack:
            before = "" if behind == "engine" else f"{behind}-"
            folder = self.plan.folder / (before + ("paced" if step_ms else "fast"))
            folder.mkdir(parents=True, exist_ok=True)
            self.progress.doing(f"starting engines and gateways ({folder.name})")
            running = await self._start(stack, folder, behind, step_ms)
            await self._first_run(running, behind, step_ms)
            await self._rounds(workloads, running)

    def _upstream(self, name: str, folder: Path, behind: Behind, step_ms: int) -> tuple[Child, int]:
        """Start what gateways stand in front of; return it and its port."""
        plan = self.plan
        if name == "vendor":
            said = self._script = VendorScript(tokens_max=self._tokens_max)
            return engines.start_vendor(said, folder, step_ms=step_ms)
        script = self._script
        if not isinstance(script, Script):
            script = self._script = Script(plan.bundle, tokens_max=self._tokens_max)
        if name in ("grpc", "tools", "pair"):
            return engines.start_grpc(
                replace(plan.engine, halves=behind == "halves"), script, folder, step_ms=step_ms
            )
        return engines.start_http(script, folder, step_ms=step_ms)

    async def _start(
        self, stack: AsyncExitStack, folder: Path, behind: Behind, step_ms: int
    ) -> list[Gateway]:
        """Start engines and gateways; the stack stops them, gateways first and all at once."""
        plan = self.plan
        upstreams: dict[str, tuple[Child, int]] = {}
        names = [_upstream_of(wanted, behind) for wanted in plan.gateways]
        for name in dict.fromkeys(names):
            started = self._upstream(name, folder, behind, step_ms)
            self._started.append(started[0])
            stack.push_async_callback(started[0].stop)
            pin(started[0].pid, "engine", plan.pins)
            await engines.listening(started[0], self.clock_s)
            upstreams[name] = started
            if name == "grpc":
                self._engine_port = started[1]
        beside = await self._beside(stack, folder, behind)
        running: list[Gateway] = []
        stack.push_async_callback(_stop_all, running)
        for wanted, name in zip(plan.gateways, names, strict=True):
            child, port = upstreams[name]
            gateway = gateways.start(
                wanted, child, port, folder, plan.peers, upstream=name, beside=beside
            )
            running.append(gateway)
            if gateway.child is not None:
                self._started.append(gateway.child)
                pin(gateway.child.pid, "gateway", plan.pins)
        for place, wanted in enumerate(plan.gateways):
            running[place] = await gateways.equipped(running[place], wanted.kind, self.clock_s)
            await gateways.ready(running[place], wanted.kind.ready_s, self.clock_s)
        return running

    async def _beside(self, stack: AsyncExitStack, folder: Path, behind: Behind) -> Beside | None:
        """Start what stands beside the engine; the stack stops it. None where nothing does."""

        def started(child: Child) -> None:
            self._started.append(child)
            stack.push_async_callback(child.stop)
            pin(child.pid, "engine", self.plan.pins)

        if behind == "pair":
            assert isinstance(self._script, Script), "the engine beside it has one"
            return await start_seer_beside(
                self.plan.engine, self._script, folder, self.clock_s, started=started
            )
        if behind != "tools":
            return None
        size = self.plan.load.tools.result_bytes
        return await start_beside(
            self.plan.engine, folder, self.clock_s, result_bytes=size, started=started
        )

    async def _first_run(self, running: Sequence[Gateway], behind: Behind, step_ms: int) -> None:
        """Load every gateway once before anything counts: it imports modules and fills pools and
        caches.
        """
        workloads: Sequence[Workload] = ()
        if behind == "tools":
            workloads = [first_runs(self._load.tools)]
        elif not step_ms:
            workloads = [WORKLOADS[name] for name in _FIRST_WORKLOADS[behind]]
        if not self.plan.first_run:
            return
        for gateway in running:
            for workload in workloads:
                load = replace(self._load, round=_FIRST_ROUND)
                row = await self._measure(workload, gateway, load, _FIRST_RUN)
                if row.errors and not row.requests:
                    problem = next(iter(row.problems), "nobody knows why")
                    raise BenchError(f"{gateway.label} cannot answer {workload.name}: {problem}")

    async def _rounds(self, workloads: Sequence[Workload], running: Sequence[Gateway]) -> None:
        rounds, laps = self.plan.rounds, self.plan.laps
        lengths = self.plan.lengths.of_one(laps)
        for number in range(rounds * laps):
            lap, of_round = divmod(number, rounds)
            # Some texts cost more than others, and recur: every round has its part of them.
            texts = lap * rounds + (of_round + lap) % rounds
            for workload in workloads:
                if workload.added and self._engine_port is not None:
                    row = await self._alone(workload, self._engine_port, texts, lengths)
                    self._keep(row, of_round, lap)
                for gateway in turned(running, of_round + lap):
                    self.progress.measuring(workload, gateway.label, number, rounds * laps)
                    load = replace(self._load, round=texts)
                    row = await self._measure(workload, gateway, load, lengths)
                    self._keep(row, of_round, lap)
                    self.progress.measured(row, workload)

    def _keep(self, row: Row, number: int, lap: int) -> None:
        row.round, row.lap = number, lap
        self.rows.append(row)
        self.on_row(row)

    async def _alone(self, workload: Workload, port: int, number: int, lengths: Lengths) -> Row:
        plan = self.plan
        return await first_tokens(
            workload,
            Contract(plan.engine.contract),
            port,
            plan.bundle,
            number=number,
            warmup_s=min(0.5, lengths.warmup_s),
            duration_s=lengths.duration_s / 2,
            clock_s=self.clock_s,
        )

    async def _measure(
        self, workload: Workload, gateway: Gateway, load: Load, lengths: Lengths
    ) -> Row:
        load = replace(load, held_s=lengths.held_s(workload))
        row = await measure(
            workload,
            gateway,
            self._clients,
            load=load,
            lengths=lengths,
            script=self._script,
            clock_s=self.clock_s,
        )
        for child in (gateway.child, gateway.engine, *gateway.others):
            if child is not None and (said := child.died()):
                raise BenchError(said)
        return row


def _upstream_of(wanted: Wanted, behind: Behind) -> str:
    return behind if behind in ("pair", "vendor", "tools") else wanted.kind.upstream


def turned(running: Sequence[Gateway], number: int) -> Sequence[Gateway]:
    """Return the gateways in the order of a round: each is first as often as the others."""
    turn = number % len(running)
    return [*running[turn:], *running[:turn]]


async def _stop_all(running: Sequence[Gateway]) -> None:
    children = [one.child for one in running if one.child is not None]
    for child in children:
        child.terminate()
    for child in children:
        await child.stop()
