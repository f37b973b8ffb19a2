"""Each scenario, on members that behave and on members that do not: it must tell them apart."""

from collections.abc import Callable
from pathlib import Path

import pytest

from smg_chaos.gameday.agents.cluster import ClusterError
from smg_chaos.gameday.lab.link_rules import BLOCKED, LinkRule
from smg_chaos.gameday.scenes import crashes, healing
from smg_chaos.gameday.scenes import network_faults as weather
from smg_chaos.gameday.stage import Play
from support.mesh.gameday_fakes import Manners, played

GOOD = Manners()


@pytest.mark.parametrize(
    "play",
    [
        crashes.crash,
        crashes.leave,
        crashes.restart,
        weather.loss,
        weather.stall,
        weather.long_stall,
        weather.pause,
        weather.sick,
        healing.partition,
        healing.join,
        healing.late_seed,
    ],
)
def test_members_that_behave_meet_every_target(play: Play, tmp_path: Path) -> None:
    figures, lab, said = played(play, GOOD, tmp_path)
    assert figures
    missed = [figure for figure in figures.values() if not figure.is_met]
    assert missed == []
    assert any(figure.limit is not None for figure in figures.values())
    assert said
    assert not lab.history or lab.history[-1] == {}


@pytest.mark.parametrize(
    ("play", "manners", "metric"),
    [
        (crashes.crash, Manners(notice_death_s=5.5), "all announce a crash, p99"),
        (crashes.crash, Manners(notice_death_s=3.5), "first to announce a crash, p50"),
        (crashes.crash, Manners(notice_death_s=None), "all announce a crash, p50"),
        (crashes.leave, Manners(notice_leave_s=0.7), "all announce a leave, p99"),
        (crashes.leave, Manners(notice_leave_s=None), "all announce a leave, p99"),
        (crashes.leave, Manners(doubts_leavers=True), "doubts about who left"),
        (
            crashes.restart,
            Manners(takes_new_address=False),
            "same name, new address: alive everywhere, p99",
        ),
        (
            crashes.restart,
            Manners(notice_start_s=1.5),
            "same name, new address: alive everywhere, p99",
        ),
        (weather.loss, Manners(accuses_under_loss=1), "healthy members declared dead, 20% loss"),
        (weather.loss, Manners(accuses_under_loss=2), "healthy members declared dead, 40% loss"),
        (
            weather.loss,
            Manners(accuses_under_loss=1, notice_heal_s=None),
            "healthy members declared dead, 40% loss",
        ),
        (weather.stall, Manners(accuses_paused=True), "members declared dead that stalled ≤ 1.5 s"),
        (
            weather.stall,
            Manners(accuses_others_when_paused=True),
            "others declared dead by or beside them",
        ),
        (
            weather.long_stall,
            Manners(accuses_paused=True),
            "members declared dead that stalled ≤ 4 s",
        ),
        (weather.pause, Manners(accuses_others_when_paused=True), "others declared dead"),
        (
            weather.pause,
            Manners(accuses_paused=True, flaps=True),
            "announced about one that is paused",
        ),
        (
            weather.sick,
            Manners(accuses_under_loss=6),
            "healthy members declared dead, one half deaf",
        ),
        (healing.partition, Manners(notice_heal_s=6.0), "all pairs alive after healing, p99"),
        (healing.partition, Manners(notice_heal_s=3.0), "all pairs alive after healing, p50"),
        (healing.partition, Manners(notice_heal_s=None), "all pairs alive after healing, p50"),
        (
            healing.join,
            Manners(notice_join_s=4.0),
            "all pairs alive after joining through one seed",
        ),
        (
            healing.join,
            Manners(notice_join_s=None),
            "all pairs alive after joining through one seed",
        ),
        (healing.late_seed, Manners(notice_start_s=3.0), "joined after the seed appeared"),
        (healing.late_seed, Manners(notice_start_s=None), "joined after the seed appeared"),
    ],
)
def test_members_that_do_not_behave_miss_the_target(
    play: Play, manners: Manners, metric: str, tmp_path: Path
) -> None:
    figures, _, _ = played(play, manners, tmp_path)
    assert not figures[metric].is_met


def test_a_cluster_that_does_not_come_about_is_no_measurement(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match=r"do not find each other: n0: 1 alive; n1: 1 alive"):
        played(crashes.crash, Manners(notice_start_s=None), tmp_path)


def test_times_are_those_of_the_members_not_of_who_asks(tmp_path: Path) -> None:
    figures, _, _ = played(crashes.crash, GOOD, tmp_path, rounds=5)
    assert figures["all announce a crash, p99"].value == pytest.approx(2.5, abs=0.002)
    figures, _, _ = played(healing.late_seed, GOOD, tmp_path, nodes=3)
    assert figures["joined after the seed appeared"].value == pytest.approx(0.4, abs=0.25)


def test_a_name_that_is_refused_elsewhere_ends_the_scenario_and_is_told(tmp_path: Path) -> None:
    figures, _, said = played(crashes.restart, Manners(takes_new_address=False), tmp_path)
    figure = figures["same name, new address: alive everywhere, p50"]
    assert (figure.value, figure.says) == (None, "after 60 s: not alive")
    assert said == ["restart 1 of 3: n0: after 60 s: not alive"]


@pytest.mark.parametrize(
    ("play", "weather_of"),
    [
        (weather.loss, lambda name: {"*": LinkRule(loss=0.2)}),
        (weather.sick, lambda name: {f"*>{name}": LinkRule(loss=0.8)}),
    ],
)
def test_the_weather_is_what_the_scenario_says(
    play: Play, weather_of: Callable[[str], object], tmp_path: Path
) -> None:
    _, lab, _ = played(play, GOOD, tmp_path)
    assert lab.history[0] in [weather_of(name) for name in lab.places]


def test_a_partition_cuts_every_pair_between_the_halves_and_no_other(tmp_path: Path) -> None:
    _, lab, _ = played(healing.partition, GOOD, tmp_path, nodes=4, rounds=1)
    pairs = ["n0>n2", "n0>n3", "n1>n2", "n1>n3"]
    pairs += [f"{pair[3:]}>{pair[:2]}" for pair in pairs]
    assert lab.history[0] == dict.fromkeys(pairs, BLOCKED)


def test_the_same_seed_hurts_the_same_members_in_the_same_order(tmp_path: Path) -> None:
    _, _, once = played(crashes.crash, GOOD, tmp_path)
    _, _, again = played(crashes.crash, Manners(notice_death_s=4.0), tmp_path)
    assert [line.split(":")[1] for line in once] == [line.split(":")[1] for line in again]
