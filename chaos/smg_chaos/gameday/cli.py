"""CLI of `smg-chaos gameday`: faults against real processes."""

import sys
from pathlib import Path
from typing import Annotated, Final, Literal, TypeAlias

import typer

from smg_chaos.gameday.options import Options

_SIZE: Final = "Size"
_DAY: Final = "A whole day"
_LIMITS: Final = "Trials of limits"
_OUT: Final = "Results"

_EPILOG: Final = """
Scenarios:

crash      kill -9 and restart, 20 times: how soon the others know
leave      SIGTERM: how soon the others know, and that nobody doubts it
restart    killed and back at once under the same name, at another address
loss       20 %, then 40 % of all packets lost: deaths of healthy members
stall      a quarter of the nodes stall again and again for up to 1.5 s
long-stall the same for up to 4 s, our nodes with profile lan-stable
pause      4 of 24 nodes paused 8 s of every 12
sick       one member receives a fifth of its packets, then sends a fifth
partition  half and half for a minute, then healed, three times
join       40 nodes join through one of them at the same moment
late-seed  everyone joins through a seed that comes later
workers    added on one node, used on all; kill -9 of who registered them under load
changes    200 requests/s for 10 minutes, changes all the time, a rolling restart in the middle
failover   kill -9, stall and removal of workers under paced streams that must not notice
history    PostgreSQL, then Redis, killed for a minute under chats that are remembered, and a node with it
limits     ten times a limit, with kill -9, SIGSTOP and cuts, counted at the engines; a budget of tokens;
           with --trial: what one client gets of a limit, and whether what it is told is true
unwritten  a turn on the disk of a cut-off node, asked for at the others once the store is back: nobody denies it
ten        three nodes in ten small stories: joins, deaths, a pause, leaves, a limit, a conversation, affinity
rolling    every node restarted in turn under 200 open streams: drained, or only told to stop
availability  streams through a balancer while gateways and engines are hurt; plays with smg too, side by side
whole      a day of use with every kind of fault, by seed; leaves a report to read
idle       bytes, packets, CPU and memory of a node when nothing happens
all        one after the other

Systems (--system): smg-node, smg-node-plain (without encryption), serf, serf-sealed (with), and for limits and
availability smg, the reference gateway. `make serf` and `make bench-peers` fetch them.

Examples:

$ smg-chaos gameday crash --quick

$ smg-chaos gameday crash partition --system smg-node --system serf

$ smg-chaos gameday failover --topology pairs --rounds 20

$ smg-chaos gameday limits --system smg-node --system smg

$ smg-chaos gameday limits --trial all --nodes 3

$ smg-chaos gameday limits --trial one-client --nodes 10 --window-s 20 --mode balanced

$ smg-chaos gameday rolling --nodes 5 --streams 200

$ smg-chaos gameday whole --nodes 5 --minutes 60 --seed 7

$ smg-chaos gameday whole --minutes 5 --faults kill,pause --store redis

$ smg-chaos gameday all --json figures.json

Needs Linux, and root or leave to make user namespaces. The host's own network is not touched.
"""

_Scenario: TypeAlias = Annotated[list[str], typer.Argument(help="which; several, or all")]
_System: TypeAlias = Annotated[
    list[str] | None, typer.Option("--system", help="whom to hurt; repeat it (smg-node)")
]
_Nodes: TypeAlias = Annotated[
    int,
    typer.Option(help="nodes; 0: the scenario's own", min=0, max=250, rich_help_panel=_SIZE),
]
_Seconds: TypeAlias = Annotated[
    float,
    typer.Option(help="length of the fault; 0: its own", min=0, max=86400, rich_help_panel=_SIZE),
]
_Rounds: TypeAlias = Annotated[
    int, typer.Option(help="how often; 0: its own", min=0, max=1000, rich_help_panel=_SIZE)
]
_Streams: TypeAlias = Annotated[
    int,
    typer.Option(
        help="streams at once, on a whole day each second; 0: its own",
        min=0,
        max=1000,
        rich_help_panel=_SIZE,
    ),
]
_Topology: TypeAlias = Annotated[
    Literal["alone", "pairs"],
    typer.Option(
        help="failover's engines: each for itself, or pairs of one for prompts and one for answers",
        rich_help_panel=_SIZE,
    ),
]
_Minutes: TypeAlias = Annotated[
    float, typer.Option(help="--seconds, in minutes", min=0, max=1440, rich_help_panel=_SIZE)
]
_Fault: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--faults",
        "--fault",
        help="what may happen on a whole day; repeat it, or join them with commas (all): "
        "kill, pause, partition, one-way, isolate, full-disk, slow-disk, clock, rolling, keys, weather, "
        "engine, engine-stall, store, store-stall, crowd",
        rich_help_panel=_DAY,
    ),
]
_Store: TypeAlias = Annotated[
    Literal["postgresql", "redis", "none"],
    typer.Option(help="where a whole day keeps its history", rich_help_panel=_DAY),
]
_Engines: TypeAlias = Annotated[
    int, typer.Option(help="engines of a whole day", min=1, max=32, rich_help_panel=_DAY)
]
_Trial: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--trial",
        help="play these instead of limits' own parts; repeat it (one-client, burst, paced, two-nodes, all)",
        rich_help_panel=_LIMITS,
    ),
]
_Window: TypeAlias = Annotated[
    int,
    typer.Option(
        "--window-s",
        help="seconds of a window, 10 at least; 0: 60, with --quick 20",
        min=0,
        max=3600,
        rich_help_panel=_LIMITS,
    ),
]
_Mode: TypeAlias = Annotated[
    Literal["strict", "balanced"],
    typer.Option(help="mode of the limits in trials", rich_help_panel=_LIMITS),
]
_Quick: TypeAlias = Annotated[
    bool, typer.Option("--quick", help="the minute version", rich_help_panel=_SIZE)
]
_Seed: TypeAlias = Annotated[
    int, typer.Option(help="of all chance; the same for every system", rich_help_panel=_SIZE)
]
_Json: TypeAlias = Annotated[
    Path | None, typer.Option(help="write the figures to this file too", rich_help_panel=_OUT)
]
_Out: TypeAlias = Annotated[
    Path, typer.Option(help="folder for figures and the nodes' logs", rich_help_panel=_OUT)
]
_Peers: TypeAlias = Annotated[
    Path, typer.Option(help="where other systems are", rich_help_panel=_OUT)
]


def gameday(
    scenario: _Scenario,
    system: _System = None,
    nodes: _Nodes = 0,
    seconds: _Seconds = 0.0,
    rounds: _Rounds = 0,
    streams: _Streams = 0,
    topology: _Topology = "alone",
    minutes: _Minutes = 0.0,
    fault: _Fault = None,
    store: _Store = "postgresql",
    engines: _Engines = 3,
    trial: _Trial = None,
    window_s: _Window = 0,
    mode: _Mode = "strict",
    quick: _Quick = False,
    seed: _Seed = 1,
    json: _Json = None,
    out: _Out = Path(".cache/gameday"),
    peers: _Peers = Path(".cache/peers"),
) -> None:
    """Hurt real processes in a network of their own, and measure how they take it.

    Prints a row per metric with its target, and exits 1 when one of ours is missed.
    A whole day leaves report.html, report.json and report.md in its folder as well.
    """
    _play(
        Options(
            scenarios=tuple(scenario),
            systems=tuple(dict.fromkeys(system or ["smg-node"])),
            nodes=nodes,
            seconds=seconds or 60 * minutes,
            rounds=rounds,
            streams=streams,
            topology=topology,
            faults=tuple(name for one in fault or () for name in one.split(",") if name),
            store=store,
            engines=engines,
            trials=tuple(dict.fromkeys(trial or ())),
            window_s=window_s,
            mode=mode,
            seed=seed,
            quick=quick,
            json=json,
            out=out,
            peers=peers,
        )
    )


def _play(options: Options) -> None:
    """Play and exit: 0 if every target was met, 1 if not, 2 for what makes no sense."""
    from smg_chaos.gameday.lab.lab import LabError
    from smg_chaos.gameday.session import run
    from smg_chaos.gameday.systems import SystemMissingError

    try:
        code = run(options)
    except ValueError as error:
        print(f"smg-chaos gameday: {error}", file=sys.stderr)
        raise typer.Exit(2) from error
    except (LabError, SystemMissingError, OSError) as error:
        print(f"smg-chaos gameday: {error}", file=sys.stderr)
        raise typer.Exit(1) from error
    raise typer.Exit(code)


app = typer.Typer(add_completion=False)
app.command(name="gameday", epilog=_EPILOG)(gameday)
