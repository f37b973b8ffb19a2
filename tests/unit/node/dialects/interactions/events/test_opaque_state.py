"""Opaque state of vendors in interactions: told in steps of thoughts, and back on the blocks it belongs to."""

import json
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.core.generation.events import BlockEnd, BlockKind, BlockStart, Delta, Event
from smg_node.core.generation.opaque import ENCRYPTED, SIGNATURE, Opaque
from smg_node.core.generation.request import Turn, TurnBlock
from smg_node.dialects.interactions.events.log_replay import InteractionReplay
from smg_node.dialects.opaque_envelope import ENVELOPE_MAX
from smg_node.dialects.responses.items.item_document import ItemDoc
from smg_node.dialects.responses.items.item_state import LAST, signature_with
from smg_node.dialects.responses.request.items_to_turns import turns_of
from support.answers.generations import whole
from support.answers.interactions import accumulated, interaction_ask, told_interaction
from support.tools.example_counts import example_count

OWN: Final = Opaque("google", SIGNATURE, "c2ln+/8=")
OTHER: Final = Opaque("anthropic", SIGNATURE, "RXJr/+==", "x")
HIDDEN: Final = Opaque("openai", ENCRYPTED, "gAAA", "rs_1")
SILENT: Final = {"thinking_summaries": "none"}


def block(kind: BlockKind, text: str, *opaque: Opaque, at: int = 0) -> list[Event]:
    named = ("f", f"call_{at}") if kind == "call" else ("", "")
    deltas = [Delta(0, at, text, 1)] if text else []
    end = BlockEnd(0, at, kind, text, *named, opaque)
    return [BlockStart(0, at, kind, *named), *deltas, end]


def steps_of(events: list[Event], **config: Any) -> list[dict[str, Any]]:
    """Return the steps that a client puts together."""
    ask = interaction_ask(generation_config=config)
    return accumulated([json.loads(one.data) for one in told_interaction(events, ask)[1]])


def items_back(steps: list[dict[str, Any]]) -> tuple[ItemDoc, ...]:
    """Return the items of a client that sends these steps back."""
    return interaction_ask(input=steps).items


def turn_of(items: tuple[ItemDoc, ...]) -> Turn:
    [turn] = turns_of(items, reasoning="all_turns")
    return turn


@pytest.mark.parametrize(
    ("events", "steps"),
    [
        (block("reasoning", "hm", OWN),
         [{"type": "thought", "signature": OWN.data, "summary": [{"type": "text", "text": "hm"}]}]),
        (block("reasoning", "hm", OTHER),
         [{"type": "thought", "signature": signature_with((OTHER,)), "summary": [{"type": "text", "text": "hm"}]}]),
        (block("text", "Hi", OWN),
         [{"type": "model_output", "content": [{"type": "text", "text": "Hi"}]},
          {"type": "thought", "signature": signature_with((OWN,), place=LAST)}]),
        (block("call", '{"a":1}', OWN, HIDDEN),
         [{"type": "function_call", "id": "call_0", "name": "f", "arguments": {"a": 1}},
          {"type": "thought", "signature": signature_with((OWN, HIDDEN), place=LAST)}]),
        (block("refusal", "I cannot"),
         [{"type": "model_output", "content": [{"type": "text", "text": "I cannot"}]}]),
        (block("text", "Hi", Opaque("x", "y", "A" * ENVELOPE_MAX)),
         [{"type": "model_output", "content": [{"type": "text", "text": "Hi"}]}]),
    ],
)  # fmt: skip
def test_state_is_the_signature_of_its_thought_or_of_one_behind_its_step(
    events: list[Event], steps: list[dict[str, Any]]
) -> None:
    assert steps_of(whole(events)) == steps


def test_a_hidden_thought_comes_back_with_its_state() -> None:
    steps = steps_of(whole(block("reasoning", "hm", OTHER), block("text", "Hi", at=1)), **SILENT)
    assert "hm" not in json.dumps(steps)
    assert turn_of(items_back(steps)) == Turn(
        "assistant",
        "Hi",
        reasoning="hm",
        blocks=(TurnBlock("reasoning", "hm", opaque=(OTHER,)), TurnBlock("text", "Hi")),
    )


def test_answers_without_state_have_no_blocks() -> None:
    events = whole(block("reasoning", "hm"), block("text", "Hi", at=1))
    for config in ({}, SILENT):
        assert turn_of(items_back(steps_of(events, **config))).blocks == ()


STATES: Final = st.sampled_from([(), (OWN,), (OTHER,), (OTHER, HIDDEN)])
TEXTS: Final = st.text(st.characters(codec="utf-8"), min_size=1, max_size=4)


@st.composite
def answers(draw: st.DrawFn) -> list[list[Event]]:
    """A thought or none, a text or none, calls: no template has another order."""
    found: list[list[Event]] = []
    kinds: list[BlockKind] = ["reasoning"] if draw(st.booleans()) else []
    kinds += ["text"] if draw(st.booleans()) else []
    kinds += ["call"] * draw(st.integers(0 if "text" in kinds else 1, 2))
    for at, kind in enumerate(kinds):
        text = json.dumps({"a": draw(TEXTS)}) if kind == "call" else draw(TEXTS)
        found.append(block(kind, text, *draw(STATES), at=at))
    return found


def meant(blocks: list[list[Event]]) -> tuple[TurnBlock, ...]:
    found: list[TurnBlock] = []
    for events in blocks:
        end = events[-1]
        assert isinstance(end, BlockEnd)
        assert end.kind != "refusal"
        text = end.text
        if end.kind == "call":
            text = json.dumps(json.loads(text), ensure_ascii=False, separators=(",", ":"))
        found.append(TurnBlock(end.kind, text, end.name, end.call_id, end.opaque))
    return tuple(found) if any(one.opaque for one in found) else ()


def compact(turn: Turn) -> tuple[TurnBlock, ...]:
    """Return its blocks with arguments in one spelling: a stored item has them as they were printed."""
    return meant([[BlockEnd(0, 0, one.kind, one.text, one.name, one.call_id, one.opaque)] for one in turn.blocks])  # fmt: skip


@settings(max_examples=example_count(120))
@given(answers())
def test_what_is_told_comes_back_as_it_was_sent_stored_or_replayed(
    blocks: list[list[Event]],
) -> None:
    events = whole(*blocks)
    presenter, told = told_interaction(events)
    replay = InteractionReplay()
    replay.feed(told)
    sent = items_back(steps_of(events))
    for items in (sent, presenter.output(), replay.items()):
        assert compact(turn_of(items)) == meant(blocks)
