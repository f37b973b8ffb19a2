"""A client knows its script: what it is told is the truth, or it says what was wrong."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smg_chaos.simulate.whole.client_request import Request


def asked(tokens: int = 12) -> Request:
    return Request(number=3, prompt="hello", tokens=tokens, since_us=0)


def test_an_answer_has_as_many_letters_as_were_asked_for_and_follows_from_its_prompt() -> None:
    other = Request(number=4, prompt="hullo", tokens=12, since_us=0)
    assert len(asked().expected) == 12
    assert asked().expected == asked().expected != other.expected


@given(places=st.lists(st.integers(0, 12), max_size=6))
def test_any_cutting_of_the_script_is_right(places: list[int]) -> None:
    request = asked()
    bounds = [0, *sorted(places), 12]
    for begin, end in itertools.pairwise(bounds):
        assert request.hear(request.expected[begin:end]) == ""
    assert request.end("whole") == ""


@given(length=st.integers(0, 11), twice=st.booleans())
def test_a_part_is_no_whole_answer_and_a_true_cut(length: int, twice: bool) -> None:
    request = asked()
    assert request.hear(request.expected[:length]) == ""
    wrong = request.end("whole" if twice else "cut")
    assert ("is whole with" in wrong) == twice


@pytest.mark.parametrize("at", [0, 5, 11])
def test_a_wrong_letter_is_noticed_where_it_comes(at: int) -> None:
    request = asked()
    assert request.hear(request.expected[:at]) == ""
    assert "was told" in request.hear("?")


def test_nothing_may_follow_the_end_and_there_is_one_end() -> None:
    request = asked()
    assert request.end("failed", "no worker") == ""
    assert "ended twice: failed, then cut" in request.end("cut")
    assert "after its end" in request.hear(request.expected[:1])


def test_who_hung_up_hears_nothing_and_has_nothing_to_say() -> None:
    request = asked()
    assert request.end("cut", "the client hung up") == ""
    request.gone = True
    assert request.hear("anything") == request.end("whole") == ""
