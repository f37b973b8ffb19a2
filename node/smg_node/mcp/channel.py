"""Channel to one server: opens it through the door that fits, and sends requests within their time.

A session that another process has open is taken over without asking the server anything (`session.shared_session`).
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Final

from smg_node.mcp.connection_parts import ConnectionParts
from smg_node.mcp.definition import Credential, ServerDefinition
from smg_node.mcp.doors.door import Door, Exchange, OnProgress
from smg_node.mcp.doors.http_calls import HttpCalls
from smg_node.mcp.doors.http_door import HttpDoor
from smg_node.mcp.doors.sse_door import SseDoor
from smg_node.mcp.doors.stdio_door import StdioDoor
from smg_node.mcp.failures import Failure, lost, timed_out
from smg_node.mcp.session.forgotten_session import MAY_FORGET, OPENINGS_MAX, all_forgotten
from smg_node.mcp.session.opening import (
    Ask,
    Opened,
    Opening,
    Restart,
    Step,
    Transport,
    UseSse,
)
from smg_node.mcp.session.session import Notification, Outcome, Progressed, Request, Session
from smg_node.mcp.session.shared_session import SharedSession
from smg_node.mcp.session_stream import SessionStream

PART_S: Final = 30.0
"""So long a session that another took the place of is kept, for processes that have not heard of that."""
_LOOK_S: Final = 1.0
_GONE: Final = 404


def ignore_progress(_progress: Progressed) -> None:
    """Take no notice of progress."""


class ServerChannel:
    """Channel of one definition with one credential. `on_change`: the server says that its tools changed.

    `guarded`: a client gave the URL, so only addresses that the parts allow are connected with. `shared` is what the
    processes of all nodes share of its session, None for nothing.
    """

    def __init__(
        self,
        definition: ServerDefinition,
        credential: Credential,
        parts: ConnectionParts,
        on_change: Callable[[], None],
        *,
        guarded: bool = False,
        shared: SharedSession | None = None,
    ) -> None:
        self.opened: Opened | None = None
        """How the server is opened, None while it is not."""
        self._definition = definition
        self._credential = credential
        self._parts = parts
        self._limits = parts.limits
        self._on_change = on_change
        self._guarded = guarded
        self._shared = shared
        self._at_once = False
        """Whether the session that was opened last was not known any more right after."""
        self._stream = SessionStream(shared, parts.spawn)
        self._calls: HttpCalls | None = None
        self._key = (definition.digest, credential.digest)
        self._door: Door | None = None
        self._lock = asyncio.Lock()

    async def open(self) -> Opened | Failure:
        """Return how the server is opened, after opening it if need be; calls beside each other open it once."""
        async with self._lock:
            if self.opened is not None and self._door is not None and not self._door.closed:
                return self._kept(self.opened)
            if (taken := self._taken_over()) is not None:
                return taken
            result: Opened | Failure = all_forgotten()
            try:
                for _ in range(OPENINGS_MAX):
                    result = await self._run()
                    if not self._at_once:
                        break
            finally:
                # By HTTP, calls of a session before may still be under way.
                if not isinstance(result, Opened) and not isinstance(self._door, HttpDoor):
                    await self._let_go()
            gone = isinstance(result, Failure) and result.status == _GONE
            return all_forgotten() if self._at_once and gone else result

    async def reopen(self, gone: Session, *, keep_verdict: bool = True) -> Opened | Failure:
        """Return how the server is opened after it forgot a session, or contradicted the verdict on it."""
        if self._shared is not None and gone.session_id and not gone.ended:
            self._shared.forgotten(gone)
        gone.ended = True
        self.doubt(gone, keep_verdict=keep_verdict)
        return await self.open()

    def doubt(self, session: Session, *, keep_verdict: bool = False) -> None:
        """Open the server anew for the next request, if it is opened as that session has it."""
        if self.opened is not None and self.opened.session is session:
            self.opened = None
            if not keep_verdict:
                self._parts.verdicts.drop(self._key)

    def renew(self, credential: Credential) -> None:
        """Let later requests in by another credential of the same identity."""
        self._credential = credential
        if self._calls is not None:
            self._calls.renew(credential)

    async def ask(
        self,
        session: Session,
        request: Request,
        *,
        idle_s: float,
        deadline_s: float,
        noted: OnProgress = ignore_progress,
    ) -> Outcome:
        """Send a request of a session. It fails after `idle_s` without progress, and at `deadline_s` of the loop's time.

        `noted` hears of progress.
        """
        if self._door is None:
            return lost("the connection was closed", sent=False)
        exchange = await self._exchange(self._door, session, request, idle_s, deadline_s, noted)
        return exchange.outcome

    def changed(self) -> bool:
        """Whether another process was told that the list of tools changed, since this was asked last."""
        return self._shared is not None and self._shared.changed()

    def used(self) -> None:
        """Let the others know that the session is in use."""
        if self._shared is not None and self.opened is not None and self.opened.session.session_id:
            self._shared.used(self.opened.session, lists=_changes_lists(self.opened.session))

    def look(self) -> None:
        """See who uses the session by now."""
        if self._shared is not None and self.opened is not None and self.opened.session.session_id:
            self._shared.find()

    def lingers(self) -> bool:
        """Whether nobody but this process will end the session, and others may still go on with it."""
        if self._shared is None or self.opened is None or not self.opened.session.session_id:
            return False
        return self._shared.lingers(self.opened.session)

    def lasts_s(self) -> float:
        """Return for how long another process may go on with the session, in seconds."""
        return 0.0 if self._shared is None or self.opened is None else self._shared.left_s()

    def deafen(self) -> None:
        """Listen to the server no more."""
        self._stream.stop()

    async def close(self, *, leaving: bool = False) -> None:
        """End all connections, and the session, unless others go on with it; `leaving`: because the process ends."""
        async with self._lock:
            await self._let_go(leaving=leaving)

    # ── A session that others use too ────────────────────────────────────────

    def _kept(self, opened: Opened) -> Opened:
        """Return the session that is open here, or the one that counts instead."""
        session = opened.session
        record = None if self._shared is None or not session.session_id else self._shared.find()
        if record is None or record.id == session.session_id:
            self.used()
            return opened
        # Two were opened at a time, or the other processes found this one gone.
        taken = self._taken_over()
        if taken is None:
            # It is of a release that speaks more than this one.
            return opened
        self._parts.spawn(self._part_with(session))
        return taken

    def _taken_over(self) -> Opened | None:
        """Return the session of another process, None if there is none that can be gone on with."""
        record = None if self._shared is None else self._shared.find()
        if record is None or self._definition.plan.transport not in (None, Transport.HTTP):
            return None
        assert self._shared is not None, "a record is found among what is shared"
        opened = self._shared.adopted(record, self._parts.ids)
        if opened is None:
            return None
        if not isinstance(self._door, HttpDoor):
            if self._door is not None:
                self._parts.spawn(self._door.close(None))
            self._door = HttpDoor(
                self._http_calls(), self._limits, self._parts.spawn, self._heard_change
            )
        self._set(opened)
        return opened

    async def _part_with(self, session: Session) -> None:
        """End a session that is used no more, once its calls are over, and others know of the one in its place."""
        session.ended = True
        await asyncio.sleep(PART_S)
        until_s = _now_s() + self._limits.call_total_s
        while session.busy and _now_s() < until_s:  # noqa: ASYNC110  # seldom, and nobody waits for it
            await asyncio.sleep(_LOOK_S)
        if not session.adopted and isinstance(self._door, HttpDoor) and not self._door.closed:
            await self._door.end(session)

    def _set(self, opened: Opened) -> None:
        """Go on with a session, and listen to what its server says unasked."""
        self.opened = opened
        self._stream.stop()
        if self._door is not None and opened.session.by_http and _changes_lists(opened.session):
            self._stream.follow(self._door, opened.session)

    def _heard_change(self) -> None:
        self._on_change()
        if self.opened is not None:
            self._stream.tell_change(self.opened.session)

    async def _run(self) -> Opened | Failure:
        self._at_once = False
        plan = self._definition.plan
        verdict = self._parts.verdicts.get(self._key, _now_s())
        opening = Opening(plan, self._parts.ids, verdict)
        failure = None
        if plan.transport is not Transport.SSE:
            failure = await self._through(plan.transport or Transport.HTTP)
        step: Step = failure if failure is not None else opening.first()
        while True:
            match step:
                case Ask(session=session, request=request):
                    step = await self._ask_opening(opening, session, request)
                case UseSse():
                    step = opening.went_on(await self._through(Transport.SSE))
                case Restart():
                    step = opening.went_on(await self._through(Transport.STDIO))
                case Opened():
                    return await self._begun(step)
                case Failure():
                    return step

    async def _ask_opening(self, opening: Opening, session: Session, request: Request) -> Step:
        if isinstance(self._door, SseDoor) and session.by_http:
            # What was a server of the old transport is asked by the new one.
            await self._through(Transport.HTTP)
        assert self._door is not None, "a door is made before the first step"
        limit_s = self._limits.list_s
        exchange = await self._exchange(self._door, session, request, limit_s, _now_s() + limit_s)
        return opening.heard(exchange.outcome, exchange.session_id)

    async def _begun(self, opened: Opened) -> Opened | Failure:
        assert self._door is not None, "a session came through a door"
        session = opened.session
        if opened.handshake:
            failure = await self._door.tell(session, session.initialized())
            if failure is not None:
                self._at_once = bool(session.session_id) and failure.status in MAY_FORGET
                return failure
        until_s = _now_s() + self._limits.verdict_s
        self._parts.verdicts.put(self._key, opened.verdict, until_s)
        if self._shared is not None and session.session_id:
            if (taken := self._taken_over()) is not None:
                # Another process opened one meanwhile.
                self._parts.spawn(self._part_with(session))
                return taken
            if self._shared.find() is None:
                self._shared.agreed(session, lists=_changes_lists(session))
        self._set(opened)
        return opened

    async def _through(self, transport: Transport) -> Failure | None:
        """Make the door of a transport and open it; return why that cannot be."""
        if transport is Transport.HTTP and isinstance(self._door, HttpDoor):
            return None
        if self._door is not None:
            await self._door.close(None)
        limits, spawn = self._limits, self._parts.spawn
        if transport is Transport.STDIO:
            process = StdioDoor(self._definition, limits, self._on_change)
            self._door = process
            return await process.open()
        calls = self._http_calls()
        if transport is Transport.HTTP:
            self._door = HttpDoor(calls, limits, spawn, self._heard_change)
            return None
        stream = SseDoor(calls, limits, spawn, self._on_change)
        self._door = stream
        return await stream.open()

    def _http_calls(self) -> HttpCalls:
        url = self._definition.url
        self._calls = HttpCalls(
            url,
            self._credential,
            connect_s=self._limits.connect_s,
            trust=self._parts.trust,
            proxy=self._parts.proxy,
            allowed=partial(self._parts.allowed, url) if self._guarded else None,
        )
        return self._calls

    async def _let_go(self, *, leaving: bool = False) -> None:
        door, self._door = self._door, None
        opened, self.opened = self.opened, None
        if door is None:
            return
        session = opened.session if opened is not None else None
        if session is not None and session.session_id and self._shared is not None:
            self._shared.hold(session, on=False)
            if not self._shared.ends(session, leaving=leaving):
                session.ended = True
                session = None
        await door.close(session)

    async def _exchange(
        self,
        door: Door,
        session: Session,
        request: Request,
        idle_s: float,
        deadline_s: float,
        noted: OnProgress = ignore_progress,
    ) -> Exchange:
        waiting = asyncio.timeout_at(min(_now_s() + idle_s, deadline_s))
        try:
            async with waiting:

                def progressed(progress: Progressed) -> None:
                    waiting.reschedule(min(_now_s() + idle_s, deadline_s))
                    noted(progress)

                return await door.ask(session, request, progressed)
        except TimeoutError:
            self._cancel(door, session, request, "it took too long")
            in_all = waiting.when() == deadline_s
            limit = "in the time that it has in all" if in_all else f"for {idle_s:g} s"
            why = f"no answer {limit}; what was asked may have run"
            return Exchange(timed_out(why))
        except asyncio.CancelledError:
            self._cancel(door, session, request, "nobody waits for it any more")
            raise

    def _cancel(self, door: Door, session: Session, request: Request, reason: str) -> None:
        notification = session.cancel(request.id, reason)
        if notification is not None and not door.closed:
            self._parts.spawn(_told(door, session, notification))


async def _told(door: Door, session: Session, notification: Notification) -> None:
    await door.tell(session, notification)


def _changes_lists(session: Session) -> bool:
    """Whether a server says when its list of tools changes."""
    tools = session.facts.capabilities.get("tools")
    return isinstance(tools, dict) and tools.get("listChanged") is True


def _now_s() -> float:
    return asyncio.get_running_loop().time()
