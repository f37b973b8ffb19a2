"""CLI of `smg-chaos history`, the benchmark of stored responses."""

import sys
from pathlib import Path
from typing import Annotated, Final, TypeAlias

import typer

from smg_chaos.history.options import STORES, Options

_LOAD: Final = "Load"
_WHERE: Final = "Stores"
_OUT: Final = "Results"

_EPILOG: Final = """
Stores (--store): memory, sqlite, postgresql, redis. PostgreSQL and Valkey or Redis are started here, from what is installed or
from the wheels of the test extra, unless --postgresql or --redis name others: what is measured there stays there.

Examples:

$ smg-chaos history

$ smg-chaos history --store sqlite --store postgresql --clients 16 --rounds 9

$ smg-chaos history --store sqlite --rounds 0 --seconds 60
(only: how many turns a second SQLite takes)

$ smg-chaos history --seconds 0 --redis redis://10.0.0.7:6379/5 --store redis
"""

_Store: TypeAlias = Annotated[
    list[str] | None, typer.Option("--store", help="which; repeat it", rich_help_panel=_WHERE)
]
_Postgresql: TypeAlias = Annotated[
    str, typer.Option(help="URL of a PostgreSQL that runs already", rich_help_panel=_WHERE)
]
_Redis: TypeAlias = Annotated[
    str, typer.Option(help="URL of a Redis that runs already", rich_help_panel=_WHERE)
]
_Clients: TypeAlias = Annotated[
    list[int] | None,
    typer.Option(help="clients at once (1 16); repeat it", min=1, max=1024, rich_help_panel=_LOAD),
]
_Rounds: TypeAlias = Annotated[
    int,
    typer.Option(
        help="rounds in which all cases take turns", min=0, max=100, rich_help_panel=_LOAD
    ),
]
_SliceS: TypeAlias = Annotated[
    float,
    typer.Option(help="seconds of each kind in a round", min=0.2, max=600, rich_help_panel=_LOAD),
]
_Seconds: TypeAlias = Annotated[
    float,
    typer.Option(
        help="seconds of turns written to SQLite; 0: none", min=0, max=86_400, rich_help_panel=_LOAD
    ),
]
_TurnsPerS: TypeAlias = Annotated[
    float,
    typer.Option(help="so many of them a second", min=1, max=100_000, rich_help_panel=_LOAD),
]
_Json: TypeAlias = Annotated[
    Path | None, typer.Option(help="write the figures to this file too", rich_help_panel=_OUT)
]
_Out: TypeAlias = Annotated[
    Path, typer.Option(help="folder for figures and logs", rich_help_panel=_OUT)
]


def history(
    store: _Store = None,
    postgresql: _Postgresql = "",
    redis: _Redis = "",
    clients: _Clients = None,
    rounds: _Rounds = 5,
    slice_s: _SliceS = 2.0,
    seconds: _Seconds = 60.0,
    turns_per_s: _TurnsPerS = 1_000.0,
    json: _Json = None,
    out: _Out = Path(".cache/history"),
) -> None:
    """Measure what a remembered response costs: added latency, added CPU, calls to the store.

    One node per store, in front of one engine. Each case is asked with store:false and store:true in turn, every answer is
    looked at, and some are read back. Linux only: CPU is the kernel's account.
    """
    from smg_chaos.bench.children import BenchError
    from smg_chaos.bench.figures.process_accounting import AccountingError
    from smg_chaos.history.session import run

    options = Options(
        stores=tuple(dict.fromkeys(store or STORES)),
        clients=tuple(dict.fromkeys(clients or (1, 16))),
        rounds=rounds,
        slice_s=slice_s,
        seconds=seconds,
        turns_per_s=turns_per_s,
        postgresql=postgresql,
        redis=redis,
        json=json,
        out=out,
    )
    try:
        print(run(options, lambda what: print(what, file=sys.stderr, flush=True)))
    except ValueError as error:
        print(f"smg-chaos history: {error}", file=sys.stderr)
        raise typer.Exit(2) from error
    except (AccountingError, BenchError, OSError) as error:
        print(f"smg-chaos history: {error}", file=sys.stderr)
        raise typer.Exit(1) from error


app = typer.Typer(add_completion=False)
app.command(name="history", epilog=_EPILOG)(history)
