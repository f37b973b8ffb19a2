"""Limits scenario: real nodes above their limits, hurt meanwhile, and counted at their engines.

Parts, each under a limit of its own: ten times the limit (`overload`); just under it, a burst, an
empty share (`light`); a budget of tokens for a crowd of streams, and a number of requests at a time
(`budget`). Other systems than our own node play the parts they can (`reference`). Trials that are
asked for by name (`trials`) are played instead: long windows, and nobody is hurt.
"""

from collections.abc import Sequence
from typing import Final

from smg_chaos.gameday.agents.cluster import ClusterError
from smg_chaos.gameday.agents.engine_pool import nodes_of
from smg_chaos.gameday.agents.peer_gateway import PeerGateway
from smg_chaos.gameday.limits import budget, light, overload
from smg_chaos.gameday.limits.definition import Definer
from smg_chaos.gameday.limits.reference import reference
from smg_chaos.gameday.limits.report import loaded
from smg_chaos.gameday.limits.scene import Scene
from smg_chaos.gameday.limits.trials import trial_list
from smg_chaos.gameday.stage import Stage
from smg_chaos.statistics import Figure

NODES_MIN: Final = 5
"""Two can be cut off, and the others are still a majority."""
LONG_S: Final = 10.0
"""Chapters of just under the limit; from here on everything is played at full length."""


async def limits(stage: Stage) -> Sequence[Figure]:
    """Play all parts, of `stage.seconds` each where nothing is hurt; return their figures."""
    if stage.trials:
        return await trials(stage)
    if all(isinstance(agent, PeerGateway) for agent in stage.cluster.agents):
        return await reference(stage, stage.seconds)
    if len(stage.cluster.agents) < NODES_MIN:
        raise ClusterError(f"the limits are played with {NODES_MIN} nodes or more")
    full = stage.seconds >= LONG_S
    crowd = budget.FULL if full else budget.QUICK
    scene = Scene(stage, talk=crowd.talk)
    async with scene.playing():
        definer = await begun(scene)
        lengths = overload.FULL if full else overload.QUICK
        figures = await overload.Overload(scene, definer, lengths).play()
        figures += await light.just_under(scene, definer, stage.seconds)
        figures += await light.burst(scene, definer)
        figures += await light.waiting(scene, definer, stage.seconds)
        figures += await budget.at_a_time(scene, definer)
        figures += await budget.budget(scene, definer, crowd)
        return [*figures, *loaded(scene.replies, scene.headroom.least)]


async def trials(stage: Stage) -> Sequence[Figure]:
    """Play the trials that the stage names, in windows of `stage.window_s`; return their figures."""
    if len(stage.cluster.agents) < trial_list.NODES_MIN:
        raise ClusterError(f"the trials are played with {trial_list.NODES_MIN} nodes or more")
    own_s = trial_list.WINDOW_S if stage.seconds >= LONG_S else trial_list.QUICK_WINDOW_S
    window_s = stage.window_s or own_s
    names = trial_list.chosen(stage.trials, window_s)
    stage.say(f"trials {', '.join(names)}, in windows of {window_s} s, {stage.mode}")
    scene = Scene(stage)
    async with scene.playing():
        definer = await begun(scene)
        figures = await trial_list.play_trials(
            scene, definer, names, window_s=window_s, mode=stage.mode
        )
        return [*figures, *loaded(scene.replies, scene.headroom.least)]


async def begun(scene: Scene) -> Definer:
    """Start the nodes with the scene's engines; return the operator of their limits, once all can
    use every engine.
    """
    for node in nodes_of(scene.cluster):
        node.flags = (*node.flags, *(word for url in scene.urls for word in ("--worker", url)))
    await scene.cluster.form()
    for node in nodes_of(scene.cluster):
        await scene.usable(node)
    return Definer(scene)
