"""Loop run: one generation whose model may call tools of this side: passes of the model, told as one stream.

    servers found and listed ─▶ calls that were left open ─▶ pass ─▶ its runs ─▶ pass … ─▶ Finish, Usage, End
                                                              └── each run begins when its call is whole

Every pass is a generation of its own, with workers, limits and retries of its own. Its prompt is that of the pass before,
what the model said, and what came of its calls. Runs belong to the pass whose calls they are: the next one begins when all
of them are over, and nothing of them is left when the run is. Whoever hears gets the stream of a single generation.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence

import msgspec

from smg_node.admission.ticket import Ticket
from smg_node.core.errors import SmgError, invalid
from smg_node.core.generation.answer import Answer
from smg_node.core.generation.byte_sink import ByteSink
from smg_node.core.generation.events import UNSAID, Begin, Event, Fail
from smg_node.core.generation.outcome import Outcome
from smg_node.core.generation.request import ChatPrompt, GenerateRequest
from smg_node.core.generation.served_call_ids import ServedCallIds
from smg_node.core.generation.tool_serving import ToolServing
from smg_node.core.request_context import RequestContext
from smg_node.pipeline.generation.event_iterator import pulled
from smg_node.pipeline.generation.event_sink import Ready, Receive
from smg_node.pipeline.generation.run_interface import Generations, Run, collected
from smg_node.pipeline.tool_loop.call_ledger import CallLedger
from smg_node.pipeline.tool_loop.loop_outlet import LoopOutlet
from smg_node.pipeline.tool_loop.loop_parts import LoopParts
from smg_node.pipeline.tool_loop.pass_outcomes import merged_outcome
from smg_node.pipeline.tool_loop.pass_plan import PassPlan
from smg_node.pipeline.tool_loop.pass_stream import Called, PassStream
from smg_node.pipeline.tool_loop.prior_calls import PriorCalls
from smg_node.pipeline.tool_loop.tool_runs import INCOMPLETE, ToolRuns
from smg_node.pipeline.tool_loop.toolbox import Toolbox, open_toolbox


class ToolLoopRun:
    """One generation with tools of this side; see `run_interface.Run`."""

    def __init__(
        self,
        inner: Generations,
        parts: LoopParts,
        dialect: str,
        request: GenerateRequest,
        context: RequestContext,
    ) -> None:
        self._inner = inner
        self._parts = parts
        self._dialect = dialect
        self._request = request
        self._id = context.token or parts.ids.new("")
        self._outcomes: list[Outcome] = []
        """What its passes came to; nothing any more once that was told."""
        self._context = msgspec.structs.replace(context, token=self._id, outcomes=self._outcomes)
        self._ended = False
        """Whether the answer has its end, or its failure."""
        self._toolbox: Toolbox | None = None
        self._plan: PassPlan | None = None
        self._run: Run | None = None
        """The pass in progress."""
        self._first: Run | None = None
        """A pass that has passed admission, and has not begun."""
        self._ticket: Ticket | None = None
        self._attempts = 0
        self._ignored = request.ignored

    @property
    def ignored(self) -> tuple[str, ...]:
        """Parameters without effect."""
        return self._ignored

    @property
    def worker(self) -> str:
        """Id of the worker in use."""
        return "" if self._run is None else self._run.worker

    @property
    def attempts(self) -> int:
        """Engine calls of the pass that took the most."""
        return max(self._attempts, 0 if self._run is None else self._run.attempts)

    @property
    def ticket(self) -> Ticket | None:
        """Admission ticket of the first pass."""
        return self._ticket

    @property
    def rounds_spent(self) -> int:
        """Rounds of an answer that ended because there may be no more of them; 0 of any other."""
        return 0 if self._plan is None else self._plan.rounds_spent

    async def enter(self) -> None:
        """List the servers' tools, find the model and pass admission; see `Run`."""
        plan = await self._planned()
        # Where calls are run before, what the first pass asks is not known: it is let in as what it is by now.
        run = self._started(plan.first_request())
        self._first = run
        try:
            await run.enter()
        except SmgError:
            self._ended = True
            self._report()
            raise
        finally:
            self._ticket = run.ticket

    def leave(self) -> None:
        """See `Run`."""
        if self._first is not None:
            self._first.leave()
        elif self._run is not None:
            self._run.leave()

    def events(self) -> AsyncGenerator[Sequence[Event], None]:
        """Yield the events of this generation; never raises SmgError."""
        return pulled(self.tell)

    async def answer(self) -> Answer:
        """See `Run`."""
        return await collected(self, 1)

    async def tell(
        self, receive: Receive, ready: Ready | None = None, through: ByteSink | None = None
    ) -> None:
        """See `Run`; nothing goes through as bytes."""
        outlet = LoopOutlet(receive, ready)
        try:
            plan = await self._planned()
            serving = self._serving
            if self._first is None and (serving.answered or serving.open_calls):
                # Nobody has tools run who is not let in.
                await self.enter()
        except SmgError as error:
            outlet.fail([Fail(error)])
            return
        try:
            await self._tell(outlet, plan)
        except BaseExceptionGroup as failures:
            raise _first_of(failures)  # noqa: B904  # its own cause is what tells why
        finally:
            if self._first is not None:
                # It ended before the pass that was let in began.
                self._first.leave()
            self._report()

    def _report(self) -> None:
        """Tell once what the request came to, if it has entered."""
        passes, self._outcomes[:] = list(self._outcomes), []
        if passes:
            ended_s = self._parts.clock.monotonic_s()
            outcome = merged_outcome(passes, gone=not self._ended, ended_s=ended_s)
            self._parts.on_outcome(outcome)

    # ── The beginning ────────────────────────────────────────────────────────

    @property
    def _serving(self) -> ToolServing:
        serving = self._request.serving
        assert serving is not None, "others need no loop"
        return serving

    async def _planned(self) -> PassPlan:
        if self._plan is None:
            request, serving = self._request, self._serving
            if request.choices != 1:
                raise invalid(
                    "n must be 1 where tools run on this side: each answer has calls of its own",
                    request.sampling.path("n"),
                )
            prompt = request.prompts[0]
            if not isinstance(prompt, ChatPrompt):
                raise invalid("tools that run on this side need a chat", prompt.where)
            parts, model = self._parts, request.model
            toolbox = await open_toolbox(
                parts, self._dialect, serving, prompt, self._context, model
            )
            self._ignored = (*request.ignored, *toolbox.ignored)
            self._toolbox = toolbox
            self._plan = PassPlan(request, prompt, serving, toolbox.catalog)
        return self._plan

    def _started(self, request: GenerateRequest) -> Run:
        return self._inner.start(self._dialect, request, self._context)

    # ── Passes ───────────────────────────────────────────────────────────────

    async def _tell(self, outlet: LoopOutlet, plan: PassPlan) -> None:
        parts, toolbox, serving = self._parts, self._toolbox, self._serving
        assert toolbox is not None, "a plan is made of it"
        ledger = CallLedger(
            toolbox.catalog,
            plan.client_names,
            serving,
            allowed=plan.allowed,
            waits=parts.approvals is not None,
        )
        model, options = self._request.model, parts.options()
        runs = ToolRuns(
            parts,
            options,
            toolbox,
            ledger,
            outlet,
            self._context,
            self._id,
            model,
            plan.searched_clients(),
            serving.gate,
        )
        runs.pictured = plan.pictures
        block = await self._prior(outlet, plan, ledger, runs)
        rounds_max = options.rounds_max
        apart, number, call_ids = False, 0, ServedCallIds(self._id)
        while True:
            number += 1
            stream = PassStream(
                ledger.judge, block, runs.annotations, apart=apart, number=number, call_ids=call_ids
            )
            await self._pass(outlet, plan, stream, runs)
            if (
                stream.failure is not None
                and stream.begin is None
                and plan.drop_pictures(stream.failure)
            ):
                # It has said nothing, and is made again: a refused pass is none.
                number -= 1
                del self._outcomes[-1:]
                runs.pictured = plan.pictures
                continue
            if stream.failure is not None:
                self._ended = True
                outlet.fail([Fail(runs.blame(stream.failure))])
                return
            block, apart = stream.next_block, stream.apart
            ending = plan.after(stream, runs.results, ledger, rounds_max=rounds_max)
            if ending:
                self._ended = True
                outlet.say(ending)
                return
            if outlet.full:
                await outlet.ready()
            self._context = msgspec.structs.replace(
                self._timed(), token="", goes_on=True, patient=True
            )

    async def _prior(
        self, outlet: LoopOutlet, plan: PassPlan, ledger: CallLedger, runs: ToolRuns
    ) -> int:
        """Run what was called before this answer; return the number of its next block."""
        serving = self._serving
        if not (serving.answered or serving.open_calls):
            return 0
        assert self._toolbox is not None, "a plan is made of it"
        prior = PriorCalls(serving, self._toolbox.catalog, ledger)
        if prior.next_block:
            # They may take minutes, in which whoever asked is to hear of them.
            outlet.say([self._own_begin(), *self._toolbox.listed])
        try:
            async with asyncio.TaskGroup() as group:
                for called in prior.calls:
                    outlet.say([*prior.shown(called), *runs.begin(called, group)])
                runs.spoken = True
        finally:
            runs.cut()
        self._context = msgspec.structs.replace(self._timed(), patient=True)
        plan.add_prior(prior, runs.results)
        return prior.next_block

    async def _pass(
        self, outlet: LoopOutlet, plan: PassPlan, stream: PassStream, runs: ToolRuns
    ) -> None:
        """Have the model speak once, and return when the runs of its calls are over as well."""
        run = self._next_run(plan)
        passing: _Passing | None = None
        try:
            async with asyncio.TaskGroup() as group:
                passing = _Passing(self._opening, outlet, stream, runs, group)
                await run.tell(passing.hear, outlet.ready)
                if stream.failure is not None:
                    runs.cancel()
        finally:
            if passing is not None:
                passing.over()
            self._attempts = max(self._attempts, run.attempts)
            if self._ticket is None:
                self._ticket = run.ticket
            runs.cut()

    def _next_run(self, plan: PassPlan) -> Run:
        run, self._first = self._first, None
        if run is not None and plan.changed:
            # It was let in before what it asks was known.
            run.leave()
            run = None
        if run is None:
            run = self._started(plan.request())
        self._run = run
        return run

    def _timed(self) -> RequestContext:
        """Return the context of a pass that begins now: what its model takes has no run of a tool in it."""
        clock, context = self._parts.clock, self._context
        received_ms = clock.now_ms() if context.received_ms else 0
        return msgspec.structs.replace(
            context, received_s=clock.monotonic_s(), received_ms=received_ms
        )

    def _opening(self, stream: PassStream) -> list[Event]:
        """Return what an answer begins with, as its first pass says it."""
        run, toolbox = self._run, self._toolbox
        assert run is not None, "a pass speaks"
        assert stream.begin is not None, "it has begun"
        assert toolbox is not None, "a plan is made of it"
        told = [name for name in run.ignored if name not in self._ignored]
        self._ignored = (*self._ignored, *told)
        return [stream.begin, *stream.echoes, *toolbox.listed]

    def _own_begin(self) -> Begin:
        """Return the beginning of an answer whose model has not spoken yet: how long its prompt is nobody knows."""
        sampling, now_s = self._request.sampling, self._parts.clock.now_ms() // 1000
        heat, top_p = sampling.temperature, sampling.top_p
        return Begin(
            self._id,
            self._request.model,
            now_s,
            0,
            temperature=UNSAID if heat is None else heat,
            top_p=UNSAID if top_p is None else top_p,
        )


class _Passing:
    """One pass as it is heard: its events go out, and what is called in it begins to run."""

    def __init__(
        self,
        opening: Callable[[PassStream], list[Event]],
        outlet: LoopOutlet,
        stream: PassStream,
        runs: ToolRuns,
        group: asyncio.TaskGroup,
    ) -> None:
        self._opening = opening
        self._outlet = outlet
        self._stream = stream
        self._runs = runs
        self._group = group
        self._seen = 0

    def hear(self, batch: Sequence[Event]) -> bool:
        """Take what one wake-up brought; see `event_sink.Receive`."""
        stream, outlet = self._stream, self._outlet
        out = stream.feed(batch)
        if stream.begin is not None and not outlet.begun:
            out = [*self._opening(stream), *out]
        self._runs.spoken = stream.finish is not None
        called = stream.calls[self._seen :]
        self._seen = len(stream.calls)
        for call in called:
            if call.judged.fate != "client":
                out += self._begun(call)
        return outlet.say(out)

    def over(self) -> None:
        """Let go of the answer, which keeps the run that keeps this: nothing is heard any more."""
        self._opening = _unopened

    def _begun(self, call: Called) -> list[Event]:
        finish = self._stream.finish
        cut = finish is not None and finish.reason not in ("stop", "tool_calls")
        if self._stream.failure is not None:
            # The last call of a pass that broke may be half of one.
            return []
        if cut and not _is_object(call.arguments):
            return self._runs.refuse(call, INCOMPLETE)
        return self._runs.begin(call, self._group)


def _unopened(_stream: PassStream) -> list[Event]:
    raise AssertionError("what is over does not begin")


def _is_object(text: str) -> bool:
    try:
        return isinstance(msgspec.json.decode(text), dict)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False


def _first_of(failures: BaseExceptionGroup[BaseException]) -> BaseException:
    first = failures.exceptions[0]
    return _first_of(first) if isinstance(first, BaseExceptionGroup) else first
