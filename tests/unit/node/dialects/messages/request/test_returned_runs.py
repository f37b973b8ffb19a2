"""Runs on this node's side that clients send back: turns of calls and results, and calls that are still to be run."""

import sys
from types import FrameType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.core.errors import SmgError
from smg_node.core.generation.request import ChatPrompt, TextPart, ToolCall, Turn
from smg_node.core.generation.tool_owner import ToolOwner
from smg_node.core.generation.tool_serving import ListedTool, OpenToolCall
from support.answers.run_blocks import (
    GO,
    Block,
    brief,
    client_call,
    client_result,
    open_ids,
    prompt,
    refusal,
    request,
    result,
    searched,
    server_result,
    server_use,
    text,
    turns,
    use,
)
from support.tools.example_counts import example_count


def test_a_call_and_its_result_become_turns_with_their_owner() -> None:
    said = turns(
        GO,
        ("assistant", [text("Well"), use("a"), result("a", [text("x"), text("y")]), text("So")]),
        ("user", "more"),
    )
    owner = ToolOwner("docs", "find")
    assert said == [
        Turn("user", "go"),
        Turn("assistant", "Well", calls=(ToolCall("a", "find", '{"q":"a"}', owner),)),
        Turn("tool", "x\ny", answers_call="a"),
        Turn("assistant", "So"),
        Turn("user", "more"),
    ]


def test_a_failed_run_says_so() -> None:
    said = turns(GO, ("assistant", [use("a"), result("a", "no", is_error=True), text("So")]))
    assert said[2] == Turn("tool", "no", answers_call="a", extra={"is_error": True})


@pytest.mark.parametrize(
    ("blocks", "expected"),
    [
        (
            [use("a"), result("a"), use("b"), result("b"), text("So")],
            ["assistant:<a>", "tool:found=a", "assistant:<b>", "tool:found=b", "assistant:So"],
        ),
        (
            [use("a"), use("b"), result("b"), result("a"), text("So")],
            ["assistant:<a><b>", "tool:found=a", "tool:found=b", "assistant:So"],
        ),
        (
            [use("a"), result("a"), text(" \n"), text("So")],
            ["assistant:<a>", "tool:found=a", "assistant:So"],
        ),
        ([use("a"), result("a")], ["assistant:<a>", "tool:found=a"]),
        ([use("a"), result("a"), text("")], ["assistant:<a>", "tool:found=a"]),
    ],
)
def test_calls_come_before_their_results_and_what_follows_behind(
    blocks: list[Block], expected: list[str]
) -> None:
    assert brief(turns(GO, ("assistant", blocks)))[1:] == expected


def test_thoughts_behind_results_belong_to_the_turn_behind_them() -> None:
    def thought(said: str) -> Block:
        return {"type": "thinking", "thinking": said, "signature": ""}

    said = turns(
        GO, ("assistant", [thought("hm"), use("a"), result("a"), thought("ah"), client_call("b")]),
        ("user", [client_result("b")]),
    )  # fmt: skip
    assert [(turn.role, turn.reasoning) for turn in said] == [
        ("user", None),
        ("assistant", "hm"),
        ("tool", None),
        ("assistant", "ah"),
        ("tool", None),
    ]


@pytest.mark.parametrize(
    "blocks",
    [
        [use("a"), result("a"), client_call("b")],
        [client_call("b"), use("a"), result("a")],
        [client_call("b"), use("a"), result("a"), text("So")],
    ],
)
def test_results_of_the_clients_own_calls_follow_those_of_the_run(blocks: list[Block]) -> None:
    said = brief(turns(GO, ("assistant", blocks), ("user", [client_result("b"), text("ok")])))
    assert said[-1] == "user:ok"
    assert said.index("tool:found=a") < said.index("tool:seen=b")
    assert said[1].startswith("assistant:")
    # Each result stands behind the turn of its call, with nothing but results between.
    for name in "ab":
        place = next(at for at, turn in enumerate(said) if turn.endswith(f"={name}"))
        while said[place].startswith("tool:"):
            place -= 1
        assert f"<{name}>" in said[place]


def test_an_answer_that_paused_goes_on_behind_its_last_result() -> None:
    paused = ("assistant", [text("Well"), use("a"), result("a")])
    assert brief(turns(GO, paused)) == ["user:go", "assistant:Well<a>", "tool:found=a"]
    assert open_ids(GO, paused) == []
    assert not prompt(GO, paused).continue_final_message
    went_on = turns(GO, paused, ("assistant", [text("So")]), ("user", "x"))
    assert brief(went_on)[3:] == ["assistant:So", "user:x"]


def test_a_text_behind_results_at_the_end_is_what_the_answer_goes_on_from() -> None:
    found = prompt(GO, ("assistant", [use("a"), result("a"), text("So")]))
    assert found.continue_final_message
    assert brief(list(found.turns))[-1] == "assistant:So"


def test_a_call_without_a_result_at_the_end_is_run() -> None:
    messages = [GO, ("assistant", [use("a"), result("a"), use("b")])]
    serving = request(*messages).serving
    assert serving is not None
    assert serving.open_calls == (OpenToolCall("b", ToolOwner("docs", "find"), '{"q":"b"}', "b"),)
    assert brief(turns(*messages))[1:] == ["assistant:<a>", "tool:found=a", "assistant:<b>"]


def test_a_call_without_a_result_beside_an_answered_one_is_run() -> None:
    messages = [
        GO,
        ("assistant", [use("a"), client_call("b")]),
        ("user", [client_result("b"), text("look")]),
    ]
    assert open_ids(*messages) == ["a"]
    assert brief(turns(*messages))[1:] == ["assistant:<a><b>", "tool:seen=b", "user:look"]
    # Its result comes at the beginning of the next answer, and goes where it belongs.
    said = turns(*messages, ("assistant", [result("a"), text("So")]), ("user", "x"))
    assert brief(said)[1:] == [
        "assistant:<a><b>",
        "tool:found=a",
        "tool:seen=b",
        "user:look",
        "assistant:So",
        "user:x",
    ]


def test_several_late_results_stand_in_the_order_of_their_calls() -> None:
    document = {
        "type": "document",
        "source": {"type": "text", "media_type": "text/plain", "data": "D"},
    }
    found = prompt(
        GO,
        ("assistant", [use("a"), use("c"), client_call("b")]),
        ("user", [client_result("b"), document, text("?")]),
        ("assistant", [result("a"), result("c", "other"), client_call("d")]),
        ("user", [client_result("d")]),
    )
    said = brief(list(found.turns))
    assert said[1:4] == ["assistant:<a><c><b>", "tool:found=a", "tool:other=c"]
    assert found.handed is not None
    ((place, _),) = found.handed.contents
    assert place == 5
    assert brief(list(found.turns))[place].endswith("?")


def test_the_call_of_an_answer_that_was_sent_again_gets_its_result_in_the_next_one() -> None:
    said = turns(
        GO,
        ("assistant", [text("Well"), use("a")]),
        ("assistant", [result("a"), text("So")]),
        ("user", "x"),
    )
    assert brief(said)[1:] == ["assistant:Well<a>", "tool:found=a", "assistant:So", "user:x"]


def test_the_newest_listing_of_an_earlier_answer_counts() -> None:
    def listing(name: str) -> Block:
        tools = [{"name": name, "description": "d", "input_schema": {"type": "object"}}]
        return {"type": "mcp_tool_listing", "mcp_server_name": "docs", "tools": tools}

    messages = [
        GO,
        ("assistant", [listing("a"), text("1")]),
        ("user", "y"),
        ("assistant", [listing("b"), text("2")]),
        ("user", "z"),
    ]
    serving = request(*messages).serving
    assert serving is not None
    (server,) = serving.servers
    assert server.pinned == (ListedTool("b", "d", {"type": "object"}),)
    toolset = {"type": "mcp_toolset", "mcp_server_name": "docs"}
    serving = request(*messages, tools=[{**toolset, "tools": []}]).serving
    assert serving is not None
    (server,) = serving.servers
    assert server.pinned == ()
    assert [turn.content for turn in turns(*messages)] == ["go", "1", "y", "2", "z"]


def test_runs_of_earlier_answers_need_no_server_any_more() -> None:
    said = [GO, ("assistant", [use("a"), result("a"), text("So")]), ("user", "x")]
    found = request(*said, tools=[], mcp_servers=[])
    assert found.serving is None
    assert brief(turns(*said, tools=[], mcp_servers=[]))[1] == "assistant:<a>"


# ── What is wrong ────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("messages", "where"),
    [
        ([("assistant", [result("a")])], "messages[1].content[0].tool_use_id"),
        (
            [("assistant", [use("a"), result("a"), result("a")])],
            "messages[1].content[2].tool_use_id",
        ),
        ([("assistant", [use("a"), use("a")])], "messages[1].content[1].id"),
        ([("assistant", [use("a"), client_call("a")])], "messages[1].content[1].id"),
        ([("assistant", [client_call("a"), use("a")])], "messages[1].content[1].id"),
        ([("assistant", [use("a")]), ("user", "stop")], "messages[1].content[0].id"),
        (
            [
                ("assistant", [use("a"), client_call("b")]),
                ("user", [client_result("b")]),
                ("assistant", [text("So")]),
            ],
            "messages[1].content[0].id",
        ),
        ([("assistant", [use("a", server_name="x")])], "messages[1].content[0].server_name"),
        ([("assistant", [use("a", input="x")])], "messages[1].content[0].input"),
        ([("assistant", [{**use("a"), "name": ""}])], "messages[1].content[0].name"),
        ([("assistant", [server_use("other")])], "messages[1].content[0].name"),
        (
            [("assistant", [use("a"), result("a", [{"type": "image"}])])],
            "messages[1].content[1].content[0].type",
        ),
        ([("assistant", [server_use(), server_result("web_search", "x")])],
         "messages[1].content[1].content"),
        ([("assistant", [{"type": "mcp_tool_listing", "mcp_server_name": "docs"}])],
         "messages[1].content[0].tools"),
        ([("user", [use("a")])], "messages[1].content[0].type"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_by_its_path(messages: list[Any], where: str) -> None:
    assert refusal(GO, *messages).where == where


# ── Any conversation ─────────────────────────────────────────────────────────

_ids = st.sampled_from("abcd")
_blocks = (
    st.builds(text, st.sampled_from(["", " ", "So"]))
    | st.builds(use, _ids)
    | st.builds(result, _ids)
    | st.builds(client_call, _ids)
    | st.just(server_use())
    | st.just(searched("x"))
    | st.dictionaries(st.sampled_from(["type", "id", "content"]), st.none() | st.text(max_size=3))
)
_users = st.builds(text, st.just("?")) | st.builds(client_result, _ids)
_messages = st.lists(
    st.tuples(st.just("assistant"), st.lists(_blocks, max_size=6))
    | st.tuples(st.just("user"), st.lists(_users, min_size=1, max_size=3)),
    max_size=5,
)


@settings(deadline=None, max_examples=example_count(400))
@given(_messages)
def test_any_conversation_is_refused_or_has_each_result_behind_its_call(
    messages: list[tuple[str, Any]],
) -> None:
    try:
        found = request(GO, *messages)
    except SmgError:
        return
    (shown,) = found.prompts
    assert isinstance(shown, ChatPrompt)
    made: list[str] = []
    answered: list[str] = []
    for turn in shown.turns:
        made += [call.call_id for call in turn.calls]
        if turn.role == "tool":
            assert turn.answers_call in made
            assert turn.answers_call not in answered
            answered.append(turn.answers_call or "")
    serving = found.serving
    assert serving is not None
    waiting = {call.call_id for call in serving.open_calls}
    own = {call.call_id for turn in shown.turns for call in turn.calls if call.owner is not None}
    assert own - set(answered) == waiting
    assert all(not isinstance(turn.content, TextPart) for turn in shown.turns)


def _late_results(runs: int) -> list[tuple[str, Any]]:
    calls = [use(f"c{number}") for number in range(runs)]
    results = [result(f"c{number}") for number in range(runs)]
    return [
        ("assistant", [*calls, client_call("b")]),
        ("user", [client_result("b")]),
        ("assistant", [*results, text("So")]),
    ]


def _texts_between(runs: int) -> list[tuple[str, Any]]:
    blocks: list[Block] = [use(f"open{number}") for number in range(runs)]
    for number in range(runs):
        blocks += [use(f"c{number}"), result(f"c{number}"), text("x")]
    return [("assistant", blocks)]


@pytest.mark.parametrize("talk", [_late_results, _texts_between])
def test_the_work_for_a_run_does_not_grow_with_their_number(talk: Any) -> None:
    def lines(runs: int) -> int:
        """Count the lines of code that a conversation with so many runs takes."""
        found = 0

        def trace(_frame: FrameType, event: str, _argument: Any) -> Any:
            nonlocal found
            found += event == "line"
            return trace

        messages = talk(runs)
        before = sys.gettrace()
        sys.settrace(trace)
        try:
            turns(GO, *messages)
        finally:
            sys.settrace(before)
        return found

    assert lines(800) < 5 * lines(200)
