"""CLI of `smg-chaos engine`, the simulated engine; its options come from the table of knobs."""

import sys
from collections.abc import Callable
from functools import wraps
from inspect import Parameter, Signature
from typing import Annotated, Any, Final

import typer

from smg_chaos.engine.knobs import KNOBS, Knob, wanted
from smg_chaos.engine.protocol.faults import fault_table

_EPILOG: Final = (
    "A fault SPEC is NAME or NAME:KEY=VALUE,KEY=VALUE and may be given several times. Faults of "
    "requests also take request=N (only the n-th), every=N, chance=0..1 and times=N (at most so "
    "often); every fault takes worker=N.\n\n" + fault_table()
)


def engine(**given: Any) -> None:
    """Serve a simulated inference engine that speaks a real engine's gRPC contract.

    Prints one line per worker once it listens, and exits 0 on SIGTERM.
    """
    # Heavy imports wait until there is something to serve, so that --help is quick.
    from smg_chaos.engine.host import serve
    from smg_chaos.engine.plan_builder import make_plan
    from smg_chaos.engine.scripts.bundle import BundleError
    from smg_node.system_clock import SystemClock

    try:
        plan = make_plan(wanted(given))
    except (ValueError, BundleError) as error:
        print(f"smg-chaos engine: {error}", file=sys.stderr)
        raise typer.Exit(2) from error
    try:
        code = serve(plan, SystemClock(), lambda line: print(line, flush=True))
    except OSError as error:
        print(f"smg-chaos engine: {error}", file=sys.stderr)
        raise typer.Exit(1) from error
    raise typer.Exit(code)


def _parameter(knob: Knob) -> Parameter:
    option = typer.Option(
        help=knob.says,
        rich_help_panel=knob.group,
        min=knob.minimum,
        max=knob.maximum,
        metavar=knob.metavar,
    )
    return Parameter(
        knob.flag.replace("-", "_"),
        Parameter.KEYWORD_ONLY,
        annotation=Annotated[knob.kind, option],
        default=knob.default(),
    )


def _command() -> Callable[..., None]:
    """Return `engine` with the options of the table: Typer reads them off a function's signature."""

    @wraps(engine)
    def command(**given: Any) -> None:
        engine(**given)

    parameters = [_parameter(knob) for knob in KNOBS]
    command.__signature__ = Signature(parameters)  # type: ignore[attr-defined]  # functions may have one
    command.__annotations__ = {one.name: one.annotation for one in parameters}
    return command


app: Final = typer.Typer(add_completion=False)
app.command(name="engine", epilog=_EPILOG)(_command())
