"""A real name server for tests: knot, with one zone, which a test writes anew as often as it likes.

The program lies in `.cache/knot`, where `make test` puts it. Without it the tests fail, they are not skipped. It is up in a
tenth of a second, and takes a changed zone as soon.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from signal import Signals
from typing import Final

from support.processes.process import Process, running
from support.processes.servers import own_port

PROGRAM: Final = Path(__file__).parents[3] / ".cache" / "knot" / "knotd"
ZONE: Final = "example"
NEGATIVE_TTL_S: Final = 7
_READY_S: Final = 30.0
_CONFIGURATION: Final = """\
server:
    rundir: "{folder}"
    listen: 127.0.0.1@{port}
    udp-workers: 1
    tcp-workers: 1
    background-workers: 1
log:
  - target: stdout
    any: info
database:
    storage: "{folder}/database"
zone:
  - domain: {zone}
    storage: "{folder}"
    file: zone
    journal-content: none
    zonefile-sync: -1
    zonefile-load: whole
"""
# The minimum (9) is above the TTL of the SOA record: the smaller one counts for answers with nothing.
_HEAD: Final = """\
$ORIGIN {zone}.
$TTL 5
@ {negative} SOA ns hostmaster {serial} 3600 600 86400 9
@ NS ns
ns A 127.0.0.1
"""


class Knot:
    """One server at 127.0.0.1. Start it with `running_knot`."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder
        self.port = port
        self.address = f"127.0.0.1:{port}"
        self._serial = 0
        self._running = ExitStack()
        self._process: Process | None = None

    @property
    def is_alive(self) -> bool:
        """Whether it runs."""
        return self._process is not None

    def write(self, *records: str) -> None:
        """Let the zone have these records from now on, each as in a zone file, and no others."""
        self._serial += 1
        head = _HEAD.format(zone=ZONE, negative=NEGATIVE_TTL_S, serial=self._serial)
        (self.folder / "zone").write_text(head + "\n".join(records) + "\n")
        if self._process is not None:
            self._process.signal(Signals.SIGHUP)
            self._loaded(self._process)

    def start(self) -> None:
        """Start it, with the zone that was written last."""
        if not PROGRAM.exists():
            raise RuntimeError(f"there is no knot at {PROGRAM}: run `make knot`")
        (self.folder / "database").mkdir(exist_ok=True)
        configuration = self.folder / "knot.conf"
        configuration.write_text(
            _CONFIGURATION.format(folder=self.folder, port=self.port, zone=ZONE)
        )
        command: list[str | Path] = [PROGRAM, "-c", configuration]
        self._process = self._running.enter_context(
            running(command, folder=self.folder / "run", grace_s=2.0)
        )
        self._process.wait_for("server started", _READY_S)
        self._loaded(self._process)

    def kill(self) -> None:
        """End it at once."""
        self._process = None
        self._running.close()

    def _loaded(self, process: Process) -> None:
        process.wait_for(rf"loaded, serial \w+ -> {self._serial},", _READY_S)


@contextmanager
def running_knot(folder: Path, records: Sequence[str]) -> Iterator[Knot]:
    """Run a server whose zone has these records until the block ends."""
    folder.mkdir(parents=True, exist_ok=True)
    with own_port() as port:
        knot = Knot(folder, port)
        knot.write(*records)
        knot.start()
        try:
            yield knot
        finally:
            knot.kill()
