"""Opaque state in Messages: what a vendor wants back is shown in forms that clients know."""

from typing import Any

import pytest

from smg_node.core.generation.events import (
    BlockEnd,
    BlockStart,
    Event,
)
from smg_node.core.generation.opaque import Opaque
from smg_node.dialects.answer_blocks import AnswerBlocks
from smg_node.dialects.opaque_envelope import Envelope, unpack
from support.answers.messages_answers import SEALS, body, presenter, streamed
from support.answers.stated_answers import (
    CLAUDE,
    GOOGLE,
    OMITTED,
    OPENAI,
    REDACTED,
    answer,
    block,
    content,
    envelope,
    put_together,
    returned,
    without_ids,
)
from support.clients import messages_judge as judge
from support.providers.strict_messages import refusal

CALL = {"type": "tool_use", "name": "f", "input": {"a": 1}}


@pytest.mark.parametrize(
    ("blocks", "seen"),
    [
        (
            [block("reasoning", "I think", CLAUDE)],
            [{"type": "thinking", "thinking": "I think", "signature": CLAUDE.data}],
        ),
        (
            [block("reasoning", "", CLAUDE)],
            [{"type": "thinking", "thinking": "", "signature": CLAUDE.data}],
        ),
        ([block("reasoning", "", REDACTED)], [{"type": "redacted_thinking", "data": "eHl6"}]),
        (
            [block("reasoning", " \nI think", CLAUDE)],
            [{**envelope(CLAUDE, thought=" \nI think"), "thinking": "I think"}],
        ),
        ([block("reasoning", "\n", CLAUDE)], [envelope(CLAUDE, thought="\n")]),
        ([block("reasoning", "", OPENAI)], [envelope(OPENAI)]),
        ([block("reasoning", "Sum", OPENAI)], [{**envelope(OPENAI), "thinking": "Sum"}]),
        ([block("reasoning", "", CLAUDE, OPENAI)], [envelope(CLAUDE, OPENAI)]),
        ([block("call", '{"a":1}', GOOGLE)], [envelope(GOOGLE, place="next"), CALL]),
        (
            [block("text", "So", GOOGLE), block("call", '{"a":1}')],
            [{"type": "text", "text": "So"}, envelope(GOOGLE, place="last"), CALL],
        ),
        (
            [block("call", '{"a":1}'), block("text", "", GOOGLE)],
            [CALL, envelope(GOOGLE, place="text")],
        ),
        (
            [block("text", "\n", GOOGLE)],
            [envelope(GOOGLE, thought="\n", place="text")],
        ),
    ],
)  # fmt: skip
def test_state_has_a_form_that_clients_know(
    blocks: list[list[Event]], seen: list[dict[str, Any]]
) -> None:
    events = answer(*blocks)
    assert without_ids(content(events)) == seen
    assert without_ids(put_together(streamed(presenter(), events))) == seen


def test_state_that_is_known_only_when_a_call_is_over_follows_it_in_a_stream() -> None:
    events = answer(block("call", '{"a":1}', GOOGLE, late=True), block("text", "So"))
    text = {"type": "text", "text": "So"}
    seen = [CALL, envelope(GOOGLE, place="last"), text]
    assert without_ids(put_together(streamed(presenter(), events))) == seen
    assert without_ids(content(events)) == [envelope(GOOGLE, place="next"), CALL, text]


def test_a_call_starts_with_the_state_that_came_with_its_name() -> None:
    out: list[Event] = []
    blocks = AnswerBlocks()
    blocks.call(0, "call_1", "f", "{", out, (GOOGLE,))
    blocks.call(0, "", "", "}", out, (OPENAI,))
    blocks.close(out)
    assert out[0] == BlockStart(0, 0, "call", "f", "call_1", (GOOGLE,))
    assert out[-1] == BlockEnd(0, 0, "call", "{}", "f", "call_1", (GOOGLE, OPENAI))


def test_a_thought_that_is_not_shown_travels_in_its_envelope() -> None:
    events = answer(block("reasoning", "I think", CLAUDE), block("reasoning", "So", OPENAI))
    shown = content(events, OMITTED)
    assert shown == [envelope(CLAUDE, thought="I think"), envelope(OPENAI, thought="So")]
    assert put_together(streamed(presenter(OMITTED), events)) == shown
    assert [one.text for one in returned(shown).blocks] == ["I think", "So"]


def test_state_that_is_too_large_is_not_carried_and_the_thought_is_signed_here() -> None:
    large = Opaque("google", "signature", "A" * 300_000)
    [thought] = content(answer(block("reasoning", "I", large)))
    assert thought["signature"] == SEALS.sign("I", tenant="t", model="llama")
    assert content(answer(block("call", "{}", large)))[0]["type"] == "tool_use"


def test_the_official_client_takes_all_forms_and_may_send_them_back() -> None:
    events = answer(
        block("reasoning", "", REDACTED),
        block("reasoning", "", CLAUDE),
        block("reasoning", "I think", CLAUDE),
        block("reasoning", "Sum", OPENAI),
        block("text", "So", GOOGLE),
        block("call", '{"a":1}', GOOGLE),
        block("call", "{}", GOOGLE, late=True),
        block("text", "Done"),
        reason="tool_calls",
    )
    raw, whole = streamed(presenter(), events), body(presenter(), events)
    for message in (judge.read_stream(raw)[0], judge.read_whole(whole)[0]):
        blocks = returned([_sent(one) for one in message["content"]]).blocks
        assert [one.opaque for one in blocks] == [
            (REDACTED,), (CLAUDE,), (CLAUDE,), (OPENAI,), (GOOGLE,), (GOOGLE,), (GOOGLE,), (),
        ]  # fmt: skip
        sent = {
            "model": "m",
            "max_tokens": 5,
            "stream": True,
            "messages": [
                {"role": "user", "content": "Hi"},
                {"role": "assistant", "content": [_sent(one) for one in message["content"]]},
                {
                    "role": "user",
                    "content": [
                        {"type": "tool_result", "tool_use_id": one["id"]}
                        for one in message["content"]
                        if one["type"] == "tool_use"
                    ],
                },
            ],
            "tools": [{"name": "f", "input_schema": {"type": "object"}}],
        }
        assert refusal(sent) == ""


def _sent(one: dict[str, Any]) -> dict[str, Any]:
    return {
        key: value for key, value in one.items() if value is not None and key != "parsed_output"
    }


def test_an_envelope_says_where_its_state_belongs() -> None:
    [carrier, _call] = content(answer(block("call", "{}", GOOGLE)))
    assert unpack(carrier["signature"]) == Envelope((GOOGLE,), "", "next")
