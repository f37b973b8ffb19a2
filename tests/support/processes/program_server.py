"""Fork server of the programs: imports `smg-node`, `smg-admin` and `smg-chaos` once, then starts each as a fork of itself.

    python -m support.processes.program_server

reads orders from its standard input, a line of JSON each (`ProgramServer.start` writes them), and writes lines of JSON to its
standard output: {"started": pid} in the order of the orders, {"ended": pid, "status": n} as a child ends, with the status
that `subprocess.Popen.returncode` has. It ends with its input, and its children with it.

What a fork lacks against a program started by itself: its modules are imported already, its command line and environment
in /proc are those of the server, and no exit handlers run. Everything else (working folder, environment as it and its
children see it, session, signals, output, exit status) is its own.
"""

import concurrent.futures.thread
import ctypes
import gc
import json
import os
import pkgutil
import selectors
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from importlib import import_module
from types import ModuleType
from typing import Any, Final, NoReturn

_PACKAGES: Final = ("smg_proto", "smg_storage", "smg_mesh", "smg_node", "smg_chaos.engine")
_MAIN: Final = {
    "smg-node": "smg_node.cli",
    "smg-admin": "smg_node.admin.cli",
    "smg-chaos": "smg_chaos.cli",
}
_READ_BYTES: Final = 1 << 16


def main() -> None:
    """Start what is ordered until nobody orders any more."""
    programs = {name: import_module(module).main for name, module in _MAIN.items()}
    for module in _modules():
        import_module(module)
    gc.collect()
    gc.freeze()
    answers = os.dup(1)
    os.dup2(2, 1)
    woken, wake = os.pipe()
    for end in (woken, wake):
        os.set_blocking(end, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    _say(answers, {"ready": True})
    for order in _orders(answers, woken):
        pid = os.fork()
        if pid == 0:
            for own in (answers, woken, wake):
                os.close(own)
            _become(programs[order["program"]], order)
        _say(answers, {"started": pid})


def _modules() -> Iterator[str]:
    for package in _PACKAGES:
        for found in pkgutil.walk_packages(import_module(package).__path__, f"{package}."):
            if not found.name.endswith("__main__"):
                yield found.name


def _orders(answers: int, woken: int) -> Iterator[dict[str, Any]]:
    """Yield the orders as they come, and say meanwhile who has ended."""
    rest = b""
    with selectors.DefaultSelector() as selector:
        selector.register(0, selectors.EVENT_READ)
        selector.register(woken, selectors.EVENT_READ)
        while True:
            ready = {key.fd for key, _ in selector.select()}
            if woken in ready:
                os.read(woken, _READ_BYTES)
                _say_ended(answers)
            if 0 in ready:
                if not (more := os.read(0, _READ_BYTES)):
                    return
                *lines, rest = (rest + more).split(b"\n")
                for line in lines:
                    yield json.loads(line)


def _say_ended(answers: int) -> None:
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        _say(answers, {"ended": pid, "status": os.waitstatus_to_exitcode(status)})


def _say(answers: int, what: dict[str, Any]) -> None:
    os.write(answers, json.dumps(what).encode() + b"\n")


def _become(program: Callable[[], object], order: dict[str, Any]) -> NoReturn:
    """Be a program, in the place of this fork, to its end."""
    server = os.getppid()
    os.setsid()
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(1, signal.SIGKILL)
        if os.getppid() != server:
            os._exit(1)
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    flags = os.O_WRONLY | os.O_CLOEXEC
    nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    out, err = (os.open(order[name], flags) for name in ("out", "err"))
    for old, new in ((nothing, 0), (out, 1), (out if order["err"] == order["out"] else err, 2)):
        os.dup2(old, new)
    os.chdir(order["folder"])
    os.environ.clear()
    os.environ.update(order["environment"])
    sys.argv[:] = [order["path"], *order["words"]]
    # Usage texts name the program by its main module.
    sys.modules["__main__"] = ModuleType("__main__")
    os._exit(_status_of(program))


def _status_of(program: Callable[[], object]) -> int:
    """Run a program; return what it exits with, once its threads have ended and its output is written."""
    status: object
    try:
        status = program()
    except SystemExit as ended:
        status = ended.code
    except BaseException:  # as an interpreter does with whatever nobody has caught
        traceback.print_exc()
        status = 1
    if isinstance(status, str):
        sys.stderr.write(f"{status}\n")
        status = 1
    # As an interpreter does before it waits: threads of pools end when they are told to.
    concurrent.futures.thread._python_exit()  # there is no other door to it
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    return status if isinstance(status, int) else 0


if __name__ == "__main__":
    main()
