"""Drawn requests for a vendor's writer of Messages: turns in any order, with thoughts, calls, results, media and state."""

import json
from typing import Any

from hypothesis import strategies as st

from smg_node.core.generation.opaque import REDACTED, SIGNATURE, Opaque
from smg_node.core.generation.request import (
    ChatPrompt,
    Constraint,
    GenerateRequest,
    MediaPart,
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

_MODES: tuple[ToolMode, ...] = ("auto", "none", "required", "named")
NAMES = ("f", "look_up")
PICTURE = "data:image/png;base64,aGk="
_texts = st.sampled_from(("", " ", "\n", "Hi", "So it is. ", "é😀"))
_ids = st.sampled_from(("call_0", "call_1", "functions.f:0", "", "x" * 80))
_arguments = st.sampled_from(("{}", "", '{"a":1}', '{"a":', "[1]", '{"a":NaN}', '"\\ud800"'))
_opaques = st.lists(
    st.builds(
        Opaque,
        st.sampled_from(("anthropic", "google")),
        st.sampled_from((SIGNATURE, REDACTED, "other")),
        st.sampled_from(("c2ln", "AAAA==")),
    ),
    max_size=2,
).map(tuple)
_parts = st.lists(
    _texts.map(TextPart)
    | st.sampled_from(
        (
            MediaPart("image", PICTURE, "messages[0].content[0]"),
            MediaPart("image", "https://x.test/a.png", "messages[0].content[0]"),
            MediaPart("file", "data:application/pdf;base64,aGk=", "messages[0].content[0]"),
            MediaPart("file", "data:text/csv;base64,aGk=", "messages[0].content[0]"),
        )
    ),
    max_size=3,
).map(tuple)
_contents: st.SearchStrategy[Any] = st.none() | _texts | _parts
_blocks = st.lists(
    st.builds(TurnBlock, st.just("text"), _texts)
    | st.builds(TurnBlock, st.just("reasoning"), _texts, opaque=_opaques)
    | st.builds(
        TurnBlock, st.just("call"), _arguments, st.sampled_from(NAMES), _ids, opaque=_opaques
    ),
    max_size=4,
).map(tuple)
_turns = (
    st.builds(Turn, st.just("user"), _contents)
    | st.builds(Turn, st.sampled_from(("system", "developer")), _texts)
    | st.builds(
        Turn,
        st.just("assistant"),
        _texts,
        reasoning=st.none() | _texts,
        calls=st.lists(
            st.builds(ToolCall, _ids, st.sampled_from(NAMES), _arguments), max_size=2
        ).map(tuple),
    )
    | st.builds(Turn, st.just("assistant"), st.none(), blocks=_blocks)
    | st.builds(
        Turn,
        st.just("tool"),
        _contents,
        answers_call=_ids,
        extra=st.sampled_from(({}, {"is_error": True})),
    )
    | st.builds(Turn, st.just("function"), _contents, name=st.sampled_from(NAMES))
)
_schemas = st.sampled_from(
    ({"type": "object", "properties": {"a": {"type": "string"}}}, {"type": "string"})
)
_constraints = st.none() | st.builds(
    lambda schema: Constraint("json_schema", json.dumps(schema), "response_format"), _schemas
)
_thinkings = st.builds(
    Thinking,
    effort=st.none() | st.sampled_from(("none", "minimal", "low", "high", "max")),
    budget=st.none() | st.sampled_from((1, 1_024, 4_000, 100_000)),
    adaptive=st.booleans(),
    on=st.none() | st.booleans(),
    number=st.none() | st.just(0.5),
)
_samplings = st.builds(
    Sampling,
    max_tokens=st.none() | st.sampled_from((1, 1_024, 1_025, 30_000)),
    temperature=st.none() | st.sampled_from((0.0, 0.7, 1.0, 1.7)),
    top_p=st.none() | st.sampled_from((0.5, 1.0)),
    top_k=st.none() | st.sampled_from((-1, 40)),
    min_p=st.none() | st.just(0.1),
    seed=st.none() | st.just(7),
    stop=st.sampled_from(((), ("END",))),
    logit_bias=st.sampled_from(({}, {1: 2.0})),
    constraint=_constraints,
)


@st.composite
def wishes(draw: st.DrawFn) -> GenerateRequest:
    """Any request whose every wish the API can carry, but for how its conversation ends."""
    turns = (Turn("user", "Hi"), *draw(st.lists(_turns, max_size=6)))
    tools = tuple(Tool(name, draw(st.sampled_from((None, "", "Looks.")))) for name in NAMES)
    tools = draw(st.sampled_from(((), tools)))
    choice = ToolChoice()
    if tools:
        mode = draw(st.sampled_from(_MODES))
        allowed = draw(st.sampled_from((None, ("f",))))
        choice = ToolChoice(mode, "f" if mode == "named" else "", allowed, draw(st.booleans()))
    last = draw(st.booleans())
    prompt = ChatPrompt(
        turns if last else (*turns, Turn("user", "And?")),
        tools,
        choice,
        draw(_thinkings),
        continue_final_message=last,
        systems_stay=draw(st.booleans()),
    )
    return GenerateRequest("m", (prompt,), draw(_samplings), draw(st.booleans()))
