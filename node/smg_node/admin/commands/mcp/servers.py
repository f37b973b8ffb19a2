"""Server commands, `smg-admin mcp servers`: servers of tools that the whole cluster knows."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, TypeAlias

import typer

from smg_node.admin.client import AdminError
from smg_node.admin.commands.mcp.probe import name_and_value
from smg_node.admin.commands.providers.definition_writes import (
    IfVersion,
    present,
    read_definition,
    version_of,
    written,
)
from smg_node.admin.options import CommandGroup, options_of
from smg_node.admin.views.output import print_json, print_table, tell
from smg_node.admin.views.tool_server_texts import SERVER_COLUMNS, draw_server, server_row
from smg_node.admin.views.value_text import read_key

SERVERS: Final = ("v1", "mcp", "servers")
servers_app = typer.Typer(
    cls=CommandGroup,
    help="Define servers of tools for every node: where they are, what lets nodes in, who may use them.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Words: TypeAlias = list[str] | None
Name = Annotated[
    str,
    typer.Argument(metavar="NAME", help="What requests call the server: docs.", show_default=False),
]
Source = Annotated[
    str,
    typer.Argument(
        metavar="URL|FILE",
        help="Where it is (https://…), or a YAML or JSON file of its fields, or of `servers:`; - is stdin.",
        show_default=False,
    ),
]
BearerFile = Annotated[
    str,
    typer.Option(
        metavar="FILE", help="A file here whose first line is a token: it is sealed, for all nodes."
    ),
]
Header = Annotated[
    Words,
    typer.Option(
        metavar="NAME=FILE", help="A header whose value is the first line of a file here; again."
    ),
]
Auth = Annotated[
    str, typer.Option(metavar="KIND", help="none, or client: requests bring their own token.")
]
TokenUrl = Annotated[
    str, typer.Option(metavar="URL", help="Of an issuer of tokens (client credentials).")
]
ClientId = Annotated[str, typer.Option(metavar="ID", help="Who asks that issuer.")]
ClientSecretFile = Annotated[
    str, typer.Option(metavar="FILE", help="A file here whose first line is that client's secret.")
]
Scope = Annotated[str, typer.Option(metavar="WORDS", help="What its tokens are to be good for.")]
Transport = Annotated[str, typer.Option(metavar="KIND", help="auto, http or sse.")]
Protocol = Annotated[
    str, typer.Option(metavar="REVISION", help="auto, or a revision such as 2025-11-25.")
]
Tenant = Annotated[
    Words, typer.Option(metavar="NAME", help="Only this tenant may use it; again for another.")
]
ApiKey = Annotated[
    Words, typer.Option(metavar="ID", help="Only this API key may use it; again for another.")
]
Trust = Annotated[
    str, typer.Option(metavar="LEVEL", help="trusted, standard, untrusted or sandboxed.")
]
Session = Annotated[str, typer.Option(metavar="SCOPE", help="shared, thread or call.")]
Forward = Annotated[
    Words, typer.Option(metavar="NAME", help="A header of clients that it is told; again.")
]
Builtin = Annotated[
    Words,
    typer.Option(
        metavar="KIND=TOOL", help="Its tool that does web_search, web_fetch, file_search and so on."
    ),
]

Pin = Annotated[
    bool | None,
    typer.Option(
        "--pin/--no-pin",
        help="Keep what its tools say of themselves now: runs of one that it changes later must be allowed.",
        show_default=False,
    ),
]


@servers_app.command("list")
def list_servers(context: typer.Context) -> None:
    """List the servers of tools that count on this node. Secrets are never shown.

    A server of the cluster goes before one of that name in a node's own file.
    """
    options = options_of(context)
    answer = options.client.ask("GET", *SERVERS)
    if options.as_json:
        print_json(answer)
        return
    rows: Sequence[Mapping[str, Any]] = answer["servers"]
    print_table(SERVER_COLUMNS, map(server_row, rows), empty="There is no server of tools.")
    for key, why in answer["unreadable"].items():
        tell(f"{key} is not followed by this node: {why}")


@servers_app.command("show")
def show(context: typer.Context, name: Name) -> None:
    """Show one server: its definition, and where its secrets come from.

    A secret is shown as file:/PATH or env:NAME, or as (set) for a value.

    \b
    smg-admin mcp servers show docs
    smg-admin mcp servers show docs --json
    """
    options = options_of(context)
    view = options.client.ask("GET", *SERVERS, name)
    if options.as_json:
        print_json(view)
    else:
        print(draw_server(view))


@servers_app.command("set")
def set_server(
    context: typer.Context,
    name: Name,
    source: Source = "",
    auth: Auth = "",
    bearer_file: BearerFile = "",
    header: Header = None,
    token_url: TokenUrl = "",
    client_id: ClientId = "",
    client_secret_file: ClientSecretFile = "",
    scope: Scope = "",
    transport: Transport = "",
    protocol: Protocol = "",
    tenant: Tenant = None,
    api_key: ApiKey = None,
    trust: Trust = "",
    session: Session = "",
    forward: Forward = None,
    builtin: Builtin = None,
    pin: Pin = None,
    if_version: IfVersion = "",
) -> None:
    """Define a server of tools on every node, by a URL and flags, or by a file; what is not named stays as it is.

    A file replaces the whole definition. Secrets that are not given stay, as long as the server stays where it is.
    In a file a secret is the value itself, or file:/PATH or env:NAME, which every node reads itself. Programs
    (command) stand in a node's own file (--mcp), because they run there.

    \b
    smg-admin mcp servers set docs https://docs.example/mcp --bearer-file token
    smg-admin mcp servers set docs --tenant acme --trust trusted
    smg-admin mcp servers set crm https://crm.example/mcp --header x-api-key=key
    smg-admin mcp servers set search servers.yaml
    """
    fields: dict[str, Any] = {
        "transport": transport, "protocol": protocol, "trust": trust, "session": session,
        "tenants": tenant, "keys": api_key, "forward_headers": forward,
        "builtin": dict(map(name_and_value, builtin or [])),
    }  # fmt: skip
    flags = {key: value for key, value in fields.items() if value}
    if pin is not None:
        flags["pin"] = pin
    issuer = {"token_url": token_url, "client_id": client_id, "scope": scope}
    shown = _auth(auth, bearer_file, header or [], issuer, client_secret_file)
    if shown is not None:
        flags["auth"] = shown
    is_url = source.startswith(("http://", "https://"))
    if "://" in source and not is_url:
        why = f"the URL of a server begins with http:// or https://, not {source[:60]!r}"
        raise typer.BadParameter(why, param_hint="URL|FILE")
    if is_url:
        flags["url"] = source
    _write(context, name, "" if is_url else source, flags, if_version)


@servers_app.command("remove")
def remove(context: typer.Context, name: Name, if_version: IfVersion = "") -> None:
    """Take a server of tools away on every node, with its secrets; calls that are under way end.

    \b
    smg-admin mcp servers remove docs
    """
    options = options_of(context)
    headers = version_of(present(options.client, *SERVERS, name), if_version)
    answer = options.client.look("DELETE", *SERVERS, name, headers=headers)
    done = written(options.client, name, answer)
    if options.as_json:
        print_json(done)
        return
    print(f"{name} is no server of tools of the cluster any more")
    if done["now"] is not None:
        tell(
            "the node that was asked has one of that name in its own file, which counts there again"
        )


def _write(
    context: typer.Context, name: str, file: str, flags: Mapping[str, Any], if_version: str
) -> None:
    """Write a definition, and say what is one now."""
    options = options_of(context)
    seen = present(options.client, *SERVERS, name)
    if file and flags:
        raise typer.BadParameter("a file says everything: no flags beside it")
    body = read_definition(file, "servers", name) if file else _changed(name, seen, flags)
    headers = version_of(seen, if_version)
    answer = options.client.look("PUT", *SERVERS, name, body=body, headers=headers)
    view = written(options.client, name, answer)
    if options.as_json:
        print_json(view)
        return
    print(f"{name} is a server of tools on every node (version {view['version']})")
    tell(f"to see what it offers: smg-admin mcp tools {name}")


def _auth(
    kind: str,
    bearer_file: str,
    headers: Sequence[str],
    issuer: Mapping[str, str],
    secret_file: str,
) -> Any:
    """Return what lets nodes in, None where no flag says anything of it."""
    ways = [bool(kind), bool(bearer_file), bool(headers), any(issuer.values()) or bool(secret_file)]
    if sum(ways) > 1:
        raise typer.BadParameter(
            "one way in: --auth, --bearer-file, --header, or an issuer of tokens"
        )
    if bearer_file:
        return {"kind": "bearer", "token": read_key(bearer_file)}
    if headers:
        pairs = dict(map(name_and_value, headers))
        shown = {name: read_key(file) for name, file in pairs.items()}
        return {"kind": "headers", "headers": shown}
    if ways[3]:
        told = {key: word for key, word in issuer.items() if word}
        secret = {"client_secret": read_key(secret_file)} if secret_file else {}
        return {"kind": "client_credentials", **told, **secret}
    return kind or None


def _changed(
    name: str, seen: Mapping[str, Any] | None, flags: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Return the definition that is there with what flags name; AdminError where neither says anything."""
    if not flags:
        raise AdminError(f"say what {name} is: a URL, a file, or flags (--help)")
    before: dict[str, Any] = dict(seen["spec"]) if seen is not None else {}
    if "pin" in flags:
        # What was pinned before is not what is to be pinned now.
        before.pop("pinned", None)
    own = flags.get("auth")
    if isinstance(own, dict) and own.get("kind") == "client_credentials":
        held = before.get("auth")
        if isinstance(held, dict) and held.get("kind") == "client_credentials":
            return {**before, **flags, "auth": {**held, **own}}
    return {**before, **flags}
