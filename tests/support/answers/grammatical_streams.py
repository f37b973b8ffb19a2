"""Event streams that obey the grammar, for every test of what reads them."""

from typing import get_args

from hypothesis import strategies as st

from smg_node.core.errors import ErrorKind, SmgError
from smg_node.core.generation.events import (
    Begin,
    BlockEnd,
    BlockKind,
    BlockStart,
    Delta,
    End,
    Event,
    Fail,
    Finish,
    FinishReason,
    PromptEcho,
    TokenLogprob,
    TopLogprob,
    Usage,
)
from smg_node.core.generation.opaque import ENCRYPTED, REDACTED, SIGNATURE, Opaque

ALL_KINDS: tuple[BlockKind, ...] = ("text", "reasoning", "call", "refusal")
REASONS: tuple[FinishReason, ...] = get_args(FinishReason)

# Whatever a model may print, line ends of every alphabet and characters outside the first plane included.
texts = st.text(
    st.characters(exclude_categories=["Cs"]) | st.sampled_from('\n\r\u2028\u2029\u0085"\\😀é'),
    max_size=8,
)
states = st.sampled_from(
    [
        (),
        (),
        (Opaque("google", SIGNATURE, "c2ln"),),
        (Opaque("anthropic", SIGNATURE, "c2ln"),),
        (Opaque("anthropic", REDACTED, "cmVk"), Opaque("openai", ENCRYPTED, "ZW5j", "rs_1")),
        (Opaque("openrouter", "detail", '{"type":"reasoning.encrypted","data":"x"}'),),
        (Opaque("openai", "phase", "commentary"),),
    ]
)
"""What vendors want back with a block."""
logprob_values = st.floats(min_value=-100, max_value=0) | st.sampled_from([-9999.0, float("-inf")])


@st.composite
def token_logprobs(draw: st.DrawFn, *, first_of_prompt: bool = False) -> TokenLogprob:
    """One token and up to two alternatives."""
    text = draw(texts)
    top = tuple(
        TopLogprob(token_id, other, other.encode(), draw(logprob_values))
        for token_id, other in enumerate(draw(st.lists(texts, max_size=2)))
    )
    logprob = None if first_of_prompt else draw(logprob_values)
    return TokenLogprob(draw(st.integers(0, 2**32 - 1)), text, text.encode(), logprob, top)


@st.composite
def blocks(
    draw: st.DrawFn, choice: int, block: int, kind: BlockKind, *, logprobs: bool, opaque: bool
) -> list[Event]:
    """One block of one choice, cut into deltas of any size, empty ones included."""
    name, call_id = ("look_up", f"call_{choice}_{block}") if kind == "call" else ("", "")
    state = draw(states) if opaque else ()
    known = state if kind == "call" else ()
    events: list[Event] = [BlockStart(choice, block, kind, name, call_id, known)]
    whole = ""
    for text in draw(st.lists(texts, max_size=4)):
        tokens = draw(st.integers(0, 3))
        ids = tuple(draw(st.lists(st.integers(0, 2**32 - 1), min_size=tokens, max_size=tokens)))
        shown = [draw(token_logprobs()) for _ in range(tokens)] if logprobs else []
        events.append(Delta(choice, block, text, tokens, tuple(shown), ids))
        whole += text
    return [*events, BlockEnd(choice, block, kind, whole, name, call_id, state)]


@st.composite
def streams(
    draw: st.DrawFn,
    *,
    choices: int = 1,
    kinds: tuple[BlockKind, ...] = ALL_KINDS,
    logprobs: bool = False,
    echo: bool = False,
    failing: bool = False,
    opaque: bool = True,
) -> list[Event]:
    """A whole stream: choices interleaved, ended by End, or by Fail at any place."""
    lanes: list[list[Event]] = []
    for choice in range(choices):
        lane: list[Event] = []
        if echo:
            tokens = (draw(token_logprobs(first_of_prompt=True)), draw(token_logprobs()))
            lane.append(PromptEcho(choice, draw(texts), (1, 2), tokens if logprobs else ()))
        for block, kind in enumerate(draw(st.lists(st.sampled_from(kinds), max_size=4))):
            lane.extend(draw(blocks(choice, block, kind, logprobs=logprobs, opaque=opaque)))
        matched = draw(st.none() | st.just("END") | st.just(2))
        lanes.append([*lane, Finish(choice, draw(st.sampled_from(REASONS)), matched)])
    events = _interleave(draw, lanes)
    generated = sum(event.tokens for event in events if isinstance(event, Delta))
    begin = Begin("1", "m", 1_700_000_000, 7, draw(st.none() | st.just("fp_1")))
    if failing:
        cut = draw(st.integers(0, len(events)))
        return [
            begin,
            *_broken(events[:cut]),
            Fail(SmgError(ErrorKind.UPSTREAM_FAILED, "it broke")),
        ]
    extra = draw(st.integers(0, 2))
    cached, written = draw(st.integers(0, 7)), draw(st.sampled_from([0, 0, 3]))
    return [
        begin,
        *events,
        Usage(7, generated + extra, cached, extra, written, written // 2),
        End(),
    ]


def _interleave(draw: st.DrawFn, lanes: list[list[Event]]) -> list[Event]:
    # All echoes come before any block.
    merged: list[Event] = [lane.pop(0) for lane in lanes if isinstance(lane[0], PromptEcho)]
    while any(lanes):
        lane = draw(st.sampled_from([lane for lane in lanes if lane]))
        merged.append(lane.pop(0))
    return merged


def _broken(events: list[Event]) -> list[Event]:
    """A stream cut short, with what was open closed."""
    open_blocks: dict[int, tuple[BlockStart, str]] = {}
    for event in events:
        if isinstance(event, BlockStart):
            open_blocks[event.choice] = (event, "")
        elif isinstance(event, Delta):
            start, text = open_blocks[event.choice]
            open_blocks[event.choice] = (start, text + event.text)
        elif isinstance(event, BlockEnd):
            del open_blocks[event.choice]
    closed = [
        BlockEnd(start.choice, start.block, start.kind, text, start.name, start.call_id)
        for start, text in open_blocks.values()
    ]
    return [*events, *closed]
