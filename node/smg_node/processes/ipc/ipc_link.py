"""IPC link between control and data process: messages, and questions with answers, in order.

    tell ──▶ on(name)         no answer
    ask  ──▶ answer(name)     ──▶ bytes, or why not

Both ends are the same. Nothing is lost or reordered as long as the link lasts; when it is cut, by
either end or by the death of a process, callers that wait for an answer get an error. An end that
does not read is cut when so much waits for it that it cannot catch up: it comes back, and begins
anew with a snapshot.
"""

import asyncio
import logging
from collections.abc import Coroutine
from itertools import count
from typing import Any, Final, Protocol, cast

from smg_node.processes.ipc.ipc_frames import Frame, FrameError, FrameReader, Kind, pack

UNSENT_BYTES_MAX: Final = 128 * 1024 * 1024
"""More than two snapshots of the largest kind: an end that is so far behind stands still."""
ANSWERING_MAX: Final = 256
"""So many questions of one link are answered at a time; more are refused."""

_log = logging.getLogger("smg_node.processes")


class LinkCutError(ConnectionError):
    """There is no link, or it was cut before the answer came."""


class AnswerError(Exception):
    """The other end could not answer."""


class Ends(Protocol):
    """Interface of an end: takes what comes by a link."""

    def made(self, link: "Link") -> None:
        """Take a link that has begun."""
        ...

    def told(self, link: "Link", name: str, payload: bytes) -> None:
        """Take a message."""
        ...

    def asked(self, link: "Link", name: str, payload: bytes) -> Coroutine[Any, Any, bytes]:
        """Return the coroutine that will answer; LookupError for a name that has no answerer."""
        ...

    def spawn(self, answering: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Start to answer, as a task of this end's."""
        ...

    def cut(self, link: "Link") -> None:
        """Take note that the link is over."""
        ...


class Link(asyncio.Protocol):
    """One link. Used in the loop's thread only."""

    def __init__(self, ends: Ends) -> None:
        self.process = ""
        """Who is at the other end, once that is known."""
        self._ends: Final = ends
        self._reader: Final = FrameReader()
        self._numbers: Final = count(1)
        self._asked: dict[int, asyncio.Future[bytes]] = {}
        self._answering: dict[asyncio.Task[None], None] = {}
        self._transport: asyncio.Transport | None = None

    @property
    def open(self) -> bool:
        """Whether messages can be sent by it."""
        return self._transport is not None and not self._transport.is_closing()

    def tell(self, name: str, payload: bytes) -> None:
        """Send a message, in order; nothing happens where the link is cut."""
        self._write(pack(Kind.TELL, 0, name, payload))

    async def ask(self, name: str, payload: bytes) -> bytes:
        """Return the other end's answer; LinkCutError where there is none, AnswerError if it cannot answer."""
        if not self.open:
            raise LinkCutError("there is no link")
        number = next(self._numbers)
        waiting: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._asked[number] = waiting
        try:
            self._write(pack(Kind.ASK, number, name, payload))
            return await waiting
        finally:
            self._asked.pop(number, None)

    def close(self) -> None:
        """Cut it, when what was sent has left."""
        if self._transport is not None:
            self._transport.close()

    # ── What the loop says ───────────────────────────────────────────────────

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast("asyncio.Transport", transport)
        self._ends.made(self)

    def data_received(self, data: bytes) -> None:
        """Take bytes."""
        try:
            for frame in self._reader.feed(data):
                self._take(frame)
        except FrameError:
            _log.exception("a link between two processes of this node is cut")
            self._abort()

    def connection_lost(self, exc: BaseException | None) -> None:
        """Fail all calls that wait."""
        self._transport = None
        for waiting in self._asked.values():
            if not waiting.done():
                waiting.set_exception(LinkCutError("the link was cut"))
        for answering in list(self._answering):
            answering.cancel()
        self._ends.cut(self)

    # ── Frames ───────────────────────────────────────────────────────────────

    def _take(self, frame: Frame) -> None:
        match frame.kind:
            case Kind.TELL:
                self._told(frame)
            case Kind.ASK:
                self._answer(frame)
            case Kind.ANSWER | Kind.FAILURE:
                waiting = self._asked.get(frame.number)
                if waiting is None or waiting.done():
                    return
                if frame.kind is Kind.ANSWER:
                    waiting.set_result(frame.payload)
                else:
                    waiting.set_exception(AnswerError(frame.payload.decode(errors="replace")))

    def _told(self, frame: Frame) -> None:
        try:
            self._ends.told(self, frame.name, frame.payload)
        except Exception:
            # A boundary: a mistake in one part must not cut the link that all others use.
            _log.exception("what another process of this node told of %s was not taken", frame.name)

    def _answer(self, frame: Frame) -> None:
        if len(self._answering) >= ANSWERING_MAX:
            self._fail(frame.number, "too many questions at a time")
            return
        try:
            work = self._ends.asked(self, frame.name, frame.payload)
        except LookupError as error:
            self._fail(frame.number, str(error))
            return
        answering = self._ends.spawn(self._answered(frame, work))
        self._answering[answering] = None
        answering.add_done_callback(lambda done: self._answering.pop(done, None))

    async def _answered(self, frame: Frame, work: Coroutine[Any, Any, bytes]) -> None:
        try:
            answer = await work
        except Exception as error:
            # A boundary: the asking end gets the error, and nothing else is affected.
            _log.exception("a question of another process failed: %s", frame.name)
            self._fail(frame.number, f"{type(error).__name__}: {error}")
            return
        self._write(pack(Kind.ANSWER, frame.number, "", answer))

    def _fail(self, number: int, why: str) -> None:
        self._write(pack(Kind.FAILURE, number, "", why.encode()))

    def _write(self, data: bytes) -> None:
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        transport.write(data)
        if transport.get_write_buffer_size() > UNSENT_BYTES_MAX:
            _log.warning("process %s does not read what it is told: its link is cut", self.process)
            self._abort()

    def _abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()
