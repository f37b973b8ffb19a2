"""Cut-off node scenario: a turn that only that node has must never be denied by the others, before
or after.

Each round a node is cut off from the others, for a moment or long enough to be thought dead. The
store is killed, and the node, which its clients and engines still reach, puts a turn on its disk
and acknowledges it. The store comes back, and at once the turn is asked for at every other node,
again and again: until the store has it each may answer that it does not know now, and none that
there is no such response.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from smg_chaos.gameday.agents.cluster import ClusterError
from smg_chaos.gameday.agents.engine_pool import MODEL, Operator, nodes_of, until
from smg_chaos.gameday.agents.engine_processes import EngineProcess
from smg_chaos.gameday.agents.smg_agent import SmgAgent
from smg_chaos.gameday.history.database_server import StoreServer, prepared
from smg_chaos.gameday.history.response_request import RESPONSES, Answer, ask
from smg_chaos.gameday.lab.link_rules import cut
from smg_chaos.gameday.limits.scene import ENGINES
from smg_chaos.gameday.stage import Stage
from smg_chaos.statistics import Figure, percentile

_ENGINE: Final = ("--contract", "vllm", "--script", "fixed", "--itl-ms", "1", "--ttft-ms", "1")
_READY_S: Final = 60.0
_WAITS_S: Final = 20.0
_CUT_S: Final = (0.2, 6.0)
"""So long before the store dies a node is cut off: not noticed yet, doubted, or thought dead."""
_EVERY_S: Final = 0.05
_THERE_S: Final = 30.0


@dataclass(slots=True)
class Told:
    """Answers of the other nodes, of all rounds. `there_s`: from the store's return to the last
    node's right answer.
    """

    asked: int = 0
    denied: list[str] = field(default_factory=list)
    unsure: int = 0
    other: list[str] = field(default_factory=list)
    there_s: list[float] = field(default_factory=list)

    def count(self, node: str, answer: Answer) -> bool:
        """Count an answer; return whether it is the turn."""
        self.asked += 1
        if answer.status == 200:
            return True
        if answer.status == 404:
            self.denied.append(f"{node}: {answer.said}")
        elif answer.code == "store_unavailable":
            self.unsure += 1
        else:
            self.other.append(f"{node}: {answer.status} {str(answer.said)[:200]}")
        return False


async def unwritten(stage: Stage) -> Sequence[Figure]:
    """Play `stage.rounds` rounds; return the others' answers about turns that only one node had."""
    engine = EngineProcess(stage.cluster, 0, _ENGINE, place=ENGINES)
    engine.start()
    await engine.listening()
    told = Told()
    log = stage.cluster.agents[0].folder.parent / "postgresql.log"
    with prepared(stage.cluster, "postgresql", log) as store:
        await store.start()
        for node in nodes_of(stage.cluster):
            flags = ("--store", store.url, "--storage.auto-migrate", "on")
            node.flags = (*node.flags, "--worker", engine.url, *flags)
        await stage.cluster.form()
        for node in nodes_of(stage.cluster):
            if await until(stage.cluster, Operator(node).ready, _READY_S) is None:
                raise ClusterError(f"{node.name} does not become ready:\n{node.last_words()}")
        try:
            for number in range(1, stage.rounds + 1):
                await _round(stage, store, told)
                stage.say(f"round {number} of {stage.rounds}: {len(told.denied)} denied so far")
        finally:
            await store.kill()
    for line in [*told.denied, *told.other][:10]:
        stage.say(line)
    return figures(told)


def figures(told: Told) -> list[Figure]:
    """Return the figures of all rounds."""
    p50 = percentile(told.there_s, 0.5) if told.there_s else None
    of_all = f"of {told.asked} asked, {told.unsure} of them answered that it cannot be known now"
    return [
        Figure(
            "acknowledged on one node's disk and denied by another", len(told.denied), "", 0, of_all
        ),
        Figure("other errors", len(told.other), "", 0),
        Figure("everywhere after the store's return, p50", p50, "s"),
        Figure("the same, worst", max(told.there_s, default=None), "s", _THERE_S),
    ]


async def _round(stage: Stage, store: StoreServer, told: Told) -> None:
    nodes = nodes_of(stage.cluster)
    victim = stage.rng.choice(nodes)
    others = [node for node in nodes if node is not victim]
    stage.cluster.lab.set_rules(cut([victim.name], [node.name for node in others]))
    try:
        await asyncio.sleep(stage.rng.uniform(*_CUT_S))
        await store.kill()
        response_id = await _kept(stage, victim)
        await store.start()
        began_s = stage.cluster.monotonic_us() / 1e6
        async with asyncio.TaskGroup() as group:
            for node in others:
                group.create_task(_until_there(stage, node, response_id, told))
        told.there_s.append(stage.cluster.monotonic_us() / 1e6 - began_s)
    finally:
        stage.cluster.lab.set_rules({})
    await stage.whole_again()


async def _kept(stage: Stage, victim: SmgAgent) -> str:
    """Return the id of a response that a node has on its disk; ClusterError if it keeps none."""
    said: Any = "nothing"
    for _ in range(round(_WAITS_S)):
        body = {"model": MODEL, "input": "Who keeps this?", "max_output_tokens": 4}
        answer = await ask(stage.cluster.lab, victim, "POST", RESPONSES, body)
        if answer.spooled:
            return str(answer.said["id"])
        said = answer.said
        await asyncio.sleep(1.0)
    raise ClusterError(f"{victim.name} puts no turn on its disk: {said}")


async def _until_there(stage: Stage, node: SmgAgent, response_id: str, told: Told) -> None:
    """Ask a node for a response until it has it; ClusterError if it never does."""
    for _ in range(round(_THERE_S / _EVERY_S)):
        answer = await ask(stage.cluster.lab, node, "GET", f"{RESPONSES}/{response_id}")
        if told.count(node.name, answer):
            return
        await asyncio.sleep(_EVERY_S)
    raise ClusterError(f"{node.name} never finds a turn that was acknowledged")
