"""Discovery commands, `smg-admin discovery`: sources of workers, who watches them, what they come to, and new ones."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

import typer

from smg_node.admin.client import AdminError
from smg_node.admin.commands.providers.definition_writes import (
    IfVersion,
    read_definition,
    version_of,
    written,
)
from smg_node.admin.options import CommandGroup, Options, options_of
from smg_node.admin.views.output import print_json, print_table, tell

_COLUMNS: Final = (
    "SOURCE", "DEFINED BY", "WRITER", "STANDBY", "SHOWN", "REGISTERED", "AGE", "STATE", "NOTE",
)  # fmt: skip
_DISCOVERY: Final = ("v1", "cluster", "discovery")
_KINDS: Final = ("kubernetes", "dns")

discovery_app = typer.Typer(
    cls=CommandGroup,
    help="See where workers are found (Kubernetes, the DNS, files), and define such sources.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
_Source = Annotated[
    str,
    typer.Argument(
        metavar="KIND/NAME", help="Such as kubernetes/chat or dns/metal.", show_default=False
    ),
]


@discovery_app.command("define")
def define(
    context: typer.Context,
    source: _Source,
    file: Annotated[
        str,
        typer.Option(
            "--file",
            "-f",
            metavar="FILE",
            help="YAML or JSON with the fields of discovery.KIND.NAME; - is the standard input.",
            show_default=False,
        ),
    ],
    if_version: IfVersion = "",
) -> None:
    """Define a source of workers on every node, at once; in place of what nodes' own settings say of that name.

    \b
    smg-admin discovery define kubernetes/chat --file chat.yaml
    """
    options = options_of(context)
    kind, name = _parts(source)
    body = read_definition(file, kind, name, section="discovery")
    headers = version_of(_defined(options, source), if_version)
    answer = options.client.look("PUT", *_DISCOVERY, kind, name, body=body, headers=headers)
    done = written(options.client, f"source {source}", answer)
    if options.as_json:
        print_json(done)
        return
    print(f"source {source} is defined, version {done['version']}")


@discovery_app.command("remove")
def remove(context: typer.Context, source: _Source, if_version: IfVersion = "") -> None:
    """Take the cluster's definition of a source away; nodes go by their own settings again.

    Where no node has it in those, its workers go after a minute, or stay if it says `keep`.
    """
    options = options_of(context)
    kind, name = _parts(source)
    headers = version_of(_defined(options, source), if_version)
    answer = options.client.look("DELETE", *_DISCOVERY, kind, name, headers=headers)
    done = written(options.client, f"source {source}", answer)
    if options.as_json:
        print_json(done)
        return
    print(f"the cluster's definition of source {source} is gone")
    if done["own"]:
        tell("this node's own settings define it, and count again")


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
        for name, why in answer["unreadable"].items():
            tell(f"{name}: the cluster's definition is not followed by {answer['node']}: {why}")
    raise typer.Exit(1 if any(source["trouble"] for source in sources) else 0)


def _parts(source: str) -> tuple[str, str]:
    """Return kind and name; AdminError for what is neither."""
    kind, slash, name = source.partition("/")
    if not slash or not name or kind not in _KINDS:
        why = " (a file or a program is each node's own)" if kind in ("file", "command") else ""
        raise AdminError(f"a source is kubernetes/NAME or dns/NAME, not {source[:80]!r}{why}")
    return kind, name


def _defined(options: Options, source: str) -> Mapping[str, Any] | None:
    """Return what the cluster defines under a name, None if it does not."""
    answer = options.client.ask("GET", *_DISCOVERY)
    found = (one["definition"] for one in answer["sources"] if _name(one) == source)
    return next(found, None)


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
        source["defined"] or "-",
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
    if source["overridden"]:
        notes.append("the cluster's definition counts, and not this node's own settings")
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
