"""Growth of this gateway's costs with streams, clients, prompt length, workers, processes and crowds:
one table each.

Each table varies one number and leaves all else alone. Where the cost per request and per token is
the same at every number, nothing in the gateway scans all entries.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from smg_chaos.bench.figures.rows import Figure
from smg_chaos.bench.gateways.gateways import EQUIPPED, KINDS, Place, Wanted
from smg_chaos.bench.load.flash.flash_workloads import flash_crowds
from smg_chaos.bench.load.workload import Workload
from smg_chaos.bench.load.workloads import clients, paced, prompts
from smg_chaos.bench.options import FlashLoad

STREAMS: Final = (1, 8, 64, 256, 1_000)
CLIENTS: Final = (1, 8, 64, 256, 1_000)
PROMPT_TOKENS: Final = (100, 1_000, 10_000, 100_000)
WORKERS: Final = (1, 8, 64)
PROCESSES: Final = (1, 2)
CROWDS: Final = (64, 256, 1_000)


@dataclass(frozen=True, slots=True)
class Growth:
    """One table: workloads of the same kind, or gateways that differ in one number."""

    says: str
    workloads: Sequence[Workload]
    gateways: Sequence[Wanted]
    by: Sequence[int]
    """The numbers, one for each workload or gateway."""

    def lines(self, figures: Sequence[Figure]) -> list[tuple[int, Figure | None]]:
        """Return the figure of each number, None where it was not measured."""
        found = {(one.workload, one.gateway): one for one in figures}
        keys = [(work.name, gate.label) for work in self.workloads for gate in self.gateways]
        return [(number, found.get(key)) for number, key in zip(self.by, keys, strict=True)]


def growths(arguments: Sequence[str] = (), processes: Sequence[int] = PROCESSES) -> list[Growth]:
    """Return the tables; `arguments` are more flags of this gateway, `processes` how many data processes it has."""
    ours = [Wanted(EQUIPPED, KINDS[EQUIPPED], arguments)]
    return [
        Growth("paced streams: µs per token", [paced(one) for one in STREAMS], ours, STREAMS),
        Growth("clients: µs per short request", [clients(one) for one in CLIENTS], ours, CLIENTS),
        Growth(
            "tokens of a prompt that was never seen: µs per request",
            [prompts(one) for one in PROMPT_TOKENS],
            ours,
            PROMPT_TOKENS,
        ),
        Growth(
            "workers: µs per short request",
            [clients(32)],
            [with_workers(one, arguments) for one in WORKERS],
            WORKERS,
        ),
        Growth(
            "data processes: µs per short request",
            [clients(64)],
            [with_processes(one, arguments) for one in processes],
            processes,
        ),
        Growth(
            "streams of one token in one instant: ms to the first token, p99",
            flash_crowds("flash1", FlashLoad(sizes=CROWDS)),
            ours,
            CROWDS,
        ),
        Growth(
            "data processes, 256 paced streams that begin in one instant: ms to the first token, p99",
            flash_crowds("flash", FlashLoad()),
            [with_processes(one, arguments) for one in processes],
            processes,
        ),
    ]


def with_processes(count: int, arguments: Sequence[str] = ()) -> Wanted:
    """Return this gateway with so many data processes beside its control process; 0: all in one
    process.
    """
    return Wanted(f"processes-{count}", KINDS[EQUIPPED], (*arguments, "--processes", str(count)))


def with_workers(count: int, arguments: Sequence[str] = ()) -> Wanted:
    """Return this gateway in front of so many workers: one engine, at as many addresses of the loopback interface."""
    kind = KINDS[EQUIPPED]

    def command(place: Place) -> list[str]:
        more = [f"grpc://127.0.0.{1 + number}:{place.engine_port}" for number in range(1, count)]
        return [*kind.command(place), *(word for url in more for word in ("--worker", url))]

    name = f"workers-{count}"
    return Wanted(name, replace(kind, name=name, command=command), arguments)
