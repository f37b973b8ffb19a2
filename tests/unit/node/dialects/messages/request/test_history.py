"""Turns of a conversation: whose thoughts are kept, what is dropped, and where an answer is begun."""

from typing import Any

import pytest

from smg_node.core.errors import SmgError
from smg_node.core.generation.request import ChatPrompt, Thinking, Turn
from smg_node.dialects.dialect import Unknown
from smg_node.dialects.messages.request.reader import MessagesReader
from smg_node.dialects.messages.view import MessagesView
from smg_node.dialects.options import ReaderOptions
from smg_node.dialects.thought_seals import PlainVault, ThoughtSeals

SEALS = ThoughtSeals(PlainVault())
READER = MessagesReader(ReaderOptions(), SEALS)
KEPT = {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}
Block = dict[str, Any]


class Somebody(Unknown):
    """A caller of a tenant."""

    request_id = "req_1"

    def __init__(self, tenant: str = "t", **headers: str) -> None:
        self.tenant = tenant
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


def read(
    *messages: tuple[str, Any], caller: Somebody | None = None, **more: Any
) -> tuple[ChatPrompt, MessagesView]:
    rows = [{"role": role, "content": content} for role, content in messages]
    body = {"model": "m", "max_tokens": 5, "messages": rows, **more}
    found = READER.read(body, caller or Somebody())
    (prompt,) = found.request.prompts
    assert isinstance(prompt, ChatPrompt)
    return prompt, found.view


def turns(*messages: tuple[str, Any], **more: Any) -> list[Turn]:
    return list(read(*messages, **more)[0].turns)


def text(said: str) -> Block:
    return {"type": "text", "text": said}


def thought(said: str, signature: str = "") -> Block:
    return {"type": "thinking", "thinking": said, "signature": signature}


def call(name: str) -> Block:
    return {"type": "tool_use", "id": name, "name": "f", "input": {}}


def result(name: str, **more: Any) -> Block:
    return {"type": "tool_result", "tool_use_id": name, **more}


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        ("hi", "hi"),
        ([text("hi")], "hi"),
        ([text("a"), text(""), text(" \n"), text("b")], "a\nb"),
        ([text(" ")], " "),
        ([text(""), text(" ")], ""),
        ("", ""),
    ],
)
def test_blank_texts_are_left_out_unless_nothing_else_is_there(content: Any, shown: str) -> None:
    assert turns(("user", content)) == [Turn("user", shown)]


def test_a_blank_text_beside_results_or_calls_is_nothing() -> None:
    said = turns(
        ("user", "go"),
        ("assistant", [text("\n"), call("a")]),
        ("user", [result("a", content="x"), text("")]),
    )
    assert [(turn.role, turn.content) for turn in said] == [
        ("user", "go"),
        ("assistant", None),
        ("tool", "x"),
    ]


def test_neighbours_of_one_role_are_one_turn() -> None:
    said = turns(
        ("user", "a"),
        ("user", [text("b")]),
        ("assistant", "c"),
        ("assistant", [thought("hm"), call("x")]),
        ("user", [result("x")]),
        ("user", "d"),
        context_management=KEPT,
    )
    assert [(turn.role, turn.content, turn.reasoning) for turn in said] == [
        ("user", "a\nb", None),
        ("assistant", "c", "hm"),
        ("tool", "", None),
        ("user", "d", None),
    ]


def test_a_sealed_thought_opens_for_its_tenant_and_model_only() -> None:
    for tenant, model, opened in (("t", "m", "Deep."), ("other", "m", None), ("t", "other", None)):
        sealed = SEALS.seal("Deep.", tenant=tenant, model=model)
        said = turns(
            ("user", "go"), ("assistant", [thought("", sealed), call("a")]), ("user", [result("a")])
        )
        assert said[1].reasoning == opened
        assert said[1].calls


def test_a_thought_that_is_shown_counts_whatever_its_signature_says() -> None:
    sealed = SEALS.seal("Other.", tenant="t", model="m")
    said = turns(
        ("user", "go"),
        ("assistant", [thought("One.", sealed), thought("Two."), thought("", "?"), call("a")]),
        ("user", [result("a")]),
    )
    assert said[1].reasoning == "One.\n\nTwo."


DROPPING: Block = {
    "type": "adaptive",
    "block_binding": {"prefix_mismatch_behavior": "drop_block"},
}


@pytest.mark.parametrize(
    ("blocks", "dropped"),
    [
        ([thought("Shown.", "?"), text("a")], []),
        ([thought("", "?"), text("a")], [0]),
        (
            [text("a"), thought("", "Er4CCkYIBxgC"), {"type": "redacted_thinking", "data": "x"}],
            [1, 2],
        ),
        ([thought("", ""), text("nothing was said there")], []),
        ([thought("", SEALS.seal("Deep.", tenant="t", model="m")), text("a")], []),
        ([thought("", SEALS.seal("Deep.", tenant="other", model="m")), text("a")], [0]),
        ([thought("", SEALS.seal("Deep.", tenant="t", model="other")), text("a")], [0]),
    ],
)
def test_thoughts_that_cannot_be_read_are_told_where_that_was_asked_for(
    blocks: list[Block], dropped: list[int]
) -> None:
    messages = (
        ("user", "go"),
        ("assistant", [*blocks, call("a")]),
        ("user", [result("a")]),
    )
    told = [
        {
            "type": "thinking_dropped",
            "path": f"messages.1.content.{at}",
            "reason": "model_binding_mismatch",
        }
        for at in dropped
    ]
    assert list(read(*messages, thinking=DROPPING)[1].transformations) == told
    for said in ({}, {"prefix_mismatch_behavior": "error"}):
        asked = {"type": "adaptive", "block_binding": said}
        assert read(*messages, thinking=asked)[1].transformations == ()


def test_what_an_edit_leaves_out_is_told_as_an_edit_only() -> None:
    messages = (
        ("user", "1"),
        ("assistant", [thought("", "?"), {"type": "redacted_thinking", "data": "x"}, text("a")]),
        ("user", "2"),
    )
    assert read(*messages, thinking=DROPPING)[1].transformations == ()


HISTORY: tuple[tuple[str, Any], ...] = (
    ("user", "1"),
    ("assistant", [thought("A"), text("a")]),
    ("user", "2"),
    ("assistant", [thought("B"), call("x")]),
    ("user", [result("x")]),
    ("assistant", [thought("C"), text("c")]),
    ("user", "3"),
    ("assistant", [thought("D"), call("y")]),
    ("user", [result("y")]),
)


@pytest.mark.parametrize(
    ("edit", "kept", "cleared"),
    [
        (None, "D", None),
        ({}, "D", 3),
        ({"keep": "all"}, "ABCD", None),
        ({"keep": {"type": "all"}}, "ABCD", None),
        ({"keep": {"type": "thinking_turns", "value": 1}}, "D", 3),
        ({"keep": {"type": "thinking_turns", "value": 2}}, "BCD", 1),
        ({"keep": {"type": "thinking_turns", "value": 9}}, "ABCD", None),
    ],
)
def test_the_thoughts_of_as_many_turns_are_kept_as_are_asked_for(
    edit: Any, kept: str, cleared: int | None
) -> None:
    edits = None if edit is None else {"edits": [{"type": "clear_thinking_20251015", **edit}]}
    prompt, view = read(*HISTORY, context_management=edits)
    assert "".join(turn.reasoning or "" for turn in prompt.turns) == kept
    told = view.applied_edits
    if edit is None:
        assert told is None
    elif cleared is None:
        assert told == ()
    else:
        assert told == (
            {
                "type": "clear_thinking_20251015",
                "cleared_thinking_turns": cleared,
                "cleared_input_tokens": 0,
            },
        )


@pytest.mark.parametrize(
    ("thinking", "effort", "expected"),
    [
        (None, None, Thinking()),
        ({"type": "disabled"}, None, Thinking(on=False, where="thinking")),
        (
            {"type": "enabled", "budget_tokens": 1_024},
            None,
            Thinking(on=True, budget=1_024, where="thinking"),
        ),
        ({"type": "adaptive"}, None, Thinking(adaptive=True, where="thinking")),
        (None, "max", Thinking(effort="max", where="output_config.effort")),
        ({"type": "between_tools"}, None, Thinking(on=False, where="thinking")),
    ],
)
def test_what_is_said_of_thinking(thinking: Any, effort: Any, expected: Thinking) -> None:
    config = None if effort is None else {"effort": effort}
    prompt, _ = read(("user", "go"), thinking=thinking, output_config=config)
    assert prompt.thinking == expected


def test_between_tools_is_thought_after_a_result_only() -> None:
    messages = (("user", "go"), ("assistant", [call("a")]), ("user", [result("a")]))
    assert read(*messages, thinking={"type": "between_tools"})[0].thinking.on is True


def test_a_begun_answer_goes_on_and_an_empty_one_is_none() -> None:
    prompt, _ = read(("user", "go"), ("assistant", [text("It is"), text(" ")]))
    assert (prompt.continue_final_message, prompt.add_generation_prompt) == (True, False)
    assert prompt.turns[-1] == Turn("assistant", "It is")
    prompt, _ = read(("user", "go"), ("assistant", []))
    assert (prompt.continue_final_message, prompt.add_generation_prompt) == (False, True)
    assert prompt.turns == (Turn("user", "go"),)
    prompt, _ = read(("user", "go"), ("assistant", [text("So."), call("a")]))
    assert not prompt.continue_final_message
    assert prompt.turns[-1].calls
    prompt, _ = read(("assistant", "It is"), system="Be kind.")
    assert [turn.role for turn in prompt.turns] == ["system", "assistant"]


@pytest.mark.parametrize(
    ("messages", "more", "where"),
    [
        ([("user", "go"), ("assistant", "It is ")], {}, "messages[1].content"),
        (
            [("user", "go"), ("assistant", "It is")],
            {"thinking": {"type": "enabled", "budget_tokens": 2_000}},
            "messages[1].content",
        ),
        ([("assistant", [])], {}, "messages"),
        (
            [("user", "a"), ("assistant", [call("x")]), ("assistant", "b"), ("user", "c")],
            {},
            "messages[1].content[0].id",
        ),
        (
            [("user", "a"), ("assistant", [call("x"), call("x")])],
            {},
            "messages[1].content[1].id",
        ),
        (
            [("user", "a"), ("assistant", [call("x")]), ("user", [result("x"), result("x")])],
            {},
            "messages[2].content[1].tool_use_id",
        ),
    ],
)
def test_what_has_no_meaning_is_refused(messages: Any, more: Any, where: str) -> None:
    with pytest.raises(SmgError) as refusal:
        read(*messages, **more)
    assert refusal.value.where == where


def test_a_result_that_is_missing_at_the_end_is_waited_for() -> None:
    said = turns(("user", "a"), ("assistant", [call("x"), call("y")]), ("user", [result("y")]))
    assert [turn.answers_call for turn in said[2:]] == ["y"]


def test_a_system_message_between_call_and_result_keeps_its_place() -> None:
    said = turns(
        ("user", "a"), ("assistant", [call("x")]), ("system", "s"), ("user", [result("x")])
    )
    assert [turn.role for turn in said] == ["user", "assistant", "system", "tool"]


BETA = "fine-grained-tool-streaming-2025-05-14"


@pytest.mark.parametrize(
    ("wishes", "beta", "eager", "all_of_them"),
    [
        ((None, None), "", "", False),
        ((True, None), "", "a", False),
        ((None, None), BETA, "", True),
        ((True, None), f"x,{BETA}", "", True),
        ((None, False), BETA, "a", False),
    ],
)
def test_whose_arguments_are_streamed_as_they_are_printed(
    wishes: tuple[bool | None, ...], beta: str, eager: str, all_of_them: bool
) -> None:
    tools: list[Block] = [
        {"name": name, "input_schema": {}, "eager_input_streaming": wish}
        for name, wish in zip("ab", wishes, strict=True)
    ]
    _, view = read(("user", "go"), tools=tools, caller=Somebody(anthropic_beta=beta))
    assert (view.eager_tools, view.eager_all) == (frozenset(eager), all_of_them)


@pytest.mark.parametrize(
    ("user", "other"),
    [
        ('{"device_id":"a","session_id":"s-1"}', '{"device_id":"b","session_id":"s-1"}'),
        (
            "user_a_account__session_11111111-1111-4111-8111-111111111111",
            "user_b_account__session_11111111-1111-4111-8111-111111111111",
        ),
    ],
)
def test_requests_of_one_session_have_one_key_that_names_nobody(user: str, other: str) -> None:
    def key(name: str) -> str | None:
        body = {"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "x"}]}
        return READER.read({**body, "metadata": {"user_id": name}}).request.routing_key

    assert key(user) == key(other) != key("ann")
    assert key("{") not in (None, key(user))
    assert len(key(user) or "") == 32
    assert "session" not in (key(user) or "")
