"""CLI of `smg-chaos vendor`, the stand-ins of vendors; its options come from the table of options."""

import sys
from collections.abc import Callable
from functools import wraps
from inspect import Parameter, Signature
from typing import Annotated, Any, Final

import typer

from smg_chaos.vendor.faults.fault import fault_table
from smg_chaos.vendor.hostings.quirks import QUIRKS
from smg_chaos.vendor.options import OPTIONS, Option, default_of, settings_of

_WORDS: Final = (
    "Words in the user's last text decide the answer: a tool's name or `call NAME` calls it, `call all` calls every "
    "tool, KEY=VALUE are arguments, `rounds=N` calls again after results, `words=N` is an answer of N words, and "
    "`refuse`, `filter`, `redact` and `mute` do what they say."
)
_ROUTES: Final = (
    "Admin routes, without a key: GET /_vendor/requests?last=N (method, path, query, headers, body in base64), "
    "GET /_vendor/bill, GET and PUT /_vendor/faults, GET and POST /_vendor/keys, GET /_vendor/limits (how many requests "
    "they let in and refused), PUT /_vendor/limits (of a minute, and the part `filled` at first), GET and DELETE "
    "/_vendor/cache, POST /_vendor/token (an OAuth token endpoint), POST /_vendor/reset."
)
_FAULTS: Final = (
    "A fault SPEC is NAME or NAME:KEY=VALUE,KEY=VALUE and may be given several times. Every fault also takes request=N "
    "(only the n-th), every=N, chance=0..1, times=N (at most so often), model=NAME and key=NAME."
)
_EPILOG: Final = "\n\n".join(
    (
        _WORDS,
        _ROUTES,
        _FAULTS,
        fault_table(),
        "Quirks: " + "; ".join(f"{name}: {says}" for name, says in QUIRKS.items()) + ".",
    )
)


def vendor(**given: Any) -> None:
    """Serve a stand-in of a vendor: its paths, credentials, envelopes, limits, prices and faults.

    It answers deterministically from the request, verifies what the vendor verifies, and refuses what it refuses.
    Prints one line per stand-in once it listens, and exits 0 on SIGTERM.
    """
    # Heavy imports wait until there is something to serve, so that --help is quick.
    from smg_chaos.vendor.host import serve
    from smg_node.system_clock import SystemClock

    try:
        file = given["script"]
        script = "" if file is None else file.read_text(encoding="utf-8")
        stand_ins = [settings_of(given, kind, script) for kind in given["kind"]]
    except (OSError, ValueError) as error:
        print(f"smg-chaos vendor: {error}", file=sys.stderr)
        raise typer.Exit(2) from error
    try:
        serve(
            stand_ins,
            given["host"],
            given["port"],
            SystemClock(),
            lambda line: print(line, flush=True),
            until_input_ends=given["until_input_ends"],
        )
    except OSError as error:
        print(f"smg-chaos vendor: {error}", file=sys.stderr)
        raise typer.Exit(1) from error


def _parameter(option: Option) -> Parameter:
    shown = typer.Option(
        help=option.says,
        rich_help_panel=option.group,
        min=option.minimum,
        max=option.maximum,
        metavar=option.metavar,
    )
    return Parameter(
        option.flag.replace("-", "_"),
        Parameter.KEYWORD_ONLY,
        annotation=Annotated[option.kind, shown],
        default=default_of(option),
    )


def _command() -> Callable[..., None]:
    """Return `vendor` with the options of the table: Typer reads them off a function's signature."""

    @wraps(vendor)
    def command(**given: Any) -> None:
        vendor(**given)

    parameters = [_parameter(option) for option in OPTIONS]
    command.__signature__ = Signature(parameters)  # type: ignore[attr-defined]  # functions may have one
    command.__annotations__ = {one.name: one.annotation for one in parameters}
    return command


app: Final = typer.Typer(add_completion=False)
app.command(name="vendor", epilog=_EPILOG)(_command())
