"""From turns to what a template sees."""

from typing import Any

import pytest

from smg_node.core.errors import SmgError
from smg_node.core.generation.request import MediaPart, TextPart, Tool, ToolCall, Turn
from smg_node.prompts.analysis.template_facts import TemplateFacts
from smg_node.prompts.messages import (
    to_messages,
    to_tools,
)
from support.models.prompt_corpus import noting

STRING = TemplateFacts()
PARTS = TemplateFacts(content="parts", tool_content="parts", empty="parts")


def messages_of(
    *turns: Turn, facts: TemplateFacts = STRING, warnings: list[str] | None = None
) -> list[dict[str, Any]]:
    told: list[str] = []
    messages = to_messages(turns, facts, noting(told))
    assert told == (warnings or [])
    return messages


def test_a_plain_message_is_its_role_and_text() -> None:
    assert messages_of(Turn("user", "Hi")) == [{"role": "user", "content": "Hi"}]


def test_text_parts_become_one_string_with_newlines_between() -> None:
    turn = Turn("user", (TextPart("a"), TextPart("b")))
    assert messages_of(turn) == [{"role": "user", "content": "a\nb"}]


def test_a_string_becomes_a_part_where_parts_are_wanted() -> None:
    assert messages_of(Turn("user", "a"), facts=PARTS) == [
        {"role": "user", "content": [{"type": "text", "text": "a"}]}
    ]
    assert messages_of(Turn("user", ""), facts=PARTS)[0]["content"] == []


@pytest.mark.parametrize("facts", [STRING, PARTS])
def test_media_is_refused_at_its_own_place(facts: TemplateFacts) -> None:
    turn = Turn("user", (TextPart("a"), MediaPart("image", "x", "messages[0].content[1]")))
    with pytest.raises(SmgError) as refusal:
        to_messages([turn], facts, noting([]))
    assert refusal.value.where == "messages[0].content[1]"
    assert refusal.value.code == "unsupported_parameter"


def test_an_assistant_without_text_gets_what_the_template_takes_for_nothing() -> None:
    call = (ToolCall("c", "f", "{}"),)
    for empty, content in (("none", None), ("string", ""), ("parts", [])):
        facts = TemplateFacts(empty=empty)  # type: ignore[arg-type]  # each of the literal's values
        message = messages_of(Turn("assistant", None, calls=call), facts=facts)[0]
        assert message["content"] == content


def test_without_calls_there_is_no_list_of_calls() -> None:
    assert "tool_calls" not in messages_of(Turn("assistant", "x", reasoning="y"))[0]


def test_arguments_are_an_object_where_the_template_wants_one() -> None:
    turn = Turn("assistant", None, calls=(ToolCall("c", "f", '{"b":1,"a":2}'),))
    function = messages_of(turn)[0]["tool_calls"][0]["function"]
    assert function == {"name": "f", "arguments": {"b": 1, "a": 2}}
    assert list(function["arguments"]) == ["b", "a"]


def test_arguments_stay_the_text_that_was_printed_where_text_is_wanted() -> None:
    turn = Turn(
        "assistant", None, calls=(ToolCall("c", "f", '{"b":1,"a":2}'), ToolCall("d", "g", ""))
    )
    calls = messages_of(turn, facts=TemplateFacts(arguments="string"))[0]["tool_calls"]
    assert [call["function"]["arguments"] for call in calls] == ['{"b":1,"a":2}', "{}"]


@pytest.mark.parametrize(
    ("facts", "shown"),
    [
        (TemplateFacts(arguments="string"), '{"a":'),
        (TemplateFacts(prints_raw_arguments=True), '{"a":'),
        (TemplateFacts(), {"INVALID_JSON": '{"a":'}),
    ],
)
def test_broken_arguments_are_shown_as_they_are_with_a_warning(
    facts: TemplateFacts, shown: Any
) -> None:
    turn = Turn("assistant", None, calls=(ToolCall("c", "f", '{"a":'),))
    messages = messages_of(
        turn, facts=facts, warnings=["the arguments of the call 'f' are not a JSON object"]
    )
    assert messages[0]["tool_calls"][0]["function"]["arguments"] == shown


@pytest.mark.parametrize(
    ("form", "text", "shown"),
    [
        ("string", '{"a": "\\ud800"}', '{"a": "\\ud800"}'),
        ("string", '{"a": NaN}', '{"a": NaN}'),
        ("string", '{"a": "\ud800"}', '{"a": "\ufffd"}'),
        ("object", '{"a": "\\ud800"}', {"a": "\ufffd"}),
        ("object", '{"a": "x\ny"}', {"a": "x\ny"}),
        ("object", '{"a": Infinity}', {"a": float("inf")}),
    ],
)
def test_arguments_that_are_not_quite_json_are_read_or_printed(
    form: Any, text: str, shown: Any
) -> None:
    turn = Turn("assistant", None, calls=(ToolCall("c", "f", text),))
    calls = messages_of(turn, facts=TemplateFacts(arguments=form))[0]["tool_calls"]
    assert calls[0]["function"]["arguments"] == shown


def test_results_come_in_the_order_of_their_calls() -> None:
    calls = tuple(ToolCall(name, "f", "{}") for name in ("a", "b", "c"))
    order = [
        message.get("tool_call_id")
        for message in messages_of(
            Turn("assistant", None, calls=calls),
            Turn("tool", "3", answers_call="c"),
            Turn("tool", "?", answers_call="unknown"),
            Turn("tool", "1", answers_call="a"),
            Turn("tool", "2", answers_call="b"),
            Turn("user", "next"),
            Turn("tool", "9", answers_call="z"),
            Turn("tool", "8", answers_call="a"),
        )
    ]
    assert order == [None, "a", "b", "c", "unknown", None, "z", "a"]


def test_thoughts_travel_under_every_name_the_template_reads() -> None:
    facts = TemplateFacts(reasoning_keys=("reasoning_content", "thinking"))
    message = messages_of(Turn("assistant", "x", reasoning="why"), facts=facts)[0]
    assert (message["reasoning_content"], message["thinking"]) == ("why", "why")


def test_a_developer_is_a_system_message_unless_the_template_knows_it() -> None:
    assert messages_of(Turn("developer", "x"))[0]["role"] == "system"
    knows = TemplateFacts(knows_developer=True)
    assert messages_of(Turn("developer", "x"), facts=knows)[0]["role"] == "developer"


def test_unknown_keys_pass_through_without_replacing_ours() -> None:
    extra: dict[str, Any] = {
        "role": "x",
        "content": "y",
        "tool_calls": [],
        "mood": "calm",
        "none": None,
        "name": "z",
    }
    message = messages_of(Turn("user", "Hi", name="ann", extra=extra))[0]
    assert message == {"role": "user", "content": "Hi", "name": "ann", "mood": "calm"}


def test_a_thought_is_a_part_of_the_content_where_templates_look_for_it_there() -> None:
    facts = TemplateFacts(thought_parts=True)
    thought = {"type": "thinking", "thinking": "Hm."}
    said = Turn("assistant", "Yes.", reasoning="Hm.")
    assert messages_of(said, facts=facts) == [
        {"role": "assistant", "content": [thought, {"type": "text", "text": "Yes."}]}
    ]
    silent = Turn("assistant", None, reasoning="Hm.")
    assert messages_of(silent, facts=facts) == [{"role": "assistant", "content": [thought]}]


def test_a_description_is_added_only_where_a_template_cannot_do_without() -> None:
    shown = to_tools((Tool("f"), Tool("g", "does")), TemplateFacts(needs_descriptions=True))
    assert shown is not None
    assert [each["function"]["description"] for each in shown] == ["", "does"]


def test_tools_are_shown_in_openai_form() -> None:
    assert to_tools((), STRING) is None
    tools = (Tool("f", "does", {"type": "object"}, strict=True), Tool("g"))
    assert to_tools(tools, STRING) == [
        {
            "type": "function",
            "function": {
                "name": "f",
                "description": "does",
                "parameters": {"type": "object"},
                "strict": True,
            },
        },
        {
            "type": "function",
            "function": {"name": "g", "parameters": {"type": "object", "properties": {}}},
        },
    ]
