"""Load reports: decodes and normalises the load that an engine pushes or is asked for. Pure."""

import math
from collections.abc import Iterable
from typing import Any, Final

from smg_node.engines.contracts.engine_metadata import positive
from smg_node.engines.load import Load

REQUESTS_MAX: Final = 1_000_000
"""No engine runs or queues more; one that says so counts wrongly, and what else it says is as good."""


def scheduler_loads(rows: Iterable[Any]) -> tuple[Load, ...]:
    """Return the `SchedulerLoad` rows that three contracts share in all but package, less absurd ones."""
    return tuple(
        _load(row) for row in rows if _believable(row.num_running_reqs, row.num_waiting_reqs)
    )


def pushed_load(record: Any, rank: int) -> Load | None:
    """Return the `EngineLoad` that comes with KV events; None for one that cannot be true."""
    running, waiting = record.running_requests, record.waiting_requests
    if not _believable(running, waiting):
        return None
    active = record.HasField("active_token_usage")
    return Load(
        rank=rank,
        running=running,
        waiting=waiting,
        running_max=positive(record.max_running_requests),
        waiting_uncached_tokens=(
            record.waiting_uncached_tokens if record.HasField("waiting_uncached_tokens") else None
        ),
        kv_usage=share(record.active_token_usage if active else record.token_usage),
        tokens_per_s=_speed(record.gen_throughput, running),
        cache_hit_rate=share(record.cache_hit_rate) if record.HasField("cache_hit_rate") else None,
        age_ms=record.age_ms,
        silence_ms=record.engine_silence_ms if record.HasField("engine_silence_ms") else None,
        reports_steps=record.engine_reports_steps,
        prefill_pending_tokens=(
            record.prefill_pending_tokens if record.HasField("prefill_pending_tokens") else None
        ),
    )


def _load(row: Any) -> Load:
    active = "active_token_usage" in row.DESCRIPTOR.fields_by_name and row.HasField(
        "active_token_usage"
    )
    usage = row.active_token_usage if active else row.token_usage
    uncached, waiting = row.num_waiting_uncached_tokens, row.num_waiting_reqs
    return Load(
        rank=max(0, row.dp_rank),
        running=row.num_running_reqs,
        waiting=waiting,
        running_max=positive(row.max_running_requests),
        # A queue without tokens is a servicer that does not count them.
        waiting_uncached_tokens=None
        if uncached < 0 or (waiting > 0 and uncached == 0)
        else uncached,
        kv_usage=share(usage),
        tokens_per_s=_speed(row.gen_throughput, row.num_running_reqs),
        cache_hit_rate=share(row.cache_hit_rate),
    )


def _believable(running: int, waiting: int) -> bool:
    return 0 <= running <= REQUESTS_MAX and 0 <= waiting <= REQUESTS_MAX


def _speed(tokens_per_s: float, running: int) -> float | None:
    """Return a throughput; one that is nothing although requests run was not measured."""
    if not math.isfinite(tokens_per_s) or tokens_per_s < 0:
        return None
    return None if running > 0 and tokens_per_s == 0 else tokens_per_s


def share(value: float) -> float | None:
    """Return a share of a whole, or None if it cannot be one."""
    return value if 0.0 <= value <= 1.0 else None
