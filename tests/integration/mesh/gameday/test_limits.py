"""Limits of real nodes under ten times as much, hurt as the gameday does it, in a minute: never one too many."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from smg_chaos.gameday.limits import budget
from smg_chaos.gameday.limits.engines import Speech
from smg_chaos.gameday.limits.light import burst
from smg_chaos.gameday.limits.overload import Lengths, Overload
from smg_chaos.gameday.limits.scenario import begun
from smg_chaos.gameday.limits.scene import PLACES, Scene
from smg_chaos.gameday.limits.trials.trial import Trial
from smg_chaos.gameday.stage import Stage
from smg_chaos.statistics import Figure
from support.processes.lab import played

pytestmark = pytest.mark.integration

SHORT = Lengths(
    calm=2.0, killed=3.0, after_stop=1.0, cut=2.0, healed=1.0, changed=2.0, balanced=0.0
)


async def short(stage: Stage) -> Sequence[Figure]:
    scene = Scene(stage)
    async with scene.playing():
        definer = await begun(scene)
        figures = await Overload(scene, definer, SHORT).play()
        return [*figures, *await burst(scene, definer)]


async def test_a_limit_holds_at_the_engines_while_its_nodes_are_hurt(tmp_path: Path) -> None:
    figures = await played(short, tmp_path, count=3, more_places=PLACES)
    # How much of a limit is used, and how soon, is the gameday's business: here, other tests use the same cores.
    counted = {
        name: figure.value
        for name, figure in figures.items()
        if name.endswith(("over the limit", "too many", "failed requests", "cannot be true"))
    }
    assert len(counted) == 4
    assert counted == dict.fromkeys(counted, 0), figures


CROWD = budget.Crowd(
    60, 1.0, 17_400, 10_000_000, 0.3, Speech("any-length:260,100,370", 20.0, chunk_tokens=10)
)


async def crowded(stage: Stage) -> Sequence[Figure]:
    scene = Scene(stage, talk=CROWD.talk)
    async with scene.playing():
        definer = await begun(scene)
        figures = await budget.at_a_time(scene, definer)
        return [*figures, *await budget.budget(scene, definer, CROWD)]


@pytest.mark.long
async def test_a_crowd_of_streams_takes_no_token_more_than_its_budget_though_a_node_is_killed(
    tmp_path: Path,
) -> None:
    figures = await played(crowded, tmp_path, count=3, more_places=PLACES)
    counted = {name: figure.value for name, figure in figures.items() if figure.limit == 0}
    assert len(counted) == 9
    assert counted == dict.fromkeys(counted, 0), figures


async def asked_at_once(stage: Stage) -> Sequence[Figure]:
    """Ask one node for half of a limit, and then two nodes for the rest, in one window of ten seconds."""
    scene = Scene(stage)
    async with scene.playing():
        trial = Trial(scene, await begun(scene), window_us=10_000_000, mode="strict")
        await trial.begin(60, first_s=0.5)
        await scene.room(trial.window_us, 3_000_000)
        node = trial.not_owning()
        async with trial.sampled():
            await scene.connect({node: 40})
            await scene.burst({node: 40}, until_us=scene.now_us() + 1_000_000)
            await scene.rate(dict.fromkeys(scene.cluster.names[:2], 15.0))
            await asyncio.sleep(1.5)
            await scene.quiet()
        record = await trial.record()
        admitted = sum(answer.serial in record.arrivals for answer in record.answers)
        return [
            Figure("asked", len(record.answers)),
            Figure("admitted", admitted),
            Figure("refused", record.refused()),
            *await trial.figures("at once"),
        ]


async def test_all_that_a_trial_was_told_is_looked_at_once(tmp_path: Path) -> None:
    figures = await played(asked_at_once, tmp_path, count=3, more_places=PLACES)
    counts = {name: round(figure.value or 0) for name, figure in figures.items()}
    looked = {
        name.removeprefix("at once: "): int(figure.says.split()[1].rstrip(":,;"))
        for name, figure in figures.items()
        if figure.says.startswith("of ")
    }
    asked, refused = counts["asked"], counts["refused"]
    assert asked >= 60
    assert counts["admitted"] + refused == asked
    assert counts["at once: failed requests"] == 0
    assert figures["at once: admitted / limit, fullest run of windows"].is_met
    assert looked["answers with a wrong remaining"] == asked
    assert looked["refusals with a wrong Retry-After"] == refused
    assert looked["refusals with no reason, or an untrue one"] == refused
    assert looked["reports of use that do not add up"] >= 1
    assert all(
        counts[f"at once: {name}"] <= (100 if name.startswith("refusals with a wrong") else most)
        for name, most in looked.items()
    )
