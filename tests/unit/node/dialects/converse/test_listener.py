"""Answers of Bedrock's models: frames in, events out, at any cut, streamed or whole."""

import json
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from smg_node.core.generation.events import (
    Begin,
    BlockEnd,
    BlockStart,
    Delta,
    End,
    Event,
    Finish,
    Usage,
)
from smg_node.core.generation.opaque import REDACTED, SIGNATURE, Opaque
from smg_node.dialects.converse.dialect import CLAUDE, converse_provider, issuer_of
from smg_node.dialects.converse.listener import ConverseListener
from smg_node.dialects.converse.vendor_answer import ANTHROPIC, BEDROCK, SCHEMA_TOOL
from support.providers.converse_answers import (
    BEGIN,
    ROLE,
    base64_of,
    call,
    checked,
    cost,
    delta,
    ended,
    event,
    listened,
    listened_whole,
    started,
    stopped,
    text,
    thought,
    whole_answer,
)
from support.providers.converse_judge import answer_of, events_of

NOT_SHOWN = "EvQBCkYI"
BLOCKS: dict[str, tuple[bytes, list[dict[str, Any]]]] = {
    "text": (text(0, "Good ", "day"), [{"text": "Good day"}]),
    "an empty text, then a thought": (
        text(0, "") + thought(1, {"text": "Hm"}, {"text": "m."}) + text(2, "é😀"),
        [
            {"text": ""},
            {"reasoningContent": {"reasoningText": {"text": "Hmm."}}},
            {"text": "é😀"},
        ],
    ),
    "a signed thought": (
        thought(0, {"text": "Hm"}, {"signature": "Ev8B"}, {"signature": "Ckg="}) + text(1, "x"),
        [
            {"reasoningContent": {"reasoningText": {"text": "Hm", "signature": "Ev8BCkg="}}},
            {"text": "x"},
        ],
    ),
    "thoughts without text": (
        thought(0, {"signature": "one"})
        + thought(1, {"redactedContent": base64_of(NOT_SHOWN)})
        + text(2, "x"),
        [
            {"reasoningContent": {"reasoningText": {"text": "", "signature": "one"}}},
            {"reasoningContent": {"redactedContent": base64_of(NOT_SHOWN)}},
            {"text": "x"},
        ],
    ),
    "calls": (
        text(0, "I look.")
        + call(1, "look_up", "tooluse_1", "", '{"a":', ' "é"}')
        + call(2, "look_up", "tooluse_2", '{"a":[1,2]}')
        + call(3, "stop", "tooluse_3"),
        [
            {"text": "I look."},
            {"toolUse": {"toolUseId": "tooluse_1", "name": "look_up", "input": {"a": "é"}}},
            {
                "toolUse": {
                    "toolUseId": "tooluse_2",
                    "name": "look_up",
                    "input": {"a": [1, 2]},
                    "type": "tool_use",
                }
            },
            {"toolUse": {"toolUseId": "tooluse_3", "name": "stop", "input": {}}},
        ],
    ),
    "a tool that Bedrock runs": (
        call(0, "nova_code", "tooluse_1", '{"x":1}', type="server_tool_use")
        + event(
            "contentBlockStart",
            {"contentBlockIndex": 1, "start": {"toolResult": {"toolUseId": "tooluse_1"}}},
        )
        + delta(1, toolResult=[{"json": {"stdOut": "1"}}])
        + stopped(1)
        + text(2, "It is 1."),
        [
            {
                "toolUse": {
                    "toolUseId": "tooluse_1",
                    "name": "nova_code",
                    "input": {"x": 1},
                    "type": "server_tool_use",
                }
            },
            {"toolResult": {"toolUseId": "tooluse_1", "content": [{"json": {"stdOut": "1"}}]}},
            {"text": "It is 1."},
        ],
    ),
    "an answer by a forced call": (
        call(0, SCHEMA_TOOL, "tooluse_1", '{"city"', ':"Rome"}'),
        [
            {
                "toolUse": {
                    "toolUseId": "tooluse_1",
                    "name": SCHEMA_TOOL,
                    "input": {"city": "Rome"},
                }
            }
        ],
    ),
    "citations": (
        delta(0, text="So it is") + delta(0, citation={"title": "t"}) + text(0, "."),
        [{"citationsContent": {"content": [{"text": "So it is."}], "citations": [{"title": "t"}]}}],
    ),
    "nothing": (b"", []),
}


def story(out: list[Event]) -> list[Any]:
    """Return what an answer comes to, without how it was cut."""
    told: list[Any] = []
    for one in out:
        if isinstance(one, BlockEnd):
            said = json.loads(one.text) if one.kind == "call" else one.text
            told.append((one.kind, said, one.name, one.call_id, one.opaque))
        elif isinstance(one, Finish | Usage):
            told.append(one)
    return told


def reason_for(blocks: list[dict[str, Any]]) -> str:
    return "tool_use" if any("toolUse" in block for block in blocks) else "end_turn"


@pytest.mark.parametrize("name", sorted(BLOCKS))
def test_a_stream_is_the_same_at_any_cut_and_as_a_whole(name: str) -> None:
    streamed, blocks = BLOCKS[name]
    reason = reason_for(blocks)
    data = ROLE + streamed + ended(reason) + cost(9, 4)
    at_once = listened([data], issuer=ANTHROPIC)
    rng = Random(name)
    for size in (1, 2, 7, 100):
        pieces = [data[at : at + size] for at in range(0, len(data), size)]
        assert listened(pieces, issuer=ANTHROPIC) == at_once
    for _ in range(5):
        borders = [0, *sorted(rng.sample(range(len(data)), 6)), len(data)]
        cut = [data[a:b] for a, b in pairwise(borders)]
        assert listened(cut, issuer=ANTHROPIC) == at_once
    body = whole_answer(*blocks, reason=reason)
    assert story(listened_whole(body, issuer=ANTHROPIC)) == story(at_once)
    assert at_once[0] is BEGIN
    assert at_once.count(BEGIN) == 1


@pytest.mark.parametrize("name", sorted(BLOCKS))
def test_these_answers_are_such_that_botocore_reads_them(name: str) -> None:
    streamed, blocks = BLOCKS[name]
    told = events_of(ROLE + streamed + ended(reason_for(blocks)) + cost(9, 4))
    deltas = [one["contentBlockDelta"]["delta"] for one in told if "contentBlockDelta" in one]
    assert told[0] == {"messageStart": {"role": "assistant"}}
    assert told[-1]["metadata"]["usage"]["totalTokens"] == 13
    texts = "".join(one.get("text", "") for one in deltas)
    content = answer_of(whole_answer(*blocks))["output"]["message"]["content"]
    assert len(content) == len(blocks)
    cited = [part["citationsContent"]["content"] for part in content if "citationsContent" in part]
    said = [part.get("text", "") for part in content] + [
        one["text"] for row in cited for one in row
    ]
    assert texts == "".join(said)


def test_text_and_arguments_are_told_as_they_come() -> None:
    listener, out = ConverseListener(BEGIN, prompt_tokens=7), list[Event]()
    listener.feed(ROLE + delta(0, text=""), out)
    assert out == []
    listener.feed(delta(0, text="a"), out)
    assert [type(one) for one in out] == [Begin, BlockStart, Delta]
    del out[:]
    listener.feed(stopped(0) + started(1, "f", "tooluse_1"), out)
    assert [type(one) for one in out] == [BlockEnd, BlockStart]
    for piece in ('{"a"', ":1}"):
        del out[:]
        listener.feed(delta(1, toolUse={"input": piece}), out)
        assert out == [Delta(0, 1, piece, 1)]


def test_thoughts_keep_what_their_issuer_wants_back() -> None:
    data = BLOCKS["a signed thought"][0] + ended("end_turn")
    [signed, _] = [one for one in listened([data], issuer=ANTHROPIC) if isinstance(one, BlockEnd)]
    assert signed.opaque == (Opaque("anthropic", SIGNATURE, "Ev8BCkg="),)
    data = BLOCKS["thoughts without text"][0] + ended("end_turn")
    found = [one for one in listened([data], issuer=BEDROCK) if isinstance(one, BlockEnd)]
    assert [(one.kind, one.text, one.opaque) for one in found] == [
        ("reasoning", "", (Opaque("bedrock", SIGNATURE, "one"),)),
        ("reasoning", "", (Opaque("bedrock", REDACTED, base64_of(NOT_SHOWN)),)),
        ("text", "x", ()),
    ]


def test_a_redacted_thought_of_claude_is_as_in_anthropics_own_api() -> None:
    whole = base64_of(NOT_SHOWN)
    pieces = thought(0, {"redactedContent": whole[:4]}, {"redactedContent": whole[4:]})
    [found] = [
        one
        for one in listened([pieces + ended("end_turn")], issuer=ANTHROPIC)
        if isinstance(one, BlockEnd)
    ]
    assert found.opaque == (Opaque("anthropic", REDACTED, NOT_SHOWN),)


@pytest.mark.parametrize(
    ("model", "issuer"),
    [
        ("eu.anthropic.claude-sonnet-5-v1:0", ANTHROPIC),
        ("anthropic.claude-v2", ANTHROPIC),
        ("amazon.nova-lite-v1:0", BEDROCK),
        ("arn:aws:bedrock:eu-west-1:1:application-inference-profile/x", BEDROCK),
    ],
)
def test_claude_is_known_by_its_name_or_by_a_quirk(model: str, issuer: str) -> None:
    provider, data = converse_provider(model), thought(0, {"signature": "s"}) + ended("end_turn")
    assert issuer_of(model) == issuer
    assert issuer_of(model, [CLAUDE]) == ANTHROPIC
    for quirks, whose in ((frozenset[str](), issuer), (frozenset({CLAUDE}), ANTHROPIC)):
        listener, out = provider.listen(BEGIN, prompt_tokens=1, quirks=quirks), list[Event]()
        listener.feed(data, out)
        listener.end(out)
        [block] = [one for one in checked(out) if isinstance(one, BlockEnd)]
        assert block.opaque == (Opaque(whose, SIGNATURE, "s"),)


@pytest.mark.parametrize(
    ("said", "calls", "meant"),
    [
        ("end_turn", False, "stop"),
        ("end_turn", True, "tool_calls"),
        ("tool_use", True, "tool_calls"),
        ("tool_use", False, "stop"),
        ("max_tokens", True, "length"),
        ("stop_sequence", False, "stop"),
        ("guardrail_intervened", False, "content_filter"),
        ("content_filtered", False, "content_filter"),
        ("model_context_window_exceeded", False, "context_window"),
        ("refusal", False, "refusal"),
        ("pause_turn", False, "pause"),
        ("whatever_comes_later", False, "stop"),
    ],
)
def test_reasons_mean_the_same_streamed_and_whole(said: str, calls: bool, meant: str) -> None:
    block = call(0, "f", "tooluse_1", "{}") if calls else text(0, "x")
    tool = {"toolUse": {"toolUseId": "tooluse_1", "name": "f", "input": {}}}
    out = listened([block + ended(said)])
    assert [one.reason for one in out if isinstance(one, Finish)] == [meant]
    body = whole_answer(tool if calls else {"text": "x"}, reason=said)
    assert [one.reason for one in listened_whole(body) if isinstance(one, Finish)] == [meant]


def test_the_stop_string_is_told_where_the_model_names_it() -> None:
    more = {"additionalModelResponseFields": {"stop_sequence": "END"}}
    out = listened([text(0, "x") + ended("stop_sequence", **more)])
    assert [one for one in out if isinstance(one, Finish)] == [Finish(0, "stop", "END")]


@pytest.mark.parametrize(
    ("usage", "meant"),
    [
        ({}, Usage(9, 4, 0)),
        ({"cacheReadInputTokens": 5}, Usage(14, 4, 5)),
        ({"cacheWriteInputTokens": 5, "cacheWriteInputTokenCount": 5}, Usage(14, 4, 0, 0, 5)),
        (
            {
                "cacheReadInputTokens": 1,
                "cacheWriteInputTokens": 5,
                "cacheDetails": [
                    {"ttl": "5m", "inputTokens": 2},
                    {"ttl": "1h", "inputTokens": 3},
                    None,
                ],
            },
            Usage(15, 4, 1, 0, 5, 3),
        ),
        ({"cacheReadInputTokens": -1, "cacheDetails": 5, "serverToolUsage": {}}, Usage(9, 4, 0)),
        ({"inputTokens": True, "outputTokens": 2**60}, Usage(7, 1, 0)),
        ({"inputTokens": 0, "outputTokens": 0}, Usage(7, 1, 0)),
    ],
)
def test_cached_tokens_are_part_of_the_prompt(usage: dict[str, Any], meant: Usage) -> None:
    out = listened([text(0, "x") + ended("end_turn") + cost(9, 4, **usage)])
    assert [one for one in out if isinstance(one, Usage)] == [meant]
    out = listened_whole(whole_answer({"text": "x"}, **usage))
    assert [one for one in out if isinstance(one, Usage)] == [meant]


def test_without_usage_the_estimate_counts() -> None:
    out = listened([text(0, "a", "b") + ended("end_turn")])
    assert out[-2:] == [Usage(7, 2, 0), End()]


def test_a_call_with_an_id_of_before_gets_another() -> None:
    data = call(0, "f", "tooluse_1", "{}") + ended("tool_use")
    [start] = [one for one in listened([data], taken={"tooluse_1"}) if isinstance(one, BlockStart)]
    assert start.call_id == ""
