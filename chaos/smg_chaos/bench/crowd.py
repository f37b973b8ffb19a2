"""Crowd on one gateway: thousands of slow streams, many fast ones, short probes, and clients with
long prompts.

Two engines stand behind this gateway, one slow and one fast. All streams are open while it is
measured, and each is read to its end and compared with the engine's script: a stream that starves,
or loses one token, is an error. Beside them short probes measure how long a new request waits for
its first token, and a closed loop of 32 KB prompts loads the gateway that all of them share.
"""

import asyncio
import os
import resource
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import msgspec

from smg_chaos.bench.children import BenchError, Child
from smg_chaos.bench.figures.process_accounting import Memory, cpu_s, memory_of, tree_cpu_s, tree_of
from smg_chaos.bench.figures.rows import Times, times_of
from smg_chaos.bench.gateways import engines, gateways
from smg_chaos.bench.gateways.engines import MODEL, EngineChoice
from smg_chaos.bench.gateways.gateways import EQUIPPED, KINDS, OURS, Gateway, Place, Wanted
from smg_chaos.bench.load.job import Flow, Job, Prompt, Tally
from smg_chaos.bench.load.remote_client import Clients
from smg_chaos.bench.load.script import Script
from smg_chaos.engine.scripts.bundle import Bundle

QUIET_MODEL: Final = "quiet"
_ANSWER_S: Final = 30.0
_WARM_S: Final = 3.0
_WARM_FIRST: Final = 5_000_000
"""Prompts of the first run are numbered this much higher: none is asked twice."""
_SETTLE_S: Final = 3.0
_OTHERS_S: Final = 2.0
"""For probes and prompts to begin, and for borders to be told."""
_SLACK_S: Final = 3.0
_SPARE_FILES: Final = 512
_PROBES_PER_S: Final = 20.0
_PROBES_MAX: Final = 64
_READERS: Final = 2
_DOCUMENT_BYTES: Final = 32 * 1024
_BLOCKS_PER_STREAM: Final = 16
_MB: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Wish:
    """Size of the crowd, and the pace of its streams."""

    idle: int = 10_000
    active: int = 1_000
    idle_step_s: float = 10.0
    active_step_s: float = 0.2
    duration_s: float = 20.0
    starts_per_s: float = 500.0
    processes: int = 0
    equipped: bool = True
    """Whether the gateway asks for keys and holds tenants to limits."""
    arguments: tuple[str, ...] = ()

    @property
    def streams(self) -> int:
        """Number of streams that are open at once."""
        return self.idle + self.active

    @property
    def start_s(self) -> float:
        """Over how many seconds streams are opened."""
        return max(1.0, self.streams / self.starts_per_s)

    def tokens(self, step_s: float) -> int:
        """Return how many tokens a stream has that outlasts what is measured."""
        held_s = self.start_s + _SETTLE_S + _OTHERS_S + self.duration_s + _SLACK_S
        return max(2, int(held_s / step_s) + 1)


class Found(msgspec.Struct, kw_only=True):
    """Results of a crowd; memory in MB of the gateway's whole process tree, CPU in seconds."""

    processes: int
    idle: int
    active: int
    seconds: float
    base_mb: float
    steady_mb: float
    peak_mb: float
    """The sum of what each process had at its peak, resident."""
    open: int
    """Streams that were open when memory was told: what the tree had more files than before."""
    files: int
    gateway_cpu_s: float
    engine_cpu_s: float
    client_cpu_s: float
    tokens: int
    probes: int
    probe_ms: Times
    documents: int
    active_gap_ms: float
    idle_gap_ms: float
    whole: int
    """Streams that brought every token of the script."""
    errors: int
    problems: list[str]

    @property
    def stream_kb(self) -> float:
        """Memory of a stream, in KB."""
        return (self.steady_mb - self.base_mb) * 1024 / max(1, self.open)

    def short(self) -> list[str]:
        """Return the violated expectations, nothing if there are none."""
        reasons = [f"{self.errors} errors"] if self.errors else []
        if self.whole < self.idle + self.active:
            reasons.append(f"{self.idle + self.active - self.whole} streams were not whole")
        if self.open < self.idle + self.active:
            reasons.append(
                f"only {self.open:,} streams were open at once: fewer --starts-per-s, or a quieter machine"
            )
        busiest_s = max(self.engine_cpu_s, self.client_cpu_s)
        if busiest_s > 0.8 * self.seconds:
            reasons.append("void: the engines or the client used more than 80 % of a core")
        return reasons


def raise_files(wanted: int) -> None:
    """Let this process and its children open so many files; BenchError says how many are allowed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < wanted:
        raise BenchError(
            f"{wanted:,} open files are needed and {hard:,} allowed: raise the hard limit"
            f" (ulimit -Hn), or ask for at most {hard - _SPARE_FILES:,} streams (--idle, --active)"
        )
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def flows_of(wish: Wish, script: Script) -> tuple[Flow, ...]:
    """Return the flows of the crowd; a kind of stream of which none is asked for is left out."""

    def held(name: str, count: int, step_s: float, model: str, first: int) -> Flow:
        tokens = wish.tokens(step_s)
        return Flow(
            name=name,
            shape="held",
            connections=count,
            tokens=tokens,
            stream=True,
            prompt=Prompt(kind="short", first=first),
            text=script.text(tokens),
            model=model,
        )

    probes = Flow(
        name="probes",
        shape="open",
        connections=_PROBES_MAX,
        tokens=1,
        stream=True,
        prompt=Prompt(kind="short", first=30_000_000),
        rate_per_s=_PROBES_PER_S,
        text=script.text(1),
    )
    document = Prompt(kind="document", first=40_000_000, sizes=(_DOCUMENT_BYTES,))
    readers = Flow(
        name="documents",
        shape="closed",
        connections=_READERS,
        tokens=1,
        stream=False,
        prompt=document,
        text=script.text(1),
    )
    idle = held("idle", wish.idle, wish.idle_step_s, QUIET_MODEL, 10_000_000)
    active = held("active", wish.active, wish.active_step_s, MODEL, 20_000_000)
    return tuple(flow for flow in (idle, active, probes, readers) if flow.connections)


@dataclass(slots=True)
class Crowd:
    """Measures one crowd; whatever happens, all that was started is stopped."""

    wish: Wish
    folder: Path
    bundle: Bundle
    tokenizer: Path | None
    clock_s: Callable[[], float]
    say: Callable[[str], None]
    _streams: Clients = field(default_factory=Clients)
    _others: Clients = field(default_factory=Clients)
    _children: list[Child] = field(default_factory=list)

    async def run(self) -> Found:
        """Return what was found; BenchError if something cannot be started, or dies."""
        wish = self.wish
        raise_files(wish.streams + _SPARE_FILES)
        tokens = max(wish.tokens(wish.idle_step_s), wish.tokens(wish.active_step_s))
        script = Script(self.bundle, tokens_max=tokens + 1)
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._streams.end)
            stack.push_async_callback(self._others.end)
            self.say("starting two engines and the gateway")
            gateway = await self._start(stack, script)
            for name, clients in (("streams", self._streams), ("others", self._others)):
                (self.folder / name).mkdir(parents=True, exist_ok=True)
                await clients.start(1, self.folder / name)
            return await self._measure(gateway, script)

    def kill_rest(self) -> None:
        """End what `run` started and was interrupted before it had stopped."""
        for child in (*self._children, *self._streams.children, *self._others.children):
            if not child.died():
                child.kill()

    async def _start(self, stack: AsyncExitStack, script: Script) -> Gateway:
        ports = []
        for model, step_s in (
            (MODEL, self.wish.active_step_s),
            (QUIET_MODEL, self.wish.idle_step_s),
        ):
            folder = self.folder / model
            folder.mkdir(parents=True, exist_ok=True)
            choice = EngineChoice(
                tokenizer=self.tokenizer,
                model=model,
                slots=self.wish.streams + 4096,
                blocks=_BLOCKS_PER_STREAM * self.wish.streams + 65536,
            )
            child, port = engines.start_grpc(choice, script, folder, step_ms=int(step_s * 1000))
            self._children.append(child)
            stack.push_async_callback(child.stop)
            await engines.listening(child, self.clock_s)
            ports.append(port)
        wanted = crowded(self.wish, ports[1])
        gateway = gateways.start(wanted, self._children[0], ports[0], self.folder, Path())
        assert gateway.child is not None, "it was started here"
        self._children.append(gateway.child)
        stack.push_async_callback(gateway.child.stop)
        gateway = await gateways.equipped(gateway, wanted.kind, self.clock_s)
        for model in (MODEL, QUIET_MODEL):
            asked = replace(gateway, model=model)
            patience_s = _ANSWER_S + 3 * self.wish.idle_step_s
            await gateways.ready(asked, 2 * patience_s, self.clock_s, answer_s=patience_s)
        return gateway

    async def _measure(self, gateway: Gateway, script: Script) -> Found:
        wish = self.wish
        streams, others = (
            Job(
                host=gateway.host,
                port=gateway.port,
                model=gateway.model,
                flows=tuple(
                    flow for flow in flows_of(wish, script) if (flow.shape == "held") is held
                ),
                spread_s=wish.start_s if held else 0.0,
                seed=int(held),
                key=gateway.key,
            )
            for held in (True, False)
        )
        await self._warm(others)
        # What the first run held open is gone a moment later.
        await asyncio.sleep(1.0)
        base, few = memory_of(gateway.pid), files_of(gateway.pid)
        self.say(f"opening {wish.streams:,} streams in {wish.start_s:.0f} s")
        await self._streams.begin(streams)
        await asyncio.sleep(wish.start_s + _SETTLE_S)
        # Prompts stay in caches: what streams take is told before there are any others.
        steady, files = memory_of(gateway.pid), files_of(gateway.pid)
        await self._others.begin(others)
        before, at_s = self._used(gateway), self.clock_s()
        await self._streams.open()
        await self._others.open()
        self.say(f"measuring for {wish.duration_s:.0f} s, with probes and prompts of 32 KB")
        await asyncio.sleep(wish.duration_s)
        counted = await self._others.close() | await self._streams.close()
        after, seconds = self._used(gateway), self.clock_s() - at_s
        whole = await self._others.stop()
        self.say("reading every stream to its end")
        # The last stream began when all others had, so its last token comes that much later.
        await asyncio.sleep(wish.start_s + max(wish.idle_step_s, wish.active_step_s) + _SLACK_S)
        whole |= await self._streams.stop()
        for child in self._children:
            if said := child.died():
                raise BenchError(said)
        used = tuple(late - early for early, late in zip(before, after, strict=True))
        memory = (base, steady, memory_of(gateway.pid))
        return found_of(
            wish, seconds, memory, (few, files), (used[0], used[1], used[2]), counted, whole
        )

    async def _warm(self, others: Job) -> None:
        """Load the gateway once before anything counts: imports, pools and limits come to be."""
        self.say(f"a first run of {_WARM_S:.0f} s")
        flows = tuple(
            msgspec.structs.replace(
                flow,
                prompt=msgspec.structs.replace(flow.prompt, first=flow.prompt.first + _WARM_FIRST),
            )
            for flow in others.flows
        )
        await self._others.begin(msgspec.structs.replace(others, flows=flows))
        await asyncio.sleep(_WARM_S)
        for tally in (await self._others.stop()).values():
            if tally.errors:
                self.say(
                    f"in the first run, {tally.errors} errors: {next(iter(tally.problems), '')}"
                )

    def _used(self, gateway: Gateway) -> tuple[float, float, float]:
        """Return what gateway, busiest engine and busiest client used so far, in CPU seconds."""
        return (
            tree_cpu_s(gateway.pid),
            max(tree_cpu_s(child.pid) for child in self._children[:2]),
            max(cpu_s([pid]) for pid in (*self._streams.pids, *self._others.pids)),
        )


def crowded(wish: Wish, quiet_port: int) -> Wanted:
    """Return this gateway, with the quiet engine as one more worker and as many processes as were asked for."""
    kind = KINDS[EQUIPPED if wish.equipped else OURS]

    def command(place: Place) -> list[str]:
        return [*kind.command(place), "--worker", f"grpc://127.0.0.1:{quiet_port}"]

    arguments = ("--processes", str(wish.processes), *wish.arguments)
    return Wanted(kind.name, replace(kind, command=command), arguments)


def files_of(pid: int) -> int:
    """Return how many files a process tree has open."""
    count = 0
    for one in tree_of(pid):
        try:
            count += len(os.listdir(f"/proc/{one}/fd"))
        except OSError:
            continue  # it has ended
    return count


def found_of(
    wish: Wish,
    seconds: float,
    memory: tuple[Memory, Memory, Memory],
    files: tuple[int, int],
    used: tuple[float, float, float],
    counted: dict[str, Tally],
    whole: dict[str, Tally],
) -> Found:
    """Return the results of tallies; `memory` is before, while all was open, and at the end;
    `files` before and while.
    """
    idle, active = (whole.get(name, Tally()) for name in ("idle", "active"))
    probes = counted.get("probes", Tally())
    base, steady, end = memory
    return Found(
        processes=wish.processes,
        idle=wish.idle,
        active=wish.active,
        seconds=seconds,
        base_mb=base.pss / _MB,
        steady_mb=steady.pss / _MB,
        peak_mb=end.peak / _MB,
        open=min(wish.streams, max(0, files[1] - files[0])),
        files=files[1],
        gateway_cpu_s=used[0],
        engine_cpu_s=used[1],
        client_cpu_s=used[2],
        tokens=sum(tally.tokens for tally in counted.values()),
        probes=probes.requests,
        probe_ms=times_of(probes.ttft),
        documents=counted.get("documents", Tally()).requests,
        active_gap_ms=active.gap * 1000,
        idle_gap_ms=idle.gap * 1000,
        whole=idle.requests + active.requests,
        errors=sum(tally.errors for tally in whole.values()),
        problems=[problem for tally in whole.values() for problem in tally.problems][:3],
    )
