"""The gameday's scenarios in short, with real nodes: what they are measured for stays so.

Full length and tight limits are for `make gameday`; here a busy machine must not decide. Who is declared
dead, doubted or touched is expected exactly; times get some slack for two cores that others use too.
"""

from pathlib import Path

import pytest

from smg_chaos.gameday.scenes import changes, crashes, healing
from smg_chaos.gameday.scenes import network_faults as weather
from smg_chaos.gameday.scenes import worker_registry as registry
from smg_chaos.statistics import Figure
from support.processes.lab import played

pytestmark = pytest.mark.integration

SLACK_S = 3.0


def exact(figure: Figure) -> None:
    assert figure.is_met, figure


def in_time(figure: Figure) -> None:
    assert figure.limit is not None
    assert figure.value is not None, figure
    assert figure.value <= figure.limit + SLACK_S, figure


@pytest.mark.long
async def test_a_crash_is_known_everywhere_soon_and_nobody_else_is_declared_dead(
    tmp_path: Path,
) -> None:
    figures = await played(crashes.crash, tmp_path, count=4, rounds=2)
    in_time(figures["all announce a crash, p99"])
    exact(figures["others declared dead meanwhile"])


@pytest.mark.long
async def test_who_leaves_is_known_to_have_left_and_never_doubted(tmp_path: Path) -> None:
    figures = await played(crashes.leave, tmp_path, count=3, rounds=1)
    in_time(figures["all announce a leave, p99"])
    exact(figures["doubts about who left"])
    exact(figures["deaths of who left"])


@pytest.mark.long
async def test_the_same_name_at_a_new_address_is_taken_at_once(tmp_path: Path) -> None:
    figures = await played(crashes.restart, tmp_path, count=4, rounds=2)
    in_time(figures["same name, new address: alive everywhere, p99"])


async def test_a_partition_heals_by_itself(tmp_path: Path) -> None:
    figures = await played(healing.partition, tmp_path, count=4, seconds=8.0, rounds=1)
    assert figures["all see the other side dead, p50"].value is not None
    in_time(figures["all pairs alive after healing, p99"])


@pytest.mark.long
async def test_one_sick_member_brings_nobody_else_down(tmp_path: Path) -> None:
    figures = await played(weather.sick, tmp_path, count=5, seconds=8.0)
    for figure in figures.values():
        exact(figure)


@pytest.mark.long
async def test_short_stalls_are_forgiven(tmp_path: Path) -> None:
    figures = await played(weather.stall, tmp_path, count=4, seconds=8.0)
    for figure in figures.values():
        exact(figure)


@pytest.mark.long
async def test_a_fifth_of_all_packets_lost_declares_nobody_dead(tmp_path: Path) -> None:
    figures = await played(weather.loss, tmp_path, count=4, seconds=6.0)
    for figure in figures.values():
        exact(figure)


@pytest.mark.long
async def test_workers_are_everywhere_soon_and_outlive_who_registered_them(tmp_path: Path) -> None:
    figures = await played(registry.workers, tmp_path, count=3, seconds=1.0, rounds=3)
    for figure in figures.values():
        if figure.unit == "s" and figure.limit is not None:
            in_time(figure)
        else:
            exact(figure)


@pytest.mark.long
async def test_no_answer_is_wrong_while_all_changes_and_every_node_restarts(
    tmp_path: Path,
) -> None:
    figures = await played(changes.changes, tmp_path, count=3, seconds=8.0)
    exact(figures["wrong or failed answers"])
    in_time(figures["all state agrees after the last change"])
    made = figures["changes made"].value
    assert made is not None
    assert made > 50
    # Memory and rates are for runs that are long enough, on a machine with nothing else to do.
