"""What nodes report of a limit adds up, whatever they report: spent, left and not to be had are all there is."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from smg_mesh.escrow.audit.report import Report
from smg_node.cluster.limits.limit_totals import Asked, add_up, inexact_reasons
from support.tools.example_counts import example_count

NAMES = ("a", "b", "c", "d", "e")
AMOUNTS = st.integers(0, 700)
SIGNED = st.integers(-50, 700)
SOME = st.lists(st.sampled_from(NAMES), unique=True).map(lambda names: tuple(sorted(names)))
BY_NAME = st.lists(st.tuples(st.sampled_from(NAMES), SIGNED), max_size=3).map(tuple)
BY_TERM = st.lists(st.tuples(st.integers(0, 3), SIGNED), max_size=3).map(tuple)


@st.composite
def reports(draw: st.DrawFn, key: str) -> Report:
    """Anything a node could say, true or not; older versions leave the last fields out."""
    term = draw(st.integers(0, 3))
    newer: dict[str, Any] = {
        "right": draw(AMOUNTS),
        "newcomers": draw(SOME),
        "coming": draw(AMOUNTS),
        "missing": draw(AMOUNTS),
        "received": draw(BY_TERM),
        "made": draw(SIGNED),
        "withheld": draw(AMOUNTS),
        "stranded": draw(BY_NAME),
    }
    return Report(
        key=key,
        window=draw(st.integers(6, 7)),
        amount=draw(AMOUNTS),
        state=draw(st.sampled_from(("exact", "standing", "borrowed", "alone"))),
        owner=draw(st.sampled_from(("", *NAMES))),
        term=term,
        roster=draw(SOME),
        roster_version=draw(st.integers(0, 2)),
        minted=draw(SIGNED) if term else -1,
        pool=draw(SIGNED) if term else -1,
        given=draw(BY_NAME) if term else (),
        standing=draw(AMOUNTS),
        borrowed=draw(AMOUNTS),
        spent=draw(AMOUNTS),
        left=draw(SIGNED),
        debt=draw(AMOUNTS),
        not_adopted=draw(SOME),
        **(newer if draw(st.booleans()) else {}),
    )


@st.composite
def answers(draw: st.DrawFn) -> tuple[dict[str, list[Report]], Asked]:
    key = draw(st.sampled_from(("#requests/60000", "t=1#cost/1000", "t=1#concurrent/0")))
    answered = draw(SOME.filter(bool))
    said = draw(SOME.filter(bool).map(lambda names: [name for name in names if name in answered]))
    living = sorted({*answered, *draw(SOME)})
    return {name: [draw(reports(key))] for name in said}, Asked(answered, living, draw(SOME))


@settings(max_examples=example_count(600), deadline=None)
@given(answers())
def test_spent_left_and_unavailable_are_all_of_a_limit(
    said: tuple[dict[str, list[Report]], Asked],
) -> None:
    for use in add_up(*said):
        lost = [one.amount for one in use.unavailable]
        assert use.spent + use.remaining + sum(lost) == use.amount + use.over
        assert use.remaining >= 0
        assert use.over >= 0
        assert min(lost, default=1) > 0
        assert all(one.text for one in use.unavailable)
        assert use.over == 0 or (use.remaining, lost) == (0, [])
        hands = sum(max(0, one.left) for one in use.nodes.values() if one.window == use.window)
        if use.term:
            assert use.remaining >= min(hands, use.amount + use.over - use.spent)
        reasons = inexact_reasons([use], silent={}, cut=0)
        assert len(reasons) == len(set(reasons))
