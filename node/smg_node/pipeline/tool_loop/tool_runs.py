"""Tool runs: the runs of one answer, so many at a time, in the task group of the pass whose calls they are.

A run never fails what it belongs to: whatever comes of it is a result. Only an error of whoever hears is raised. What is
open when everything ends is cancelled with its task group, and `cut` says so.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from smg_node.core.errors import SmgError
from smg_node.core.generation.events import Event, RunEnd, RunNote, RunStart
from smg_node.core.generation.tool_serving import RunResult, Source
from smg_node.core.journey import Ran
from smg_node.core.ports import SendGate
from smg_node.core.request_context import RequestContext
from smg_node.mcp.catalog.arguments import server_arguments, shown_schema
from smg_node.mcp.catalog.catalog import OfferedTool
from smg_node.mcp.failures import Failure, crowded, plain_text, refused
from smg_node.mcp.run_record import RunRecord, may_repeat
from smg_node.mcp.search.searched_tool import SearchedTool
from smg_node.mcp.tool_servers import CallOptions
from smg_node.mcp.tools.content import cut_text
from smg_node.mcp.tools.tool_result import CallResult
from smg_node.pipeline.tool_loop.call_ledger import CallLedger
from smg_node.pipeline.tool_loop.loop_outlet import LoopOutlet
from smg_node.pipeline.tool_loop.loop_parts import LoopParts
from smg_node.pipeline.tool_loop.pass_stream import Called
from smg_node.pipeline.tool_loop.ports import LoopOptions, OperatorAnswer
from smg_node.pipeline.tool_loop.run_results import cut_result, not_run, outcome_of, result_of
from smg_node.pipeline.tool_loop.toolbox import Toolbox

NOTES_MAX: Final = 256
"""Notes of one run's progress that are told; a server may send any number."""
_NOTE_CHARACTERS_MAX: Final = 500
_TRACE: Final = ("traceparent", "tracestate")
CIRCLE: Final = "the same call was made twice already; its results are above"
UNKEPT: Final = "nothing can be kept of it now, so that it could be lost, or run twice"
WAITING: Final = "waiting for an operator's approval"
INCOMPLETE: Final = "the answer ended in the middle of its arguments"


class _OpenRun:
    """A run that has begun and is not over."""

    __slots__ = ("called", "notes", "outcome", "sent", "task")

    def __init__(self, called: Called) -> None:
        self.called = called
        self.outcome = "ok"
        self.task: asyncio.Task[None] | None = None
        self.sent = False
        self.notes = 0


class ToolRuns:
    """Runs of one answer. `answer_id` begins their keys, `model` makes the calls; `client_tools` may be found by a search as well.

    `gate` is passed before anything is sent.
    """

    def __init__(
        self,
        parts: LoopParts,
        options: LoopOptions,
        toolbox: Toolbox,
        ledger: CallLedger,
        outlet: LoopOutlet,
        context: RequestContext,
        answer_id: str,
        model: str,
        client_tools: tuple[SearchedTool, ...] = (),
        gate: SendGate | None = None,
    ) -> None:
        self._parts = parts
        self._toolbox = toolbox
        self._ledger = ledger
        self._outlet = outlet
        self._context = context
        self._answer_id = answer_id
        self._model = model
        self._client_tools = client_tools
        self._gate = gate
        self._options = options
        self._servers = parts.servers()
        self._slots = asyncio.Semaphore(self._options.parallel_max)
        self._turns: dict[str, asyncio.Lock] = {}
        """By label of a server that has a session of its own here: its calls come one after the other."""
        self._open: dict[int, _OpenRun] = {}
        self._showing = asyncio.Lock()
        self.pictured = 0
        """Pictures that the model is shown: those of the conversation, and of results."""
        self.spoken = False
        """Whether the pass whose calls they are has said all that it says."""
        self._once = False
        """Whether a call was sent that may not be sent a second time."""
        self.results: dict[str, RunResult] = {}
        """What came of calls of ours, by the call's id."""
        self.sources: list[Source] = []
        """What searches found, without the texts, in the order of the numbers that the model was shown."""

    def begin(self, called: Called, group: asyncio.TaskGroup) -> list[Event]:
        """Begin what is to be done about a call of ours, in a task of `group`; return what is to be said of it now."""
        judged, block = called.judged, called.block
        assert judged.fate != "client", "clients run their own tools"
        if judged.fate == "ask":
            self._note(called, "asked")
            return []
        if block is None:
            self._note(called, "refused")
            self.results[called.call_id] = not_run(judged.why)
            return []
        if judged.fate == "refuse":
            return self._refused(called, judged.why)
        if self._ledger.in_a_circle(called.name, called.arguments):
            return self._refused(called, CIRCLE)
        assert judged.tool is not None, "what is run is offered"
        self._open[block] = run = _OpenRun(called)
        run.task = group.create_task(self._run(called, block, judged.tool), name="tool run")
        return [RunStart(0, block)]

    def refuse(self, called: Called, why: str) -> list[Event]:
        """Return what is to be said of a call of ours that is not run after all."""
        if called.block is None or called.judged.fate == "ask":
            self.results[called.call_id] = not_run(why)
            return []
        return self._refused(called, why)

    def annotations(self, text: str) -> tuple[Mapping[str, Any], ...]:
        """Return the citations in a text of the model's."""
        builtins = self._parts.builtins
        if builtins is None or not self.sources:
            return ()
        return builtins.annotations(text, self.sources)

    def cancel(self) -> None:
        """Cancel the runs that are open: the pass whose calls they are has failed."""
        for run in self._open.values():
            if run.task is not None:
                run.task.cancel()

    def blame(self, failure: SmgError) -> SmgError:
        """Return the failure of the answer: whoever asks again would have its calls run again."""
        failure.once = failure.once or self._once
        return failure

    def cut(self) -> None:
        """Say of the runs that are still open that they were cut; their tasks have been cancelled."""
        ends: list[Event] = [
            RunEnd(0, block, cut_result(sent=self._open[block].sent))
            for block in sorted(self._open)
        ]
        for run in self._open.values():
            self._note(run.called, "cut")
        self._open.clear()
        self._outlet.last_words(ends)

    def _note(self, called: Called, outcome: str, ms: int = 0) -> None:
        judged, owner = called.judged, called.judged.owner
        server, tool = ("", called.name) if owner is None else (owner.server, owner.tool)
        ran = Ran(
            self._parts.clock.now_ms(), server, tool, judged.verdict, judged.rule, outcome, ms
        )
        self._parts.on_run(self._context.request_id, ran)

    def _refused(self, called: Called, why: str) -> list[Event]:
        assert called.block is not None, "what is refused is shown"
        self._note(called, "refused")
        result = self.results[called.call_id] = not_run(why)
        return [RunStart(0, called.block), RunEnd(0, called.block, result)]

    async def _run(self, called: Called, block: int, tool: OfferedTool) -> None:
        try:
            result = await self._result(called, block, tool)
        except asyncio.CancelledError:
            if self._outlet.error is not None:
                # Whoever hears has failed at a note, where nothing can be raised.
                raise self._outlet.error from None
            raise
        self._note(called, self._open[block].outcome, result.duration_ms)
        # What a client is shown of it may be megabytes, which nobody here needs any more.
        self.results[called.call_id] = RunResult(
            result.text, found=result.found, pictures=result.pictures
        )
        del self._open[block]
        self._outlet.say([RunEnd(0, block, result, self.spoken)])

    async def _result(self, called: Called, block: int, tool: OfferedTool) -> RunResult:
        if called.judged.fate == "wait":
            answer = await self._asked(called, block, tool)
            if not answer.approve:
                self._open[block].outcome = "refused"
                why = f"{answer.why} ({called.judged.rule})"
                return result_of(crowded(why), bytes_max=0) if answer.crowded else not_run(why)
        turn = self._turn(tool)
        if turn is None:
            async with self._slots:
                return await self._timed(called, block, tool)
        async with turn, self._slots:
            return await self._timed(called, block, tool)

    async def _asked(self, called: Called, block: int, tool: OfferedTool) -> OperatorAnswer:
        approvals = self._parts.approvals
        assert approvals is not None, "what waits is asked about"
        self._outlet.say([RunNote(0, block, WAITING)])
        until_s = self._parts.clock.monotonic_s() + self._options.approval_wait_s
        until_s = min(until_s, self._context.deadline_s)
        return await approvals.wait(
            tool.owner, called.arguments, self._context, model=self._model, until_s=until_s
        )

    def _turn(self, tool: OfferedTool) -> asyncio.Lock | None:
        if tool.spec.session != "thread":
            return None
        return self._turns.setdefault(tool.owner.server, asyncio.Lock())

    async def _timed(self, called: Called, block: int, tool: OfferedTool) -> RunResult:
        monotonic_s = self._parts.clock.monotonic_s
        begun_s = monotonic_s()
        result = await self._done(called, block, tool)
        duration_ms = round((monotonic_s() - begun_s) * 1000)
        return msgspec.structs.replace(result, duration_ms=duration_ms)

    async def _done(self, called: Called, block: int, tool: OfferedTool) -> RunResult:
        """Run a tool, keep its result, and return it."""
        builtin = tool.builtin
        if builtin is not None and builtin.kind == "tool_search":
            search = self._parts.search
            assert search is not None, "what is offered is there"
            tools = self._searched()
            return await search.search(builtin, called.arguments, tools, self._context)
        journal = self._parts.journal
        key = f"{self._answer_id}/{called.call_id}"
        if journal is not None:
            await journal.meant(key, called.judged.owner or tool.owner, called.arguments)
        if self._gate is not None and not await self._gate.passed(block):
            self._open[block].outcome = "refused"
            return not_run(UNKEPT)
        arguments = await self._arguments(called, tool)
        if isinstance(arguments, Failure):
            outcome: CallResult | Failure = arguments
        else:
            outcome = await self._called(key, arguments, block, tool)
        self._open[block].outcome = outcome_of(outcome)
        result = self._read(tool, called.arguments, outcome)
        # Their texts, which may be megabytes, nobody here needs any more.
        self.sources += [msgspec.structs.replace(one, text="") for one in result.sources]
        if journal is not None:
            await journal.done(key, result)
        pictures = self._parts.pictures
        if pictures is not None and any(block.get("type") == "image" for block in result.content):
            # Engines bound the pictures of a request, so one result is looked at after the other.
            async with self._showing:
                shown = await pictures.shown(
                    self._model, result.content, self.pictured, self._context.tenant
                )
                self.pictured += len(shown)
            result = msgspec.structs.replace(result, pictures=shown)
        return result

    async def _arguments(self, called: Called, tool: OfferedTool) -> str | Failure:
        """Return the arguments for the server; a failure where those of a built-in tool are none."""
        arguments, builtin = called.arguments, tool.builtin
        if builtin is not None:
            builtins, servers = self._parts.builtins, self._servers
            assert builtins is not None, "what is offered is there"
            assert servers is not None, "what is offered is there"
            listed = await servers.list_tools(self._toolbox.servers[tool.owner.server])
            known = None if isinstance(listed, Failure) else listed.tools.get(tool.owner.tool)
            schema = None if known is None else shown_schema(known.input_schema, tool.rule)
            made = builtins.arguments(builtin.kind, builtin.settings, arguments, schema)
            if isinstance(made, Failure):
                return made
            arguments = made
        return server_arguments(arguments, tool.rule)

    def _searched(self) -> tuple[SearchedTool, ...]:
        """Return the tools that a prompt does not show, by the names that the model calls them by."""
        ours = (
            SearchedTool(tool.function.name, tool.listed, tool.owner.server)
            for tool in self._toolbox.catalog.deferred()
        )
        return (*ours, *self._client_tools)

    def _read(self, tool: OfferedTool, arguments: str, outcome: CallResult | Failure) -> RunResult:
        bytes_max = tool.rule.output_bytes_max or self._options.output_bytes_max
        shape, builtins = tool.owner.shape, self._parts.builtins
        if shape == "mcp" or builtins is None:
            return result_of(outcome, bytes_max=bytes_max)
        settings = {} if tool.builtin is None else tool.builtin.settings
        first = len(self.sources) + 1
        result = builtins.read(
            shape, settings, arguments, outcome, first=first, bytes_max=bytes_max
        )
        return msgspec.structs.replace(result, text=cut_text(result.text, bytes_max))

    async def _called(
        self, key: str, arguments: str, block: int, tool: OfferedTool
    ) -> CallResult | Failure:
        """Call a server, twice at most, and return what came of it."""
        assert self._servers is not None, "what is offered is there"
        record = RunRecord(key, repeats=may_repeat(tool.spec, tool.hints))
        server = self._toolbox.servers[tool.owner.server]
        options = self._call_options(record, block, tool)
        while True:
            try:
                outcome = await self._servers.call(
                    server, tool.owner.tool, arguments, self._context, options
                )
            except SmgError as error:
                # A limit, or a server that is not there any more.
                outcome = refused(error.message)
            ended = record.heard(outcome)
            if ended is not None:
                return ended

    def _call_options(self, record: RunRecord, block: int, tool: OfferedTool) -> CallOptions:
        journal, run, outlet = self._parts.journal, self._open[block], self._outlet
        task = asyncio.current_task()
        assert task is not None, "runs are tasks"

        def sending() -> None:
            record.sending()
            run.sent = True
            self._once = self._once or not record.repeats
            if journal is not None:
                journal.sent(record.key)

        def noted(message: str, done: float | None, total: float | None) -> None:
            if run.notes >= NOTES_MAX or outlet.full or block not in self._open:
                return
            run.notes += 1
            note = RunNote(0, block, plain_text(message, _NOTE_CHARACTERS_MAX), done, total)
            try:
                outlet.say([note])
            except BaseException:
                # Raised in the connection's own task it would end the calls of others.
                task.cancel()

        left_s = self._context.deadline_s - self._parts.clock.monotonic_s()
        own_s = tool.rule.timeout_s
        return CallOptions(
            key=record.key,
            trace=_trace(self._context.upstream_headers),
            sending=sending,
            noted=noted,
            total_s=max(0.0, min(own_s, left_s) if own_s else left_s),
            model=self._model,
        )


def _trace(headers: Mapping[str, str]) -> Mapping[str, str] | None:
    return {name: headers[name] for name in _TRACE if name in headers} or None
