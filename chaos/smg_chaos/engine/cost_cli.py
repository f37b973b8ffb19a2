"""Cost of a simulated engine (`smg-chaos engine-cost`): the command line."""

from typing import Annotated, Final

import typer


def engine_cost(
    rounds: Annotated[int, typer.Option(help="rounds of each measurement", min=1)] = 3,
    seconds: Annotated[
        float, typer.Option(help="seconds of each paced measurement", min=0.5)
    ] = 3.0,
    requests: Annotated[int, typer.Option(help="short requests in a round", min=100)] = 3000,
    streams: Annotated[int, typer.Option(help="paced streams", min=1)] = 64,
    contract: Annotated[str, typer.Option(help="the contract to speak")] = "vllm",
) -> None:
    """Measure the simulated engine's CPU time per request and per token, for both of its servers.

    Linux only: the figures are the scheduler's own accounting of the server's process.
    """
    from smg_chaos.engine.cost import Load, measure, table

    load = Load(contract=contract, requests=requests, streams=streams, seconds=seconds)
    rows = [
        measure(server, load, lambda line: print(line, flush=True))
        for _ in range(rounds)
        for server in ("grpc", "h2")
    ]
    print(table(rows))


app: Final = typer.Typer(add_completion=False)
app.command(name="engine-cost")(engine_cost)
