"""Control bus: the control process's end of the links to all its data processes, by name.

    bus = Bus(path, expected=("1-4711",), alive=…)
    bus.on("open calls", take)
    await bus.open()
    await bus.run()

A process is `"NUMBER-PID"`: one that takes another's place has another name. `expected` are those
that lived when this control process began, and may come with all they hold. A link that is cut does
not mean that its process ended; `died` does.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final, TypeAlias

from smg_node.http.server.listen_sockets import UNIX, listen
from smg_node.processes.ipc.data_uplink import HELLO
from smg_node.processes.ipc.ipc_link import Link, LinkCutError

LOOK_S: Final = 0.1
"""So often it is looked whether those without a link live."""

Taker: TypeAlias = Callable[[str, bytes], None]
Answerer: TypeAlias = Callable[[str, bytes], Coroutine[Any, Any, bytes]]
Heard: TypeAlias = Callable[[str], None]

_log = logging.getLogger("smg_node.processes")


class Bus:
    """The bus of one control process; `alive` says whether a process of that name lives."""

    def __init__(
        self, path: str, *, expected: Sequence[str] = (), alive: Callable[[str], bool]
    ) -> None:
        self._path: Final = path
        self._alive: Final = alive
        self._missing: dict[str, None] = dict.fromkeys(expected)
        self._links: dict[str, Link] = {}
        self._unnamed: set[Link] = set()
        self._takers: dict[str, Taker] = {}
        self._answerers: dict[str, Answerer] = {}
        self._opened: list[Heard] = []
        self._closed: list[Heard] = []
        self._died: list[Heard] = []
        self._server: asyncio.Server | None = None
        self._lacking = asyncio.Event()
        self._group: asyncio.TaskGroup | None = None
        if expected:
            self._lacking.set()

    @property
    def processes(self) -> tuple[str, ...]:
        """Those that are linked, sorted."""
        return tuple(sorted(self._links))

    @property
    def expected(self) -> tuple[str, ...]:
        """Those that live, as far as is known, and are not linked; sorted."""
        return tuple(sorted(self._missing))

    def on(self, name: str, taker: Taker) -> None:
        """Call `taker` with each message of that name and its sender."""
        assert name not in self._takers, "one name, one taker"
        self._takers[name] = taker

    def answer(self, name: str, answerer: Answerer) -> None:
        """Let `answerer` answer the questions of that name."""
        assert name not in self._answerers, "one name, one answerer"
        self._answerers[name] = answerer

    def opened(self, heard: Heard) -> None:
        """Call `heard` whenever a process is linked, in the order of these calls."""
        self._opened.append(heard)

    def closed(self, heard: Heard) -> None:
        """Call `heard` whenever the link of one is cut."""
        self._closed.append(heard)

    def died(self, heard: Heard) -> None:
        """Call `heard` when one is gone for good, after its link was cut."""
        self._died.append(heard)

    def tell(self, process: str, name: str, payload: bytes) -> None:
        """Send a message to one; nothing happens where it is not linked."""
        link = self._links.get(process)
        if link is not None:
            link.tell(name, payload)

    def tell_all(self, name: str, payload: bytes) -> None:
        """Send a message to all that are linked."""
        for process in self.processes:
            self._links[process].tell(name, payload)

    async def ask(self, process: str, name: str, payload: bytes) -> bytes:
        """Return the answer of one; LinkCutError, AnswerError."""
        link = self._links.get(process)
        if link is None:
            raise LinkCutError(f"process {process} is not linked")
        return await link.ask(name, payload)

    # ── Its life ─────────────────────────────────────────────────────────────

    async def open(self) -> None:
        """Listen on a socket that only this node's user can open."""
        self._server = await listen(f"{UNIX}{self._path}", lambda: Link(self), reuse_port=False)

    async def run(self) -> None:
        """Answer, and detect processes that died, until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                await self._look_after_missing()
        finally:
            self._group = None

    async def _look_after_missing(self) -> None:
        while True:
            await self._lacking.wait()
            for process in [one for one in self._missing if not self._alive(one)]:
                self._missing.pop(process, None)
                _log.warning("data process %s is gone", process)
                for heard in self._died:
                    heard(process)
            if self._missing:
                await asyncio.sleep(LOOK_S)
            else:
                self._lacking.clear()

    def close(self) -> None:
        """Cut all links, and listen no more; safe to call twice."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for link in [*self._links.values(), *self._unnamed]:
            link.close()

    # ── What links say ───────────────────────────────────────────────────────

    def made(self, link: Link) -> None:
        """Wait for the name of the process."""
        self._unnamed.add(link)

    def told(self, link: Link, name: str, payload: bytes) -> None:
        """Pass it to its taker."""
        if not link.process:
            if name == HELLO:
                self._welcome(link, payload.decode(errors="replace"))
            return
        taker = self._takers.get(name)
        if taker is not None:
            taker(link.process, payload)

    def asked(self, link: Link, name: str, payload: bytes) -> Coroutine[Any, Any, bytes]:
        """Let it be answered."""
        answerer = self._answerers.get(name)
        if answerer is None or not link.process or self._group is None:
            raise LookupError(f"a control process does not answer {name}")
        return answerer(link.process, payload)

    def spawn(self, answering: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Start to answer."""
        assert self._group is not None, "nothing is answered before this runs"
        return self._group.create_task(answering)

    def cut(self, link: Link) -> None:
        """Note that the link is over, and check whether its process has ended."""
        self._unnamed.discard(link)
        process = link.process
        if not process or self._links.get(process) is not link:
            return
        del self._links[process]
        for heard in self._closed:
            heard(process)
        self._missing[process] = None
        self._lacking.set()

    def _welcome(self, link: Link, process: str) -> None:
        before = self._links.get(process)
        if before is not None:
            # It gave up a link of which this end does not know yet that it is gone.
            before.close()
            self.cut(before)
        self._unnamed.discard(link)
        self._missing.pop(process, None)
        link.process = process
        self._links[process] = link
        _log.info("data process %s is linked", process)
        for heard in self._opened:
            heard(process)
