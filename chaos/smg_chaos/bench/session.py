"""Session of `smg-chaos bench`: from its options to a printed table and a file of rows."""

import asyncio
import shlex
import signal
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
from rich.console import Console

from smg_chaos.bench.bench import Bench, Plan
from smg_chaos.bench.children import BenchError
from smg_chaos.bench.figures import machine
from smg_chaos.bench.figures.flash import add_flash_notes
from smg_chaos.bench.figures.gaps import add_gap_notes
from smg_chaos.bench.figures.measurement import Lengths
from smg_chaos.bench.figures.process_accounting import AccountingError, cpu_s
from smg_chaos.bench.figures.progress import Progress
from smg_chaos.bench.figures.rows import Figure, figures_of
from smg_chaos.bench.figures.table import table
from smg_chaos.bench.gateways import gateways
from smg_chaos.bench.gateways.engines import EngineChoice
from smg_chaos.bench.gateways.gateways import OURS, Gateway, Wanted
from smg_chaos.bench.load import workloads
from smg_chaos.bench.load.workload import Behind, Load
from smg_chaos.bench.options import Options
from smg_chaos.engine.scripts.bundle import Bundle, BundleError, folder_bundle, tiny_bundle
from smg_node.core.ports import Clock
from smg_node.system_clock import SystemClock

_DEFAULT_WORKLOADS: Final = ("short", "stream1", "burst", "paced")
_DEFAULT_PEER: Final = "smg"
_BESIDE: Final[frozenset[Behind]] = frozenset(("pair", "tools"))
"""Only some gateways are measured with a second engine."""
_VENDOR_PEER: Final = "litellm"
_VISION: Final = "qwen3_vl"


def run(options: Options) -> int:
    """Measure, print, write; return the exit code: 0 if every row counts, else 1.

    ValueError where the options name something that does not exist.
    """
    clock: Clock = SystemClock()
    console = Console(stderr=True)
    stamp = datetime.fromtimestamp(clock.now_ms() / 1000, UTC).strftime("%Y%m%d-%H%M%S")
    plan = plan_of(options, options.out / stamp, console)
    plan.folder.mkdir(parents=True, exist_ok=True)
    bench = Bench(plan, Progress(console), clock.monotonic_s)
    facts = {"at": stamp, **facts_of(options, plan)}
    stopped = False
    try:
        with bench.progress.shown(bench.measurements()), asyncio.Runner() as runner:
            runner.run(until_told(bench))
    except (KeyboardInterrupt, asyncio.CancelledError):
        stopped = True
        console.print("stopped; what was measured so far:")
    except BenchError:
        if bench.rows:
            _finish(bench, facts, options, console)
        raise
    finally:
        bench.kill_rest()
    if bench.rows:
        _finish(bench, facts, options, console)
    return 130 if stopped else int(any(row.void for row in bench.rows))


async def until_told(bench: Bench) -> None:
    """Run; SIGTERM ends it as Ctrl-C does, with everything stopped."""
    task = asyncio.current_task()
    assert task is not None, "a coroutine runs in a task"
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, task.cancel)
    try:
        await bench.run()
    finally:
        loop.remove_signal_handler(signal.SIGTERM)


def plan_of(options: Options, folder: Path, console: Console) -> Plan:
    """Return the plan; ValueError or BenchError says what cannot be had."""
    names = options.workloads or _DEFAULT_WORKLOADS
    chosen = workloads.chosen(names, options.streams, options.tools, options.crowds)
    target = _target(options)
    behind: set[Behind] = {one.behind for one in chosen}
    if target is not None and behind & _BESIDE:
        raise ValueError(
            "tools and picture-streams: not with --url, for the gateway has to know what stands beside its engine"
        )
    wanted = [] if target else _wanted(options, console, behind)
    return Plan(
        workloads=chosen,
        gateways=wanted,
        folder=folder,
        peers=options.peers,
        bundle=bundle_of(options.tokenizer),
        engine=EngineChoice(
            options.contract,
            options.engine_server,
            options.pace,
            options.tokenizer,
            vision=_VISION if any(one.sees for one in chosen) else "",
        ),
        rounds=options.rounds,
        lengths=Lengths(options.warmup_s, options.duration_s),
        load=Load(clients=options.clients, rate_per_s=options.rate_per_s, tools=options.tools),
        client_processes=max(options.client_processes, *(one.clients_min for one in chosen)),
        target=target,
    )


def _wanted(options: Options, console: Console, behind: AbstractSet[Behind]) -> Sequence[Wanted]:
    vendors = "vendor" in behind
    specs, peer = options.gateways, _VENDOR_PEER if vendors else _DEFAULT_PEER
    if not specs and behind & _BESIDE:
        specs = (OURS,)
    if not specs:
        specs = (OURS, peer)
        if not gateways.is_installed(gateways.KINDS[peer], options.peers):
            console.print(
                f"{peer} is not installed, so {OURS} goes alone: `make bench-peers` installs it"
            )
            specs = (OURS,)
    wanted = [gateways.wanted_of(spec) for spec in specs]
    labels = [one.label for one in wanted]
    if len(set(labels)) < len(labels):
        raise ValueError("two gateways have the same label: write LABEL:KIND")
    if vendors:
        gateways.check_vendors(wanted)
    if behind & _BESIDE:
        gateways.check_tools(wanted)
    gateways.check_installed(wanted, options.peers)
    return wanted


def _target(options: Options) -> Gateway | None:
    if options.url is None:
        return None
    if options.gateways:
        raise ValueError("either --url or --gateway")
    parts = urlsplit(options.url)
    if parts.scheme != "http" or not parts.hostname:
        raise ValueError("--url is http://HOST:PORT")
    if options.pid:
        try:
            cpu_s([options.pid])
        except AccountingError as error:
            raise ValueError(f"there is no process {options.pid}: {error}") from error
    port = parts.port or 80
    return Gateway("url", parts.hostname, port, options.pid, None, "", None, options.model)


def bundle_of(folder: Path | None) -> Bundle:
    """Return the tokenizer of a folder, or the built-in one; ValueError for a folder that has none."""
    try:
        return (
            folder_bundle(folder)
            if folder
            else tiny_bundle("simulated", vocabulary=4160, context=0)
        )
    except BundleError as error:
        raise ValueError(str(error)) from error


def facts_of(options: Options, plan: Plan) -> dict[str, Any]:
    """Return the facts that stand beside the figures."""
    told = plan.bundle.size
    return {
        "machine": machine.describe(),
        "rounds": plan.rounds,
        "laps": plan.laps,
        "duration_s": plan.lengths.duration_s,
        "warmup_s": plan.lengths.warmup_s,
        "clients": options.clients,
        "rate_per_s": options.rate_per_s,
        "tokenizer": f"{options.tokenizer or 'built-in'}, {told:,} tokens",
        "engine": f"{options.contract} contract, {options.engine_server} server, pace {options.pace}",
        "gateways": [
            {
                "label": one.label,
                "says": one.kind.says,
                "version": gateways.version_of(one.kind, plan.peers),
                "arguments": shlex.join(one.arguments),
            }
            for one in plan.gateways
        ],
    }


def base_of(plan: Plan) -> str | None:
    """Return the gateway that the others are compared with: the first peer, or else the first."""
    peers = [one.label for one in plan.gateways if one.kind.peer]
    if len(plan.gateways) < 2:
        return None
    return peers[0] if peers else plan.gateways[0].label


def _finish(bench: Bench, facts: dict[str, Any], options: Options, console: Console) -> None:
    plan = bench.plan
    labels = [one.label for one in plan.gateways] or ["url"]
    base = base_of(plan)
    figures: list[Figure] = figures_of(bench.rows, plan.workloads, labels, base)
    add_gap_notes(figures, bench.rows, plan.workloads)
    add_flash_notes(figures, bench.rows, plan.workloads)
    text = table(figures, plan.workloads, base=base, facts=facts)
    print(text)
    content = msgspec.json.format(
        msgspec.json.encode({"facts": facts, "figures": figures, "rows": bench.rows}), indent=1
    )
    (plan.folder / "table.txt").write_text(text, encoding="utf-8")
    for path in (plan.folder / "rows.json", options.json):
        if path is not None:
            path.write_bytes(content + b"\n")
    console.print(f"rows, table and logs: {plan.folder}", soft_wrap=True)
