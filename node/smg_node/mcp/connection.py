"""Connection to one server with one credential: its tools, kept for as long as they are good, and calls of them."""

import asyncio
from collections.abc import Awaitable, Mapping
from typing import Any, Final, TypeVar

import msgspec

from smg_node.mcp.channel import ServerChannel
from smg_node.mcp.connection_parts import ConnectionParts
from smg_node.mcp.definition import Credential, ServerDefinition
from smg_node.mcp.failures import Failure, refused, timed_out, unreadable
from smg_node.mcp.limits import PAGES_MAX, TOOLS_MAX
from smg_node.mcp.session.call_extras import NO_EXTRAS, CallExtras
from smg_node.mcp.session.forgotten_session import OPENINGS_MAX, all_forgotten, forgets
from smg_node.mcp.session.opening import Opened, contradicts
from smg_node.mcp.session.session import Outcome, Session
from smg_node.mcp.session.shared_session import SharedSession
from smg_node.mcp.session.tool_call import (
    Answerer,
    CallStep,
    Ended,
    Relist,
    Reopen,
    Send,
    ToolCall,
    declined,
    read_arguments,
    with_argument,
)
from smg_node.mcp.tools.mirrored_arguments import mirrored_values
from smg_node.mcp.tools.tool import LeftOut, Tool, ToolList, ToolPage, read_page
from smg_node.mcp.tools.tool_result import CallResult
from smg_node.mcp.wire.messages import WireError

RELIST_S: Final = 10.0
"""A server that says that its tools changed, or that is away while there is an old list, is asked this often at most."""
_Said = TypeVar("_Said")


class ServerConnection:
    """Connection to one server. What goes wrong is returned as a value; calls run beside each other."""

    def __init__(
        self,
        definition: ServerDefinition,
        credential: Credential,
        parts: ConnectionParts,
        *,
        guarded: bool = False,
        shared: SharedSession | None = None,
    ) -> None:
        self.channel = ServerChannel(
            definition, credential, parts, self._changed, guarded=guarded, shared=shared
        )
        self._credential = credential
        self._spawn = parts.spawn
        self._limits = parts.limits
        self._listing = asyncio.Lock()
        self._list: ToolList | None = None
        self._listed_s = 0.0
        self._lists = 0
        """How often the server was asked, and has answered or failed to."""
        self._no_list: Failure | None = None
        """Why the last time there was no list; None where there was one."""

    def renew(self, credential: Credential) -> None:
        """Let later requests in by another credential of the same identity."""
        if credential is not self._credential:
            self._credential = credential
            self.channel.renew(credential)

    async def open(self) -> Opened | Failure:
        """Return how the server is opened, after opening it if need be."""
        return self._said(await self.channel.open())

    async def list_tools(self, *, fresh: bool = False) -> ToolList | Failure:
        """Return the server's tools: a list that is still good, else a new one, else an old one; new only if `fresh`."""
        lists = self._lists
        async with self._listing:
            if self.channel.changed():
                self._changed()
            kept = self._list
            if kept is not None and not fresh and _now_s() < kept.good_until_s:
                return kept
            if self._no_list is not None and self._lists > lists and not fresh:
                # It was asked while this one waited: else each would wait for a server that is away, one after the other.
                return self._no_list if kept is None else kept
            listed = await self._list_pages()
            self._lists += 1
            if isinstance(listed, Failure):
                self._no_list = self._said(listed)
                if kept is None or fresh:
                    return self._no_list
                self._list = kept._replace(good_until_s=_now_s() + RELIST_S)
                return kept
            self._list, self._listed_s, self._no_list = listed, _now_s(), None
            return listed

    async def call(
        self,
        tool: str,
        arguments: str | bytes,
        *,
        trace: Mapping[str, str] | None = None,
        answerer: Answerer = declined,
        total_s: float | None = None,
        extras: CallExtras = NO_EXTRAS,
    ) -> CallResult | Failure:
        """Call a tool with arguments as JSON text and return what came of it.

        `trace` are `traceparent` and `tracestate`. What the server asks back is answered by `answerer`. `total_s`
        shortens the time that the limits give. `extras` is what server and caller are told besides.
        """
        read = read_arguments(arguments)
        if isinstance(read, Failure):
            return read
        if extras.argument:
            read = with_argument(read, *extras.argument)
        if (why := self._left_out(tool)) is not None:
            return refused(f"{tool} is left out of the list: {why}")
        most_s = self._limits.call_total_s
        deadline_s = _now_s() + (most_s if total_s is None else min(total_s, most_s))
        if deadline_s <= _now_s():
            return timed_out("its time was over before it began", sent=False)
        call = ToolCall(tool, read, answerer, extras.passed)
        opened = await _in_time(self.channel.open(), deadline_s)
        step = call.again(opened) if isinstance(opened, Failure) else call.first()
        while not isinstance(step, Ended):
            assert isinstance(opened, Opened), "a call goes on in a session"
            match step:
                case Send():
                    mirrored = self._mirrored(tool, read.values) if step.is_call else ()
                    sending = (mirrored, trace, extras, deadline_s)
                    step = await self._send(opened.session, call, step, *sending)
                case Relist():
                    listed = await _in_time(self.list_tools(fresh=True), deadline_s)
                    step = call.again(listed if isinstance(listed, Failure) else None)
                case Reopen(keep_verdict=keeps):
                    reopened = self.channel.reopen(opened.session, keep_verdict=keeps)
                    opened = await _in_time(reopened, deadline_s)
                    step = call.again(opened if isinstance(opened, Failure) else None)
        return self._said(_explained(opened, step.outcome))

    async def close(self, *, leaving: bool = False) -> None:
        """End all connections, and the session unless others use it; see `ServerChannel.close`."""
        await self.channel.close(leaving=leaving)

    async def _send(
        self,
        session: Session,
        call: ToolCall,
        step: Send,
        mirrored: tuple[tuple[str, str], ...],
        trace: Mapping[str, str] | None,
        extras: CallExtras,
        deadline_s: float,
    ) -> CallStep:
        """Send one request of a call, and return the step after it."""
        meta, headers = (extras.meta, extras.headers) if step.is_call else (None, None)
        try:
            if step.after_s:
                await asyncio.sleep(min(step.after_s, max(0.0, deadline_s - _now_s())))
            request = session.request(
                step.method,
                step.params,
                mirrored=mirrored,
                trace=trace,
                meta=meta,
                headers=headers,
                capabilities=call.capabilities if step.is_call else None,
            )
            extras.begin()
            outcome = await self.channel.ask(
                session,
                request,
                idle_s=self._limits.call_idle_s,
                deadline_s=deadline_s,
                noted=extras.note,
            )
        except asyncio.CancelledError:
            if call.task_id:
                self._spawn(self._end_task(session, call.task_id))
            raise
        if isinstance(outcome, Failure) and contradicts(session, outcome):
            self.channel.doubt(session)
        if step.method == "tasks/update":
            return call.updated(outcome)
        return call.heard(session, outcome)

    async def _end_task(self, session: Session, task_id: str) -> None:
        """Tell the server to end a task whose result nobody waits for any more."""
        request = session.request("tasks/cancel", {"taskId": task_id})
        limit_s = self._limits.list_s
        await self.channel.ask(session, request, idle_s=limit_s, deadline_s=_now_s() + limit_s)

    def _mirrored(self, tool: str, values: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
        listed = self._list.tools.get(tool) if self._list is not None else None
        return tuple(mirrored_values(listed.mirrored, values)) if listed is not None else ()

    async def _list_pages(self) -> ToolList | Failure:
        opened = await self.channel.open()
        for _ in range(OPENINGS_MAX - 1):
            if isinstance(opened, Failure):
                return opened
            listed = await self._list_in(opened.session)
            if not isinstance(listed, Failure) or not forgets(opened.session, listed):
                return listed
            opened = await self.channel.reopen(opened.session)
        if isinstance(opened, Failure):
            return opened
        return _explained(opened, await self._list_in(opened.session))

    async def _list_in(self, session: Session) -> ToolList | Failure:
        tools: dict[str, Tool] = {}
        left_out: list[LeftOut] = []
        cursor, seen = "", {""}
        while True:
            page = self._page(session, await self._ask_page(session, cursor))
            if isinstance(page, Failure):
                return page
            left_out += page.left_out
            for tool in page.tools:
                if len(tools) >= TOOLS_MAX and tool.name not in tools:
                    left_out.append(LeftOut(tool.name, f"there are more than {TOOLS_MAX}"))
                else:
                    tools.setdefault(tool.name, tool)
            cursor = page.cursor
            if not cursor or cursor in seen or len(seen) >= PAGES_MAX:
                ttl_s = self._limits.list_ttl_s if page.ttl_s is None else page.ttl_s
                ordered = dict(sorted(tools.items()))
                good_until_s = _now_s() + ttl_s
                return ToolList(ordered, tuple(left_out[:TOOLS_MAX]), good_until_s, page.is_public)
            seen.add(cursor)

    async def _ask_page(self, session: Session, cursor: str) -> Outcome:
        request = session.request("tools/list", {"cursor": cursor} if cursor else {})
        limit_s = self._limits.list_s
        until_s = _now_s() + limit_s
        return await self.channel.ask(session, request, idle_s=limit_s, deadline_s=until_s)

    def _page(self, session: Session, outcome: Outcome) -> ToolPage | Failure:
        if isinstance(outcome, Failure):
            return outcome
        modern = session.revision.modern
        try:
            return read_page(outcome.result, modern=modern, by_http=session.by_http)
        except WireError:
            return unreadable("the server's answer is no list of tools")

    def _left_out(self, tool: str) -> str | None:
        if self._list is None or tool in self._list.tools:
            return None
        return next((one.why for one in self._list.left_out if one.name == tool), None)

    def _changed(self) -> None:
        if self._list is not None:
            soon_s = max(_now_s(), self._listed_s + RELIST_S)
            self._list = self._list._replace(good_until_s=min(self._list.good_until_s, soon_s))

    def _said(self, outcome: _Said) -> _Said:
        """Return an outcome without anything that lets somebody in."""
        if not isinstance(outcome, Failure):
            return outcome
        message = outcome.message
        for secret in self._credential.secrets:
            message = message.replace(secret, "…")
        return msgspec.structs.replace(outcome, message=message)


def _explained(opened: Opened | Failure, outcome: _Said) -> _Said | Failure:
    """Return an outcome; in place of a last 404 by replicas that know only their own sessions, what is wrong with those."""
    if isinstance(opened, Opened) and opened.session.scattered and forgets(opened.session, outcome):
        return all_forgotten()
    return outcome


async def _in_time(work: Awaitable[_Said], deadline_s: float) -> _Said | Failure:
    """Return what comes of work before a call, a failure if the call's time ends with it: then nothing was run."""
    try:
        async with asyncio.timeout_at(deadline_s):
            return await work
    except TimeoutError:
        return timed_out("the server was not opened in the time of the call", sent=False)


def _now_s() -> float:
    return asyncio.get_running_loop().time()
