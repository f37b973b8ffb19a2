"""Scenario of ten parts: three nodes, three engines and a PostgreSQL go through them, one after the
other.

a: the seed comes last. b: of two seeds the first is not there. c: an ordinary join, then a worker
registered at one node. d: the node that registered the workers is killed. e: it is back under its
name, by another seed. f: a node is stopped for 25 s. g: SIGTERM, idle and with an answer under way.
h: a limit of ten, asked for forty times at two nodes. i: a conversation made at one node. j: one
key, or one beginning of a prompt, at every node.
"""

from collections.abc import Sequence
from typing import Final

from smg_chaos.gameday.agents.cluster import ClusterError
from smg_chaos.gameday.agents.engine_pool import Operator, nodes_of, until
from smg_chaos.gameday.agents.engine_processes import EngineProcess
from smg_chaos.gameday.history.database_server import PLACE as STORE
from smg_chaos.gameday.history.database_server import prepared
from smg_chaos.gameday.limits.scene import ENGINES
from smg_chaos.gameday.scenes import healing
from smg_chaos.gameday.scenes import worker_registry as registry
from smg_chaos.gameday.stage import Stage
from smg_chaos.gameday.ten import lives, uses
from smg_chaos.statistics import Figure

PLACES: Final = (ENGINES, STORE)
"""Places beside those of the nodes."""
FLAGS: Final = ("--readiness.min-workers", "0", "--http.expose-routing-headers", "true")
_ENGINE: Final = ("--script", "following", "--itl-ms", "20", "--slots", "256", "--blocks", "8192")
"""With room for every beginning: one that was forgotten has no place any more."""
_ENGINES: Final = 3
_READY_S: Final = 60.0


async def ten(stage: Stage) -> Sequence[Figure]:
    """Play all ten; return the figures, in the order of the letters. `stage.seconds`: how long a
    node is stopped.
    """
    nodes = nodes_of(stage.cluster)
    if len(nodes) != 3:
        raise ClusterError("these stories are about three nodes")
    engines = [EngineProcess(stage.cluster, at, _ENGINE, place=ENGINES) for at in range(_ENGINES)]
    for engine in engines:
        engine.start()
        await engine.listening()
    log = nodes[0].folder.parent / "postgresql.log"
    with prepared(stage.cluster, "postgresql", log) as store:
        await store.start()
        for node in nodes:
            own = ("--store", store.url, "--storage.auto-migrate", "on")
            node.flags = (*node.flags, *own)
        try:
            return await _played(stage, [engine.url for engine in engines])
        finally:
            await store.kill()


async def _played(stage: Stage, urls: Sequence[str]) -> Sequence[Figure]:
    nodes = nodes_of(stage.cluster)
    found = {"a": list(await healing.late_seed(stage))}
    for node in nodes:
        if await until(stage.cluster, Operator(node).ready, _READY_S) is None:
            raise ClusterError(f"{node.name} does not become ready:\n{node.last_words()}")
    found["b"], found["c"] = await lives.joined(stage, urls[0])
    found["d"] = list(await registry.outlived(stage, nodes, urls[1:]))
    found["e"] = await lives.back(stage)
    found["f"] = await lives.stood_still(stage)
    found["g"] = await lives.left(stage)
    found["h"] = await uses.limited(stage)
    found["i"] = await uses.conversed(stage)
    found["j"] = await uses.affine(stage)
    return [
        Figure(f"{letter}: {one.metric}", one.value, one.unit, one.limit, one.says)
        for letter, figures in sorted(found.items())
        for one in figures
    ]
