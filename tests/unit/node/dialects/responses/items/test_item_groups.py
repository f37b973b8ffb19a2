"""What stays or goes together, and calls and outputs that miss each other."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smg_node.core.cooperative_steps import whole
from smg_node.dialects.responses.items.item_groups import groups_of, unmatched
from support.answers.responses import item_rows, items_from
from support.tools.example_counts import example_count

U = {"role": "user", "content": "u"}
A = {"role": "assistant", "content": "a"}
S = {"role": "system", "content": "s"}
D = {"role": "developer", "content": "d"}
R = {"type": "reasoning"}


def call(call_id: str) -> dict[str, Any]:
    return {"type": "function_call", "call_id": call_id, "name": "f", "arguments": "{}"}


def output(call_id: str, kind: str = "function_call_output") -> dict[str, Any]:
    return {"type": kind, "call_id": call_id, "output": "1"}


@pytest.mark.parametrize(
    ("rows", "groups"),
    [
        ([], []),
        ([U], [((0,), False)]),
        ([U, A, U, A], [((0, 1), False), ((2, 3), False)]),
        ([S, U, A], [((0,), True), ((1, 2), False)]),
        ([A, U], [((0,), False), ((1,), False)]),
        ([U, U], [((0,), False), ((1,), False)]),
        (
            [U, R, call("1"), D, output("1"), A, U],
            [((0, 1, 2, 4, 5), False), ((3,), True), ((6,), False)],
        ),
        ([D, S], [((0,), True), ((1,), True)]),
    ],
)
def test_a_turn_is_a_group_and_instructions_stand_alone(rows: Any, groups: Any) -> None:
    assert [(group.places, group.pinned) for group in groups_of(items_from(rows))] == groups


@settings(max_examples=example_count(100), deadline=None)
@given(st.lists(item_rows(), max_size=8))
def test_every_item_is_in_one_group_and_groups_begin_in_order(rows: Any) -> None:
    groups = groups_of(items_from(rows))
    assert sorted(place for group in groups for place in group.places) == list(range(len(rows)))
    firsts = [group.places[0] for group in groups]
    assert firsts == sorted(firsts)


@settings(max_examples=example_count(100), deadline=None)
@given(st.lists(st.sampled_from([U, A, S, D, R, "turn"]), max_size=8), st.integers(0, 8))
def test_dropping_the_oldest_groups_leaves_no_output_without_its_call(
    plan: Any, dropped: int
) -> None:
    rows: list[Any] = []
    for index, step in enumerate(plan):
        if step == "turn":
            rows += [U, call(f"{index}"), S, output(f"{index}")]
        else:
            rows.append(step)
    items = items_from(rows)
    loose = [group for group in groups_of(items) if not group.pinned][:dropped]
    gone = {place for group in loose for place in group.places}
    left = [item for place, item in enumerate(items) if place not in gone]
    found = whole(unmatched(left))
    assert (found.orphans, found.unanswered) == ((), ())
    assert [item.role for item in left if item.role in ("system", "developer")] == [
        item.role for item in items if item.role in ("system", "developer")
    ]


@pytest.mark.parametrize(
    ("rows", "alone", "open_calls"),
    [
        ([], (), ()),
        ([call("1"), output("1")], (), ()),
        ([call("1")], (), ("1",)),
        ([output("1")], ("1",), ()),
        ([output("1"), call("1")], ("1",), ("1",)),
        ([call("2"), call("1"), output("1")], (), ("2",)),
        ([output("2"), output("1"), output("2")], ("2", "1"), ()),
        ([call("1"), output("1"), output("1")], (), ()),
        (
            [
                {"type": "local_shell_call", "call_id": "s", "action": {}},
                output("s", "local_shell_call_output"),
                {"type": "custom_tool_call", "call_id": "c", "name": "g", "input": ""},
                output("c", "custom_tool_call_output"),
            ],
            (),
            (),
        ),
    ],
)
def test_calls_and_outputs_are_matched(rows: Any, alone: Any, open_calls: Any) -> None:
    items = items_from(rows)
    found = whole(unmatched(items))
    assert (found.orphans, found.unanswered) == (alone, open_calls)
