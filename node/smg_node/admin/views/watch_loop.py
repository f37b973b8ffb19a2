"""Watch loop of `--watch`: prints the same picture again and again, until Ctrl-C."""

import sys
import time
from collections.abc import Callable
from typing import Annotated, Final, TypeAlias

import typer

from smg_node.admin.client import AdminError

INTERVAL_S: Final = 1.0

Watch: TypeAlias = Annotated[
    bool, typer.Option("--watch", "-w", help="Show it again every second, until Ctrl-C.")
]


def watched(draw: Callable[[], str], *, interval_s: float = INTERVAL_S) -> None:
    """Show `draw()` every `interval_s` until Ctrl-C; failures are shown, and it is tried again.

    A terminal shows one picture that changes, a pipe gets one after the other.
    """
    try:
        if sys.stdout.isatty():
            _on_terminal(draw, interval_s)
        else:
            _into_pipe(draw, interval_s)
    except KeyboardInterrupt:
        return


def _into_pipe(draw: Callable[[], str], interval_s: float) -> None:
    while True:
        print(_picture(draw), flush=True)
        time.sleep(interval_s)


def _on_terminal(draw: Callable[[], str], interval_s: float) -> None:
    from rich.live import Live
    from rich.text import Text

    with Live(auto_refresh=False) as live:
        while True:
            live.update(Text.from_ansi(_picture(draw)), refresh=True)
            time.sleep(interval_s)


def _picture(draw: Callable[[], str]) -> str:
    try:
        return draw()
    except AdminError as error:
        return str(error)
