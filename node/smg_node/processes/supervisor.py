"""Supervisor of a multi-process node: forks control and data processes, replaces those that exit.

    start ─▶ supervisor ─┬▶ control
                         ├▶ data 1
                         └▶ data 2

It has imported everything and has neither loop nor threads nor channels, so forking it is safe at
any time, takes milliseconds, and what it has is shared by all. `run` returns in every process: in a
forked one with what that is to be, in the supervisor with an exit code, when the control process
has ended for good.

With two data processes or more, those that need a large vocabulary are forked from a template process that has read it
(`template_process`): one that asks is replaced by such a fork as soon as that is up, and until a template that a start
begins with is ready, no data process is forked. Where there cannot be a template, or one died, each reads for itself.

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
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final

from smg_node.processes.process_role import (
    ALONE,
    LEAVE,
    LEAVING,
    SHARE,
    UP,
    YIELD,
    Kind,
    Orders,
    Place,
    Role,
)
from smg_node.processes.template_line import Birth, Template, template_pair

PAUSE_FIRST_S: Final = 0.1
PAUSE_MAX_S: Final = 10.0
STEADY_S: Final = 10.0
"""Whoever lived this long is replaced at once."""
HELD_S: Final = 15.0
"""So long a start waits for its template before it goes on without."""
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
    template: Template | None
    """What it was forked from, None for the supervisor."""
    up: bool = False
    leaving: bool = False
    asks: bool = False
    """Whether it waits for a template that has what it noted."""
    replaced: bool = False
    """Whether another one has its post already, or will have."""
    told: bool = False
    """Whether it knows that."""


@dataclass(slots=True)
class _Post:
    """A slot that one process has at a time; 0 is the control process's."""

    number: int
    due_s: float
    pause_s: float = 0.0
    after: str = ""


class Supervisor:
    """Supervisor of one node. `data` is how many data processes there are to be."""

    def __init__(
        self,
        data: int,
        place: Place,
        monotonic_s: Callable[[], float],
        *,
        noted: Callable[[], frozenset[str]] | None = None,
    ) -> None:
        """`noted` returns the keys of the vocabularies that data processes need; None where there are no templates."""
        self._place: Final = place
        self._noted = noted
        self._template: Template | None = None
        """What data processes are forked from."""
        self._coming: Template | None = None
        """What takes its place when it is ready."""
        self._held_until_s = 0.0
        """Until then the first data processes wait for the first template."""
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
        if self._noted is not None and (keys := self._noted()):
            self._held_until_s = self._now_s() + HELD_S
            role = self._begin_template(keys)
            if role is not None:
                return role
        while True:
            role = self._fill() or self._answer()
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
        for post in self._missing():
            if self._due_s(post) > self._now_s():
                continue
            with _signals_wait():
                # Whoever is told of a signal is told once, and nobody is forked that would not be told.
                if self._signals or self._ends_s is not None:
                    return None
                try:
                    role = self._fork(post)
                except OSError:
                    if not self._ever_up:
                        raise
                    # No process, no memory or no descriptor is to be had, for now; others of this node serve meanwhile.
                    post.pause_s = min(PAUSE_MAX_S, post.pause_s * 2 or PAUSE_FIRST_S)
                    post.due_s = self._now_s() + post.pause_s
                    role = None
            if role is not None:
                return role
        return None

    def _missing(self) -> list[_Post]:
        taken = {child.number for child in self._children.values() if not child.replaced}
        return [post for post in self._posts if post.number not in taken]

    def _due_s(self, post: _Post) -> float:
        return max(post.due_s, self._held_until_s) if post.number else post.due_s

    def _fork(self, post: _Post) -> Role | None:
        kind: Kind = "data" if post.number else "control"
        living = tuple(child.name for child in self._children.values() if child.kind == "data")
        ours, theirs = socket.socketpair()
        template = self._template if kind == "data" else None
        pid = None
        if template is not None:
            pid = template.fork(Birth(post.number, living, post.after), theirs)
            if pid is None:
                # It is dead or as good as dead; what it may have forked finds its line closed.
                self._without_template()
                for one in (ours, theirs):
                    one.close()
                ours, theirs = socket.socketpair()
                template = None
        if pid is None:
            sys.stdout.flush()
            sys.stderr.flush()
            try:
                pid = os.fork()
            except OSError:
                ours.close()
                theirs.close()
                raise
            if pid == 0:
                name = f"{post.number}-{os.getpid()}"
                self._become_child(ours)
                return Role(kind, name, Orders(theirs), self._place, living, post.after)
        theirs.close()
        ours.setblocking(False)
        name = f"{post.number}-{pid}"
        child = _Child(kind, post.number, name, ours, self._now_s(), template)
        self._children[pid] = child
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
        templates = [one.line for one in (self._template, self._coming) if one is not None]
        lines = [child.line for child in self._children.values()]
        for one in (ours, self._woken, self._waker, *templates, *lines):
            one.close()
        self._children.clear()

    # ── Templates ────────────────────────────────────────────────────────────

    def _begin_template(self, keys: frozenset[str]) -> Role | None:
        """Fork a process that reads these; in that one return its role."""
        ours, theirs = template_pair()
        sys.stdout.flush()
        sys.stderr.flush()
        with _signals_wait():
            pid = os.fork()
            if pid == 0:
                self._become_child(ours)
                name = f"template-{os.getpid()}"
                return Role("template", name, Orders(theirs), self._place, keys=keys)
        theirs.close()
        self._coming = Template(pid, ours, keys)
        return None

    def _answer(self) -> Role | None:
        """Give those that ask what there is, or begin what there is to be; in a process forked for that return its role."""
        asking = [child for child in self._children.values() if child.asks]
        if not asking or self._coming is not None or self._signals or self._ends_s is not None:
            return None
        noted = self._noted() if self._noted is not None else frozenset()
        template = self._template
        # Only ever a larger one: where more is needed than is noted, any two of them lack something of each other's.
        if noted and (template is None or len(noted) > len(template.keys)):
            with suppress(OSError):
                return self._begin_template(noted)
        for child in asking:
            child.asks = False
            if template is None or child.template is template:
                _say(child.line, ALONE)
            else:
                child.replaced = True
        return self._fill()

    def _hear_template(self) -> None:
        """Fork from the coming template once it is ready."""
        coming = self._coming
        if coming is None:
            return
        coming.hear()
        if coming.ready:
            if self._template is not None:
                self._template.end()
            self._template, self._coming = coming, None
            self._held_until_s = 0.0

    def _without_template(self) -> None:
        """Go on without, for good: what kills one template would kill the next."""
        for one in (self._template, self._coming):
            if one is not None:
                one.end()
        self._template = self._coming = self._noted = None
        self._held_until_s = 0.0

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
        if self._ends_s is not None:
            first_s = self._ends_s
        else:
            # After a signal nobody is forked any more.
            missing = [] if self._signals else self._missing()
            first_s = min((self._due_s(post) for post in missing), default=float("inf"))
        timeout_s = None if first_s == float("inf") else max(0.0, first_s - self._now_s())
        lines = [child.line for child in self._children.values() if not child.leaving]
        coming = [] if self._coming is None else [self._coming.line]
        select.select([self._woken, *coming, *lines], [], [], timeout_s)

    def _pass_on(self) -> None:
        """Drain the wake-up pipe, and read what the processes reported."""
        # Nothing is there where it was something else.
        with suppress(BlockingIOError):
            self._woken.recv(1024)
        for child in self._children.values():
            heard = _heard(child.line)
            child.up = child.up or UP in heard
            child.leaving = child.leaving or LEAVING in heard
            child.asks = child.asks or SHARE in heard
            self._ever_up = self._ever_up or (child.up and child.kind == "control")
        self._hear_template()
        up = {child.number for child in self._children.values() if child.up and not child.replaced}
        for child in self._children.values():
            if child.replaced and not child.told and child.number in up:
                child.told = True
                _say(child.line, YIELD)

    # ── Those that ended ─────────────────────────────────────────────────────

    def _reap(self) -> None:
        while self._children:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            for template in (self._template, self._coming):
                if template is not None and template.pid == pid:
                    template.reaped = True
                    self._without_template()
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
        if child.replaced:
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
        self._without_template()
        for pid in self._children:
            os.kill(pid, signal.SIGKILL)
        for pid, child in self._children.items():
            os.waitpid(pid, 0)
            child.line.close()
        signal.set_wakeup_fd(-1)
        return self._code


@contextmanager
def _signals_wait() -> Iterator[None]:
    """Have signals for the node wait: no process is alive meanwhile that is not known, or takes them for its own."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


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
