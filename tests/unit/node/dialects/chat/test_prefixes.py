"""`prefix` and `partial` of a last message: the answer goes on from it, as with `continue_final_message`."""

from typing import Any

import pytest

from support.answers.chat_bodies import prompt_of, refusal, request_of

HI = {"role": "user", "content": "hi"}
BEGUN = {"role": "assistant", "content": "Once upon"}


@pytest.mark.parametrize("key", ["prefix", "partial"])
def test_an_answer_goes_on_from_a_message_that_says_so(key: str) -> None:
    prompt = prompt_of(messages=[HI, {**BEGUN, key: True}])
    assert (prompt.continue_final_message, prompt.add_generation_prompt) == (True, False)
    assert prompt.turns[-1].extra == {}
    assert prompt == prompt_of(messages=[HI, BEGUN], continue_final_message=True)


@pytest.mark.parametrize("key", ["prefix", "partial"])
@pytest.mark.parametrize("value", [False, None])
def test_a_message_that_does_not_say_so_is_over(key: str, value: Any) -> None:
    assert prompt_of(messages=[HI, {**BEGUN, key: value}]) == prompt_of(messages=[HI, BEGUN])


def test_the_switch_of_an_earlier_answer_is_named_as_ignored() -> None:
    request = request_of(messages=[HI, {**BEGUN, "prefix": True}, HI, {**BEGUN, "partial": True}])
    assert request.ignored == ("messages[1].prefix",)
    assert request.prompts[0].continue_final_message  # type: ignore[union-attr] # a chat's


@pytest.mark.parametrize(
    ("messages", "more", "where", "code"),
    [
        ([{**HI, "prefix": True}], {}, "messages[0].prefix", "invalid_value"),
        ([HI, {**BEGUN, "prefix": 1}], {}, "messages[1].prefix", "invalid_type"),
        (
            [HI, {**BEGUN, "content": "", "partial": True}],
            {},
            "messages[1].partial",
            "invalid_value",
        ),
        (
            [HI, {**BEGUN, "prefix": True}],
            {"add_generation_prompt": True},
            "messages[1].prefix",
            "invalid_value",
        ),
        (
            [HI, {**BEGUN, "prefix": True}],
            {"continue_final_message": False},
            "messages[1].prefix",
            "invalid_value",
        ),
    ],
)
def test_what_nothing_can_go_on_from_is_refused_at_the_switch(
    messages: list[Any], more: dict[str, Any], where: str, code: str
) -> None:
    error = refusal(messages=messages, **more)
    assert (error.where, error.code) == (where, code)
