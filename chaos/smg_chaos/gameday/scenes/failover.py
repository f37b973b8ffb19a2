"""Failover scenario: a worker is hurt under many streams, and no client may notice.

Streams of every kind (plain, two choices, log probabilities, a stop string) are paced by engines
whose every id follows from all before it: the continuation is right only if nothing was lost,
doubled or made up. Each question was answered twice before the first fault, and that is what the
streams are compared with. A round hurts one worker at a random moment and makes it whole again:

    kill     SIGKILL, and a new process at the same address
    stall    SIGSTOP, and SIGCONT after the node must have given it up: its late output is ignored
    removal  drained and removed by force through the admin API of any node, and added again

The engines, and how often each harm is done to which role, are those of a cast (`roles`). In the
end all engines of a role are killed at once. Those for prompts are not missed by streams that have
begun; without the others each stream has to end with a clear error, in time, and none with an end
that is made up.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from smg_chaos.gameday.agents.cluster import ClusterError
from smg_chaos.gameday.clients.stream_check import Hearing, problems
from smg_chaos.gameday.scenes.failover_scene import Scene
from smg_chaos.gameday.scenes.roles import CASTS, QUEUE_S, STALL_S, Cast, Harm, Role
from smg_chaos.gameday.stage import Stage
from smg_chaos.statistics import Figure, percentile

STREAMS: Final = 64
FLAGS: Final = (
    *("--http.expose-routing-headers", "true", "--readiness.min-workers", "0"),
    *("--engine.stall-s", str(STALL_S)),
    *("--workers.probe-interval-s", "0.5", "--workers.retry-s", "0.3"),
)
_WAIT_FOR_WORKER_S: Final = 2.0
"""The node's default, which this scenario leaves alone."""
_SLACK_S: Final = 1.0
_SHOWN: Final = 3


@dataclass
class Tally:
    """Counts of the streams of all rounds of one harm."""

    streams: int = 0
    moved: int = 0
    """Had begun on the worker that was hurt, or were to be worked off by it."""
    wrong: int = 0
    lost: int = 0
    """Characters that never came."""
    silences: list[float] = field(default_factory=list)

    def took(self, heard: Hearing, right: Hearing, *, moved: bool, silence_s: float) -> str:
        """Count one client's stream, and return what is wrong with it, or "".

        `silence_s` is how long it waited for another worker to continue.
        """
        self.streams += 1
        self.moved += moved
        if moved:
            self.silences.append(silence_s)
        found = problems(heard, right)
        if not found:
            return ""
        self.wrong += 1
        self.lost += max(0, right.characters - heard.characters)
        where = "on the worker that was hurt" if moved else "begun on another worker"
        return f"{heard.request} {where}: {'; '.join(found)}"

    def figures(self, harm: Harm, limit_s: float) -> list[Figure]:
        """Return the figures of the harm."""
        told = f"of {self.streams}, {self.moved} on the worker that was hurt"
        if self.wrong:
            told += f"; {self.lost} characters lost"
        silence = percentile(self.silences, 0.99) if self.silences else None
        waited = "first text" if harm.role == "prefill" else "silence"
        return [
            Figure(f"{harm.name}: streams that are not as undisturbed", self.wrong, "", 0, told),
            Figure(f"{harm.name}: {waited} of a moved stream, p99", silence, "s", limit_s),
        ]


async def failover(stage: Stage) -> Sequence[Figure]:
    """Hurt a worker in each of so many rounds while so many streams run; kill all at the end."""
    if stage.topology not in CASTS:
        raise ClusterError(
            f"no topology is called {stage.topology!r}; there are {', '.join(CASTS)}"
        )
    streams = stage.streams or STREAMS
    cast = CASTS[stage.topology](streams)
    scene = Scene(stage, cast, streams)
    await scene.begin()
    rights = await scene.undisturbed()
    stage.say(f"{len(rights)} answers are known; now the rounds")
    figures = await _rounds(stage, cast, scene, rights)
    if any(part.role == "prefill" for part in cast.parts):
        figures += await _without(stage, scene, rights, "prefill")
        await scene.whole_again()
        return figures + await _without(stage, scene, rights, "decode")
    return figures + await _without(stage, scene, rights, "regular")


async def _rounds(
    stage: Stage, cast: Cast, scene: Scene, rights: Sequence[Hearing]
) -> list[Figure]:
    plan = [harm for harm, times in cast.often(stage.rounds).items() for _ in range(times)]
    stage.rng.shuffle(plan)
    tallies = {harm: Tally() for harm in cast.shares}
    for number, harm in enumerate(plan):
        tally = tallies[harm]
        wrong: list[tuple[int, str, str]] = []
        for asked, (told, right) in enumerate(zip(await scene.round(harm), rights, strict=True)):
            found = tally.took(told.heard, right, moved=told.moved, silence_s=told.silence_s)
            if found:
                wrong.append((asked, told.heard.request, found))
        said = f"{len(wrong)} streams went wrong"
        stage.say(f"round {number + 1} of {len(plan)}, {harm.name}: {said}")
        for asked, request, found in wrong[:_SHOWN]:
            stage.say("\n    ".join((f"  {found}", *await scene.journey(asked, request))))
    return [
        figure
        for harm, tally in tallies.items()
        for figure in tally.figures(harm, cast.silence_s(harm))
    ]


async def _without(
    stage: Stage, scene: Scene, rights: Sequence[Hearing], role: Role
) -> list[Figure]:
    """Kill every engine of a role at once under the streams; return how they ended."""
    killed_s, told = await scene.without(role)
    who = "nobody left" if role == "regular" else f"no {role} engine left"
    # A pair is tried once more, and its prompt stands in line, before it shows that nobody draws answers.
    slack_s = _SLACK_S if role == "regular" else _SLACK_S + QUEUE_S
    late, unclear, cut, begun, disturbed = 0.0, 0, 0, 0, 0
    for one, right in zip(told, rights, strict=True):
        found = problems(one.heard, right)
        begun += one.begun
        if not found:
            continue  # it had all that it needed before
        cut += 1
        disturbed += one.begun
        late = max(late, one.heard.ended_s - killed_s)
        if not is_clear(one.heard, right):
            unclear += 1
            if unclear <= _SHOWN:
                stage.say(f"{who}, and unclear: {one.heard.request} {'; '.join(found)}")
    if not cut and role != "prefill":
        raise ClusterError("every stream had ended before its worker was killed")
    figures = [
        Figure(f"{who}: streams without a clear error", unclear, "", 0, f"of {cut}"),
        Figure(f"{who}: the last error after", late, "s", _WAIT_FOR_WORKER_S + slack_s),
    ]
    if role == "prefill":
        says = f"of {begun} that had begun"
        missed = disturbed if begun else None
        figures.append(Figure(f"{who}: begun streams that missed it", missed, "", 0, says))
    return figures


def is_clear(heard: Hearing, right: Hearing) -> bool:
    """Return whether a stream that could not be completed ended as it should.

    One error and nothing after it, the text before is the beginning of what is right, and no choice
    that is not whole has an end. A character of which only some bytes came is shown as U+FFFD.
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
