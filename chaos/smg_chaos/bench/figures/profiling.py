"""Profiling: runs a gateway of this tree under cProfile, and lists the functions with the most own
time.
"""

import io
import pstats
import sys
from dataclasses import replace
from pathlib import Path
from typing import Final

from smg_chaos.bench.gateways.gateways import Place, Wanted

LINES: Final = 60


def profiled(wanted: Wanted, path: Path) -> Wanted:
    """Return that gateway with a profile written to `path` when it ends; it is two to three times
    slower.
    """
    kind = wanted.kind

    def command(place: Place) -> list[str]:
        interpreter, *module = kind.command(place)
        assert interpreter == sys.executable, "only what runs in this interpreter can be profiled"
        return [interpreter, "-m", "cProfile", "-o", str(path), *module]

    return replace(wanted, kind=replace(kind, command=command))


def said_of(path: Path) -> str:
    """Return the functions with the most own time; the reason if there is no profile."""
    said = io.StringIO()
    try:
        stats = pstats.Stats(str(path), stream=said)
    except (OSError, TypeError, ValueError, EOFError) as error:
        return f"{path} cannot be read: {error}\n"
    stats.sort_stats("tottime").print_stats(LINES)
    return said.getvalue()
