"""The empty machine that pages are followed on: a network, processes and a home of its own; run inside `unshare`.

`python -m support.pages.machine_program FOLDER` makes 10.0.0.0/24 the machine's own addresses, starts what the pages say that their
reader has (a PostgreSQL at 10.0.0.5, a simulated engine at port 50051 of all others), says READY, and then carries out orders: a
line of JSON each, answered by one. When it ends, all that it started ends, because it is the first process of its world.
"""

import fcntl
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

from smg_chaos.stores import postgresql
from smg_chaos.stores import run_as_user as become
from smg_chaos.stores.server_user import readable_copy, server_folder, server_user

BLOCK_S: Final = 90.0
"""How long a block may take that is not meant to stay."""
DATABASE: Final = "10.0.0.5"
ANYWHERE: Final = "0.0.0.0"
"""One engine answers at every address of the machine: a process costs more than what it is asked here."""
_SET_FLAGS, _SET_ADDRESS, _SET_NETMASK = 0x8914, 0x8916, 0x891C
_UP: Final = 1
_READY_S: Final = 60.0


def main() -> None:
    """Make the machine, and carry out orders until there are none."""
    folder = Path(sys.argv[1])
    _own_addresses()
    with ExitStack() as stack:
        _start_postgres(folder, stack)
        _start_engine(folder)
        _say("READY")
        blocks: list[subprocess.Popen[bytes]] = []
        for line in sys.stdin:
            order = json.loads(line)
            if order["do"] == "end":
                _end(blocks)
                _say("{}")
            else:
                _say(json.dumps(_run(order, blocks)))
        _end(blocks)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _own_addresses() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as talk:

        def tell(what: int, interface: str, value: bytes) -> None:
            fcntl.ioctl(talk, what, interface.encode().ljust(16, b"\0") + value.ljust(24, b"\0"))

        def address(text: str) -> bytes:
            return struct.pack("=HH4s", socket.AF_INET, 0, socket.inet_aton(text))

        tell(_SET_FLAGS, "lo", struct.pack("=h", _UP))
        tell(_SET_ADDRESS, "lo:1", address("10.0.0.1"))
        # On a loopback the whole network is the machine's own.
        tell(_SET_NETMASK, "lo:1", address("255.255.255.0"))


def _start_postgres(folder: Path, stack: ExitStack) -> None:
    user = server_user()
    software, trees = next(postgresql.installed())
    place = stack.enter_context(server_folder("postgres", user))
    initdb = readable_copy(trees, software / "initdb", place, user)
    # Programs of its own version, for the blocks that call them.
    os.environ["PATH"] = f"{os.environ['PATH']}:{software}"
    words = [*postgresql.files_command(initdb, place / "files"), "-U", "postgres"]
    leash = [sys.executable, "-I", "-S", become.__file__, "0", str(user.uid), str(user.gid)]
    subprocess.run([*leash, *words], cwd=place, check=True, stdout=subprocess.DEVNULL)
    with (place / "files" / "pg_hba.conf").open("a") as allowed:
        allowed.write("host all all 10.0.0.0/24 trust\n")
    log = folder / "postgres.log"
    server = postgresql.server_command(initdb, place / "files", port=5432, host=DATABASE)
    _spawn([*leash, *server], log, place)
    _await(log, postgresql.READY)


def _start_engine(folder: Path) -> None:
    program = str(Path(sys.executable).parent / "smg-chaos")
    what = ("--contract", "sglang", "--model", "qwen3-8b")
    log = folder / "engine.log"
    _spawn([program, "engine", *what, "--host", ANYWHERE, "--port", "50051"], log, folder)
    _await(log, "listening on")


def _spawn(words: list[str], log: Path, folder: Path) -> subprocess.Popen[bytes]:
    with log.open("wb") as output:
        return subprocess.Popen(
            words,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def _await(log: Path, word: str) -> None:
    give_up_s = time.monotonic() + _READY_S
    while word not in log.read_text(errors="replace"):
        if time.monotonic() > give_up_s:
            sys.exit(f"{log.name} never said {word!r}: {log.read_text(errors='replace')[-2000:]}")
        time.sleep(0.02)


def _run(order: dict[str, str], blocks: list[subprocess.Popen[bytes]]) -> dict[str, int | None]:
    """Run a block's script; return its exit code, None for one that runs on."""
    log = Path(order["log"])
    process = _spawn(["bash", order["script"]], log, Path(order["folder"]))
    blocks.append(process)
    if order["do"] == "begin":
        return {"code": None}
    try:
        return {"code": process.wait(BLOCK_S)}
    except subprocess.TimeoutExpired:
        return {"code": None}


def _end(blocks: list[subprocess.Popen[bytes]]) -> None:
    """Kill all that blocks started, also what their shells left behind them."""
    for process in blocks:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    blocks.clear()


if __name__ == "__main__":
    main()
