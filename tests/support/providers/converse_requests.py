"""Requests of any kind for the writer of Converse: whatever readers let through."""

from typing import Any

from hypothesis import strategies as st

from smg_node.core.generation.opaque import REDACTED, SIGNATURE, Opaque
from smg_node.core.generation.request import (
    ChatPrompt,
    Constraint,
    GenerateRequest,
    MediaPart,
    Part,
    Role,
    Sampling,
    TextPart,
    Thinking,
    Tool,
    ToolCall,
    ToolChoice,
    Turn,
    TurnBlock,
)

SCHEMA = '{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}'
PNG = "data:image/png;base64,iVBORw0KGgo="

roles: st.SearchStrategy[Role] = st.sampled_from(
    ["system", "developer", "user", "user", "assistant", "tool"]
)
words = st.sampled_from(["", " ", "\n", "Hello", "é😀", " padded ", "x" * 300])
names = st.sampled_from(["look_up", "stop-it", "f", "a.b", "n" * 65])
ids = st.sampled_from(["call_1", "call_2", "", "with space", "i" * 80, "tooluse_a.b:c"])
arguments = st.sampled_from(["{}", '{"a":[1,null]}', "", "[1]", '{"cut":', "é"])
media = st.sampled_from(
    [
        MediaPart("image", PNG, "messages[0].content[1].image_url"),
        MediaPart("image", "data:image/JPEG;base64,/9g=", "p"),
        MediaPart("file", "data:application/pdf;base64,JVBERi0=", "p"),
        MediaPart("file", "data:text/x-python;charset=utf-8;base64,eA==", "p"),
        MediaPart("audio", "data:audio/wav;base64,UklGRg==", "p"),
        MediaPart("video", "data:video/mp4;base64,AAAA", "p"),
        MediaPart("image", "https://example.com/a.png", "p"),
    ]
)
parts: st.SearchStrategy[Part] = st.builds(TextPart, words) | media
contents = st.none() | words | st.lists(parts, max_size=3).map(tuple)
plain = st.none() | words | st.lists(st.builds(TextPart, words), max_size=2).map(tuple)
opaque = st.lists(
    st.builds(
        Opaque,
        st.sampled_from(["anthropic", "bedrock", "google"]),
        st.sampled_from([SIGNATURE, REDACTED]),
        st.sampled_from(["EvQBCg==", "YQ=="]),
    ),
    max_size=2,
).map(tuple)
blocks = (
    st.builds(TurnBlock, st.just("text"), words)
    | st.builds(TurnBlock, st.just("reasoning"), words, opaque=opaque)
    | st.builds(TurnBlock, st.just("call"), arguments, names, ids, opaque)
)
calls = st.lists(st.builds(ToolCall, ids, names, arguments), max_size=3).map(tuple)


@st.composite
def turns(draw: st.DrawFn) -> tuple[Turn, ...]:
    """A conversation: mostly in a sensible order, not always."""
    told: list[Turn] = []
    for _ in range(draw(st.integers(0, 5))):
        role = draw(roles)
        if role == "assistant":
            told.append(_answer(draw))
        elif role == "tool":
            extra = {"is_error": True} if draw(st.booleans()) else {}
            said = draw(contents)
            told.append(Turn("tool", said, answers_call=draw(st.none() | ids), extra=extra))
        else:
            told.append(Turn(role, draw(plain if role != "user" else contents)))
    if draw(st.integers(0, 9)):
        told.append(Turn("user", "Go on."))
    return tuple(told)


def _answer(draw: st.DrawFn) -> Turn:
    if draw(st.booleans()):
        return Turn("assistant", draw(plain), reasoning=draw(st.none() | words), calls=draw(calls))
    given = tuple(draw(st.lists(blocks, max_size=4)))
    made = tuple(ToolCall(one.call_id, one.name, one.text) for one in given if one.kind == "call")
    return Turn("assistant", None, calls=made, blocks=given)


tool_names = st.sampled_from(["look_up", "stop-it", "f", "f", "a.b"])
parameters: st.SearchStrategy[Any] = st.sampled_from(
    [None, {}, {"type": "object", "properties": {"a": {"type": "integer"}}}]
)
tools = st.builds(
    Tool, tool_names, st.none() | words, parameters, st.booleans(), st.just("tools[0]")
)
constraints = st.sampled_from(
    [
        None,
        None,
        Constraint("json_object", "", "response_format"),
        Constraint("json_schema", SCHEMA, "response_format"),
        Constraint("regex", "a+", "regex"),
    ]
)
thinkings = st.just(Thinking()) | st.builds(
    Thinking,
    st.sampled_from([None, "none", "minimal", "low", "high", "max"]),
    st.sampled_from([None, 1_024, 5_000]),
    st.booleans(),
    st.just("thinking"),
    st.sampled_from([None, True, False]),
    st.sampled_from([None, None, 3.0]),
)
samplings = st.builds(
    Sampling,
    max_tokens=st.sampled_from([None, 1, 1_000, 8_000]),
    temperature=st.sampled_from([None, 0.0, 0.5, 1.0, 2.0]),
    top_p=st.sampled_from([None, 0.1, 1.0]),
    top_k=st.sampled_from([None, -1, 40]),
    min_p=st.sampled_from([None, 0.1]),
    seed=st.sampled_from([None, 5]),
    stop=st.sampled_from([(), ("END",), ("a", "\n")]),
    logit_bias=st.sampled_from([{}, {5: 1.0}]),
    constraint=constraints,
)


@st.composite
def requests(draw: st.DrawFn) -> GenerateRequest:
    """A request with one chat."""
    offered = draw(st.lists(tools, max_size=2, unique_by=lambda tool: tool.name))
    modes = ["auto", "none", "required", "named"] if offered else ["auto", "none"]
    mode: Any = draw(st.sampled_from(modes))
    name = offered[0].name if mode == "named" else ""
    prompt = ChatPrompt(
        draw(turns()),
        tuple(offered),
        ToolChoice(mode, name, parallel=draw(st.booleans())),
        draw(thinkings),
        continue_final_message=draw(st.booleans()),
        systems_stay=draw(st.booleans()),
    )
    return GenerateRequest("ours", (prompt,), draw(samplings), True)
