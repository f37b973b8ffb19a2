"""Opaque state in generateContent: it goes out on its parts, and comes back on its blocks."""

import base64
import json
from collections.abc import Sequence
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.core.generation.answer import Collector
from smg_node.core.generation.events import (
    Begin,
    BlockEnd,
    BlockKind,
    BlockStart,
    Delta,
    End,
    Event,
    Finish,
    FinishReason,
    Usage,
)
from smg_node.core.generation.opaque import ENCRYPTED, SIGNATURE, Opaque
from smg_node.core.generation.request import Turn, TurnBlock
from smg_node.dialects.gemini.signatures import (
    STAND_IN,
    State,
    signature_of,
    signature_with,
    state_in,
    thought_in,
)
from smg_node.dialects.opaque_envelope import ENVELOPE_MAX
from support.answers.gemini_bodies import HI, SEALS, parsed, presenter_of, turns_of
from support.tools.example_counts import example_count

OWN: Final = Opaque("google", SIGNATURE, "c2ln+/8=")
OTHER: Final = Opaque("anthropic", SIGNATURE, "RXJr/+==", "x")
HIDDEN: Final = Opaque("openai", ENCRYPTED, "gAAA", "rs_1")
BEGIN: Final = Begin("1", "m", 5, 3)


def block(kind: BlockKind, text: str, *opaque: Opaque, at: int = 0) -> BlockEnd:
    name, call_id = ("f", f"call_{at}") if kind == "call" else ("", "")
    return BlockEnd(0, at, kind, text, name, call_id, opaque)


def events_of(blocks: Sequence[BlockEnd], reason: FinishReason = "stop") -> list[Event]:
    events: list[Event] = [BEGIN]
    for one in blocks:
        events.append(BlockStart(0, one.block, one.kind, one.name, one.call_id))
        if one.text:
            events.append(Delta(0, one.block, one.text, 1))
        events.append(one)
    return [*events, Finish(0, reason), Usage(3, 4, 2, 1, 2, 1), End()]


def told(
    events: list[Event], form: str = "whole", *, thoughts: bool = False
) -> list[dict[str, Any]]:
    """Return the answers that a client is told: one, or the frames of a stream."""
    body = {"contents": [HI], "generationConfig": {"thinkingConfig": {"includeThoughts": thoughts}}}
    method = "generateContent" if form == "whole" else "streamGenerateContent"
    presenter = presenter_of(parsed(body, method, "sse" if form == "sse" else ""))
    if form == "whole":
        collector = Collector(1)
        collector.feed(events)
        return [json.loads(presenter.answer(collector.answer()))]
    raw = b"".join(presenter.frames([event]) for event in events)
    if form == "array":
        return list(json.loads(raw))
    return [json.loads(frame.removeprefix(b"data: ")) for frame in raw.split(b"\r\n\r\n")[:-1]]


def contents_of(answers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [answer["candidates"][0]["content"] for answer in answers]


def parts_of(answers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    parts = [part for content in contents_of(answers) for part in content["parts"]]
    return [part for part in parts if part != {"text": ""}]


CALL: Final = {"id": "call_0", "name": "f", "args": {"a": 1}}


@pytest.mark.parametrize(
    ("one", "whole", "streamed"),
    [
        (block("text", "Hi", OWN),
         [{"text": "Hi", "thoughtSignature": OWN.data}],
         [{"text": "Hi"}, {"text": "", "thoughtSignature": OWN.data}]),
        (block("text", "", OWN),
         [{"text": "", "thoughtSignature": OWN.data}],
         [{"text": "", "thoughtSignature": OWN.data}]),
        (block("call", '{"a":1}', OWN),
         [{"functionCall": CALL, "thoughtSignature": OWN.data}],
         [{"functionCall": CALL, "thoughtSignature": OWN.data}]),
        (block("reasoning", "hm", OWN),
         [{"thought": True, "text": "hm", "thoughtSignature": OWN.data}],
         [{"thought": True, "text": "hm"}, {"thought": True, "text": "", "thoughtSignature": OWN.data}]),
        (block("call", '{"a":1}', OTHER, HIDDEN),
         [{"functionCall": CALL, "thoughtSignature": signature_with(State((OTHER, HIDDEN)))}],
         [{"functionCall": CALL, "thoughtSignature": signature_with(State((OTHER, HIDDEN)))}]),
    ],
)  # fmt: skip
def test_state_stands_on_its_part(
    one: BlockEnd, whole: list[dict[str, Any]], streamed: list[dict[str, Any]]
) -> None:
    assert parts_of(told(events_of([one]), thoughts=True)) == whole
    assert parts_of(told(events_of([one]), "sse", thoughts=True)) == streamed


@pytest.mark.parametrize("form", ["whole", "sse"])
def test_a_thought_that_google_signed_is_in_no_seal_of_ours(form: str) -> None:
    for blocks in (
        [block("reasoning", "hm"), block("call", '{"a":1}', OWN, at=1)],
        [block("reasoning", "hm"), block("text", "Hi", OWN, at=1)],
        [block("reasoning", "hm", OWN)],
    ):
        signatures = [
            part.get("thoughtSignature") for part in parts_of(told(events_of(blocks), form))
        ]
        assert [each for each in signatures if each] == [OWN.data]


@pytest.mark.parametrize("form", ["whole", "sse", "array"])
@pytest.mark.parametrize("thoughts", [False, True])
def test_a_thought_that_is_not_shown_is_sealed_beside_the_state_of_its_vendor(
    form: str, thoughts: bool
) -> None:
    answers = told(events_of([block("reasoning", "hm", OTHER), block("text", "Hi", at=1)]), form, thoughts=thoughts)  # fmt: skip
    assert ("hm" in json.dumps(answers)) is thoughts
    _, turn = turns_of(HI, *contents_of(answers))
    assert turn == Turn(
        "assistant",
        "Hi",
        reasoning="hm",
        blocks=(TurnBlock("reasoning", "hm", opaque=(OTHER,)), TurnBlock("text", "Hi")),
    )


# ── Signatures ───────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "state",
    [
        State((OWN,)),
        State((OTHER,)),
        State((OWN, OTHER)),
        State((OWN,), "seal"),
        State((OTHER, HIDDEN), "seal"),
        State((Opaque("x", "y", "é\n", "z"),)),
    ],
)
@pytest.mark.parametrize("spell", [lambda each: each, lambda each: each.translate(str.maketrans("+/", "-_")).rstrip("=")])  # fmt: skip
def test_what_a_signature_carries_comes_back_in_either_alphabet(state: State, spell: Any) -> None:
    signature = signature_with(state)
    base64.b64decode(signature, validate=True)
    assert state_in(spell(signature)) == state
    assert thought_in(spell(signature), SEALS, tenant="acme", model="m") is None


@pytest.mark.parametrize(
    ("signature", "state"),
    [
        ("abc", State((Opaque("google", SIGNATURE, "abc="),))),
        ("no base64!", State(())),
        ("é", State(())),
        (STAND_IN, State(())),
    ],
)
def test_signatures_of_other_kinds(signature: str, state: State) -> None:
    assert state_in(signature) == state


def test_more_state_than_an_envelope_holds_is_left_out() -> None:
    large = Opaque("anthropic", SIGNATURE, "A" * ENVELOPE_MAX)
    assert signature_with(State((large,))) == ""
    assert signature_with(State((OWN, OTHER), "s" * ENVELOPE_MAX)) == signature_with(State((OWN, OTHER)))  # fmt: skip
    assert parts_of(told(events_of([block("text", "Hi", large)]))) == [{"text": "Hi"}]


def test_a_seal_of_ours_is_no_state() -> None:
    sealed = signature_of("hm", SEALS, tenant="acme", model="m")
    parts = [{"text": "Hi"}, {"text": "", "thoughtSignature": sealed}]
    assert turns_of(HI, {"role": "model", "parts": parts})[1] == Turn(
        "assistant", "Hi", reasoning="hm"
    )


# ── Coming back ──────────────────────────────────────────────────────────────


def sent(text: str = "", **more: Any) -> dict[str, Any]:
    return {"text": text, **more}


SIGNED: Final = {"thoughtSignature": OWN.data}
CALLED: Final = {"functionCall": {"name": "f", "args": {}, "id": "1"}}


@pytest.mark.parametrize(
    ("parts", "blocks"),
    [
        ([sent("a"), sent("b", **SIGNED)], [("text", "ab", True)]),
        ([sent("a", **SIGNED), sent("b")], [("text", "a", True), ("text", "b", False)]),
        ([sent("a"), SIGNED], [("text", "a", True)]),
        ([sent("a"), {"executableCode": {}, **SIGNED}], None),
        ([sent("hm", thought=True), sent("a"), sent("", **SIGNED)], [("reasoning", "hm", False), ("text", "a", True)]),
        ([sent("a"), sent("hm", thought=True, **SIGNED), CALLED],
         [("text", "a", False), ("reasoning", "hm", True), ("call", "{}", False)]),
        ([sent("a"), {**CALLED, **SIGNED}, sent("b")], [("text", "a", False), ("call", "{}", True), ("text", "b", False)]),
        ([sent("a", thoughtSignature=STAND_IN)], None),
        ([sent("a")], None),
    ],
)  # fmt: skip
def test_state_is_kept_on_the_block_it_stood_on(
    parts: list[dict[str, Any]], blocks: list[tuple[str, str, bool]] | None
) -> None:
    [_, turn] = turns_of(HI, {"role": "model", "parts": parts})
    found = [(one.kind, one.text, one.opaque == (OWN,)) for one in turn.blocks]
    assert found == (blocks or [])


TEXTS: Final = st.text(st.characters(codec="utf-8"), max_size=4)
STATES: Final = st.sampled_from([(), (), (OWN,), (OTHER,), (OTHER, HIDDEN), (OWN, OTHER)])


@st.composite
def answered(draw: st.DrawFn) -> list[BlockEnd]:
    blocks: list[BlockEnd] = []
    kinds: st.SearchStrategy[BlockKind] = st.sampled_from(["text", "reasoning", "call"])
    for at in range(draw(st.integers(1, 5))):
        kind, opaque = draw(kinds), draw(STATES)
        text = json.dumps({"a": draw(TEXTS)}) if kind == "call" else draw(TEXTS)
        blocks.append(block(kind, text, *opaque, at=at))
    return blocks


def expected(blocks: list[BlockEnd], *, thoughts: bool) -> list[TurnBlock]:
    """Return what comes back: one block of neighbours that nothing keeps apart, and no hidden text that Google keeps."""
    found: list[TurnBlock] = []
    for one in blocks:
        assert one.kind != "refusal"
        hidden = one.kind == "reasoning" and not thoughts and one.opaque == (OWN,)
        text = "" if hidden else one.text
        if one.kind == "call":
            text = json.dumps(json.loads(text), ensure_ascii=False, separators=(",", ":"))
        elif not (text or one.opaque):
            continue
        before = found[-1] if found else None
        if before and before.kind == one.kind != "call" and not before.opaque:
            text = before.text + text
            found.pop()
        found.append(TurnBlock(one.kind, text, one.name, one.call_id, one.opaque))
    return found


@settings(max_examples=example_count(250))
@given(answered(), st.sampled_from(["whole", "sse", "array"]), st.booleans(), st.booleans())
def test_what_is_told_comes_back_as_it_was(
    blocks: list[BlockEnd], form: str, thoughts: bool, joined: bool
) -> None:
    if not thoughts:
        # Those are sealed, and their place is behind them.
        blocks = [one for one in blocks if one.kind != "reasoning" or one.opaque]
    contents = contents_of(told(events_of(blocks), form, thoughts=thoughts))
    if joined:
        parts = [part for content in contents for part in content["parts"]]
        contents = [{"role": "model", "parts": parts}]
    turns = turns_of(HI, *contents)[1:]
    meant = expected(blocks, thoughts=thoughts)
    if not any(one.text for one in blocks if one.kind != "reasoning"):
        assert turns == ()
        return
    [turn] = turns
    assert list(turn.blocks) == (meant if any(one.opaque for one in meant) else [])
    assert (turn.content or "") == "".join(one.text for one in meant if one.kind == "text")
    assert [call.call_id for call in turn.calls] == [
        one.call_id for one in meant if one.kind == "call"
    ]


# ── Refusals, ends, usage ────────────────────────────────────────────────────


@pytest.mark.parametrize("form", ["whole", "sse"])
@pytest.mark.parametrize(
    ("kind", "reason", "word"),
    [
        ("refusal", "stop", "SAFETY"),
        ("refusal", "length", "MAX_TOKENS"),
        ("text", "refusal", "SAFETY"),
        ("text", "pause", "STOP"),
        ("text", "context_window", "MAX_TOKENS"),
    ],
)
def test_a_refusal_is_a_text_that_was_held_back(
    form: str, kind: BlockKind, reason: FinishReason, word: str
) -> None:
    answers = told(events_of([block(kind, "I cannot")], reason), form)
    assert parts_of(answers) == [{"text": "I cannot"}]
    assert answers[-1]["candidates"][0]["finishReason"] == word


def test_what_was_written_into_a_cache_is_a_part_of_the_prompt() -> None:
    [answer] = told(events_of([block("text", "Hi")]))
    assert answer["usageMetadata"] == {
        "promptTokenCount": 3,
        "candidatesTokenCount": 3,
        "totalTokenCount": 7,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 3}],
        "cachedContentTokenCount": 2,
        "thoughtsTokenCount": 1,
    }
