"""Chats of many turns: the same for everybody, and each prompt the beginning of the next."""

from itertools import pairwise
from statistics import fmean

import pytest

from smg_chaos.routing.model.engine import keys_of
from smg_chaos.routing.model.engine_sizes import EngineSize
from smg_chaos.routing.model.workload import Turn, Workload

SIZE = EngineSize()


def turns_of(seed: int, sessions: int) -> list[list[Turn]]:
    workload = Workload(seed, 2.0, sessions / 2.0, SIZE)
    return [list(workload.session(number)) for number in range(len(workload.begins_s))]


def test_a_seed_gives_one_workload_whoever_asks_and_in_what_order() -> None:
    workload, again = Workload(1, 1.0, 60.0, SIZE), Workload(1, 1.0, 60.0, SIZE)
    numbers = range(len(workload.begins_s))
    ahead = {number: list(again.session(number)) for number in reversed(numbers)}
    assert [list(workload.session(number)) for number in numbers] == [ahead[n] for n in numbers]
    assert Workload(2, 1.0, 60.0, SIZE).begins_s != workload.begins_s


def test_each_turn_goes_on_from_the_answer_before_it() -> None:
    for session in turns_of(1, 40):
        for turn in session:
            assert turn.keys == keys_of(turn.ids, SIZE)
            assert 0 < turn.prompt < len(turn.ids)
        for one, after in pairwise(session):
            assert after.ids[: len(one.ids)] == one.ids
            assert after.prompt > len(one.ids)
            assert after.due_s > one.due_s + 8.0
            assert (after.session, after.number) == (one.session, one.number + 1)


def test_it_is_what_its_text_says() -> None:
    sessions = turns_of(1, 1_200)
    turns = [turn for session in sessions for turn in session]
    answers = [len(turn.ids) - turn.prompt for turn in turns]
    assert len(turns) / len(sessions) == pytest.approx(6, abs=0.5)
    assert max(map(len, sessions)) <= 20
    assert (min(answers) >= 16, max(answers) <= 1_000) == (True, True)
    assert fmean(answers) == pytest.approx(250, rel=0.1)
    starts = {bytes(session[0].ids[:64]) for session in sessions}
    assert len(starts) == 24
