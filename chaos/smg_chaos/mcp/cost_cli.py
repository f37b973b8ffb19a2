"""Cost of a call (`smg-chaos mcp-cost`): the command line."""

import sys
from pathlib import Path
from typing import Annotated, Final

import typer


def mcp_cost(
    sdk_python: Annotated[
        Path, typer.Option(help="an interpreter that has the official SDK (make mcp)")
    ] = Path(".cache/mcp/python/bin/python"),
    calls: Annotated[int, typer.Option(help="calls in a round", min=10)] = 500,
    rounds: Annotated[int, typer.Option(help="rounds of each client", min=1)] = 5,
    loop: Annotated[
        str, typer.Option(help="our client's event loop: uvloop as nodes have it, or asyncio")
    ] = "uvloop",
) -> None:
    """Measure the client's CPU time per call of a tool beside that of the official SDK's client.

    Rounds alternate in one run on one server, so what matters is their ratio. The SDK's client runs as it comes, on
    asyncio. Exit code 1 if a ratio is above the aim.
    """
    from smg_chaos.mcp.cost import RATIO_MAX, measure, table

    if loop not in ("uvloop", "asyncio"):
        raise typer.BadParameter("uvloop or asyncio", param_hint="--loop")
    if not sdk_python.exists():
        print(f"smg-chaos mcp-cost: {sdk_python} is missing: run make mcp", file=sys.stderr)
        raise typer.Exit(2)
    try:
        rows = measure(sdk_python, calls, rounds, lambda line: print(line, flush=True), loop=loop)
    except OSError as error:
        print(f"smg-chaos mcp-cost: {error}", file=sys.stderr)
        raise typer.Exit(1) from error
    print(table(rows))
    if any(row.ratio > RATIO_MAX for row in rows):
        raise typer.Exit(1)


app: Final = typer.Typer(add_completion=False)
app.command(name="mcp-cost")(mcp_cost)
