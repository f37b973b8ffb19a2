"""Command line of `smg-chaos compare`, the comparison of gateways with cost goals."""

import shlex
import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from smg_chaos.bench.options import Options

_PROCESSES_MAX: Final = 64

_EPILOG: Final = """
Examples:

$ smg-chaos compare --tokenizer .cache/vocabulary/qwen --page deploy/reference/performance.md

$ smg-chaos compare --quick --tokenizer .cache/vocabulary/qwen
(every goal, two short rounds, no growth: about four minutes, to see whether something has gone wrong)

$ smg-chaos compare --no-goals --no-growth --processes 4 --pin "gateway=0-4,engine=5-7,client=8-11"
(four data processes beside the reference, on so many cores: throughput, crowds, gaps, memory)

$ smg-chaos compare --rounds 5 --no-growth --flags "--processes 1"

$ smg-chaos compare --again .cache/bench/compare-20260101-000000/rows.json
(the page of a run before, from what it measured)

$ smg-chaos compare --profile
(and what Python's profiler finds in each workload, in the folder of results)
"""

_Page = Annotated[Path | None, typer.Option(help="write the published page here", dir_okay=False)]
_Goals = Annotated[bool, typer.Option(help="measure what the goals are about")]
_Cores = Annotated[bool, typer.Option(help="measure data processes beside the reference as well")]
_Pin = Annotated[
    str, typer.Option(help="cores of gateway, engine and client, as gateway=0-3,client=4+5")
]
_Growth = Annotated[bool, typer.Option(help="measure how costs grow as well")]
_Anew = Annotated[
    bool | None,
    typer.Option(help="measure once more what has no result [default: not with --again]"),
]
_Profile = Annotated[bool, typer.Option(help="and where this gateway's time goes")]
_Quick = Annotated[bool, typer.Option(help="two rounds of 1.5 s, no growth and no cores")]
_Processes = Annotated[str, typer.Option(help="numbers of data processes of growth and of cores")]
_Flags = Annotated[str, typer.Option(help="more flags of this gateway")]
_Rounds = Annotated[int, typer.Option(help="rounds, interleaved", min=2, max=100)]
_Laps = Annotated[int, typer.Option(help="parts of a round, taken turn about", min=1, max=26)]
_DurationS = Annotated[float, typer.Option(help="seconds that count, a round", min=0.2, max=600)]
_WarmupS = Annotated[float, typer.Option(help="seconds before them", min=0, max=60)]
_Clients = Annotated[int, typer.Option(help="connections of a loop", min=1, max=4096)]
_Tokenizer = Annotated[
    Path | None,
    typer.Option(help="folder with a real tokenizer", exists=True, file_okay=False),
]
_Peers = Annotated[Path, typer.Option(help="where other gateways are installed")]
_Again = Annotated[
    Path | None,
    typer.Option(
        help="measure nothing, judge these rows.json of a run", exists=True, dir_okay=False
    ),
]
_Out = Annotated[Path, typer.Option(help="folder for results and logs")]


def command(
    page: _Page = None,
    goals: _Goals = True,
    cores: _Cores = True,
    growth: _Growth = True,
    anew: _Anew = None,
    profile: _Profile = False,
    quick: _Quick = False,
    processes: _Processes = "1,2",
    pin: _Pin = "",
    flags: _Flags = "",
    rounds: _Rounds = 3,
    laps: _Laps = 3,
    duration_s: _DurationS = 6.0,
    warmup_s: _WarmupS = 1.0,
    clients: _Clients = 32,
    tokenizer: _Tokenizer = None,
    peers: _Peers = Path(".cache/peers"),
    out: _Out = Path(".cache/bench"),
    again: _Again = None,
) -> None:
    """Hold this gateway to its goals beside the others, with every feature of production on.

    Exits 0 if all that must be is so, 1 if something falls short or has no result, 130 if it was
    stopped, which loses nothing that was measured: --again judges that. Run it on a
    quiet machine: rounds that spread by more than a fifth are no result. As it comes it takes
    three quarters of an hour on two cores.
    """
    if quick:
        rounds, laps, duration_s, warmup_s = 2, 1, 1.5, 0.5
        growth = cores = anew = False
    options = Options(
        rounds=rounds,
        laps=laps,
        duration_s=duration_s,
        warmup_s=warmup_s,
        clients=clients,
        tokenizer=tokenizer,
        peers=peers,
        out=out,
        again=again,
    )
    _hold(
        options,
        page,
        flags,
        processes,
        pin,
        goals=goals,
        cores=cores,
        growth=growth,
        profile=profile,
        anew=again is None if anew is None else anew,
    )


def _hold(
    options: Options, page: Path | None, flags: str, processes: str, pin: str, **parts: bool
) -> None:
    """Run the comparison with these parts, and exit as it says: 2 for what makes no sense."""
    from smg_chaos.bench.children import BenchError
    from smg_chaos.bench.compare import Wish, compare
    from smg_chaos.bench.figures.process_accounting import AccountingError
    from smg_chaos.bench.gateways.pinning import read_pins

    try:
        wish = Wish(
            page,
            arguments=tuple(shlex.split(flags)),
            processes=_counts(processes),
            pins=read_pins(pin),
            **parts,
        )
        code = compare(options, wish)
    except ValueError as error:
        print(f"smg-chaos compare: {error}", file=sys.stderr)
        raise typer.Exit(2) from error
    except (AccountingError, BenchError, OSError) as error:
        print(f"smg-chaos compare: {error}", file=sys.stderr)
        raise typer.Exit(1) from error
    raise typer.Exit(code)


def _counts(text: str) -> tuple[int, ...]:
    """Return the numbers of a list with commas; ValueError says what one looks like."""
    words = text.split(",")
    if not all(word.strip().isdigit() and int(word) <= _PROCESSES_MAX for word in words):
        raise ValueError(f"--processes is like 1,2, each at most {_PROCESSES_MAX}; not {text!r}")
    return tuple(sorted({int(word) for word in words}))


app = typer.Typer(add_completion=False)
app.command(name="compare", epilog=_EPILOG)(command)
