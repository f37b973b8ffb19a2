"""Discovery commands, `smg-admin discovery`: sources of workers, who watches them, and what they come to."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import typer

from smg_node.admin.options import CommandGroup, options_of
from smg_node.admin.views.output import print_json, print_table, tell

_COLUMNS: Final = ("SOURCE", "WRITER", "STANDBY", "SHOWN", "REGISTERED", "AGE", "STATE", "NOTE")

discovery_app = typer.Typer(
    cls=CommandGroup,
    help="See where workers are found: Kubernetes, the DNS, files.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@discovery_app.callback()
def _discovery() -> None:
    """Keep `status` a command of its own."""


@discovery_app.command("status")
def status(context: typer.Context) -> None:
    """List the sources that any node is configured with, as any node knows it.

    Exit code 1 where a source answers no node, or no node watches one that workers are registered for.

    \b
    smg-admin discovery status
    smg-admin discovery status --json
    """
    options = options_of(context)
    answer = options.client.ask("GET", "v1", "cluster", "discovery")
    sources: Sequence[Mapping[str, Any]] = answer["sources"]
    if options.as_json:
        print_json(answer)
    else:
        print_table(_COLUMNS, map(_row, sources), empty="No source of workers is configured.")
        for source in sources:
            for line in _notes(source):
                tell(f"{_name(source)}: {line}")
    raise typer.Exit(1 if any(source["trouble"] for source in sources) else 0)


def _name(source: Mapping[str, Any]) -> str:
    return f"{source['kind']}/{source['name']}"


def _row(source: Mapping[str, Any]) -> Sequence[object]:
    members: Sequence[Mapping[str, Any]] = source["members"]
    seen = [one for one in members if one["age_ms"] is not None]
    writing = [one for one in seen if one["writing"]] or seen
    said = writing[0] if writing else None
    is_file = source["kind"] == "file"
    return (
        _name(source),
        "each node" if is_file else source["writer"] or "-",
        "-" if is_file else source["standby"] or "-",
        "-" if said is None else said["sightings"],
        "-" if is_file else source["registered"],
        "-" if said is None else f"{said['age_ms'] / 1000:.0f} s",
        _state(members),
        source["trouble"],
    )


def _state(members: Sequence[Mapping[str, Any]]) -> str:
    """Return how the source stands at those who watch it, the worst first."""
    order = ("failing", "recovering", "starting", "ok")
    found = [one["standing"] for one in members if one["standing"] in order]
    return min(found, key=order.index) if found else "waiting" if members else "nobody watches"


def _notes(source: Mapping[str, Any]) -> list[str]:
    """Return what operators want to know of it, in words."""
    notes = []
    for one in source["members"]:
        since_s = one["since_ms"] / 1000
        if one["trouble"]:
            notes.append(f"{one['node']}: {one['standing']} for {since_s:.0f} s: {one['trouble']}")
        if one["held"]:
            notes.append(f"{one['node']}: {one['held']}")
        if one["unusable"]:
            notes.append(f"{one['node']}: not usable: {one['unusable']}")
        if one["waiting"]:
            notes.append(f"{one['node']}: {one['waiting']} wait for room")
    if source["removed"]:
        notes.append(f"{source['removed']} stay away, because an operator removed them")
    return notes
