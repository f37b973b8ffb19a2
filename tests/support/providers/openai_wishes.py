"""Generation requests of any kind, for writers of bodies of OpenAI's two APIs."""

from typing import Any, get_args

from hypothesis import strategies as st

from smg_node.core.generation.opaque import ENCRYPTED, SIGNATURE, Opaque
from smg_node.core.generation.request import (
    ChatPrompt,
    GenerateRequest,
    MediaPart,
    Role,
    Sampling,
    TextPart,
    ToolCall,
    Turn,
    TurnBlock,
)
from support.providers.generate_content_wishes import (
    NAMES,
    PIXEL,
    WORDS,
    arguments,
    choices,
    constraints,
    thinkings,
    tools,
)

THOUGHT = Opaque("openai", ENCRYPTED, "ZW5j", "rs_1")
PHASE = Opaque("openai", "phase", "commentary")
SIGNED = Opaque("google", SIGNATURE, "c2ln")
FILE = "data:application/pdf;base64,JVBERg=="
SOUND = "data:audio/wav;base64,UklGRg=="


def wish(*turns: Turn, sampling: Sampling | None = None, **prompt: Any) -> GenerateRequest:
    """Return a request of these turns."""
    return GenerateRequest("m", (ChatPrompt(turns, **prompt),), sampling or Sampling(), True)


states = st.sampled_from(
    [(), (), (THOUGHT,), (PHASE,), (SIGNED,), (Opaque("anthropic", "x", "y"),)]
)
_media = st.sampled_from(
    [MediaPart("image", PIXEL, "x"), MediaPart("image", "https://e.com/a.png", "x")]
) | st.just(MediaPart("file", FILE, "x"))
_parts = st.builds(TextPart, WORDS)
_ids = st.sampled_from(["call_0", "call_1", "", "x" * 65])


@st.composite
def _answers(draw: st.DrawFn) -> Turn:
    """An assistant's turn, with blocks or without."""
    if draw(st.booleans()):
        made = st.builds(ToolCall, _ids, st.sampled_from(NAMES), arguments)
        calls = tuple(draw(st.lists(made, max_size=3)))
        said = draw(st.none() | WORDS | st.lists(_parts, max_size=2).map(tuple))
        return Turn("assistant", said, reasoning=draw(st.none() | WORDS), calls=calls)
    blocks = draw(
        st.lists(
            st.builds(TurnBlock, st.sampled_from(["text", "reasoning"]), WORDS, opaque=states)
            | st.builds(
                TurnBlock, st.just("call"), arguments, st.sampled_from(NAMES), _ids, states
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
def _turns(draw: st.DrawFn, media: st.SearchStrategy[MediaPart]) -> tuple[Turn, ...]:
    """Turns in any order, results of calls that there are and of others among them."""
    made: list[Turn] = []
    shown = st.none() | WORDS | st.lists(_parts | media, max_size=3).map(tuple)
    for _ in range(draw(st.integers(1, 6))):
        role: Role = draw(st.sampled_from(get_args(Role)))
        if role == "assistant":
            made.append(draw(_answers()))
        elif role in ("tool", "function"):
            name = draw(st.sampled_from(NAMES)) if role == "function" else None
            made.append(Turn(role, draw(shown), name=name, answers_call=draw(_ids) or None))
        elif role == "user":
            made.append(Turn(role, draw(shown), name=draw(st.none() | st.just("Ann"))))
        else:
            made.append(Turn(role, draw(WORDS | st.lists(_parts, max_size=2).map(tuple))))
    return tuple(made)


def samplings(**more: Any) -> st.SearchStrategy[Sampling]:
    """Draw how the answer is drawn; `more` are fields that one of the APIs has."""
    return st.builds(
        Sampling,
        max_tokens=st.none() | st.integers(1, 100_000),
        temperature=st.none() | st.floats(0, 2),
        top_p=st.none() | st.floats(0.01, 1),
        top_k=st.none() | st.integers(-1, 100),
        min_p=st.none() | st.just(0.1),
        frequency_penalty=st.sampled_from([0.0, -1.5]),
        presence_penalty=st.sampled_from([0.0, 0.5]),
        seed=st.none() | st.integers(-(2**63), 2**63 - 1),
        logit_bias=st.sampled_from([{}, {1: 2}]),
        logprobs=st.none() | st.integers(0, 20),
        constraint=constraints.filter(lambda one: one is None or one.kind != "choice"),
        **more,
    )


@st.composite
def wishes(draw: st.DrawFn, /, *, sounds: bool = False, **sampling: Any) -> GenerateRequest:
    """Any request that can be written. `sounds`: users may be heard, too."""
    heard = st.just(MediaPart("audio", SOUND, "x"))
    declared = draw(tools)
    prompt = ChatPrompt(
        draw(_turns(_media | heard if sounds else _media)),
        declared,
        draw(choices(declared)),
        draw(thinkings),
        systems_stay=draw(st.booleans()),
    )
    return GenerateRequest("m", (prompt,), draw(samplings(**sampling)), draw(st.booleans()))
