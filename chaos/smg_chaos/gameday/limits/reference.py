"""Reference for limits: the same load on two gateways with separate limits; for the table, without
a verdict.
"""

import signal
from collections.abc import Sequence
from typing import Final

from smg_chaos.gameday.agents.cluster import ClusterError
from smg_chaos.gameday.agents.peer_gateway import PeerGateway
from smg_chaos.gameday.limits.judge import Allowance, Amount
from smg_chaos.gameday.limits.light import burst_of
from smg_chaos.gameday.limits.overload import LIMIT, TIMES, WINDOW_US
from smg_chaos.gameday.limits.report import excess, failures, loaded, unused, within
from smg_chaos.gameday.limits.scene import Scene, evenly, mostly
from smg_chaos.gameday.stage import Stage
from smg_chaos.statistics import Figure

GATEWAYS: Final = 2
_FEW: Final = 10


async def reference(stage: Stage, seconds: float) -> Sequence[Figure]:
    """Play the parts that two unconnected gateways can take: even, skewed, one killed, a burst."""
    scene = Scene(stage)
    pair = [agent for agent in stage.cluster.agents if isinstance(agent, PeerGateway)][:GATEWAYS]
    if len(pair) < GATEWAYS:
        raise ClusterError(f"the reference takes {GATEWAYS} gateways")
    names = [gateway.name for gateway in pair]
    async with scene.playing():
        figures = await _overload(scene, pair, names, seconds)
        for gateway in pair:
            await gateway.restart(scene.urls, per_s=_FEW)
        figures += await burst_of(scene, names)
        return [*figures, *loaded(scene.replies, scene.headroom.least)]


async def _overload(
    scene: Scene, pair: Sequence[PeerGateway], names: list[str], seconds: float
) -> list[Figure]:
    for gateway in pair:
        await gateway.restart(scene.urls, per_s=LIMIT)
    since_us = scene.now_us()
    allowance = Allowance(WINDOW_US, [Amount(LIMIT, since_us)])
    await scene.rate(evenly(names, LIMIT * TIMES))
    chapters = [await scene.chapter("even", seconds)]
    await scene.rate(mostly(names, names[0], LIMIT * TIMES))
    chapters.append(await scene.chapter("skewed", seconds))
    pair[1].signal(signal.SIGKILL)
    scene.hurt.add(scene.cluster.names.index(names[1]), since_us, scene.now_us() + 60_000_000)
    await scene.rate(evenly(names[:1], LIMIT * TIMES))
    await scene.chapter("one killed", seconds)
    await scene.quiet()
    record = await scene.record(since_us)
    figures = [within(f"10x {one.name}", record.of(one), allowance) for one in chapters]
    figures.append(excess("10x, all chapters", record, allowance))
    for chapter, most in zip(chapters, (1.0, 5.0), strict=True):
        figures.append(unused(f"10x {chapter.name}", chapter, record, allowance, most))
    figures.append(failures("10x", record, scene.hurt, scene.stage.say))
    return figures
