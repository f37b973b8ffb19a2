"""The opening of a conversation: the same for all of its turns, another one for another conversation."""

from typing import Any

import pytest

from smg_node.pipeline.relay.relay_request import APIS, NATIVE
from smg_node.pipeline.relay.routes.conversation_opening import opening_of

CHAT = APIS["chat"].prompt
MESSAGES = NATIVE["messages"].prompt
GEMINI = NATIVE["gemini"].prompt


def user(text: object) -> dict[str, Any]:
    return {"role": "user", "content": text}


def system(text: str) -> dict[str, Any]:
    return {"role": "system", "content": text}


LATER = [{"role": "assistant", "content": "Hi."}, user("And then?")]


@pytest.mark.parametrize(
    ("names", "first", "later"),
    [
        (
            CHAT,
            {"messages": [system("Be kind."), user("Hello")]},
            {"messages": [system("Be kind."), user("Hello"), *LATER], "tools": [{"x": 1}]},
        ),
        (
            MESSAGES,
            {"system": "Be kind.", "messages": [user("Hello")]},
            {"system": "Be kind.", "messages": [user("Hello"), *LATER]},
        ),
        (
            MESSAGES,
            {
                "system": [{"type": "text", "text": "Be kind.", "cache_control": {"type": "x"}}],
                "messages": [user([{"type": "text", "text": "Hi", "cache_control": {"a": 1}}])],
            },
            {
                "system": [{"type": "text", "text": "Be kind."}],
                "messages": [user([{"type": "text", "text": "Hi"}]), *LATER],
            },
        ),
        (
            GEMINI,
            {
                "systemInstruction": {"parts": [{"text": "Be kind."}]},
                "contents": [{"role": "user", "parts": [{"text": "Hello"}]}],
            },
            {
                "systemInstruction": {"parts": [{"text": "Be kind."}]},
                "contents": [
                    {"role": "user", "parts": [{"text": "Hello"}]},
                    {"role": "model", "parts": [{"text": "Hi."}]},
                ],
            },
        ),
    ],
)
def test_later_turns_open_as_the_first(
    names: tuple[str, ...], first: dict[str, Any], later: dict[str, Any]
) -> None:
    assert opening_of(first, names) == opening_of(later, names) != ""


IMAGE = {"type": "image", "source": {"type": "base64", "data": "AAAA"}}


@pytest.mark.parametrize(
    "other",
    [
        {"messages": [system("Be kind."), user("Hello!")]},
        {"messages": [system("Be rude."), user("Hello")]},
        {"messages": [user("Hello")]},
        {"messages": [user("Be kind."), user("Hello")]},
        {"messages": [system("Be kind."), user([{"type": "text", "text": "Hello"}, IMAGE])]},
        {"messages": [system("Be kind.Hello"), user("")]},
    ],
)
def test_another_beginning_is_another_conversation(other: dict[str, Any]) -> None:
    own = {"messages": [system("Be kind."), user("Hello")]}
    assert opening_of(own, CHAT) != opening_of(other, CHAT)


def test_images_tell_conversations_apart_and_their_marks_do_not() -> None:
    def of(image: dict[str, Any]) -> str:
        return opening_of({"messages": [user([image])]}, MESSAGES)

    other = {"type": "image", "source": {"type": "base64", "data": "AAAB"}}
    assert of(IMAGE) == of({**IMAGE, "cache_control": {"type": "ephemeral"}})
    assert of(IMAGE) != of(other)


@pytest.mark.parametrize(
    "fields",
    [{}, {"messages": []}, {"messages": None}, {"messages": [user("")]}, {"tools": [{"a": 1}]}],
)
def test_what_has_no_beginning_has_no_opening(fields: dict[str, Any]) -> None:
    assert opening_of(fields, CHAT) == ""


@pytest.mark.parametrize(
    "garbage",
    [
        7,
        "text",
        [7, None, True, "x"],
        [{"role": "user", "content": {"a": [[[[[[1]]]]]]}}],
        [{"role": 3, "content": [[["deep"]]]}],
        [{"role": "user", "content": "\ud800"}],
        {"role": "user", "parts": "x"},
    ],
)
def test_garbage_has_some_opening_and_always_the_same(garbage: object) -> None:
    fields = {"messages": garbage}
    assert opening_of(fields, CHAT) == opening_of(fields, CHAT)


def test_a_huge_text_is_cut_and_not_refused() -> None:
    long = "x" * 10_000_000
    assert opening_of({"messages": [user(long)]}, CHAT) == opening_of(
        {"messages": [user(long + "y")]}, CHAT
    )
