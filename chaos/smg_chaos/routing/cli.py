"""CLI of `smg-chaos routing`: policies side by side on virtual time."""

import json
import sys
from pathlib import Path
from typing import Annotated, Final

import typer

_EPILOG: Final = """
Engines serve a 70B model on four H100s each; sizes and timings follow from the hardware and stand in
chaos/smg_chaos/routing/model/engine_sizes.py, the workload in workload.py, what nodes and engines tell each other in world.py.

threshold is cache_aware by thresholds and a node's own dispatches alone, as gateways with a tree of their own have it;
cache_aware-own is ours before engines without KV events; omniscient is one router that sees every engine as it is.
"""


def routing(
    policy: Annotated[
        list[str] | None, typer.Option("--policy", help="which; repeat it (all of them)")
    ] = None,
    nodes: Annotated[
        list[int] | None, typer.Option("--nodes", help="gateway nodes; repeat it (1 and 5)", min=1)
    ] = None,
    engines: Annotated[int, typer.Option(help="engines", min=1, max=256)] = 8,
    per_engine_s: Annotated[
        float, typer.Option(help="requests a second for each engine", min=0.01, max=100)
    ] = 2.5,
    seconds: Annotated[float, typer.Option(help="virtual seconds", min=1, max=86_400)] = 600.0,
    warm_s: Annotated[
        float, typer.Option(help="of these are not counted: caches fill", min=0)
    ] = 120.0,
    seed: Annotated[int, typer.Option(help="of all chance")] = 1,
    output: Annotated[
        Path | None, typer.Option("--json", help="write the figures to this file too")
    ] = None,
) -> None:
    """Simulate gateways before engines of a 70B model, and show what each policy is worth.

    Prints a row per trial: cache hits, times to the first token, how evenly engines are loaded.
    """
    from smg_chaos.routing.model.trial_plan import POLICIES, Plan
    from smg_chaos.routing.model.world import tried
    from smg_chaos.routing.report import as_json, table, trials

    policies = list(dict.fromkeys(policy or POLICIES))
    for name in policies:
        if name not in POLICIES:
            known = ", ".join(POLICIES)
            print(f"smg-chaos routing: no policy {name!r}; there are {known}", file=sys.stderr)
            raise typer.Exit(2)
    if warm_s >= seconds:
        print("smg-chaos routing: everything would be warming up", file=sys.stderr)
        raise typer.Exit(2)
    model = Plan(
        policies[0],
        engine_count=engines,
        per_engine_s=per_engine_s,
        seconds=seconds,
        warm_s=warm_s,
        seed=seed,
    )
    results = []
    for plan in trials(model, policies, list(dict.fromkeys(nodes or (1, 5)))):
        results.append(tried(plan))
        print(f"{plan.policy}, {plan.node_count} nodes: done", file=sys.stderr, flush=True)
    print(table(model, results))
    if output is not None:
        output.write_text(json.dumps(as_json(model, results), indent=1))


app = typer.Typer(add_completion=False)
app.command(name="routing", epilog=_EPILOG)(routing)
