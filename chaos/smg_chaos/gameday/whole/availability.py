"""Availability scenario: streams through a load balancer while gateways and engines fail.

Played with our gateways, or with the reference. Streamed chats at a fixed rate, each held against
its undisturbed run to the character, through the balancer of a whole day, which tries again
elsewhere only what was refused before a byte. The faults are those of a whole day in which a
gateway without shared state, history or a key can take part, from the same seed for both. Every
gateway is given all engines when it starts, so that nothing depends on a registry; ours has its
mesh as well, which is cut like everything.
"""

import asyncio
import signal
from collections.abc import Sequence
from random import Random
from typing import Any, Final

from smg_chaos.gameday.agents.agent import Agent
from smg_chaos.gameday.agents.cluster import ClusterError
from smg_chaos.gameday.agents.engine_pool import until
from smg_chaos.gameday.agents.engine_processes import EngineProcess
from smg_chaos.gameday.agents.peer_gateway import PeerGateway
from smg_chaos.gameday.agents.smg_agent import SmgAgent
from smg_chaos.gameday.lab.link_rules import cut
from smg_chaos.gameday.limits.scene import CLIENTS, ENGINES
from smg_chaos.gameday.stage import Stage
from smg_chaos.gameday.whole.clients.balancer import Balancer
from smg_chaos.gameday.whole.clients.stream_traffic import Traffic
from smg_chaos.gameday.whole.excuses import CROWD, Excuses
from smg_chaos.gameday.whole.plan import Kind, Planned, chosen, plan
from smg_chaos.statistics import Figure, percentile

KINDS: Final = ("kill", "pause", "partition", "engine", "engine-stall", "crowd")
_TIMES: Final = 10.0
_STREAMS_PER_S: Final = 4
_ENGINES: Final = 3
_ENGINE: Final = (
    *("--contract", "vllm", "--script", "following", "--itl-ms", "20", "--ttft-ms", "10"),
    *("--slots", "256", "--blocks", "4096"),
)
_STALL: Final = ("--engine.stall-s", "2", "--engine.first-event-s", "2")
"""An engine that stands still is given up soon. The reference has no such knob, and waits."""
_READY_S: Final = 60.0
_END_S: Final = 90.0


class _Scene:
    """Gateways of one system between a balancer and engines."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.cluster = stage.cluster
        self.engines = {
            f"engine {number}": EngineProcess(stage.cluster, number, _ENGINE, place=ENGINES)
            for number in range(_ENGINES)
        }
        self.urls = [engine.url for engine in self.engines.values()]
        self.excuses = Excuses()
        self.balancer: Balancer[Agent] = Balancer(stage.cluster.lab, CLIENTS, stage.cluster.agents)
        self.traffic = Traffic(
            self.balancer, self.excuses, stage.streams or _STREAMS_PER_S, now_s=self.now_s
        )

    def now_s(self) -> float:
        """Return the cluster's time, which never jumps."""
        return self.cluster.monotonic_us() / 1e6

    async def begin(self) -> None:
        """Start all engines and gateways; ClusterError if a gateway does not become ready."""
        for engine in self.engines.values():
            engine.start()
        for engine in self.engines.values():
            await engine.listening()
        for agent in self.cluster.agents:
            if isinstance(agent, SmgAgent):
                workers = [word for url in self.urls for word in ("--worker", url)]
                agent.flags = (*agent.flags, *workers, "--store", "memory:", *_STALL)
        for agent in self.cluster.agents:
            await self.start(agent)

    async def start(self, agent: Agent) -> None:
        """Begin a life of a gateway; return when it answers."""
        if isinstance(agent, PeerGateway):
            await agent.restart(self.urls)
            return
        seeds = [other.mesh_address for other in self.cluster.others(agent) if other.program]
        await self.cluster.start_apart([agent], seeds)

    async def all_in(self) -> None:
        """Return when the balancer sends to every gateway; ClusterError if it never does."""

        async def so() -> bool:
            return len(self.balancer.up()) == len(self.cluster.agents)

        if await until(self.cluster, so, _READY_S) is None:
            raise ClusterError(f"only {self.balancer.up()} are ready")


async def availability(stage: Stage) -> Sequence[Figure]:
    """Play `stage.seconds` of streams with faults; return what clients got."""
    scene = _Scene(stage)
    names, engines = stage.cluster.names, list(scene.engines)
    rng, kinds = Random(stage.rng.getrandbits(64)), playable(stage.faults)
    planned = plan(rng, stage.seconds, names, engines, kinds)
    await scene.begin()
    async with asyncio.TaskGroup() as group:
        balancing = group.create_task(scene.balancer.run())
        await scene.all_in()
        await scene.traffic.learn()
        begun_s = scene.now_s()
        running = group.create_task(scene.traffic.run())
        async with asyncio.TaskGroup() as lanes:
            for lane in ("nodes", "world"):
                own = [one for one in planned if one.kind.lane == lane]
                lanes.create_task(_lane(scene, begun_s, own))
            await asyncio.sleep(max(0.0, begun_s + stage.seconds - scene.now_s()))
        scene.traffic.stop()
        await asyncio.wait([running], timeout=_END_S)
        balancing.cancel()
    return figures(scene.traffic, len(planned))


def playable(names: Sequence[str]) -> Sequence[Kind]:
    """Return the kinds of faults of these names, all that there are for none; ValueError names one that is not for this."""
    kinds = chosen(names or KINDS, store=False)
    if strange := [kind.name for kind in kinds if kind.name not in KINDS]:
        raise ValueError(f"availability knows no fault {strange[0]!r}; it has {', '.join(KINDS)}")
    return kinds


async def _lane(scene: _Scene, begun_s: float, planned: Sequence[Planned]) -> None:
    for one in planned:
        await asyncio.sleep(max(0.0, begun_s + one.at_s - scene.now_s()))
        scene.stage.say(f"{scene.now_s() - begun_s:6.1f} s  {one.told}: {one.kind.says}")
        who = (CROWD,) if one.kind.name == "crowd" else one.victims
        for name in who:
            scene.excuses.begin(name, scene.now_s())
        await _happen(scene, one)
        for name in who:
            scene.excuses.end(name, scene.now_s())


async def _happen(scene: _Scene, one: Planned) -> None:
    """Run a fault from begin to end; return when the processes it stopped run again."""
    agents = [agent for agent in scene.cluster.agents if agent.name in one.victims]
    hurt: list[Any] = [scene.engines[name] for name in one.victims if name in scene.engines]
    match one.kind.name:
        case "kill":
            (agent,) = agents
            agent.signal(signal.SIGKILL)
            assert agent.program is not None
            await agent.end_of(agent.program)
            await asyncio.sleep(one.seconds)
            await scene.start(agent)
        case "pause":
            agents[0].signal(signal.SIGSTOP)
            await asyncio.sleep(one.seconds)
            agents[0].signal(signal.SIGCONT)
        case "partition":
            others = [name for name in scene.cluster.names if name not in one.victims]
            scene.cluster.lab.set_rules(cut(one.victims, others))
            await asyncio.sleep(one.seconds)
            scene.cluster.lab.set_rules({})
        case "engine":
            hurt[0].kill()
            await hurt[0].ended()
            await asyncio.sleep(one.seconds)
            hurt[0].start()
            await hurt[0].listening()
        case "engine-stall":
            hurt[0].stop()
            await asyncio.sleep(one.seconds)
            hurt[0].go_on()
        case _:
            scene.traffic.factor = _TIMES
            await asyncio.sleep(one.seconds)
            scene.traffic.factor = 1.0


def figures(traffic: Traffic, faults: int) -> list[Figure]:
    """Return what became of all streams, with a target of ours where it promises something."""
    streams = traffic.streams
    verdicts = [one.verdict for one in streams]
    spoken = [one.spoken_s - one.begun_s for one in streams if one.spoken_s]
    took = [one.ended_s - one.begun_s for one in streams if one.verdict == "exact"]
    exact = 100 * verdicts.count("exact") / len(streams) if streams else None
    says = f"of {len(streams)}, {faults} faults"
    return [
        Figure("streams whole and exact", exact, "%", None, says),
        Figure("streams that say something wrong", verdicts.count("wrong"), "", 0),
        Figure("streams cut off while their gateway was well", verdicts.count("lost"), "", 0),
        Figure("streams cut off with their gateway", verdicts.count("excused"), ""),
        Figure("streams that no gateway took", verdicts.count("refused"), "", 0),
        Figure("streams turned away in a crowd", verdicts.count("turned away"), ""),
        Figure("streams that a second gateway took", sum(one.tries > 1 for one in streams), ""),
        Figure("first text, p50", percentile(spoken, 0.5) if spoken else None, "s"),
        Figure("first text, p99", percentile(spoken, 0.99) if spoken else None, "s"),
        Figure("a whole stream, p99", percentile(took, 0.99) if took else None, "s"),
    ]
