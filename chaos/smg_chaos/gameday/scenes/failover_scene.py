"""Failover scene: nodes, engines and questions; sends all of them, hurts one engine, and makes it
whole again.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from smg_chaos.gameday.agents.cluster import Cluster, ClusterError
from smg_chaos.gameday.agents.engine_pool import Operator, nodes_of, until
from smg_chaos.gameday.agents.engine_processes import EngineProcess
from smg_chaos.gameday.agents.smg_agent import SmgAgent
from smg_chaos.gameday.clients.stream_check import Hearing, problems
from smg_chaos.gameday.clients.stream_client import at_place, listen
from smg_chaos.gameday.scenes.roles import STALL_S, Cast, Harm, Role, questions
from smg_chaos.gameday.stage import Stage

_BEGIN_WITHIN_S: Final = 0.8
_HURT_AFTER_S: Final = (0.4, 1.6)
_AT_WORK_S: Final = (0.3, 0.9)
"""When prompts stand in line."""
_LATE_S: Final = (0.3, 1.0)
_ALL_AT_S: Final = _BEGIN_WITHIN_S + 0.4
"""When every stream has begun, and none has ended..."""
_SOME_AT_S: Final = _BEGIN_WITHIN_S
"""... and when some prompts stand in line."""
_STREAM_S: Final = 30.0
_READY_S: Final = 60.0
_STOP_CHARACTERS: Final = 4


@dataclass(frozen=True, slots=True)
class Told:
    """One client's stream. `moved`: of a worker that was hurt meanwhile, after which it waited for
    `silence_s`.

    `begun`: all of its choices had some text at the time of the fault.
    """

    heard: Hearing
    moved: bool = False
    silence_s: float = 0.0
    begun: bool = False


def stop_in(text: str) -> str:
    """Return a piece of a text for a stop string, from its second half, where it is plain; "" if
    there is none.
    """
    for at in range(len(text) * 6 // 10, len(text) - _STOP_CHARACTERS):
        piece = text[at : at + _STOP_CHARACTERS]
        if piece.isascii() and piece.isprintable() and piece.strip() == piece:
            return piece
    return ""


class Scene:
    """The nodes, the engines of one cast, and the questions."""

    def __init__(self, stage: Stage, cast: Cast, streams: int) -> None:
        self._stage = stage
        self._cast = cast
        self._cluster: Cluster = stage.cluster
        self._nodes = nodes_of(stage.cluster)
        self._engines = [
            (part.role, EngineProcess(stage.cluster, number, part.flags))
            for number, part in enumerate(cast.parts)
        ]
        self._ids: dict[str, EngineProcess] = {}
        self._questions = questions(streams, cast.filler)

    async def begin(self) -> None:
        """Start everything; return when every node can use every engine."""
        for _, engine in self._engines:
            engine.start()
        for node in self._nodes:
            node.flags = (*node.flags, *self._cast.flags)
        await self._cluster.form()
        for _, engine in self._engines:
            await engine.listening()
            self._ids[await Operator(self._nodes[0]).add(engine.url)] = engine
        await self._usable()

    async def undisturbed(self) -> list[Hearing]:
        """Return the answer to every question without a fault; ClusterError if that is not always
        the same.
        """
        for asked, heard in zip(self._questions, await self._asked(), strict=True):
            if "n" not in asked and "logprobs" not in asked and (stop := stop_in(heard.texts[0])):
                asked["stop"] = [stop]
        rights = await self._asked()
        for right, again in zip(rights, await self._asked(), strict=True):
            found = problems(again, right) + problems(right, right)
            if found or not right.characters:
                raise ClusterError(f"an undisturbed stream is not right: {found}")
        return rights

    async def round(self, harm: Harm) -> list[Told]:
        """Run all streams, hurt one worker in the middle, and make it whole again; return what
        clients received.
        """
        rng = self._stage.rng
        victim = ""

        async def hurt(hearings: Sequence[Hearing]) -> None:
            nonlocal victim
            window_s = _AT_WORK_S if harm.role == "prefill" else _HURT_AFTER_S
            await asyncio.sleep(rng.uniform(*window_s))
            node = rng.choice(self._nodes)
            victim = rng.choice(await self._busy(harm.role, hearings, node))
            await self._hurt(harm, victim, Operator(node))

        heard = await self._asked(hurt)
        told = [await self._told(harm, victim, number, one) for number, one in enumerate(heard)]
        await self._heal(harm, victim)
        return told

    async def without(self, role: Role) -> tuple[float, list[Told]]:
        """Run all streams and kill every engine of a role; return when, and what clients
        received.
        """
        killed_s = 0.0
        begun: list[bool] = []

        async def hurt(hearings: Sequence[Hearing]) -> None:
            nonlocal killed_s, begun
            await asyncio.sleep(_SOME_AT_S if role == "prefill" else _ALL_AT_S)
            begun = [
                sum(map(bool, heard.texts.values())) == asked.get("n", 1)
                for heard, asked in zip(hearings, self._questions, strict=True)
            ]
            killed_s = self._now_s()
            for engine in self._of(role):
                engine.kill()

        heard = await self._asked(hurt)
        return killed_s, [Told(one, begun=was) for one, was in zip(heard, begun, strict=True)]

    async def whole_again(self) -> None:
        """Start the engines again that were killed; return when every node can use every engine."""
        for _, engine in self._engines:
            if engine.is_killed:
                await self._restart(engine)
        await self._usable()

    def _of(self, role: Role) -> list[EngineProcess]:
        return [engine for plays, engine in self._engines if plays == role]

    async def _busy(self, role: Role, hearings: Sequence[Hearing], node: SmgAgent) -> Sequence[str]:
        """Return the workers of a role that have open calls.

        Of those for prompts, it is the one with most open calls of `node`: clients are not told
        which it is.
        """
        engines = self._of(role)
        ids = sorted(worker for worker, engine in self._ids.items() if engine in engines)
        if role == "prefill":
            return [await self._most_busy(ids, node)]
        busy = [worker for worker in ids if any(heard.worker == worker for heard in hearings)]
        if not busy:
            raise ClusterError("no stream has begun on any worker")
        return busy

    async def _most_busy(self, ids: Sequence[str], node: SmgAgent) -> str:
        """Return the worker with most calls of `node`, as soon as one has any; any worker if that
        takes too long.
        """
        found = ids[0]

        async def busy() -> bool:
            nonlocal found
            loads = await Operator(node).loads()
            found = max(ids, key=lambda worker: loads.get(worker, 0))
            return loads.get(found, 0) > 0

        await until(self._cluster, busy, _AT_WORK_S[1])
        return found

    async def _told(self, harm: Harm, victim: str, number: int, heard: Hearing) -> Told:
        if harm.role != "prefill":
            return Told(heard, heard.worker == victim, heard.gap_s)
        moved = await self._broke_on(victim, self._node_of(number), heard.request)
        return Told(heard, moved, max(0.0, heard.spoken_s - heard.begun_s))

    async def _broke_on(self, victim: str, node: SmgAgent, request: str) -> bool:
        """Return whether a call of a request broke by the fault of `victim`, as its node reports
        it.
        """
        steps = await self._steps(node, request) if request else []
        return any(step["step"] == "broke" and step["worker"] == victim for step in steps)

    async def journey(self, number: int, request: str) -> list[str]:
        """Return the journey of question `number` at its node, a line a step."""
        steps = await self._steps(self._node_of(number), request) if request else []
        return [" ".join(f"{name}={told}" for name, told in step.items()) for step in steps]

    async def _steps(self, node: SmgAgent, request: str) -> list[dict[str, Any]]:
        status, answer = await node.ask("GET", f"/v1/cluster/explain/{request}")
        if status != 200:
            raise ClusterError(f"{node.name} does not explain {request}: {status} {answer[:200]!r}")
        return [step for journey in json.loads(answer)["journeys"] for step in journey["steps"]]

    async def _hurt(self, harm: Harm, victim: str, operator: Operator) -> None:
        engine = self._ids[victim]
        if harm.kind == "kill":
            engine.kill()
        elif harm.kind == "stall":
            engine.stop()
            bears_s = self._cast.patience_s if harm.role == "prefill" else STALL_S
            await asyncio.sleep(bears_s + self._stage.rng.uniform(*_LATE_S))
            engine.go_on()
        else:
            await operator.drain(victim)
            if not await operator.remove(victim, force=True):
                raise ClusterError(f"{operator.agent.name} does not know {victim}")

    async def _heal(self, harm: Harm, victim: str) -> None:
        engine = self._ids[victim]
        if harm.kind == "kill":
            await self._restart(engine)
        elif harm.kind == "removal":
            del self._ids[victim]
            self._ids[await Operator(self._stage.rng.choice(self._nodes)).add(engine.url)] = engine
        await self._usable()

    async def _restart(self, engine: EngineProcess) -> None:
        await engine.ended()
        engine.start()
        await engine.listening()

    async def _usable(self) -> None:
        async def so() -> bool:
            views = [await Operator(node).workers() for node in self._nodes]
            return all(view == dict.fromkeys(self._ids, "ready") for view in views)

        if await until(self._cluster, so, _READY_S) is None:
            views = {node.name: await Operator(node).workers() for node in self._nodes}
            raise ClusterError(f"the workers do not become ready again: {views}")

    def _now_s(self) -> float:
        return self._cluster.monotonic_us() / 1e6

    def _node_of(self, number: int) -> SmgAgent:
        return self._nodes[number % len(self._nodes)]

    async def _asked(
        self, meanwhile: Callable[[Sequence[Hearing]], Awaitable[None]] | None = None
    ) -> list[Hearing]:
        """Send every question, to the nodes in turn, not all at the same moment; return what
        came.
        """
        hearings = [Hearing(self._now_s()) for _ in self._questions]

        async def ask(number: int, after_s: float) -> None:
            await asyncio.sleep(after_s)
            hearings[number].begun_s = self._now_s()
            await listen(
                at_place(self._cluster.lab, self._node_of(number).name),
                self._questions[number],
                now_s=self._now_s,
                limit_s=_STREAM_S,
                hearing=hearings[number],
            )

        async with asyncio.TaskGroup() as group:
            for number in range(len(hearings)):
                group.create_task(ask(number, self._stage.rng.uniform(0, _BEGIN_WITHIN_S)))
            if meanwhile is not None:
                await meanwhile(hearings)
        return hearings
