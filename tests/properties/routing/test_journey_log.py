"""The journal against a list: whatever begins, ends and is asked for, it tells what a plain list would."""

from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.core.journey import Journey
from smg_node.pipeline.observability.journey_log import SAME_ID_MAX, Journal, ended_as
from support.http.journeys import broke, chosen, outcome
from support.tools.example_counts import example_count

ENTRIES = 5
IDS = ("r", "s", "cmpl-r", "0", "")
ANSWERS = ("", "0", "1", "r")
Step = tuple[str, int, int]

STEPS = st.lists(
    st.tuples(st.sampled_from(("begin", "add", "end")), st.integers(0, 9), st.integers(0, 9)),
    max_size=60,
)


def expected(open_ones: list[Journey], kept: list[Journey], wanted: str) -> list[int]:
    newest = [*reversed(open_ones), *reversed(kept[-ENTRIES:])]
    found = [one.began_ms for one in newest if wanted in (one.request_id, one.answer) and wanted]
    answer = wanted.rpartition("-")[2]
    prefixed = [one.began_ms for one in newest if one.answer == answer and answer]
    return (found or prefixed)[:SAME_ID_MAX]


@given(STEPS)
@settings(max_examples=example_count(200), deadline=None)
def test_it_tells_what_a_list_would(steps: list[Step]) -> None:
    journal = Journal("a", entries_max=ENTRIES)
    open_ones: list[Journey] = []
    kept: list[Journey] = []
    for now, (what, one, other) in enumerate(steps):
        if what == "begin" and len(open_ones) < ENTRIES:
            journey = journal.begin(IDS[one % len(IDS)], "chat", "m", now)
            journey.answer = ANSWERS[other % len(ANSWERS)]
            open_ones.append(journey)
        elif what == "add" and open_ones:
            open_ones[one % len(open_ones)].add(chosen() if other % 2 else broke())
        elif what == "end" and open_ones:
            journey = open_ones.pop(one % len(open_ones))
            journal.end(journey, outcome(), now)
            kept.append(ended_as(journey, outcome(), now))
        assert len(journal) == len(open_ones) + min(len(kept), ENTRIES)
    for wanted in (*IDS, *ANSWERS, "chatcmpl-0", "chatcmpl-1", "x-r", "-"):
        told = journal.get(wanted)
        assert [journey.began_ms for journey in told] == expected(open_ones, kept, wanted)
        for journey in told:
            (same,) = [one for one in (*open_ones, *kept) if one.began_ms == journey.began_ms]
            assert journey == same
    for journey in open_ones:
        journal.end(journey, outcome(), 0)
    for _ in range(ENTRIES):
        journal.end(journal.begin("last", "chat", "m", 0), outcome(), 0)
    assert len(journal) == ENTRIES
    assert not any(journal.get(wanted) for wanted in (*IDS, *ANSWERS))
