"""A crowd of streams under a budget, from made-up logs and a scene in which nothing runs."""

from collections.abc import Mapping
from pathlib import Path
from random import Random

import pytest

from smg_chaos.gameday.agents.cluster import Cluster
from smg_chaos.gameday.agents.smg_agent import SmgAgent
from smg_chaos.gameday.limits.budget import FULL, QUICK, Crowd, _all_open, audit, together
from smg_chaos.gameday.limits.clients.client_messages import Asks
from smg_chaos.gameday.limits.clients.trial_records import UNKNOWN, Answer, Arrival
from smg_chaos.gameday.limits.engines import Speech
from smg_chaos.gameday.limits.scene import PLACES, Scene
from smg_chaos.gameday.limits.story import Record
from smg_chaos.gameday.stage import Stage
from support.mesh.gameday_fakes import FakeLab, Manners, VirtualClock, on_virtual_time

CROWD = Crowd(10, 2.0, 100, 10_000_000, 1.0, Speech("any-length", 10.0))
NAMES = ["n0", "n1", "n2"]
WINDOW_US = 10_000_000


def said(serial: int, node: int, got_s: float, tokens: int) -> Answer:
    got_us = round(got_s * 1e6)
    return Answer(
        serial, node, got_us - 1, got_us, 200, prompt_tokens=10, answer_tokens=tokens - 10
    )


def arrived(serial: int, came_us: int, ended_us: int = UNKNOWN, made: int = 5) -> Arrival:
    return Arrival(serial, came_us, ended_us, 1, 10, made)


# ── Together ────────────────────────────────────────────────────────────────


def crowd_of(*times: tuple[int, int]) -> Record:
    arrivals = {number: arrived(number, *time) for number, time in enumerate(times)}
    answers = [said(number, 0, 80.0, 20) for number in arrivals]
    return Record(answers, {**arrivals, 99: arrived(99, 0)})


def test_a_crowd_that_is_whole_when_a_node_is_killed_misses_nobody() -> None:
    figure = together(crowd_of(*[(number, 200) for number in range(10)]), CROWD, 100)
    assert (figure.value, figure.is_met) == (0, True)
    assert figure.says == "10 of 10 were, 10 at most at one time"


def test_who_came_late_or_was_gone_was_not_open_when_a_node_was_killed() -> None:
    times = [*[(number, 200) for number in range(7)], (101, 200), (3, 100), (5, UNKNOWN)]
    figure = together(crowd_of(*times), CROWD, 100)
    assert (figure.value, figure.is_met) == (2, False)
    assert figure.says == "8 of 10 were, 9 at most at one time"


def test_one_more_than_the_crowd_is_nobody_missing() -> None:
    figure = together(crowd_of(*[(number, 200) for number in range(12)]), CROWD, 100)
    assert figure.value == 0


# ── Books ───────────────────────────────────────────────────────────────────


def record() -> Record:
    lost = Answer(4, 2, 71_000_000, 72_000_000, 0, "the connection was lost")
    refused = Answer(3, 0, 71_000_000, 71_500_000, 429)
    answers = [said(1, 0, 72.0, 30), said(2, 1, 83.0, 15), said(5, 0, 79.9, 10), refused, lost]
    return Record(answers, {4: arrived(4, 71_100_000, 72_000_000, made=20)})


EXACT = {("n0", 6): 99, ("n0", 7): 40, ("n1", 7): 15, ("n2", 7): 999, ("n9", 7): 9}


def test_books_that_say_what_clients_do_are_right() -> None:
    wrong, over = audit(record(), NAMES, EXACT, CROWD, 7)
    assert (wrong.value, wrong.says) == (0, "40 for 40, 15 for at least 15")
    assert (over.value, over.says) == (0, "85 of 100 with 30 of the node that was killed")


@pytest.mark.parametrize("booked", [39, 41])
def test_a_book_of_answers_that_are_over_in_their_window_says_just_as_much(booked: int) -> None:
    wrong, _ = audit(record(), NAMES, {**EXACT, ("n0", 7): booked}, CROWD, 7)
    assert (wrong.value, wrong.is_met) == (1, False)


def test_a_book_of_answers_that_crossed_a_border_may_say_more_and_never_less() -> None:
    more, _ = audit(record(), NAMES, {**EXACT, ("n1", 8): 9}, CROWD, 7)
    assert more.value == 0
    less, _ = audit(record(), NAMES, {**EXACT, ("n1", 7): 14}, CROWD, 7)
    assert less.value == 1
    none, _ = audit(record(), NAMES, {}, CROWD, 7)
    assert none.value == 2


def test_what_books_and_the_dead_nodes_engines_say_has_to_fit_into_the_limit() -> None:
    _, over = audit(record(), NAMES, {**EXACT, ("n1", 7): 33}, CROWD, 7)
    assert (over.value, over.is_met) == (3, False)


# ── Opening ─────────────────────────────────────────────────────────────────


class CrowdScene(Scene):
    """A scene in which so many of those that are asked are refused, burst by burst."""

    def __init__(self, stage: Stage, refused: list[int]) -> None:
        super().__init__(stage)
        self.refused = refused
        self.bursts: list[dict[str, int]] = []
        self.there: dict[int, Arrival] = {1: arrived(1, 0), 2: arrived(2, 0, 9)}

    async def burst(
        self,
        counts: Mapping[str, int],
        asks: Asks | None = None,
        *,
        over_s: float = 0.0,
        until_us: int = 0,
    ) -> None:
        self.bursts.append(dict(counts))
        refused = self.refused.pop(0) if self.refused else 0
        for _ in range(sum(counts.values()) - refused):
            serial = len(self.there) + 1
            self.there[serial] = arrived(serial, serial)

    def arrivals(self, model: str) -> dict[int, Arrival]:
        return self.there


def opened(tmp_path: Path, refused: list[int]) -> tuple[CrowdScene, float]:
    """Return a scene in which a crowd was opened, and how long that took."""
    lab = FakeLab((*NAMES, *PLACES), VirtualClock(), Manners())
    nodes = [SmgAgent(lab, name, tmp_path / name, lab.clock, key=None) for name in NAMES]
    lines: list[str] = []
    scene = CrowdScene(
        Stage(Cluster(lab, nodes, lab.clock), 1.0, 0, Random(1), lines.append), refused
    )

    async def play() -> None:
        known = frozenset(scene.arrivals("talk"))
        await scene.burst({"n0": 4, "n1": 3, "n2": 3})
        await _all_open(scene, CROWD, known)

    began_s = lab.clock.monotonic_s()
    on_virtual_time(lab.clock, play)
    assert len(lines) == len(scene.bursts) - 1
    return scene, lab.clock.monotonic_s() - began_s


def test_a_crowd_that_is_let_in_at_once_is_asked_once(tmp_path: Path) -> None:
    scene, took_s = opened(tmp_path, [])
    assert len(scene.bursts) == 1
    assert took_s == pytest.approx(2.0 + 0.5 + 1.0, abs=0.01)


def test_who_was_refused_comes_again_and_is_spread_over_the_nodes(tmp_path: Path) -> None:
    scene, _ = opened(tmp_path, [4, 1, 0])
    assert scene.bursts[1:] == [{"n0": 2, "n1": 1, "n2": 1}, {"n0": 1, "n1": 0, "n2": 0}]
    assert len(scene.there) == 2 + 10


def test_nobody_is_asked_for_ever(tmp_path: Path) -> None:
    scene, took_s = opened(tmp_path, [4, 4, 4, 4, 4])
    assert len(scene.bursts) == 3
    assert took_s < 2.0 + 0.5 + 2 * 0.7 + 1.0 + 0.01


@pytest.mark.parametrize("crowd", [FULL, QUICK])
def test_a_crowd_all_of_which_gets_in_does_not_get_out_whole_nor_beyond_the_window(
    crowd: Crowd,
) -> None:
    least, more, most = map(int, crowd.talk.script.partition(":")[2].split(","))
    step_s = crowd.talk.step_ms / 1000
    opening_s = crowd.over_s + 0.5 + 2 * (crowd.over_s / 10 + 0.5) + crowd.open_s
    assert opening_s < least * step_s
    assert crowd.over_s + most * step_s < crowd.window_us / 1e6
    assert crowd.streams * (17 + least) < crowd.tokens < crowd.streams * (17 + least + more)
