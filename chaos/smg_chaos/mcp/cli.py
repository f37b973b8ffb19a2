"""CLI of `smg-chaos mcp-server`: an MCP server of either era, by any transport, with faults on purpose."""

import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from smg_chaos.mcp.faults import fault_table

_ROUTES: Final = (
    "By HTTP: /mcp in both eras, /sse in the way of 2024-11-05; GET /_mcp/counts says what was asked and really run, "
    "PUT /_mcp/faults takes a JSON list of SPECs, POST /_mcp/forget forgets all sessions."
)
_FAULTS: Final = (
    "A fault SPEC is NAME or NAME:KEY=VALUE,KEY=VALUE and may be given several times. Every fault also takes request=N "
    "(only the n-th of its method), every=N, times=N, method=NAME (tools/call if unsaid, * for all) and tool=NAME."
)

app: Final = typer.Typer(add_completion=False)


@app.command(name="mcp-server", epilog="\n\n".join((_ROUTES, _FAULTS, fault_table())))
def mcp_server(
    era: Annotated[
        str, typer.Option(metavar="ERA", help="modern, handshake, or both on one path.")
    ] = "both",
    transport: Annotated[
        str, typer.Option(metavar="KIND", help="http (with the old /sse beside it), or stdio.")
    ] = "http",
    answers: Annotated[
        str, typer.Option(metavar="FORM", help="How calls are answered by HTTP: json or sse.")
    ] = "json",
    fault: Annotated[
        list[str] | None, typer.Option(metavar="SPEC", help="A fault on purpose; see below.")
    ] = None,
    host: Annotated[str, typer.Option(help="Where to listen.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="0: the system chooses.")] = 0,
    token: Annotated[str, typer.Option(help="A bearer token that requests must have.")] = "",
    count_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where stdio keeps its counts, as JSON.")
    ] = None,
) -> None:
    """Serve MCP on purpose, and count what was run.

    Prints `listening on HOST:PORT url=…` once it listens, and exits 0 on SIGTERM; by stdio it ends with its input.
    """
    from smg_chaos.mcp.conversation import ERAS
    from smg_chaos.mcp.faults import parse_fault

    try:
        faults = [parse_fault(spec) for spec in fault or []]
        for value, allowed in (
            (era, ERAS),
            (transport, ("http", "stdio")),
            (answers, ("json", "sse")),
        ):
            if value not in allowed:
                raise ValueError(f"{value!r} is none of {', '.join(allowed)}")
    except ValueError as error:
        print(f"smg-chaos mcp-server: {error}", file=sys.stderr)
        raise typer.Exit(2) from error
    from smg_chaos.mcp.host import serve_http, serve_stdio

    if transport == "stdio":
        serve_stdio(era, faults, count_file)
        return
    try:
        serve_http(era, faults, host, port, answers=answers, token=token)
    except OSError as error:
        print(f"smg-chaos mcp-server: {error}", file=sys.stderr)
        raise typer.Exit(1) from error
