"""Limit commands, `smg-admin limits`: limits of tenants, keys and models in the cluster, and their
use.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, TypeAlias

import typer

from smg_node.admin.client import AdminClient, AdminError, Answer
from smg_node.admin.options import CommandGroup, Options, options_of
from smg_node.admin.views.limit_views import (
    COST,
    draw_limit,
    format_limits,
    list_row,
    read_amount,
    warn_of,
)
from smg_node.admin.views.output import confirmed, print_json, print_table, tell
from smg_node.admin.views.watch_loop import Watch, watched

limits_app = typer.Typer(
    cls=CommandGroup,
    help="Set limits for the whole cluster, and see what is spent of them.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

_LIMITS: Final = ("v1", "cluster", "limits")
_MISSING: Final = 404
_STALE: Final = 409
_COLUMNS: Final = ("SCOPE", "LIMITS", "MODE", "STANDING", "VERSION", "SET ON", "WHEN", "NOTE")
_PER: Final = "AMOUNT/WINDOW"
_ALL: Final = "global"
_ALL_OF_THEM: Final = "This limits all requests of the cluster together. Go on?"

Scope = Annotated[
    str,
    typer.Option(
        "--scope",
        metavar="SCOPE",
        help="Whose requests: tenant=NAME, key=ID, model=NAME, or several with commas; provider=NAME: the calls of a "
        "provider, whoever they are made for; tool=SERVER/TOOL or tool=SERVER/*: runs of a tool, or of all of a server's; "
        "* for each by itself; global: all.",
    ),
]
Named = Annotated[
    str, typer.Argument(metavar="SCOPE", help="The same without --scope.", show_default=False)
]
IfVersion = Annotated[
    str,
    typer.Option(
        metavar="VERSION",
        help="Only if this version is there: 0 if none may be, * for any. Else the one seen just now.",
    ),
]
Amounts: TypeAlias = list[str] | None
Requests = Annotated[
    Amounts, typer.Option(metavar=_PER, help="60/minute, 5/10s; again for another window.")
]
Tokens = Annotated[
    Amounts, typer.Option(metavar=_PER, help="Tokens of prompts and answers together.")
]
InputTokens = Annotated[Amounts, typer.Option(metavar=_PER, help="Tokens of prompts.")]
OutputTokens = Annotated[Amounts, typer.Option(metavar=_PER, help="Tokens of answers.")]
Cost = Annotated[
    Amounts,
    typer.Option(
        metavar=_PER,
        help="In your currency, by the prices of models, or of a tool's runs: 25.50/day.",
    ),
]
Concurrency = Annotated[
    int | None, typer.Option(metavar="N", help="So many requests, or runs, at a time.")
]
Mode = Annotated[
    str,
    typer.Option(
        metavar="MODE",
        help=(
            "For nodes that are cut off from the majority. strict: they go on with what stands with them; never more than the "
            "limit in all. balanced: with their fair part; up to a quarter more in all. available: each side goes on alone; "
            "up to a half more for each further side."
        ),
    ),
]
Standing = Annotated[
    float,
    typer.Option(
        metavar="PART",
        help=(
            "What part of it stands with the nodes, evenly, 0 to 1: what they go on with when they are cut off or have no "
            "owner. 0: every request needs the owner. A node that dies takes at most PART / number of nodes with it."
        ),
    ),
]
Reserve = Annotated[str, typer.Option(metavar="HOW", help="For an answer: estimate or worst_case.")]
OnExhausted = Annotated[
    str, typer.Option(metavar="WHAT", help="In the middle of an answer: debt or finish.")
]
CachedWeight = Annotated[
    float, typer.Option(metavar="PART", help="What a cached token of a prompt counts, 0 to 1.")
]
Volatile = Annotated[
    bool, typer.Option("--volatile", help="May begin anew if the whole cluster restarts.")
]
Note = Annotated[str, typer.Option(metavar="TEXT", help="For whoever lists the limits.")]


@limits_app.command("list")
def list_limits(context: typer.Context) -> None:
    """List the limits of the cluster, as they are defined."""
    options = options_of(context)
    answer = options.client.ask("GET", *_LIMITS)
    if options.as_json:
        print_json(answer)
        return
    rows: Sequence[Mapping[str, Any]] = answer["limits"]
    print_table(_COLUMNS, map(list_row, rows), empty="There is no limit.")
    for scope in answer["unreadable"]:
        tell(f"{scope} has a limit that this node's version cannot read: it limits nothing there")


@limits_app.command("show")
def show(
    context: typer.Context, named: Named = "", scope: Scope = "", watch: Watch = False
) -> None:
    """Show one limit, and what is spent of it on every node in this window; without a scope that of all requests.

    \b
    smg-admin limits show tenant=acme --watch
    smg-admin limits show 'tenant=*'
    """
    options = options_of(context)
    path = (*_LIMITS, _scope(named, scope))

    def draw() -> str:
        shown = options.client.ask("GET", *path)
        return json.dumps(shown) if options.as_json else draw_limit(shown)

    if watch:
        watched(draw)
    elif options.as_json:
        print_json(options.client.ask("GET", *path))
    else:
        print(draw())


@limits_app.command("set")
def set_limit(
    context: typer.Context,
    named: Named = "",
    scope: Scope = "",
    requests: Requests = None,
    tokens: Tokens = None,
    input_tokens: InputTokens = None,
    output_tokens: OutputTokens = None,
    cost: Cost = None,
    concurrency: Concurrency = None,
    mode: Mode = "balanced",
    standing: Standing = 0.5,
    reserve: Reserve = "estimate",
    on_exhausted: OnExhausted = "debt",
    cached_weight: CachedWeight = 1.0,
    volatile: Volatile = False,
    note: Note = "",
    if_version: IfVersion = "",
) -> None:
    """Set a limit on every node, in place of the one that its scope has; it holds for all of them together.

    Whose requests has to be said; all those of the whole cluster together are `global`.
    Windows are second, minute, hour, day, or such as 10s, 5m, 2h, 7d; days are those of UTC.

    Of 600/minute on three nodes, --standing 0.5 leaves 100 with each node. One that is cut off goes on with its 100, one
    that dies takes them with it; the rest, and what quiet nodes do not need, can be spent at any node.

    \b
    smg-admin limits set --scope tenant=acme --requests 60/minute --requests 5/second --mode strict
    smg-admin limits set --scope 'tenant=*,model=llama-3.1-8b' --tokens 100000/minute --concurrency 8
    smg-admin limits set --scope provider=openai-a --requests 10/second --mode strict
    smg-admin limits set --scope 'tenant=*,tool=search/*' --requests 100/day --cost 2.50/day
    """
    options = options_of(context)
    said = {
        "requests": requests,
        "tokens": tokens,
        "input_tokens": input_tokens,
        "output_tokens": output_tokens,
        COST: cost,
    }
    body = {
        "amounts": _amounts(said),
        "concurrency": concurrency,
        "mode": mode,
        "standing": standing,
        "reserve": reserve,
        "on_exhausted": on_exhausted,
        "cached_weight": cached_weight,
        "volatile": volatile,
        "note": note,
    }
    if not body["amounts"] and concurrency is None:
        raise typer.BadParameter("say what is limited: --requests, --tokens, --concurrency, …")
    scope = _said_scope(named, scope, question=_ALL_OF_THEM)
    _set(options, scope, body, if_version)


@limits_app.command("unset")
def unset(
    context: typer.Context, named: Named = "", scope: Scope = "", if_version: IfVersion = ""
) -> None:
    """Take a limit away on every node.

    \b
    smg-admin limits unset tenant=acme
    """
    options = options_of(context)
    scope = _said_scope(named, scope)
    headers = _if_match(if_version or _version(options.client, scope))
    answer = options.client.look("DELETE", *_LIMITS, scope, headers=headers)
    done = _written(options.client, scope, answer)
    if options.as_json:
        print_json(done)
        return
    scope, now = done["limit"]["scope"], done["now"]
    if now is None:
        print(f"{scope} has no limit any more")
    else:
        print(f"{scope} goes by {now['rule']} again: {', '.join(format_limits(now))}")


def _set(options: Options, scope: str, body: Mapping[str, Any], if_version: str) -> None:
    headers = _if_match(if_version or _version(options.client, scope))
    answer = options.client.look("PUT", *_LIMITS, scope, body=body, headers=headers)
    view = _written(options.client, scope, answer)
    if options.as_json:
        print_json(view)
        return
    print(f"{view['scope']} is limited to {', '.join(format_limits(view))}")
    warn_of(view)


def _scope(named: str, scope: str) -> str:
    if named and scope:
        raise typer.BadParameter("say the scope once", param_hint="--scope")
    return named or scope or _ALL


def _said_scope(named: str, scope: str, *, question: str = "") -> str:
    """The scope of a change, which nobody makes for all requests by leaving a word out.

    With a question, somebody at a terminal is asked for that; whoever says no has changed nothing.
    """
    if named or scope:
        return _scope(named, scope)
    if question and sys.stdin.isatty():
        if not confirmed(question):
            raise AdminError("nothing was changed")
        return _ALL
    raise typer.BadParameter(
        "say whose requests: --scope tenant=NAME, key=ID, model=NAME, provider=NAME for its calls, tool=SERVER/TOOL for "
        "runs of it, or --scope global for all requests together",
        param_hint="--scope",
    )


def _amounts(said: Mapping[str, Amounts]) -> list[Mapping[str, Any]]:
    found = []
    for unit, texts in said.items():
        for text in texts or ():
            try:
                found.append(read_amount(unit, text))
            except ValueError as error:
                hint = f"--{unit.replace('_', '-')}"
                raise typer.BadParameter(str(error), param_hint=hint) from None
    return found


def _version(client: AdminClient, scope: str) -> str:
    """The version of this scope's own limit as it is now, 0 if it has none."""
    answer = client.look("GET", *_LIMITS, scope, query={"brief": "true"})
    if answer.status == _MISSING:
        return "0"
    return str(client.taken(answer)["limit"]["version"])


def _if_match(version: str) -> Mapping[str, str]:
    if version != "*" and not (version.isascii() and version.isdecimal()):
        raise typer.BadParameter("a version is a number, or *", param_hint="--if-version")
    return {"if-match": "*" if version == "*" else f'"{version}"'}


def _written(client: AdminClient, scope: str, answer: Answer) -> Mapping[str, Any]:
    """What a write did; AdminError that shows what is there if it was refused for that."""
    if answer.status == _STALE and isinstance(answer.body, dict) and "current" in answer.body:
        current = answer.body["current"]
        there = "it is not set" if current is None else ", ".join(format_limits(current))
        raise AdminError(
            f"the limit of {scope} was changed by somebody else: {there}; nothing was written"
        )
    done: Mapping[str, Any] = client.taken(answer)
    return done
