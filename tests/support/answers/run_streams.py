"""Event streams with runs of tools on this node's side that obey the grammar: overlapping, hidden, failed, never run."""

from typing import Any

from hypothesis import strategies as st

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
    Listed,
    RunEnd,
    RunNote,
    RunStart,
    Usage,
)
from smg_node.core.generation.tool_owner import ToolOwner
from smg_node.core.generation.tool_serving import ListedTool, RunError, RunResult, Source
from support.answers.grammatical_streams import texts
from support.answers.served_streams import with_passes

OWNERS = (
    ToolOwner("docs", "find"),
    ToolOwner("docs", "read"),
    ToolOwner("web", "search", "web_search"),
    ToolOwner("web", "get", "web_fetch"),
    ToolOwner("box", "run", "code_interpreter"),
    ToolOwner("", "search", "tool_search"),
    ToolOwner("docs", "look", "file_search"),
    ToolOwner("secret", "audit", hidden=True),
)
ERRORS = (
    RunError("mcp_tool_execution_error", content=({"type": "text", "text": "no"},)),
    RunError("mcp_protocol_error", -32602, "bad arguments"),
    RunError("mcp_protocol_error", -32001, "max_uses of web_search is 1"),
    RunError("http_error", 429, "slow down"),
    RunError("http_error", 504, "timed out; it may have run"),
)

results = st.builds(
    RunResult,
    text=texts,
    error=st.none() | st.sampled_from(ERRORS),
    sources=st.lists(
        st.builds(Source, url=st.just("https://a.test"), title=texts, text=texts), max_size=2
    ).map(tuple),
    found=st.lists(st.builds(ListedTool, name=st.sampled_from(["x", "y"])), max_size=2).map(tuple),
    cut=st.booleans(),
)
arguments = st.sampled_from(
    ['{"q":"a"}', "{}", "", '{"q":["é\\u2028"],"n":1}', "not json", '{"q":']
)
listings = st.builds(
    lambda **told: Listed(**told),
    server=st.sampled_from(["docs", "web"]),
    tools=st.lists(
        st.builds(ListedTool, name=st.sampled_from(["find", "read"]), description=texts),
        max_size=2,
        unique_by=lambda tool: tool.name,
    ).map(tuple),
    error=st.sampled_from(["", "", "gone"]),
)


@st.composite
def run_streams(draw: st.DrawFn, *, client_calls: bool = True) -> list[Event]:
    """A whole stream of one choice, with runs at any place behind their calls."""
    blocks: list[list[Event]] = []
    runs: list[list[Event]] = []
    kinds: list[BlockKind] = ["text", "reasoning", "call", "call", "call"]
    for number, kind in enumerate(draw(st.lists(st.sampled_from(kinds), max_size=6))):
        owner = None
        if kind == "call" and (not client_calls or draw(st.integers(0, 3))):
            owner = draw(st.sampled_from(OWNERS))
        blocks.append(_block(draw, number, kind, owner))
        runs.append(_run(draw, number) if owner is not None and draw(st.integers(0, 5)) else [])
    told = [event for block in _merged(draw, blocks, runs) for event in block]
    reasons: list[FinishReason] = ["stop", "tool_calls", "pause", "length"]
    return [
        Begin("0123456789abcdef" * 2, "m", 5, 30),
        *draw(st.lists(listings, max_size=2, unique_by=lambda listed: listed.server)),
        *with_passes(draw, told),
        Finish(0, draw(st.sampled_from(reasons))),
        Usage(30, 9, 20, 2),
        End(),
    ]


def _block(draw: st.DrawFn, number: int, kind: BlockKind, owner: ToolOwner | None) -> list[Event]:
    name, call_id = ("", "")
    whole = draw(texts)
    if kind == "call":
        name, call_id = ("look_up" if owner is None else owner.tool), f"call_{number}"
        whole = draw(arguments)
    cut = draw(st.integers(0, len(whole)))
    apart = draw(st.integers(0, 3)) == 0
    cited: tuple[dict[str, Any], ...] = ()
    if kind == "text" and draw(st.booleans()):
        places = {"start_index": 0, "end_index": len(whole)}
        cited = ({"type": "url_citation", "url": "https://a.test", "title": "A", **places},)
    return [
        BlockStart(0, number, kind, name, call_id, owner=owner, apart=apart),
        *(Delta(0, number, part, 1) for part in (whole[:cut], whole[cut:]) if part),
        BlockEnd(
            0, number, kind, whole, name, call_id, owner=owner, annotations=cited, apart=apart
        ),
    ]


def _run(draw: st.DrawFn, number: int) -> list[Event]:
    notes = [RunNote(0, number, "half", 1, 2)] * draw(st.integers(0, 1))
    return [RunStart(0, number), *notes, RunEnd(0, number, draw(results))]


def _merged(
    draw: st.DrawFn, blocks: list[list[Event]], runs: list[list[Event]]
) -> list[list[Event]]:
    """Return the events of blocks in their order, with runs that overlap anything behind their calls."""
    merged: list[list[Event]] = []
    going: list[list[Event]] = []

    def go_on() -> None:
        while going:
            if not draw(st.booleans()):
                return
            lane = draw(st.sampled_from(going))
            merged.append([lane.pop(0)])
            if not lane:
                going.remove(lane)

    for block, run in zip(blocks, runs, strict=True):
        for event in block:
            go_on()
            merged.append([event])
        if run:
            going.append(list(run))
    go_on()
    return [*merged, *going]
