"""Scenario of a whole day: plans faults by seed, runs the day, judges it and writes the report."""

from collections.abc import Sequence
from random import Random
from typing import Final

from smg_chaos.gameday.stage import Stage
from smg_chaos.gameday.whole import report
from smg_chaos.gameday.whole.day_run import Day, live
from smg_chaos.gameday.whole.plan import chosen, plan
from smg_chaos.gameday.whole.scene import Scene
from smg_chaos.gameday.whole.verdict import broken, figures
from smg_chaos.statistics import Figure
from smg_node.system_clock import SystemClock

_SHOWN: Final = 10


async def whole(stage: Stage) -> Sequence[Figure]:
    """Play a day of `stage.seconds` with its faults; return its figures. The report lies beside the nodes' folders."""
    scene = Scene(stage, SystemClock())
    kinds = chosen(stage.faults, store=scene.has_store)
    planned = plan(
        Random(stage.rng.getrandbits(64)),
        stage.seconds,
        stage.cluster.names,
        list(scene.engines),
        kinds,
    )
    stage.say(f"{len(planned)} faults are planned for {stage.seconds:.0f} s")
    day = Day()
    try:
        async with scene.playing():
            await live(scene, day, planned)
            day.is_over = True
    finally:
        # A day that is stopped, or breaks off, tells what it has seen.
        if day.begun_s:
            _write(scene, day)
    return figures(scene, day)


def _write(scene: Scene, day: Day) -> None:
    wrong = broken(scene, day)
    for line in wrong[:_SHOWN]:
        scene.stage.say(line)
    folder = scene.cluster.agents[0].folder.parent
    report.write(folder, scene, day, figures(scene, day), wrong)
    scene.stage.say(f"the report is {folder / 'report.html'}")
