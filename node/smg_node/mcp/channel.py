"""Channel to one server: opens it through the door that fits, and sends requests within their time."""

import asyncio
from collections.abc import Callable
from functools import partial

from smg_node.mcp.connection_parts import ConnectionParts
from smg_node.mcp.definition import Credential, ServerDefinition
from smg_node.mcp.doors.door import Door, Exchange, OnProgress
from smg_node.mcp.doors.http_calls import HttpCalls
from smg_node.mcp.doors.http_door import HttpDoor
from smg_node.mcp.doors.sse_door import SseDoor
from smg_node.mcp.doors.stdio_door import StdioDoor
from smg_node.mcp.failures import Failure, lost, timed_out
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


def ignore_progress(_progress: Progressed) -> None:
    """Take no notice of progress."""


class ServerChannel:
    """Channel of one definition with one credential. `on_change`: the server says that its tools changed.

    `guarded`: a client gave the URL, so only addresses that the parts allow are connected with.
    """

    def __init__(
        self,
        definition: ServerDefinition,
        credential: Credential,
        parts: ConnectionParts,
        on_change: Callable[[], None],
        *,
        guarded: bool = False,
    ) -> None:
        self.opened: Opened | None = None
        """How the server is opened, None while it is not."""
        self._definition = definition
        self._credential = credential
        self._parts = parts
        self._limits = parts.limits
        self._on_change = on_change
        self._guarded = guarded
        self._calls: HttpCalls | None = None
        self._key = (definition.digest, credential.digest)
        self._door: Door | None = None
        self._lock = asyncio.Lock()

    async def open(self) -> Opened | Failure:
        """Return how the server is opened, after opening it if need be; calls beside each other open it once."""
        async with self._lock:
            if self.opened is not None and self._door is not None and not self._door.closed:
                return self.opened
            result: Opened | Failure | None = None
            try:
                result = await self._run()
            finally:
                # By HTTP, calls of a session before may still be under way.
                if not isinstance(result, Opened) and not isinstance(self._door, HttpDoor):
                    await self._let_go()
            return result

    async def reopen(self, gone: Session, *, keep_verdict: bool = True) -> Opened | Failure:
        """Return how the server is opened after it forgot a session, or contradicted the verdict on it."""
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

    async def close(self) -> None:
        """End the session and all connections."""
        async with self._lock:
            await self._let_go()

    async def _run(self) -> Opened | Failure:
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
        if opened.handshake:
            failure = await self._door.tell(opened.session.initialized())
            if failure is not None:
                return failure
            if _changes_lists(opened.session):
                self._parts.spawn(self._door.listen(opened.session))
        until_s = _now_s() + self._limits.verdict_s
        self._parts.verdicts.put(self._key, opened.verdict, until_s)
        self.opened = opened
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
        url = self._definition.url
        calls = self._calls = HttpCalls(
            url,
            self._credential,
            connect_s=limits.connect_s,
            trust=self._parts.trust,
            proxy=self._parts.proxy,
            allowed=partial(self._parts.allowed, url) if self._guarded else None,
        )
        if transport is Transport.HTTP:
            self._door = HttpDoor(calls, limits, spawn, self._on_change)
            return None
        stream = SseDoor(calls, limits, spawn, self._on_change)
        self._door = stream
        return await stream.open()

    async def _let_go(self) -> None:
        door, self._door = self._door, None
        opened, self.opened = self.opened, None
        if door is not None:
            await door.close(opened.session if opened is not None else None)

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
            self._parts.spawn(_told(door, notification))


async def _told(door: Door, notification: Notification) -> None:
    await door.tell(notification)


def _changes_lists(session: Session) -> bool:
    """Whether a server says when its list of tools changes."""
    tools = session.facts.capabilities.get("tools")
    return isinstance(tools, dict) and tools.get("listChanged") is True


def _now_s() -> float:
    return asyncio.get_running_loop().time()
