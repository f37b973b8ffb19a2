"""Config commands, `smg-admin config`: settings of the whole cluster, read and changed while it
runs.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

import typer

from smg_node.admin.client import AdminClient, AdminError, Answer
from smg_node.admin.options import CommandGroup, options_of
from smg_node.admin.views.config_views import known_row, one_side, set_row, show_setting, warn_of
from smg_node.admin.views.output import print_json, print_table, tell
from smg_node.admin.views.value_text import (
    format_time,
    format_value,
    read_file,
    read_value,
    read_value_list,
)

config_app = typer.Typer(
    cls=CommandGroup,
    help="See and change the settings of the whole cluster while it runs.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

_SETTINGS: Final = ("v1", "cluster", "settings")
_STALE: Final = 409

Key = Annotated[
    str,
    typer.Argument(
        metavar="KEY", help="As `config list --all` shows it: routing.policy.", show_default=False
    ),
]
IfVersion = Annotated[
    str,
    typer.Option(
        metavar="VERSION",
        help="Only if this version is there: 0 if none may be, * for any. Else the one seen just now.",
    ),
]


# ── Seeing ───────────────────────────────────────────────────────────────────


@config_app.command("list")
def list_settings(
    context: typer.Context,
    everything: Annotated[
        bool, typer.Option("--all", help="Also what is not set, with what it may be.")
    ] = False,
) -> None:
    """List what is set for the whole cluster; with --all all that can be set without a restart.

    A cluster setting goes before what a node was told by its file, environment or flags; `config unset`
    lets each node go back to its own word.
    """
    options = options_of(context)
    query = {"all": "true"} if everything else None
    answer = options.client.ask("GET", *_SETTINGS, query=query)
    if options.as_json:
        print_json(answer)
        return
    rows: Sequence[Mapping[str, Any]] = answer["settings"]
    if everything:
        print_table(("KEY", "VALUE", "FROM", "RANGE", "MEANING"), map(known_row, rows), empty="")
    else:
        print_table(
            ("KEY", "VALUE", "VERSION", "SET ON", "WHEN", "NOTE"),
            map(set_row, rows),
            empty="Nothing is set for the cluster: every node follows its own configuration.",
        )
    if not answer["same"]:
        tell(
            "not all members run the same settings; `smg-admin cluster members` shows their hashes"
        )


@config_app.command("get")
def get(context: typer.Context, key: Key) -> None:
    """Show one setting: the cluster's value, this node's own, and which of them counts.

    \b
    smg-admin config get routing.policy
    smg-admin config get models/llama-3.1-8b/aliases --json
    """
    options = options_of(context)
    show_setting(options, _setting(options.client, key))


@config_app.command("diff")
def diff(
    context: typer.Context,
    node: Annotated[
        str, typer.Option(metavar="NODE", help="Compare with what this member runs.")
    ] = "",
) -> None:
    """Show where this node's own configuration differs from the cluster's settings.

    With --node: where what this node runs differs from what that one runs.
    """
    options = options_of(context)
    query = {"node": node} if node else None
    answer = options.client.ask("GET", *_SETTINGS, "diff", query=query)
    if options.as_json:
        print_json(answer)
        return
    other = str(answer["with"]).upper()
    print_table(
        ("KEY", str(answer["node"]).upper(), "FROM", other, "FROM"),
        (
            (
                row["key"],
                format_value(row["left"]),
                row["left_source"],
                format_value(row["right"]),
                row["right_source"],
            )
            for row in answer["differences"]
        ),
        empty="There is no difference.",
    )


@config_app.command("history")
def history(
    context: typer.Context,
    key: Annotated[str, typer.Option(metavar="KEY", help="Only of this setting.")] = "",
    limit: Annotated[int, typer.Option(min=1, max=1000, metavar="N", help="At most.")] = 100,
) -> None:
    """List the latest changes of settings on any node, newest first."""
    options = options_of(context)
    query = {"limit": str(limit), **({"key": key} if key else {})}
    changes = options.client.ask("GET", *_SETTINGS, "history", query=query)["changes"]
    if options.as_json:
        print_json(changes)
        return
    print_table(
        ("CHANGE", "TIME", "ON", "BY", "KEY", "BEFORE", "AFTER"),
        (
            (
                change["id"],
                format_time(change["time_ms"]),
                change["node"],
                f"{change['who']} from {change['address']}",
                change["key"],
                one_side(change["before"]),
                one_side(change["after"]),
            )
            for change in changes
        ),
        empty="No setting was ever changed.",
    )


# ── Changing ─────────────────────────────────────────────────────────────────


# A negative number is no option; what looks like one is refused below.
@config_app.command("set", context_settings={"ignore_unknown_options": True})
def set_setting(
    context: typer.Context,
    key: Key,
    value: Annotated[
        list[str],
        typer.Argument(
            metavar="VALUE",
            help="JSON, or text as it is; a list word by word.",
            show_default=False,
        ),
    ],
    if_version: IfVersion = "",
) -> None:
    """Set it on every node, at once and without a restart.

    It is refused if somebody else changed it meanwhile.

    \b
    smg-admin config set routing.policy round_robin
    smg-admin config set workers.probe_interval_s 2.5
    smg-admin config set telemetry.access_log false
    smg-admin config set models/llama-3.1-8b/aliases chat default-model
    """
    for word in value:
        if word.startswith("--"):
            raise typer.BadParameter(f"no such option: {word[:64]}", param_hint="VALUE")
    options = options_of(context)
    seen = _setting(options.client, key)
    body = {"value": _typed(value, str(seen["about"].get("kind", "")))}
    version = if_version or str(seen["version"])
    answer = options.client.look("PUT", *_path(key), body=body, headers=_if_match(version))
    view = _written(options.client, key, answer)
    if options.as_json:
        print_json(view)
        return
    print(f"{key} is {format_value(view['value'])} on every node (version {view['version']})")
    warn_of(view)


@config_app.command("unset")
def unset(context: typer.Context, key: Key, if_version: IfVersion = "") -> None:
    """Let every node go back to its own word: its flag, environment, file or the default.

    \b
    smg-admin config unset routing.policy
    """
    options = options_of(context)
    version = if_version or str(_setting(options.client, key)["version"])
    answer = options.client.look("DELETE", *_path(key), headers=_if_match(version))
    view = _written(options.client, key, answer)
    if options.as_json:
        print_json(view)
    else:
        own = format_value(view["own"])
        print(f"{key} is each node's own again; {own} on this one")


@config_app.command("rollback")
def rollback(
    context: typer.Context,
    change: Annotated[
        str,
        typer.Argument(metavar="CHANGE", help="As `config history` shows it.", show_default=False),
    ],
    to: Annotated[
        bool, typer.Option("--to", help="Undo all changes after this one, instead of this one.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Also if the setting was changed again since.")
    ] = False,
) -> None:
    """Undo a change of a setting; with --to all changes that came after it."""
    options = options_of(context)
    body = {"to" if to else "change": change, **({"force": True} if force else {})}
    restored = options.client.ask("POST", *_SETTINGS, "rollback", body=body)["restored"]
    if options.as_json:
        print_json(restored)
        return
    for view in restored:
        value = format_value(view["value"]) if view["is_set"] else "each node's own"
        print(f"{view['key']} is {value} again")
    if not restored:
        print("nothing was changed since")


@config_app.command("validate")
def validate(
    context: typer.Context,
    pairs: Annotated[
        list[str] | None,
        typer.Argument(metavar="KEY=VALUE…", help="What would be set.", show_default=False),
    ] = None,
    file: Annotated[
        str,
        typer.Option(metavar="FILE", help="A JSON object of settings; - is the standard input."),
    ] = "",
) -> None:
    """Say what is wrong with settings, without setting them. Exit code 1 if anything is.

    \b
    smg-admin config validate routing.policy=round_robin workers.retry_s=2
    smg-admin config validate --file settings.json
    """
    options = options_of(context)
    values = {**_of_file(file), **_of_pairs(pairs or [])}
    if not values:
        raise typer.BadParameter("say KEY=VALUE, or --file", param_hint="KEY=VALUE")
    answer = options.client.ask("POST", *_SETTINGS, "validate", body={"settings": values})
    if options.as_json:
        print_json(answer)
    elif answer["valid"]:
        print(f"{len(values)} {'setting is' if len(values) == 1 else 'settings are'} fine")
    for problem in answer["problems"]:
        tell(f"{problem['key']}: {problem['message']}")
    raise typer.Exit(0 if answer["valid"] else 1)


# ── Between ──────────────────────────────────────────────────────────────────


def _path(key: str) -> tuple[str, ...]:
    return (*_SETTINGS, key)


def _setting(client: AdminClient, key: str) -> Mapping[str, Any]:
    view: Mapping[str, Any] = client.ask("GET", *_path(key))
    return view


def _if_match(version: str) -> Mapping[str, str]:
    if version != "*" and not (version.isascii() and version.isdecimal()):
        raise typer.BadParameter("a version is a number, or *", param_hint="--if-version")
    return {"if-match": "*" if version == "*" else f'"{version}"'}


def _written(client: AdminClient, key: str, answer: Answer) -> Mapping[str, Any]:
    """The setting after a write; AdminError that shows what is there if it was refused for that."""
    current = answer.body.get("current") if isinstance(answer.body, dict) else None
    if answer.status == _STALE and isinstance(current, dict):
        said = (
            f"is {format_value(current.get('value'))}, version {current.get('version')}, set on"
            f" {current.get('owner')} at {format_time(current.get('time_ms', 0))}"
            if current.get("is_set")
            else "is not set"
        )
        raise AdminError(f"{key} was changed by somebody else: it {said}; nothing was written")
    view: Mapping[str, Any] = client.taken(answer)
    return view


def _typed(words: list[str], kind: str) -> Any:
    """What was typed, in the type that the setting has."""
    if kind == "words":
        return read_value_list(words)
    if len(words) > 1:
        raise typer.BadParameter("this setting takes one value", param_hint="VALUE")
    return words[0] if kind in ("text", "choice") else read_value(words[0])


def _of_pairs(pairs: list[str]) -> dict[str, Any]:
    values = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not key or not equals:
            raise typer.BadParameter(f"{pair!r} is not KEY=VALUE", param_hint="KEY=VALUE")
        values[key] = read_value(value)
    return values


def _of_file(file: str) -> dict[str, Any]:
    if not file:
        return {}
    try:
        values = json.loads(read_file(file))
    except (ValueError, RecursionError):
        raise AdminError(f"{file} is not JSON") from None
    if not isinstance(values, dict):
        raise AdminError(f"{file} must hold a JSON object of settings")
    return values
