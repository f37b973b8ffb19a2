"""Workers' loads to try things on, and an engine that says it is idle."""

from smg_node.engines.load import Load
from smg_node.fleet.load.worker_load import LoadOptions, WorkerLoad

IDLE = Load(
    rank=0,
    running=0,
    waiting=0,
    running_max=16,
    waiting_uncached_tokens=0,
    kv_usage=0.0,
    tokens_per_s=None,
    cache_hit_rate=None,
)


def load(**options: float) -> WorkerLoad:
    """Return the load of a worker of which nothing is known, with options by name."""
    made = WorkerLoad("w")
    made.retune(LoadOptions(**options))  # type: ignore[arg-type]  # numbers all of them
    return made
