"""Route commands, `smg-admin routes`: public names of models, and the models at providers that answer for them."""

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
    help="Give models at providers public names: shared out by weight, price or speed, or one after the other.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME", help="What clients call the model: claude-sonnet.", show_default=False
    ),
]
Choose = Annotated[
    str,
    typer.Option(
        metavar="WAY",
        help="weighted, cheapest, fastest or affinity: how one of the targets is chosen.",
    ),
]
SplitWay = Annotated[
    str,
    typer.Option(
        "--split",
        metavar="SPLIT",
        help="to=PROVIDER[/MODEL],share=0.1: a share of all tenants goes there; ,key=tenant|key|user|conversation "
        ",until=2026-12-31 ,name=NAME if need be; none takes it away.",
    ),
]
ShadowWay = Annotated[
    str,
    typer.Option(
        "--shadow",
        metavar="SHADOW",
        help="to=PROVIDER/MODEL,share=0.01,budget=20/day: copies of requests go there as well, after their answers; "
        ",keep_text=true keeps both answers; none takes it away.",
    ),
]
_WAYS: Final = ("weight", "on")
_SPLIT: Final = ("to", "share", "key", "until", "name")
_SHADOW: Final = ("to", "share", "budget", "keep_text")
_NONE: Final = "none"


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
            help="PROVIDER/MODEL, behind it ,weight=3 and ,on=rate+full if need be; again for another.",
        ),
    ] = None,
    choose: Choose = "",
    split: SplitWay = "",
    shadow: ShadowWay = "",
    if_version: IfVersion = "",
) -> None:
    """Define a route on every node: by FILE, or by flags, which change what they name and leave the rest.

    Requests are shared out by weight (1 if unsaid, 0.05 to 20), or as --choose says, and a conversation stays where it
    is. A target with `on` joins only after failures of that kind: rate, full, no_money, not_let_in, model_unknown,
    broken, timed_out.

    \b
    smg-admin routes set claude --to anthropic-a/claude-sonnet-5
    smg-admin routes set claude --to anthropic-a/claude-sonnet-5,weight=3 --to vertex-b/claude-sonnet-5,on=rate+full
    smg-admin routes set claude --choose fastest
    smg-admin routes set claude --split to=vertex-b,share=0.1,key=tenant,until=2026-12-31
    smg-admin routes set claude --shadow to=openai-a/gpt-5.6,share=0.01,budget=20/day
    smg-admin routes set claude --split none --shadow none
    """
    options = options_of(context)
    said = _said(to or (), choose, split, shadow)
    if bool(file) == bool(said):
        raise typer.BadParameter("say either FILE or flags such as --to", param_hint="--to")
    # Read before a node is asked: what is wrong with the command is told first.
    body = read_definition(file, "routes", name) if file else said
    seen = present(options.client, *ROUTES, name)
    if not file:
        body = _changed({} if seen is None else seen["spec"], said)
        if not body.get("targets"):
            raise typer.BadParameter(f"{name} is new: say its --to", param_hint="--to")
    headers = version_of(seen, if_version)
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


def read_way(text: str, known: Sequence[str], flag: str) -> Mapping[str, Any] | None:
    """Return the members in `to=a/m,share=0.1`, of those that are known; None for `none`."""
    if text == _NONE:
        return None
    found: dict[str, Any] = {}
    for part in text.split(","):
        key, equals, value = part.partition("=")
        if not equals or key.strip() not in known:
            raise typer.BadParameter(
                f"{part[:32]!r} is none of {', '.join(f'{one}=…' for one in known)}",
                param_hint=flag,
            )
        found[key.strip()] = value.strip()
    if "share" in found:
        found["share"] = _number("share", found["share"], flag)
    if "keep_text" in found:
        if found["keep_text"] not in ("true", "false"):
            raise typer.BadParameter("keep_text is true or false", param_hint=flag)
        found["keep_text"] = found["keep_text"] == "true"
    return found


def _said(to: Sequence[str], choose: str, split: str, shadow: str) -> dict[str, Any]:
    """Return the members that flags name; None for one that is to be taken away."""
    found: dict[str, Any] = {}
    if to:
        found["targets"] = [read_target(text) for text in to]
    if choose:
        found["choose"] = choose
    if split:
        found["split"] = read_way(split, _SPLIT, "--split")
    if shadow:
        found["shadow"] = read_way(shadow, _SHADOW, "--shadow")
    return found


def _changed(before: Mapping[str, Any], said: Mapping[str, Any]) -> dict[str, Any]:
    return {key: one for key, one in {**before, **said}.items() if one is not None}


def _weight(text: str) -> float:
    return _number("weight", text, "--to")


def _number(key: str, text: str, flag: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"{key}={text[:32]} is no number", param_hint=flag) from None
