"""Opaque state and refusals of vendors in Responses: shown, put together by the official client, read again."""

import json
from typing import Any

import pytest
from hypothesis import given, settings

from smg_node.core.cooperative_steps import whole as at_once
from smg_node.core.generation.events import BlockEnd, BlockStart, Delta, Event, FinishReason, Usage
from smg_node.core.generation.opaque import ENCRYPTED, REDACTED, SIGNATURE, Opaque
from smg_node.core.generation.request import TurnBlock
from smg_node.dialects.opaque_envelope import Envelope, unpack
from smg_node.dialects.responses.items.item_document import items_of
from smg_node.dialects.responses.request.items_to_turns import sealed, turns_of
from support.answers.generations import whole
from support.answers.grammatical_streams import streams
from support.answers.responses import ask_of, checked, items_from, told_whole

GOOGLE = Opaque("google", SIGNATURE, "c2ln")
CLAUDE = Opaque("anthropic", SIGNATURE, "c2ln")
HIDDEN = Opaque("anthropic", REDACTED, "cmVk")
OPENAI = Opaque("openai", ENCRYPTED, "ZW5j", "rs_1")
PHASE = Opaque("openai", "phase", "commentary")


def block(kind: Any, text: str, *opaque: Opaque, call_id: str = "c") -> TurnBlock:
    name, call_id = ("f", call_id) if kind == "call" else ("", "")
    return TurnBlock(kind, text, name, call_id, opaque)


def events_of(*blocks: TurnBlock, reason: FinishReason = "stop") -> list[Event]:
    told: list[list[Event]] = []
    for number, one in enumerate(blocks):
        named = (one.name, one.call_id)
        told.append(
            [
                BlockStart(0, number, one.kind, *named),
                Delta(0, number, one.text, 1),
                BlockEnd(0, number, one.kind, one.text, *named, opaque=one.opaque),
            ]
        )
    return whole(*told, reason=reason)


def output_of(events: list[Event], **more: Any) -> list[dict[str, Any]]:
    told = told_whole(events, **more)
    checked(told)
    output: list[dict[str, Any]] = json.loads(told[-1].data)["response"]["output"]
    return output


def read_again(output: list[dict[str, Any]], **more: Any) -> tuple[TurnBlock, ...]:
    """Return the blocks of the turn that these items are, when a client sends them back."""
    [turn] = turns_of(items_from(output), reasoning="all_turns", **more)
    return turn.blocks


@pytest.mark.parametrize(
    "blocks",
    [
        [block("reasoning", "Why", CLAUDE), block("text", "So")],
        [block("reasoning", "", HIDDEN), block("reasoning", "", CLAUDE), block("call", "{}")],
        [block("text", "A", PHASE), block("call", "{}", GOOGLE), block("call", "[]", call_id="d")],
        [block("text", "A", GOOGLE), block("call", "{}", GOOGLE, OPENAI)],
    ],
)
def test_blocks_come_back_as_they_were(blocks: list[TurnBlock]) -> None:
    assert read_again(output_of(events_of(*blocks))) == tuple(blocks)


def test_a_thoughts_state_is_its_encrypted_content() -> None:
    [thought, _] = output_of(events_of(block("reasoning", "Why", CLAUDE), block("text", "So")))
    assert unpack(thought["encrypted_content"]) == Envelope((CLAUDE,))
    assert thought["content"] == [{"type": "reasoning_text", "text": "Why"}]


def test_state_of_a_call_stands_in_an_item_behind_it() -> None:
    [call, carrier] = output_of(events_of(block("call", "{}", GOOGLE)))
    assert (call["type"], carrier["type"], carrier["content"]) == ("function_call", "reasoning", [])
    assert unpack(carrier["encrypted_content"]) == Envelope((GOOGLE,), place="last")


def test_a_cut_call_carries_nothing() -> None:
    output = output_of(events_of(block("call", "{", GOOGLE), reason="length"))
    assert [(one["type"], one["status"]) for one in output] == [("function_call", "incomplete")]


def test_a_phase_stands_in_its_message() -> None:
    [message] = output_of(events_of(block("text", "A", PHASE)))
    assert message["phase"] == "commentary"


def test_content_that_was_sealed_here_stays_as_it_is() -> None:
    events = events_of(block("reasoning", "Why"), block("text", "So"))
    output = output_of(events, seal=lambda text: f"sealed {text}")
    assert output[0]["encrypted_content"] == "sealed Why"
    assert read_again(output, opened={"sealed Why": "Why"}) == ()
    with_state = events_of(block("reasoning", "Why", CLAUDE), block("text", "So"))
    [thought, _] = output_of(with_state, seal=lambda text: f"sealed {text}")
    assert unpack(thought["encrypted_content"]) == Envelope((CLAUDE,), "Why")


def test_a_thought_that_a_client_left_out_is_in_its_envelope() -> None:
    events = events_of(block("reasoning", "Why", CLAUDE), block("text", "So"))
    output = output_of(events, seal=str)
    del output[0]["content"]
    assert read_again(output)[0] == block("reasoning", "Why", CLAUDE)


def test_state_of_vendors_is_not_opened_as_if_it_were_sealed() -> None:
    output = output_of(events_of(block("reasoning", "Why", CLAUDE), block("call", "{}", GOOGLE)))
    output.append({"type": "reasoning", "summary": [], "encrypted_content": "other"})
    assert at_once(sealed(items_from(output))) == ("other",)


def test_state_of_nothing_counts_for_nothing() -> None:
    [_, carrier] = output_of(events_of(block("call", "{}", GOOGLE)))
    rows = [carrier, {"role": "assistant", "content": "So"}]
    [turn] = turns_of(items_from(rows), reasoning="all_turns")
    assert (turn.content, turn.blocks) == ("So", ())


@settings(max_examples=50, deadline=None)
@given(streams(kinds=("text", "reasoning", "call")))
def test_any_state_comes_back_on_its_block(events: list[Event]) -> None:
    told = told_whole(events)
    response = json.loads(told[-1].data)["response"]
    if response["status"] != "completed":
        return
    items = items_of(json.dumps(response["output"]).encode())
    turns = turns_of(items, reasoning="all_turns", opened={"": ""})
    found = [one for turn in turns for one in turn.blocks if one.opaque]
    shown = {(one.kind, one.text, one.opaque) for one in found}
    made = {
        (one.kind, one.text or "{}" * (one.kind == "call"), one.opaque)
        for one in events
        if isinstance(one, BlockEnd) and one.opaque
    }
    assert shown <= made


# ── Refusals, ends, usage ────────────────────────────────────────────────────


def refusal(reason: FinishReason) -> list[Event]:
    told: list[Event] = [
        BlockStart(0, 0, "refusal"),
        Delta(0, 0, "I ", 1),
        Delta(0, 0, "won't", 1),
        BlockEnd(0, 0, "refusal", "I won't"),
    ]
    return whole(told, reason=reason)


def test_a_refusal_is_a_part_of_its_own() -> None:
    told = told_whole(refusal("refusal"))
    response = checked(told)
    assert (response.status, response.output_text) == ("completed", "")
    assert [one.type.removeprefix("response.") for one in told[3:-2]] == [
        "content_part.added",
        "refusal.delta",
        "refusal.delta",
        "refusal.done",
        "content_part.done",
    ]
    [message] = json.loads(told[-1].data)["response"]["output"]
    assert message["content"] == [{"type": "refusal", "refusal": "I won't"}]
    [turn] = turns_of(items_from([message]), reasoning="all_turns")
    assert (turn.content, turn.blocks) == ("I won't", ())


@pytest.mark.parametrize(
    ("reason", "status", "why"),
    [
        ("refusal", "incomplete", "content_filter"),
        ("context_window", "incomplete", "max_output_tokens"),
        ("pause", "incomplete", "max_messages"),
    ],
)
def test_ends_that_only_vendors_have_are_told_in_this_apis_words(
    reason: FinishReason, status: str, why: str | None
) -> None:
    response = checked(told_whole(events_of(block("text", "So"), reason=reason)))
    details = response.incomplete_details
    assert (response.status, None if details is None else details.reason) == (status, why)


def test_tokens_written_into_a_cache_are_told() -> None:
    events = events_of(block("text", "So"))
    events[-2] = Usage(9, 2, 1, 0, 3)
    usage = checked(told_whole(events, ask_of())).usage
    assert usage is not None
    assert usage.input_tokens_details.cache_write_tokens == 3
