"""Route commands, `smg-admin routes`: public names of models, and the targets that answer for them."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

import typer

from smg_node.admin.commands.providers.definition_writes import (
    ROUTES,
    IfVersion,
    present,
    read_definition,
    version_of,
    written,
)
from smg_node.admin.options import CommandGroup, options_of
from smg_node.admin.views.output import print_json, print_table, tell
from smg_node.admin.views.provider_texts import ROUTE_COLUMNS, draw_route, route_rows, troubles

routes_app = typer.Typer(
    cls=CommandGroup,
    help="Give models at providers, and of own engines, public names: shared out by weight, or one after the other.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME", help="What clients call the model: claude-sonnet.", show_default=False
    ),
]
_WAYS: Final = ("weight", "on")


@routes_app.command("list")
def list_routes(context: typer.Context) -> None:
    """List the routes and their targets, one a line, as this node sees them."""
    options = options_of(context)
    answer = options.client.ask("GET", *ROUTES)
    if options.as_json:
        print_json(answer)
        return
    views: Sequence[Mapping[str, Any]] = answer["routes"]
    rows = [row for view in views for row in route_rows(view)]
    print_table(ROUTE_COLUMNS, rows, empty="There is no route.")


@routes_app.command("show")
def show(context: typer.Context, name: Name) -> None:
    """Show one route, and whether its targets are ready.

    \b
    smg-admin routes show claude-sonnet
    """
    options = options_of(context)
    view = options.client.ask("GET", *ROUTES, name)
    if options.as_json:
        print_json(view)
    else:
        print(draw_route(view))


@routes_app.command("set")
def set_route(
    context: typer.Context,
    name: Name,
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="YAML or JSON of the route, or a whole file of `routes:`; - is the standard input.",
            show_default=False,
        ),
    ] = "",
    to: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TARGET",
            help="PROVIDER/MODEL or engines/MODEL, behind it ,weight=3 and ,on=rate+full if need be; again for another.",
        ),
    ] = None,
    if_version: IfVersion = "",
) -> None:
    """Define a route on every node, in place of the one that is there.

    Requests are shared out by weight (1 if unsaid, 0.05 to 20), and a conversation stays where it is. A target with
    `on` joins only after failures of that kind: rate, full, no_money, not_let_in, model_unknown, broken, timed_out.
    engines/MODEL is the model of that name as this cluster's own workers serve it, by gRPC or HTTP; where none of them
    could take a request at once, other targets are asked before it has to wait.

    \b
    smg-admin routes set claude --to anthropic-a/claude-sonnet-5
    smg-admin routes set qwen3 --to engines/qwen3 --to anthropic-a/claude-sonnet-5,on=full+broken
    smg-admin routes set claude --to anthropic-a/claude-sonnet-5,weight=3 --to vertex-b/claude-sonnet-5,on=rate+full
    """
    options = options_of(context)
    if bool(file) == bool(to):
        raise typer.BadParameter("say either FILE or --to PROVIDER/MODEL", param_hint="--to")
    body = (
        read_definition(file, "routes", name)
        if file
        else {"targets": [read_target(t) for t in to or ()]}
    )
    headers = version_of(present(options.client, *ROUTES, name), if_version)
    answer = options.client.look("PUT", *ROUTES, name, body=body, headers=headers)
    view = written(options.client, f"route {name}", answer)
    if options.as_json:
        print_json(view)
        return
    targets = ", ".join(one["to"] for one in view["targets"])
    print(f"{name} goes to {targets} on every node (version {view['version']})")
    for line in troubles(view["targets"]):
        tell(line)


@routes_app.command("remove")
def remove(context: typer.Context, name: Name, if_version: IfVersion = "") -> None:
    """Take a route away on every node; its providers stay.

    \b
    smg-admin routes remove claude
    """
    options = options_of(context)
    headers = version_of(present(options.client, *ROUTES, name), if_version)
    answer = options.client.look("DELETE", *ROUTES, name, headers=headers)
    done = written(options.client, f"route {name}", answer)
    if options.as_json:
        print_json(done)
        return
    print(f"{name} is no route of the cluster any more")
    if done["now"] is not None:
        tell(
            "the node that was asked has one of that name in its own file, which counts there again"
        )


def read_target(text: str) -> Mapping[str, Any]:
    """Return the target in `PROVIDER/MODEL,weight=3,on=rate+full`; a comma that no such word follows is of the name."""
    to, found = text, dict[str, Any]()
    while True:
        head, comma, tail = to.rpartition(",")
        key, equals, value = tail.partition("=")
        if not comma or not equals or key.strip() not in _WAYS:
            break
        found[key.strip()] = value
        to = head
    target: dict[str, Any] = {"to": to}
    if "weight" in found:
        target["weight"] = _weight(found["weight"])
    if "on" in found:
        target["on"] = [word.strip() for word in found["on"].split("+") if word.strip()]
    return target


def _weight(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"weight={text[:32]} is no number", param_hint="--to") from None
