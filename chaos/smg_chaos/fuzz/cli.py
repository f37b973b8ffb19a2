"""CLI of `smg-chaos fuzz`: hostile datagrams against one node's socket and, with its key, against
its core.
"""

import sys
import time
from typing import Annotated, Final

import typer

from smg_chaos.fuzz.attack import Attack

_EPILOG: Final = """
Half of them come from outside, without the key, and half from inside, properly sealed. Exit code 1 if a
promise was broken; the same seed and number make the same datagrams.

Examples:

$ smg-chaos fuzz

$ smg-chaos fuzz --packets 20000 --seed 7
"""

app = typer.Typer(add_completion=False)


class Line:
    """A progress line that moves on a terminal; elsewhere one line per part."""

    def __init__(self) -> None:
        self._began_s = time.monotonic()
        self._moves = sys.stderr.isatty()

    def __call__(self, part: str, done: int, packets: int) -> None:
        """Show how far a part is."""
        over = done == packets
        if not (self._moves or over):
            return
        spent_s = time.monotonic() - self._began_s
        start, end = ("\r", "\n" if over else "") if self._moves else ("", "\n")
        text = f"{start}{part}: {done:,} of {packets:,}, {spent_s:.0f} s"
        print(f"{text:<60}", end=end, file=sys.stderr, flush=True)


@app.command(epilog=_EPILOG)
def fuzz(
    packets: Annotated[int, typer.Option(help="how many datagrams", min=100)] = 1_000_000,
    seed: Annotated[int, typer.Option(help="which ones", min=0)] = 1,
) -> None:
    """Throw hostile datagrams at a node: none may crash it, get in without the key, or fill its memory."""
    began_s = time.monotonic()
    report = Attack(seed, packets, Line()).run()
    report.facts["time"] = f"{time.monotonic() - began_s:.1f} s"
    print("\n".join(report.lines()))
    raise typer.Exit(1 if report.broken_count else 0)
