"""Pass stream: the same events however they are cut, counted on, with owners."""

from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from smg_node.core.generation.events import (
    Begin,
    BlockEnd,
    BlockStart,
    Delta,
    Event,
    Finish,
    PromptEcho,
    Usage,
)
from smg_node.core.generation.tool_owner import ToolOwner
from smg_node.pipeline.tool_loop.call_ledger import CLIENTS, Judged
from smg_node.pipeline.tool_loop.pass_stream import PassStream
from support.answers.grammatical_streams import streams

OURS = Judged("run", ToolOwner("s", "look_up"))
HIDDEN = Judged("unseen", why="no")


def told(events: Sequence[Event], cuts: Sequence[int], judged: Judged, first: int) -> PassStream:
    stream = PassStream(lambda _: judged, first)
    out: list[Event] = []
    bounds = [0, *sorted(cut % (len(events) + 1) for cut in cuts), len(events)]
    for start, end in pairwise(bounds):
        out += stream.feed(events[start:end])
    stream.out = out  # type: ignore[attr-defined]  # what it said, for who looks
    return stream


@given(
    streams(),
    st.lists(st.integers(0, 60), max_size=5),
    st.sampled_from([CLIENTS, OURS, HIDDEN]),
    st.integers(0, 3),
)
def test_every_cut_says_the_same(
    events: list[Event], cuts: list[int], judged: Judged, first: int
) -> None:
    whole, cut = told(events, [], judged, first), told(events, cuts, judged, first)
    assert whole.out == cut.out  # type: ignore[attr-defined]  # see above
    assert whole.calls == cut.calls
    ends = [event for event in events if isinstance(event, BlockEnd)]
    assert [replace(one, call_id="") for one in whole.blocks] == [
        replace(one, call_id="") for one in ends
    ]
    ids = [one.call_id for one in whole.blocks if one.kind == "call"]
    assert ids == [one.call_id for one in whole.calls]
    theirs = [one.call_id for one in ends if one.kind == "call"]
    assert (ids == theirs) if judged.fate == "client" else len(set(ids)) == len(ids)
    assert whole.finish == next(event for event in events if isinstance(event, Finish))
    assert whole.usage == next(event for event in events if isinstance(event, Usage))
    out: list[Event] = whole.out  # type: ignore[attr-defined]  # see above
    shown = [event for event in out if isinstance(event, BlockStart)]
    assert [event.block for event in shown] == list(range(first, first + len(shown)))
    assert whole.next_block == first + len(shown)
    assert all(event.owner == judged.owner for event in shown if event.kind == "call")
    assert all(event.owner is None for event in shown if event.kind != "call")
    if judged.fate == "unseen":
        assert not [event for event in shown if event.kind == "call"]


def test_where_nothing_changes_events_are_the_same_objects() -> None:
    delta = Delta(0, 0, "a", 1)
    stream = PassStream(lambda _: CLIENTS, 0)
    (_, said) = stream.feed([BlockStart(0, 0, "text"), delta])
    assert said is delta


def test_what_a_pass_says_of_itself_is_kept() -> None:
    begin, echo = Begin("1", "m", 1, 1), PromptEcho(0, "p", (1,))
    stream = PassStream(lambda _: CLIENTS, 0)
    assert stream.feed([begin, echo]) == []
    assert (stream.begin, stream.echoes) == (begin, [echo])
