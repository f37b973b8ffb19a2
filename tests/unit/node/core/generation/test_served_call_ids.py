"""Ids of calls that were run on this side: the same in a loop and in its history, unique, and those that a model printed."""

import re

from hypothesis import given
from hypothesis import strategies as st

from smg_node.core.generation.served_call_ids import ServedCallIds, prompt_id, tail_of

LETTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
NINES = st.text(LETTERS, min_size=9, max_size=9)


def shown(call_id: str) -> list[str]:
    tail = tail_of(call_id)
    assert re.fullmatch("[0-9a-f]{14}", tail)
    return [f"mcp_{'a' * 34}{tail}", f"ws_{'0' * 34}{tail}", f"mcptoolu_{'f' * 10}{tail}"]


@given(st.lists(NINES | st.text(max_size=12), max_size=8), st.text(max_size=8))
def test_no_two_calls_of_an_answer_have_one_id_and_each_comes_back(
    printed: list[str], answer_id: str
) -> None:
    ids = ServedCallIds(answer_id)
    told = [ids.give(one) for one in printed]
    assert len(set(told)) == len(printed)
    assert len({tail_of(one) for one in told}) == len(printed)
    for one in told:
        assert [prompt_id(each) for each in shown(one)] == [one] * 3


@given(NINES)
def test_nine_letters_stay_as_the_model_printed_them(printed: str) -> None:
    ids = ServedCallIds("a")
    assert ids.give(printed) == printed
    assert re.fullmatch("call_[0-9a-f]{14}", ids.give(printed))


@given(st.text(max_size=60))
def test_ids_of_others_stay(other: str) -> None:
    assert prompt_id(other) == other
    assert tail_of(f"toolu_{other}") == ""
