"""Supervisor of a multi-process node: forks control and data processes, replaces those that exit.

    start ─▶ supervisor ─┬▶ control
                         ├▶ data 1
                         └▶ data 2

It has imported everything and has neither loop nor threads nor channels, so forking it is safe at
any time, takes milliseconds, and what it has is shared by all. `run` returns in every process: in a
forked one with what that is to be, in the supervisor with an exit code, when the control process
has ended for good.

A signal for the node comes here, and is passed on to the control process, which makes all of them
drain and leave. A process that ends without LEAVING is replaced at once; one that keeps dying is
replaced after growing pauses. A control process that never came up ends the node: then something is
wrong with what it was started with.
"""

import os
import select
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from smg_node.processes.process_role import LEAVE, LEAVING, UP, Kind, Orders, Place, Role

PAUSE_FIRST_S: Final = 0.1
PAUSE_MAX_S: Final = 10.0
STEADY_S: Final = 10.0
"""Whoever lived this long is replaced at once."""
FAREWELL_S: Final = 3.0
"""When the control process has ended, so long data processes may take to do the same."""
_FAILED: Final = 1
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


@dataclass(slots=True)
class _Child:
    kind: Kind
    number: int
    name: str
    line: socket.socket
    born_s: float
    up: bool = False
    leaving: bool = False


@dataclass(slots=True)
class _Post:
    """A slot that one process has at a time; 0 is the control process's."""

    number: int
    due_s: float
    pause_s: float = 0.0
    after: str = ""


class Supervisor:
    """Supervisor of one node. `data` is how many data processes there are to be."""

    def __init__(self, data: int, place: Place, monotonic_s: Callable[[], float]) -> None:
        self._place: Final = place
        self._now_s: Final = monotonic_s
        self._posts: Final = [_Post(number, 0.0) for number in range(data + 1)]
        self._children: dict[int, _Child] = {}
        self._signals = 0
        self._ends_s: float | None = None
        self._code = _FAILED
        self._ever_up = False
        self._woken, self._waker = socket.socketpair()

    def run(self) -> Role | int:
        """Fork and replace until the node ends; the module's docstring says what is returned in
        which process.
        """
        self._woken.setblocking(False)
        self._waker.setblocking(False)
        signal.set_wakeup_fd(self._waker.fileno(), warn_on_full_buffer=False)
        for number in (*_SIGNALS, signal.SIGCHLD):
            signal.signal(number, self._signalled)
        while True:
            role = self._fill()
            if role is not None:
                return role
            self._wait()
            self._pass_on()
            self._reap()
            if self._ends_s is not None and (not self._children or self._now_s() > self._ends_s):
                return self._end()

    # ── Forking ──────────────────────────────────────────────────────────────

    def _fill(self) -> Role | None:
        """Fork missing processes; in a forked one return its role."""
        if self._ends_s is not None or self._signals:
            return None
        taken = {child.number for child in self._children.values()}
        for post in self._posts:
            if post.number not in taken and post.due_s <= self._now_s():
                role = self._fork(post)
                if role is not None:
                    return role
        return None

    def _fork(self, post: _Post) -> Role | None:
        kind: Kind = "data" if post.number else "control"
        living = tuple(child.name for child in self._children.values() if child.kind == "data")
        ours, theirs = socket.socketpair()
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            name = f"{post.number}-{os.getpid()}"
            self._become_child(ours)
            return Role(kind, name, Orders(theirs), self._place, living, post.after)
        theirs.close()
        ours.setblocking(False)
        name = f"{post.number}-{pid}"
        self._children[pid] = _Child(kind, post.number, name, ours, self._now_s())
        return None

    def _become_child(self, ours: socket.socket) -> None:
        """Release what belongs to the supervisor: signal handlers, and the lines to the other
        processes.
        """
        signal.set_wakeup_fd(-1)
        for number in _SIGNALS:
            # A terminal and a service manager send theirs to all processes, and the supervisor passes them on.
            signal.signal(number, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for one in (ours, self._woken, self._waker, *(c.line for c in self._children.values())):
            one.close()
        self._children.clear()

    # ── Waiting ──────────────────────────────────────────────────────────────

    def _signalled(self, number: int, frame: object) -> None:
        if number != signal.SIGCHLD:
            self._signals += 1
            self._order()

    def _order(self) -> None:
        """Pass a signal on: to the control process, or to all others where there is none."""
        heads = [one for one in self._children.values() if one.kind == "control"]
        for child in heads or self._children.values():
            _say(child.line, LEAVE)
        if not heads and self._ends_s is None:
            self._code = 0
            self._ends_s = float("inf")

    def _wait(self) -> None:
        now_s = self._now_s()
        taken = {child.number for child in self._children.values()}
        due_s = [post.due_s for post in self._posts if post.number not in taken]
        ends_s = [self._ends_s] if self._ends_s is not None else due_s
        first_s = min(ends_s, default=float("inf"))
        timeout_s = None if first_s == float("inf") else max(0.0, first_s - now_s)
        lines = [child.line for child in self._children.values() if not child.leaving]
        select.select([self._woken, *lines], [], [], timeout_s)

    def _pass_on(self) -> None:
        """Drain the wake-up pipe, and read what the processes reported."""
        # Nothing is there where it was something else.
        with suppress(BlockingIOError):
            self._woken.recv(1024)
        for child in self._children.values():
            heard = _heard(child.line)
            child.up = child.up or UP in heard
            child.leaving = child.leaving or LEAVING in heard
            self._ever_up = self._ever_up or (child.up and child.kind == "control")

    # ── Those that ended ─────────────────────────────────────────────────────

    def _reap(self) -> None:
        while self._children:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            child = self._children.pop(pid, None)
            if child is not None:
                self._buried(child, os.waitstatus_to_exitcode(status))

    def _buried(self, child: _Child, code: int) -> None:
        heard = _heard(child.line)
        child.line.close()
        leaving = child.leaving or LEAVING in heard
        if child.kind == "control" and (leaving or self._signals or not self._ever_up):
            self._code = code if code >= 0 else _FAILED
            self._ends_s = self._now_s() + FAREWELL_S
            for other in self._children.values():
                if not other.leaving:
                    _say(other.line, LEAVE)
            return
        post = self._posts[child.number]
        now_s = self._now_s()
        if leaving:
            # The node leaves, by an operator's word, and the control process will be the last.
            post.due_s = float("inf")
            return
        steady = now_s - child.born_s >= STEADY_S
        post.pause_s = 0.0 if steady else min(PAUSE_MAX_S, post.pause_s * 2 or PAUSE_FIRST_S)
        # The first death costs no time, whenever it comes.
        post.due_s = now_s + (post.pause_s if post.pause_s > PAUSE_FIRST_S else 0.0)
        post.after = f"signal {-code}" if code < 0 else f"exit code {code}"

    def _end(self) -> int:
        """End all processes of the node, and return its exit code."""
        for pid in self._children:
            os.kill(pid, signal.SIGKILL)
        for pid, child in self._children.items():
            os.waitpid(pid, 0)
            child.line.close()
        signal.set_wakeup_fd(-1)
        return self._code


def _say(line: socket.socket, word: bytes) -> None:
    try:
        line.send(word)
    except OSError:
        # It is dead, and will be reaped.
        return


def _heard(line: socket.socket) -> bytes:
    try:
        return line.recv(64)
    except OSError:
        # Nothing was said, or it is dead.
        return b""
