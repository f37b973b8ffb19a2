"""Contract of a run: who pulls, who waits, who fails, and what is left behind."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing

import msgspec
import pytest

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.event_grammar import Grammar
from smg_node.core.generation.events import Event, RunEnd, RunNote
from smg_node.core.generation.tool_serving import ApprovedCall
from smg_node.mcp.failures import Failure, lost
from smg_node.mcp.server_spec import ToolRule
from smg_node.mcp.tool_servers import CallOptions
from smg_node.mcp.tools.tool_result import CallResult
from smg_node.pipeline.tool_loop.tool_runs import NOTES_MAX
from smg_node.system_clock import SystemClock
from support.mcp.loop_world import (
    CONTEXT,
    Listener,
    Model,
    Servers,
    calls,
    heard,
    loop,
    request,
    said,
    serving,
    speech,
)

W = {"w": ["weather"]}


def two_passes() -> Model:
    return Model(speech(calls("weather")), speech(said("done")))


async def test_events_may_be_pulled() -> None:
    run = loop(two_passes(), Servers(W)).start("chat", request(serving("w")), CONTEXT)
    grammar = Grammar(1)
    async with aclosing(run.events()) as batches:  # type: ignore[type-var]  # a generator
        async for batch in batches:
            grammar.feed(batch)
    assert grammar.over


async def test_the_whole_answer_may_be_had() -> None:
    run = loop(two_passes(), Servers(W)).start("chat", request(serving("w")), CONTEXT)
    answer = await run.answer()
    assert answer.choices[0].text() == "done"
    assert answer.choices[0].runs[0].result.text == "weather {}"
    assert [one.server for one in answer.listed] == ["w"]


async def test_a_run_that_entered_uses_what_it_entered_with() -> None:
    model = two_passes()
    run = loop(model, Servers(W)).start("chat", request(serving("w")), CONTEXT)
    await run.enter()
    await run.tell(Listener().receive)
    assert [one.entered for one in model.runs] == [1, 0]
    assert len(model.runs) == 2


async def test_a_run_that_is_left_gives_back_what_it_entered_with() -> None:
    model = two_passes()
    run = loop(model, Servers(W)).start("chat", request(serving("w")), CONTEXT)
    await run.enter()
    run.leave()
    assert model.runs[0].left == 1


async def test_who_goes_while_earlier_calls_run_gives_back_what_was_entered_with() -> None:
    async def stuck(tool: str, arguments: str, options: CallOptions) -> CallResult:
        begun.set()
        await asyncio.Event().wait()
        raise AssertionError

    begun = asyncio.Event()
    model, servers = two_passes(), Servers(W, stuck)
    approved = ApprovedCall("mcpr_1", "w", "weather", "{}")
    asked = request(serving("w", answered=(approved,), approvals=True))
    run = loop(model, servers).start("responses", asked, CONTEXT)
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        task = group.create_task(run.tell(Listener().receive))
        await begun.wait()
        task.cancel()
    assert task.cancelled()
    assert servers.open == 0
    assert [(one.entered, one.left) for one in model.runs] == [(1, 1)]


async def test_later_passes_are_known_by_other_ids() -> None:
    model = two_passes()
    await heard(model, Servers(W), request(serving("w")))
    first, second = (run.context.token for run in model.runs)
    assert len(first) == 32
    assert second == ""
    # Limits on requests count one.
    assert [run.context.goes_on for run in model.runs] == [False, True]


async def test_a_call_says_which_model_makes_it() -> None:
    servers = Servers(W)
    await heard(two_passes(), servers, request(serving("w")))
    assert servers.options[0].model == "m"


async def test_keys_begin_with_the_answers_id() -> None:
    servers = Servers(W)
    model = Model(speech(calls("weather", call_id="call_7")), speech(said("done")))
    await heard(model, servers, request(serving("w")))
    [told] = [turn.answers_call for turn in model.prompt(1).turns if turn.role == "tool"]
    assert servers.options[0].key == f"{model.runs[0].context.token}/{told}"


async def test_who_hears_slowly_is_waited_for_before_the_next_pass() -> None:
    model = two_passes()
    waited: list[int] = []

    def receive(batch: Sequence[Event]) -> bool:
        return any(isinstance(event, RunEnd) for event in batch)

    async def ready() -> None:
        waited.append(len(model.runs))

    run = loop(model, Servers(W)).start("chat", request(serving("w")), CONTEXT)
    await run.tell(receive, ready)
    assert waited
    assert waited[0] == 1


@pytest.mark.parametrize("at", range(5))
async def test_an_error_of_whoever_hears_is_raised_and_ends_everything(at: int) -> None:
    model, servers = two_passes(), Servers(W)
    told = 0

    def receive(batch: Sequence[Event]) -> bool:
        nonlocal told
        told += 1
        if told == at + 1:
            raise SmgError(ErrorKind.CLIENT_GONE, "gone")
        assert told <= at, "nothing is said to whoever has failed"
        return False

    run = loop(model, servers).start("chat", request(serving("w")), CONTEXT)
    with pytest.raises(SmgError, match="gone"):
        await run.tell(receive)
    assert told == at + 1
    assert servers.open == 0
    assert all(one.closed.is_set() for one in model.runs)


async def test_progress_is_told_and_bounded() -> None:
    async def chatty(tool: str, arguments: str, options: CallOptions) -> CallResult:
        assert options.noted is not None
        for step in range(NOTES_MAX + 50):
            options.noted(f"step\x07 {step}", step, None)
        return CallResult()

    listener = await heard(two_passes(), Servers(W, chatty), request(serving("w")))
    notes = listener.of(RunNote)
    assert len(notes) == NOTES_MAX
    assert (notes[1].message, notes[1].progress) == ("step  1", 1)


async def test_an_error_at_a_note_is_raised_by_the_run_and_not_in_the_connection() -> None:
    async def notes(tool: str, arguments: str, options: CallOptions) -> CallResult:
        assert options.noted is not None
        options.noted("one", None, None)
        await asyncio.Event().wait()
        raise AssertionError

    def receive(batch: Sequence[Event]) -> bool:
        if any(isinstance(event, RunNote) for event in batch):
            raise SmgError(ErrorKind.CLIENT_GONE, "gone")
        return False

    servers = Servers(W, notes)
    run = loop(two_passes(), servers).start("chat", request(serving("w")), CONTEXT)
    with pytest.raises(SmgError, match="gone"):
        async with asyncio.timeout(5):
            await run.tell(receive)
    assert servers.open == 0


async def test_a_limit_on_a_call_is_a_failed_run() -> None:
    async def limited(tool: str, arguments: str, options: CallOptions) -> CallResult:
        raise SmgError(ErrorKind.RATE_LIMITED, "100 a day are used up")

    listener = await heard(two_passes(), Servers(W, limited), request(serving("w")))
    assert listener.results()[0].text == "not run: 100 a day are used up"
    assert listener.reason() == "stop"


@pytest.mark.parametrize(("replay", "sent"), [("always", 2), ("hinted", 1), ("never", 1)])
async def test_a_connection_that_broke_is_tried_again_only_by_rule(replay: str, sent: int) -> None:
    keys: list[str] = []

    async def breaks(tool: str, arguments: str, options: CallOptions) -> CallResult | Failure:
        assert options.sending is not None
        options.sending()
        keys.append(options.key)
        return lost("reset by peer", sent=True)

    servers = Servers(W, breaks, specs={"w": {"replay": replay}})
    listener = await heard(two_passes(), servers, request(serving("w")))
    assert len(keys) == sent
    assert len(set(keys)) == 1
    error = listener.results()[0].error
    assert error is not None
    assert (error.type, error.code) == ("http_error", 502)
    assert "may have run" in error.message


async def test_a_calls_time_is_that_of_its_rule_and_of_the_request() -> None:
    servers = Servers(W, specs={"w": {"tools": {"weather": ToolRule(timeout_s=7.0)}}})
    await heard(two_passes(), servers, request(serving("w")))
    assert servers.options[0].total_s == 7.0


async def test_long_results_are_cut_at_a_line() -> None:
    async def long(tool: str, arguments: str, options: CallOptions) -> CallResult:
        return CallResult(({"type": "text", "text": "line of text\n" * 1000},))

    rule = ToolRule(output_bytes_max=500)
    servers = Servers(W, long, specs={"w": {"tools": {"weather": rule}}})
    model = two_passes()
    listener = await heard(model, servers, request(serving("w")))
    (result,) = listener.results()
    assert len(result.text) < 600
    assert "bytes left out" in result.text
    assert result.content == ({"type": "text", "text": result.text},)
    assert model.results(1) == [result.text]


async def test_times_of_a_pass_have_no_run_of_a_tool_in_them() -> None:
    ended: list[tuple[float, int]] = []
    clock = SystemClock()

    async def slow(_tool: str, _arguments: str, _options: CallOptions) -> CallResult:
        await asyncio.sleep(0.02)
        ended.append((clock.monotonic_s(), clock.now_ms()))
        return CallResult(({"type": "text", "text": "done"},))

    came = msgspec.structs.replace(
        CONTEXT, received_s=clock.monotonic_s(), received_ms=clock.now_ms()
    )
    model = two_passes()
    approved = ApprovedCall("m1", "w", "weather", "{}")
    asked = request(serving("w", answered=(approved,), approvals=True))
    run = loop(model, Servers(W, slow)).start("responses", asked, came)
    await run.tell(Listener().receive)
    # The first one is let in before the approved call is run; what speaks begins after it.
    entered, *spoken = [one.context for one in model.runs]
    assert (entered.received_s, entered.received_ms) == (came.received_s, came.received_ms)
    assert len(spoken) == len(ended) == 2
    for (ended_s, ended_ms), context in zip(ended, spoken, strict=True):
        assert context.received_s >= ended_s
        assert context.received_ms >= ended_ms
        assert context.deadline_s == came.deadline_s
