"""Outcomes of passes as one: tokens of all, the end of the last, and the time in which tools ran."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.events import Event, Fail, Usage
from smg_node.core.generation.outcome import Bill, Outcome
from smg_node.mcp.tool_servers import CallOptions
from smg_node.mcp.tools.tool_result import CallResult
from smg_node.pipeline.tool_loop.pass_outcomes import merged_outcome
from support.history.fake_runs import FakeRun
from support.mcp.loop_world import (
    CONTEXT,
    Listener,
    Model,
    Servers,
    breaks,
    calls,
    heard,
    loop,
    request,
    said,
    serving,
    speech,
)


def one(begun_s: float = 0.0, **changes: Any) -> Outcome:
    """Return a pass that begins here, has its first token a second later and ends after another."""
    given: dict[str, Any] = {
        "dialect": "chat",
        "model": "m",
        "worker": "w",
        "kind": "ok",
        "error_code": "",
        "status": 200,
        "streamed": True,
        "prompt_tokens": 10,
        "cached_tokens": 4,
        "completion_tokens": 5,
        "received_s": begun_s,
        "first_token_s": begun_s + 1,
        "ended_s": begun_s + 2,
        "attempts": 1,
        **changes,
    }
    return Outcome(**given)


def merged(*passes: Outcome, gone: bool = False, ended_s: float = 0.0) -> Outcome:
    return merged_outcome(passes, gone=gone, ended_s=ended_s)


def test_several_passes_are_one_request_from_the_first_to_the_last() -> None:
    found = merged(
        one(oddities={"a": 1}, continuations=1),
        one(10.0, prompt_tokens=30, cached_tokens=20, attempts=3, oddities={"a": 2, "b": 1}),
        one(20.0, worker="v"),
    )
    assert (found.kind, found.passes, found.worker) == ("ok", 3, "v")
    assert (found.prompt_tokens, found.cached_tokens, found.completion_tokens) == (50, 28, 15)
    assert (found.received_s, found.first_token_s, found.ended_s) == (0.0, 1.0, 22.0)
    assert (found.attempts, found.continuations, found.oddities) == (3, 1, {"a": 3, "b": 1})
    assert found.pass_tokens == ((10, 4, 5), (30, 20, 5), (10, 4, 5))
    # It spoke for three seconds of the 21 since its first token.
    assert found.paused_s == 18.0


def test_a_single_pass_is_what_it_was() -> None:
    assert merged(one()) == one(passes=1)


def test_a_client_that_left_while_a_tool_ran_is_gone() -> None:
    found = merged(one(), one(10.0), gone=True, ended_s=30.0)
    assert (found.kind, found.error_code, found.status) == ("client_gone", "client_gone", 499)
    assert (found.ended_s, found.paused_s) == (30.0, 27.0)
    assert found.pass_tokens == ((10, 4, 5), (10, 4, 5))
    failed = one(kind="failed", error_code="x", status=500)
    assert merged(failed, gone=True).kind == "failed"


def test_what_failed_before_it_said_a_word_is_not_paid() -> None:
    failed = one(10.0, kind="failed", status=502, completion_tokens=0, first_token_s=None)
    refused = one(20.0, kind="refused", status=429, completion_tokens=0, first_token_s=None)
    assert merged(one(), failed).pass_tokens == ((10, 4, 5),)
    assert merged(one(), refused).pass_tokens == ((10, 4, 5),)
    assert merged(one(), refused).kind == "refused"
    assert merged(failed, refused).paused_s == 0.0


def test_calls_of_vendors_keep_their_bills_and_engines_their_tokens() -> None:
    bill = Bill("v", "n", Usage(10, 5, 4), 7)
    found = merged(one(bills=(bill,), split="eu/in"), one(10.0), one(20.0, bills=(bill,)))
    assert found.bills == (bill, bill)
    assert found.pass_tokens == ((10, 4, 5),)
    assert found.split == "eu/in"


@given(
    st.lists(st.tuples(st.floats(0, 9), st.floats(0, 9), st.booleans()), min_size=1),
    st.floats(0, 99),
)
def test_it_never_pauses_for_longer_than_it_lasts(
    gaps: list[tuple[float, float, bool]], ended_s: float
) -> None:
    now_s, passes = 0.0, []
    for waits_s, speaks_s, spoke in gaps:
        first_s = now_s + waits_s if spoke else None
        ended = now_s + waits_s + speaks_s
        passes.append(one(now_s, first_token_s=first_s, ended_s=ended))
        now_s = ended
    found = merged(*passes, ended_s=now_s + ended_s)
    assert found.prompt_tokens == 10 * len(passes)
    assert 0.0 <= found.paused_s <= found.ended_s - found.received_s + 1e-6
    if len(passes) > 1:
        assert len(found.pass_tokens) == len(passes)


class Counted(Model):
    """A model each of whose passes says what it came to, as generations do."""

    async def _speak(self, run: FakeRun) -> AsyncIterator[Sequence[Event]]:
        kind = "client_gone"
        try:
            async for batch in super()._speak(run):
                yield batch
                kind = "failed" if isinstance(batch[-1], Fail) else "ok"
        finally:
            assert run.context.outcomes is not None
            run.context.outcomes.append(one(kind=kind))


async def told(model: Counted, servers: Servers) -> list[Outcome]:
    found: list[Outcome] = []
    await heard(model, servers, request(serving("w")), on_outcome=found.append)
    return found


async def test_an_answer_of_several_passes_is_told_once() -> None:
    passes = (speech(calls("weather")), speech(calls("weather", '{"n":1}')), speech(said("done")))
    [found] = await told(Counted(*passes), Servers({"w": ["weather"]}))
    assert (found.kind, found.passes, found.prompt_tokens) == ("ok", 3, 30)
    [single] = await told(Counted(speech(said("done"))), Servers({"w": ["weather"]}))
    assert (single.passes, single.pass_tokens) == (1, ())


async def test_an_answer_whose_pass_breaks_is_a_failed_one() -> None:
    broken = breaks(said("So"), error=SmgError(ErrorKind.UPSTREAM_FAILED, "gone"))
    [found] = await told(Counted(speech(calls("weather")), broken), Servers({"w": ["weather"]}))
    assert (found.kind, found.passes) == ("failed", 2)


async def test_a_client_that_leaves_during_a_run_is_one_that_is_gone() -> None:
    begun = asyncio.Event()

    async def never(tool: str, arguments: str, options: CallOptions) -> CallResult:
        begun.set()
        await asyncio.Event().wait()
        raise AssertionError

    found: list[Outcome] = []
    model, servers = Counted(speech(calls("weather"))), Servers({"w": ["weather"]}, never)
    run = loop(model, servers, on_outcome=found.append).start(
        "chat", request(serving("w")), CONTEXT
    )
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        task = group.create_task(run.tell(Listener().receive))
        await begun.wait()
        task.cancel()
    assert [(one.kind, one.passes) for one in found] == [("client_gone", 1)]


async def test_what_was_never_let_in_is_no_request() -> None:
    found: list[Outcome] = []
    asked = request(serving("nowhere"))
    listener = Listener()
    run = loop(Counted(), Servers({}), on_outcome=found.append).start("chat", asked, CONTEXT)
    await run.tell(listener.receive)
    assert isinstance(listener.events[-1], Fail)
    assert found == []
