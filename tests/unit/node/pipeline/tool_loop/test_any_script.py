"""Any script: whatever models say, servers do and clients leave, the stream obeys the grammar and nothing is left behind."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.events import (
    Begin,
    End,
    Event,
    Fail,
    Finish,
    RunEnd,
    RunStart,
    Usage,
)
from smg_node.core.generation.tool_serving import (
    ApprovalRule,
    ApprovedCall,
    AskedServer,
    ToolFilter,
    ToolServing,
)
from smg_node.mcp.failures import Failure, bare_status, lost
from smg_node.mcp.tool_servers import CallOptions
from smg_node.mcp.tools.tool_result import CallResult
from smg_node.pipeline.tool_loop.ports import LoopOptions
from support.mcp.loop_world import (
    CONTEXT,
    Listener,
    Model,
    Pass,
    Servers,
    calls,
    loop,
    request,
    said,
)

TOOLS = {"a": ["read", "write", "drop"], "b": ["read", "secret"]}
NAMES = ["a__read", "write", "drop", "b__read", "secret", "mine", "nonsense"]
ENDS = ["ok", "ok", "ok", "tool error", "status", "lost", "raises", "slow", "hangs"]


class Script(NamedTuple):
    """What happens to one answer."""

    passes: tuple[Pass, ...]
    ends: tuple[str, ...]
    """What comes of calls, in the order in which they are sent."""
    serving: ToolServing
    options: LoopOptions
    leaves_at: int | None
    """After so many turns of the loop the client leaves; None if it stays."""


@st.composite
def passes(draw: st.DrawFn) -> Pass:
    blocks: list[list[Event]] = []
    for block in range(draw(st.integers(0, 4))):
        kind = draw(st.sampled_from(["text", "reasoning", "call", "call", "call"]))
        if kind == "call":
            arguments = draw(st.sampled_from(["{}", '{"n":1}', '{"n":2}', "", '{"n":', "[]"]))
            blocks.append(calls(draw(st.sampled_from(NAMES)), arguments, block=block))
        else:
            blocks.append(said(draw(st.sampled_from(["", "hello", "é😀"])), block=block, kind=kind))
    events = [Begin("b" * 32, "m", 5, 10), *(event for block in blocks for event in block)]
    end = draw(st.sampled_from(["stop", "stop", "tool_calls", "length", "pause", "fails"]))
    if end == "fails":
        last: list[Event] = [Fail(SmgError(ErrorKind.UPSTREAM_FAILED, "it broke"))]
        # A pass may break before it begins.
        events = events if draw(st.booleans()) else []
    else:
        last = [Finish(0, end), Usage(10, len(blocks), 1), End()]  # type: ignore[arg-type]  # one of its values
    return _cut(draw, [*events, *last])


def _cut(draw: st.DrawFn, events: Sequence[Event]) -> Pass:
    """Return the events in wake-ups of any size."""
    places = sorted(draw(st.sets(st.integers(1, max(1, len(events) - 1)), max_size=6)))
    bounds = [0, *places, len(events)]
    pieces = [events[start:end] for start, end in pairwise(bounds)]
    return [piece for piece in pieces if piece]


@st.composite
def scripts(draw: st.DrawFn, *, leaves: bool = False) -> Script:
    rule = draw(
        st.sampled_from(
            [
                None,
                ApprovalRule(otherwise="never"),
                ApprovalRule(ToolFilter(("drop",)), otherwise="never"),
            ]
        )
    )
    answered = draw(st.integers(0, 2))
    serving = ToolServing(
        (AskedServer("a", approval=rule), AskedServer("b", tools=ToolFilter(("read",)))),
        calls_max=draw(st.sampled_from([None, None, 0, 2])),
        answered=tuple(
            ApprovedCall(f"mcpr_{n}", "a", "write", f'{{"n":{n}}}', approve=draw(st.booleans()))
            for n in range(answered)
        ),
        approvals=rule is not None,
        stored=True,
    )
    return Script(
        tuple(draw(st.lists(passes(), min_size=4, max_size=4))),
        tuple(draw(st.lists(st.sampled_from(ENDS), min_size=40, max_size=40))),
        serving,
        LoopOptions(rounds_max=draw(st.integers(1, 4)), parallel_max=draw(st.integers(1, 8))),
        draw(st.integers(0, 60)) if leaves else None,
    )


class Work:
    """Calls that end as the script says."""

    def __init__(self, ends: Sequence[str], *, hangs: bool) -> None:
        self._ends = iter(ends)
        self._hangs = hangs
        self.done = 0

    async def __call__(
        self, tool: str, arguments: str, options: CallOptions
    ) -> CallResult | Failure:
        end = next(self._ends)
        assert options.sending is not None
        assert options.noted is not None
        await asyncio.sleep(0)
        options.sending()
        for turn in range({"slow": 12, "hangs": 30}.get(end, 2)):
            await asyncio.sleep(0)
            options.noted("on it", turn, None)
        self.done += 1
        match end:
            case "tool error":
                return CallResult(({"type": "text", "text": "no"},), is_error=True)
            case "status":
                return bare_status(503)
            case "lost":
                return lost("reset", sent=True)
            case "raises":
                raise SmgError(ErrorKind.RATE_LIMITED, "limited")
            case "hangs" if self._hangs:
                await asyncio.Event().wait()
        return CallResult(({"type": "text", "text": "fine"},))


async def _told(script: Script, listener: Listener, model: Model, servers: Servers) -> None:
    asked = request(script.serving, tools=["mine"])
    run = loop(model, servers, options=lambda: script.options).start("chat", asked, CONTEXT)
    async with asyncio.timeout(20):
        await run.tell(listener.receive)


def _balanced(listener: Listener) -> None:
    """Every run that starts ends, once."""
    started = Counter(event.block for event in listener.of(RunStart))
    ended = Counter(event.block for event in listener.of(RunEnd))
    assert started == ended
    assert set(started.values()) <= {1}


@given(scripts())
def test_every_script_is_told_by_the_grammar_to_its_end(script: Script) -> None:
    async def run() -> None:
        listener, model = Listener(), Model(*script.passes)
        servers = Servers(TOOLS, Work(script.ends, hangs=False))
        await _told(script, listener, model, servers)
        assert listener.grammar.over
        assert servers.open == 0
        assert servers.open_most <= script.options.parallel_max
        assert all(one.closed.is_set() or not one.pulled for one in model.runs)
        _balanced(listener)
        _check_prompts(model)
        most = script.serving.calls_max
        answered = sum(one.approve for one in script.serving.answered)
        assert most is None or len(servers.ran) <= max(most, answered)
        if not isinstance(listener.events[-1], Fail):
            spoke = [one for one in model.runs if one.finished]
            usage = listener.answer().usage
            assert usage.prompt_tokens == 10 * len(spoke)
            assert len(spoke) <= script.options.rounds_max

    asyncio.run(run())


def _check_prompts(model: Model) -> None:
    """Each pass is asked what the one before it was, and more; every call of its history has one result."""
    prompts = [model.prompt(at) for at in range(len(model.runs))]
    for before, after in pairwise(prompts):
        assert after.turns[: len(before.turns)] == before.turns
        assert after.tools == before.tools
    for prompt in prompts:
        made = Counter(call.call_id for turn in prompt.turns for call in turn.calls)
        told = Counter(turn.answers_call for turn in prompt.turns if turn.answers_call)
        assert made == told


@given(scripts(leaves=True))
def test_a_client_that_leaves_at_any_moment_leaves_nothing_behind(script: Script) -> None:
    async def run() -> None:
        listener, model = Listener(), Model(*script.passes)
        servers = Servers(TOOLS, Work(script.ends, hangs=True))
        leaves_at = script.leaves_at
        assert leaves_at is not None
        async with asyncio.timeout(20), asyncio.TaskGroup() as group:
            task = group.create_task(_told(script, listener, model, servers))
            for _ in range(leaves_at):
                await asyncio.sleep(0)
            task.cancel()
        assert servers.open == 0
        assert all(one.closed.is_set() or not one.pulled for one in model.runs)
        _balanced(listener)
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left

    asyncio.run(run())


@given(scripts(leaves=True))
def test_whoever_hears_may_fail_at_any_word(script: Script) -> None:
    class Deaf(Listener):
        def receive(self, batch: Sequence[Event]) -> bool:
            assert self.words >= 0, "nothing is said to whoever has failed"
            self.words -= 1
            if self.words < 0:
                raise SmgError(ErrorKind.CLIENT_GONE, "gone")
            return super().receive(batch)

        words = 0

    async def run() -> None:
        listener, model = Deaf(), Model(*script.passes)
        listener.words = (script.leaves_at or 0) // 4
        servers = Servers(TOOLS, Work(script.ends, hangs=False))
        outcome = (
            await asyncio.gather(_told(script, listener, model, servers), return_exceptions=True)
        )[0]
        if outcome is None:
            assert listener.grammar.over
        else:
            assert isinstance(outcome, SmgError)
            assert outcome.kind is ErrorKind.CLIENT_GONE
        assert servers.open == 0
        assert not asyncio.all_tasks() - {asyncio.current_task()}

    asyncio.run(run())
