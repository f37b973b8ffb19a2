"""What clients got behind a load balancer, in figures."""

from typing import cast

import pytest

from smg_chaos.gameday.agents.smg_agent import SmgAgent
from smg_chaos.gameday.lab.lab import Lab
from smg_chaos.gameday.whole.availability import KINDS, figures, playable
from smg_chaos.gameday.whole.clients.balancer import Balancer
from smg_chaos.gameday.whole.clients.stream_traffic import Stream, Traffic, Verdict
from smg_chaos.gameday.whole.excuses import Excuses
from smg_chaos.gameday.whole.plan import KINDS as ALL


def of(*verdicts: Verdict) -> dict[str, float | None]:
    balancer: Balancer[SmgAgent] = Balancer(cast(Lab, None), "clients", [])
    traffic = Traffic(balancer, Excuses(), 1.0, now_s=lambda: 0.0)
    traffic.streams = [Stream(1.0, 1.5, 3.0, "n1", one, 1) for one in verdicts]
    return {one.metric: one.value for one in figures(traffic, 2)}


def test_each_stream_is_counted_once() -> None:
    told = of("exact", "exact", "excused", "lost", "wrong", "refused", "turned away", "exact")
    assert told["streams whole and exact"] == 37.5
    assert [
        told[f"streams {one}"] for one in ("that say something wrong", "that no gateway took")
    ] == [1, 1]
    assert told["streams cut off while their gateway was well"] == 1
    assert told["streams cut off with their gateway"] == 1
    assert told["streams turned away in a crowd"] == 1
    assert (told["first text, p50"], told["a whole stream, p99"]) == (0.5, 2.0)


def test_where_nobody_asked_there_is_no_share() -> None:
    assert of()["streams whole and exact"] is None


def test_its_faults_are_among_those_of_a_whole_day_and_no_others_are_played() -> None:
    assert set(KINDS) < set(ALL)
    with pytest.raises(ValueError, match="availability knows no fault 'keys'; it has kill"):
        playable(["kill", "keys"])
    assert [one.name for one in playable(())] == list(KINDS)
    assert [one.name for one in playable(["engine", "kill"])] == ["engine", "kill"]
