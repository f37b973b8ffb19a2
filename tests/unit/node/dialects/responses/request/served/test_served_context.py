"""Items of a context: listings in force, approvals that are still to be seen to, and past calls as a model is shown them."""

import json
from typing import Any

import pytest
from hypothesis import given, settings

from smg_node.core.errors import SmgError
from smg_node.core.generation.events import Event
from smg_node.core.generation.request import ChatPrompt, GenerateRequest, Tool, Turn
from smg_node.core.generation.tool_owner import ToolOwner
from smg_node.core.generation.tool_serving import ApprovedCall, RunResult, ToolServing
from smg_node.dialects.messages.request.tools import functions_text
from smg_node.dialects.options import ReaderOptions
from smg_node.dialects.responses.request.generate_request import generate_request
from support.answers.generations import whole
from support.answers.responses import ask_of, items_from, json_values, teller_of
from support.answers.served_streams import (
    ERRORS,
    SHAPES,
    TIMES,
    owned,
    run,
    served_streams,
)

SERVED = ReaderOptions(tool_servers=True)
CLOCK = {"type": "mcp", "server_label": "clock"}
TOOL = {
    "name": "times", "description": "d", "input_schema": {"type": "object"},
    "annotations": {"readOnlyHint": True},
}  # fmt: skip
LISTING = {"type": "mcp_list_tools", "server_label": "clock", "tools": [TOOL]}
REQUEST = {
    "type": "mcp_approval_request", "id": "mcpr_1", "server_label": "clock", "name": "set",
    "arguments": '{"to":1}',
}  # fmt: skip
YES = {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True}
NO = {**YES, "approve": False, "reason": "not now"}
USER = {"role": "user", "content": "hi"}
SAID = {"role": "assistant", "content": "done"}
Row = dict[str, Any]


def wish_of(own: list[Row], history: list[Row] | None = None, **more: Any) -> GenerateRequest:
    ask = ask_of(SERVED, **{"input": own, "tools": [CLOCK], **more})
    return generate_request(ask, [*items_from(history or []), *ask.items])


def serving_of(own: list[Row], history: list[Row] | None = None, **more: Any) -> ToolServing:
    serving = wish_of(own, history, **more).serving
    assert serving is not None
    return serving


def turns_of(*rows: Row) -> list[Turn]:
    [prompt] = wish_of([USER, *rows]).prompts
    assert isinstance(prompt, ChatPrompt)
    return list(prompt.turns[1:])


def shown(*rows: Row) -> list[str]:
    told = [
        (turn.role, *(call.name for call in turn.calls), turn.content) for turn in turns_of(*rows)
    ]
    return [" ".join(str(word) for word in words if word) for words in told]


# ── Listings ─────────────────────────────────────────────────────────────────


def test_a_listing_of_the_context_is_in_force_for_its_label() -> None:
    other = {**LISTING, "tools": [{**TOOL, "name": "zones"}]}
    [server] = serving_of([USER], [LISTING, other]).servers
    assert [tool.name for tool in server.pinned or ()] == ["zones"]
    [server] = serving_of([USER], [LISTING]).servers
    assert server.pinned is not None
    [tool] = server.pinned
    assert (tool.schema, tool.annotations) == ({"type": "object"}, {"readOnlyHint": True})


@pytest.mark.parametrize(
    "row",
    [
        {**LISTING, "server_label": "files"},
        {**LISTING, "tools": [], "error": "it does not answer"},
    ],
)
def test_a_listing_of_another_server_or_one_that_failed_is_none(row: Row) -> None:
    assert serving_of([USER], [row]).servers[0].pinned is None


@given(json_values)
def test_a_listing_of_any_shape_is_read(value: Any) -> None:
    rows = [{**LISTING, "tools": [value, {"name": value}, {**TOOL, "input_schema": value}]}]
    [server] = serving_of([USER], rows).servers
    assert all(type(tool.name) is str for tool in server.pinned or ())


def test_tools_found_by_a_search_of_the_context_stay_callable() -> None:
    call = {"type": "tool_search_call", "arguments": {"query": "x"}, "execution": "server"}
    tool = {
        "type": "function",
        "name": "weather",
        "description": "d",
        "parameters": {"type": "object"},
    }
    space = {"type": "namespace", "name": "files", "tools": [{**tool, "name": "read"}]}
    found = {"type": "tool_search_output", "tools": [tool, space]}
    assert serving_of([USER], [call, found]).found == ("weather", "read")
    asked, told = turns_of(call, found)
    assert [one.name for one in asked.calls] == ["tool_search"]
    # As a model was told of them when they were found.
    schema = {"type": "object"}
    tools = [Tool(name, "d", schema, deferred=True) for name in ("weather", "read")]
    assert (told.content, told.references) == (functions_text(tools), ("weather", "read"))
    assert shown(call, {**found, "tools": []})[1] == "tool No tool fits."


# ── Approvals ────────────────────────────────────────────────────────────────


def test_an_approval_is_seen_to_with_the_arguments_that_were_shown() -> None:
    forged = {**YES, "arguments": '{"to":666}', "name": "erase", "server_label": "files"}
    wanted = ApprovedCall("mcpr_1", "clock", "set", '{"to":1}')
    assert serving_of([forged], [USER, REQUEST]).answered == (wanted,)
    assert serving_of([REQUEST, forged]).answered == (wanted,)
    refused = ApprovedCall("mcpr_1", "clock", "set", '{"to":1}', approve=False, reason="not now")
    assert serving_of([NO], [USER, REQUEST]).answered == (refused,)


def test_of_several_answers_the_first_one_counts() -> None:
    [only] = serving_of([NO, YES, USER], [USER, REQUEST]).answered
    assert not only.approve


@pytest.mark.parametrize(
    "after",
    [
        [SAID],
        [{"type": "mcp_call", "server_label": "clock", "name": "set", "arguments": "{}",
          "approval_request_id": "mcpr_1", "status": "incomplete"}],
        [{"type": "reasoning", "summary": []}],
    ],
)  # fmt: skip
def test_what_was_seen_to_is_not_done_again(after: list[Row]) -> None:
    assert serving_of([USER], [USER, REQUEST, YES, *after]).answered == ()
    assert serving_of([YES], [USER, REQUEST, YES, *after]).answered == ()


def test_a_response_that_broke_before_it_ran_leaves_its_answer_open() -> None:
    assert len(serving_of([USER], [USER, REQUEST, YES, LISTING]).answered) == 1


@pytest.mark.parametrize(
    ("own", "history", "more", "where", "code"),
    [
        ([USER, YES], [], {}, "input[1].approval_request_id", "approval_not_found"),
        ([YES], [REQUEST], {"store": False}, "input[0].approval_request_id", "approval_needs_store"),
        ([YES], [], {"store": False}, "input[0].approval_request_id", "approval_needs_store"),
        ([YES], [REQUEST], {"tools": []}, "input[0].approval_request_id", "approval_server_missing"),
    ],
)  # fmt: skip
def test_an_answer_to_nothing_is_refused_at_its_path(
    own: list[Row], history: list[Row], more: Row, where: str, code: str
) -> None:
    with pytest.raises(SmgError) as found:
        wish_of(own, history, **more)
    assert (found.value.status, found.value.where, found.value.code) == (400, where, code)


def test_an_earlier_answer_for_a_server_that_is_not_named_any_more_is_let_go() -> None:
    files = [{"type": "mcp", "server_label": "files"}]
    assert serving_of([USER], [REQUEST, YES], tools=files).answered == ()


def test_with_nothing_stored_the_request_may_stand_in_the_input() -> None:
    assert len(serving_of([REQUEST, YES], store=False).answered) == 1


def test_where_there_are_no_servers_approvals_are_kept_and_no_more() -> None:
    ask = ask_of(input=[USER, REQUEST, YES])
    wish = generate_request(ask, ask.items)
    assert (wish.serving, wish.ignored) == (None, ("input[1]", "input[2]"))


def test_what_was_refused_earlier_is_told_as_a_call_that_was_not_run() -> None:
    assert shown(REQUEST, NO, SAID) == [
        "assistant set",
        "tool not run: the user did not approve it: not now",
        "assistant done",
    ]
    # What is open is told by what sees to it.
    assert shown(REQUEST, NO) == []
    assert shown(REQUEST, YES, SAID) == ["assistant done"]


# ── Past calls ───────────────────────────────────────────────────────────────


def items_of(events: list[Event], **ask: Any) -> list[Row]:
    """Return the items of an answer, as a client gets them."""
    teller = teller_of(ask_of(**ask))
    teller.begin()
    teller.tell(events)
    assert teller.outcome is not None
    teller.close(teller.outcome.at(9))
    return [item.values() for item in teller.output()]


def test_a_call_comes_back_as_a_call_and_its_result() -> None:
    [item] = items_of(whole(owned(), run()))
    call, result = turns_of(item)
    [asked] = call.calls
    told = f"call_{item['id'][-14:]}"
    assert (asked.name, asked.arguments, asked.call_id) == ("times", '{"zone": "UTC"}', told)
    assert asked.owner == TIMES
    assert (result.role, result.content, result.answers_call) == ("tool", "12:00", told)
    approved = ToolOwner("clock", "set", approval="mcpr_1")
    [item] = items_of(whole(owned(approved), run()))
    assert turns_of(item)[0].calls[0].owner == approved
    assert turns_of(item)[0].calls[0].call_id == "call_mcpr_1"
    assert turns_of(REQUEST, NO, SAID)[1].answers_call == "call_mcpr_1"


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ERRORS[0], "no such zone"),
        (ERRORS[1], "not run: the user did not approve it"),
        (ERRORS[2], "tool failed: it may have run"),
    ],
)
def test_a_failure_comes_back_in_the_words_for_models(error: Any, told: str) -> None:
    [item] = items_of(whole(owned(), run(result=RunResult("", error=error))))
    assert shown(item) == ["assistant times", f"tool {told}"]


def test_errors_of_other_servers_are_told_too() -> None:
    bare = {"type": "mcp_call", "server_label": "s", "name": "t", "arguments": "{}"}
    for error, told in (
        ("broken", "tool failed: broken"),
        ({"x": 1}, 'tool failed: {"x":1}'),
        ({"type": "mcp_tool_execution_error", "content": "no"}, "no"),
        ({"type": "mcp_tool_execution_error", "content": [{"type": "image"}]}, "tool failed"),
        ([1], "tool failed: [1]"),
    ):
        assert shown({**bare, "error": error, "status": "failed"})[1] == f"tool {told}"


def test_a_call_that_was_cut_may_have_run_unless_its_arguments_were() -> None:
    bare = {
        "type": "mcp_call", "server_label": "s", "name": "t", "arguments": "{}",
        "status": "incomplete",
    }  # fmt: skip
    assert "may have run" in shown(bare)[1]
    assert shown({**bare, "arguments": '{"a'}) == []


@pytest.mark.parametrize(
    ("shape", "arguments", "told"),
    [
        ("web_search", {"query": "tides"}, "[1] A https://a.example/\ntides rise"),
        ("file_search", {"queries": ["tides"]}, "[1] A\ntides rise"),
        ("code_interpreter", {"code": "print(1)"}, "1\n"),
        ("image_generation", None, ""),
        ("tool_search", {"query": "weather"}, None),
    ],
)
def test_built_in_tools_come_back_with_what_they_have_found(
    shape: Any, arguments: Any, told: str | None
) -> None:
    include = [
        "web_search_call.results", "file_search_call.results", "code_interpreter_call.outputs",
    ]  # fmt: skip
    events = whole(owned(ToolOwner("web", "find", shape)), run())
    turns = turns_of(*items_of(events, include=include))
    if arguments is None:
        assert turns == []
        return
    [call] = turns[0].calls
    assert (call.name, json.loads(call.arguments)) == (shape, arguments)
    assert call.owner == ToolOwner("", shape, shape)
    assert told in (None, turns[1].content)
    if shape in ("web_search", "file_search", "code_interpreter"):
        # What was not included is not known any more.
        assert turns_of(*items_of(events)) == []


def test_calls_one_after_the_other_come_back_so_and_beside_the_clients() -> None:
    first, second = items_of(whole(owned(), run(), owned(block=1, number=2), run(1)))
    assert shown(first, second, SAID) == [
        "assistant times", "tool 12:00", "assistant times", "tool 12:00", "assistant done",
    ]  # fmt: skip
    client = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    answer = {"type": "function_call_output", "call_id": "c", "output": "1"}
    assert shown(client, first, answer, SAID) == [
        "assistant f times", "tool 12:00", "tool 1", "assistant done",
    ]  # fmt: skip
    assert shown(first, client, answer) == [
        "assistant times", "tool 12:00", "assistant f", "tool 1",
    ]  # fmt: skip


@settings(max_examples=100, deadline=None)
@given(served_streams())
def test_whatever_was_shown_can_be_told_again(events: list[Event]) -> None:
    rows = [row for row in items_of(events) if row["type"] != "function_call"]
    calls = [call for turn in turns_of(*rows) for call in turn.calls]
    results = [turn.answers_call for turn in turns_of(*rows) if turn.role == "tool"]
    assert [call.call_id for call in calls] == results
    assert all(call.owner is not None for call in calls)


@settings(max_examples=50, deadline=None)
@given(json_values)
def test_items_of_any_shape_are_told_or_left_out(value: Any) -> None:
    kinds = [f"{shape}_call" for shape in SHAPES] + ["tool_search_output"]
    keys = ("action", "queries", "results", "outputs", "error", "output", "arguments", "tools")
    base = {"server_label": "s", "name": "t", "arguments": "{}", "queries": [], "tools": []}
    for kind in kinds:
        for key in keys:
            row = {"type": kind, **base, key: value}
            try:
                items_from([row])
            except SmgError:
                continue
            turns_of(row)
