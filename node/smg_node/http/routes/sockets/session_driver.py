"""Session driver: one realtime session over one socket; does what its machine wants done, in that order.

The machine (`dialects/realtime/session`) decides everything; here are the clock, the socket and the
generations. It is fed by the socket's reader, by a task per answer and by one timer, and never
waits, so what it says goes out in the order in which it was said. A client that does not read holds
up the engines of its answers, and its own events.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from smg_node.core.errors import SmgError
from smg_node.core.generation.events import Event, Fail
from smg_node.core.generation.request import GenerateRequest
from smg_node.core.ports import Clock
from smg_node.dialects.realtime.effects import Cancel, Close, Effect, Send, Start, Timer
from smg_node.dialects.realtime.session import Session
from smg_node.http.middleware.error_replies import internal
from smg_node.http.routes.inference.answer_headers import uncancel
from smg_node.http.routes.sockets.rate_limits import rate_limits_of
from smg_node.http.routes.sockets.session_prompts import SessionPrompts
from smg_node.http.sockets.web_socket import POLICY, RESTARTING, WebSocket
from smg_node.pipeline.generation.run_interface import Run

_log = logging.getLogger("smg_node.http")


class SessionDriver:
    """Drives one session from its opening on."""

    def __init__(
        self,
        session: Session,
        socket: WebSocket,
        prompts: SessionPrompts,
        *,
        begin: Callable[[str, GenerateRequest], Run],
        readmit: Callable[[], None],
        clock: Clock,
    ) -> None:
        """Take `begin`, which starts the generation of a response by its id, and `readmit`, which raises an SmgError once the caller may ask for
        none any more.
        """
        self._session: Final = session
        self._socket: Final = socket
        self._prompts: Final = prompts
        self._begin: Final = begin
        self._readmit: Final = readmit
        self._clock: Final = clock
        self._group: asyncio.TaskGroup | None = None
        self._answers: Final[dict[str, asyncio.Task[None]]] = {}
        self._timer: asyncio.TimerHandle | None = None

    async def lived(self, *, leaving: Callable[[], bool]) -> None:
        """Drive the session until its socket ends; a cancelled task means that, unless the node is `leaving`."""
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                try:
                    await self._until_end(leaving)
                except ConnectionError:
                    # Gone without a word. Not out of here: a group would wrap it.
                    return
                finally:
                    self._end()
        except asyncio.CancelledError:
            # The connection was lost, or the node waits for nobody any more.
            uncancel()
            with suppress(ConnectionError):
                self._socket.end(RESTARTING, "the node leaves; another one will answer")

    async def _until_end(self, leaving: Callable[[], bool]) -> None:
        self._do(self._session.open(now_ms=self._clock.now_ms()))
        try:
            await self._read()
        except asyncio.CancelledError:
            if not leaving():
                raise
            uncancel()
            self._do(self._session.drain())
            await self._read()

    async def _read(self) -> None:
        session, socket = self._session, self._socket
        while (message := await socket.receive()) is not None:
            now_ms = self._clock.now_ms()
            if message.kind == "text":
                self._do(session.client(message.text.encode(), now_ms=now_ms))
            else:
                self._do(session.binary(now_ms=now_ms))
            await socket.drained()

    def _end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        for answer in self._answers.values():
            answer.cancel()

    # ── Effects ──────────────────────────────────────────────────────────────

    def _do(self, effects: Sequence[Effect]) -> None:
        """Do what the machine wants done. ConnectionError if the client is gone."""
        for effect in effects:
            match effect:
                case Send(frame):
                    if not self._socket.closed_code:
                        self._socket.put(frame)
                case Start():
                    self._start(effect)
                case Cancel(response_id):
                    answer = self._answers.pop(response_id, None)
                    if answer is not None and answer is not asyncio.current_task():
                        answer.cancel()
                case Timer(at_ms):
                    self._wind(at_ms)
                case Close(code, reason):
                    self._socket.end(code, reason)

    def _wind(self, at_ms: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        left_s = max(0, at_ms - self._clock.now_ms()) / 1_000
        self._timer = asyncio.get_running_loop().call_later(left_s, self._tick)

    def _tick(self) -> None:
        self._timer = None
        try:
            self._do(self._session.time(self._clock.now_ms()))
        except ConnectionError:
            # Whoever reads the socket sees it as well.
            return

    # ── Answers ──────────────────────────────────────────────────────────────

    def _start(self, start: Start) -> None:
        assert self._group is not None, "a session that is not driven starts nothing"
        self._answers[start.response_id] = self._group.create_task(self._answer(start))

    async def _answer(self, start: Start) -> None:
        """Generate one answer; whatever breaks is told to the session."""
        try:
            if self._may_go_on(start):
                await self._generate(start)
        except SmgError as error:
            self._fail(start, error)
        except ConnectionError:
            # Whoever reads the socket sees it as well.
            return
        except Exception:
            # A door: a mistake of ours in one answer must not end the session.
            _log.exception("an answer of a session broke because of a mistake of ours")
            self._fail(start, internal())
        finally:
            self._answers.pop(start.response_id, None)

    async def _generate(self, start: Start) -> None:
        session, response_id = self._session, start.response_id
        wish = await self._prompts.request(start, session)
        run = self._begin(response_id, wish)
        try:
            await run.enter()
            ticket = run.ticket
            limits = () if ticket is None else rate_limits_of(ticket.headers("openai"))
            self._do(session.started(response_id, rate_limits=limits))
            await run.tell(lambda events: self._tell(response_id, events), self._socket.drained)
        finally:
            run.leave()

    def _tell(self, response_id: str, events: Sequence[Event]) -> bool:
        """Tell the session what came; true if the client has to be waited for."""
        now_ms = self._clock.now_ms()
        self._do(self._session.generation(response_id, events, now_ms=now_ms))
        return self._socket.behind

    def _fail(self, start: Start, error: SmgError) -> None:
        try:
            self._tell(start.response_id, (Fail(error),))
        except ConnectionError:
            # Whoever reads the socket sees it as well.
            return

    def _may_go_on(self, start: Start) -> bool:
        """Return whether the caller may ask for an answer; one who may not is told, and to go."""
        try:
            self._readmit()
        except SmgError as error:
            self._tell(start.response_id, (Fail(error),))
            self._socket.end(POLICY, "the credential is not good any more")
            return False
        return True
