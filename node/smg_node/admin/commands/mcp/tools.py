"""Tool commands, `smg-admin mcp tools` and `call`: what servers of the cluster offer, and a call by an operator."""

import json
from collections.abc import Mapping
from typing import Annotated, Any, Final

import typer

from smg_node.admin.client import AdminError
from smg_node.admin.commands.mcp.servers import SERVERS
from smg_node.admin.options import options_of
from smg_node.admin.views.output import print_json, tell
from smg_node.admin.views.tool_server_texts import draw_tools, outcome_text
from smg_node.admin.views.value_text import read_file, read_key

_LIST_S: Final = 60.0
_MORE_S: Final = 10.0
"""Beyond what a node waits for a tool, so that its own word for that comes first."""

ServerName = Annotated[
    str,
    typer.Argument(metavar="SERVER", help="A server's name; all if unsaid.", show_default=False),
]
Called = Annotated[
    str, typer.Argument(metavar="SERVER", help="A server's name.", show_default=False)
]
ToolName = Annotated[
    str,
    typer.Argument(metavar="TOOL", help="The tool, as its server calls it.", show_default=False),
]
Arguments = Annotated[
    str,
    typer.Option(metavar="JSON", help="Its arguments, an object; @FILE reads them from a file."),
]
AuthorizationFile = Annotated[
    str,
    typer.Option(
        metavar="FILE", help="For servers that want a request's own token: its first line is one."
    ),
]
CallTimeout = Annotated[
    float,
    typer.Option(min=0.1, max=86_400, metavar="SECONDS", help="How long to wait for the tool."),
]


def tools(context: typer.Context, server: ServerName = "") -> None:
    """List what servers offer, asked now by the node; tools that are left out are named with the reason.

    Exit code 1 where a server does not list its tools.

    \b
    smg-admin mcp tools
    smg-admin mcp tools docs --json
    """
    options = options_of(context)
    client = options.client
    named = [one["name"] for one in client.ask("GET", *SERVERS)["servers"]]
    found: list[Mapping[str, Any]] = []
    troubles: list[str] = []
    for name in [server] if server else named:
        answer = client.look("GET", *SERVERS, name, "tools", timeout_s=_LIST_S)
        try:
            found.append(client.taken(answer))
        except AdminError as error:
            troubles.append(f"{name}: {error}")
    if options.as_json:
        print_json({"servers": found, "troubles": troubles})
    elif found or not troubles:
        print(draw_tools(found))
    if len(troubles) == 1 and server:
        raise AdminError(troubles[0].removeprefix(f"{server}: "))
    for line in troubles:
        tell(line)
    if troubles:
        raise AdminError(f"{len(troubles)} of {len(named)} servers do not list their tools")


def call(
    context: typer.Context,
    server: Called,
    tool: ToolName,
    arguments: Arguments = "{}",
    authorization_file: AuthorizationFile = "",
    call_timeout: CallTimeout = 300.0,
) -> None:
    """Call a tool through a node, as a model would; it may do real things. The audit log keeps that it was called.

    Exit code 1 where the call fails, or the tool says that it failed.

    \b
    smg-admin mcp call docs search --arguments '{"query": "limits"}'
    smg-admin mcp call docs search --arguments @question.json --json
    """
    options = options_of(context)
    body: dict[str, Any] = {"tool": tool, "arguments": _object(arguments)}
    if authorization_file:
        body["authorization"] = read_key(authorization_file)
    outcome = options.client.ask(
        "POST", *SERVERS, server, "call", body=body, timeout_s=call_timeout + _MORE_S
    )
    if options.as_json:
        print_json(outcome)
    elif text := outcome_text(outcome):
        print(text)
    if (error := outcome["error"]) is not None:
        what = error.get("message") or "the tool says that it failed"
        code = f" {error['code']}" if error.get("code") else ""
        raise AdminError(f"{server}/{tool}: {what} ({error['type']}{code})")


def _object(arguments: str) -> Mapping[str, Any]:
    text = read_file(arguments[1:]) if arguments.startswith("@") else arguments
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise typer.BadParameter(f"no JSON: {error}", param_hint="--arguments") from None
    if not isinstance(found, dict):
        raise typer.BadParameter("arguments are a JSON object", param_hint="--arguments")
    return found
