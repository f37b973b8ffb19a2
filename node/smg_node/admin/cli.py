"""CLI of operators, the `smg-admin` command: parses arguments and loads the chosen sub-command.

Exit codes: 0 ok, 1 failed, 2 bad usage. Only typer is imported to show a help text: what speaks HTTP or
draws tables is imported by the command that needs it.
"""

import os
import sys
from collections.abc import Sequence
from typing import Annotated, Final, TypeAlias

import typer
from typer.completion import (  # type: ignore[attr-defined]  # public, but in no __all__
    completion_init,
)

from smg_node import __version__
from smg_node.admin.client import AdminClient, AdminError, Trust, with_scheme
from smg_node.admin.commands.access import access_app
from smg_node.admin.commands.audit import audit, sessions_app
from smg_node.admin.commands.cluster import cluster_app
from smg_node.admin.commands.completion import PROGRAM, completion
from smg_node.admin.commands.config import config_app
from smg_node.admin.commands.db import db_app
from smg_node.admin.commands.discovery.discovery import discovery_app
from smg_node.admin.commands.explain import explain
from smg_node.admin.commands.keys.keys import keys_app
from smg_node.admin.commands.limits import limits_app
from smg_node.admin.commands.mcp.mcp import mcp_app
from smg_node.admin.commands.overview import loads, models_app, status
from smg_node.admin.commands.providers.prices import prices_app
from smg_node.admin.commands.providers.providers import providers_app
from smg_node.admin.commands.providers.routes import routes_app
from smg_node.admin.commands.usage import usage
from smg_node.admin.commands.workers import workers_app
from smg_node.admin.options import CommandGroup, Options, hoisted
from smg_node.admin.top.command import top
from smg_node.admin.views.output import tell
from smg_node.admin.views.value_text import read_key

_FAILED: Final = 1
_URL: Final = "http://127.0.0.1:30000"
_EPILOG: Final = "The flags above may also stand behind the sub-command. Exit codes: 0 ok, 1 failed, 2 bad usage."


_Key: TypeAlias = Annotated[
    str,
    typer.Option(
        envvar=["SMG_ADMIN_KEY", "SMG_KEY"],
        metavar="KEY",
        help="An operator's or administrator's key; needed once an admin key exists.",
    ),
]
_KeyFile: TypeAlias = Annotated[
    str,
    typer.Option(
        envvar="SMG_KEY_FILE",
        metavar="FILE",
        help="A file with that key in its first line; nobody reads it off the command line.",
    ),
]
_CaFile: TypeAlias = Annotated[
    str,
    typer.Option(
        envvar="SMG_CA_FILE",
        metavar="FILE",
        help="Authorities whose word a node's certificate is believed on; without it this machine's.",
    ),
]
_ServerName: TypeAlias = Annotated[
    str,
    typer.Option(
        envvar="SMG_SERVER_NAME",
        metavar="HOST",
        help="The host that a node's certificate must be for, where that is not the URL's.",
    ),
]
_TokenCommand: TypeAlias = Annotated[
    str,
    typer.Option(
        envvar="SMG_TOKEN_COMMAND",
        metavar="CMD",
        help="A program, with its arguments and without a shell, that prints a token (10 s, 64 KiB): run when there is none,"
        " when the token has ended, and when the node refuses it once.",
    ),
]
_CertFile: TypeAlias = Annotated[
    str,
    typer.Option(
        envvar="SMG_CERT_FILE",
        metavar="FILE",
        help="A certificate to show to nodes that ask for one.",
    ),
]
_CertKeyFile: TypeAlias = Annotated[
    str,
    typer.Option(
        envvar="SMG_CERT_KEY_FILE",
        metavar="FILE",
        help="Its private key, unless that is in the same file.",
    ),
]


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"{PROGRAM} {__version__}")
        raise typer.Exit


def _root(
    context: typer.Context,
    urls: Annotated[
        list[str] | None,
        typer.Option(
            "--url",
            envvar="SMG_ADMIN_URL",
            metavar="URL",
            help="The node to ask, http:// if unsaid, or unix:/PATH of its socket for operators; again for others that"
            f" top may turn to.  [default: {_URL}]",
            show_default=False,
        ),
    ] = None,
    key: _Key = "",
    key_file: _KeyFile = "",
    token_command: _TokenCommand = "",
    ca_file: _CaFile = "",
    server_name: _ServerName = "",
    cert_file: _CertFile = "",
    cert_key_file: _CertKeyFile = "",
    as_json: Annotated[bool, typer.Option("--json", help="Answer in JSON.")] = False,
    timeout_s: Annotated[
        float,
        typer.Option(
            "--timeout",
            min=0.1,
            max=3600,
            metavar="SECONDS",
            help="How long to wait for an answer.",
        ),
    ] = 10.0,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Look after an smg-node: its cluster, workers, settings, models and health."""
    tokens = None
    if token_command:
        if key or key_file:
            raise typer.BadParameter(
                "a key is given as well; give one of them", param_hint="--token-command"
            )
        from smg_node.admin.token_command import TokenCommand
        from smg_node.system_clock import SystemClock

        tokens = TokenCommand(token_command, SystemClock().now_ms)
    if not key and key_file:
        key = read_key(key_file)
    named = [with_scheme(url.rstrip("/")) for url in urls or [_URL]]
    if len(named) > 1 and context.invoked_subcommand != "top":
        raise typer.BadParameter("only top turns to several nodes", param_hint="--url")
    trust = Trust(ca_file, cert_file, cert_key_file, server_name)
    context.obj = Options(AdminClient(named[0], key, timeout_s, trust, tokens), as_json, named)


def build_app() -> typer.Typer:
    """Return the whole command, ready to be called."""
    app = typer.Typer(
        cls=CommandGroup,
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(epilog=_EPILOG)(_root)
    app.command("status")(status)
    app.add_typer(workers_app, name="workers")
    app.add_typer(cluster_app, name="cluster")
    app.add_typer(discovery_app, name="discovery")
    app.add_typer(config_app, name="config")
    app.add_typer(db_app, name="db")
    app.add_typer(access_app, name="access")
    app.add_typer(keys_app, name="keys")
    app.add_typer(limits_app, name="limits")
    app.add_typer(mcp_app, name="mcp")
    app.add_typer(models_app, name="models")
    app.add_typer(providers_app, name="providers")
    app.add_typer(routes_app, name="routes")
    app.add_typer(prices_app, name="prices")
    app.add_typer(sessions_app, name="sessions")
    app.command("audit")(audit)
    app.command("explain")(explain)
    app.command("loads")(loads)
    app.command("top")(top)
    app.command("usage")(usage)
    app.command("completion")(completion)
    return app


def main(argv: Sequence[str] | None = None) -> int:
    """Run `smg-admin` with `argv` (without the program's name; None: the process's own); return its exit code."""
    # Answers the shell's questions that the script of `completion` asks through the environment.
    completion_init()
    try:
        build_app()(hoisted(sys.argv[1:] if argv is None else argv), prog_name=PROGRAM)
        sys.stdout.flush()
    except AdminError as error:
        tell(f"{PROGRAM}: {error}")
        return _FAILED
    except BrokenPipeError:
        # `smg-admin workers list | head`: the reader is gone. What is buffered must not be flushed at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _FAILED
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else _FAILED
    return 0


if __name__ == "__main__":
    sys.exit(main())
