"""Cost of a call: CPU time of this project's client beside that of the official SDK's, in the same run, on one server."""

import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from smg_chaos.mcp import own_calls, sdk_calls

RATIO_MAX: Final = 0.35
"""What was aimed at: so much of the SDK's CPU time per call."""
WARM: Final = 50
_SERVE: Final = (sys.executable, "-m", "smg_chaos.cli", "mcp-server")
_RUN_S_MAX: Final = 300


@dataclass(frozen=True, slots=True)
class Way:
    """One way to a server: the revision asked of ours, the mode of the SDK's, and the server's own flags."""

    name: str
    protocol: str
    mode: str
    answers: str = "json"
    stdio: bool = False


WAYS: Final = (
    Way("http, 2026-07-28, json", "2026-07-28", "2026-07-28"),
    Way("http, 2026-07-28, sse", "2026-07-28", "2026-07-28", answers="sse"),
    Way("http, 2025-11-25, json", "2025-11-25", "legacy"),
    Way("http, 2025-11-25, sse", "2025-11-25", "legacy", answers="sse"),
    Way("stdio, 2026-07-28", "2026-07-28", "2026-07-28", stdio=True),
)


@dataclass(frozen=True, slots=True)
class Row:
    """CPU milliseconds per call by round, ours and the SDK's."""

    way: Way
    ours: Sequence[float]
    theirs: Sequence[float]

    @property
    def ratio(self) -> float:
        """Ours as a share of theirs, by the medians."""
        return statistics.median(self.ours) / statistics.median(self.theirs)


def measure(
    python: Path,
    calls: int,
    rounds: int,
    tell: Callable[[str], None],
    ways: Sequence[Way] = WAYS,
    *,
    loop: str = "uvloop",
) -> list[Row]:
    """Return a row for each way; `python` is an interpreter that has the SDK, `loop` the event loop of our client."""
    rows = []
    for way in ways:
        ours: list[float] = []
        theirs: list[float] = []
        with _place(way) as place:
            for _ in range(rounds):
                ours.append(
                    _one(
                        Path(sys.executable), own_calls.__file__, calls, (way.protocol, loop), place
                    )
                )
                theirs.append(_one(python, sdk_calls.__file__, calls, (way.mode,), place))
        rows.append(Row(way, ours, theirs))
        tell(f"{way.name}: measured")
    return rows


def table(rows: Sequence[Row]) -> str:
    """Return the figures as text: medians, with the least and the most."""
    lines = [f"{'way':<24} {'ours ms':>20} {'SDK ms':>20} {'ratio':>6}"]
    lines += [
        f"{row.way.name:<24} {_spread(row.ours):>20} {_spread(row.theirs):>20} {row.ratio:>6.2f}"
        for row in rows
    ]
    lines.append(f"aimed at: a ratio of {RATIO_MAX} at most")
    return "\n".join(lines)


def _spread(values: Sequence[float]) -> str:
    return f"{statistics.median(values):.3f} ({min(values):.3f}..{max(values):.3f})"


def _one(
    python: Path, program: str, calls: int, mode: Sequence[str], place: Sequence[str]
) -> float:
    command = [str(python), program, str(calls), str(WARM), *mode, *place]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_RUN_S_MAX, check=False)
    if done.returncode:
        raise OSError(f"{Path(program).stem} failed: {done.stderr.strip().splitlines()[-1:]}")
    return float(done.stdout) / calls * 1000


@contextmanager
def _place(way: Way) -> Iterator[Sequence[str]]:
    """Yield where a server is, or what runs one."""
    if way.stdio:
        yield ("stdio", *_SERVE, "--transport", "stdio")
        return
    command = [*_SERVE, "--answers", way.answers]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None, "a pipe was asked for"
        try:
            _, found, url = server.stdout.readline().strip().partition("url=")
            if not found:
                raise OSError("the server did not start")
            yield (url,)
        finally:
            server.terminate()
