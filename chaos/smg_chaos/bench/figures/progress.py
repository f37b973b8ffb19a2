"""Progress of a benchmark: a moving line on a terminal, a line per finished row elsewhere."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape
from rich.status import Status

from smg_chaos.bench.figures.rows import Row
from smg_chaos.bench.load.workload import Workload


class Progress:
    """Shows progress on a console of its own (stderr, so that results can be piped)."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._status: Status | None = None
        self._done = 0
        self._all = 0

    @contextmanager
    def shown(self, measurements: int) -> Iterator[None]:
        """Show progress towards so many measurements while inside."""
        self._all = measurements
        if not self._console.is_terminal:
            yield
            return
        with self._console.status("starting") as self._status:
            yield
        self._status = None

    def doing(self, what: str) -> None:
        """Show the current activity."""
        if self._status is None:
            self._console.print(escape(what), soft_wrap=True)
        else:
            self._status.update(escape(f"[{self._done}/{self._all}] {what}"))

    def measuring(self, workload: Workload, gateway: str, number: int, rounds: int) -> None:
        """Show which measurement has begun; silent where lines cannot be overwritten."""
        if self._status is not None:
            self.doing(f"round {number + 1} of {rounds}: {workload.name} on {gateway}")

    def measured(self, row: Row, workload: Workload) -> None:
        """Show the result of a measurement."""
        self._done += 1
        line = (
            f"{self._done}/{self._all}  round {row.round + 1}{_letter(row.lap)} "
            f" {row.workload:10} {row.gateway:12} "
        )
        line += in_a_line(row, workload)
        if row.void:
            line += f"  VOID: {'; '.join(row.void)}"
        self._console.print(escape(line), soft_wrap=True, highlight=False)


def _letter(lap: int) -> str:
    return chr(ord("a") + lap) if lap < 26 else f".{lap}"


def in_a_line(row: Row, workload: Workload) -> str:
    """Return the most important figures of a row, in one line."""
    told = f"{row.requests} requests, {row.tokens} tokens in {row.seconds:.1f} s"
    if row.gateway_cpu_s and workload.unit == "token" and not workload.less:
        told += f"; {row.token_us():.1f} µs per token"
    elif row.gateway_cpu_s and row.requests and not workload.paced:
        told += f"; {row.request_us():.0f} µs per request"
    if row.ttft_ms.count:
        told += f"; first token p50 {row.ttft_ms.p50:.2f}, p99 {row.ttft_ms.p99:.2f} ms"
    if row.gap_ms.count:
        told += f"; gap p50 {row.gap_ms.p50:.1f}, p99 {row.gap_ms.p99:.1f} ms"
    if row.errors:
        told += f"; {row.errors} errors"
    return told
