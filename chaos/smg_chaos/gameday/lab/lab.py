"""Lab: a network of places on this one host, with link faults between them, and programs that run
there.

A place is a network namespace with a loopback, and an interface with two addresses, so that a node
can come back elsewhere. A userspace switch joins them (`ethernet_switch`); the host's own network
is neither used nor touched. Everything belongs to one keeper process (`lab_process`) and ends with
it.

Root is not needed where the kernel lets users make namespaces and `/dev/net/tun` may be opened.
"""

import json
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

from smg_chaos.gameday.lab.ethernet_switch import PortCount
from smg_chaos.gameday.lab.frame_forwarder import REQUEST_BYTES_MAX, rules_request
from smg_chaos.gameday.lab.link_rules import Rules

PLACES_MAX: Final = 250
_ANSWER_S: Final = 30.0
_END_S: Final = 15.0
_BUFFER_BYTES: Final = 1 << 20


class LabError(Exception):
    """There is no lab, or it has ended; the message is one line that says why."""


@dataclass(frozen=True, slots=True)
class Program:
    """A program that was started at a place."""

    pid: int
    place: str
    lab: "Lab"

    def signal(self, number: int) -> None:
        """Send it a signal; nothing happens if it has ended."""
        self.lab.ask("signal", pid=self.pid, number=int(number))

    def ended(self) -> int | None:
        """Return its exit status (minus the signal that killed it), or None while it runs."""
        code = self.lab.ask("poll", pid=self.pid)["code"]
        return None if code is None else int(code)


class Lab:
    """A lab that runs. `opened` makes one."""

    def __init__(self, places: Sequence[str], keeper: socket.socket, switch: socket.socket) -> None:
        self.places = tuple(places)
        self._keeper = keeper
        self._switch = switch

    def address(self, place: str, *, other: bool = False) -> str:
        """Return the address of a place, or its other one."""
        return _address(self.places.index(place), int(other))

    def set_rules(self, rules: Rules) -> None:
        """Change the link rules, for every frame sent from now on."""
        self._ask_switch(rules_request(dict(rules)))

    def traffic(self) -> dict[str, PortCount]:
        """Return what each place has sent and received since the lab was opened."""
        counts = self._ask_switch(b"counts")["counts"]
        return {place: PortCount(**count) for place, count in zip(self.places, counts, strict=True)}

    def mark(self) -> None:
        """Reset the record of senders."""
        self._ask_switch(b"mark")

    def spoken_us(self, address: str) -> int | None:
        """Return when (monotonic) a program first sent something from an address since the last mark."""
        at_us = self._ask_switch(b"spoken " + address.encode())["at_us"]
        return None if at_us is None else int(at_us)

    def spawn(
        self,
        place: str,
        command: Sequence[str | Path],
        output: IO[bytes] | int,
        *,
        folder: Path,
        environment: Mapping[str, str] | None = None,
    ) -> Program:
        """Run a program at a place, its output in `output`. LabError if it cannot be started."""
        descriptor = output if isinstance(output, int) else output.fileno()
        answer = self.ask(
            "spawn",
            [descriptor],
            place=place,
            command=[str(word) for word in command],
            folder=str(folder),
            environment=dict(environment or {}),
        )
        return Program(int(answer["pid"]), place, self)

    def socket(self, place: str, kind: int = socket.SOCK_STREAM) -> socket.socket:
        """Return a socket made at a place: it connects from there, or listens there."""
        handed: list[int] = []
        self.ask("socket", handed=handed, place=place, kind=int(kind))
        return socket.socket(fileno=handed[0])

    def disk(self, folder: Path, size_bytes: int) -> None:
        """Mount a disk of its own, in memory, on a folder; only programs of this lab see it, and it
        hides what was there.
        """
        self.ask("disk", path=str(folder), size=size_bytes)

    def fill(self, folder: Path) -> int:
        """Fill the disk of a folder; return how many bytes that took."""
        return int(self.ask("fill", path=str(folder))["bytes"])

    def clear(self, folder: Path) -> None:
        """Remove what filled the disk of a folder."""
        self.ask("clear", path=str(folder))

    def ask(
        self, do: str, given: Sequence[int] = (), handed: list[int] | None = None, **more: Any
    ) -> dict[str, Any]:
        """Send the keeper a request, with file descriptors going out or coming in."""
        request = json.dumps({"do": do, **more}).encode()
        try:
            socket.send_fds(self._keeper, [request], list(given))
            answer, descriptors, _, _ = socket.recv_fds(self._keeper, REQUEST_BYTES_MAX, 4)
        except OSError as error:
            raise LabError(f"the keeper of the lab does not answer: {error}") from error
        if handed is not None:
            handed += descriptors
        return _said(answer, "keeper")

    def _ask_switch(self, request: bytes) -> dict[str, Any]:
        try:
            self._switch.send(request)
            answer = self._switch.recv(REQUEST_BYTES_MAX)
        except OSError as error:
            raise LabError(f"the switch of the lab does not answer: {error}") from error
        return _said(answer, "switch")


@contextmanager
def opened(places: Sequence[str], *, seed: int = 0) -> Iterator[Lab]:
    """Make a lab with these places, and remove it all at the end; LabError if it cannot be made."""
    if not sys.platform.startswith("linux"):
        raise LabError(f"network namespaces are a thing of Linux, and this is {sys.platform}")
    if not 0 < len(places) <= PLACES_MAX or len(set(places)) < len(places):
        raise LabError(f"a lab has 1 to {PLACES_MAX} places, each with a name of its own")
    keeper, keeper_end = _pair()
    switch, switch_end = _pair()
    with keeper, switch:
        with keeper_end, switch_end:
            ends = keeper_end.fileno(), switch_end.fileno()
            process = subprocess.Popen(
                [sys.executable, "-m", "smg_chaos.gameday.lab.lab_process", *map(str, ends)],
                stdin=subprocess.DEVNULL,
                pass_fds=ends,
                start_new_session=True,
            )
        try:
            plan = {"seed": seed, "places": [_place(*one) for one in enumerate(places)]}
            keeper.send(json.dumps(plan).encode())
            try:
                _said(keeper.recv(REQUEST_BYTES_MAX), "keeper")
            except OSError as error:
                raise LabError(f"the keeper of the lab does not answer: {error}") from error
            yield Lab(places, keeper, switch)
        finally:
            keeper.shutdown(socket.SHUT_RDWR)
            switch.shutdown(socket.SHUT_RDWR)
            _wait(process)


def unavailable() -> str | None:
    """Return None if a lab can be made on this machine, or one line that says why not."""
    try:
        with opened(["a"]):
            return None
    except LabError as error:
        return str(error)


def _pair() -> tuple[socket.socket, socket.socket]:
    pair = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for one in pair:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER_BYTES)
    pair[0].settimeout(_ANSWER_S)
    return pair


def _place(number: int, name: str) -> dict[str, Any]:
    hardware = bytes(
        [0x02, 0x77, 0, 0, 0, number + 1]
    )  # 02: made up, not given by a maker of cards
    addresses = [_address(number, which) for which in (0, 1)]
    return {"name": name, "hardware": hardware.hex(), "addresses": addresses}


def _address(number: int, which: int) -> str:
    return f"10.77.{which}.{number + 1}"


def _said(answer: bytes, who: str) -> dict[str, Any]:
    if not answer:
        raise LabError(f"the {who} of the lab has ended")
    words: dict[str, Any] = json.loads(answer)
    if "error" in words:
        raise LabError(str(words["error"]))
    return words


def _wait(process: subprocess.Popen[bytes]) -> None:
    with suppress(subprocess.TimeoutExpired):
        process.wait(_END_S)
    if process.poll() is None:
        process.kill()
        process.wait()
