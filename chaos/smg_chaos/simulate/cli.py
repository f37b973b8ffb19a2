"""CLI of `smg-chaos simulate`: options of a simulated cluster in one process, on virtual time."""

from pathlib import Path
from typing import Annotated, Final, TypeAlias

import typer

from smg_mesh.config import ProfileName

_EPILOG: Final = """
Without a scenario it is random weather: crashes, restarts, pauses, cuts, loss, twins, garbage, by seed.
A seed that breaks a promise is printed with the shortest list of faults that still does.

Scenarios (--scenario):

{scenarios}

acceptance         all rows of the acceptance table

Examples:

$ smg-chaos simulate

$ smg-chaos simulate --seed 17 --story

$ smg-chaos simulate --scenario crash --nodes 100 --seeds 50

$ smg-chaos simulate --scenario state-weather --seed 17 --story

$ smg-chaos simulate --whole --seeds 1000

$ smg-chaos simulate --whole --seed 17 --story

$ smg-chaos simulate --scenario acceptance --json figures.json
"""
_WHAT: Final = "What happens"
_OUT: Final = "Results"

_Seed: TypeAlias = Annotated[
    int | None, typer.Option(help="one history only, the one of this seed", rich_help_panel=_WHAT)
]
_Seeds: TypeAlias = Annotated[
    int | None,
    typer.Option(help="how many histories (200, or the scenario's)", min=1, rich_help_panel=_WHAT),
]
_First: TypeAlias = Annotated[
    int, typer.Option(help="the first of them", min=0, rich_help_panel=_WHAT)
]
_Scenario: TypeAlias = Annotated[
    str | None, typer.Option(help="a named scenario, or `acceptance`", rich_help_panel=_WHAT)
]
_Whole: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--whole",
        help="everything at once, with requests: the same as --scenario whole",
        rich_help_panel=_WHAT,
    ),
]
_Nodes: TypeAlias = Annotated[
    int | None,
    typer.Option(help="members (10, or the scenario's)", min=2, max=2000, rich_help_panel=_WHAT),
]
_Profile: TypeAlias = Annotated[
    ProfileName | None,
    typer.Option(help="timers and network (lan, or the scenario's)", rich_help_panel=_WHAT),
]
_Sealed: TypeAlias = Annotated[
    bool, typer.Option("--sealed", help="with the real keyring", rich_help_panel=_WHAT)
]
_Share: TypeAlias = Annotated[
    float,
    typer.Option(
        help="acceptance: that part of each row's seeds, at least 2",
        min=0.0,
        max=1.0,
        rich_help_panel=_WHAT,
    ),
]
_Jobs: TypeAlias = Annotated[
    int | None, typer.Option(help="processes (one per core)", min=1, rich_help_panel=_OUT)
]
_Story: TypeAlias = Annotated[
    bool, typer.Option("--story", help="with --seed: tell what happened", rich_help_panel=_OUT)
]
_Cost: TypeAlias = Annotated[
    bool, typer.Option("--cost", help="print events/s and CPU per seed", rich_help_panel=_OUT)
]
_Json: TypeAlias = Annotated[
    Path | None, typer.Option("--json", help="write all figures there", rich_help_panel=_OUT)
]


def simulate(
    seed: _Seed = None,
    seeds: _Seeds = None,
    first: _First = 0,
    scenario: _Scenario = None,
    whole: _Whole = False,
    nodes: _Nodes = None,
    profile: _Profile = None,
    sealed: _Sealed = False,
    share: _Share = 1.0,
    jobs: _Jobs = None,
    story: _Story = False,
    cost: _Cost = False,
    json: _Json = None,
) -> None:
    """Let a cluster of real membership cores live through bad weather, on one clock and one seed.

    Exits 1 when a promise was broken or a target missed.
    """
    from smg_chaos.simulate.command import Asked, run

    if whole and scenario not in (None, "whole"):
        raise typer.BadParameter(f"--whole is a scenario, and so is --scenario {scenario}")
    asked = Asked(
        seed=seed,
        seeds=seeds,
        first=first,
        scenario="whole" if whole else scenario,
        nodes=nodes,
        profile=profile,
        sealed=sealed,
        share=share,
        jobs=jobs,
        story=story,
        cost=cost,
        json=json,
    )
    raise typer.Exit(run(asked))


def _epilog() -> str:
    from smg_chaos.simulate.scenarios.catalogue import SCENARIOS

    lines = (f"{one.name:18} {one.about}" for one in SCENARIOS.values())
    return _EPILOG.format(scenarios="\n\n".join(lines))


app: Final = typer.Typer(add_completion=False)
app.command(name="simulate", epilog=_epilog())(simulate)
