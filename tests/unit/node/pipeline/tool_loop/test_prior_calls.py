"""Prior calls: approved, refused and open ones are seen to before the model speaks."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.events import (
    Begin,
    BlockEnd,
    BlockStart,
    Delta,
    Event,
    Fail,
    Listed,
    RunEnd,
    RunStart,
)
from smg_node.core.generation.request import Sampling, ToolCall, Turn
from smg_node.core.generation.tool_owner import ToolOwner
from smg_node.core.generation.tool_serving import (
    ApprovalRule,
    ApprovedCall,
    AskedServer,
    OpenToolCall,
    ToolServing,
)
from smg_node.history.context.logged_calls import LoggedCalls
from smg_node.mcp.tool_servers import CallOptions
from smg_node.mcp.tools.tool_result import CallResult
from support.mcp.loop_world import (
    CONTEXT,
    Listener,
    Model,
    Servers,
    heard,
    loop,
    request,
    said,
    speech,
)

# The first run is let in and left again; the second one is the first pass.

W = {"w": ["drop", "weather"]}


def answered(*calls: ApprovedCall, **fields: Any) -> ToolServing:
    return ToolServing(
        (AskedServer("w", approval=ApprovalRule()),), answered=calls, approvals=True, **fields
    )


async def test_an_approved_call_runs_before_the_model_speaks() -> None:
    model = Model(speech(said("dropped")))
    servers = Servers(W)
    approved = ApprovedCall("mcpr_1", "w", "drop", '{"x":1}')
    listener = await heard(model, servers, request(answered(approved)))
    assert servers.ran == [("w", "drop", '{"x":1}')]
    kinds = [type(event) for event in listener.events]
    assert kinds.index(Listed) < kinds.index(BlockStart)
    start = listener.of(BlockStart)[0]
    assert start.owner == ToolOwner("w", "drop", approval="mcpr_1")
    assert listener.of(Delta)[0].text == '{"x":1}'
    turns = model.prompt(1).turns
    assert [turn.role for turn in turns] == ["user", "assistant", "tool"]
    assert turns[1].calls[0].name == "drop"
    assert turns[2].content == 'drop {"x":1}'
    assert [start.block for start in listener.of(BlockStart)] == [0, 1]


async def test_of_a_call_that_a_person_refused_the_model_is_told() -> None:
    model = Model(speech(said("I see")))
    servers = Servers(W)
    refused = ApprovedCall("mcpr_1", "w", "drop", "{}", approve=False, reason="not today")
    listener = await heard(model, servers, request(answered(refused)))
    assert not servers.ran
    assert [block.kind for block in listener.answer().choices[0].blocks] == ["text"]
    assert model.results(1) == ["not run: the user did not approve it: not today"]


async def test_an_approval_does_not_loosen_what_an_operator_denies() -> None:
    model = Model(speech(said("I see")))
    servers = Servers(W, specs={"w": {"rules": (("drop", "deny"),)}})
    listener = await heard(model, servers, request(answered(ApprovedCall("m", "w", "drop", "{}"))))
    assert not servers.ran
    assert "rules: drop" in listener.results()[0].text


async def test_an_approval_of_what_is_not_offered_runs_nothing() -> None:
    model = Model(speech(said("I see")))
    servers = Servers(W)
    calls = (ApprovedCall("m1", "w", "gone", "{}"), ApprovedCall("m2", "other", "drop", "{}"))
    listener = await heard(model, servers, request(answered(*calls)))
    assert not servers.ran
    assert len(listener.results()) == 2
    assert all("not offer" in text for text in model.results(1))


async def test_approved_calls_run_side_by_side_and_their_results_are_in_order() -> None:
    model = Model(speech(said("done")))
    servers = Servers(W)
    several = [ApprovedCall(f"m{n}", "w", "drop", f'{{"n":{n}}}') for n in range(3)]
    await heard(model, servers, request(answered(*several)))
    assert model.results(1) == [f'drop {{"n":{n}}}' for n in range(3)]
    assert servers.open_most > 1


async def test_a_call_that_was_left_open_gets_its_result_at_its_place() -> None:
    owner = ToolOwner("w", "weather")
    turns = (
        Turn("user", "hello"),
        Turn(
            "assistant",
            None,
            calls=(ToolCall("srv_1", "weather", "{}", owner), ToolCall("toolu_1", "mine", "{}")),
        ),
        Turn("tool", "mine says", answers_call="toolu_1"),
    )
    served = ToolServing((AskedServer("w"),), open_calls=(OpenToolCall("srv_1", owner, "{}"),))
    model = Model(speech(said("both")))
    servers = Servers(W)
    listener = await heard(model, servers, request(served, tools=["mine"], turns=turns))
    assert len(servers.ran) == 1
    told = model.prompt(1).turns
    assert [turn.answers_call for turn in told] == [None, None, "srv_1", "toolu_1"]
    assert listener.of(BlockStart)[0].call_id == "srv_1"
    assert len(listener.of(RunEnd)) == 1


@pytest.mark.parametrize("kept", [True, False])
async def test_an_operators_question_is_answered_only_where_it_was_stored(kept: bool) -> None:
    model = Model(speech(said("well")))
    servers = Servers(W, specs={"w": {"rules": (("drop", "ask"),)}})
    approved = ApprovedCall("mcpr_1", "w", "drop", "{}", kept=kept)
    listener = await heard(model, servers, request(answered(approved)))
    assert len(servers.ran) == kept
    error = listener.results()[0].error
    assert (error is None) == kept
    if error is not None:
        assert (error.type, error.code) == ("mcp_protocol_error", -32001)
        assert "no response that is stored asks for this very call" in error.message
        assert "rules: drop" in error.message


async def test_blocks_count_up_where_calls_were_left_open_and_others_are_answered() -> None:
    owner = ToolOwner("w", "weather")
    call = ToolCall("srv_1", "weather", "{}", owner)
    turns = (Turn("user", "hello"), Turn("assistant", None, calls=(call,)))
    served = answered(
        ApprovedCall("m1", "w", "drop", "{}"), open_calls=(OpenToolCall("srv_1", owner, "{}"),)
    )
    listener = await heard(Model(speech(said("both"))), Servers(W), request(served, turns=turns))
    shown = [(start.block, start.call_id) for start in listener.of(BlockStart)]
    assert shown == [(0, "srv_1"), (1, "call_m1"), (2, "")]


async def test_what_has_run_is_told_even_if_the_model_never_speaks() -> None:
    failed: list[list[Event]] = [[Fail(SmgError(ErrorKind.OVERLOADED, "full"))]]
    model = Model(failed)
    servers = Servers(W)
    listener = await heard(model, servers, request(answered(ApprovedCall("m1", "w", "drop", "{}"))))
    assert len(servers.ran) == 1
    assert len(listener.of(RunEnd)) == 1
    assert isinstance(listener.events[-1], Fail)


async def test_a_call_is_told_of_while_it_runs() -> None:
    told, go_on = asyncio.Event(), asyncio.Event()

    async def work(_tool: str, _arguments: str, _options: CallOptions) -> CallResult:
        told.set()
        await go_on.wait()
        return CallResult(({"type": "text", "text": "dropped"},))

    model, listener = Model(speech(said("done"))), Listener()
    asked = request(answered(ApprovedCall("m1", "w", "drop", "{}")), sampling=Sampling(top_p=0.5))
    run = loop(model, Servers(W, work)).start("responses", asked, CONTEXT)
    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        group.create_task(run.tell(listener.receive))
        await told.wait()
        kinds = [type(event) for event in listener.events]
        assert kinds == [Begin, Listed, BlockStart, Delta, BlockEnd, RunStart]
        go_on.set()
    [begin] = listener.of(Begin)
    assert (begin.model, begin.top_p) == ("m", 0.5)
    assert listener.text() == "done"


async def test_a_call_that_is_cut_off_is_told_to_be() -> None:
    told, listener = asyncio.Event(), Listener()

    async def work(_tool: str, _arguments: str, options: CallOptions) -> CallResult:
        assert options.sending is not None
        options.sending()
        told.set()
        await asyncio.Event().wait()
        raise AssertionError("it is never over")

    asked = request(answered(ApprovedCall("m1", "w", "drop", "{}")))
    run = loop(Model(), Servers(W, work)).start("responses", asked, CONTEXT)
    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        task = group.create_task(run.tell(listener.receive))
        await told.wait()
        task.cancel()
    [result] = listener.results()
    assert result.cut


async def test_nothing_runs_for_whom_admission_refuses() -> None:
    class Closed(Model):
        def start(self, *asked: Any) -> Any:
            run = super().start(*asked)

            async def refuse() -> None:
                raise SmgError(ErrorKind.RATE_LIMITED, "later")

            run.enter = refuse  # type: ignore[method-assign]  # a door that is shut
            return run

    servers = Servers(W)
    listener = await heard(
        Closed(), servers, request(answered(ApprovedCall("m1", "w", "drop", "{}")))
    )
    assert not servers.ran
    assert isinstance(listener.events[-1], Fail)


async def test_the_place_that_was_taken_before_is_given_back() -> None:
    model = Model(speech(said("done")))
    await heard(model, Servers(W), request(answered(ApprovedCall("m1", "w", "drop", "{}"))))
    waiting, speaking = model.runs
    assert (waiting.entered, waiting.left, waiting.pulled) == (1, 1, 0)
    assert speaking.finished


async def test_what_has_to_be_kept_first_is_told_before_it_runs() -> None:
    model = Model(speech(said("dropped")))
    gate, listener = LoggedCalls(), Listener()

    async def kept() -> bool:
        assert not servers.ran, "nothing is sent that is not kept"
        return True

    def receive(batch: Sequence[Event]) -> bool:
        listener.receive(batch)
        gate.heard(batch)
        return False

    gate.wait_for(kept)
    servers = Servers(W)
    asked = request(answered(ApprovedCall("mcpr_1", "w", "drop", "{}"), gate=gate))
    async with asyncio.timeout(20):
        await loop(model, servers).start("responses", asked, CONTEXT).tell(receive)
    assert servers.ran == [("w", "drop", "{}")]
    assert [type(event) for event in listener.events[:2]] == [Begin, Listed]
    assert listener.text() == "dropped"
