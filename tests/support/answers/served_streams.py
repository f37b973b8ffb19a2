"""Event streams in which tools of a node's own side run: in short, and of any shape that the grammar allows."""

from collections.abc import Sequence
from typing import get_args

from hypothesis import strategies as st
from msgspec.structs import replace

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
    Listed,
    RunEnd,
    RunNote,
    RunStart,
    Usage,
)
from smg_node.core.generation.tool_owner import ToolOwner, ToolShape
from smg_node.core.generation.tool_serving import ListedTool, RunError, RunResult, Source
from support.answers.grammatical_streams import texts

TIMES = ToolOwner("clock", "times")
SHAPES: tuple[ToolShape, ...] = get_args(ToolShape)
KINDS: tuple[BlockKind, ...] = ("text", "reasoning", "call", "call", "call")
REASONS: tuple[FinishReason, ...] = get_args(FinishReason)
ARGUMENTS = {
    "mcp": '{"zone": "UTC"}',
    "web_search": '{"query": "tides"}',
    "web_fetch": '{"url": "https://a.example/"}',
    "file_search": '{"queries": ["tides"]}',
    "code_interpreter": '{"code": "print(1)"}',
    "image_generation": '{"prompt": "a cat"}',
    "tool_search": '{"query": "weather"}',
}
RESULT = RunResult(
    "12:00",
    content=({"type": "image", "data": "AA==", "mimeType": "image/png"},),
    sources=(Source("https://a.example/", "A", "tides rise", 0.5, "file_a"),),
    outputs=({"type": "logs", "logs": "1\n"},),
    found=(ListedTool("weather", "tells it", {"type": "object"}),),
)
ERRORS = (
    RunError("mcp_tool_execution_error", content=({"type": "text", "text": "no such zone"},)),
    RunError("mcp_protocol_error", -32001, "the user did not approve it"),
    RunError("http_error", 502, "it may have run"),
)


def owned(owner: ToolOwner = TIMES, *deltas: str, block: int = 0, number: int = 1) -> list[Event]:
    """Return the block of a call of ours, said in the pass of this number; with no deltas, its usual arguments."""
    deltas = deltas or (ARGUMENTS[owner.shape],)
    name, call_id = f"{owner.server}__{owner.tool}", f"call_{block}"
    return [
        BlockStart(0, block, "call", name, call_id, owner=owner, round=number),
        *(Delta(0, block, delta, 1) for delta in deltas),
        BlockEnd(0, block, "call", "".join(deltas), name, call_id, owner=owner, round=number),
    ]


def run(block: int = 0, result: RunResult = RESULT) -> list[Event]:
    return [RunStart(0, block), RunNote(0, block, "half", 0.5, 1.0), RunEnd(0, block, result)]


results = st.one_of(
    st.just(RESULT),
    st.builds(RunResult, texts),
    st.builds(RunResult, texts, error=st.sampled_from(ERRORS)),
    st.just(RunResult("", cut=True)),
)
owners = st.builds(
    ToolOwner,
    st.sampled_from(["clock", "files"]),
    st.sampled_from(["times", "read"]),
    st.sampled_from(SHAPES),
    asks=st.sampled_from([False, False, False, True]),
    approval=st.sampled_from(["", "", "mcpr_1"]),
    hidden=st.sampled_from([False, False, False, True]),
)
_listed = st.tuples(
    st.sampled_from(["clock", "files"]),
    st.just((ListedTool("times", "tells them", {"type": "object"}, {"readOnlyHint": True}),))
    | st.just(()),
    st.sampled_from(["", "", "it does not answer"]),
)
listings = _listed.map(lambda said: Listed(*said))


def with_passes(draw: st.DrawFn, told: Sequence[Event]) -> list[Event]:
    """Return these events, their blocks said in one pass or another."""
    rounds: dict[int, int] = {}
    number = 1
    for event in told:
        if isinstance(event, BlockStart):
            number += draw(st.integers(0, 1)) if rounds else 0
            rounds[event.block] = number
    said: list[Event] = []
    for place, event in enumerate(told):
        if isinstance(event, BlockStart | BlockEnd):
            event = replace(event, round=rounds[event.block])
        elif isinstance(event, RunEnd):
            later = [rounds[one.block] for one in told[place:] if isinstance(one, BlockStart)]
            if rounds[event.block] not in later:
                event = replace(event, spoken=draw(st.booleans()))
        said.append(event)
    return said


@st.composite
def served_streams(draw: st.DrawFn, *, failing: bool = False) -> list[Event]:
    """A whole stream of one choice, in which runs overlap with each other and with later blocks."""
    told: list[Event] = [Begin("1", "m", 5, 3), *draw(st.lists(listings, max_size=2))]
    waiting: list[int] = []
    running: list[int] = []

    def some_runs() -> None:
        while draw(st.booleans()) and (waiting or running):
            if waiting and (not running or draw(st.booleans())):
                running.append(waiting.pop(draw(st.integers(0, len(waiting) - 1))))
                told.append(RunStart(0, running[-1]))
                continue
            block = draw(st.sampled_from(running))
            if draw(st.booleans()):
                told.append(RunNote(0, block, "still"))
            else:
                running.remove(block)
                told.append(RunEnd(0, block, draw(results)))

    for block in range(draw(st.integers(0, 5))):
        kind = draw(st.sampled_from(KINDS))
        owner = draw(owners) if kind == "call" else None
        name, call_id = ("f", f"call_{block}") if kind == "call" else ("", "")
        told.append(BlockStart(0, block, kind, name, call_id, owner=owner))
        usual = [ARGUMENTS[owner.shape]] if owner is not None else []
        deltas = draw(st.just(usual) | st.lists(texts, max_size=3))
        for delta in deltas:
            told.append(Delta(0, block, delta, 1))
            some_runs()
        told.append(BlockEnd(0, block, kind, "".join(deltas), name, call_id, owner=owner))
        if owner is not None and not owner.asks:
            waiting.append(block)
        some_runs()
    told += [RunEnd(0, block, draw(results)) for block in running]
    told = with_passes(draw, told)
    if failing:
        return [*told, Fail(SmgError(ErrorKind.UPSTREAM_FAILED, "it broke"))]
    return [*told, Finish(0, draw(st.sampled_from(REASONS))), Usage(3, 2, 1), End()]
