"""Data uplink: a data process's end of the bus, linked again to every new control process.

    uplink.on("snapshot", take)
    await uplink.run()        # links, and links anew when the link is cut, until cancelled

Control processes come and go. Parts register for `opened`, which is called before anything arrives
by the new link, and for `closed`. A message sent while there is no link is lost: its sender sends
everything anew when a link opens.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeAlias

from smg_node.processes.ipc.ipc_link import Link, LinkCutError

HELLO: Final = "hello"
"""The first word of a link: the name of the process, in UTF-8."""
RETRY_S: Final = 0.05
"""A control process that died is back within a second; nothing else is tried meanwhile."""

Taker: TypeAlias = Callable[[bytes], None]
Answerer: TypeAlias = Callable[[bytes], Coroutine[Any, Any, bytes]]

_log = logging.getLogger("smg_node.processes")


class Uplink:
    """Uplink of the data process called `process`; the bus listens at `path`."""

    def __init__(self, path: str, process: str) -> None:
        self.process: Final = process
        self._path: Final = path
        self._link: Link | None = None
        self._lost = asyncio.Event()
        self._group: asyncio.TaskGroup | None = None
        self._takers: dict[str, Taker] = {}
        self._answerers: dict[str, Answerer] = {}
        self._opened: list[Callable[[], None]] = []
        self._closed: list[Callable[[], None]] = []

    @property
    def linked(self) -> bool:
        """Whether there is a control process."""
        return self._link is not None and self._link.open

    def on(self, name: str, taker: Taker) -> None:
        """Call `taker` with each message of that name."""
        assert name not in self._takers, "one name, one taker"
        self._takers[name] = taker

    def answer(self, name: str, answerer: Answerer) -> None:
        """Let `answerer` answer the questions of that name."""
        assert name not in self._answerers, "one name, one answerer"
        self._answerers[name] = answerer

    def opened(self, heard: Callable[[], None]) -> None:
        """Call `heard` whenever a link has begun, in the order of these calls."""
        self._opened.append(heard)

    def closed(self, heard: Callable[[], None]) -> None:
        """Call `heard` whenever one is over."""
        self._closed.append(heard)

    def tell(self, name: str, payload: bytes) -> None:
        """Send a message to the control process; nothing happens where there is none."""
        if self._link is not None:
            self._link.tell(name, payload)

    async def ask(self, name: str, payload: bytes) -> bytes:
        """Return the control process's answer; LinkCutError, AnswerError."""
        if self._link is None:
            raise LinkCutError("there is no control process now")
        return await self._link.ask(name, payload)

    def begin_anew(self) -> None:
        """Cut the link; the next one begins with all there is."""
        if self._link is not None:
            self._link.close()

    async def run(self) -> None:
        """Keep linked until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                await self._stay_linked()
        finally:
            self._group = None
            self.begin_anew()

    async def _stay_linked(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            self._lost.clear()
            try:
                await loop.create_unix_connection(lambda: Link(self), self._path)
                await self._lost.wait()
            except OSError:
                # It is being started.
                pass
            await asyncio.sleep(RETRY_S)

    # ── What the link says ───────────────────────────────────────────────────

    def made(self, link: Link) -> None:
        """Send this process's name, and notify all that registered for it."""
        self._link = link
        link.process = "control"
        link.tell(HELLO, self.process.encode())
        for heard in self._opened:
            heard()

    def told(self, link: Link, name: str, payload: bytes) -> None:
        """Pass it to its taker; a message without one is ignored."""
        taker = self._takers.get(name)
        if taker is not None:
            taker(payload)

    def asked(self, link: Link, name: str, payload: bytes) -> Coroutine[Any, Any, bytes]:
        """Let it be answered."""
        answerer = self._answerers.get(name)
        if answerer is None:
            raise LookupError(f"a data process does not answer {name}")
        return answerer(payload)

    def spawn(self, answering: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Start to answer."""
        assert self._group is not None, "a link begins while this runs"
        return self._group.create_task(answering)

    def cut(self, link: Link) -> None:
        """Note that there is no control process, as far as this one knows."""
        if self._link is not link:
            return
        self._link = None
        self._lost.set()
        for heard in self._closed:
            heard()
