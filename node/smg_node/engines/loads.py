"""How busy an engine says it is: the `SchedulerLoad` rows of three contracts, normalised. Pure."""

from collections.abc import Iterable
from typing import Any

from smg_node.engines.engine import Load
from smg_node.engines.facts import positive


def scheduler_loads(rows: Iterable[Any]) -> tuple[Load, ...]:
    """Return the `SchedulerLoad` rows that three contracts share in all but package."""
    return tuple(_load(row) for row in rows)


def _load(row: Any) -> Load:
    active = "active_token_usage" in row.DESCRIPTOR.fields_by_name and row.HasField(
        "active_token_usage"
    )
    usage = row.active_token_usage if active else row.token_usage
    uncached, waiting = row.num_waiting_uncached_tokens, row.num_waiting_reqs
    throughput = row.gen_throughput
    return Load(
        rank=row.dp_rank,
        running=row.num_running_reqs,
        waiting=waiting,
        running_max=positive(row.max_running_requests),
        # A queue without tokens is a servicer that does not count them.
        waiting_uncached_tokens=None if waiting > 0 and uncached == 0 else uncached,
        kv_usage=share(usage),
        tokens_per_s=None if row.num_running_reqs > 0 and throughput <= 0 else throughput,
        cache_hit_rate=share(row.cache_hit_rate),
    )


def share(value: float) -> float | None:
    """Return a share of a whole, or None if it cannot be one."""
    return value if 0.0 <= value <= 1.0 else None
