"""Lab process (keeper): owns the namespaces of a lab and every process in them.

It is started with two sockets. It leaves the host's network before it does anything else, makes a
namespace for every place, gives each a TAP interface, and forks the switch, which uses the second
socket. Then it serves requests on the first one: run a program at a place, send it a signal, report
whether it has ended, pass a socket that was made at a place. When the requester is gone, everything
ends.

A process that is killed takes its namespaces with it (`namespaces`), programs are bound to the
keeper's life (`process_guard`), so a keeper, a switch or a user of the lab may die in any way and
nothing stays behind.
"""

import errno
import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from smg_chaos.gameday.lab import namespaces
from smg_chaos.gameday.lab.frame_forwarder import REQUEST_BYTES_MAX, forward
from smg_chaos.gameday.lab.namespaces import NamespaceError, Plug

_LEASH: Final = Path(__file__).with_name("process_guard.py")
_END_S: Final = 10.0
_FILLER: Final = "filler"
_BLOCK_BYTES: Final = 4096


class Keeper:
    """The places of a lab, and the programs in them."""

    def __init__(self, spaces: dict[str, int]) -> None:
        self._spaces = spaces
        self._programs: dict[int, subprocess.Popen[bytes]] = {}
        self._has_mounts = False

    def serve(self, control: socket.socket) -> None:
        """Serve requests, one after the other, until the requester has closed its socket."""
        while True:
            request, descriptors, _, _ = socket.recv_fds(control, REQUEST_BYTES_MAX, 4)
            if not request:
                return
            handed: list[int] = []
            try:
                answer = self._answer(json.loads(request), descriptors, handed)
            except (OSError, LookupError, NamespaceError) as error:
                answer = {"error": f"{type(error).__name__}: {error}"}
            socket.send_fds(control, [json.dumps(answer).encode()], handed)
            for descriptor in [*descriptors, *handed]:
                os.close(descriptor)

    def _answer(
        self, request: dict[str, Any], given: list[int], handed: list[int]
    ) -> dict[str, Any]:
        match request["do"]:
            case "spawn":
                return {"pid": self._spawn(request, given)}
            case "signal":
                self._programs[request["pid"]].send_signal(request["number"])
                return {}
            case "poll":
                return {"code": self._programs[request["pid"]].poll()}
            case "socket":
                handed.append(self._socket(request["place"], request["kind"]))
                return {}
            case "disk":
                self._give_disk(Path(request["path"]), request["size"])
                return {}
            case "fill":
                return {"bytes": _filled(Path(request["path"]))}
            case "clear":
                (Path(request["path"]) / _FILLER).unlink(missing_ok=True)
                return {}
            case unknown:
                raise LookupError(f"no such request: {unknown}")

    def _spawn(self, request: dict[str, Any], given: list[int]) -> int:
        """Run a program at a place; its output goes to the descriptor that came with the request."""
        space = self._spaces[request["place"]]
        leash = [sys.executable, "-I", "-S", str(_LEASH), str(os.getpid()), str(space)]
        program = subprocess.Popen(
            [*leash, *request["command"]],
            cwd=request["folder"],
            env={**os.environ, **request["environment"]},
            stdin=subprocess.DEVNULL,
            stdout=given[0],
            stderr=subprocess.STDOUT,
            pass_fds=[space],
            start_new_session=True,
        )
        self._programs[program.pid] = program
        return program.pid

    def _give_disk(self, folder: Path, size_bytes: int) -> None:
        """Mount a disk where only this process and its programs see it."""
        if not self._has_mounts:
            namespaces.leave_mounts()
            self._has_mounts = True
        namespaces.mounted(folder, size_bytes)

    def _socket(self, place: str, kind: int) -> int:
        """Return a socket that is at a place, in whichever process it is used."""
        home = namespaces.here()
        try:
            namespaces.enter(self._spaces[place])
            made = socket.socket(socket.AF_INET, kind)
        finally:
            namespaces.enter(home)
            os.close(home)
        return made.detach()

    def end(self) -> None:
        """Kill every program, with everything in its session, and wait until all are gone."""
        running = [program for program in self._programs.values() if program.poll() is None]
        for program in running:
            with suppress(ProcessLookupError):
                os.killpg(program.pid, signal.SIGKILL)
        for program in running:
            program.wait(_END_S)


def _filled(folder: Path) -> int:
    """Write a file until the disk of a folder is full; return how long it is."""
    with (folder / _FILLER).open("ab", buffering=0) as filler:
        for block in (b"\0" * _BLOCK_BYTES, b"\0"):
            try:
                while True:
                    filler.write(block)
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
        return filler.tell()


def _built(plugs: list[Plug]) -> tuple[dict[str, int], list[int]]:
    """Make every place; return its namespaces by name, and the TAP interfaces in order."""
    home = namespaces.here()
    spaces: dict[str, int] = {}
    taps: list[int] = []
    for plug in plugs:
        namespaces.leave_network()
        spaces[plug.name] = namespaces.here()
        taps.append(namespaces.plugged(plug))
        namespaces.introduce([other for other in plugs if other is not plug])
    namespaces.enter(home)
    os.close(home)
    return spaces, taps


def _fork_switch(
    plan: dict[str, Any], plugs: list[Plug], taps: list[int], lines: tuple[int, int]
) -> None:
    """Fork the switch's process, which lives as long as this one."""
    keeper = os.getpid()
    if os.fork() == 0:
        namespaces.die_with(keeper)
        os.close(lines[0])
        hardware = [plug.hardware for plug in plugs]
        with socket.socket(fileno=lines[1]) as control:
            forward(taps, [plug.name for plug in plugs], hardware, plan["seed"], control)
        os._exit(0)
    os.close(lines[1])
    for tap in taps:
        os.close(tap)


def main() -> None:
    """Keep a lab: `lab_process CONTROL_FD SWITCH_FD`; the first request is the plan."""
    lines = int(sys.argv[1]), int(sys.argv[2])
    control = socket.socket(fileno=lines[0])
    plan = json.loads(control.recv(REQUEST_BYTES_MAX))
    plugs = [
        Plug(place["name"], bytes.fromhex(place["hardware"]), tuple(place["addresses"]))
        for place in plan["places"]
    ]
    try:
        namespaces.become_root()
        namespaces.leave_network()
        spaces, taps = _built(plugs)
    except (NamespaceError, OSError) as error:
        control.send(json.dumps({"error": str(error)}).encode())
        return
    _fork_switch(plan, plugs, taps, lines)
    control.send(json.dumps({}).encode())
    keeper = Keeper(spaces)
    try:
        keeper.serve(control)
    finally:
        keeper.end()


if __name__ == "__main__":
    main()
