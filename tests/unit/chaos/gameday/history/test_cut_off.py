"""What other nodes may say of a turn that only a cut-off node has."""

from smg_chaos.gameday.history.cut_off import Told, figures
from smg_chaos.gameday.history.response_request import Answer

AWAY = Answer(503, {"error": {"code": "store_unavailable"}})
DENIED = Answer(404, {"error": {"code": "not_found"}})
BUSY = Answer(503, {"error": {"code": "overloaded"}})


def test_each_answer_counts_as_what_it_is() -> None:
    told = Told()
    assert [told.count("n1", one) for one in (AWAY, DENIED, BUSY)] == [False] * 3
    assert told.count("n2", Answer(200, {"id": "resp_1"}))
    assert (told.asked, told.unsure) == (4, 1)
    assert [one.partition(":")[0] for one in told.denied] == ["n1"]
    assert len(told.other) == 1


def test_a_denial_misses_the_target_and_not_to_know_does_not() -> None:
    told = Told(there_s=[1.0, 3.0])
    told.count("n1", AWAY)
    assert all(one.is_met for one in figures(told))
    told.count("n1", DENIED)
    denied, *rest = figures(told)
    assert not denied.is_met
    assert all(one.is_met for one in rest)


def test_a_turn_that_never_comes_back_misses_too() -> None:
    assert [one.metric for one in figures(Told()) if not one.is_met] == ["the same, worst"]
