"""A real `smg-node` process for tests, on ports of its own choosing."""

import re
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from prometheus_client.parser import text_string_to_metric_families

from support.processes.process import Process, running

_LISTENING: Final = r"listening on (http://127\.0\.0\.1:[1-9]\d*)"
_METRICS: Final = r"metrics on (http://127\.0\.0\.1:[1-9]\d*)"
# Far more than the second and a half it may take: other tests use the machine at the same time.
_READY_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class RunningNode:
    """A node that accepts connections and knows its workers. URLs have no path and no final slash."""

    url: str
    metrics_url: str
    process: Process

    def status(self, path: str) -> int:
        """Return the HTTP status of a GET."""
        try:
            with urllib.request.urlopen(self.url + path, timeout=10) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            error.close()
            return error.code

    def metric(self, name: str, **labels: str) -> float:
        """Return the sum over all samples of a metric that have these labels; 0 where there is none."""
        with urllib.request.urlopen(f"{self.metrics_url}/metrics", timeout=10) as answer:
            text = answer.read().decode()
        return sum(
            sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
            if sample.name == name and labels.items() <= sample.labels.items()
        )


@contextmanager
def running_node(
    scratch: Path,
    *,
    workers: Sequence[str] = (),
    flags: Sequence[str] = (),
    command: Sequence[str | Path] = (),
    forked: bool = True,
) -> Iterator[RunningNode]:
    """Run `smg-node`, or `command`, in front of `workers` (URLs); everything it writes stays below `scratch`.

    `forked` is as in `running`.

    With workers, it is ready when all of them are.
    """
    program = Path(sys.executable).with_name("smg-node")
    if not program.exists():
        raise RuntimeError(f"there is no {program}: run `make setup`")
    begin = command or (program,)
    listen = ("--http", "127.0.0.1:0", "--metrics", "127.0.0.1:0")
    known = [word for url in workers for word in ("--worker", url)]
    enough = ("--readiness.min-workers", str(max(len(workers), 1)), "--drain.settle-s", "0")
    folder = ("--data-dir", str(scratch / "data"))
    words = [*begin, *listen, *known, *enough, *folder, *flags]
    with running(words, folder=scratch, forked=forked) as process:
        node = RunningNode(_url(process, _LISTENING), _url(process, _METRICS), process)
        if workers:
            process.wait_until(lambda: node.status("/readiness") == 200, "ready", _READY_S)
        yield node


def _url(process: Process, pattern: str) -> str:
    found: re.Match[str] = process.wait_for(pattern, _READY_S)
    return found[1]
