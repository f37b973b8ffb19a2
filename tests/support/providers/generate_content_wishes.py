"""Generation requests of any kind, for writers of generateContent bodies."""

import json
from typing import Any, Final

from hypothesis import strategies as st

from smg_node.core.generation.opaque import SIGNATURE, Opaque
from smg_node.core.generation.request import (
    NOTHING_SAID,
    ChatPrompt,
    Constraint,
    GenerateRequest,
    MediaPart,
    Part,
    Sampling,
    TextPart,
    Thinking,
    Tool,
    ToolCall,
    ToolChoice,
    ToolMode,
    Turn,
    TurnBlock,
)
from smg_node.dialects.provider_dialect import WriterOptions, Written
from support.providers.generate_content import API

MODELS: Final = (
    "gemini-3-pro-preview",
    "gemini-3.5-flash",
    "gemini-2.5-flash",
    "gemini-2.5-pro",
    "gemini-2.5-flash-lite",
    "gemini-2.0-flash",
    "gemma-3-27b-it",
    "gemini-flash-latest",
)
PIXEL: Final = "data:image/png;base64,iVBORw0KGgo="
NAMES: Final = ("f", "g-h", "look_up")
WORDS: Final = st.text(st.characters(codec="utf-8"), max_size=6)
SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"a": {"type": ["string", "null"], "pattern": "^x"}},
    "additionalProperties": False,
}


def wish(*turns: Turn, sampling: Sampling | None = None, **prompt: Any) -> GenerateRequest:
    """Return a request of these turns."""
    return GenerateRequest("m", (ChatPrompt(turns, **prompt),), sampling or Sampling(), True)


def written(request: GenerateRequest, model: str = "gemini-2.5-flash", **options: Any) -> Written:
    """Return the body that is written of it."""
    return API.write(request, WriterOptions(**{"model": model, "issuer": "google", **options}))


signatures = st.sampled_from(
    [(), (), (Opaque("google", SIGNATURE, "c2ln"),), (Opaque("anthropic", SIGNATURE, "eA=="),)]
)
sources = st.sampled_from(
    [PIXEL, "data:text/plain,a%20b", "https://example.com/a.pdf?x=1", "gs://b/c"]
)
parts: st.SearchStrategy[Part] = st.builds(TextPart, WORDS) | st.builds(
    MediaPart, st.sampled_from(["image", "file", "audio", "video"]), sources, st.just("x")
)
contents = st.none() | WORDS | st.lists(parts, max_size=3).map(tuple)
arguments = st.sampled_from(
    ["{}", '{"a":1}', "", "not json", '{"n":NaN}', "[1]", '{"a":"\\ud800"}']
)


@st.composite
def answers(draw: st.DrawFn, at: int) -> Turn:
    """An assistant's turn, with blocks or without."""
    ids = st.sampled_from([f"call_{at}_{one}" for one in range(3)])
    if draw(st.booleans()):
        calls = draw(
            st.lists(st.builds(ToolCall, ids, st.sampled_from(NAMES), arguments), max_size=3)
        )
        return Turn(
            "assistant", draw(contents), reasoning=draw(st.none() | WORDS), calls=tuple(calls)
        )
    blocks = draw(
        st.lists(
            st.builds(TurnBlock, st.sampled_from(["text", "reasoning"]), WORDS, opaque=signatures)
            | st.builds(
                TurnBlock, st.just("call"), arguments, st.sampled_from(NAMES), ids, signatures
            ),
            min_size=1,
            max_size=4,
        )
    )
    called = tuple(
        ToolCall(one.call_id, one.name, one.text) for one in blocks if one.kind == "call"
    )
    text = "".join(one.text for one in blocks if one.kind == "text")
    return Turn("assistant", text or None, calls=called, blocks=tuple(blocks))


@st.composite
def turns(draw: st.DrawFn) -> tuple[Turn, ...]:
    """Turns in any order, results of calls that there are and of others among them."""
    made: list[Turn] = []
    for at in range(draw(st.integers(1, 7))):
        role = draw(st.sampled_from(["system", "user", "assistant", "tool"]))
        if role == "assistant":
            made.append(draw(answers(at)))
        elif role == "tool":
            calls = [call.call_id for turn in made for call in turn.calls]
            answered = draw(st.sampled_from([*calls, "call_x"]))
            name = draw(st.none() | st.sampled_from(NAMES))
            said = draw(contents | st.sampled_from(['{"a": [1]}', '{"a"', "{}"]))
            made.append(Turn("tool", said, name=name, answers_call=answered))
        else:
            made.append(
                Turn("user" if role == "user" else "system", draw(contents), name=draw(named))
            )
    return tuple(made)


named = st.none() | st.just("Ann")
constraints = st.sampled_from(
    [
        None,
        Constraint("json_object", "", "response_format", strict=False),
        Constraint("json_schema", json.dumps(SCHEMA), "response_format", strict=False),
        Constraint("choice", '["a","b"]', "guided_choice", strict=False),
    ]
)
samplings = st.builds(
    Sampling,
    max_tokens=st.none() | st.integers(1, 8_192),
    temperature=st.none() | st.floats(0, 2),
    top_p=st.none() | st.floats(0.01, 1),
    top_k=st.none() | st.integers(-1, 100),
    min_p=st.none() | st.just(0.1),
    frequency_penalty=st.sampled_from([0.0, -1.5]),
    presence_penalty=st.sampled_from([0.0, 0.5]),
    seed=st.none() | st.integers(-(2**63), 2**63 - 1),
    stop=st.lists(st.text(min_size=1, max_size=3), max_size=3).map(tuple),
    logit_bias=st.sampled_from([{}, {1: 2.0}]),
    logprobs=st.none() | st.integers(0, 20),
    constraint=constraints,
)
tools = st.lists(
    st.builds(
        Tool,
        st.sampled_from(NAMES),
        st.none() | WORDS,
        st.sampled_from([None, {}, SCHEMA]),
        strict=st.booleans(),
    ),
    unique_by=lambda tool: tool.name,
).map(tuple)


@st.composite
def choices(draw: st.DrawFn, declared: tuple[Tool, ...]) -> ToolChoice:
    """A choice among these tools."""
    names = [tool.name for tool in declared]
    parallel, one, some = draw(st.booleans()), draw(st.booleans()), draw(st.booleans())
    if names and one:
        return ToolChoice("named", names[0], parallel=parallel)
    allowed = (names[-1],) if names and some else None
    modes: list[ToolMode] = ["auto", "none", "required"]
    return ToolChoice(draw(st.sampled_from(modes)), allowed=allowed, parallel=parallel)


thinkings = st.just(NOTHING_SAID) | st.builds(
    Thinking,
    effort=st.sampled_from([None, "none", "minimal", "low", "medium", "high", "xhigh", "max"]),
    budget=st.none() | st.integers(0, 100_000),
    adaptive=st.booleans(),
    on=st.sampled_from([None, True, False]),
)


@st.composite
def wishes(draw: st.DrawFn) -> GenerateRequest:
    """Any request that can be written."""
    declared = draw(tools)
    prompt = ChatPrompt(
        draw(turns()),
        declared,
        draw(choices(declared)),
        draw(thinkings),
        continue_final_message=draw(st.booleans()),
        systems_stay=draw(st.booleans()),
    )
    return GenerateRequest("m", (prompt,), draw(samplings), draw(st.booleans()))
