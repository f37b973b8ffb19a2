"""The same conversation in forms that a template may take where it refuses another."""

from typing import Any

import pytest

from smg_node.core.generation.request import ToolCall, Turn
from smg_node.prompts.analysis.template_facts import TemplateFacts
from smg_node.prompts.message_forms import (
    Message,
    calls_as_text,
    later_systems_as_reminders,
    neighbours_merged,
    one_call_each,
    other_forms,
    systems_first,
    thoughts_joined,
)
from smg_node.prompts.messages import to_messages
from support.models.prompt_corpus import noting

STRING = TemplateFacts()
PARTS = TemplateFacts(content="parts", tool_content="parts", empty="parts")


def messages_of(*turns: Turn, facts: TemplateFacts = STRING) -> list[dict[str, Any]]:
    return to_messages(turns, facts, noting([]))


def caller(*ids: str, **more: Any) -> Message:
    calls = [
        {"id": one, "type": "function", "function": {"name": f"f{at}", "arguments": {"a": at}}}
        for at, one in enumerate(ids)
    ]
    return {"role": "assistant", "content": "", "tool_calls": calls, **more}


def only(message: Message, at: int, **more: Any) -> Message:
    return {**message, "tool_calls": [message["tool_calls"][at]], **more}


def result(call_id: str, content: str = "done") -> Message:
    return {"role": "tool", "content": content, "tool_call_id": call_id}


def test_several_calls_become_messages_of_one_call_each_followed_by_its_result() -> None:
    asked, two = {"role": "user", "content": "q"}, caller("a", "b", content="Let me see.")
    messages = [asked, two, result("a"), result("b"), {"role": "assistant", "content": "So."}]
    assert one_call_each(messages, None) == [
        asked,
        only(two, 0),
        result("a"),
        {"role": "assistant", "content": None, "tool_calls": [two["tool_calls"][1]]},
        result("b"),
        {"role": "assistant", "content": "So."},
    ]


def test_thoughts_and_words_stay_with_the_first_of_several_calls() -> None:
    two = caller("a", "b", content="Let me see.", reasoning_content="Hm.", name="me")
    first, second = one_call_each([two], "")
    assert first == only(two, 0)
    assert second == {"role": "assistant", "content": "", "tool_calls": [two["tool_calls"][1]]}


def test_no_result_is_lost_when_calls_come_apart() -> None:
    two, strange = caller("a", "b"), result("z", "of nobody")
    assert one_call_each([two, result("b"), strange], "")[1:] == [
        only(two, 1),
        result("b"),
        strange,
    ]
    same = caller("a", "a")
    first, second = result("a", "1"), result("a", "2")
    assert one_call_each([same, first, second], "") == [only(same, 0), first, only(same, 1), second]


def test_messages_of_one_call_each_stay_the_very_same() -> None:
    messages = [caller("a"), result("a"), {"role": "user", "content": "q"}]
    assert one_call_each(messages, "") is messages


def test_calls_and_results_become_text_for_a_template_that_knows_no_tools() -> None:
    messages = [
        {"role": "user", "content": "q"},
        caller("a", "b", content="Let me see."),
        result("a", "fine"),
        {"role": "function", "content": [{"type": "text", "text": "x"}]},
    ]
    assert calls_as_text(messages) == [
        {"role": "user", "content": "q"},
        {
            "role": "assistant",
            "content": 'Let me see.\n\n{"name": "f0", "arguments": {"a": 0}}\n{"name": "f1", "arguments": {"a": 1}}',
        },
        {"role": "user", "content": "fine"},
        {"role": "user", "content": [{"type": "text", "text": "x"}]},
    ]
    plain = [{"role": "user", "content": "q"}]
    assert calls_as_text(plain) is plain


def test_what_changes_the_least_is_tried_first() -> None:
    plain = [{"role": "user", "content": "q"}]
    assert list(other_forms(plain, TemplateFacts())) == []
    messages = [*plain, caller("a", "b"), result("a"), result("b")]
    apart = one_call_each(messages, "")
    assert list(other_forms(messages, TemplateFacts())) == [apart]
    first, text, merged = other_forms(messages, TemplateFacts(knows_calls=False))
    assert first == apart
    assert text == calls_as_text(messages)
    assert [each["role"] for each in merged] == ["user", "assistant", "user"]


def test_what_is_said_before_a_call_joins_the_thought_where_both_are_too_many() -> None:
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": {}}}
    both: Message = {
        "role": "assistant",
        "content": "I look.",
        "thinking": "Hm.",
        "tool_calls": [call],
    }
    plain: Message = {"role": "assistant", "content": "Done.", "thinking": "Hm."}
    joined: Message = {
        "role": "assistant",
        "content": "",
        "thinking": "Hm.\n\nI look.",
        "tool_calls": [call],
    }
    assert thoughts_joined([both, plain]) == [joined, plain]
    assert thoughts_joined(unchanged := [plain, joined]) is unchanged


def test_system_messages_are_merged_at_the_front_with_a_blank_line() -> None:
    messages = messages_of(Turn("user", "u"), Turn("system", "a"), Turn("system", "b"))
    assert systems_first(messages) == [
        {"role": "system", "content": "a\n\nb"},
        {"role": "user", "content": "u"},
    ]
    done = systems_first(messages)
    assert systems_first(done) is done
    assert systems_first(messages[:1]) == messages[:1]


@pytest.mark.parametrize(
    ("turns", "told"),
    [
        (["system s", "user u", "system a"], ["system s", "user u\n{a}"]),
        (["user u", "system a", "assistant b"], ["user u\n{a}", "assistant b"]),
        (["user u", "assistant b", "system a"], ["user u", "assistant b", "user {a}"]),
        (["user u", "assistant b", "system a", "user v"], ["user u", "assistant b", "user {a}\nv"]),
        (["assistant b", "system a", "system c", "assistant d"], ["assistant b", "user {a}\n{c}", "assistant d"]),
        (["user u", "tool r", "system a", "assistant b"], ["user u", "tool r\n{a}", "assistant b"]),
        (["user u", "tool r", "system a", "user v"], ["user u", "tool r\n{a}", "user v"]),
    ],
)  # fmt: skip
def test_later_systems_are_told_where_they_stand(turns: list[str], told: list[str]) -> None:
    def message(line: str) -> Message:
        role, said = line.split(" ", 1)
        for name in "ac":
            said = said.replace(f"{{{name}}}", f"<system-reminder>\n{name}\n</system-reminder>")
        return {"role": role, "content": said}

    assert later_systems_as_reminders([message(line) for line in turns]) == [
        message(line) for line in told
    ]


def test_later_systems_are_told_in_parts_where_content_has_parts() -> None:
    messages = messages_of(Turn("user", "u"), Turn("system", "a"), facts=PARTS)
    texts = ["u", "<system-reminder>", "a", "</system-reminder>"]
    parts = [{"type": "text", "text": text} for text in texts]
    assert later_systems_as_reminders(messages) == [{"role": "user", "content": parts}]


def test_systems_at_the_front_are_not_told() -> None:
    messages = messages_of(Turn("system", "a"), Turn("system", "b"), Turn("user", "u"))
    assert later_systems_as_reminders(messages) is messages
    assert later_systems_as_reminders(messages[:2]) == messages[:2]


def test_neighbours_are_merged_before_systems_are_touched_where_those_are_taken() -> None:
    messages = messages_of(
        Turn("user", "a"), Turn("user", "b"), Turn("assistant", "c"), Turn("system", "d")
    )
    first, *_ = other_forms(messages, TemplateFacts())
    assert [each["role"] for each in first] == ["user", "assistant", "system"]
    first, *_ = other_forms(messages, TemplateFacts(later_systems=False))
    assert [each["role"] for each in first] == ["user", "user", "assistant", "user"]


def test_plain_neighbours_of_one_role_are_merged_and_calls_are_not() -> None:
    call = Turn("assistant", "c", calls=(ToolCall("i", "f", "{}"),))
    messages = messages_of(
        Turn("user", "a"), Turn("user", "b"), Turn("user", "c"), call, Turn("assistant", "d")
    )
    merged = neighbours_merged(messages)
    assert [(m["role"], m["content"]) for m in merged] == [
        ("user", "a\n\nb\n\nc"),
        ("assistant", "c"),
        ("assistant", "d"),
    ]
    assert neighbours_merged(merged) is merged


def test_neighbours_of_parts_are_merged_as_parts() -> None:
    messages = messages_of(Turn("user", "a"), Turn("user", "b"), facts=PARTS)
    assert neighbours_merged(messages) == [
        {"role": "user", "content": [{"type": "text", "text": t} for t in "ab"]}
    ]
