"""The scenario of failover: a worker is hurt under many streams, and no client can tell.

Streams of every kind (plain, two choices, log probabilities, a stop string) are paced by engines whose every
id follows from all before it: what comes next is right only if nothing was lost, doubled or made up. Each
question was answered twice before anybody was hurt, and that is what the streams are compared with. A round
hurts one worker at a random moment and makes it whole again:

    kill     SIGKILL, and a new process at the same address
    stall    SIGSTOP, and SIGCONT after the node must have given it up: what it says late counts for nothing
    removal  drained and removed by force through the admin API of any node, and added again

There are `rounds` of the first and a fifth as many of each other. In the last round everybody is killed at
once: then each stream has to end with a clear error, in time, and none with an end that is made up.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from smg_chaos.gameday.cluster import Cluster, ClusterError
from smg_chaos.gameday.figures import Figure, percentile
from smg_chaos.gameday.hearing import Hearing, problems
from smg_chaos.gameday.listener import at_place, listen
from smg_chaos.gameday.pool import MODEL, Operator, nodes_of, until
from smg_chaos.gameday.processes import EngineProcess
from smg_chaos.gameday.smg_agent import SmgAgent
from smg_chaos.gameday.stage import Stage

Harm: TypeAlias = Literal["kill", "stall", "removal"]
STREAMS: Final = 64
STALL_S: Final = 2.0
"""How long a node of this scenario bears a silent engine."""
FLAGS: Final = (
    *("--http.expose-routing-headers", "true", "--readiness.min-workers", "0"),
    *("--engine.stall-s", str(STALL_S), "--engine.first-event-s", str(STALL_S)),
    *("--workers.probe-interval-s", "0.5", "--workers.retry-s", "0.3"),
)
_ENGINES: Final[tuple[tuple[str, ...], ...]] = (
    ("--contract", "vllm"),
    ("--contract", "sglang"),
    ("--contract", "vllm", "--servicer", "rust"),
    ("--contract", "sglang"),
)
"""Of two contracts and three servicers: a stream may go on at one of another kind."""
_PACE: Final = ("--itl-ms", "20", "--script", "following", "--slots", "256", "--blocks", "4096")
_TOKENS: Final = 100
_BEGIN_WITHIN_S: Final = 0.8
_HURT_AFTER_S: Final = (0.4, 1.6)
_LATE_S: Final = (0.3, 1.0)
_WAIT_FOR_WORKER_S: Final = 2.0
"""The node's default, which this scenario leaves alone."""
_SLACK_S: Final = 1.0
_STREAM_S: Final = 30.0
_READY_S: Final = 60.0
_SHOWN: Final = 3
_KEPT: Final = 300
_SILENCE_S: Final[Mapping[Harm, float]] = {
    "kill": 1.0,
    "removal": 1.0,
    "stall": STALL_S + 1.0,
}


@dataclass
class Tally:
    """What became of the streams of all rounds of one harm."""

    streams: int = 0
    moved: int = 0
    """Had begun on the worker that was hurt."""
    wrong: int = 0
    lost: int = 0
    """Characters that never came."""
    silences: list[float] = field(default_factory=list)
    shown: list[str] = field(default_factory=list)

    def took(self, heard: Hearing, right: Hearing, *, moved: bool) -> None:
        """Note what one client heard."""
        self.streams += 1
        self.moved += moved
        if moved:
            self.silences.append(heard.gap_s)
        found = problems(heard, right)
        if found:
            self.wrong += 1
            self.lost += max(0, right.characters - heard.characters)
            where = "on the worker that was hurt" if moved else "begun on another worker"
            if len(self.shown) < _KEPT:
                self.shown.append(f"{where}: {'; '.join(found)}")

    def figures(self, harm: Harm) -> list[Figure]:
        """Return what came of it."""
        told = f"of {self.streams}, {self.moved} on the worker that was hurt"
        if self.wrong:
            told += f"; {self.lost} characters lost"
        silence = percentile(self.silences, 0.99) if self.silences else None
        return [
            Figure(f"{harm}: streams that are not as undisturbed", self.wrong, "", 0, told),
            Figure(f"{harm}: silence of a moved stream, p99", silence, "s", _SILENCE_S[harm]),
        ]


async def failover(stage: Stage) -> Sequence[Figure]:
    """Hurt a worker in each of so many rounds while so many streams run; kill all at the end."""
    scene = _Scene(stage)
    await scene.begin()
    rights = await scene.undisturbed()
    stage.say(f"{len(rights)} answers are known; now the rounds")
    plan: list[Harm] = []
    for harm, times in _often(stage.rounds).items():
        plan += [harm] * times
    stage.rng.shuffle(plan)
    tallies: dict[Harm, Tally] = {harm: Tally() for harm in _often(stage.rounds)}
    for number, harm in enumerate(plan):
        tally = tallies[harm]
        before = tally.wrong, len(tally.shown)
        await scene.round(harm, rights, tally)
        wrong = tally.wrong - before[0]
        stage.say(f"round {number + 1} of {len(plan)}, {harm}: {wrong} streams went wrong")
        for line in tally.shown[before[1] :][:_SHOWN]:
            stage.say(f"  {line}")
    last = await scene.nobody_left(rights)
    return [*(one for harm in tallies for one in tallies[harm].figures(harm)), *last]


def _often(rounds: int) -> dict[Harm, int]:
    """Return how often each harm is done."""
    others = max(1, rounds // 5)
    return {"kill": rounds, "stall": others, "removal": others}


def questions(count: int) -> list[dict[str, Any]]:
    """Return what the streams ask, each something of its own, in four kinds."""
    more: tuple[dict[str, Any], ...] = ({}, {"n": 2}, {"logprobs": True, "top_logprobs": 2}, {})
    return [
        {
            "model": MODEL,
            "messages": [{"role": "user", "content": f"Question number {number}?"}],
            "max_tokens": _TOKENS,
            "temperature": 0,
            "stream": True,
            "stream_options": {"include_usage": True},
            **more[number % len(more)],
        }
        for number in range(count)
    ]


def stop_in(text: str) -> str:
    """Return a piece of a text, from its second half, where it is plain; "" if there is none."""
    length = 4
    for at in range(len(text) * 6 // 10, len(text) - length):
        piece = text[at : at + length]
        if piece.isascii() and piece.isprintable() and piece.strip() == piece:
            return piece
    return ""


class _Scene:
    """The nodes, the engines and the questions."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._cluster: Cluster = stage.cluster
        self._nodes = nodes_of(stage.cluster)
        self._engines = [
            EngineProcess(stage.cluster, number, [*flags, *_PACE])
            for number, flags in enumerate(_ENGINES)
        ]
        self._ids: dict[str, EngineProcess] = {}
        self._questions = questions(stage.streams or STREAMS)

    async def begin(self) -> None:
        """Start everybody; return when every node can use every engine."""
        for engine in self._engines:
            engine.start()
        await self._cluster.form()
        for engine in self._engines:
            await engine.listening()
            self._ids[await Operator(self._nodes[0]).add(engine.url)] = engine
        await self._usable()

    async def undisturbed(self) -> list[Hearing]:
        """Return what every question is answered when nobody is hurt; ClusterError if that is not always the same."""
        for asked, heard in zip(self._questions, await self._asked(), strict=True):
            if "n" not in asked and "logprobs" not in asked and (stop := stop_in(heard.texts[0])):
                asked["stop"] = [stop]
        rights = await self._asked()
        for right, again in zip(rights, await self._asked(), strict=True):
            found = problems(again, right) + problems(right, right)
            if found or not right.characters:
                raise ClusterError(f"an undisturbed stream is not right: {found}")
        return rights

    async def round(self, harm: Harm, rights: Sequence[Hearing], tally: Tally) -> None:
        """Let all streams run, hurt one worker in the middle, and make it whole again."""
        rng = self._stage.rng
        victim = ""

        async def hurt(hearings: Sequence[Hearing]) -> None:
            nonlocal victim
            await asyncio.sleep(rng.uniform(*_HURT_AFTER_S))
            busy = sorted({heard.worker for heard in hearings} & set(self._ids))
            if not busy:
                raise ClusterError("no stream has begun on any worker")
            victim = rng.choice(busy)
            await self._hurt(harm, victim)

        heard = await self._asked(hurt)
        for one, right in zip(heard, rights, strict=True):
            tally.took(one, right, moved=one.worker == victim)
        await self._heal(harm, victim)

    async def nobody_left(self, rights: Sequence[Hearing]) -> list[Figure]:
        """Kill every engine at once under the streams; return how they ended."""
        killed_s = 0.0

        async def hurt(hearings: Sequence[Hearing]) -> None:
            nonlocal killed_s
            await asyncio.sleep(_BEGIN_WITHIN_S + 0.4)
            killed_s = self._now_s()
            for engine in self._engines:
                engine.kill()

        heard = await self._asked(hurt)
        late, unclear, cut = 0.0, 0, 0
        for one, right in zip(heard, rights, strict=True):
            found = problems(one, right)
            if not found:
                continue  # it had all before
            cut += 1
            late = max(late, one.ended_s - killed_s)
            if not is_clear(one, right):
                unclear += 1
                if unclear <= _SHOWN:
                    self._stage.say(f"nobody left, and unclear: {'; '.join(found)}")
        if not cut:
            raise ClusterError("every stream had ended before its worker was killed")
        deadline_s = _WAIT_FOR_WORKER_S + _SLACK_S
        return [
            Figure("nobody left: streams without a clear error", unclear, "", 0, f"of {cut}"),
            Figure("nobody left: the last error after", late, "s", deadline_s),
        ]

    async def _hurt(self, harm: Harm, victim: str) -> None:
        engine = self._ids[victim]
        if harm == "kill":
            engine.kill()
        elif harm == "stall":
            engine.stop()
            await asyncio.sleep(STALL_S + self._stage.rng.uniform(*_LATE_S))
            engine.go_on()
        else:
            operator = Operator(self._stage.rng.choice(self._nodes))
            await operator.drain(victim)
            if not await operator.remove(victim, force=True):
                raise ClusterError(f"{operator.agent.name} does not know {victim}")

    async def _heal(self, harm: Harm, victim: str) -> None:
        engine = self._ids[victim]
        if harm == "kill":
            await engine.ended()
            engine.start()
            await engine.listening()
        elif harm == "removal":
            del self._ids[victim]
            self._ids[await Operator(self._stage.rng.choice(self._nodes)).add(engine.url)] = engine
        await self._usable()

    async def _usable(self) -> None:
        async def so() -> bool:
            views = [await Operator(node).workers() for node in self._nodes]
            return all(view == dict.fromkeys(self._ids, "ready") for view in views)

        if await until(self._cluster, so, _READY_S) is None:
            views = {node.name: await Operator(node).workers() for node in self._nodes}
            raise ClusterError(f"the workers do not become ready again: {views}")

    def _now_s(self) -> float:
        return self._cluster.monotonic_us() / 1e6

    async def _asked(
        self, meanwhile: Callable[[Sequence[Hearing]], Awaitable[None]] | None = None
    ) -> list[Hearing]:
        """Ask every question, of the nodes in turn, not all at the same moment; return what came."""
        hearings = [Hearing(self._now_s()) for _ in self._questions]

        async def ask(number: int, after_s: float) -> None:
            await asyncio.sleep(after_s)
            node: SmgAgent = self._nodes[number % len(self._nodes)]
            await listen(
                at_place(self._cluster.lab, node.name),
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


def is_clear(heard: Hearing, right: Hearing) -> bool:
    """Return whether a stream that could not be completed ended as it should.

    One error and nothing after it, what was said before is the beginning of what is right, and no choice that
    is not whole has an end. A character of which only some bytes came is shown as U+FFFD.
    """
    begun = all(
        right.texts.get(index, "").startswith((text, text.removesuffix("\ufffd")))
        for index, text in heard.texts.items()
    )
    return (
        begun
        and len(heard.errors) == 1
        and not heard.broken
        and "an end is made up" not in problems(heard, right)
    )
