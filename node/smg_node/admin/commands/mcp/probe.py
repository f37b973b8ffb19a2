"""Probe command, `smg-admin mcp probe`: opens a server of tools as a node would, lists what it offers, calls one."""

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TypeAlias

import typer

from smg_node.admin.client import AdminError
from smg_node.admin.options import options_of
from smg_node.admin.views.output import print_json, tell
from smg_node.admin.views.value_text import read_file, read_key

if TYPE_CHECKING:
    from smg_node.admin.views.mcp_texts import Probe
    from smg_node.mcp.definition import Credential, ServerDefinition

Words: TypeAlias = list[str] | None
Url = Annotated[
    str,
    typer.Argument(
        metavar="URL", help="Where the server is: http://…, https://…", show_default=False
    ),
]
Command = Annotated[
    str,
    typer.Option(metavar="WORDS", help="Instead of a URL: a program to run, with its arguments."),
]
Environment = Annotated[
    Words, typer.Option("--env", metavar="NAME=VALUE", help="A variable for that program.")
]
TransportName = Annotated[
    str, typer.Option(metavar="KIND", help="auto, http, sse; auto asks the server.")
]
Protocol = Annotated[
    str, typer.Option(metavar="REVISION", help="auto, or a revision such as 2025-11-25.")
]
BearerFile = Annotated[
    str, typer.Option(metavar="FILE", help="A file whose first line is a bearer token; - is stdin.")
]
Header = Annotated[
    Words,
    typer.Option(metavar="NAME=FILE", help="A header whose value is the first line of a file."),
]
Call = Annotated[str, typer.Option(metavar="TOOL", help="A tool to call.")]
Arguments = Annotated[
    str,
    typer.Option(metavar="JSON", help="Its arguments, an object; @FILE reads them from a file."),
]
CallTimeout = Annotated[
    float,
    typer.Option(min=0.1, max=3600, metavar="SECONDS", help="How long the call may take in all."),
]


def probe(
    context: typer.Context,
    server_url: Url = "",
    command: Command = "",
    environment: Environment = None,
    transport: TransportName = "auto",
    protocol: Protocol = "auto",
    bearer_file: BearerFile = "",
    header: Header = None,
    call: Call = "",
    arguments: Arguments = "{}",
    call_timeout: CallTimeout = 300.0,
) -> None:
    """Open a server from here, say what it speaks and which tools it has, and call one if asked to.

    No node is needed and none is told. A tool may do real things: only --call runs one. Exit code 1 where the server
    cannot be opened or listed, or the call fails.

    \b
    smg-admin mcp probe http://127.0.0.1:8000/mcp
    smg-admin mcp probe https://tools.example/mcp --bearer-file token --call search --arguments '{"q": "x"}'
    smg-admin mcp probe --command 'python server.py'
    """
    # What speaks with servers is imported by who asks one, so that --help is quick.
    import asyncio

    from smg_node.admin.views.last_line import last_line
    from smg_node.admin.views.mcp_texts import draw_probe, failed_words, plain_probe

    definition, credential = _asked(
        server_url, command, environment or [], transport, protocol, bearer_file, header or []
    )
    text = read_file(arguments[1:]) if arguments.startswith("@") else arguments
    options = options_of(context)
    with last_line("smg_node.mcp") as printed:
        found = asyncio.run(
            _probe(definition, credential, call, text, call_timeout, options.client.timeout_s)
        )
    if options.as_json:
        print_json(plain_probe(found))
    elif found.opened is not None:
        print(draw_probe(found))
    if (why := failed_words(found)) is not None:
        # The program's own word for it is better than that it has ended.
        for line in printed if command else ():
            tell(line)
        raise AdminError(why)


def _asked(
    url: str,
    command: str,
    environment: Sequence[str],
    transport: str,
    protocol: str,
    bearer_file: str,
    headers: Sequence[str],
) -> "tuple[ServerDefinition, Credential]":
    """Return the server and what it is shown; a usage error for what cannot be."""
    from smg_node.core.errors import SmgError
    from smg_node.mcp.definition import definition_of, with_headers

    fields: dict[str, Any] = {"name": "probed", "transport": transport, "protocol": protocol}
    if url and command:
        raise typer.BadParameter("either a URL or a program", param_hint="--command")
    shown = {name: read_key(file) for name, file in map(name_and_value, headers)}
    if bearer_file:
        shown["authorization"] = f"Bearer {read_key(bearer_file)}"
    if command and shown:
        raise typer.BadParameter("a program is shown no headers", param_hint="--command")
    try:
        if command:
            program, *rest = shlex.split(command) or [""]
            fields |= {
                "command": program,
                "args": rest,
                "env": dict(map(name_and_value, environment)),
            }
        else:
            fields["url"] = url
        return definition_of(fields), with_headers(shown)
    except SmgError as error:
        _misused(error.message, error.where)
    except ValueError as error:
        _misused(str(error), "--command")


def _misused(message: str, where: str | None) -> NoReturn:
    raise typer.BadParameter(message, param_hint=where)


def name_and_value(word: str) -> tuple[str, str]:
    """Return both sides of NAME=VALUE; a usage error for another word."""
    name, equals, value = word.partition("=")
    if not name or not equals:
        raise typer.BadParameter(f"{word!r} is no NAME=VALUE")
    return name, value


async def _probe(
    definition: "ServerDefinition",
    credential: "Credential",
    tool: str,
    arguments: str,
    call_s: float,
    answer_s: float,
) -> "Probe":
    from smg_node.admin.views.mcp_texts import Probe
    from smg_node.mcp.failures import Failure
    from smg_node.mcp.limits import McpLimits
    from smg_node.mcp.pool import Target, server_pool

    limits = McpLimits(connect_s=answer_s, list_s=answer_s, call_idle_s=call_s, call_total_s=call_s)
    # Servers of the older protocol may know other clients' requests by their ids.
    prefix = f"probe.{_own_number():x}"
    async with server_pool(id_prefix=prefix, limits=limits) as pool:
        target = Target(definition, credential)
        opened = await pool.open(target)
        if isinstance(opened, Failure):
            return Probe(failure=opened)
        listed = await pool.list_tools(target, fresh=True)
        called = None
        if tool and not isinstance(listed, Failure):
            called = await pool.call(target, tool, arguments)
        failed = listed if isinstance(listed, Failure) else None
        tools = None if isinstance(listed, Failure) else listed
        return Probe(opened, tools, failed, tool, called)


def _own_number() -> int:
    from smg_node.system_clock import system_rng

    return system_rng().getrandbits(32)
