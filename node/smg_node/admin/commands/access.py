"""Access commands, `smg-admin access`: issuers of tokens and their keys, subjects that are denied, and roles."""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
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
from smg_node.admin.views.value_text import format_time

access_app = typer.Typer(
    cls=CommandGroup,
    help="Look at and define issuers of tokens and roles, and refuse the tokens of a subject.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

_ACCESS: Final = ("v1", "cluster", "access")
_ROLES_PATH: Final = (*_ACCESS, "roles")
_UNITS_S: Final[Mapping[str, int]] = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_SPAN: Final = re.compile(r"([0-9]{1,9})([smhd])", re.ASCII)
_ISSUERS: Final = ("NAME", "ISSUER", "STATE", "KEYS", "SKIPPED", "FETCHED", "BY", "REFRESHED BY")
_ROLES: Final = ("ROLE", "DEFINED BY", "PERMISSIONS")
_DENIALS: Final = ("ISSUER", "SUBJECT", "TOKENS BEFORE", "UNTIL", "STATE")
_Issuer = Annotated[
    str,
    typer.Argument(metavar="ISSUER", help="As `access issuers` calls it.", show_default=False),
]
_Role = Annotated[
    str,
    typer.Argument(metavar="ROLE", help="As `access roles` calls it.", show_default=False),
]
_Subject = Annotated[
    str, typer.Option("--sub", metavar="SUB", help="What tokens have as `sub`.", show_default=False)
]


@access_app.command("issuers")
def issuers(context: typer.Context) -> None:
    """List the issuers of a node: their keys, how old those are, who fetches them, and what went wrong."""
    options = options_of(context)
    answer = options.client.ask("GET", *_ACCESS, "issuers")
    if options.as_json:
        print_json(answer)
        return
    rows: Sequence[Mapping[str, Any]] = answer["issuers"]
    print_table(_ISSUERS, map(_issuer_row, rows), empty="No issuer is configured (auth.issuers).")
    for line in (line for one in rows for line in _remarks(one)):
        tell(line)
    for name, why in answer["unreadable"].items():
        tell(f"{name}: the cluster's definition is not followed by this node: {why}")


@access_app.command("define")
def define(
    context: typer.Context,
    name: _Issuer,
    file: Annotated[
        str,
        typer.Option(
            "--file",
            "-f",
            metavar="FILE",
            help="YAML or JSON with the fields of auth.issuers.NAME; - is the standard input.",
            show_default=False,
        ),
    ],
    if_version: IfVersion = "",
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Also if nobody could administer the node any more: nobody is admin."
        ),
    ] = False,
) -> None:
    """Define an issuer on every node, at once; in place of what nodes' own settings say of that name.

    Files that it names are read on each node.

    \b
    smg-admin access define corp --file corp.yaml
    """
    options = options_of(context)
    body = read_definition(file, "issuers", name)
    headers = version_of(_shared(options, name, if_version), if_version)
    query = {"force": "true"} if force else None
    answer = options.client.look(
        "PUT", *_ACCESS, "issuers", name, body=body, headers=headers, query=query
    )
    done = written(options.client, f"issuer {name}", answer)
    if options.as_json:
        print_json(done)
        return
    print(f"issuer {name} ({done['issuer']}) is defined, version {done['version']}")
    if done.get("closes"):
        tell(
            "this is the first thing that closes the node: from now on every request needs a token or a key (--key,"
            " --key-file or --token-command for this command)"
        )


@access_app.command("remove")
def remove(
    context: typer.Context,
    name: _Issuer,
    if_version: IfVersion = "",
    force: Annotated[
        bool,
        typer.Option("--force", help="Also the last one, where nothing else closes the cluster."),
    ] = False,
) -> None:
    """Take the cluster's definition of an issuer away; nodes go by their own settings again."""
    options = options_of(context)
    headers = version_of(_shared(options, name, if_version), if_version)
    query = {"force": "true"} if force else None
    answer = options.client.look("DELETE", *_ACCESS, "issuers", name, headers=headers, query=query)
    done = written(options.client, f"issuer {name}", answer)
    if options.as_json:
        print_json(done)
        return
    print(f"the cluster's definition of issuer {name} is gone")
    if done["now"] is not None:
        tell("this node's own settings define it, and count again")


@access_app.command("deny")
def deny(
    context: typer.Context,
    issuer: _Issuer,
    subject: _Subject,
    span: Annotated[
        str,
        typer.Option(
            "--for",
            metavar="SPAN",
            help="For how long, such as 24h or 30d: longer than any of its tokens lives.",
            show_default=False,
        ),
    ],
    before: Annotated[
        str,
        typer.Option(
            metavar="TIME",
            help="Only tokens issued before: now, or a time such as 2027-01-31T12:00:00Z (UTC).",
        ),
    ] = "",
) -> None:
    """Refuse the tokens of a subject on every node, at once.

    With --before now whoever signs in again is let in again.

    \b
    smg-admin access deny corp --sub alice --for 24h
    smg-admin access deny corp --sub alice --before now --for 24h
    """
    options = options_of(context)
    body: dict[str, Any] = {"issuer": issuer, "subject": subject, "for_s": _seconds(span)}
    if before:
        body["before_ms"] = _moment_ms(before)
    made = options.client.ask("POST", *_ACCESS, "denials", body=body)
    if options.as_json:
        print_json(made)
        return
    until = format_time(made["until_ms"])
    print(f"tokens of {made['subject']} ({made['issuer']}) are refused until {until}")


@access_app.command("denied")
def denied(context: typer.Context) -> None:
    """List whose tokens are refused, and until when."""
    options = options_of(context)
    answer = options.client.ask("GET", *_ACCESS, "denials")
    if options.as_json:
        print_json(answer)
        return
    print_table(_DENIALS, map(_denial_row, answer["denials"]), empty="No subject is denied.")


@access_app.command("undo")
def undo(context: typer.Context, issuer: _Issuer, subject: _Subject) -> None:
    """Refuse the tokens of a subject no longer."""
    options = options_of(context)
    done = options.client.ask("DELETE", *_ACCESS, "denials", issuer, subject)
    if options.as_json:
        print_json(done)
        return
    print(f"tokens of {done['subject']} ({done['issuer']}) are good again")


@access_app.command("roles")
def roles(context: typer.Context) -> None:
    """List the roles, where each is defined, and what it may."""
    options = options_of(context)
    answer = options.client.ask("GET", *_ROLES_PATH)
    if options.as_json:
        print_json(answer)
        return
    rows: Sequence[Mapping[str, Any]] = answer["roles"]
    told = [(one["name"], one["source"], " ".join(one["permissions"])) for one in rows]
    print_table(_ROLES, told, empty="There is no role.")
    for name, why in answer["unreadable"].items():
        tell(f"{name}: the cluster's definition is not followed by this node: {why}")


@access_app.command("define-role")
def define_role(
    context: typer.Context,
    name: _Role,
    permissions: Annotated[
        str,
        typer.Option(
            metavar="WORD,…", help="What it may, such as look,workers.", show_default=False
        ),
    ],
    if_version: IfVersion = "",
) -> None:
    """Define a role on every node, at once; in place of what nodes' own settings say of that name.

    Keys that have it may from now on what it says.

    \b
    smg-admin access define-role fleet --permissions look,workers,engines
    """
    options = options_of(context)
    body = {"permissions": [word.strip() for word in permissions.split(",") if word.strip()]}
    headers = version_of(_shared_role(options, name, if_version), if_version)
    answer = options.client.look("PUT", *_ROLES_PATH, name, body=body, headers=headers)
    done = written(options.client, f"role {name}", answer)
    if options.as_json:
        print_json(done)
        return
    print(f"role {name} may {', '.join(done['permissions'])}, version {done['version']}")


@access_app.command("remove-role")
def remove_role(
    context: typer.Context,
    name: _Role,
    if_version: IfVersion = "",
    force: Annotated[
        bool,
        typer.Option("--force", help="Also while it is in use: keys of it then open nothing."),
    ] = False,
) -> None:
    """Take the cluster's definition of a role away; nodes go by their own settings again."""
    options = options_of(context)
    headers = version_of(_shared_role(options, name, if_version), if_version)
    query = {"force": "true"} if force else None
    answer = options.client.look("DELETE", *_ROLES_PATH, name, headers=headers, query=query)
    done = written(options.client, f"role {name}", answer)
    if options.as_json:
        print_json(done)
        return
    print(f"the cluster's definition of role {name} is gone")
    used: Mapping[str, Sequence[str]] = done["used_by"]
    if done["now"] is not None:
        tell("this node's own settings define it, and count again")
    elif any(used.values()):
        counts = ", ".join(f"{len(names)} {what}" for what, names in used.items() if names)
        tell(f"nothing is opened any more by what has it: {counts}")


def _shared_role(options: Options, name: str, if_version: str) -> Mapping[str, Any] | None:
    """Return what the cluster defines as a role, None if it does not; AdminError where the node does not follow that."""
    answer = options.client.ask("GET", *_ROLES_PATH)
    _check_followed(name, answer, if_version)
    rows = answer["roles"]
    found = (one for one in rows if one["name"] == name and one["source"] == "cluster")
    return next(found, None)


def _check_followed(name: str, answer: Mapping[str, Any], if_version: str) -> None:
    """Return if a node follows a definition; AdminError where it does not, so that nobody has seen which version would be
    written over.
    """
    why = answer["unreadable"].get(name)
    if why is not None and not if_version:
        raise AdminError(
            f"this node does not follow the cluster's definition of {name}: {why}; ask a node that does, or write over it"
            " whatever it is: --if-version '*'"
        )


def _shared(options: Options, name: str, if_version: str) -> Mapping[str, Any] | None:
    """Return what the cluster defines as an issuer, None if it does not; AdminError where the node does not follow that."""
    answer = options.client.ask("GET", *_ACCESS, "issuers")
    _check_followed(name, answer, if_version)
    rows = answer["issuers"]
    found = (one for one in rows if one["name"] == name and one["source"] == "cluster")
    return next(found, None)


def _issuer_row(one: Mapping[str, Any]) -> Sequence[object]:
    fetched = "never" if one["fetched_ms"] is None else format_time(one["fetched_ms"])
    counts = (len(one["keys"]), len(one["skipped"]))
    return (
        one["name"], one["issuer"], one["state"], *counts, fetched, one["fetched_by"], one["refreshed_by"]
    )  # fmt: skip


def _remarks(one: Mapping[str, Any]) -> Iterator[str]:
    """Return what of an issuer does not fit into a table: why keys are skipped, what failed last."""
    for key in one["skipped"]:
        named = f"key {key['kid']!r}" if key["kid"] else "a key without an id"
        yield f"{one['name']}: {named} ({key['kind'] or 'of no kind'}) is skipped: {key['reason']}"
    if one["last_error"]:
        when = format_time(one["last_error_ms"])
        yield f"{one['name']}: its keys could not be fetched at {when}: {one['last_error']}"
    if one["introspection_error"]:
        yield f"{one['name']}: it does not answer about tokens: {one['introspection_error']}"


def _denial_row(one: Mapping[str, Any]) -> Sequence[object]:
    before = "all" if one["before_ms"] is None else format_time(one["before_ms"])
    state = "active" if one["active"] else "over"
    return one["issuer"], one["subject"], before, format_time(one["until_ms"]), state


def _seconds(said: str) -> int:
    span = _SPAN.fullmatch(said)
    if span is None or not int(span[1]):
        raise AdminError(f"--for takes 24h, 30d, 90m or 60s, not {said[:40]!r}")
    return int(span[1]) * _UNITS_S[span[2]]


def _moment_ms(said: str) -> int:
    """Return a time in Unix milliseconds; AdminError for what is none."""
    if said == "now":
        return round(datetime.now(UTC).timestamp() * 1000)
    try:
        time = datetime.fromisoformat(said)
    except ValueError:
        raise AdminError(
            f"--before takes now or a time such as 2027-01-31T12:00:00Z, not {said[:40]!r}"
        ) from None
    whole = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
    return round(whole.timestamp() * 1000)
