"""Live comparison (`smg-chaos routing-live`): gateways side by side before engines with prefix
caches.
"""

import asyncio
import json
import sys
from pathlib import Path
from typing import Annotated, Final

import typer

_DEFAULT: Final = (
    "cache_aware:smg-node --policy cache_aware",
    "round_robin:smg-node --policy round_robin",
    "smg-cache_aware:smg --policy cache_aware",
    "smg-round_robin:smg --policy round_robin",
)


def routing_live(
    gateway: Annotated[
        list[str] | None,
        typer.Option("--gateway", "-g", help="[LABEL:]KIND [ARGUMENT…], as for bench; repeat it"),
    ] = None,
    engines: Annotated[int, typer.Option(help="simulated engines", min=1, max=64)] = 8,
    sessions_per_s: Annotated[
        float, typer.Option(help="chats that begin a second", min=0.01, max=100)
    ] = 1.6,
    seconds: Annotated[float, typer.Option(help="how long each is asked", min=1)] = 90.0,
    seed: Annotated[int, typer.Option(help="of all chance")] = 1,
    output: Annotated[
        Path | None, typer.Option("--json", help="write the figures to this file too")
    ] = None,
    out: Annotated[Path, typer.Option(help="folder for logs")] = Path(".cache/routing"),
    peers: Annotated[Path, typer.Option(help="where other gateways are")] = Path(".cache/peers"),
) -> None:
    """Send the same chats of many turns through each gateway, before fresh engines that imitate a 70B model.

    In real time. `make bench-peers` installs the reference.
    """
    from smg_chaos.bench.children import BenchError
    from smg_chaos.bench.gateways.gateways import check_installed, wanted_of
    from smg_chaos.routing.live import Live, as_json, table, tried
    from smg_chaos.routing.model.chat_texts import sessions
    from smg_node.system_clock import SystemClock

    chats = sessions(seed, sessions_per_s, seconds)
    live = Live(engines, chats, seconds, out.resolve(), peers.resolve(), SystemClock())
    rows = []
    try:
        wanted = [wanted_of(spec) for spec in gateway or _DEFAULT]
        check_installed(wanted, peers)
        for one in wanted:
            rows.append(asyncio.run(tried(live, one)))
            print(f"{one.label}: done", file=sys.stderr, flush=True)
    except (asyncio.CancelledError, KeyboardInterrupt):
        print("smg-chaos routing-live: stopped", file=sys.stderr)
        raise typer.Exit(130) from None
    except BenchError as error:
        print(f"smg-chaos routing-live: {error}", file=sys.stderr)
        raise typer.Exit(1) from error
    print(table(rows))
    if output is not None:
        output.write_text(json.dumps(as_json(rows), indent=1))


app = typer.Typer(add_completion=False)
app.command(name="routing-live")(routing_live)
