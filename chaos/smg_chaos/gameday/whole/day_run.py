"""Day run: traffic, faults in two lanes and final checks, from the first start to the last look."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from smg_chaos.gameday.agents.agent import AgentError
from smg_chaos.gameday.agents.cluster import ClusterError
from smg_chaos.gameday.agents.engine_pool import agreed, until
from smg_chaos.gameday.history.final_check import Found, checked
from smg_chaos.gameday.lab.lab import LabError
from smg_chaos.gameday.whole.clients.chat_users import People
from smg_chaos.gameday.whole.clients.limited_model import Capped
from smg_chaos.gameday.whole.clients.operators import Operators
from smg_chaos.gameday.whole.clients.stream_traffic import FAILURES, Traffic
from smg_chaos.gameday.whole.excuses import CROWD, STORE, disk_of
from smg_chaos.gameday.whole.fault_record import Happened
from smg_chaos.gameday.whole.faults.fault import Fault
from smg_chaos.gameday.whole.faults.table import FAULTS
from smg_chaos.gameday.whole.plan import Planned
from smg_chaos.gameday.whole.samples import Samples, watch
from smg_chaos.gameday.whole.scene import Scene

HEAL_MAX_S: Final = 30.0
AGREE_MAX_S: Final = 20.0
_IN_S: Final = 30.0
_TELL_S: Final = 30.0
_LOOK_S: Final = 0.02
_END_S: Final = 90.0
_LINE_MAX: Final = 400
_POOL: Final = '"logger":"sqlalchemy.pool'
"""Tells with a traceback that it closed a connection whose server stood still: nobody's mistake."""


@dataclass(slots=True)
class Day:
    """What happened, as it is known in the end. Times are seconds on the cluster's clock."""

    begun_s: float = 0.0
    ended_s: float = 0.0
    faults: list[Happened] = field(default_factory=list)
    samples: Samples = field(default_factory=Samples)
    whole_s: float | None = None
    agreed_s: float | None = None
    missing_workers: int = 0
    history: Found | None = None
    hurting: set[str] = field(default_factory=set)
    """Lanes in which something goes wrong at this moment."""
    is_over: bool = False
    """Whether it came to its end."""
    stuck: list[str] = field(default_factory=list)
    """Faults that could not be done, and why."""
    mistakes: list[str] = field(default_factory=list)
    """What nodes themselves took for a mistake of ours: the last line of every traceback in their logs."""


async def live(scene: Scene, day: Day, planned: Sequence[Planned]) -> None:
    """Live through a day with these faults, and note in `day` what came of it. The scene plays already."""
    clients: list[Traffic | People | Capped | Operators] = [
        *(scene.traffic, scene.capped, scene.operators)
    ]
    if scene.has_store:
        clients.append(scene.people)
    async with asyncio.TaskGroup() as group:
        balancing = group.create_task(scene.balancer.run())
        await _everybody_in(scene)
        await scene.traffic.learn()
        day.begun_s = scene.now_s()
        watching = group.create_task(watch(scene.nodes, day.samples, scene.now_s))
        telling = group.create_task(_tell(scene, day))
        running = [group.create_task(one.run()) for one in clients]
        try:
            async with asyncio.TaskGroup() as lanes:
                for lane in ("nodes", "world"):
                    own = [one for one in planned if one.kind.lane == lane]
                    lanes.create_task(_lane(scene, day, own))
                left_s = day.begun_s + scene.stage.seconds - scene.now_s()
                await asyncio.sleep(max(0.0, left_s))
        finally:
            for one in clients:
                one.stop()
            telling.cancel()
        await asyncio.wait(running, timeout=_END_S)
        for task in running:
            task.cancel()
        day.ended_s = scene.now_s()
        await _last_look(scene, day)
        balancing.cancel()
        watching.cancel()


async def _everybody_in(scene: Scene) -> None:
    async def so() -> bool:
        return len(scene.balancer.up()) == len(scene.nodes)

    if await until(scene.cluster, so, _IN_S) is None:
        raise ClusterError(f"only {scene.balancer.up()} become ready")


async def _lane(scene: Scene, day: Day, planned: Sequence[Planned]) -> None:
    """Let faults happen one after the other; a later one waits for an earlier one that heals late."""
    for one in planned:
        await asyncio.sleep(max(0.0, day.begun_s + one.at_s - scene.now_s()))
        if scene.now_s() - day.begun_s + one.seconds > scene.stage.seconds:
            scene.stage.say(f"no time is left for {one.told}")
            continue
        await _happen(scene, day, one)


def excused(planned: Planned) -> Sequence[str]:
    """Return the names whose faults excuse errors of clients; a disk's: its content is unknown."""
    disks = [disk_of(name) for name in planned.victims]
    match planned.kind.excuse:
        case "victims":
            return (*planned.victims, *disks)
        case "store":
            return (STORE,)
        case "refusals":
            return (CROWD,)
        case "none":
            return disks


async def _happen(scene: Scene, day: Day, planned: Planned) -> None:
    """Let one fault begin, last, end and heal."""
    fault = FAULTS[planned.kind.name](scene, planned)
    begun_s = scene.now_s()
    who = excused(planned)
    for name in who:
        scene.excuses.begin(name, begun_s)
    scene.stage.say(f"{begun_s - day.begun_s:6.1f} s  {planned.told}: {planned.kind.says}")
    day.hurting.add(planned.kind.lane)
    await _done(scene, day, fault)
    day.hurting.discard(planned.kind.lane)
    ended_s = scene.now_s()
    heals_s = await _heals(scene, day, fault)
    if heals_s is None:
        seen = await scene.cluster.describe()
        scene.stage.say(f"{planned.told} does not heal: {seen}")
        scene.surprises.note("did not heal", "", f"{planned.told}: {seen}", begun_s)
    for name in who:
        scene.excuses.end(name, scene.now_s())
    kind = planned.kind
    day.faults.append(Happened(kind.name, planned.told, kind.lane, begun_s, ended_s, heals_s))


async def _heals(scene: Scene, day: Day, fault: Fault) -> float | None:
    """Return for how many seconds it can still be noticed; None if for too long.

    While a fault of the other lane is on nothing can be said of this one, so that time does not
    count.
    """
    waited_s, looked_s = 0.0, scene.now_s()
    while not await fault.healed():
        await asyncio.sleep(_LOOK_S)
        now_s = scene.now_s()
        if not day.hurting:
            waited_s += now_s - looked_s
        if waited_s > HEAL_MAX_S:
            return None
        looked_s = now_s
    return waited_s


async def _done(scene: Scene, day: Day, fault: Fault) -> None:
    """Let a fault begin, last and end; what cannot be done is a broken promise like any other, and the day goes on."""
    begun_s = scene.now_s()
    try:
        try:
            await fault.begin()
            await asyncio.sleep(fault.planned.seconds)
        finally:
            await fault.end()
    except (AgentError, ClusterError, ConnectionError, LabError) as error:
        day.stuck.append(f"{fault.planned.told}: {error}")
        scene.surprises.note("could not be done", "", day.stuck[-1], begun_s)
        scene.stage.say(f"cannot be done: {day.stuck[-1]}")


async def _tell(scene: Scene, day: Day) -> None:
    """Say every half a minute how it goes."""
    while True:
        await asyncio.sleep(_TELL_S)
        bad = sum(one.verdict in FAILURES for one in scene.traffic.streams)
        told = f"{len(scene.traffic.streams)} streams ended, {bad} of them badly; "
        told += f"{len(scene.people.ledger.kept)} turns kept"
        scene.stage.say(f"{scene.now_s() - day.begun_s:6.1f} s  {told}")


async def _missing(scene: Scene) -> int:
    try:
        return await scene.missing_workers()
    except ConnectionError:
        return len(scene.workers)  # a node that does not answer has lost all of them


def mistakes_in(log: Path) -> list[str]:
    """Return the lines of a node's log that have a traceback in them, shortened, or that are not log lines at all."""
    return [
        f"{log.parent.name}: {line[:_LINE_MAX]}"
        for line in log.read_text(errors="replace").splitlines()
        if not line.startswith("{") or ("Traceback" in line and _POOL not in line)
    ]


async def _last_look(scene: Scene, day: Day) -> None:
    """Find out what is there when everything has been quiet."""
    day.whole_s = await until(scene.cluster, scene.is_whole, HEAL_MAX_S)
    day.agreed_s = await agreed(scene.cluster, scene.nodes, AGREE_MAX_S)
    day.missing_workers = await _missing(scene)
    day.mistakes = [line for node in scene.nodes for line in mistakes_in(node.log)]
    if scene.has_store:
        day.history = await checked(scene.cluster.lab, scene.nodes, scene.people.ledger)
